"""The check of a call against the signatures of torch's operators, in the order and with the texts of torch's parser.

Owns which values fit a parameter of a schema, and the choice among overloads (torch/csrc/utils/python_arg_parser.cpp).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import device
from eager.base.memory_format import layout, memory_format
from eager.optable.declaration import is_number, nearest_keyword, unexpected_keyword
from eager.optable.signatures import Parameter

TensorBase = _native.TensorBase
Overloads = tuple[tuple[Parameter, ...], ...]
# Other names that torch takes for parameters: numpy's, and some historical ones.
_OTHER_NAMES: Final = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("self", "x", "a", "x1"), "other": ("x2",)}


class Match:
    """How far a call fits a signature."""

    __slots__ = ("wrong", "by_value")

    def __init__(self) -> None:
        self.wrong: str | None = None  # the text of the error, or None if the call fits
        self.by_value = False  # whether a value decided, not only the classes of the arguments


# ---- values that fit a parameter ----


def _is_tensor(value: Any, match: Match) -> bool:
    return isinstance(value, TensorBase) or (
        hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))) or hasattr(value, "__torch_function__")


def _is_int(value: Any, match: Match) -> bool:
    if isinstance(value, TensorBase):
        match.by_value = True
        return value.numel() == 1 and value.dtype.is_integral
    return is_number(value) and not isinstance(value, (bool, float, complex, np.floating, np.bool_))


def _is_scalar(value: Any, match: Match) -> bool:
    if isinstance(value, TensorBase):
        match.by_value = True
        return value.ndim == 0 and not value.requires_grad
    return is_number(value)


def _is_dtype(value: Any, match: Match) -> bool:
    if isinstance(value, type):
        match.by_value = True
    return isinstance(dtypes.meant(value), dtypes.dtype)


_FITS: Final[dict[str, Callable[[Any, Match], bool]]] = {
    "Tensor": _is_tensor,
    "int": _is_int,
    "SymInt": _is_int,
    "float": lambda value, match: _is_scalar(value, match) and not isinstance(value, complex),
    "Scalar": _is_scalar,
    "complex": _is_scalar,
    "bool": lambda value, match: isinstance(value, (bool, np.bool_)) or type(value).__name__ == "SymBool",
    "str": lambda value, match: isinstance(value, str),
    "ScalarType": _is_dtype,
    "MemoryFormat": lambda value, match: isinstance(value, memory_format),
    "Layout": lambda value, match: isinstance(value, layout),
    "Device": lambda value, match: isinstance(value, (device, str)) or _is_int(value, match),
    "Generator": lambda value, match: hasattr(value, "manual_seed"),
}


def _fits(p: Parameter, value: Any, match: Match, numbers_as_tensors: bool) -> bool:
    if value is None:
        return p.takes_none
    fits = _FITS.get(p.kind)
    if fits is None:
        return True
    if not p.is_list:
        return fits(value, match) or (numbers_as_tensors and p.kind == "Tensor" and is_number(value))
    if isinstance(value, (list, tuple)):
        later = p.kind in ("int", "SymInt")  # torch looks at the kind of the first whole number alone
        return all(fits(v, match) or (v is None and p.kind == "Tensor") or (later and i > 0 and isinstance(v, bool))
                   for i, v in enumerate(value))  # fmt: skip
    return p.length > 0 and p.kind in ("int", "SymInt", "float") and fits(value, match)


def _is_of_ints(p: Parameter) -> bool:
    return p.is_list and p.kind in ("int", "SymInt")


def _match(name: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any], may_spread: bool,
           first: int, numbers_as_tensors: bool) -> Match:  # fmt: skip
    """Match a call with one signature, in the order of torch's parser. first: the position of args[0] in messages."""
    match, left = Match(), dict(kwargs)
    positional = sum(not p.keyword_only for p in parameters)
    first_list = 1 if parameters and parameters[0].name == "input" else 0
    spreads = may_spread and positional == first_list + 1 and _is_of_ints(parameters[first_list])
    if len(args) > positional and not spreads:
        taken_count, given_count = positional + first - 1, len(args) + first - 1
        were = "was" if given_count == 1 else "were"
        match.wrong = f"{name}() takes {taken_count} positional argument{'s' * (taken_count != 1)} but {given_count} {were} given"
        return match
    missing: list[str] = []
    for at, p in enumerate(parameters):
        place = f" (position {at + first})"
        if at < len(args) and not p.keyword_only:
            value = args[at]
            if spreads and at == first_list and not isinstance(value, (list, tuple)) and _is_int(value, match):
                value = args[at:]
        else:
            key = next((k for k in (p.name, *_OTHER_NAMES.get(p.name, ())) if k in left), None)
            if key is None:
                if p.required:
                    missing.append(f'"{p.name}"')
                continue
            value, place = left.pop(key), ""
        if not _fits(p, value, match, numbers_as_tensors):
            match.wrong = f"{name}(): argument '{p.name}'{place} must be {p.wanted}, not {type(value).__name__}"
            return match
    if missing:
        plural = "s" if len(missing) == 1 else ""  # torch's plurals
        match.wrong = f"{name}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    elif left:
        unknown = next(iter(left))
        if any(p.name == unknown for p in parameters[: len(args)]):
            match.wrong = f"{name}() got multiple values for argument '{unknown}'"
        else:
            match.wrong = unexpected_keyword(name, unknown, [p.name for p in parameters])
    return match


def _class_name(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        return f"{type(value).__name__} of {type(value[0]).__name__}"
    return type(value).__name__


def check(name: str, overloads: Overloads, args: tuple[Any, ...], kwargs: Mapping[str, Any], may_spread: bool = True,
          is_method: bool = False, numbers_as_tensors: bool = False) -> bool:  # fmt: skip
    """Check a call against the overloads of an operator. Returns whether the classes of the arguments alone decided.

    may_spread: whether the ints of a list may be given one by one, as in `x.permute(1, 0)`. is_method: args[0] is the tensor
    whose method is called, which torch's texts do not count. numbers_as_tensors: whether numbers may stand for tensors.
    Raises: TypeError, with torch's text, if the call fits no overload.
    """
    found = []
    for parameters in overloads:
        match = _match(name, parameters, args, kwargs, may_spread, 0 if is_method else 1, numbers_as_tensors)
        if match.wrong is None:
            return not match.by_value  # every call of these classes fits this overload, even if it fits an earlier one too
        found.append(match.wrong)
    given_count = len(args) + len(kwargs)
    plausible = [wrong for wrong, parameters in zip(found, overloads, strict=True)
                 if sum(p.required for p in parameters) <= given_count <= len(parameters)]
    if len(found) == 1 or len(plausible) == 1:
        raise TypeError((plausible or found)[0])
    given = ", ".join((*map(_class_name, args[is_method:]), *(f"{k}={_class_name(v)}" for k, v in kwargs.items())))
    known = {key for parameters in overloads for p in parameters for key in (p.name, *_OTHER_NAMES.get(p.name, ()))}
    unknown = next((key for key in kwargs if key not in known), None)
    hint = "" if unknown is None else f"\nkeyword '{unknown}' is unknown{nearest_keyword(unknown, sorted(known))}"
    raise TypeError(f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:\n"
                    + "\n".join(f" * ({_described(parameters[is_method:])})" for parameters in overloads) + hint)  # fmt: skip


def _described(parameters: tuple[Parameter, ...]) -> str:
    parts, starred = [], False
    for p in parameters:
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{p.wanted} {p.name}{'' if p.required else ' = ...'}")
    return ", ".join(parts)
