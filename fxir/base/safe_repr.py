"""Values as they are written in logs, reports and names.

Owns that writing one down runs no code of the user's, always succeeds and stays short. Must not know what it is for.
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
_LONG_BITS: Final = 64  # sys.set_int_max_str_digits() limits what can be written out at all


def text(value: Any) -> str:
    """A value for people; objects of the user are named, not printed: their repr may be long, or do anything."""
    kind = type(value)  # isinstance would ask the object for its __class__
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
        name = object.__getattribute__(value, "__dict__").get("_name_")  # one that is being made has none
    return f"<{type.__dict__['__qualname__'].__get__(kind)}{' ' + name if isinstance(name, str) else ''}>"


def cut(words: str, most: int) -> str:
    """The words, of which the end is left out where they are more than `most` characters."""
    return words if len(words) <= most else words[: most - 3] + "..."
