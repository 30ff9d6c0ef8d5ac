"""Texts of values for logs, reports and names.

Writing a value runs no code of the user, always succeeds, and gives a short text.
"""

from __future__ import annotations

import enum
import types
from typing import Any, Final

from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.memory_format import layout, memory_format
from eager.optable.table import Op

_NAMED: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.WrapperDescriptorType,
                 types.MethodDescriptorType)  # fmt: skip
_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None), type(...), dtype, device, memory_format, layout, range)
_LONG_BITS: Final = 64  # sys.set_int_max_str_digits() limits the ints that Python converts to decimal digits


def text(value: Any) -> str:
    """A text for people. An object of the user is named instead of printed: its repr may be long or run any code."""
    kind = type(value)  # isinstance would read the object's __class__, which may run code
    if issubclass(kind, type):
        return str(type.__dict__["__qualname__"].__get__(value))
    if issubclass(kind, tuple):
        items = tuple.__iter__(value)
        return f"({', '.join(map(text, items))}{',' if tuple.__len__(value) == 1 else ''})"
    if issubclass(kind, types.ModuleType):
        return f"<module {(vars(types.ModuleType)['__dict__'].__get__(value) or {}).get('__name__')}>"
    if kind is int and value.bit_length() > _LONG_BITS:
        return f"<an int of {value.bit_length()} bits>"
    if kind in _PLAIN:
        return repr(value)
    name = value.name if issubclass(kind, Op) else value.__qualname__ if kind in _NAMED else None
    if issubclass(kind, enum.Enum):
        name = object.__getattribute__(value, "__dict__").get("_name_")  # a module in creation has no name yet
    return f"<{type.__dict__['__qualname__'].__get__(kind)}{' ' + name if isinstance(name, str) else ''}>"


def cut(words: str, most: int) -> str:
    """`words`, shortened at the end to `most` characters."""
    return words if len(words) <= most else words[: most - 3] + "..."
