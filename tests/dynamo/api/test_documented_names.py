"""Programs that use the names of torch._dynamo, functorch and torch.export in the way that torch's documents show."""
from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import eager
from dynamo.backends.common import aot_autograd
from dynamo.functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers
from dynamo.functorch.compile import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_func,
    min_cut_rematerialization_partition,
    nop,
)

torch: Any = eager
dynamo: Any = eager._dynamo


def test_export_returns_a_graph_of_any_batch_and_the_guards() -> None:
    layer = torch.nn.Linear(3, 2)
    module, guards = dynamo.export(lambda x: {"y": layer(x).relu()})(torch.ones(4, 3))
    x = torch.randn(6, 3)
    assert torch.equal(module(x)["y"], layer(x).relu())
    assert [n.target.name for n in module.graph.nodes if n.op == "call_function"][-1] == "relu"
    assert guards
    fixed = dynamo.export(layer, tracing_mode="real")(torch.ones(4, 3)).graph_module
    assert torch.equal(fixed(x[:4]), layer(x[:4]))
    with pytest.raises(AssertionError, match="Guard failed"):
        fixed(x)


def test_export_refuses_unsupported_options() -> None:
    def breaks(x: Any) -> Any:
        dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        dynamo.export(breaks)(torch.ones(2))
    with pytest.raises(AssertionError, match="pre_dispatch can only be used when aten_graph=True"):
        dynamo.export(breaks, pre_dispatch=True)
    with pytest.raises(NotImplementedError, match="tracing_mode='fast'"):
        dynamo.export(breaks, tracing_mode="fast")
    with pytest.warns(FutureWarning, match="is deprecated, use export"):
        dynamo.export(lambda x: x + 1, torch.ones(3))


def test_a_forbidden_function_is_an_error_where_it_is_captured() -> None:
    @dynamo.forbid_in_graph  # type: ignore[untyped-decorator]
    def forbidden(x: Any) -> Any:
        return x + 1

    assert forbidden(1) == 2
    with pytest.raises(AssertionError, match="Attempt to trace forbidden callable <function"):
        torch.compile(lambda x: forbidden(x) * 2, backend="eager")(torch.ones(2))
    with pytest.raises(AssertionError, match="forbid_in_graph applies only to callables"):
        dynamo.forbid_in_graph(3)


def test_skip_frame_runs_the_function_eagerly() -> None:
    def f(x: Any) -> Any:
        x = x + 1
        dynamo.skip_frame("not now")
        return x * 2

    found = dynamo.explain(f)(torch.ones(2))
    assert found.graph_count == 0
    assert "torch._dynamo.skip_frame() was called: not now" in found.fallbacks[0]
    assert torch.compile(f, backend="eager")(torch.ones(2)).tolist() == [4.0, 4.0]


def test_reset_code_caches_compiles_again() -> None:
    count = torch._dynamo.testing.CompileCounter()
    f = torch.compile(lambda x: x + 1, backend=count)
    f(torch.ones(2))
    dynamo.reset_code_caches()
    f(torch.ones(2))
    assert count.frame_count == 2
    assert dynamo.is_dynamo_supported()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("form", ["boxed", "plain"])
def test_a_backend_of_two_compilers_gets_the_forward_and_the_backward_graph(form: str, dynamic: bool) -> None:
    seen: list[tuple[str, Any, Any]] = []

    def compiler(name: str) -> Any:
        def compile_graph(gm: Any, examples: Any) -> Any:
            seen.append((name, gm, examples))
            return make_boxed_func(gm.forward) if form == "boxed" else gm.forward

        return compile_graph

    backend = aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"))
    f = torch.compile(lambda x: (x.sin() * x).sum(), backend=backend, dynamic=dynamic)
    x = torch.randn(5, requires_grad=True)
    f(x).backward()
    assert torch.allclose(x.grad, x.detach() * x.detach().cos() + x.detach().sin())
    assert torch.equal(f(x.detach()), (x.detach().sin() * x.detach()).sum())
    assert [name for name, _, _ in seen] == ["forward", "backward", "inference"]
    assert all(len(gm.graph.placeholders) == len(examples) for _, gm, examples in seen)


def test_aot_module_simplified_is_a_backend_from_a_compiler() -> None:
    def backend(gm: Any, examples: Any) -> Any:
        return aot_module_simplified(gm, examples, fw_compiler=nop)

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    x = torch.randn(2, 3)
    out = torch.compile(model, backend=backend)(x)
    out.sum().backward()
    expected = model(x)
    assert torch.allclose(out, expected)
    assert model[0].weight.grad is not None
    with pytest.raises(TypeError, match="aot_module takes modules"):
        aot_module_simplified(model, [x], nop)


def test_aot_function_and_aot_module_capture_whole_programs() -> None:
    x = torch.randn(3, requires_grad=True)
    aot_function(lambda x: x.cos(), nop, partition_fn=min_cut_rematerialization_partition)(x).sum().backward()
    assert torch.allclose(x.grad, -x.detach().sin())
    layer, whole = torch.nn.Linear(3, 2), torch.arange(3.0)
    with torch.no_grad():
        for p in layer.parameters():
            p.mul_(8).round_()  # exact in any order of sums
    assert torch.equal(aot_module(layer, nop)(whole), layer(whole))
    with pytest.raises(NotImplementedError, match="partition_fn"):
        aot_function(lambda x: x, nop, partition_fn=print)


def test_functional_modules_take_their_parameters() -> None:
    layer = torch.nn.Linear(3, 2)
    f, params = make_functional(layer)
    x = torch.ones(3)
    assert torch.equal(f(params, x), layer(x))
    grads = torch.func.grad(lambda p: f(p, x).sum())(params)
    assert torch.equal(grads[0], torch.ones(2, 3))
    assert not make_functional(layer, disable_autograd_tracking=True)[1][0].requires_grad
    with pytest.raises(RuntimeError, match=r"`model` has buffers\. Please use make_functional_with_buffers"):
        make_functional(torch.nn.BatchNorm1d(3))
    norm = torch.nn.BatchNorm1d(3).eval()
    g, params, buffers = make_functional_with_buffers(norm)
    assert torch.equal(g(params, [b + 1 for b in buffers], torch.ones(2, 3)), (torch.ones(2, 3) - 1) / (2 + norm.eps) ** 0.5)
    h, stacked, held = combine_state_for_ensemble([torch.nn.Linear(3, 2) for _ in range(4)])
    assert torch.func.vmap(h, (0, 0, None))(stacked, held, x).shape == (4, 2)


PROGRAM = """
    from eager import as_torch
    as_torch.install()
    import functorch, torch, torch.ops, torch.compiler.config, torch.fx.experimental._config
    from functorch import make_functional, make_fx, vmap
    from functorch.compile import aot_function, make_boxed_func, nop
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.registry import register_backend
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch.export.graph_signature import InputKind
    from torch.export.dynamic_shapes import Dim
    from torch.fx import CodeGen
    from torch.fx.graph import CodeGen as Same
    from torch.fx.node import has_side_effect, map_aggregate
    from torch.ops import aten
    print(CodeGen is Same, aten is torch.ops.aten, functorch.vmap is torch.func.vmap, Dim is torch.export.Dim)
    print(map_aggregate({"a": [1, (2,)]}, lambda x: x + 1 if isinstance(x, int) else x))
    for statement in ("import torch._dynamo.convert_frame", "from torch._dynamo import symbolic_convert", "import functorch.dim",
                      "import torch._inductor.codecache", "from torch._dynamo.utils import same", "from functorch.compile import minifier"):
        try:
            exec(statement)
        except ImportError as error:
            print(str(error).rpartition(": ")[2][:25])
"""


def test_imports_as_torch_succeed_or_state_the_reason() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    lines = done.stdout.splitlines()
    assert lines[:2] == ["True True True True", "{'a': [2, (3,)]}"], done.stderr
    assert lines[2:] == ["this is a part of torch's"] * 6, done.stdout


def test_export_returns_a_graph_module() -> None:
    """The result of export is a GraphModule of torch.fx: its source can be read, its graph edited, and it can be
    called, copied and printed.
    """
    def f(x: Any, y: Any) -> dict[str, Any]:
        return {"a": torch.sin(x) * y}

    module = dynamo.export(f)(torch.ones(3), torch.ones(3)).graph_module
    assert isinstance(module, torch.fx.GraphModule)
    assert "def forward(self, x, y):" in module.code
    assert "sin" in module.print_readable(print_output=False)
    assert torch.equal(module(torch.ones(4), torch.ones(4))["a"], torch.ones(4).sin())
    for node in module.graph.nodes:
        if node.name == "sin":
            node.target = torch.cos
    module.recompile()
    assert torch.equal(copy.deepcopy(module)(torch.ones(2), torch.ones(2))["a"], torch.ones(2).sin())
    assert torch.equal(module(torch.ones(2), torch.ones(2))["a"], torch.ones(2).cos())


def test_sizes_of_two_arguments_that_must_be_equal_are_checked() -> None:
    module = dynamo.export(lambda x, y: x + y)(torch.ones(3), torch.ones(3)).graph_module
    assert module(torch.ones(5), torch.ones(5)).shape == (5,)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(5), torch.ones(4))


def test_an_exported_module_has_the_parts_of_the_original() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    module = dynamo.export(layers)(torch.ones(4, 3)).graph_module
    assert [n for n, _ in module.named_parameters()] == [n for n, _ in layers.named_parameters()]
    assert {n.target for n in module.graph.find_nodes(op="get_attr")} == set(layers.state_dict())
    before = int(module.get_buffer("1.num_batches_tracked"))
    module(torch.randn(4, 3))
    assert module.get_buffer("1.num_batches_tracked") == before + 1
