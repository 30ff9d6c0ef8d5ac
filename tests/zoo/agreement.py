"""Whether two runs of a case of the zoo under this project have the same results."""

from __future__ import annotations

import numpy as np

BELOW = 1e-2  # differences below this fraction of the largest tensor of a kind count as rounding errors


def kind(name: str) -> str:
    """The step and the kind of a result, such as `train0.grad`."""
    return ".".join(name.split(".")[:2])


def floors(sizes: dict[str, float]) -> dict[str, float]:
    """For each kind of result, the magnitude below which differences are ignored."""
    largest: dict[str, float] = {}
    for name, size in sizes.items():
        if size < 1e20:  # masks contain infinities
            largest[kind(name)] = max(largest.get(kind(name), 0.0), size)
    return {k: max(BELOW * v, 1e-6) for k, v in largest.items()}


def agree(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float) -> None:
    """Raise AssertionError if results differ. rtol: relative to each tensor's largest value."""
    assert list(found) == list(expected)
    finite = {n: np.isfinite(a) for n, a in expected.items()}
    floor = floors({n: float(np.abs(a[finite[n]]).max(initial=0)) for n, a in expected.items()})
    for n, e in expected.items():
        f = found[n]
        assert (f.shape, f.dtype) == (e.shape, e.dtype), n
        if e.dtype.kind in "biu":
            np.testing.assert_array_equal(f, e, err_msg=n)
            continue
        assert (np.isfinite(f) == finite[n]).all(), n
        size = max(float(np.abs(e[finite[n]]).max(initial=0)), floor.get(kind(n), 0.0))
        error = float(np.abs(f[finite[n]] - e[finite[n]]).max(initial=0))
        assert error <= 2 * rtol * size, f"{n}: error {error:.3g} of {size:.3g}"
