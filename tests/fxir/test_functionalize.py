"""Programs that write and alias: through aot they do what eager does, seen from outside in every way."""

from __future__ import annotations

import pytest

import eager
from eager import Tensor
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.verifier import verify
from fxir.region.aot import interpret
from fxir.trace.trace import trace
from tests.fxir.helpers import aliasing, array, as_list, assert_same_tensors, compile_like, fakes_of, shares
from tests.fxir.programs import PROGRAMS

NAMES = sorted(PROGRAMS)


def run_both(name, prepare=lambda ts: ts):
    fn, make = PROGRAMS[name]
    compiled = compile_like(fn, prepare(make()))
    ours, theirs = prepare(make()), prepare(make())
    before = [t._version for t in ours]
    got = as_list(compiled(*ours))
    want = as_list(fn(*theirs))
    return ours, got, theirs, want, before


@pytest.mark.parametrize("name", NAMES)
def test_values_aliasing_and_versions_are_eagers(name):
    ours, got, theirs, want, before = run_both(name)
    assert_same_tensors(got, want)
    assert_same_tensors(ours, theirs)
    assert aliasing([*ours, *got]) == aliasing([*theirs, *want])
    for a, b, v in zip(ours, theirs, before, strict=True):
        assert (a._version > v) == (b._version > v), "a written input must bump its version, others must not"


@pytest.mark.parametrize("name", NAMES)
def test_later_writes_reach_the_same_tensors(name):
    """Aliasing as it is felt: write to each result, and compare everything."""
    ours, got, theirs, want, _ = run_both(name)
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if not isinstance(b, Tensor) or any(n > 1 and s == 0 for n, s in zip(b.shape, b.stride(), strict=True)):
            continue
        a.add_(k + 1)
        b.add_(k + 1)
        assert_same_tensors([*got, *ours], [*want, *theirs])


@pytest.mark.parametrize("name", NAMES)
def test_compiled_again_on_other_values(name):
    fn, make = PROGRAMS[name]
    compiled = compile_like(fn, make())
    for factor in (2.0, -1.0):
        ours, theirs = make(), make()
        for t in {id(t): t for t in [*ours, *theirs]}.values():
            if t.dtype.is_floating_point:
                t.mul_(factor)
        assert_same_tensors(as_list(compiled(*ours)), as_list(fn(*theirs)))


def leaf(ts):
    return [t.requires_grad_() if t.dtype.is_floating_point else t for t in ts]


def history(ts):
    """The inputs as results of a program before: they may be written to."""
    seen = {}
    return [seen.setdefault(id(t), t.detach().requires_grad_() * 1 if t.dtype.is_floating_point else t) for t in ts]


def outcome(run, tensors, roots):
    """The effects of calling `run`: (results, inputs, gradients of the roots), or the error's class and text."""
    try:
        results = as_list(run(*tensors))
        total = 0
        for k, t in enumerate([*results, *tensors]):
            if isinstance(t, Tensor) and t.requires_grad and t.dtype.is_floating_point:
                total = total + (t * t * (k + 1)).sum()
        grads = []
        if isinstance(total, Tensor):
            grads = list(eager.autograd.grad(total, roots, allow_unused=True))
        return results, tensors, grads
    except (RuntimeError, NotImplementedError) as e:
        return type(e), str(e)


APART = [n for n in NAMES if PROGRAMS[n][1].__name__ not in ("overlapping", "window")]


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("prepare", [leaf, history], ids=["leaf", "history"])
def test_gradients_are_eagers(name, prepare):
    fn, make = PROGRAMS[name]

    def world(run):
        roots = leaf([t.detach() for t in {id(t): t for t in make()}.values()])
        again = iter(roots)
        seen = {}
        inputs = []
        for t in make():
            if id(t) not in seen:
                r = next(again)
                seen[id(t)] = r if prepare is leaf or not t.dtype.is_floating_point else r * 1
            inputs.append(seen[id(t)])
        return outcome(run(inputs), inputs, [r for r in roots if r.requires_grad])

    want = world(lambda inputs: fn)
    try:
        got = world(lambda inputs: compile_like(fn, inputs))
    except (RuntimeError, NotImplementedError) as e:
        got = (type(e), str(e))
    if len(want) == 2:
        assert got == want, "a program that eager refuses is refused with the same error"
        return
    assert len(got) == 3, f"eager accepts this program, compiled it raises {got}"
    for a, b in zip(got, want, strict=True):
        assert_same_tensors(a, b, rtol=1e-4, atol=1e-5)
    assert aliasing([*got[1], *got[0]]) == aliasing([*want[1], *want[0]])


def test_written_shared_memory_that_requires_grad_raises():
    base = eager.randn(10).requires_grad_() * 1
    x, y = base[:6], base[4:]

    def f(x, y):
        x.mul_(2)
        return y * 2

    with pytest.raises(NotImplementedError, match="share memory"):
        compile_like(f, [x, y])

    def g(x, y):
        return x[:4] * y[:4]

    assert_same_tensors([compile_like(g, [x, y])(x, y)], [g(x, y)])


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_functional_and_its_outputs_lie_apart(name):
    fn, make = PROGRAMS[name]
    graphs = []

    def look(graph, kind, options):
        graphs.append(verify(graph, functional=True, specs=True))
        return interpret(graph, kind, options)

    tensors = make()
    compiled = compile_like(fn, tensors, look)
    compiled(*tensors)
    for graph in graphs:
        assert all(n.op == "call_function" for n in graph.outputs)
        assert len(set(graph.outputs)) == len(graph.outputs)


def test_results_of_a_compiled_graph_never_share_memory_with_each_other_or_its_inputs():
    def f(x):
        y = eager.empty(4, 3)
        y.copy_(x.t())
        z = eager.empty(3, 4)
        z.copy_(y.t())
        return y, z, x.t().contiguous(), x.view(-1).clone()

    x = eager.randn(3, 4)
    graph = trace(f, fakes_of([x]))
    results = interpret(graph, GraphKind.INFERENCE, CompileOptions())(x)
    everything = [x, *results]
    for i, a in enumerate(everything):
        assert not any(shares(a, b) for b in everything[:i])
    assert [array(r).tolist() for r in results] == [array(r).tolist() for r in f(x)]
