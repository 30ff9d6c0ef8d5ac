"""Undocumented names of torch that model libraries import, and their meaning in this project."""
from __future__ import annotations

import numpy as np
import pytest

import eager as torch
from eager._C import Graph
from eager._C._functorch import get_unwrapped, is_batchedtensor, is_functorch_wrapped_tensor
from eager._subclasses.fake_tensor import is_fake
from eager.ao.quantization import FakeQuantizeBase, ObserverBase
from eager.base.spec import fake_like
from eager.distributions.utils import _standard_normal, _sum_rightmost
from eager.jit import _get_trace_graph
from eager.serialization import DEFAULT_PROTOCOL
from eager.utils.data._utils.collate import np_str_obj_array_pattern


def test_torch_in_torch() -> None:
    assert torch.torch is torch


def test_meshes_of_devices_can_be_named_but_not_made() -> None:
    with pytest.raises(NotImplementedError, match=r"distributed\.device_mesh\.DeviceMesh"):
        torch.distributed.device_mesh.DeviceMesh("cpu", [0])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.distributed.nothing  # noqa: B018


def test_streams_are_cuda_streams() -> None:
    assert torch.Stream is torch.cuda.Stream and torch.Event is torch.cuda.Event


def test_fakes_are_distinguished_from_tensors() -> None:
    x = torch.ones(2)
    assert is_fake(fake_like(x)) and not is_fake(x) and not is_fake(2)


def test_collate_knows_text() -> None:
    assert np_str_obj_array_pattern.search(np.array(["a"]).dtype.str)
    assert not np_str_obj_array_pattern.search(np.ones(1).dtype.str)


def test_draws_and_sums_of_distributions() -> None:
    torch.manual_seed(3)
    drawn = _standard_normal((2, 3), torch.float64, torch.device("cpu"))
    torch.manual_seed(3)
    assert torch.distributions.Normal(torch.zeros(2, 3).double(), 1.0).rsample().tolist() == drawn.tolist()
    assert _sum_rightmost(torch.ones(2, 3, 4), 2).tolist() == [12.0, 12.0] and DEFAULT_PROTOCOL == 2


def test_fake_rules_may_come_before_the_op_that_they_are_of() -> None:
    def rule(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    assert torch.library.register_fake("waits_test::twice", rule) is rule

    @torch.library.impl("waits_test::twice", "CPU")
    def kernel(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with pytest.raises(AttributeError):
        torch.ops.waits_test.twice  # noqa: B018
    torch.library.define("waits_test::twice", "(Tensor x) -> Tensor")
    run = torch.compile(torch.ops.waits_test.twice, fullgraph=True)
    assert run(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.register_fake("waits_test::two::three", rule)


def test_libraries_of_compiled_operators_cannot_be_loaded() -> None:
    with pytest.raises(OSError, match=r"ops\.load_library: some\.so: no libtorch"):
        torch.ops.load_library("some.so")


def test_dispatch_keys_are_names() -> None:
    key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
    both = keys(key.AutocastCPU) | keys(key.AutocastCUDA)
    assert both.has(key.AutocastCPU) and not both.has(key.CPU) and list(both - keys(key.AutocastCPU)) == [key.AutocastCUDA]
    assert both & keys(key.AutocastCPU) == keys(key.AutocastCPU) and both.remove(key.AutocastCPU).add(key.CPU).has(key.CPU)
    with pytest.raises(NotImplementedError, match="not dispatched by key"), torch._C._ExcludeDispatchKeyGuard(both):
        pass


def test_former_names_of_torch_library_work() -> None:
    import eager._custom_ops as before

    assert before.get_ctx is torch.library.get_ctx and before.impl_abstract is torch.library.register_fake


def test_a_subclass_may_store_its_data_as_meta() -> None:
    class Image(torch.Tensor):
        def __new__(cls, x: torch.Tensor, meta: dict[str, str]) -> Image:
            made = x.as_subclass(cls)
            made._meta = meta  # type: ignore[attr-defined]
            return made

    image = Image(torch.ones(2), {"space": "RAS"})
    assert image._meta == {"space": "RAS"} and type(image + 1) is Image


def test_a_tensor_of_a_transform_is_recognised() -> None:
    seen = []

    def row(x: torch.Tensor) -> torch.Tensor:
        seen.append((is_batchedtensor(x), is_functorch_wrapped_tensor(x), tuple(get_unwrapped(x).shape)))
        return x

    torch.vmap(row)(torch.ones(2, 3))
    assert seen == [(True, True, (2, 3))] and not is_batchedtensor(torch.ones(2))


def test_classes_of_torchscript_and_quantization_are_names_alone() -> None:
    for cls in (Graph, FakeQuantizeBase, ObserverBase):
        assert not isinstance(torch.nn.Linear(1, 1), cls)
        with pytest.raises(NotImplementedError, match=cls.__name__):
            cls()
    with pytest.raises(NotImplementedError, match="TorchScript"):
        _get_trace_graph(torch.nn.Linear(1, 1), (torch.ones(1),))


def test_private_names_that_stand_for_things_of_ours() -> None:
    assert torch._subclasses.FakeTensor is torch._subclasses.fake_tensor.FakeTensor
    assert torch._functorch.eager_transforms.vjp is torch.func.vjp and torch._functorch.vmap.vmap is torch.func.vmap
    assert torch._functorch.functional_call.functional_call is torch.func.functional_call
    assert torch._higher_order_ops.cond is torch.cond and torch._ops.OpOverload is type(torch.ops.aten.add.Tensor)
    assert torch._utils._get_device_module("cpu") is torch.cpu and torch._utils._element_size(torch.float16) == 2
    assert torch._utils._get_available_device_type() == ("cuda" if torch.cuda.is_available() else None)
    with pytest.raises(RuntimeError, match="Device 'mps' does not have a corresponding module"):
        torch._utils._get_device_module("mps")


def test_flat_buffers_hold_the_tensors() -> None:
    parts = [torch.arange(6.0).view(2, 3), torch.ones(2)]
    flat = torch._utils._flatten_dense_tensors(parts)
    assert [p.tolist() for p in torch._utils._unflatten_dense_tensors(flat, parts)] == [p.tolist() for p in parts]


def test_class_properties_are_read_from_the_class() -> None:
    class Named:
        @torch._utils.classproperty
        def name(cls) -> str:
            return cls.__name__

    assert Named.name == Named().name == "Named"


@pytest.mark.parametrize(("size_average", "reduce", "reduction", "number"), [(None, None, "mean", 1), (False, None, "sum", 2),
                                                                         (True, False, "none", 0), (None, True, "mean", 1)])  # fmt: skip
def test_reductions_have_torchs_numbers(size_average: bool | None, reduce: bool | None, reduction: str, number: int) -> None:
    from_flags = torch.nn._reduction.legacy_get_string(size_average, reduce, emit_warning=False)
    assert from_flags == reduction and torch.nn._reduction.get_enum(reduction) == number
    with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
        assert torch.nn._reduction.legacy_get_enum(size_average, reduce) == number
    with pytest.raises(ValueError, match="max is not a valid value for reduction"):
        torch.nn._reduction.get_enum("max")
