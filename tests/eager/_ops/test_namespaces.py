"""`torch.ops`: namespaces, packets, overloads and their schemas, of torch's operators and of the user's own."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import eager
from eager import Tensor
from eager._ops import OpOverload, OpOverloadPacket
from eager._ops import ops as same_ops
from eager._ops.aten import find, schemas
from eager._ops.schema import parse_schema

torch: Any = eager


@torch.library.custom_op("names_test::scale", mutates_args=())
def scale(x: Tensor, by: float) -> Tensor:
    """x times by."""
    return x * by


@scale.register_fake
def _(x: Tensor, by: float) -> Tensor:
    return torch.empty_like(x)


def _ops_of_graph(fn: Any, *args: Any) -> list[Any]:
    targets: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        targets.extend(n.target for n in gm.graph.nodes if n.op == "call_function")
        return gm.forward

    torch.compile(fn, backend=backend, fullgraph=True)(*args)
    return targets


def test_a_custom_op_is_found_in_torch_ops() -> None:
    packet = torch.ops.names_test.scale
    assert same_ops is torch.ops and isinstance(packet, OpOverloadPacket) and isinstance(packet.default, OpOverload)
    assert scale._opoverload is packet.default and list(torch.ops.names_test) == ["scale"]
    assert packet.overloads() == ["default"] and str(packet) == "names_test.scale" and packet.default.name() == "names_test::scale"
    assert repr(packet.default) == "<OpOverload(op='names_test.scale', overload='default')>"
    assert str(packet.default._schema) == "names_test::scale(Tensor x, float by) -> Tensor"
    x = torch.ones(2)
    for call in (packet, packet.default, scale):
        assert call(x, 2.0).tolist() == call(x, by=2.0).tolist() == [2, 2]


def test_libraries_declare_overloads() -> None:
    library = torch.library.Library("names_overloads", "DEF")
    library.define("twice(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    library.define("twice.times(Tensor x, int n) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice.times", lambda x, n: x * 2 * n, "CPU")
    packet = torch.ops.names_overloads.twice
    assert packet.overloads() == ["default", "times"] and torch.Tag.pointwise in packet.default.tags
    assert packet(torch.ones(1)).item() == 2 and packet(torch.ones(1), 3).item() == packet.times(torch.ones(1), 3).item() == 6
    with pytest.raises(NotImplementedError, match=r"aten::add: implementations of torch's own operators"):
        torch.library.Library("aten", "IMPL").impl("add", lambda x: x, "CPU")


def test_namespaces_name_their_missing_attributes() -> None:
    assert repr(torch.ops) == "<module 'torch.ops' from '_ops.py'>"
    assert repr(torch.ops.absent) == "<module 'torch.ops.absent' from 'torch.ops'>"
    assert not hasattr(torch.ops.torchvision, "nms") and torch.ops.loaded_libraries == set()
    with pytest.raises(AttributeError, match="'_OpNamespace' 'absent' object has no attribute 'f'"):
        torch.ops.absent.f()
    torch.ops.import_module("json")
    record = torch.ops.profiler._record_function_enter_new("region")
    torch.ops.profiler._record_function_exit._RecordFunction(record)
    assert torch.ops.prim.device(torch.ones(1)) == torch.device("cpu")
    assert torch.ops.prims.convert_element_type.default(torch.ones(1), torch.int64).dtype is torch.int64
    assert torch.ops.higher_order.cond(torch.tensor(True), lambda x: x + 1, lambda x: x, (torch.ones(1),)).item() == 2


def test_overloads_are_copied_and_pickled_by_name() -> None:
    add = torch.ops.aten.add.Tensor
    assert copy.deepcopy([add])[0] is add and pickle.loads(pickle.dumps((add, torch.ops.aten.add))) == (add, torch.ops.aten.add)
    assert add.tags == [torch.Tag.core, torch.Tag.pointwise, torch.Tag.pt2_compliant_tag]
    assert torch.ops.aten.view.default.is_view and not torch.ops.aten.add_.Tensor.is_view and add._schema.name == "aten::add"


def test_every_operator_of_aten_has_a_readable_schema() -> None:
    wrong = []
    for name in (*dir(Tensor), "arange", "cat", "slice", "convolution_backward"):
        for overload, (text, _) in schemas(name).items():
            schema = parse_schema(text)
            assert find(name) is not None
            named = schema.name == f"aten::{name}" and (schema.overload_name or "default") == overload
            if not named or bool(schema.returns) != ("-> ()" not in text):
                wrong.append(text)
    assert not wrong


def test_arguments_are_held_against_the_schema() -> None:
    x, aten = torch.ones(2), torch.ops.aten
    assert aten.add.Tensor(self=x, other=x, alpha=2).tolist() == [3, 3] and aten.sum.dim_IntList(x, [0], keepdim=True).shape == (1,)
    for call, message in [
        (lambda: aten.add.Tensor(x), r"aten::add\(\) is missing value for argument 'other'. Declaration: aten::add.Tensor\(Tensor self,"),
        (lambda: aten.add.Tensor(x, 1, 2, 3, 4), r"aten::add\(\) expected at most 3 argument\(s\) but received 5 argument\(s\)"),
        (lambda: aten.add.Tensor(x, 1, foo=3), r"Unknown keyword argument 'foo' for operator 'aten::add'. Schema: aten::add.Tensor"),
        (lambda: aten.add.Tensor(x, "a"), r"Expected a value of type 'Tensor' for argument 'other' but instead found type 'str'"),
        (lambda: aten.sum.dim_IntList(x, 0.5), r"Expected a value of type 'Optional\[List\[int\]\]' for argument 'dim'"),
        (lambda: aten.cat([1, 2]), r"failed to match any schema:\naten::cat\(\) Expected a value of type 'List\[Tensor\]'"),
        (lambda: torch.ops.names_test.scale(1, 2.0), r"names_test::scale\(\) Expected a value of type 'Tensor' for argument 'x'"),
        (lambda: scale(x), r"names_test::scale\(\) is missing value for argument 'by'"),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(RuntimeError, match="parse_schema"):
        parse_schema("nonsense")


def test_captured_graphs_call_overloads() -> None:
    def fn(x: Tensor) -> Tensor:
        y = torch.ops.names_test.scale(x, 2.0)
        z = torch.ops.names_test.scale.default(y, 3.0)
        w = torch.ops.aten.add.Tensor(z, y)
        return torch.ops.aten.mul(w, 2) + scale(x, 1.0)

    packet, aten = torch.ops.names_test.scale, torch.ops.aten
    assert _ops_of_graph(fn, torch.ones(2))[:5] == [packet, packet.default, aten.add.Tensor, aten.mul, packet.default]
    for backend in ("eager", "aot_eager", "inductor"):
        assert torch.compile(fn, backend=backend, fullgraph=True)(torch.ones(2)).tolist() == [17, 17]


def test_captured_overloads_that_write_or_read_numbers() -> None:
    aten = torch.ops.aten

    def fn(x: Tensor) -> Tensor:
        y = aten.clone.default(x)
        aten.add_.Tensor(y, 1)
        aten.mul_(aten.select.int(y, 0, 0), aten.sym_size.int(x, 0))
        return aten.sum.dim_IntList(y, [0])

    x = torch.arange(3.0)
    want = fn(x)
    for backend in ("eager", "aot_eager", "inductor"):
        assert torch.compile(fn, backend=backend, fullgraph=True)(x).equal(want) and want.item() == 8


def test_classes_with_torch_function_see_the_overload() -> None:
    seen = []

    class Logged:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
            seen.append(func)
            return "mine"

    import eager.overrides  # noqa: F401

    assert torch.ops.aten.add.Tensor(Logged(), 1) == "mine" and seen == [torch.ops.aten.add.Tensor]
