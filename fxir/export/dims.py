"""`Dim` and `dynamic_shapes`: the open sizes of an exported program's inputs, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from eager._tensor.tensor import Tensor
from eager.base.records import dataclass
from eager.utils import _pytree as pytree
from fxir.symbols.shapes import MOST


class _Hint(Enum):
    """Sizes without a name. AUTO: open unless the program needs the size. DYNAMIC: open. STATIC: fixed."""

    AUTO = "AUTO"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class UserError(ValueError):
    """A request does not hold for the program: torch._dynamo.exc.UserError."""


class Dim:
    """A named open size between `min` and `max` inclusive. Sizes with one name are equal.

    `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC` are sizes without a name.
    Raises: ValueError unless min <= max; TypeError for a name that is not an identifier.
    """

    AUTO: Final = _Hint.AUTO
    DYNAMIC: Final = _Hint.DYNAMIC
    STATIC: Final = _Hint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - torch's names
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(f"Dim: name={name!r}; allowed: a str that is an identifier")
        self.__name__ = name
        self.min = 0 if min is None else min
        self.max = MOST if max is None else max
        if self.max <= self.min:
            raise ValueError(f"Cannot create Dim with inconsistent min={self.min}, max={self.max}")

    def __repr__(self) -> str:
        high = "inf" if self.max >= MOST else self.max
        return f"Dim({self.__name__!r}, min={self.min}, max={high})"

    def _derived(self, *args: Any) -> Any:
        raise NotImplementedError(f"Dim: sizes computed from {self.__name__!r} are not supported; name them, and the export finds how they "
                                  "depend on it")  # fmt: skip

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __floordiv__ = _derived


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:  # noqa: A002 - torch's names
    """A `Dim` for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclass(frozen=True, slots=True)
class Size:
    """The request for one size. name: shared by equal sizes, "" for no name. strict: it must stay open."""

    name: str = ""
    lo: int = 0
    hi: int = MOST
    strict: bool = False


def wanted(dynamic_shapes: Any, names: list[str], arguments: list[Any]) -> dict[int, dict[int, Size]]:
    """{id of a tensor: {dim: Size}} for the open sizes.

    dynamic_shapes: by parameter name or position; for each argument None, or a structure like the argument's with, for each
    tensor, a dict or sequence of Dim, hint, int or None. names, arguments: of the call's parameters, in order.
    Raises: UserError for any other form, or for a name that no parameter has.
    """
    if dynamic_shapes is None:
        return {}
    if isinstance(dynamic_shapes, Mapping):
        unknown = [k for k in dynamic_shapes if k not in names]
        if unknown:
            raise UserError(f"dynamic_shapes: there is no argument {unknown[0]!r}; allowed: {', '.join(names)}")
        given = [dynamic_shapes.get(n) for n in names]
    elif isinstance(dynamic_shapes, list | tuple) and len(dynamic_shapes) == len(names):
        given = list(dynamic_shapes)
    else:
        raise UserError(f"dynamic_shapes: got {dynamic_shapes!r}; allowed: a dict by argument name, or one entry for each of "
                        f"{', '.join(names)}")  # fmt: skip
    found: dict[int, dict[int, Size]] = {}
    for name, argument, shapes in zip(names, arguments, given, strict=True):
        _match(name, argument, shapes, found)
    return found


def _match(where: str, argument: Any, shapes: Any, found: dict[int, dict[int, Size]]) -> None:
    if shapes is None:
        return
    if isinstance(argument, Tensor):
        found.setdefault(id(argument), {}).update(_sizes(where, argument, shapes))
        return
    children, spec = pytree.tree_flatten(argument, is_leaf=lambda x: x is not argument)
    if isinstance(argument, Mapping) and isinstance(shapes, Mapping):
        parts = [(f"{where}[{k!r}]", argument[k], shapes.get(k)) for k in argument]
    elif isinstance(shapes, list | tuple) and not spec.is_leaf() and len(shapes) == len(children):
        parts = [(f"{where}[{i}]", c, s) for i, (c, s) in enumerate(zip(children, shapes, strict=True))]
    else:
        raise UserError(f"dynamic_shapes: {where} is a {type(argument).__name__}, and {shapes!r} does not have its structure")
    for part in parts:
        _match(*part, found)


def _sizes(where: str, t: Tensor, shapes: Any) -> dict[int, Size]:
    if isinstance(shapes, Mapping):
        entries = dict(shapes)
    elif isinstance(shapes, list | tuple) and len(shapes) == t.ndim:
        entries = dict(enumerate(shapes))
    else:
        raise UserError(f"dynamic_shapes: {where} has {t.ndim} dims, got {shapes!r}; allowed: a dict by dim, or one entry for each")
    sizes: dict[int, Size] = {}
    for d, entry in entries.items():
        if not isinstance(d, int) or not -t.ndim <= d < t.ndim:
            raise UserError(f"dynamic_shapes: {where} has no dim {d!r}; allowed: 0 to {t.ndim - 1}")
        size = _size(where, d % t.ndim, t, entry)
        if size is not None:
            sizes[d % t.ndim] = size
    return sizes


def _size(where: str, d: int, t: Tensor, entry: Any) -> Size | None:
    n = t.shape[d]
    if entry is None or entry is Dim.STATIC:
        return None
    if type(entry) is int:
        if entry != n:
            raise UserError(f"dynamic_shapes: {where}.size({d}) is {n} in the example, but dynamic_shapes states {entry}")
        return None
    if isinstance(entry, _Hint):
        return Size(strict=entry is Dim.DYNAMIC) if n > 1 or entry is Dim.DYNAMIC else None
    if not isinstance(entry, Dim):
        raise UserError(f"dynamic_shapes: {where}.size({d}) is set to {entry!r}; allowed: a Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, an "
                        "int or None")  # fmt: skip
    if not entry.min <= n <= entry.max:
        raise UserError(f"dynamic_shapes: {where}.size({d}) is {n} in the example, outside of {entry!r}")
    return Size(entry.__name__, entry.min, entry.max, True)
