"""The emulated device offers no function, parameter, dtype or method that CuPy lacks."""
from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from eager.cuda import emulated
from eager.cuda.emulated.ufuncs import Ufunc

cupy = pytest.importorskip("cupy", reason="the stand-in is held against CuPy, which is not installed")
OURS = emulated.cupy_module()
# Added by numpy's object model or for our own use.
OWN = {"__dict__", "__module__", "__weakref__", "__annotations__", "__static_attributes__", "__firstlineno__", "_host", "__qualname__"}


def _modules() -> list[tuple[str, Any, Any]]:
    special = importlib.import_module("cupyx.scipy.special")

    return [("cupy", OURS, cupy), ("cupy.linalg", OURS.linalg, cupy.linalg), ("cupy.fft", OURS.fft, cupy.fft),
            ("cupy.cuda", OURS.cuda, cupy.cuda), ("cupy.cuda.runtime", OURS.cuda.runtime, cupy.cuda.runtime),
            ("cupyx.scipy.special", emulated.special_module(), special)]  # fmt: skip


def _public(module: Any) -> list[str]:
    return [n for n in vars(module) if not n.startswith("_")]


NAMES = [pytest.param(ours, theirs, n, id=f"{where}.{n}") for where, ours, theirs in _modules() for n in _public(ours)]


@pytest.mark.parametrize(("ours", "theirs", "name"), NAMES)
def test_cupy_has_every_name_with_the_same_parameters(ours: Any, theirs: Any, name: str) -> None:
    assert hasattr(theirs, name), f"CuPy has no {name}"
    mine, other = getattr(ours, name), getattr(theirs, name)
    if isinstance(mine, Ufunc):
        kinds = [t for t in mine.types if t not in other.types]
        assert not kinds, f"{name}: CuPy has no loops {kinds}"
        assert (mine.nin, mine.nout) == (other.nin, other.nout)
        return
    if not inspect.isfunction(mine) or not (inspect.isfunction(other) or inspect.isclass(other)):
        return
    allowed = inspect.signature(other).parameters
    found = inspect.signature(mine).parameters
    assert [(p.name, p.kind) for p in found.values()] == [(p.name, p.kind) for p in allowed.values()]


def test_loops_have_cupys_order() -> None:
    for name, ufunc in vars(OURS).items():
        if isinstance(ufunc, Ufunc):
            theirs = getattr(cupy, name).types
            assert [t for t in theirs if t in ufunc.types] == ufunc.types, name


def test_arrays_have_no_members_that_cupys_lack() -> None:
    extra = {n for n in dir(OURS.ndarray) if not hasattr(cupy.ndarray, n)} - OWN
    assert not extra
