"""Captured values that every layer knows: NULL, lazy values, opaque objects and constants.

A value is either *new* (the captured program makes it; `source` is None) or *existing* (it exists outside; `source` is
its place). The kind decides how generated code obtains the object, and whether changes of it must be replayed.
"""

from __future__ import annotations

import collections
import functools
import re
import sys
import types
from datetime import timedelta
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from types import CodeType, EllipsisType, NoneType, NotImplementedType
from typing import Any, Final

import numpy as np

from dynamo.guards.sources import Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.protocols import Machine, Value
from dynamo.values.writer import Writer
from eager import device, dtype, finfo, iinfo, layout, memory_format
from fxir.base.safe_repr import text


class Null(Value):
    """The NULL that calls push next to a plain callable."""

    def python_type(self) -> type:
        return type(None)

    def describe(self) -> str:
        return "NULL"

    def __repr__(self) -> str:
        return "NULL"

    def reconstruct(self, cg: Writer) -> str:
        return cg.helper("NULL")


NULL: Final = Null()


class Lazy(Value):
    """An existing value that the program has not used yet: it has no guards."""

    def __init__(self, cap: Machine, real: Any, source: Source) -> None:
        self.cap = cap
        self.real = real
        self.source: Source = source
        self._seen: Value | None = None

    def as_constant(self) -> Any:
        return self.realize(self.cap).as_constant()

    def realize(self, cap: Machine) -> Value:
        """Wrap and guard the object: the capture depends on it from then on."""
        if self._seen is None:
            self._seen = cap.world.wrap(self.real, self.source)
        return self._seen

    @property
    def seen(self) -> Value | None:
        return self._seen

    def python_type(self) -> type:
        return type(self.real)

    def reconstruct(self, cg: Writer) -> str:
        if self._seen is not None:
            return cg.value(self._seen)
        return cg.source(self.source)


class Opaque(Value):
    """An existing object that captured code can only pass on."""

    def __init__(self, real: Any, source: Source) -> None:
        self.real = real
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.real)

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source)

    def iterate(self, cap: Machine) -> Value:
        if hasattr(type(self.real), "__next__"):
            return self
        return super().iterate(cap)


_FULL_NAMES: Final = frozenset(
    (collections.deque, collections.defaultdict, collections.OrderedDict, functools.partial, types.SimpleNamespace)
)


def type_name(cls: type) -> str:
    """The name of a class in messages of C code: the full name of a class made in C outside builtins."""
    return f"{cls.__module__}.{cls.__qualname__}" if cls in _FULL_NAMES or cls.__module__ == "numpy" else cls.__name__


# -- constants ------------------------------------------------------------------------------------------------------
NUMPY_SCALARS: Final = frozenset(np.dtype(c).type for c in "?bBhHiIlLqQefdFD")
NUMPY_DTYPES: Final = frozenset(type(np.dtype(c)) for c in "?bBhHiIlLqQefdFD")
# Classes of the standard library whose instances are values: immutable, identified by equality, with methods that only compute.
LIBRARY_VALUES: Final = frozenset({Fraction, re.Pattern, re.Match, timedelta, PurePosixPath, PureWindowsPath, type(sys.version_info)})
# Every value of these types is immutable, and equality of type and value makes it interchangeable.
CONSTANT_TYPES: Final = frozenset(
    {int, float, bool, complex, str, bytes, NoneType, EllipsisType, NotImplementedType, CodeType, dtype, device, finfo, iinfo,
     memory_format, layout}
) | NUMPY_SCALARS | NUMPY_DTYPES | LIBRARY_VALUES  # fmt: skip
_SINGLETONS: Final = frozenset({bool, NoneType, EllipsisType, NotImplementedType, CodeType, dtype, memory_format, layout})


def told_by_equality(value: Any) -> bool:
    """Whether every value that equals `value` and has its type is interchangeable with it: false for numpy's zeros and
    NaNs, and for matches.
    """
    if type(value) is re.Match:
        return False
    if type(value) not in NUMPY_SCALARS or isinstance(value, np.integer | np.bool_):
        return True
    return all(part == part and part != 0 for part in ((value.real, value.imag) if isinstance(value, np.complexfloating) else (value,)))


def guard_constant(cap: Machine, value: Any, source: Source) -> None:
    """Specialise on `value`."""
    kind = type(value)
    if kind in _SINGLETONS:
        cap.world.guard("is", source, value)
    elif kind is int:
        cap.world.guard("int_eq", source, value)
    elif kind is float:
        cap.world.guard("float_eq", source, value)
    elif kind is str:
        cap.world.guard("str_eq", source, value)
    else:
        cap.world.guard("const_eq", source, value)


class Constant(Value):
    """A value of one of CONSTANT_TYPES. A symbolic int has a separate class (`values/symbolic.py`)."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def __repr__(self) -> str:
        return f"Constant({self.describe()})"

    def python_type(self) -> type:
        return type(self.value)

    def as_constant(self) -> Any:
        return self.value

    def holds(self, singleton: Any) -> bool:
        """Whether the value is this object itself: None, NotImplemented and other singletons."""
        return self.value is singleton

    def describe(self) -> str:
        return text(self.value) if type(self.value) is int else repr(self.value)

    def truth(self, cap: Machine) -> bool:
        return bool(cap.host(bool, self.value))

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.of_constant(self, name)

    def iterate(self, cap: Machine) -> Value:
        if isinstance(self.value, str | bytes):
            return cap.iteration.text_iterator(self)
        return cap.raise_(TypeError, f"'{type(self.value).__name__}' object is not iterable")

    def unpack(self, cap: Machine) -> list[Value]:
        if isinstance(self.value, str):
            return [Constant(c) for c in self.value]
        if isinstance(self.value, bytes):
            return [Constant(c) for c in self.value]
        return super().unpack(cap)

    def same_object(self, cap: Machine, other: Value) -> bool:
        if self is other:
            return True
        if not isinstance(other, Constant):
            return False
        if type(self.value) in _SINGLETONS or type(other.value) in _SINGLETONS:
            return self.value is other.value
        if type(self.value) is not type(other.value) or self.value != other.value:
            return False
        if isinstance(self.value, int) and -5 <= self.value <= 256:
            return True
        if self.value is other.value and self.source is None and other.source is None:
            return True
        raise Unsupported(causes.IDENTITY, f"`is` between two equal {type(self.value).__name__} values")

    def reconstruct(self, cg: Writer) -> str:
        if type(self.value) in (int, float, complex, str, bytes) and self.source is not None:
            return cg.source(self.source)  # keeps the identity of the user's object
        return cg.constant(self.value)


def is_plain_literal(value: Any) -> bool:
    """Whether repr(value) is a Python literal that evaluates to the same object."""
    kind = type(value)
    if kind in (bool, NoneType, EllipsisType):
        return True
    return kind is int and -5 <= value <= 256


NONE: Final = Constant(None)
TRUE: Final = Constant(True)
FALSE: Final = Constant(False)


def is_none(value: Value) -> bool:
    """Whether value is None."""
    return isinstance(value, Constant) and value.holds(None)
