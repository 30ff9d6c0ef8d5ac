"""Values, dtypes, shapes, strides and errors against torch's stored results (tests/data/make_reference.py)."""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager import nn  # noqa: F401 - expressions reach it as `T.nn`
from tests.data.expressions import inputs

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "torch_reference.json").read_text())
PROMOTION = json.loads((DATA / "promotion.json").read_text())
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float64": 1e-8}

# Where eager differs from torch 2.13 on purpose, with the reason.
DIFFERENT: dict[str, str] = {}
# Layouts that differ: values and shape are compared, strides are not.
OTHER_STRIDES: dict[str, str] = {}


def _cases() -> list[Any]:
    return [pytest.param(text, expected, id=f"{family}: {text}") for family, items in REFERENCE.items()
            for text, expected in items.items()]  # fmt: skip


def _compare(actual: Any, expected: Any, strides: bool, what: str) -> None:
    if isinstance(expected, list):
        assert len(actual) == len(expected), f"{what}: {len(actual)} results against {len(expected)}"
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, e, strides, f"{what}[{i}]")
        return
    if "repr" in expected:
        assert repr(actual) == expected["repr"]
        return
    assert isinstance(actual, eager.Tensor), f"{what}: {type(actual).__name__} is not a tensor"
    assert list(actual.shape) == expected["shape"], f"{what}: shape {list(actual.shape)} against {expected['shape']}"
    assert actual.dtype.name == expected["dtype"], f"{what}: dtype {actual.dtype.name} against {expected['dtype']}"
    a = actual.detach()._array
    if actual.dtype.is_complex:
        a = np.stack([a.real, a.imag], -1)
    values = np.asarray(a, np.float64 if actual.dtype.category >= 2 else np.int64).reshape(-1)
    rtol = TOLERANCE.get(actual.dtype.name, 3e-5) if actual.dtype.category >= 2 else 0
    np.testing.assert_allclose(values, np.asarray(expected["values"], values.dtype), rtol=rtol, atol=rtol / 5, err_msg=what)
    if strides and 0 not in expected["shape"]:
        ours = [s for n, s in zip(actual.shape, actual.stride(), strict=True) if n != 1]
        theirs = [s for n, s in zip(expected["shape"], expected["stride"], strict=True) if n != 1]
        assert ours == theirs, f"{what}: strides {ours} against {theirs} (dims of size one left out)"


@pytest.mark.parametrize(("text", "expected"), _cases())
def test_expression_agrees_with_torch(text: str, expected: Any) -> None:
    if text in DIFFERENT:
        pytest.skip(DIFFERENT[text])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(expected, dict) and "error" in expected:
            with pytest.raises(Exception) as caught:
                eval(text, inputs(eager))  # noqa: S307 - our own expressions
            names = [c.__name__.lstrip("_") for c in type(caught.value).__mro__]
            theirs = [n.lstrip("_") for n in expected["bases"]]
            assert theirs[0] in names or any(n in theirs for n in names[:1]), (
                f"{type(caught.value).__name__}: {caught.value}\nagainst torch's {expected['error']}: {expected['text']}")
            missing = isinstance(caught.value, (AttributeError, NotImplementedError, NameError))
            assert not missing or theirs[0] == "NotImplementedError", f"missing: {caught.value}"
            return
        actual = eval(text, inputs(eager))  # noqa: S307
    # torch's factorisations are column-major, as LAPACK writes them; torch documents no layout of gradients
    free = text in REFERENCE["linalg"] or text.startswith("grad(")
    _compare(actual, expected, text not in OTHER_STRIDES and not free, text)


def _result(fn: Any) -> str:
    try:
        return fn().dtype.name
    except (RuntimeError, TypeError):
        return "error"


_OPS = {"add": lambda a, b: a + b, "div": lambda a, b: a / b, "eq": lambda a, b: a == b,
        "where": lambda a, b: eager.where(eager.tensor(True), a, b)}  # fmt: skip
_NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1j}


@pytest.mark.parametrize("kind", ["dims", "zero_dim", "number"])
@pytest.mark.parametrize("op", PROMOTION["ops"])
def test_promotion_agrees_with_torch(op: str, kind: str) -> None:
    at, wrong = PROMOTION["ops"].index(op), []
    for pair, expected in PROMOTION[kind].items():
        a, b = pair.split(",")
        x = eager.ones(2, dtype=getattr(eager, a))
        y = _NUMBERS[b] if kind == "number" else eager.ones(2, dtype=getattr(eager, b))
        if kind == "zero_dim":
            y = y[0]
        found = _result(lambda: _OPS[op](x, y))
        if expected[at] == "complex32" or (a == "float16" and b.startswith("complex")):
            continue  # eager has no complex32: float16 with complex is complex64
        if found != expected[at]:
            wrong.append(f"{a}, {b}: {found} against {expected[at]}")
    assert not wrong, f"{op} over {kind}:\n" + "\n".join(wrong)


def test_promote_types_agrees_with_torch() -> None:
    wrong = []
    for pair, expected in PROMOTION["types"].items():
        a, b = (getattr(eager, name) for name in pair.split(","))
        try:
            found = eager.promote_types(a, b).name
        except RuntimeError:
            found = "error"
        if found != expected and expected != "complex32":
            wrong.append(f"{pair}: {found} against {expected}")
    assert not wrong, "\n".join(wrong)
