"""Outcomes of wrong values of keywords: the class of the error, or whether the result is `changed` or the `same`.

`python -m tests.keywords.outcomes PLAN RESULT LIBRARY` runs the calls of a plan (JSON) in a library. This file imports
neither eager nor torch except as LIBRARY.
"""
from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.keywords.calls import Call, Library, run

Plan = list[tuple[Call, tuple[str, ...]]]
SAME, CHANGED = "same", "changed"


class Wrong:
    """A value that no keyword takes."""

    def __repr__(self) -> str:
        return "Wrong()"


VALUES: tuple[Any, ...] = (Wrong(), "bogus", True, False, -17, 2.5)


def outcomes(T: Library, plan: Plan) -> dict[str, dict[str, list[str]]]:
    """By call and keyword, the outcome of each of `VALUES`. Leaves out calls that the library refuses without the keyword."""
    found: dict[str, dict[str, list[str]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, keywords in plan:
            for form in (call, replace(call, differentiable=False)):
                try:
                    call, plain = form, run(T, form, {})
                    break
                except Exception:
                    continue
            else:
                continue
            found[call.name] = {k: [outcome(T, call, k, v, plain) for v in VALUES] for k in keywords}
    return found


def outcome(T: Library, call: Call, keyword: str, value: Any, plain: Any) -> str:
    """The built-in class of the call's error, or whether its result equals `plain`, the result without the keyword."""
    try:
        result = run(T, call, {keyword: value})
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return SAME if same(T, result, plain) else CHANGED


# -- comparison ---------------------------------------------------------------------------------------------------

def same(T: Library, a: Any, b: Any) -> bool:
    """Whether two results agree in classes, and tensors in metadata and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, T.Tensor):
        return _metadata(T, a) == _metadata(T, b) and _bits(T, a) == _bits(T, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(T, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(T, a[k], b[k]) for k in a)
    if isinstance(a, (int, float, str, complex, type(None))):
        return repr(a) == repr(b)
    return True


def _dense(T: Library, x: Any) -> bool:
    return bool(x.layout is T.strided and x.device.type == "cpu")


def _metadata(T: Library, x: Any) -> tuple[Any, ...]:
    strides = x.stride() if x.layout is T.strided else None
    return x.dtype, tuple(x.shape), strides, x.requires_grad, x.layout, x.device


def _bits(T: Library, x: Any) -> bytes:
    if not _dense(T, x):
        return b""
    x = x.detach()
    if x.dtype.is_complex:
        x = T.view_as_real(x.resolve_conj())
    return bytes((x.double() if x.dtype.is_floating_point else x).contiguous().numpy().tobytes())


# -- plans as data ------------------------------------------------------------------------------------------------

def to_data(plan: Plan) -> list[Any]:
    return [[c.name, c.text, c.kind, c.differentiable, list(keywords)] for c, keywords in plan]


def from_data(rows: Iterable[Any]) -> Plan:
    return [(Call(*row[:4]), tuple(row[4])) for row in rows]


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        chosen = from_data(json.load(file))
    with open(sys.argv[2], "w") as file:
        json.dump(outcomes(importlib.import_module(sys.argv[3]), chosen), file)
