"""`compile` and related functions: accepted arguments, results, and refusals."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

import dynamo
import eager as torch
from dynamo import _native
from dynamo.policy import callees
from dynamo.report.errors import BackendFailed, FailOnRecompile, UnsupportedUnderFullgraph
from eager import nn
from eager.base import logs, settings


def x23() -> torch.Tensor:
    return torch.arange(6).reshape(2, 3).float()


class Recorder:
    """A backend that runs the graph unchanged and records it."""

    def __init__(self) -> None:
        self.graphs: list = []

    def __call__(self, gm, example_inputs):
        assert all(isinstance(t, torch.SymInt) or t.is_fake for t in example_inputs)
        self.graphs.append(gm)
        return gm

    @property
    def calls(self) -> list[int]:
        return [sum(n.op.startswith("call") for n in g.graph.nodes) for g in self.graphs]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.p = 2.0

    def forward(self, x, scale=1):
        return torch.relu(self.lin(x)) * self.p * scale


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.allclose(a, b)) and a.dtype is b.dtype


# --- what can be compiled --------------------------------------------------------------------------------------


def test_a_function_is_captured_once_and_called_natively() -> None:
    backend = Recorder()
    compiled = dynamo.compile(lambda x: x * 2 + 1, backend=backend)
    for _ in range(3):
        assert same(compiled(x23()), x23() * 2 + 1)
    assert backend.calls == [2]
    assert compiled.misses == 1
    assert isinstance(compiled, _native.CompiledFunction)


def test_decorator_forms() -> None:
    @dynamo.compile(backend="eager")
    def f(x):
        """doc"""
        return x + 1

    @dynamo.compile
    def g(x):
        return x

    assert same(f(x23()), x23() + 1)
    assert (f.__name__, f.__doc__) == ("f", "doc")
    assert isinstance(g, _native.CompiledFunction)


def test_methods_partials_lambdas_and_callable_objects() -> None:
    class K:
        def __init__(self, k):
            self.k = k

        def m(self, x):
            return x * self.k

        def __call__(self, x):
            return x - self.k

    k = K(3)
    assert same(dynamo.compile(k.m, backend="eager")(x23()), x23() * 3)
    assert same(dynamo.compile(k, backend="eager")(x23()), x23() - 3)
    k.k = 5
    assert same(dynamo.compile(k.m, backend="eager")(x23()), x23() * 5)
    partial = functools.partial(lambda a, x: x + a, 2)
    assert same(dynamo.compile(partial, backend="eager")(x23()), x23() + 2)
    assert same(dynamo.compile(torch.relu, backend="eager")(-x23()), torch.relu(-x23()))


def test_a_compiled_method_binds() -> None:
    class K:
        k = 2

        @dynamo.compile(backend="eager")
        def m(self, x):
            return x * self.k

    assert same(K().m(x23()), x23() * 2)


@pytest.mark.parametrize("bad", [3, "name", None, K := type("K", (), {})])
def test_objects_that_cannot_be_called_are_refused(bad) -> None:
    if bad is None:
        assert callable(dynamo.compile(None))
    else:
        with pytest.raises(TypeError, match="compile: got"):
            dynamo.compile(bad)


def test_invalid_arguments_are_refused_at_once() -> None:
    with pytest.raises(RuntimeError, match="Invalid backend: 'nonesuch'"):
        dynamo.compile(lambda x: x, backend="nonesuch")
    with pytest.raises(RuntimeError, match="Unrecognized mode=slow"):
        dynamo.compile(lambda x: x, mode="slow")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        dynamo.compile(lambda x: x, mode="default", options={"a": 1})
    with pytest.raises(TypeError, match="backend="):
        dynamo.compile(lambda x: x, backend=3)


def test_the_disable_argument_returns_the_function() -> None:
    def f(x):
        return x

    assert dynamo.compile(f, disable=True) is f


def test_nested_compile_is_captured_into_the_outer_graph() -> None:
    inner = dynamo.compile(lambda x: x * 2, backend="eager")
    backend = Recorder()
    outer = dynamo.compile(lambda x: inner(x) + 1, backend=backend)
    assert same(outer(x23()), x23() * 2 + 1)
    assert backend.calls == [2]


# --- modules ---------------------------------------------------------------------------------------------------


def test_a_compiled_module_behaves_as_the_module() -> None:
    net = Net()
    compiled = dynamo.compile(net, backend="eager")
    assert isinstance(compiled, nn.Module)
    assert same(compiled(x23(), scale=2), net(x23(), scale=2))
    assert compiled.lin is net.lin
    assert compiled.p == 2.0
    compiled.p = 3.0
    assert net.p == 3.0
    assert same(compiled(x23()), net(x23()))
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in net.parameters()]
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in net.state_dict()]
    compiled.eval()
    assert not net.training
    assert not compiled.training
    with pytest.raises(AttributeError):
        compiled.nonesuch  # noqa: B018


def test_another_method_compiled_as_its_module_was() -> None:
    seen: list[int] = []

    def backend(gm, examples):
        seen.append(len(examples))
        return gm.forward

    class Net(nn.Linear):
        def step(self, x):
            return self(x).sum()

    net = Net(3, 2)
    compiled = dynamo.compile(net, backend=backend)
    step = compiled.dynamo_ctx(net.step)
    x = torch.ones(4, 3)
    assert step.__self__ is net and torch.equal(step(x), net.step(x)) and len(seen) == 1
    assert torch.equal(compiled.dynamo_ctx(lambda y: net(y) + 1)(x), net(x) + 1) and len(seen) == 2



def test_changes_of_a_module_are_seen() -> None:
    net = Net()
    backend = Recorder()
    compiled = dynamo.compile(net, backend=backend)
    compiled(x23())
    compiled(x23())
    assert len(backend.graphs) == 1
    net.lin = nn.Linear(3, 4)
    assert same(compiled(x23()), net(x23()))
    net.lin.weight = nn.Parameter(torch.ones(4, 3))
    assert same(compiled(x23()), net(x23()))
    net.__dict__["p"] = 7.0
    assert same(compiled(x23()), net(x23()))
    with torch.no_grad():
        net.lin.weight.mul_(2)  # a write to a parameter changes no structure: no new graph
    before = len(backend.graphs)
    assert same(compiled(x23()), net(x23()))
    assert len(backend.graphs) == before


def test_module_hooks_run() -> None:
    net, seen = Net(), []
    compiled = dynamo.compile(net, backend="eager")
    compiled(x23())
    handle = net.lin.register_forward_hook(lambda m, a, y: seen.append(1) or y * 2)
    assert same(compiled(x23()), net(x23()))
    assert len(seen) == 2
    handle.remove()
    assert same(compiled(x23()), net(x23()))
    assert len(seen) == 2


def test_module_compile_in_place() -> None:
    net = Net()
    expected = net(x23())
    net.compile(backend="eager")
    assert same(net(x23()), expected)


def test_training_through_a_compiled_module_gives_the_same_gradients() -> None:
    torch.manual_seed(0)
    net = Net()
    net(x23()).pow(2).sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    for p in net.parameters():
        p.grad = None
    compiled = dynamo.compile(net, backend="aot_eager")
    compiled(x23()).pow(2).sum().backward()
    assert all(same(p.grad, e) for p, e in zip(net.parameters(), expected, strict=True))


# --- breaks, fullgraph, disable --------------------------------------------------------------------------------


def test_fullgraph_names_the_line_the_cause_and_a_hint() -> None:
    def f(x):
        y = x + 1
        print("side effect")  # the breaking line
        return y

    with pytest.raises(UnsupportedUnderFullgraph) as caught:
        dynamo.compile(f, backend="eager", fullgraph=True)(x23())
    text = str(caught.value)
    line = f.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}" in text
    assert 'print("side effect")' in text
    assert "print()" in text
    assert "Hint: " in text


def test_fullgraph_propagates_errors_of_the_user() -> None:
    def f(x):
        return x @ x

    with pytest.raises(RuntimeError) as eager_error:
        f(x23())
    with pytest.raises(RuntimeError) as compiled_error:
        dynamo.compile(f, backend="eager", fullgraph=True)(x23())
    assert type(compiled_error.value) is type(eager_error.value)
    assert str(compiled_error.value) == str(eager_error.value)


def test_disabled_functions_run_plainly() -> None:
    seen = []

    @dynamo.disable
    def quiet(x):
        seen.append(_native.thread_mode())
        return x * 2

    backend = Recorder()
    compiled = dynamo.compile(lambda x: quiet(x + 1) + 1, backend=backend)
    assert same(compiled(x23()), (x23() + 1) * 2 + 1)
    assert backend.calls == [1, 1]
    assert same(quiet(x23()), x23() * 2)


def test_graph_break_splits_the_graph() -> None:
    def f(x):
        y = x + 1
        dynamo.graph_break()
        return y * 2

    backend = Recorder()
    assert same(dynamo.compile(f, backend=backend)(x23()), f(x23()))
    assert backend.calls == [1, 1]


def test_is_compiling_is_true_only_inside_a_capture() -> None:
    def f(x):
        return x + 1 if torch.compiler.is_compiling() else x - 1

    assert same(f(x23()), x23() - 1)
    assert same(dynamo.compile(f, backend="eager")(x23()), x23() + 1)


def test_allow_in_graph_and_constant_results_and_substitutes() -> None:
    calls = []

    def opaque(x):
        return x.clone().mul_(3)

    def setting():
        calls.append(1)
        return 4

    def counted(x):
        return int(np.polyval(x.shape, 1))

    dynamo.allow_in_graph(opaque)
    dynamo.assume_constant_result(setting)

    with pytest.raises(TypeError, match="Signature mismatch"):
        dynamo.substitute_in_graph(np.polyval)(lambda shape: 1)

    @dynamo.substitute_in_graph(np.polyval, skip_signature_check=True)  # the change lasts: no other test calls the function
    def value(shape, x):
        total = 0
        for n in shape:
            total = total * x + n
        return total

    backend = Recorder()
    compiled = dynamo.compile(lambda x: opaque(x) + setting() + counted(x), backend=backend)
    for _ in range(2):
        assert same(compiled(x23()), x23() * 3 + 4 + 5)
    assert len(calls) == 1
    assert [n.target for n in backend.graphs[0].graph.nodes if n.target is opaque]


@pytest.mark.parametrize("kind", ["function", "op"])
def test_disallow_in_graph_ends_the_graph_at_calls(kind: str) -> None:
    def own(x):
        return x * 3

    called = own if kind == "function" else torch.digamma

    def f(x):
        return called(x + 1) - 1

    dynamo.disallow_in_graph([called])
    try:
        backend = Recorder()
        assert same(dynamo.compile(f, backend=backend)(x23()), f(x23()))
        assert len(backend.graphs) == (3 if kind == "function" else 2)  # the disabled function has a separate graph
        with pytest.raises(torch._dynamo.exc.Unsupported, match="disallow_in_graph"):
            dynamo.optimize_assert(Recorder())(f)(x23())
    finally:
        callees._disallowed.clear()
    with pytest.raises(TypeError, match="disallow_in_graph: got a int"):
        dynamo.disallow_in_graph(3)


def test_explain_lists_graphs_breaks_and_guards() -> None:
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    found = dynamo.explain(f, x23())
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 2)
    assert found.breaks[0].line == f.__code__.co_firstlineno + 2
    assert found.breaks[0].source_line == 'print(end="")'
    assert found.guards
    assert "Graph Break Count: 1" in str(found)
    assert "print" in str(dynamo.explain(f)(x23()))


def test_stances() -> None:
    backend = Recorder()
    compiled = dynamo.compile(lambda x, n: x * n, backend=backend)
    with dynamo.set_stance("force_eager"):
        assert same(compiled(x23(), 2), x23() * 2)
    assert backend.calls == []
    compiled(x23(), 2)
    with dynamo.set_stance("eager_on_recompile"):
        assert same(compiled(x23(), 3), x23() * 3)
    assert len(backend.graphs) == 1
    with dynamo.set_stance("fail_on_recompile"), pytest.raises(FailOnRecompile, match="int_eq"):
        compiled(x23(), 4)
    with pytest.raises(RuntimeError, match="allowed"):
        dynamo.set_stance("sometimes")
    assert same(compiled(x23(), 5), x23() * 5)


def test_reset_forgets() -> None:
    backend = Recorder()
    compiled = dynamo.compile(lambda x: x + 1, backend=backend)
    compiled(x23())
    dynamo.reset()
    compiled(x23())
    assert len(backend.graphs) == 2


def test_a_failing_backend_under_fullgraph_is_an_error_with_its_cause() -> None:
    def broken(gm, example_inputs):
        raise OSError("no compiler")

    with pytest.raises(BackendFailed, match="OSError: no compiler") as caught:
        dynamo.compile(lambda x: x * 2, backend=broken, fullgraph=True)(x23())
    assert isinstance(caught.value.inner_exception, OSError) and caught.value.backend_name == "broken"
    with settings.scope(capture_suppress_errors=False), pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="OSError: no c"):
        dynamo.compile(lambda x: x * 2, backend=broken)(x23())


def test_the_hook_is_installed_only_while_plain_python_runs_in_a_region() -> None:
    seen = []

    def leaf(x):
        return x

    def look():
        seen.append(_native.hook_installed())

    def f(x):
        y = x + 1
        opaque(leaf, y)
        return y * 2

    opaque = functools.lru_cache(lambda fn, x: look())
    compiled = dynamo.compile(f, backend="eager")
    for _ in range(2):
        compiled(x23())
    assert seen[0]
    assert not _native.hook_installed()
    assert _native.active_regions() == 0


def test_disabled_by_the_environment() -> None:
    code = (
        "import eager as torch, dynamo\n"
        "def f(x): return x + 1\n"
        "assert dynamo.compile(f) is f\n"
        "print('ok')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**_environment(), "TORCH_COMPILE_DISABLE": "1"}
    )
    assert done.stdout.strip() == "ok"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_counters_count_graphs_calls_and_breaks() -> None:
    counters = dynamo.utils.counters
    counters.clear()

    @dynamo.compile(backend="eager")
    def f(x):
        y = x + 1
        dynamo.graph_break("between the halves")
        return y * 2 - y

    f(x23())
    assert counters["stats"] == {"unique_graphs": 2, "calls_captured": 3}
    assert counters["frames"] == {"total": 2, "ok": 2}
    assert counters["graph_break"] == {"torch._dynamo.graph_break() was called: between the halves": 1}


@pytest.mark.parametrize("name", ["unique", "nonzero", "masked_select", "argwhere", "unique_consecutive", "bincount"])
def test_a_break_reports_that_a_shape_depends_on_data(name: str) -> None:
    def f(x):
        y = x.long() + 1
        return torch.masked_select(y, y > 1) if name == "masked_select" else getattr(torch, name)(y)

    found = dynamo.explain(f)(torch.arange(3)).breaks
    assert [b.cause.id for b in found] == ["data-dependent-value"]


def test_graphs_record_the_users_lines_within_library_modules() -> None:
    graphs = []

    def keep(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            return self.lin(x) + 1

    with logs.capture("graph_code") as records:
        dynamo.compile(Net(), backend=keep)(x23())
    line = Net.forward.__code__.co_firstlineno + 1
    origins = [n.info.origin for n in graphs[0].graph.nodes if n.op.startswith("call")]
    assert len(origins) == 2 and {(o.file, o.line) for o in origins} == {(__file__, line)}
    (text,) = [r.message for r in records if r.name == "graph_code"]
    assert text.startswith(Net.forward.__qualname__)  # not the function of ours that calls the module
    assert text.count(f"{__file__}:{line}") == 1  # reported once for neighbouring lines


def test_a_function_of_the_library_is_a_program_of_one_call() -> None:
    a, b, c = torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    compiled = dynamo.compile(torch.baddbmm, fullgraph=True)
    assert torch.equal(compiled(a, b, c, beta=2), torch.baddbmm(a, b, c, beta=2)) and compiled.__name__ == "baddbmm"
    (graph,) = dynamo.explain(torch.nn.functional.softmax, c, dim=-1).graphs
    assert len([n for n in graph.graph.nodes if n.op == "call_function"]) == 1
