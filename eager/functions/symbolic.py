"""`sym_*`: arithmetic on sizes, which are Python numbers here (under capture with dynamic shapes, symbols that act as such)."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def sym_int(a: Any) -> Any:
    """`a` without its fractional part, as an int."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """`a` as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether `a` is false."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if either is one."""
    found = b if b > a else a
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if either is one."""
    found = b if b < a else a
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`."""
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of several numbers."""
    return sum(args)


FUNCTIONS: dict[str, Any] = {fn.__name__: fn for fn in (sym_int, sym_float, sym_not, sym_max, sym_min, sym_sqrt, sym_ite, sym_sum)}
METHODS: dict[str, Any] = {}
