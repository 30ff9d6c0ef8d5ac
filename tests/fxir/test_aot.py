"""aot: gradients, values saved for backward, random numbers, buffers, tangents, errors, and programs that need no wrapper."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

import eager
from eager.base import settings
from eager.optable.table import OPS
from fxir import backends
from fxir.base.options import CompileOptions, GraphKind
from fxir.base.origin import Origin
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import NodeInfo
from fxir.region.aot import aot_compile, interpret
from tests.fxir.helpers import array, as_list, assert_same_tensors, capture, compile_like, fakes_of


def param(*shape):
    return eager.randn(*shape).requires_grad_()


def mlp(x, w1, b1, w2):
    return (x.mm(w1) + b1).relu().mm(w2)


def grads_of(fn, tensors):
    out = fn(*tensors)
    wanted = [t for t in tensors if t.requires_grad]
    return [out, *eager.autograd.grad(sum((t * t).sum() for t in as_list(out) if t.requires_grad), wanted)]


# ---- gradients ----
def norm(x, w):
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) * (var + 1e-5).rsqrt() * w


def attention(q, k, v):
    s = q.bmm(k.transpose(1, 2)) * 0.5
    e = (s - s.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).bmm(v)


def branches(x, y):
    a = x.sin() * y
    return a, a.sum(0), (x * 2).detach(), y.exp() + 1


def gathers(x, y):
    picked = x[:, [0, 2]]
    return eager.cat([picked, y[:, :2]], 1).cumsum(1) if hasattr(x, "cumsum") else eager.cat([picked, y[:, :2]], 1)


CASES = {
    "mlp": (mlp, lambda: [eager.randn(5, 4), param(4, 6), param(6), param(6, 3)]),
    "norm": (norm, lambda: [param(3, 8), param(8)]),
    "attention": (attention, lambda: [param(2, 3, 4), param(2, 5, 4), param(2, 5, 4)]),
    "branches": (branches, lambda: [param(3, 4), param(3, 4)]),
    "gathers": (gathers, lambda: [param(3, 4), param(3, 4)]),
    "half": (lambda x, y: (x.half() * y.half()).float().tanh(), lambda: [param(3, 4), param(3, 4)]),
    "broadcast": (lambda x, y: x * y + y, lambda: [param(3, 4), param(4)]),
    "scalar": (lambda x: (x * 3).sum(), lambda: [param(3, 4)]),
    "unused": (lambda x, y: x * 2, lambda: [param(3), param(3)]),
    "passes its gradient on": (lambda x, y: x + y, lambda: [param(3), param(3)]),
    "empty": (lambda x: x.exp() * 2, lambda: [param(0, 4)]),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_are_eagers(name):
    fn, make = CASES[name]
    eager.manual_seed(1)
    tensors = make()
    wanted = [t for t in tensors if t.requires_grad]

    def run(f):
        out = as_list(f(*tensors))
        loss = sum((t * t).sum() for t in out if t.requires_grad)
        return [*out, *eager.autograd.grad(loss, wanted, allow_unused=True)]

    assert_same_tensors(run(compile_like(fn, tensors)), run(fn), rtol=1e-4, atol=1e-5)


def test_backward_accumulates_into_leaves_over_several_calls():
    x, w = eager.randn(5, 4), param(4, 6)
    v = w.detach().requires_grad_()
    compiled = compile_like(lambda x, w: x.mm(w).tanh(), [x, w])
    for _ in range(3):
        compiled(x, w).sum().backward()
        x.mm(v).tanh().sum().backward()
    assert_same_tensors([w.grad], [v.grad])


def test_history_continues_before_and_after_the_region():
    x = param(3, 4)
    compiled = compile_like(lambda h: (h.sin(), h.t()), [x * 2])

    def run(f):
        a, b = f(x * 2)
        return eager.autograd.grad((a.t() * b).sum(), [x])

    assert_same_tensors(run(compiled), run(lambda h: (h.sin(), h.t())))


def test_the_forward_is_compiled_at_once_and_the_backward_at_its_first_call():
    kinds = []

    def look(graph, kind, options):
        kinds.append(kind)
        return interpret(graph, kind, options)

    w = param(3)
    compiled = compile_like(lambda w: w * w, [w], look)
    assert kinds == [GraphKind.FORWARD]
    for _ in range(2):
        compiled(w).sum().backward()
    assert kinds == [GraphKind.FORWARD, GraphKind.BACKWARD]


def test_without_required_gradients_it_is_inference():
    kinds = []

    def look(graph, kind, options):
        kinds.append(kind)
        return interpret(graph, kind, options)

    w = param(3)
    with eager.no_grad():
        y = compile_like(lambda w: w * w, [w], look)(w)
    assert not y.requires_grad
    y = compile_like(lambda w: (w.detach() * 2, (w > 0)), [w], look)(w)
    assert not y[0].requires_grad
    assert kinds == [GraphKind.INFERENCE] * 2


def test_nothing_to_do_at_run_time_means_the_bare_artifact():
    made = []

    def look(graph, kind, options):
        made.append(interpret(graph, kind, options))
        return made[-1]

    gm = Graph()
    x, y = gm.placeholder("x"), gm.placeholder("y")
    gm.output((gm.call_function(eager.add, (x, y)),))
    compiled = aot_compile(
        GraphModule({}, gm), [eager.base.spec.fake_like(eager.randn(3))] * 1 + fakes_of([eager.randn(3)]), look
    )
    assert compiled is made[0]


# ---- tangents ----
@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: a.sum(),
        lambda a, b: b.sum() * 2,
        lambda a, b: (a.t() * 3).sum() + b[0].sum(),
        lambda a, b: (a * eager.arange(12.0).view(4, 3).t()).sum(),
        lambda a, b: a.expand(2, 3, 4).sum() + (b * a).mean(),
    ],
)
def test_tangents_of_every_layout(use):
    x = param(3, 4)

    def fn(x):
        return x.exp(), (x * x).sin()

    compiled = compile_like(fn, [x])
    # The layout of a gradient follows its tangents in eager, the layout traced with here.
    (got,), (want,) = (eager.autograd.grad(use(*f(x)), [x]) for f in (compiled, fn))
    np.testing.assert_allclose(array(got), array(want), rtol=1e-5, atol=1e-6)


# ---- rules of autograd ----
def test_gradients_of_gradients_equal_eagers():
    x = param(3)
    y = compile_like(lambda x: x * x * x, [x])(x)
    (g,) = eager.autograd.grad(y.sum(), [x], create_graph=True)
    np.testing.assert_allclose(array(g), 3 * array(x) ** 2, rtol=1e-5)
    (second,) = eager.autograd.grad(g.sum(), [x], create_graph=True)
    np.testing.assert_allclose(array(second), 6 * array(x), rtol=1e-5)
    (third,) = eager.autograd.grad(second.sum(), [x])
    np.testing.assert_allclose(array(third), np.full(3, 6.0), rtol=1e-5)


def test_a_gradient_of_a_gradient_over_an_overwritten_input_is_refused():
    def fn(x, h):
        y = (x * h.clone()).sin()
        h.mul_(2)
        return y

    x, h = param(3), eager.ones(3)
    y = compile_like(fn, [x, h])(x, h)
    with pytest.raises(NotImplementedError, match="depends on the former value of an input"):
        eager.autograd.grad(y.sum(), [x], create_graph=True)


def test_an_absent_gradient_adds_nothing_not_even_nan():
    def fn(x):
        return x * 2, x.log(), (x * x).sqrt()

    x = eager.tensor([0.0, 1.0, 2.0], requires_grad=True)
    compiled = compile_like(fn, [x])
    for used in ((0,), (1,), (0, 1), (0, 2)):
        got, want = compiled(x), fn(x)
        (a,) = eager.autograd.grad(sum(got[k].sum() for k in used), [x])
        (b,) = eager.autograd.grad(sum(want[k].sum() for k in used), [x])
        np.testing.assert_allclose(array(a), array(b), rtol=1e-6)


def test_outputs_with_separate_graphs_are_freed_one_by_one():
    def fn(x, y):
        return x.exp(), y.sin(), x * 2, x.exp() * y

    x, y = param(3), param(3)
    for order in itertools.permutations(range(4)):
        seen = []
        for f in (fn, compile_like(fn, [x, y])):
            out = f(x, y)
            seen.append([])
            for k in order:
                try:
                    eager.autograd.grad(out[k].sum(), [x, y], allow_unused=True)
                except RuntimeError as error:
                    seen[-1].append(str(error)[:50])
                else:
                    seen[-1].append("")
        assert seen[0][:2] == seen[1][:2], order


def test_a_second_backward_needs_retain_graph():
    x = param(3)
    compiled = compile_like(lambda x: x * x, [x])
    y = compiled(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_saved_values_are_freed_with_the_graph():
    x = param(3)
    y = compile_like(lambda x: x.cumsum(0).sin().exp(), [x])(x)
    saved = [weakref.ref(s) for s in y.grad_fn.backward.saved if not hasattr(s, "unpack")]
    assert saved and all(r() is not None for r in saved)
    y.sum().backward()
    gc.collect()
    assert all(r() is None for r in saved)


def test_dropping_the_result_frees_everything_without_a_collection():
    x = param(3)
    compiled = compile_like(lambda x: x.exp(), [x])
    gc.collect()
    gc.disable()
    try:
        y = compiled(x)
        alive = weakref.ref(y)
        node = weakref.ref(y.grad_fn)
        del y
        assert alive() is None and node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("which", ["input", "output"])
def test_a_write_to_a_saved_tensor_raises_as_in_eager(which):
    def fn(x, y):
        return (x * y).exp()

    for f in (fn, compile_like(fn, [param(3), eager.randn(3)])):
        x, y = param(3), eager.randn(3)
        out = f(x, y)
        (y if which == "input" else out.detach()).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_a_result_that_eager_does_not_keep_may_be_written_to():
    """The partition must not keep memory that the user can reach where eager keeps none of it."""

    def fn(x):
        y = x + 1
        return y, (y * 2).exp()

    x = param(3)
    grads = []
    for f in (fn, compile_like(fn, [x])):
        y, z = f(x)
        with eager.no_grad():
            y.zero_()
        grads.append(eager.autograd.grad(z.sum(), [x])[0])
    assert_same_tensors(grads[1:], grads[:1])


def test_an_input_is_saved_by_reference_and_its_version_is_checked():
    """As in torch, also where the backward reads a value that is computed from the input, and eager saves that value."""

    def fn(x, y):
        return ((x + y) * 2).exp() * x

    graphs = []

    def look(graph, kind, options):
        graphs.append(graph)
        return interpret(graph, kind, options)

    x, y = param(3), eager.randn(3)
    compiled = aot_compile(capture(fn, 2), fakes_of([x, y]), look)
    wanted = eager.autograd.grad(fn(x, y).sum(), [x])[0]
    assert_same_tensors(eager.autograd.grad(compiled(x, y).sum(), [x]), [wanted])
    assert len(graphs[0].outputs) == 1 and not any(n.target is OPS["clone"] for n in graphs[0].nodes)
    z = compiled(x, y)
    y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_the_former_value_of_a_written_input_is_saved():
    def fn(b, x):
        y = x * b.clone()
        b.add_(1)
        return y

    results = []
    b0, x = eager.randn(3), param(3)
    for f in (fn, compile_like(fn, [b0, x])):
        b = b0.clone()
        y = f(b, x)
        results.append([y, b, eager.autograd.grad(y.sum(), [x])[0]])
    assert_same_tensors(results[1], results[0])


# ---- effects ----
def dropout(x):
    return eager.where(eager.rand(*x.shape) > 0.3, x * 2, x * 0)


def test_random_numbers_and_the_final_generator_state_equal_eagers():
    def fn(x):
        a = dropout(x)
        unused = eager.randn(3)  # noqa: F841 - an unused draw advances the generator too
        return a, eager.randn(2, 2), dropout(a)

    x = param(3, 4)
    results = []
    for f in (fn, compile_like(fn, [x])):
        eager.manual_seed(11)
        a, n, b = f(x)
        results.append([a, n, b, eager.autograd.grad((a * b).sum(), [x])[0], eager.randn(3)])
    assert_same_tensors(results[1], results[0])


def test_equal_draws_are_different_draws():
    eager.manual_seed(0)
    x = eager.randn(3)
    a, b = compile_like(lambda x: (x + eager.rand(3), x + eager.rand(3)), [x])(x)
    assert array(a).tolist() != array(b).tolist()


def test_draws_in_backward_happen_in_backward():
    class Noisy(eager.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * eager.rand(*g.shape)

    x = param(4)
    results = []
    for f in (Noisy.apply, compile_like(Noisy.apply, [x])):
        eager.manual_seed(5)
        y = f(x)
        between = eager.rand(2)
        results.append([y, between, eager.autograd.grad(y.sum(), [x])[0], eager.rand(2)])
    assert_same_tensors(results[1], results[0])


def test_buffers_of_a_batch_norm_in_training():
    def fn(x, w, mean, count):
        m = x.mean(0)
        with eager.no_grad():
            mean.mul_(0.9).add_(m.detach(), alpha=0.1)
            count.add_(1)
        return (x - m) * w

    results = []
    for compiled in (False, True):
        eager.manual_seed(2)
        x, w, mean, count = eager.randn(5, 3), param(3), eager.zeros(3), eager.tensor(0)
        f = compile_like(fn, [x, w, mean, count]) if compiled else fn
        for _ in range(3):
            y = f(x, w, mean, count)
            y.pow(2).sum().backward()
        results.append([y, mean, count, w.grad])
    assert_same_tensors(results[1], results[0], rtol=1e-4)


def test_an_optimizer_step_on_parameters():
    def step(p, g, m):
        with eager.no_grad():
            m.mul_(0.9).add_(g)
            p.sub_(m * 0.1)
        return ()

    worlds = []
    for compiled in (False, True):
        eager.manual_seed(3)
        p, g, m = param(4), eager.randn(4), eager.zeros(4)
        f = compile_like(step, [p, g, m]) if compiled else step
        f(p, g, m)
        worlds.append([p, m])
        assert p.is_leaf and p._version == 1
    assert_same_tensors(worlds[1], worlds[0])


# ---- carried tensors ----
def test_a_carried_tensor_is_read_at_call_time():
    c = eager.randn(3)
    compiled = compile_like(lambda x, c: x + c * 2, [eager.randn(3)], root={"c": c})
    x = eager.randn(3)
    c.fill_(5)
    assert_same_tensors([compiled(x)], [x + 10])


def test_a_carried_tensor_that_is_written_or_returned_or_requires_grad_becomes_an_input():
    c, w = eager.zeros(3), param(3)

    def fn(x, c, w):
        c.add_(x)
        return c * w, c, w.t() if w.ndim == 2 else w

    compiled = compile_like(fn, [eager.ones(3)], root={"c": c, "w": w})
    y, again, same = compiled(eager.ones(3))
    assert again is c and same is w and array(c).tolist() == [1, 1, 1]
    y.sum().backward()
    assert array(w.grad).tolist() == [1, 1, 1]


# ---- errors ----
def test_errors_while_tracing_are_eagers():
    def bad(x, y):
        return x.mm(y)

    x, y = eager.randn(3, 4), eager.randn(3, 4)
    with pytest.raises(RuntimeError) as want:
        bad(x, y)
    with pytest.raises(RuntimeError) as got:
        compile_like(bad, [x, y])
    assert type(got.value) is type(want.value) and str(got.value) == str(want.value)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        compile_like(lambda w: w.add_(1), [param(3)])


def test_data_dependent_programs_are_refused():
    with pytest.raises(eager.base.spec.DataDependentError):
        compile_like(lambda x: x * x.sum().item(), [eager.randn(3)])
    with pytest.raises(eager.base.spec.DataDependentError):
        compile_like(lambda x: x.nonzero(), [eager.randn(3)])


def test_a_failing_backend_is_not_hidden():
    def broken(graph, kind, options):
        raise ValueError(f"cannot compile {kind}")

    with pytest.raises(ValueError, match="cannot compile forward"):
        compile_like(lambda x: x * 2, [param(3)], broken)


def backward_only_broken(graph, kind, options):
    if kind is GraphKind.BACKWARD:
        raise ValueError("no backward today")
    return interpret(graph, kind, options)


def test_a_failing_backward_compile_raises_or_falls_back_by_setting():
    x = param(3)
    y = compile_like(lambda x: x * x, [x], backward_only_broken)(x)
    with pytest.raises(ValueError, match="no backward today"):
        y.sum().backward(retain_graph=True)
    with settings.scope(capture_suppress_errors=True), eager.base.logs.capture() as log:
        y = compile_like(lambda x: x * x, [x], backward_only_broken)(x)
        (g,) = eager.autograd.grad(y.sum(), [x])
    np.testing.assert_allclose(array(g), 2 * array(x), rtol=1e-6)
    assert any("no backward today" in r.message for r in log)


@pytest.mark.parametrize("begin", [0, 2])
def test_absolute_places_in_an_inputs_storage(begin):
    def fn(x):
        return x.as_strided((2, 2), (2, 1), 3) * 2, x.as_strided((2,), (1,), 2)

    compiled = compile_like(fn, [eager.randn(12)[begin:]])
    for start in (begin, 1, 0, 2, begin):
        x = eager.randn(12)[start:]
        assert_same_tensors(compiled(x), fn(x))


def test_inputs_that_lie_otherwise_than_when_compiled():
    """Compiled for one sharing of memory, called with others, and with the first again."""

    def fn(x, y):
        x.mul_(2)
        return y + x[0]

    def overlapping(low):
        z = eager.arange(12.0)
        return [z[:6], z[low : low + 6]]

    def apart():
        return [eager.arange(6.0), eager.arange(6.0) + 3]

    compiled = compile_like(fn, overlapping(4))
    for make in (apart, lambda: overlapping(4), lambda: overlapping(2), lambda: overlapping(0), apart):
        ours, theirs = make(), make()
        assert_same_tensors([compiled(*ours)], [fn(*theirs)])
        assert_same_tensors(ours, theirs)


def test_example_inputs_carry_what_matters():
    w = eager.nn.Parameter(eager.randn(3, 4))
    x = eager.randn(3, 4)
    examples = fakes_of([w, w * 2, x, x[1:], x, eager.randn(2)])
    p, h, a, b, c, alone = examples
    assert p._is_param and p.is_leaf and p.requires_grad and not h.is_leaf and h.requires_grad and not h._is_param
    assert a is c and a.untyped_storage().root is b.untyped_storage().root and b.storage_offset() == 4
    assert alone.untyped_storage().root is not a.untyped_storage().root and all(e.is_fake for e in examples)
    with pytest.raises(NotImplementedError, match="different dtypes"):
        fakes_of([x, x.view(eager.int32)])


# ---- the user's line ----
def test_user_lines_reach_the_functional_graph():
    origin = Origin("model.py", 12, "y = x * 2", "forward")
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(eager.mul, (x, 2), info=NodeInfo(origin=origin)))
    seen = []

    def look(g, kind, options):
        seen.extend(n.info.origin for n in g.nodes if n.op == "call_function")
        return interpret(g, kind, options)

    aot_compile(GraphModule({}, graph), fakes_of([eager.randn(3)]), look)
    assert seen == [origin]


# ---- backends ----
def test_backends_run_captured_graphs():
    x, w = eager.randn(3, 4), param(4, 2)
    for name in ("eager", "aot_eager"):
        fn = backends.lookup(name)(capture(lambda x, w: x.mm(w).relu(), 2), fakes_of([x, w]), CompileOptions())
        assert_same_tensors([fn(x, w)], [x.mm(w).relu()])


def test_backend_registry():
    calls = []

    def mine(gm, inputs, options):
        calls.append(options)
        return gm

    backends.register_backend("mine", mine)
    try:
        assert backends.lookup("mine") is mine and "mine" in backends.list_backends()
        assert {"eager", "aot_eager", "inductor"} <= set(backends.list_backends())
        with pytest.raises(RuntimeError, match=r"Invalid backend: 'no', see `torch._dynamo.list_backends"):
            backends.lookup("no")
        with pytest.raises(TypeError, match="callable"):
            backends.register_backend("x", 3)
    finally:
        del backends._registry["mine"]


def test_options_are_values():
    a = CompileOptions(options={"b": 1, "a": True})
    assert a == CompileOptions(options={"a": True, "b": 1}) and hash(a) == hash(
        CompileOptions(options={"a": True, "b": 1})
    )
    assert a != CompileOptions(options={"a": 1, "b": 1})
    assert a.get("b") == 1 and a.get("z", 5) == 5 and a.with_(mode="max-autotune").mode == "max-autotune"
    with pytest.raises(TypeError):
        a.options["c"] = 2
    with pytest.raises(RuntimeError, match="reduce-overhead"):
        CompileOptions(mode="fast")
    with pytest.raises(TypeError, match="list"):
        CompileOptions(options={"a": [1]})
