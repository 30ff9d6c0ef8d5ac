"""Products of arrays on the native threads: layouts that BLAS reads, and layouts that it does not read."""
from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager import _native
from eager.optable.products import add_matmul, matmul
from eager.optable.table import OPS

RNG = np.random.default_rng(5)


def _layouts(*shape):
    """The same shape laid out in memory in several ways."""
    *lead, m, n = shape
    yield "rows", RNG.standard_normal(shape)
    yield "columns", RNG.standard_normal((*lead, n, m)).swapaxes(-1, -2)
    yield "padded rows", RNG.standard_normal((*lead, m, n + 3))[..., :n]
    yield "every other column", RNG.standard_normal((*lead, m, 2 * n))[..., ::2]
    yield "backwards", RNG.standard_normal(shape)[..., ::-1]
    yield "one row", np.broadcast_to(RNG.standard_normal((*lead, 1, n)), shape)
    if lead:
        yield "batch inside", RNG.standard_normal((m, n, *lead)).transpose(*range(2, 2 + len(lead)), 0, 1)
        yield "batch between", RNG.standard_normal((m, *lead, n)).transpose(*range(1, 1 + len(lead)), 0, len(lead) + 1)
        yield "one matrix", np.broadcast_to(RNG.standard_normal((m, n)), shape)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("lead, m, k, n", [((), 5, 7, 4), ((3,), 4, 3, 6), ((2, 3), 3, 5, 2), ((), 1, 6, 1), ((2,), 6, 1, 5)])
def test_every_layout(dtype, lead, m, k, n):
    for (of_a, a), (of_b, b) in itertools.product(_layouts(*lead, m, k), _layouts(*lead, k, n)):
        a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
        want = np.einsum("...ij,...jk->...ik", a.astype("f8"), b.astype("f8"))
        np.testing.assert_allclose(matmul(np, a, b), want, rtol=1e-4, atol=1e-5, err_msg=f"{of_a} @ {of_b}")
        for of_out, out in _layouts(*lead, m, n):
            if not out.flags.writeable:
                continue
            out = out.astype(dtype, copy=False)
            before = out.astype("f8")
            add_matmul(np, out, a, b)
            np.testing.assert_allclose(out, before + want, rtol=1e-4, atol=1e-5, err_msg=f"{of_out} += {of_a} @ {of_b}")


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.sampled_from([(), (1,), (3,)]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_size(m, k, n, lead, turned):
    a, b = RNG.standard_normal((*lead, m, k)), RNG.standard_normal((*lead, n, k)).swapaxes(-1, -2)
    out = np.full((*lead, n, m), np.nan).swapaxes(-1, -2) if turned else np.full((*lead, m, n), np.nan)
    assert matmul(np, a, b, out) is out
    np.testing.assert_allclose(out, np.einsum("...ij,...jk->...ik", a, b), rtol=1e-9, atol=1e-9)


def test_large_products_on_several_threads():
    a, b = RNG.standard_normal((700, 300)).astype("f4"), RNG.standard_normal((300, 500)).astype("f4")
    np.testing.assert_allclose(matmul(np, a, b), a.astype("f8") @ b.astype("f8"), rtol=1e-3, atol=1e-3)
    tall = RNG.standard_normal((40, 90, 64)).astype("f4")
    np.testing.assert_allclose(matmul(np, tall, tall.swapaxes(1, 2)), np.matmul(tall, tall.swapaxes(1, 2)), rtol=1e-3, atol=1e-3)


def test_operands_that_do_not_fit_are_refused_and_unchanged():
    out = np.ones((2, 2))
    for a, b in [(np.ones((2, 3)), np.ones((2, 2))), (np.ones((2, 3), "f4"), np.ones((3, 2))), (np.ones(2), np.ones((2, 2))),
                 (np.ones((3, 2, 2)), np.ones((2, 2))), (np.ones((2, 3), "i8"), np.ones((3, 2), "i8"))]:  # fmt: skip
        assert _native.gemm(out, a, b) is False
        assert (out == 1).all()
    with pytest.raises(TypeError, match="gemm"):
        _native.gemm(out, out)
    locked = np.ones((2, 2))
    locked.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        _native.gemm(locked, out, out)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_tensors_match_numpy(dtype):
    """The native kernels of matmul and linear against numpy: every layout, biases, transposed operands, several threads."""
    bias = torch.from_numpy(RNG.standard_normal(6).astype(dtype))
    for lead, m, k, n in (((), 5, 7, 6), ((3,), 4, 3, 6), ((2, 3), 3, 5, 6), ((), 1, 4, 6), ((), 300, 200, 6)):
        for (of_a, a), (of_b, b) in itertools.product(_layouts(*lead, m, k), [*_layouts(*lead, k, n), *_layouts(k, n)]):
            a, b = (torch.from_numpy(np.array(x, dtype) if min(x.strides) < 0 or not x.flags.writeable else x.astype(dtype, copy=False))
                    for x in (a, b))
            want = np.matmul(a.numpy().astype("f8"), b.numpy().astype("f8"))
            transposed = _native.run_kernel(OPS["linear"], (a, b.transpose(-1, -2), None)) if b.ndim == 2 else None
            for got in (_native.run_kernel(OPS["matmul"], (a, b)), transposed, a @ b):
                if got is not None:
                    assert got.is_contiguous() and got.shape == want.shape, f"{of_a} @ {of_b}"
                    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4, err_msg=f"{of_a} @ {of_b}")
            if b.ndim == 2:
                got = torch.nn.functional.linear(a, b.t(), bias)
                np.testing.assert_allclose(got.numpy(), want + bias.numpy(), rtol=1e-4, atol=1e-4)


def test_operands_that_the_native_kernels_do_not_support():
    x = torch.ones(2, 3)
    for a, b in ((x, torch.ones(2)), (x, torch.ones(2, 3)), (x, torch.ones(3, 2).double()), (x.int(), torch.ones(3, 2).int()),
                 (torch.ones(0, 3), torch.ones(3, 2)), (torch.ones(4, 2, 3), torch.ones(1, 3, 2)), (x, 2.0)):  # fmt: skip
        assert _native.run_kernel(OPS["matmul"], (a, b)) is None
    assert _native.run_kernel(OPS["linear"], (x, torch.ones(2, 3), torch.ones(3))) is None
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ torch.ones(2, 3)


def test_without_a_blas_numpy_multiplies():
    code = (
        "import eager as torch; x = torch.arange(6.0).reshape(2, 3); "
        "assert not torch._native.has_blas() and torch._native.run_kernel(torch.optable.table.OPS['matmul'], (x, x.t())) is None; "
        "assert torch._native.gemm(torch.ones(2, 2).numpy(), x.numpy(), x.t().numpy()) is False; "
        "assert (x @ x.t()).tolist() == [[5, 14], [14, 50]]; "
        "assert torch.nn.functional.linear(x, x, torch.ones(2)).tolist() == [[6, 15], [15, 51]]"
    )
    environment = {**os.environ, "FRAMEJIT_BLAS": "none"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment,
                          cwd=Path(__file__).resolve().parents[3], check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
