"""`torch.range`: how many values it gives, and which steps it refuses. Values from torch 2.13."""
from __future__ import annotations

import pytest

import eager


@pytest.mark.parametrize("bounds, options, values", [
    ((0.5, 3), {}, [0.5, 1.5, 2.5]),
    ((4, 1, -1), {}, [4.0, 3.0, 2.0, 1.0]),
    ((3, 3), {}, [3.0]),
    ((0, 1, 0.25), {"dtype": eager.float64}, [0.0, 0.25, 0.5, 0.75, 1.0]),
    ((0.5, 4, 1.5), {"dtype": eager.int32}, [0, 1, 2, 3, 4]),
])  # fmt: skip
def test_range_includes_its_end(bounds: tuple[float, ...], options: dict[str, object], values: list[float]) -> None:
    made = eager.range(*bounds, **options)
    assert made.tolist() == values
    assert made.dtype is options.get("dtype", eager.float32)


@pytest.mark.parametrize("bounds", [(1, 4, -17), (4, 1), (4, 1, 1)])
def test_range_refuses_a_step_away_from_its_end(bounds: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        eager.range(*bounds)
