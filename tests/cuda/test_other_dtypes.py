"""Values of every op in double precision and complex numbers, and on a stream that runs late, on the emulated device against the CPU."""
from __future__ import annotations

from typing import Any

import pytest

import eager
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from tests.cuda.checks import check_values, checks_of, ordered_ops
from tests.cuda.report import last_line

pytestmark = pytest.mark.usefixtures("on_emulated_device")


def _refuses(name: str, number: int, dtype: Any) -> bool:
    """Whether the CPU refuses the sample in this dtype, or the sample cannot be made in it."""
    try:
        OPS[name](*next(args for i, args in enumerate(samples_of(name, dtype)) if i == number))
    except (RuntimeError, TypeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("dtype", [eager.float64, eager.complex64], ids=["float64", "complex64"])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_values_equal_the_cpus(dtype: Any) -> None:
    compared, different = 0, []
    for name in [n for n in ordered_ops() if not OPS[n].mutates]:
        for number in range(len(list(samples_of(name)))):
            if _refuses(name, number, dtype):
                continue
            compared += 1
            try:
                check_values(OPS[name], number, dtype)
            except Exception as error:  # noqa: BLE001 - the assertion lists every difference
                different.append(f"{name}-{number}: {last_line(error)}")
    assert not different, "\n".join(different)
    assert compared > 500


def test_ops_on_a_stream_whose_work_runs_late_equal_the_cpu() -> None:
    different = []
    with eager.cuda.stream(eager.cuda.Stream()):
        for check in (c for name in ordered_ops() for c in checks_of(name, half=False)):
            try:
                check.run()
            except Exception as error:  # noqa: BLE001 - the assertion lists every difference
                different.append(f"{check.op}-{check.sample} {check.name}: {last_line(error)}")
    assert not different, "\n".join(different)
