"""The cut between forward and backward: a true minimum, fewer bytes, the right things recomputed."""

from __future__ import annotations

import itertools
import random

import pytest

import eager
from fxir.autodiff.partition import partition
from fxir.base.maxflow import INFINITE, FlowNetwork
from fxir.base.options import GraphKind
from fxir.ir.verifier import verify
from fxir.region import aot
from fxir.region.aot import interpret
from tests.fxir.helpers import assert_same_tensors, capture, fakes_of


def joint_of(fn, *tensors):
    program = aot._trace(capture(fn, len(tensors)), fakes_of(tensors), aot.DEFAULT)
    return aot._joint(program)[0]


def both(fn, *tensors):
    """(the partition, a partition that saves every value that backward reads)."""
    return partition(joint_of(fn, *tensors)), partition(joint_of(fn, *tensors), recompute=False)


def names(graph):
    return [n.target.name for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "name")]


def param(*shape):
    return eager.randn(*shape).requires_grad_()


def chain(x):
    y = x * 2
    for _ in range(5):
        y = (y + 1).tanh() * y
    return y


def gelu_mlp(x, w, b, v):
    h = x @ w + b
    h = 0.5 * h * (1 + (0.79788 * (h + 0.044715 * h * h * h)).tanh())
    return h @ v


def layer_norm(x, w, b):
    m = x.mean(-1, keepdim=True)
    c = x - m
    return c * ((c * c).mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def dropped(x, w):
    h = x @ w
    return (h * (eager.rand(8, 32) > 0.5)).relu() * 2


CASES = {  # function, inputs, the bytes that are kept at most
    "chain": (chain, lambda: [param(64, 8)], 2048),
    "gelu_mlp": (gelu_mlp, lambda: [param(8, 16), param(16, 32), param(32), param(32, 16)], 1024),
    "layer_norm": (layer_norm, lambda: [param(8, 64), param(64), param(64)], 2080),
    "softmax": (softmax, lambda: [param(8, 64)], 2112),
    "dropped": (dropped, lambda: [param(8, 16), param(16, 32)], 528),
}


def test_a_pointwise_operand_of_a_product_is_saved_where_its_sources_are_no_smaller():
    """The product stores its operand in any case: no `exp` and no statistics of rows are needed again."""

    def attention(q, k, v):
        return eager.softmax(q @ k.transpose(-1, -2) / 4, dim=-1) @ v

    cut, _ = both(attention, *(param(2, 32, 16) for _ in range(3)))
    assert "exp" in names(cut.forward) and not {"exp", "amax", "sum_"} & set(names(cut.backward))
    assert cut.saved_bytes == 2 * 32 * 32 * 4


@pytest.mark.parametrize("name", sorted(CASES))
def test_recomputing_keeps_fewer_bytes(name):
    fn, make, at_most = CASES[name]
    cut, all_kept = both(fn, *make())
    assert cut.saved_bytes <= min(at_most, all_kept.saved_bytes)
    for p in (cut, all_kept):
        verify(p.forward, functional=True, specs=True)
        verify(p.backward, specs=True)


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("recompute", [True, False])
def test_gradients_do_not_depend_on_the_cut(name, recompute, monkeypatch):
    fn, make, _ = CASES[name]
    tensors = make()
    monkeypatch.setattr(aot, "partition", lambda joint: partition(joint, recompute=recompute))
    compiled = aot.aot_compile(capture(fn, len(tensors)), fakes_of(tensors), interpret)
    results = []
    for f in (compiled, fn):
        eager.manual_seed(3)
        y = f(*tensors)
        results.append([y, *eager.autograd.grad((y * y).sum(), tensors)])
    assert_same_tensors(*results, rtol=1e-4, atol=1e-5)


def test_matmuls_reductions_and_draws_run_once():
    for name in ("gelu_mlp", "layer_norm", "dropped"):
        fn, make, _ = CASES[name]
        tensors = make()
        cut = partition(joint_of(fn, *tensors))
        forward = names(cut.forward)
        joint = names(joint_of(fn, *tensors).graph)
        for op in ("mm", "sum", "mean", "amax", "philox_uniform", "rng_state"):
            assert forward.count(op) + names(cut.backward).count(op) == joint.count(op), op


def test_pointwise_ops_and_views_are_computed_again():
    cut = partition(joint_of(*_of("gelu_mlp")))
    assert "tanh" in names(cut.backward) and "tanh" in names(cut.forward)
    assert "permute" in names(cut.backward)


def test_the_product_under_a_loss_is_saved_instead_of_a_second_tensor_of_its_size():
    target = eager.randint(0, 50, (8,))

    def fn(x, w):
        return eager.nn.functional.cross_entropy(x @ w, target)

    cut = partition(joint_of(fn, param(8, 4), param(4, 50)))
    rows = 4 * 8 * 3  # bytes of the logarithms, and the targets
    assert cut.saved_bytes <= 4 * 8 * 50 + rows
    assert "exp" in names(cut.backward)
    saved = cut.forward.outputs[len(cut.forward.outputs) - sum(s.place == "extra" for s in cut.saved) :]
    assert [n.target.name for n in saved if n.info.spec.numel() == 8 * 50] == ["mm"]


def _of(name):
    fn, make, _ = CASES[name]
    return fn, *make()


def test_effects_of_forward_stay_there_in_order():
    def fn(x):
        a = eager.rand(3)
        eager.rand(2)
        return x * a * eager.rand(3)

    cut = partition(joint_of(fn, param(3)))
    sizes = [n.args[0] for n in cut.forward.nodes if n.op == "call_function" and n.target.name == "rng_state"]
    assert len(sizes) == 3 and "rng_state" not in names(cut.backward)


def test_parameters_and_inputs_that_eager_keeps_cost_nothing():
    cut = partition(joint_of(lambda x, w: x @ w, param(4, 8), param(8, 2)))
    assert cut.saved_bytes == 0 and {s.place for s in cut.saved} == {"input"}


def test_each_kept_value_is_returned_once():
    kinds = {}

    def look(graph, kind, options):
        kinds[kind] = graph
        return interpret(graph, kind, options)

    x = param(4, 4)
    y = aot.aot_compile(capture(lambda x: x.exp(), 1), fakes_of([x]), look)(x)
    y.sum().backward()
    assert len(kinds[GraphKind.FORWARD].outputs) == 1, "backward needs only exp's result"


# ---- maximum flow ----
def brute_force_cut(n, edges, source, sink):
    best = None
    inner = [v for v in range(n) if v not in (source, sink)]
    for pick in itertools.product((False, True), repeat=len(inner)):
        side = {source, *(v for v, p in zip(inner, pick, strict=True) if p)}
        cost = sum(c for a, b, c in edges if a in side and b not in side)
        best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(60))
def test_flow_equals_the_least_of_all_cuts(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 9)
    edges = [(rng.randrange(n), rng.randrange(n), rng.randint(0, 9)) for _ in range(rng.randint(0, 25))]
    edges = [e for e in edges if e[0] != e[1]]
    net = FlowNetwork(n)
    for e in edges:
        net.add_edge(*e)
    flow = net.max_flow(0, n - 1)
    assert flow == brute_force_cut(n, edges, 0, n - 1)
    late = net.reaching(n - 1)
    assert 0 not in late
    assert flow == sum(c for a, b, c in edges if a not in late and b in late)


def test_a_missing_finite_cut_raises():
    net = FlowNetwork(3)
    net.add_edge(0, 1, INFINITE)
    net.add_edge(1, 2, INFINITE)
    with pytest.raises(ValueError, match="infinite"):
        net.max_flow(0, 2)


def test_a_long_chain_does_not_recurse():
    def deep(x):
        for _ in range(1500):
            x = (x + 1) * 0.5
        return x.exp()

    cut = partition(joint_of(deep, param(2)))
    assert cut.saved_bytes == 0
