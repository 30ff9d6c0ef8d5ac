"""Values of every op in double precision and in complex numbers, on the emulated device against the CPU."""
from __future__ import annotations

from typing import Any

import pytest

import eager
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from tests.cuda.checks import check_values, ordered_ops

pytestmark = pytest.mark.usefixtures("on_emulated_device")


def _refuses(name: str, number: int, dtype: Any) -> bool:
    """Whether the CPU refuses the sample in this dtype, or the sample cannot be made in it."""
    try:
        OPS[name](*next(args for i, args in enumerate(samples_of(name, dtype)) if i == number))
    except (RuntimeError, TypeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("dtype", [eager.float64, eager.complex64], ids=["float64", "complex64"])
@pytest.mark.parametrize("name", [n for n in ordered_ops() if not OPS[n].mutates])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_values_equal_the_cpus(name: str, dtype: Any) -> None:
    for number in range(len(list(samples_of(name)))):
        if not _refuses(name, number, dtype):
            check_values(OPS[name], number, dtype)
