"""Powers and signs of complex numbers at 0 and at infinities, as torch 2.13 gives them, eager and compiled."""
from __future__ import annotations

import math
from typing import Any

import pytest

import eager as torch

INF, NAN = math.inf, math.nan
POINTS = [0j, complex(INF, 0), complex(0, INF), complex(INF, 1), complex(-INF, -2)]
BOTH = complex(NAN, NAN)
EXPECTED: dict[float, list[complex]] = {
    0.5: [0j, complex(INF, 0), complex(INF, INF), complex(INF, 0), complex(0, -INF)],
    -0.5: [complex(INF, NAN), 0j, BOTH, 0j, 0j],
    -1: [complex(INF, NAN), 0j, 0j, 0j, 0j],
    -2: [complex(INF, NAN), BOTH, BOTH, BOTH, BOTH],
}


def _same(x: complex, y: complex) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip((x.real, x.imag), (y.real, y.imag), strict=True))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("exponent", EXPECTED)
def test_powers(exponent: float, dtype: Any) -> None:
    z = torch.tensor(POINTS, dtype=dtype)
    for found in (z**exponent, torch.compile(lambda t: t**exponent)(z)):
        # of a number that has no finite part torch's two loops disagree on which parts are nan
        for y, want in zip(found.tolist(), EXPECTED[exponent], strict=True):
            assert _same(y, want) or (want is BOTH and (math.isnan(y.real) or math.isnan(y.imag))), (found.tolist(), EXPECTED[exponent])


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_signs(dtype: Any) -> None:
    z = torch.tensor([0j, complex(0, INF), complex(-INF, 2), 3 - 4j], dtype=dtype)
    for found in (torch.sgn(z), torch.compile(torch.sgn)(z)):
        zero, up, left, finite = found.tolist()
        assert zero == 0 and up.real == 0 and math.isnan(up.imag) and math.isnan(left.real) and left.imag == 0
        assert abs(finite - (0.6 - 0.8j)) < 1e-6
