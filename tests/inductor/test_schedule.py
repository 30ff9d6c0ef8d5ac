"""Fusion, order and memory: how many loops a graph becomes, and that its memory never overlaps."""
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.ir import definitions as ir
from inductor.lowering import lower
from inductor.plan.memory import ALIGNMENT, Lifetime, plan_arena
from inductor.plan.schedule import Nest, Refusal, schedule


def _schedule(fn, *inputs):
    return schedule(lower(trace(fn, [fake_like(x) for x in inputs])))


@pytest.mark.parametrize("name, fn", [
    ("softmax", lambda x: (F.softmax(x, -1),)),
    ("log_softmax", lambda x: (F.log_softmax(x, -1),)),
    ("layer_norm", lambda x: (F.layer_norm(x, (64,)),)),
    ("gelu chain", lambda x: (F.gelu(x + 1, approximate="tanh") * 2 + x,)),
    ("rms", lambda x: (x * (x * x).mean(-1, keepdim=True).rsqrt(),)),
    ("two outputs of one input", lambda x: (x * 2, x.exp())),
])  # fmt: skip
def test_one_nest(name, fn):
    made = _schedule(fn, torch.randn(16, 64))
    assert len(made.steps) == 1 and isinstance(made.steps[0], Nest), str(made)


def test_the_state_of_a_draw_parts_no_loops():
    made = _schedule(lambda x: (F.dropout(F.layer_norm(x, (64,)), 0.1) + F.dropout(x, 0.1),), torch.randn(16, 64))
    assert [type(s).__name__ for s in made.steps] == ["Single", "Single", "Nest"], str(made)


@pytest.mark.parametrize("raises", [lambda x, i: torch.linalg.inv(x), lambda x, i: x[i]])
def test_a_failing_call_does_not_advance_the_generator(raises):
    compiled = torch.compile(lambda x, i: (raises(x, i), torch.rand(3)))
    compiled(torch.eye(3), torch.tensor([1]))
    torch.manual_seed(0)
    with pytest.raises((RuntimeError, IndexError)):
        compiled(torch.zeros(3, 3), torch.tensor([7]))
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(3))


def test_a_reader_of_another_rank_joins_over_the_same_elements():
    def fn(x, b):
        y = x.exp()
        return y, F.gelu(y.view(8, 2, 64) + b)

    inputs = torch.randn(16, 64), torch.randn(64)
    assert len(_schedule(fn, *inputs).steps) == 1
    for found, wanted in zip(torch.compile(fn)(*inputs), fn(*inputs), strict=True):
        assert torch.allclose(found, wanted) and found.stride() == wanted.stride()
    by_row = _schedule(lambda x, b: (fn(x, b)[0], fn(x, b)[0].view(8, 2, 64) + b), torch.randn(16, 64), torch.randn(2, 64))
    assert len(by_row.steps) == 2  # the position of b is a remainder of the row


def test_views_make_no_buffers():
    made = _schedule(lambda x: ((x.t().reshape(8, 2, 64).permute(2, 0, 1) + 1).sum(0),), torch.randn(64, 16))
    assert len(made.program.buffers) == 2, str(made)


def test_pointwise_around_a_product_is_two_nests():
    made = _schedule(lambda x, w: (((x * 2) @ w).relu(),), torch.randn(8, 8), torch.randn(8, 8))
    kinds = [type(s).__name__ for s in made.steps]
    assert kinds == ["Nest", "Single", "Nest"]


@pytest.mark.parametrize("fn", [
    lambda x, g, a, b: ((g * ((x - a) * b)).sum(0),),  # the gradient of a layer norm's weight
    lambda x, g, a, b: ((x * a[:, 0][:, None]).sum(0),),
])  # fmt: skip
def test_sums_over_rows_run_by_columns_beside_values_of_a_row(fn):
    made = _schedule(fn, torch.randn(16, 64), torch.randn(16, 64), torch.randn(16, 1), torch.randn(16, 1))
    assert [isinstance(s, Nest) and s.column for s in made.steps] == [True], str(made)


def test_reductions_of_one_array_run_in_one_nest_where_one_of_them_reads_a_value_of_its_row():
    """The two means of the gradient of a layer norm; not where a kernel between them reads the first."""

    def fn(x, g, v):
        r = (v + 1e-5).rsqrt()
        mean = g.mean(1, keepdim=True)
        return ((g - mean - (g * x * r).mean(1, keepdim=True)) * r,)

    x, g, v = torch.randn(16, 64), torch.randn(16, 64), torch.rand(16, 1) + 0.1
    assert len(_schedule(fn, x, g, v).steps) == 1
    assert torch.allclose(torch.compile(fn)(x, g, v)[0], fn(x, g, v)[0], atol=1e-6)

    def apart(x, g, v):
        mean = g.mean(1, keepdim=True)
        y = (x @ x.t()) * mean
        return y, ((g * y[:, :1]).sum(1, keepdim=True) + (g * v.rsqrt()).sum(1, keepdim=True)) * g

    made = _schedule(apart, x, g, v)
    known = set()
    for step in made.steps:
        for m in step.members:
            assert {n for n in m.reads if made.program.buffers[n].definition is not None} <= known
            known.add(m.name)


@pytest.mark.parametrize("fn", [lambda x, a: ((x * a).sum(1),), lambda x, a: ((x + a[:16, None]).sum(1),)])
def test_sums_of_contiguous_rows_run_by_rows(fn):
    made = _schedule(fn, torch.randn(16, 64), torch.randn(64))
    assert [isinstance(s, Nest) and s.column for s in made.steps] == [False], str(made)


def test_expensive_values_read_twice_are_kept_and_say_why():
    made = _schedule(lambda x, w: (x.exp() @ w + x.exp().sum(),), torch.randn(8, 8), torch.randn(8, 8))
    assert all(isinstance(r, Refusal) and str(r) for r in made.refusals)


def test_a_value_moves_into_a_reader_that_pads_it():
    made = _schedule(lambda x: (F.pad(F.gelu(x), (1, 1)),), torch.randn(16, 64))
    assert len(made.program.buffers) == 2, str(made)  # the input and the result
    made = _schedule(lambda x: (F.pad(F.gelu(x), (64, 64)),), torch.randn(16, 64))
    assert len(made.program.buffers) == 3 and any("3 times" in str(r) for r in made.refusals)


def test_an_unread_definition_keeps_no_producer_in_memory():
    program = lower(trace(lambda x: (F.gelu(x).sum(-1),), [fake_like(torch.randn(16, 64))]))
    value = next(b for b in program.buffers.values() if isinstance(b.definition, ir.Pointwise))
    copy = ir.Pointwise(value.ranges, ir.load(value.name, ir.own_position(value.ranges), torch.float32))
    made = schedule(replace(program, buffers={**program.buffers, "unread": replace(value, name="unread", definition=copy)}))
    assert {value.name, "unread"}.isdisjoint(made.program.buffers)


def test_every_read_comes_after_its_definition():
    made = _schedule(lambda x: (F.layer_norm(F.softmax(x, 0) @ x.t(), (16,)).sum(0),), torch.randn(16, 64))
    known = {n for n, b in made.program.buffers.items() if b.definition is None}
    for step in made.steps:
        members = step.members if isinstance(step, Nest) else [step.member]
        for m in members:
            assert set(m.reads) <= known
            known.add(m.name)


def _calls(fn, *args):
    """The number of Python function calls in `fn(*args)`: a measure of work that does not depend on the machine's load."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        fn(*args)
    finally:
        sys.setprofile(None)
    return count


def test_scheduling_is_near_linear():
    def chain(n):
        def fn(x, w):
            for _ in range(n):
                x = torch.tanh(x @ w) + x.mean(-1, keepdim=True)
            return (x,)

        return lower(trace(fn, [fake_like(torch.randn(8, 8))] * 2))

    small, large = chain(20), chain(160)
    schedule(small)
    assert _calls(schedule, large) < 8 * 1.5 * _calls(schedule, small)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 6)), max_size=25))
def test_buffers_alive_together_never_overlap(rows):
    buffers = [Lifetime(f"b{i}", n, first, first + span) for i, (n, first, span) in enumerate(rows)]
    offsets, total = plan_arena(buffers)
    for b in buffers:
        assert offsets[b.name] % ALIGNMENT == 0 and offsets[b.name] + b.nbytes <= total
    for i, a in enumerate(buffers):
        for b in buffers[i + 1 :]:
            if a.first <= b.last and b.first <= a.last:
                assert offsets[a.name] + a.nbytes <= offsets[b.name] or offsets[b.name] + b.nbytes <= offsets[a.name]


def test_disjoint_lifetimes_share_memory():
    _, total = plan_arena([Lifetime(f"b{i}", 1000, i, i) for i in range(10)])
    assert total == 1024


def test_values_of_one_row_stay_out_of_the_arena():
    x = torch.randn(300, 64)
    graph = trace(lambda x: (F.softmax(x, -1), F.log_softmax(x * 2, 0).sum(1)), [fake_like(x)])
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    assert run.arena_bytes < 2 * x.numel() * 4
    for got, want in zip(run(x), (F.softmax(x, -1), F.log_softmax(x * 2, 0).sum(1)), strict=True):
        assert torch.allclose(got, want, rtol=1e-4, atol=1e-4)
