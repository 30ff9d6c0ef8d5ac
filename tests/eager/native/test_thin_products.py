"""Products with few rows or few columns, in every layout, against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch

SHAPES = [(1, 64, 64), (1, 768, 65), (2, 65, 200), (3, 100, 4), (5, 130, 67), (6, 384, 384), (7, 64, 1000), (11, 257, 63),
          (33, 96, 129), (64, 64, 64), (65, 80, 70), (13, 63, 70), (300, 128, 1), (1, 70, 1), (3, 64, 3), (300, 70, 10)]  # fmt: skip


def _lay(values: np.ndarray, by_columns: bool) -> torch.Tensor:
    return torch.from_numpy(values.swapaxes(-1, -2).copy()).transpose(-1, -2) if by_columns else torch.from_numpy(values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("by_columns", [(False, False), (False, True), (True, False), (True, True)])
def test_agrees_with_numpy_in_every_layout(dtype: str, batch: tuple[int, ...], by_columns: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    tolerance = 2e-4 if dtype == "float32" else 1e-11
    for m, k, n in SHAPES:
        a, b = (rng.standard_normal((*batch, *size)).astype(dtype) for size in ((m, k), (k, n)))
        right = a.astype("float64") @ b.astype("float64")
        got = _lay(a, by_columns[0]) @ _lay(b, by_columns[1])
        np.testing.assert_allclose(got.numpy(), right, rtol=0, atol=tolerance, err_msg=str((m, k, n)))
        added = torch.ones(*batch, m, n, dtype=got.dtype)
        added = torch.baddbmm(added, *(_lay(x, c) for x, c in zip((a, b), by_columns, strict=True)), beta=0.5, alpha=2) if batch \
            else torch.addmm(added, *(_lay(x, c) for x, c in zip((a, b), by_columns, strict=True)), beta=0.5, alpha=2)  # fmt: skip
        np.testing.assert_allclose(added.numpy(), 0.5 + 2 * right, rtol=0, atol=2 * tolerance, err_msg=str((m, k, n)))


def test_lines_of_a_larger_array() -> None:
    rng = np.random.default_rng(4)
    store_a, store_b = rng.standard_normal((40, 200)).astype("float32"), rng.standard_normal((300, 200)).astype("float32")
    a, b = torch.from_numpy(store_a)[3:10, 5:150], torch.from_numpy(store_b)[:157, 5:150]
    right = store_a[3:10, 5:150].astype("float64") @ store_b[:157, 5:150].T.astype("float64")
    np.testing.assert_allclose((a @ b.T).numpy(), right, atol=1e-4)
    np.testing.assert_allclose((b @ a.T).numpy(), right.T, atol=1e-4)
    out = torch.full((7, 400), 7.0)
    torch.mm(a, b.T, out=out[:, 100:257])
    np.testing.assert_allclose(out[:, 100:257].numpy(), right, atol=1e-4)
    assert (out[:, :100] == 7).all() and (out[:, 257:] == 7).all()


def test_infinities_and_nan_stay_in_their_rows() -> None:
    a, b = torch.ones(4, 100), torch.ones(100, 80)
    a[1, 99], a[2, 3] = float("inf"), float("nan")
    for other in (b, b.T.contiguous().T):
        got = a @ other
        assert (got[0] == 100).all() and (got[3] == 100).all()
        assert got[1].isinf().all() and got[2].isnan().all()
