"""The native loops of pointwise ops: printed from the table, as exact as they say, and right for every broadcast."""
from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager import _native
from eager.optable import c_loops
from eager.optable.table import OPS

RNG = np.random.default_rng(3)
NAMES = list(dict.fromkeys(loop.op.name for loop in c_loops.loops()))
# Units in the last place of float32, over the whole range.
EXACTNESS = {"exp": 1.5, "log": 1.5, "tanh": 2.5, "expm1": 3.5, "log1p": 2.5, "erf": 6.5, "sqrt": 0.51}
EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3.4e38, -3.4e38, 88.7, 88.8, 89.5,
                  -87.4, -103.9, -104.5, 1e-4, 0.5, -0.5, 0.625, 1e-10, -0.9999999, 2.0**-24], np.float32)  # fmt: skip


def test_the_headers_match_the_table():
    assert c_loops.PATH.read_text() == c_loops.source(), "run python -m eager.optable.c_loops"
    assert c_loops.INTEGER_PATH.read_text() == c_loops.integer_source(), "run python -m eager.optable.c_loops"


@pytest.mark.parametrize("loop", c_loops.integer_loops(), ids=lambda loop: loop.name)
def test_every_integer_loop_agrees_with_its_rule(loop):
    """Against the rule over arrays: extremes wrap, divisors of both signs, one element spread, a number on either side."""
    from eager.optable.loop_api import NUMPY

    kind = {"bool": np.dtype(bool), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64)}[loop.suffix]
    edges = [True, False] if loop.suffix == "bool" else [0, 1, -1, 7, -7, *([np.iinfo(kind).min, np.iinfo(kind).max])]
    values = np.array([(a, b) for a in edges for b in edges if b or not loop.op.fallible], kind)
    for other in values[:, 1] if "s" in loop.given else [None]:
        columns = [np.ascontiguousarray(values[:, i]) if g == "v" else kind.type(other) for i, g in enumerate(loop.given)]
        if loop.op.fallible and not np.all(columns[1]):
            continue
        args = [torch.from_numpy(np.atleast_1d(c)) if g == "v" or loop.op._tensor_only_params >> i & 1 else c.item()
                for i, (c, g) in enumerate(zip(columns, loop.given, strict=True))]  # fmt: skip
        got = _native.run_kernel(loop.op, tuple(args))
        with np.errstate(all="ignore"):
            want = loop.op.scalar(NUMPY, *columns)
        assert got.dtype is loop.op.infer(*args).dtype
        np.testing.assert_array_equal(got.numpy(), want)


def test_common_ops_have_loops():
    assert set("add sub mul div exp log tanh sigmoid relu silu gelu_erf gelu_tanh gt eq maximum softplus".split()) <= set(NAMES)


@pytest.mark.parametrize("name", EXACTNESS)
def test_exactness(name):
    spread = RNG.uniform(-1, 1, 20000) * np.exp2(RNG.integers(-30, 8, 20000))
    x = np.concatenate([EDGES, spread.astype(np.float32), np.linspace(-110, 95, 20001, dtype=np.float32)])
    got = OPS[name](torch.from_numpy(x)).numpy()
    exact = {"erf": np.vectorize(math.erf)}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64))
        rounded = want.astype(np.float32)
        assert np.array_equal(np.isnan(got), np.isnan(rounded))
        whole = np.isfinite(rounded) & ~np.isnan(rounded)
        wrong = whole & (np.abs(got - want) > EXACTNESS[name] * np.spacing(np.abs(rounded)))
        infinite = np.isinf(rounded) & (got != rounded)
    assert not wrong.any(), (x[wrong][:5], got[wrong][:5], want[wrong][:5])
    assert not infinite.any(), (x[infinite], got[infinite], rounded[infinite])


def _given(name):
    return [loop.given for loop in c_loops.loops() if loop.op.name == name and loop.suffix == "f32"]


@pytest.mark.parametrize("name", NAMES)
def test_every_loop_agrees_with_its_rule(name):
    """Against the rule over arrays, in both dtypes, each argument a tensor or a number."""
    from eager.optable.loop_api import NUMPY

    op = OPS[name]
    for way, (dtype, tolerance) in itertools.product(_given(name), (("f4", 2e-6), ("f8", 1e-13))):
        arrays = [RNG.uniform(0.2, 2.0, 37).astype(dtype) if g == "v" else np.dtype(dtype).type(1.25) for g in way]
        args = [torch.from_numpy(np.array(a)) if g == "v" or op._tensor_only_params >> i & 1 else float(a)
                for i, (g, a) in enumerate(zip(way, arrays, strict=True))]  # fmt: skip
        got = _native.run_pointwise_loop(_native.pointwise_loop_number(name), tuple(args))
        want = op.scalar(NUMPY, *arrays)
        assert got.dtype is op.infer(*args).dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance, err_msg=f"{way} {dtype}")


_shapes = st.sampled_from([(), (1,), (5,), (3, 5), (1, 5), (3, 1), (2, 3, 5), (2, 1, 5), (2, 3, 1), (1, 3, 5), (2, 1, 1), (1, 1, 1)])


@given(_shapes, _shapes, st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_broadcast(a, b, turn, double):
    kind = np.float64 if double else np.float32
    x, y = RNG.standard_normal(a).astype(kind), RNG.standard_normal(b).astype(kind)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)
    if turn and x.ndim > 1:
        tx, x = tx.transpose(0, 1), x.swapaxes(0, 1)
    try:
        want = x - y
    except ValueError:
        with pytest.raises(RuntimeError):
            tx - ty
        return
    got = tx - ty
    assert tuple(got.shape) == want.shape and got.dtype is (torch.float64 if double else torch.float32)
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal((tx < ty).numpy(), x < y)


def test_large_arrays_on_several_threads():
    x, row, column = (RNG.standard_normal(shape).astype("f4") for shape in ((700, 513), (513,), (700, 1)))
    tx, tr, tc = (torch.from_numpy(a) for a in (x, row, column))
    np.testing.assert_array_equal((tx + tr).numpy(), x + row)
    np.testing.assert_array_equal((tx * tc).numpy(), x * column)
    np.testing.assert_array_equal((tc - tr).numpy(), column - row)
    np.testing.assert_array_equal(torch.relu(tx).numpy(), np.maximum(x, 0))


def test_calls_that_the_loops_leave_to_the_dispatch():
    x = torch.ones(3)
    assert (x + torch.ones(3, dtype=torch.float64)).dtype is torch.float64
    assert (x + 1j).dtype is torch.complex64
    assert (x + torch.arange(3)).dtype is torch.float32
    assert x.requires_grad_().exp().grad_fn is not None
    with torch.no_grad():
        assert x.exp().grad_fn is None
    assert (torch.zeros(0, 3) + torch.zeros(3)).shape == (0, 3)
    assert (x == "a") is False or isinstance(x == "a", bool)
    with pytest.raises(TypeError):
        torch.exp(x, 1, 2)
    assert torch.nn.Parameter(torch.ones(2)).exp().grad_fn is not None
