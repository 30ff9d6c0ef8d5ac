"""str(), repr(), ascii() and format() of captured values.

The text of a value that can differ between calls is a list of pieces (`SymbolicText`), which the compiled code joins.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant
from dynamo.values.builtin_subclasses import ContainerObject
from dynamo.values.mappings import DictValue
from dynamo.values.objects import ClassValue, Giving, UserObject
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.symbolic import SymbolicText, SymbolicValue, text_parts
from dynamo.values.tensor import TensorValue
from eager._tensor.tensor import Size
from eager.base.records import dataclass


@dataclass(eq=False)
class Formatting:
    """Makes str(), repr() and format() of captured values. It has no state."""

    cap: Machine

    def text(self, value: Value, convert: Callable[[Any], str]) -> Value:
        """str(value), repr(value) or ascii(value)"""
        value = self.cap.realize(value)
        if isinstance(value, SymbolicText) and convert is str:
            return value
        if (parts := self._symbolic_parts(value)) is not None:
            return SymbolicText(parts)
        if isinstance(value, UserObject):
            name = "__str__" if convert is str else "__repr__"
            raw = self.cap.classes.lookup(value.cls, name)
            if name == "__str__" and not isinstance(raw, types.FunctionType):
                exception_args = getattr(value, "args", None)
                if issubclass(value.cls, BaseException) and value.source is None and exception_args is not None:
                    if raw not in (BaseException.__str__, KeyError.__str__):
                        raise Unsupported(causes.EXCEPTION, f"the text of {value.describe()}")
                    return self._exception_text(value, exception_args)
                raw, name = self.cap.classes.lookup(value.cls, "__repr__"), "__repr__"
            if isinstance(raw, types.FunctionType) and not _is_of_enum(raw):
                if convert is ascii:
                    raise Unsupported(causes.OPAQUE_OBJECT, f"the text of {value.describe()}")
                return self._text_given(self.cap.call_method(value, name, [], {}), convert)
            if isinstance(value.real, enum.Enum):
                return Constant(self.cap.host(convert, value.real))
            if isinstance(value, ContainerObject) and value.is_scalar:
                return Constant(self.cap.host(convert, value.contents(self.cap).as_constant()))
        if isinstance(value, TensorValue):
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"the text of {value.describe()}")
        if isinstance(value, ClassValue):
            return Constant(self.cap.host(convert, value.cls))
        try:
            return Constant(self.cap.host(convert, value.as_constant()))
        except NotConstant:
            return self._container_text(value)

    def _text_given(self, given: Value, convert: Callable[[Any], str]) -> Value:
        """The result of a special method for `convert`, which accepts only a str."""
        given = self.cap.realize(given)
        if issubclass(given.python_type(), str):
            return given
        if not given.is_constant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{given.describe()} as a text")
        return Constant(self.cap.host(convert, Giving(given.as_constant())))

    def _symbolic_parts(self, value: Value) -> list[str | SymbolicValue] | None:
        """The pieces of the text of a symbolic number, or of a tuple or shape that holds one; None for other values."""
        if isinstance(value, SymbolicValue):
            return [value]
        if not (isinstance(value, TupleValue) and value.cls in (tuple, Size)):
            return None
        items = [self.cap.realize(v) for v in value.items]
        inner = [self._symbolic_parts(v) for v in items]
        if all(parts is None for parts in inner) or not all(isinstance(v, Constant | TupleValue) for v in items):
            return None
        pieces: list[str | SymbolicValue] = ["torch.Size([" if value.cls is Size else "("]
        for i, (item, parts) in enumerate(zip(items, inner, strict=True)):
            pieces += ([", "] if i else []) + (parts or text_parts(self.text(item, repr)))
        return [*pieces, "])" if value.cls is Size else ",)" if len(items) == 1 else ")"]

    def _exception_text(self, value: Value, args: list[Value]) -> Value:
        if not args:
            return Constant("")
        if len(args) == 1 and not issubclass(value.python_type(), KeyError):
            return self.text(args[0], str)
        return self.text(args[0] if len(args) == 1 else TupleValue(list(args)), repr)

    def _container_text(self, value: Value) -> Value:
        if isinstance(value, ListValue) and value.cls is list:
            return Constant("[" + ", ".join(self.text(v, repr).as_constant() for v in value.items) + "]")
        if isinstance(value, TupleValue) and value.cls is tuple:
            inner = ", ".join(self.text(v, repr).as_constant() for v in value.items)
            return Constant(f"({inner},)" if len(value.items) == 1 else f"({inner})")
        if isinstance(value, DictValue) and value.cls is dict:
            pairs = (f"{self.text(k, repr).as_constant()}: {self.text(v, repr).as_constant()}"
                     for k, v in value.entries.values())  # fmt: skip
            return Constant("{" + ", ".join(pairs) + "}")
        raise Unsupported(causes.OPAQUE_OBJECT, f"the text of {value.describe()}")

    def format(self, value: Value, spec: str) -> Value:
        """format(value, spec)"""
        value = self.cap.realize(value)
        if isinstance(value, UserObject):
            raw = self.cap.classes.lookup(value.cls, "__format__")
            if isinstance(raw, types.FunctionType) and not _is_of_enum(raw):
                return self._text_given(self.cap.call_method(value, "__format__", [Constant(spec)], {}), format)
            if not spec and not isinstance(value.real, enum.Enum):
                return self.text(value, str)
            own = [self.cap.classes.lookup(value.cls, n) for n in ("__str__", "__repr__")]
            if isinstance(value.real, enum.Enum) and any(isinstance(r, types.FunctionType) and not _is_of_enum(r) for r in own):
                raise Unsupported(causes.OPAQUE_OBJECT, f"the text of {value.describe()}")
        if isinstance(value, TensorValue):
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"the text of {value.describe()}")
        if not spec and (isinstance(value, SymbolicValue | SymbolicText) or not isinstance(value, Constant)):
            return self.text(value, str)
        return Constant(self.cap.host(format, self.cap.operators.object_constant(value), spec))


def _is_of_enum(method: types.FunctionType) -> bool:
    """Whether the enum module made a special method: such a method may run at capture."""
    return method.__module__ == "enum" or method.__code__.co_filename == enum.Enum.__repr__.__code__.co_filename
