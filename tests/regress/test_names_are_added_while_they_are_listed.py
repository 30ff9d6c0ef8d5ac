"""Lists of names that any thread may add to, by an import or a first use: an addition in the middle is not an error."""
from __future__ import annotations

import itertools
import sys
import types
from typing import Any

import pytest

import eager
from dynamo.policy import callees
from eager import random
from eager.as_torch import finder


def test_a_module_is_imported_while_the_functions_of_graphs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    is_own, numbers = callees.is_own, itertools.count()

    def importing(code: Any) -> bool:
        number = next(numbers)
        if number < 3:
            monkeypatch.setattr(eager, f"added_{number}", number, raising=False)
        return is_own(code)

    monkeypatch.setattr(callees, "is_own", importing)
    assert id(eager.softmax) in callees.graph_functions.__wrapped__() and next(numbers) > 3


def test_a_module_is_imported_while_the_modules_of_torch_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch_of_a_test", "torch"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    found = finder.torch_modules()
    assert "torch" in next(found)
    monkeypatch.setitem(sys.modules, "another_of_a_test", types.ModuleType("another_of_a_test"))
    list(found)


def test_a_device_draws_first_numbers_while_the_devices_are_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drawing:
        def manual_seed(self, seed: int) -> None:
            known[len(known)] = Drawing()

        def initial_seed(self) -> int:
            return 0

    known: dict[int, Any] = {0: Drawing()}
    monkeypatch.setattr(random, "_cuda_generators", known)
    monkeypatch.setattr(random, "_cuda_seed", random._cuda_seed)
    random.seed_cuda(3)
    random.go_back([])
    assert len(known) == 4
