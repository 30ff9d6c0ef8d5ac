"""CPython's own language tests pass captured. `make test-cpython` runs all modules; `modules.py` lists exclusions."""

from __future__ import annotations

import importlib.util

import pytest

from tests.dynamo.cpython.__main__ import check
from tests.dynamo.cpython.modules import EXCLUDED, FULL, QUICK


@pytest.mark.skipif(importlib.util.find_spec("test.test_with") is None, reason="this interpreter comes without its tests")
@pytest.mark.parametrize("module", QUICK)
def test_a_module_of_cpythons_tests_passes_captured(module: str) -> None:
    line, reports = check(module)
    assert not reports and not line.startswith(f"{module}: 0 pass"), f"{line}\n" + "\n".join(reports)


def test_exclusions_name_modules_that_are_run_and_give_a_reason() -> None:
    assert {name.partition(".")[0] for name in EXCLUDED} <= set(FULL)
    assert all(len(reason) > 20 for reason in EXCLUDED.values())
