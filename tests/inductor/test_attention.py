"""Attention in compiled graphs: its loops against numpy, and compiled calls and gradients against eager and float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base import dtypes, logs
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.artifact.format import ExternCall
from inductor.driver.backend import KEPT, compile_graph
from inductor.ir import definitions as ir
from inductor.loops import attention
from inductor.loops.interpret import interpret
from inductor.lowering import lower
from inductor.plan.attention import fuse_attention

F64 = dtypes.float64

# -- the loops, interpreted ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Sizes of an attention and of its blocks. seen: a query sees the keys before its number plus this; None: all keys."""

    batch: int
    queries: int
    keys: int
    depth: int
    width: int
    blocks: attention.Blocks
    seen: int | None
    has_mask: bool
    has_weight: bool

    def shapes(self) -> dict[str, tuple[int, ...]]:
        b, t, s, d, w = self.batch, self.queries, self.keys, self.depth, self.width
        operands = {"q": (b, t, d), "k": (b, s, d), "v": (b, s, w), "m": (t, s), "w": (b, t, s)}
        return {**operands, "g": (b, t, w), "lse0": (b, t), "delta": (b, t)}

    def results(self, is_gradient: bool) -> dict[str, tuple[int, ...]]:
        b, t, s, d, w = self.batch, self.queries, self.keys, self.depth, self.width
        return {"gq": (b, t, d), "gk": (b, s, d), "gv": (b, s, w)} if is_gradient else {"y": (b, t, w), "lse": (b, t, 1)}

    def buffers(self, is_gradient: bool) -> list[ir.Buffer]:
        b, t, s = ir.axis(0, self.batch), ir.axis(bool(self.batch > 1), self.queries), ir.reduced_axis(0, self.keys)
        d, w = ir.reduced_axis(1, self.depth), ir.axis(1 + (self.batch > 1), self.width)
        points = {"q": (b, t, d), "k": (b, s, d), "v": (b, s, w), "m": (t, s), "w": (b, t, s)}
        points |= {"g": (b, t, w), "lse0": (b, t), "delta": (b, t)}
        load = {n: ir.load(n, ir.linear_position(shape, points[n]), F64) for n, shape in self.shapes().items()}
        score: ir.Value = ir.make_op("mul", (ir.load(ir.PRODUCT, 0, F64), ir.const(0.3, F64)), F64)
        if self.has_mask:
            score = ir.make_op("add", (score, load["m"]), F64)
        weight: ir.Value = ir.load(ir.WEIGHT, 0, F64)
        if self.has_weight:
            weight = ir.make_op("mul", (weight, load["w"]), F64)
        given = ir.Cotangents(load["g"], load["lse0"], load["delta"], ir.const(0.3, F64)) if is_gradient else None
        batch = (self.batch,) if self.batch > 1 else ()
        sizes = (self.queries, self.keys, self.depth, self.width)
        seen = None if self.seen is None else E.add(t, self.seen)
        return [ir.Buffer(name, ir.row_major(shape, F64), ir.Attention(name, "call0", batch, sizes, load["q"], load["k"], load["v"], score,
                                                                       weight, seen, 0.0, given))
                for name, shape in self.results(is_gradient).items()]  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = st.integers(1, 9)
    lanes = draw(st.integers(1, 3))
    blocks = attention.Blocks(lanes * draw(st.integers(1, 3)), draw(st.integers(1, 5)), lanes, draw(st.integers(1, 3)))
    return Case(draw(st.integers(1, 3)), draw(size), draw(size), draw(st.integers(1, 3)), draw(st.integers(1, 3)), blocks,
                draw(st.none() | st.integers(-3, 4)), draw(st.booleans()), draw(st.booleans()))  # fmt: skip


def _expected(case: Case, x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All results; rows that see no key are zeros."""
    scores = x["q"] @ x["k"].transpose(0, 2, 1) * 0.3 + (x["m"] if case.has_mask else 0)
    if case.seen is not None:
        scores = np.where(np.arange(case.keys)[None] < np.arange(case.queries)[:, None] + case.seen, scores, -np.inf)
    e = np.exp(scores)
    total = e.sum(-1, keepdims=True)
    total = np.where(total == 0, 1, total)
    p, factor = e / total, x["w"] if case.has_weight else np.ones_like(e)
    y = (p * factor) @ x["v"]
    dp = x["g"] @ x["v"].transpose(0, 2, 1) * factor
    delta = (x["g"] * y).sum(-1)
    ds = p * (dp - delta[..., None]) * 0.3
    return {"y": y, "lse": np.log(total), "lse0": np.log(total[..., 0]), "delta": delta, "gq": ds @ x["k"],
            "gk": ds.transpose(0, 2, 1) @ x["q"], "gv": (p * factor).transpose(0, 2, 1) @ x["g"]}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(cases(), st.booleans(), st.integers(0, 1 << 30))
def test_loops_compute_attention_for_every_block_size(case: Case, is_gradient: bool, seed: int):
    rng = np.random.default_rng(seed)
    x = {n: rng.standard_normal(shape) for n, shape in case.shapes().items()}
    expected = _expected(case, x)
    x["lse0"], x["delta"] = expected["lse0"], expected["delta"]
    buffers = case.buffers(is_gradient)
    kernel = attention.build(buffers, dict.fromkeys(x, F64), case.blocks)
    memory = {n: a.ravel().copy() for n, a in x.items()} | {b.name: np.full(b.layout.numel, np.nan) for b in buffers}
    interpret(kernel, memory, seed=seed)
    for b in buffers:
        np.testing.assert_allclose(memory[b.name], expected[b.name].ravel(), rtol=1e-12, atol=1e-12)


def test_no_memory_of_the_loops_grows_with_queries_times_keys():
    sizes = []
    for n in (8, 64):
        case = Case(1, n, n, 2, 2, attention.Blocks(4, 4, 2), 1, True, False)
        text = str(attention.build(case.buffers(False), dict.fromkeys(case.shapes(), F64), case.blocks))
        sizes.append(sorted(line.split(": ")[1] for line in text.splitlines() if "with stack" in line))
    assert sizes[0] == sizes[1]


# -- compiled ------------------------------------------------------------------------------------------------------


def _compiled(fn: Any, *inputs: Any) -> Any:
    graph = trace(fn, [fake_like(x) for x in inputs], KEPT)
    return compile_graph(graph, GraphKind.INFERENCE, CompileOptions())


def _externs(compiled: Any) -> list[str]:
    return [s.op for s in compiled.artifact.entry.plan.steps if isinstance(s, ExternCall)]


def _inputs(shapes: tuple[tuple[int, ...], ...], dtype: Any = torch.float32) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(*s).to(dtype).requires_grad_() for s in shapes]


def _check(fn: Any, inputs: list[Any], tolerance: float) -> None:
    """A compiled call and its gradients are as near to float64 as eager's, up to `tolerance` of the largest value."""
    wide = [x.detach().double().requires_grad_() for x in inputs]
    torch.manual_seed(1)
    exact = fn(*wide)
    g = torch.randn(*exact.shape).double()
    results = []
    for call in (fn, torch.compile(fn, fullgraph=True)):
        torch.manual_seed(1)
        y = call(*inputs)
        results.append([y.detach(), *torch.autograd.grad(y, inputs, g.to(y.dtype))])
    with torch.no_grad():
        torch.manual_seed(1)
        results[1].append(torch.compile(fn, fullgraph=True)(*inputs))
    for k, want in enumerate([exact.detach(), *torch.autograd.grad(exact, wide, g), exact.detach()]):
        scale = max(1.0, want.abs().max().item()) if want.numel() else 1.0
        got = results[1][k]
        assert got.shape == want.shape and got.stride() == results[0][k % len(results[0]) if k < len(results[0]) else 0].stride()
        if want.numel():
            error = (got.double() - want).abs().max().item() / scale
            assert error < tolerance, (k, error)


MASKS = {
    "none": lambda t, s: None,
    "bool": lambda t, s: torch.rand(t, s) > 0.4,
    "float": lambda t, s: torch.randn(2, 1, t, s),
    "padding": lambda t, s: torch.rand(2, 1, 1, s) > 0.3,
    "column": lambda t, s: torch.randn(t, 1),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("t", "s", "d", "e"), [(70, 70, 16, 16), (1, 37, 8, 8), (33, 1, 5, 3), (130, 600, 24, 40), (64, 128, 64, 64)])
def test_masks_and_sizes(mask: str, t: int, s: int, d: int, e: int):
    torch.manual_seed(2)
    m = MASKS[mask](t, s)

    def fn(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, m.to(q.dtype) if m is not None and m.dtype.is_floating_point else m)

    _check(fn, _inputs(((2, 3, t, d), (2, 3, s, d), (2, 3, s, e))), 3e-6)


@pytest.mark.parametrize(("t", "s"), [(70, 70), (20, 90), (90, 20), (600, 600)])
def test_causal(t: int, s: int):
    inputs = _inputs(((2, 2, t, 16), (2, 2, s, 16), (2, 2, s, 16)))
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), inputs, 4e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-14), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_dtypes(dtype: Any, tolerance: float):
    for causal, p in ((False, 0.2), (True, 0.0)):
        _check(lambda q, k, v, c=causal, p=p: F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=c),
               _inputs(((2, 2, 50, 24), (2, 2, 50, 24), (2, 2, 50, 24)), dtype), tolerance)  # fmt: skip


DROPOUT = {
    "blocks that are not whole": (((2, 3, 70, 16), (2, 3, 130, 16), (2, 3, 130, 24)), {}),
    "causal": (((2, 2, 300, 16),) * 3, {"is_causal": True}),
    "bool mask": (((2, 3, 70, 16),) * 3, {"attn_mask": torch.arange(70 * 70).view(70, 70) % 3 > 0}),
    "heads that share keys": (((2, 6, 40, 16), (2, 2, 40, 16), (2, 2, 40, 16)), {"enable_gqa": True}),
    "broadcast": (((2, 3, 40, 16), (3, 44, 16), (4, 1, 1, 44, 16)), {}),
}


@pytest.mark.parametrize("name", DROPOUT)
def test_dropout(name: str):
    shapes, more = DROPOUT[name]
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.2, **more), _inputs(shapes), 3e-6)


def test_dropout_draws_what_eager_code_draws():
    def fn(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5), torch.rand(3)

    x = [t.detach() for t in _inputs(((2, 40, 16),) * 3)]
    found = []
    for call in (fn, torch.compile(fn, fullgraph=True)):
        torch.manual_seed(1)
        found.append([*call(*x), torch.rand(3), *call(*x)])
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert not torch.allclose(found[1][0], found[1][3], atol=0.1)


@pytest.mark.parametrize("depth", [16, 300])  # rows of 300 columns stay a call of the eager kernel
def test_one_graph_serves_every_dropout_probability(depth: int):
    def fn(q: Any, p: float) -> Any:
        return F.scaled_dot_product_attention(q, q, q, dropout_p=p)

    (x,) = _inputs(((40, depth),))
    compiled = torch.compile(fn, fullgraph=True)
    with logs.capture("recompiles") as records:
        for p in (0.1, 0.2, 0.3, 0.7):
            results = []
            for call in (fn, compiled):
                torch.manual_seed(1)
                y = call(x, p)
                results.append((y.detach(), *torch.autograd.grad(y.sin().sum(), x)))
            for a, b in zip(*results, strict=True):
                assert torch.allclose(a, b, atol=1e-4)
    assert len(records) == 1


def test_heads_that_share_keys():
    inputs = _inputs(((2, 6, 40, 16), (2, 2, 40, 16), (2, 2, 40, 16)))
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), inputs, 3e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_compiled(dtype: Any):
    def fn(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        return torch.autograd.grad(F.scaled_dot_product_attention(q, k, v).float().sum(), (q, k, v))

    x = [x.detach() for x in _inputs(((2, 3, 40, 16), (3, 44, 16), (1, 1, 44, 16)), dtype)]
    compiled = _compiled(fn, *x)
    assert _externs(compiled) == []
    for got, want in zip(compiled(*x), fn(*[t.double() for t in x]), strict=True):
        assert got.dtype is dtype and torch.allclose(got.double(), want, rtol=1e-5 if dtype is torch.float32 else 1e-2, atol=1e-3)


def test_leading_dims_broadcast():
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), _inputs(((2, 3, 40, 16), (3, 44, 16), (1, 1, 44, 16))), 3e-6)


def test_operands_in_other_layouts():
    def heads(x: Any) -> Any:
        return x.view(2, 40, 3, 3, 16).permute(2, 0, 3, 1, 4)

    def fn(x: Any) -> Any:
        q, k, v = heads(x)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 40, 48)

    _check(fn, _inputs(((2, 40, 144),)), 4e-6)


def test_rows_far_apart_are_staged():
    """Rows that are a multiple of 2 KB apart would share sets of the nearest cache."""

    def fn(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))

    _check(fn, _inputs(((1, 40, 16, 32), (1, 70, 16, 32), (1, 70, 16, 32))), 3e-6)


def test_queries_that_see_nothing_give_zeros():
    mask = torch.rand(40, 50) > 0.5
    mask[3] = False
    mask[39] = False
    q, k, v = _inputs(((2, 40, 16), (2, 50, 16), (2, 50, 16)))
    y, eager = torch.compile(F.scaled_dot_product_attention)(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, mask)
    assert (y[:, 3] == 0).all() and (y[:, 39] == 0).all() and torch.allclose(y, eager, atol=1e-5)
    for got, want in zip(*(torch.autograd.grad(x.sum(), (q, k, v)) for x in (y, eager)), strict=True):
        assert torch.allclose(got, want, atol=1e-5)


def test_a_nan_reaches_its_row_alone():
    q, k, v = (x.detach() for x in _inputs(((40, 16), (50, 16), (50, 16))))
    q[7, 2] = math.nan
    y = torch.compile(F.scaled_dot_product_attention)(q, k, v)
    assert y[7].isnan().all() and not y[:7].isnan().any() and not y[8:].isnan().any()


@pytest.mark.parametrize(("batch", "queries", "keys"), [(2, 0, 5), (2, 5, 0), (0, 5, 5)])
def test_empty(batch: int, queries: int, keys: int):
    inputs = _inputs(((batch, queries, 8), (batch, keys, 8), (batch, keys, 8)))
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), inputs, 1e-6)


@pytest.mark.parametrize("p", [0.0, 0.2])
def test_sizes_that_change(p: float):
    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)

    fn = torch.compile(attend, dynamic=True)
    for b, t, s in ((1, 40, 40), (2, 70, 33), (3, 5, 300), (2, 129, 65)):
        q, k, v = _inputs(((b, 2, t, 16), (b, 2, s, 16), (b, 2, s, 16)))
        torch.manual_seed(3)
        got = fn(q, k, v)
        torch.manual_seed(3)
        want = attend(q, k, v)
        g = torch.randn(*want.shape)
        assert torch.allclose(got, want, atol=1e-5)
        for a, b_ in zip(torch.autograd.grad(got, (q, k, v), g), torch.autograd.grad(want, (q, k, v), g), strict=True):
            assert torch.allclose(a, b_, atol=3e-5)


T, S = 37, 70
WRITTEN = {
    "scaled": lambda q, k, v, m: torch.softmax(q @ k.transpose(-2, -1) * 0.25, -1) @ v,
    "divided and added": lambda q, k, v, m: torch.softmax(q @ k.transpose(-2, -1) / 4 + m, -1) @ v,
    "filled": lambda q, k, v, m: F.softmax((q @ k.transpose(-2, -1)).masked_fill(m > 1, -1e9), dim=-1) @ v,
    "where": lambda q, k, v, m: torch.softmax(torch.where(m > 1, float("-inf"), q @ k.mT), -1).matmul(v),
    "capped": lambda q, k, v, m: torch.softmax(5 * torch.tanh(q @ k.mT / 5), -1) @ v,
    "by distance": lambda q, k, v, m: torch.softmax(q @ k.mT - (torch.arange(T)[:, None] - torch.arange(S)).abs() * 0.1, -1) @ v,
    "dropout": lambda q, k, v, m: F.dropout(torch.softmax(q @ k.mT * 0.25, -1), 0.3) @ v,
    "einsum": lambda q, k, v, m: torch.einsum("bhts,bhsd->bhtd", torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k), -1), v),
    "merged heads": lambda q, k, v, m: (torch.softmax(q @ k.mT, -1) @ v).transpose(1, 2).reshape(2, T, 48),
    "bmm": lambda q, k, v, m: torch.bmm(torch.softmax(torch.bmm(q[0], k[0].mT), -1), v[0]),
    "scaled queries": lambda q, k, v, m: torch.softmax((q * 0.25) @ k.mT, -1) @ v,
}


def _written(fn: Any) -> tuple[list[Any], list[str]]:
    """Inputs for a written attention, and the definitions of its program that are not pointwise."""
    inputs = [x.detach() for x in _inputs(((2, 3, T, 16), (2, 3, S, 16), (2, 3, S, 16), (T, S)))]
    program = fuse_attention(lower(trace(fn, [fake_like(x) for x in inputs], KEPT)))
    kinds = [type(b.definition).__name__ for b in program.buffers.values()]
    return inputs, [kind for kind in kinds if kind in ("Attention", "Contraction", "Reduction")]


@pytest.mark.parametrize("name", WRITTEN)
def test_written_attention_is_one_kernel(name: str):
    fn = WRITTEN[name]
    inputs, kinds = _written(fn)
    assert kinds == ["Attention"]
    with torch.no_grad():
        torch.manual_seed(4)
        want = fn(*[x.double() for x in inputs])
        torch.manual_seed(4)
        got = torch.compile(fn)(*inputs)
    assert got.shape == want.shape and torch.allclose(got.double(), want, rtol=3e-6, atol=3e-6)


NOT_ATTENTION = {
    "the scores leave the graph": lambda q, k, v, m: ((s := q @ k.mT), torch.softmax(s, -1) @ v),
    "the weights leave the graph": lambda q, k, v, m: ((w := torch.softmax(q @ k.mT, -1)), w @ v),
    "another softmax dim": lambda q, k, v, m: torch.softmax(q @ k.mT, -2) @ v,
    "not linear in the softmax": lambda q, k, v, m: (torch.softmax(q @ k.mT, -1) + m).relu() @ v,
    "another maximum": lambda q, k, v, m: ((e := torch.exp(q @ k.mT - m.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True)) @ v,
    "product of the weights' transpose": lambda q, k, v, m: torch.softmax(q @ k.mT, -1).mT @ q,
}


@pytest.mark.parametrize("name", NOT_ATTENTION)
def test_other_programs_are_unchanged(name: str):
    fn = NOT_ATTENTION[name]
    inputs, kinds = _written(fn)
    assert "Attention" not in kinds
    with torch.no_grad():
        pairs = [x if isinstance(x, tuple) else (x,) for x in (torch.compile(fn)(*inputs), fn(*inputs))]
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(*pairs, strict=True))


def test_a_written_row_of_minus_inf_gives_nan_as_eager_does():
    fn = WRITTEN["divided and added"]
    inputs, _ = _written(fn)
    inputs[3][5] = float("-inf")
    with torch.no_grad():
        got, want = torch.compile(fn)(*inputs), fn(*inputs)
    assert got[:, :, 5].isnan().all() and torch.allclose(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("p", [0.0, 0.2])
def test_scores_take_no_memory(p: float):
    def fn(q: Any, k: Any, v: Any, m: Any, g: Any) -> Any:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, m, p)
        return (y, *torch.autograd.grad(y, (q, k, v), g))

    arenas = []
    for n in (256, 1024):
        x = [torch.randn(1, 1, n, 16) for _ in range(3)]
        compiled = _compiled(fn, *x, torch.randn(n, n), torch.randn(1, 1, n, 16))
        assert _externs(compiled) == (["rng_state"] if p else [])
        arenas.append(compiled.arena_bytes)
    assert arenas[1] <= 4 * arenas[0] + 4096
