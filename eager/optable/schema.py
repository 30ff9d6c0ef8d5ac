"""Schemas: the signature of an op, written as text in torch's notation and parsed once."""
from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np

_MISSING = object()
# parameters that callers may also name as torch's public functions do
PUBLIC_NAMES = {"x": "input"}
_TYPES = {
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?", "float", "float?",
    "bool", "bool?", "str", "str?", "dtype", "dtype?", "device", "device?", "any",
}  # fmt: skip


def unexpected_keyword(function: str, name: str, known: Iterable[str]) -> str:
    """torch's text for a keyword that a function does not have, followed by the nearest keyword that it has."""
    return f"{function}() got an unexpected keyword argument '{name}'{nearest_keyword(name, known)}"


def nearest_keyword(name: str, known: Iterable[str]) -> str:
    """A hint in the form of CPython 3.13, or "" if no known keyword resembles `name`."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f". Did you mean '{near[0]}'?" if near else ""


class Param(NamedTuple):
    """One parameter: its name, type as written, default (or MISSING) and whether keyword-only."""

    name: str
    type: str
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is _MISSING

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")


class Schema(NamedTuple):
    """A parsed signature: `name(type param=default, *, ...) -> returns`."""

    name: str
    params: tuple[Param, ...]
    num_returns: int
    text: str

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], takes_out: Callable[[str], bool] | None = None) -> tuple[Any, ...]:
        """All arguments in order, defaults filled. Raises TypeError naming the op and the argument.

        takes_out: whether the caller accepts `out` for the op of this name, which the hint in an error then knows.
        """
        positional = sum(not p.keyword_only for p in self.params)
        if len(args) > positional:
            if len(args) == len(self.params) and not kwargs:
                return args  # already in canonical form
            raise TypeError(f"{self.name}() takes {positional} positional argument{'s' * (positional != 1)} but {len(args)} were given")
        result = list(args)
        left = dict(kwargs) if kwargs else {}
        for p in self.params[len(args) :]:
            if p.name in left:
                result.append(left.pop(p.name))
            elif p.name in PUBLIC_NAMES and PUBLIC_NAMES[p.name] in left:
                result.append(left.pop(PUBLIC_NAMES[p.name]))
            elif p.default is not _MISSING:
                result.append(p.default)
            else:
                raise TypeError(f"{self.name}() missing required argument: '{p.name}' ({self.text})")
        if left:
            name = next(iter(left))
            if any(p.name == name for p in self.params):
                raise TypeError(f"{self.name}() got multiple values for argument '{name}' ({self.text})")
            known = [PUBLIC_NAMES.get(p.name, p.name) for p in self.params]
            if takes_out is not None and not self.name.endswith("_") and takes_out(self.name):
                known.append("out")
            raise TypeError(unexpected_keyword(self.name, name, known))
        return tuple(result)

    def verify(self, args: tuple[Any, ...], takes_numbers: frozenset[str]) -> bool:
        """Raise TypeError, with torch's text, for the first full positional argument that is not of its parameter's type.

        takes_numbers: the tensor parameters that may be numbers. Returns whether the classes of the arguments decided, and not
        their values.
        """
        by_class = True
        for i, (p, value) in enumerate(zip(self.params, args, strict=True)):
            wanted = p.type.rstrip("?")
            if wanted not in _SAID_AS or (value is None and p.type.endswith("?")):
                continue
            if not _fits(wanted, value, p.name in takes_numbers):
                self.refuse_type(i, value)
            by_class &= wanted in ("Tensor", "Tensor[]") or not hasattr(value, "stride")
        return by_class

    def refuse_type(self, i: int, value: Any) -> NoReturn:
        """Raise TypeError, with torch's text: `value` is not of the type of parameter `i`."""
        p = self.params[i]
        raise TypeError(f"{self.name}(): argument '{PUBLIC_NAMES.get(p.name, p.name)}' (position {i + 1}) must be "
                        f"{_SAID_AS[p.type.rstrip('?')]}, not {type(value).__name__}")  # fmt: skip


# How torch's texts call the types that arguments are held against.
_SAID_AS = {"Tensor": "Tensor", "Tensor[]": "tuple of Tensors", "int": "int", "int[]": "tuple of ints", "float": "float", "bool": "bool",
            "Scalar": "Number", "dtype": "torch.dtype", "str": "str"}  # fmt: skip
_NO_INTS = frozenset((bool, float, complex, str))  # which kernels and meta rules would take for a whole number
_NUMBER_METHODS = ("__index__", "__float__", "__complex__")
_NO_NUMBER = (str, bytes, list, tuple, dict, set, slice, type, type(None), type(...))


def _fits(wanted: str, value: Any, numbers: bool) -> bool:
    """Whether `value` may stand for a parameter of this type; a tensor of one element may stand for a number."""
    if wanted == "Tensor":
        return hasattr(value, "stride") or (numbers and is_number(value))
    if wanted == "Tensor[]":
        return isinstance(value, (list, tuple)) and all(v is None or hasattr(v, "stride") for v in value)
    if wanted == "int[]":
        return isinstance(value, int) or (isinstance(value, (list, tuple)) and not any(isinstance(v, _NO_NUMBER) for v in value))
    if wanted == "str":
        return isinstance(value, str)
    if wanted == "bool":
        return isinstance(value, (bool, np.bool_))
    if wanted == "dtype":
        return hasattr(value, "is_floating_point") and not hasattr(value, "stride")
    return is_number(value) and not (wanted == "int" and value.__class__ in _NO_INTS)


def is_number(value: Any) -> bool:
    """Whether `value` may stand for a number: a tensor of one element may."""
    if isinstance(value, _NO_NUMBER) or not any(hasattr(value, method) for method in _NUMBER_METHODS):
        return False
    return not (hasattr(value, "stride") and value.numel() != 1)


def parse(text: str) -> Schema:
    """Parse `"add(Tensor x, Tensor other, *, Scalar alpha=1) -> Tensor"`.

    Returns are `Tensor`, `(Tensor, Tensor)`, or `Tensor[]` (counted as -1). Raises ValueError on bad text.
    """
    m = re.fullmatch(r"(\w+)\((.*)\) -> (.+)", text)
    if not m:
        raise ValueError(f"schema: cannot read {text!r}")
    name, inside, returns = m.groups()
    params: list[Param] = []
    keyword_only = False
    for part in re.split(r",\s*(?![^\[(]*[\])])", inside) if inside.strip() else []:
        if part.strip() == "*":
            keyword_only = True
            continue
        head, eq, default = part.strip().partition("=")
        type_, _, pname = head.rpartition(" ")
        if type_ not in _TYPES:
            raise ValueError(f"schema: unknown type {type_!r} in {text!r}")
        params.append(Param(pname, type_, ast.literal_eval(default) if eq else _MISSING, keyword_only))
    count = -1 if returns == "Tensor[]" else returns.count("Tensor") if returns.startswith("(") else 1
    return Schema(name, tuple(params), count, text)
