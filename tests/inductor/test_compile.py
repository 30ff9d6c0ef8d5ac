"""Graphs through the whole backend: random programs, every shape and layout, against the eager kernels."""
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.loops.refusal import Refused


def _compiled(fn, *inputs):
    graph = trace(fn, [fake_like(x) for x in inputs])
    return compile_graph(graph, GraphKind.INFERENCE, CompileOptions())


def _check(fn, *inputs, tolerance=2e-5):
    got, want = _compiled(fn, *inputs)(*inputs), fn(*inputs)
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype and a.stride() == b.stride()
        assert torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


LAYOUTS = {
    "contiguous": lambda *s: torch.randn(*s),
    "transposed": lambda *s: torch.randn(*reversed(s)).permute(*reversed(range(len(s)))),
    "strided": lambda *s: torch.randn(*s[:-1], 2 * s[-1]).as_strided(s, (*torch.randn(*s[:-1], 2 * s[-1]).stride()[:-1], 2)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (7, 1), (2, 3, 4), (33, 129), (0, 4), (1, 1)])
def test_reductions_over_every_dim(shape, layout):
    x = LAYOUTS[layout](*shape)
    dims = range(len(shape))
    _check(lambda x: tuple(x.sum(d) for d in dims) + tuple(x.mean(d, keepdim=True) for d in dims) + (x.sum(), x * x), x)
    if 0 not in shape:
        _check(lambda x: tuple(x.amax(d) for d in dims) + tuple(x.argmin(d) for d in dims) + (x.amin(),), x)


def test_nan_passes_through_extremes_and_comparisons():
    x = torch.randn(4, 40)
    x[1, 3] = float("nan")
    x[2, 5] = float("inf")
    _check(lambda x: (x.amax(1), x.amin(0), x.argmax(1), x.relu(), torch.maximum(x, x * 0), (x > 0), x.clamp(-1, 1)), x)


def test_large_reductions_are_accurate():
    x = torch.rand(1000, 1003) + 1000
    want = x.double()
    got = _compiled(lambda x: (x.sum(), x.sum(0), x.sum(1)), x)(x)
    for g, w in zip(got, (want.sum(), want.sum(0), want.sum(1)), strict=True):
        assert ((g.double() - w).abs() / w).max().item() < 2e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_arithmetic_in_every_dtype(dtype):
    x, y = (torch.randn(5, 9) * 5).to(dtype), (torch.randn(5, 9) * 5 + 20).to(dtype)
    tolerance = 2e-2 if dtype.itemsize == 2 else 1e-6
    _check(lambda x, y: (x + y, x * y, x - y, x / y, x // y, x == y, x.sum(), x.amax(1), x.to(torch.float32)), x, y, tolerance=tolerance)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((1, 4), (4, 5)), ((3, 1), (1, 5)), ((3, 0), (0, 5)), ((64, 300), (300, 65))])
@pytest.mark.parametrize("transpose", [(False, False), (True, False), (False, True), (True, True)])
def test_matrix_products(shapes, transpose):
    a, b = (torch.randn(*(reversed(s) if t else s)) for s, t in zip(shapes, transpose, strict=True))
    ta, tb = transpose
    _check(lambda a, b: ((a.t() if ta else a) @ (b.t() if tb else b) + 1,), a, b, tolerance=1e-4)


def test_batched_products_with_broadcasting():
    _check(lambda a, b: (a @ b, a.transpose(1, 2) @ a), torch.randn(6, 7, 5), torch.randn(5, 3), tolerance=1e-4)


def test_attention():
    q, k, v = (torch.randn(2, 3, 17, 8) for _ in range(3))
    _check(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True),), q, k, v, tolerance=1e-4)


def _unary(draw, x):
    return draw(st.sampled_from([torch.tanh, torch.exp, torch.abs, torch.sigmoid, lambda t: t * 2 + 1, lambda t: -t]))(x)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_programs(data):
    steps = [(data.draw(st.sampled_from(["unary", "sum", "transpose", "add", "softmax", "reshape", "cat", "max"])),
              data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))) for _ in range(data.draw(st.integers(2, 9)))]  # fmt: skip
    unary = [torch.tanh, torch.exp, torch.abs, torch.sigmoid, lambda t: t * 2 + 1, lambda t: -t]

    def program(x, y):
        values = [x, y]
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            if kind == "unary":
                v = unary[j](a.clamp(-3, 3))
            elif kind == "sum":
                v = a.sum(i % 2, keepdim=True) * 0.1 + a
            elif kind == "max":
                v = a - a.amax(j % 2, keepdim=True)
            elif kind == "transpose":
                v = a.t().contiguous().t() if j % 2 else (a.t() + 1).t()
            elif kind == "add":
                v = a * b + a
            elif kind == "softmax":
                v = F.softmax(a, j % 2)
            elif kind == "reshape":
                v = a.reshape(5, 12).flip(0).reshape(6, 10)
            else:
                v = torch.cat([a, b], i % 2).sum(i % 2, keepdim=True) * 0.1 + b
            values.append(v)
        return tuple(values[2:])

    _check(program, torch.randn(6, 10), torch.randn(10, 6).t(), tolerance=1e-3)


def test_two_running_sums_of_one_shape_over_scratch_memory() -> None:
    """Their functions are equal: GCC 12 folded them into one and left out the calls."""

    def fn(x, y):
        return tuple(F.pad(t, (0, 0, 1, 0)).cumsum(-2) for t in (x, y, x * 2))

    _check(fn, torch.randn(2, 16, 4), torch.randn(2, 16, 4))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16], ids=lambda d: d.name)
def test_many_loops_in_one_kernel(dtype) -> None:
    """The names of loops in C++ are not names of types, such as i8 and i16."""

    def fn(x):
        for k in range(10):
            x = x - x.amax(-1, keepdim=True) + k
        return (x,)

    _check(fn, torch.arange(60).reshape(4, 15).to(dtype))


def test_elements_of_a_row_that_are_read_at_constant_places() -> None:
    """The row is local to the kernel of the gradient, which reads parts of it."""

    def fn(x):
        joined = torch.cat([x, x + 1, x[:, :1]], 1)
        return joined * joined.tanh()

    x = torch.randn(5, 2).requires_grad_()
    want = torch.autograd.grad(fn(x).sum(), x)[0]
    got = torch.autograd.grad(torch.compile(fn)(x).sum(), x)[0]
    assert torch.allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_result_that_cannot_be_local_has_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """No buffer is made local to a row, as if every localisation were refused."""

    def refuse(kernel: Any, step: Any) -> Any:
        raise Refused("no local memory")

    monkeypatch.setattr("inductor.loops.apply._localise", refuse)
    for fn in (lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, x.shape[1:]) + x.sum(0), lambda x: (x * 2e-2).sum().exp() + x):
        x = torch.randn(21, 37)
        torch.testing.assert_close(torch.compile(fn, fullgraph=True)(x), fn(x), rtol=1e-5, atol=1e-5)
