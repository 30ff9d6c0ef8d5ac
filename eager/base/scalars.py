"""A Python number as an element of an array: what torch stores for it, or refuses as not fitting.

Numbers wrap only where C's conversion of a negative number to an unsigned type does; every other loss of range is an error.
"""
from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

# the names by which torch's texts call the types
_C_NAMES: Final = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float", "float64": "double",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16",
}  # fmt: skip
# the largest number that torch converts to a type: those above do not round to it
_LARGEST: Final = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": float(np.finfo(np.float32).max)}


def _refuse(to: np.dtype[Any]) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_C_NAMES.get(to.name, to.name)} without overflow")


TOO_BIG: Final = "int too big to convert"  # torch's message for an int that neither int64 nor uint64 holds


def check_int(value: int) -> None:
    """Raise OverflowError for an int that neither int64 nor uint64 holds: torch accepts no such number."""
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(TOO_BIG)


def element(value: Any, to: np.dtype[Any]) -> Any:
    """`value`, a Python number, converted so that numpy stores it in the type `to` as torch does; any other argument unchanged.

    Raises: RuntimeError for a number outside the range of `to`, for nan or infinity as an integer, and for a complex number with
    an imaginary part as a real type. OverflowError for an int that 64 bits do not hold.
    """
    if not isinstance(value, (int, float, complex)) or isinstance(value, np.generic):
        return value
    kind = to.kind
    if isinstance(value, int):
        check_int(value)
    if kind == "c":
        _check_parts(value, to)
        return value
    if kind == "b":
        return bool(value)
    if isinstance(value, complex):
        if value.imag:
            raise _refuse(to)
        value = value.real
    if kind in "iu":
        return _integer(value, to)
    largest = _LARGEST.get(to.name, math.inf)
    if (value > largest or value < -largest) and not math.isinf(value):
        raise _refuse(to)
    return value


def _check_parts(value: int | float | complex, to: np.dtype[Any]) -> None:
    """Refuse a number with a finite part beyond the range of the complex type `to`."""
    largest = _LARGEST["float32"] if to.itemsize == 8 else math.inf
    if any(abs(part) > largest and not math.isinf(part) for part in (value.real, value.imag)):
        raise RuntimeError("value cannot be converted to type c10::complex<float> without overflow")


def rounded(value: Any, to: Any) -> Any:
    """A number as an assignment to elements of the dtype `to` stores it: of 16-bit floats those out of range become infinities."""
    if to.itemsize == 2 and to.is_floating_point and isinstance(value, (int, float)):
        with np.errstate(over="ignore"):
            return float(np.float64(value).astype(to.numpy))
    return value


def fits_every_dtype(value: Any) -> bool:
    """Whether a value is an int or a float from 0 to 127: every dtype holds it, so that no check of a range is needed."""
    return (value.__class__ is int or value.__class__ is float) and 0 <= value <= 127


def check_element(value: Any, to: Any) -> None:
    """Refuse a number that does not fit the dtype `to`, before a kernel runs or where none does. Raises as `element`."""
    if not fits_every_dtype(value) and not to.is_float8:
        element(value, to.numpy)


def _integer(value: int | float, to: np.dtype[Any]) -> int:
    limits = np.iinfo(to)
    low, high = int(limits.min), int(limits.max)
    if kept := isinstance(value, int) and low == 0:
        low = -high
    if not low <= value <= high:  # nan compares false
        raise _refuse(to)
    whole = int(value)
    return whole % (high + 1) if kept and whole < 0 else whole
