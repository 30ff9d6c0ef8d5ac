"""Schemas of operators in torch's syntax: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

Owns the parser and the check of a call's arguments against a schema. Knows no operators.
"""
from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from typing import Any, Final

from eager._tensor.tensor import Tensor
from eager.base.records import dataclass

__all__ = ["Argument", "FunctionSchema", "parse_schema"]

_SPELLINGS: Final = {"SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "Scalar": "number"}
_NUMBERS: Final = frozenset({"int", "float", "bool", "number", "complex"})


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """The memory that a value shares: the names of its alias sets, and whether the call writes to it."""

    is_write: bool
    before_set: frozenset[str]
    after_set: frozenset[str]


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter or a result.

    text: its text in the schema; type: its type in torch's spelling, `Optional[List[int]]`.
    """

    text: str
    name: str
    type: str
    kwarg_only: bool = False
    default_text: str | None = None
    alias_info: AliasInfo | None = None
    N: int | None = None

    @property
    def default_value(self) -> Any:
        """The default; None if the parameter has no default."""
        return None if self.default_text is None else _literal(self.default_text)

    @property
    def is_out(self) -> bool:
        """Whether the caller passes the memory for a result."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        """Whether the parameter has a default."""
        return self.default_text is not None

    def accepts(self, value: Any, numbers_for_tensors: bool) -> bool:
        """Whether the argument accepts a value. Distinguishes only kinds that exclude each other."""
        wanted = self.type
        if wanted.startswith("Optional["):
            if value is None:
                return True
            wanted = wanted[9:-1]
        return _accepts(wanted, value, numbers_for_tensors, self.N)


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """The name, parameters and results of an operator."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[Argument]
    text: str

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to an argument."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The (positional, keyword-only) arguments of a call.

        Raises: RuntimeError with torch's text if they do not fit.
        """
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            if len(positional) == len(self.arguments) or len(args) > len(self.arguments):
                raise RuntimeError(f"{self.name}() expected at most {len(self.arguments)} argument(s) but received "
                                   f"{len(args) + len(kwargs)} argument(s). Declaration: {self}")  # fmt: skip
            raise RuntimeError(f"{self.name}() takes {len(positional)} positional argument(s) but {len(args)} was/were given.  "
                               f"Declaration: {self}")  # fmt: skip
        left = dict(kwargs)
        given: list[Any] = []
        for i, a in enumerate(positional):
            if i < len(args):
                value = args[i]
            elif a.name in left:
                value = left.pop(a.name)
            elif a.default_text is None:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self}")
            elif not any(b.name in left for b in positional[i + 1 :]):
                break
            else:
                value = a.default_value
            self._check(a, i, value)
            given.append(value)
        named = {}
        for i, a in enumerate(self.arguments[len(positional) :], len(positional)):
            if a.name in left:
                named[a.name] = left.pop(a.name)
                self._check(a, i, named[a.name])
            elif a.default_text is None:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self}")
        if left:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(left))}' for operator '{self.name}'. Schema: {self}")
        return tuple(given), named

    def _check(self, argument: Argument, position: int, value: Any) -> None:
        if not argument.accepts(value, self.name.startswith("aten::")):
            raise RuntimeError(f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
                               f"found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: {self}\n"
                               f"Cast error details: Unable to cast {value!r} to {argument.type}")  # fmt: skip

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _takes(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


_REFUSED_AS_NUMBER = _takes(str, bytes, list, tuple, dict, set, slice, type(None))
_IS_SEQUENCE = _takes(list, tuple)


def _accepts(wanted: str, value: Any, numbers_for_tensors: bool, count: int | None) -> bool:
    if wanted == "Tensor":
        if isinstance(value, Tensor) or _overrides(value):
            return True
        return numbers_for_tensors and isinstance(value, int | float | complex)
    if wanted in _NUMBERS:
        return not _REFUSED_AS_NUMBER(value) and not (wanted == "int" and isinstance(value, float | complex))
    if wanted == "str":
        return isinstance(value, str)
    if wanted.startswith("List["):
        inner = wanted[5:-1]
        if inner in _NUMBERS and count is not None and _accepts(inner, value, False, None):
            return True  # a single number is accepted for a list of fixed length
        if isinstance(value, Tensor):
            return inner in _NUMBERS and value.ndim < 2
        if not hasattr(value, "__iter__") or isinstance(value, str | dict):
            return False
        return not _IS_SEQUENCE(value) or inner in _NUMBERS or all(_element(inner, v) for v in value)
    return True


def _element(inner: str, value: Any) -> bool:
    if inner.startswith("Optional["):
        return value is None or _element(inner[9:-1], value)
    return inner != "Tensor" or isinstance(value, Tensor) or _overrides(value)


def _overrides(value: Any) -> bool:
    return hasattr(type(value), "__torch_function__")


# -- parsing -------------------------------------------------------------------------------------------------------
_HEAD: Final = re.compile(r"([\w:]+)(?:\.(\w+))?\((.*)\) -> (.+)", re.DOTALL)
_TYPE: Final = re.compile(r"(?P<base>\w+)(?:\((?P<alias>[^)]*)\))?(?P<rest>(?:\[\d*\]|\?)*)")


@functools.lru_cache(maxsize=4096)
def parse_schema(text: str) -> FunctionSchema:
    """Parse `ns::name.overload(type name=default, *, ...) -> results`. Raises: RuntimeError for malformed text."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        raise RuntimeError(f"parse_schema: cannot read {text!r}; expected name(type argument, ...) -> results")
    name, overload, inside, results = found.groups()
    arguments, keyword_only = [], False
    for part in _split(inside):
        if part == "*":
            keyword_only = True
        elif part != "...":
            arguments.append(_argument(part, keyword_only))
    results = results.strip()
    inner = results[1:-1] if results.startswith("(") and results.endswith(")") else results
    returns = [_argument(part, False, named=False) for part in _split(inner) if part != "..."]
    return FunctionSchema(name, overload or "", arguments, returns, text.strip())


def _split(inside: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inside):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(inside[start:i].strip())
            start = i + 1
    last = inside[start:].strip()
    return [*parts, last] if last else parts


def _argument(text: str, keyword_only: bool, named: bool = True) -> Argument:
    head, equals, default = text.partition("=")
    type_, _, name = head.strip().rpartition(" ") if named or " " in head.strip() else (head.strip(), "", "")
    found = _TYPE.fullmatch(type_.replace(" ", "").replace("->", ">"))
    if found is None:
        return Argument(text, name, type_, keyword_only, default if equals else None)
    spelt, count = _SPELLINGS.get(found["base"], found["base"]), None
    for suffix in re.findall(r"\[\d*\]|\?", found["rest"]):
        if suffix == "?":
            spelt = f"Optional[{spelt}]"
        else:
            count = int(suffix[1:-1]) if suffix != "[]" else None
            spelt = f"List[{spelt}]"
    alias = None
    if found["alias"] is not None:
        before, _, after = found["alias"].replace("!", "").partition(">")
        sets = frozenset(before.strip("-").split("|"))
        alias = AliasInfo("!" in found["alias"], sets, frozenset(after.split("|")) if after else sets)
    return Argument(text, name, spelt, keyword_only, default.strip() if equals else None, alias, count)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # an enumerator: contiguous_format, Mean, long
        return text
