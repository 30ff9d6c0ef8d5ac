"""Decides which sizes, ints and floats become symbols.

The decision for one input depends on the values at earlier compilations, on the user's marks, and on `dynamic=`. Owns
the marks on tensors (`mark_dynamic` and related functions), the memory of one site (`Dynamic`) and the decision.
"Automatic dynamic": a value is static at first; a size, stride, int or float that differs from its value at an earlier
compilation of the same code is a symbol from then on. 0 and 1 are always static sizes. Does not know guards or graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from dynamo.report.errors import ConstraintViolationError
from eager import Tensor
from eager.base import logs, settings
from eager.base.records import dataclass
from fxir.symbols.shapes import MOST

LOG: Final = logs.component("dynamic")

# Attributes of a tensor that hold its marks: torch's names, because libraries read them.
_DYNAMIC: Final = "_dynamo_dynamic_indices"
_WEAK: Final = "_dynamo_weak_dynamic_indices"
_STATIC: Final = "_dynamo_static_indices"
_RANGE: Final = "_dynamo_dynamic_range"
_ADDRESS: Final = "_dynamo_static_input_type"


@dataclass(frozen=True, slots=True)
class _DimRange:
    """Bounds that the user gave for one dim, inclusive."""

    dim: int
    min: int | None
    max: int | None


def _note(t: Any, attribute: str, index: int | Sequence[int], who: str) -> list[int]:
    if not isinstance(t, Tensor):
        raise TypeError(f"{who}: got a {type(t).__name__}; allowed: a tensor")
    dims = [index] if isinstance(index, int) else list(index)
    for d in dims:
        if not 0 <= d < t.ndim:
            raise IndexError(f"{who}: dim {d} of a tensor of {t.ndim} dims; allowed: 0 to {t.ndim - 1}")
    t.__dict__.setdefault(attribute, set()).update(dims)
    return dims


def mark_dynamic(
    t: Any, index: int | Sequence[int], *, hint_override: int | None = None, min: int | None = None, max: int | None = None,  # noqa: A002
    specialize_on: list[Any] | None = None,
) -> None:  # fmt: skip
    """Compile `t`'s dim `index` (or several) as a symbol from the first time on, with values in min..max.

    Compilation raises ConstraintViolationError if the compiled code depends on the size. Sizes 0 and 1 stay static.
    Raises: TypeError, IndexError; NotImplementedError for hint_override and specialize_on.
    """
    if hint_override is not None or specialize_on:
        raise NotImplementedError("mark_dynamic: hint_override and specialize_on are not implemented; leave them out")
    dims = _note(t, _DYNAMIC, index, "mark_dynamic")
    ranges = t.__dict__.setdefault(_RANGE, set())
    ranges.difference_update([r for r in ranges if r.dim in dims])
    ranges.update(_DimRange(d, min, max) for d in dims)


def maybe_mark_dynamic(t: Any, index: int | Sequence[int]) -> None:
    """As `mark_dynamic`, but a size on which the code depends becomes a constant, and nothing is raised."""
    _note(t, _WEAK, index, "maybe_mark_dynamic")


def mark_unbacked(t: Any, index: int | Sequence[int], *args: Any, **kwargs: Any) -> None:
    """Raises: NotImplementedError."""
    raise NotImplementedError("mark_unbacked: sizes of inputs of which nothing is known are not supported; mark_dynamic makes a size a "
                              "symbol that is at least 2")  # fmt: skip


def mark_static(t: Any, index: int | Sequence[int] | None = None) -> None:
    """Never make `t`'s dim `index` (several; None: any of them) a symbol. Raises: TypeError, IndexError."""
    if index is None:
        index = range(t.ndim) if isinstance(t, Tensor) else ()
    _note(t, _STATIC, list(index) if not isinstance(index, int) else index, "mark_static")


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Declare that `t`, which is not a parameter, keeps its address, like a cache of keys and values.

    In torch, this spares recorded CUDA graphs a copy of the tensor. Compiled code of this project reads every input at
    its current address and stores no address. So there is no copy to spare and, with `guard`, nothing to check: the
    function only sets torch's attribute on the tensor. Raises: TypeError unless `t` is a tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t.__dict__[_ADDRESS] = "guarded" if guard else "unguarded"


@dataclass(frozen=True, slots=True)
class Dim:
    """The decision for one size.

    symbolic: the size is a symbol in lo..hi. alike: the values of the size at every compilation so far; sizes with
    equal values share a symbol. () for a size that shares no symbol. strict: an error if the size cannot be symbolic.
    """

    symbolic: bool
    alike: tuple[int, ...] = ()
    strict: bool = False
    lo: int = 2
    hi: int = MOST
    why: str = ""


_FIXED: Final = Dim(False)


@dataclass(slots=True)
class _Seen:
    """Sizes and strides of one input over the compilations so far; None for a value that changed.

    history: for each size, its values in order.
    """

    sizes: list[int | None]
    strides: list[int | None]
    history: list[list[int]]


@dataclass(slots=True)
class Dynamic:
    """The memory of one site.

    mode: the `dynamic=` of compile(). static: (input, dim) that a stage could not compile as a symbol, with the reason;
    dim -1 for a number. data: whether numbers that depend on data may be symbols.
    """

    mode: bool | None = None
    data: bool = True
    static: dict[tuple[str, int], str] = field(default_factory=dict)
    _tensors: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    _numbers: dict[tuple[type, str], str | None] = field(default_factory=dict)  # as text; None: it changed
    _positions: dict[str, tuple[Any, ...] | None] = field(default_factory=dict)
    _held: dict[int, int | None] = field(default_factory=dict)  # id of the tensor there; None: it changed

    def stays(self, name: str, position: tuple[Any, ...]) -> bool:
        """Whether the iterator at `name` had this position at every compilation so far.

        If not, a loop over it breaks in each iteration, and one variant for each position would not pay off.
        """
        if self._positions.setdefault(name, position) != position:
            self._positions[name] = None
        return self._positions[name] is not None

    def keeps(self, place: int, t: Any) -> bool:
        """Whether a place held this tensor at every compilation so far.

        If not, the program replaces the tensor at each call: the compiled code then fetches it from its place, because
        a variant that holds one tensor would serve one call.

        place: the hash of the source, because the memory of a site keeps no object alive. Two places with equal hashes
        are fetched like replaced tensors.
        """
        if self._held.setdefault(place, id(t)) != id(t):
            self._held[place] = None
        return self._held[place] is not None

    def see(self, name: str, t: Any) -> None:
        """Record the geometry of an input of a new compilation."""
        sizes, strides = tuple(t.shape), tuple(t.stride())
        seen = self._tensors.get((name, len(sizes)))
        if seen is None:
            self._tensors[name, len(sizes)] = _Seen(list(sizes), list(strides), [[n] for n in sizes])
            return
        for d, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            if seen.sizes[d] is not None and seen.sizes[d] != size:
                if LOG.enabled and self._follows():
                    LOG.log(f"{name}.size({d}): {seen.sizes[d]} became {size}: it is a symbol from now on")
                seen.sizes[d] = None
            if seen.history[d][-1] != size:
                seen.history[d].append(size)
            if seen.strides[d] != stride:
                seen.strides[d] = None

    def dims(self, name: str, t: Any) -> list[Dim] | None:
        """The decision for each size; None if all sizes are static."""
        marks = t.__dict__
        seen = self._tensors[name, t.ndim]
        if self.mode is not True and _DYNAMIC not in marks and _WEAK not in marks and None not in seen.sizes:
            return None
        found = [self._dim(name, d, n, seen, marks) for d, n in enumerate(t.shape)]
        return found if any(d.symbolic for d in found) else None

    def _dim(self, name: str, d: int, size: int, seen: _Seen, marks: dict[str, Any]) -> Dim:
        if d in marks.get(_DYNAMIC, ()) and size > 1:
            given = next(r for r in marks[_RANGE] if r.dim == d)
            lo, hi = max(2, given.min or 0), MOST if given.max is None else given.max
            if not lo <= size <= hi:
                raise ConstraintViolationError(f"{size} not in range [{lo}, {hi}] of mark_dynamic({name}, {d})")
            if lo < hi:
                return Dim(True, (), True, lo, hi, "mark_dynamic")
        if size < 2 or d in marks.get(_STATIC, ()) or (name, d) in self.static:
            return _FIXED
        if d in marks.get(_WEAK, ()):
            return Dim(True, why="maybe_mark_dynamic")
        if self.mode is True:
            return Dim(True, tuple(seen.history[d]), why="dynamic=True")
        if self._follows() and seen.sizes[d] is None:
            return Dim(True, tuple(seen.history[d]), why="it changed")
        return _FIXED

    def stride_varied(self, name: str, ndim: int, d: int) -> bool:
        """Whether the stride of dim `d` had another value at an earlier compilation."""
        return self._follows() and (name, -2 - d) not in self.static and self._tensors[name, ndim].strides[d] is None

    def int_is_symbolic(self, name: str, value: int) -> bool:
        """Record the value of an int argument; return whether it is a symbol."""
        if not -(1 << 62) < value < 1 << 62:
            return False
        changed = self._changed(name, value)
        if settings.current().capture.specialize_int:
            return False
        return (name, -1) not in self.static and ((changed and self._follows()) or (self.mode is True and value not in (0, 1)))

    def float_is_symbolic(self, name: str, value: float) -> bool:
        """Record the value of a float argument; return whether it is a symbol.

        As in torch, `dynamic=True` alone does not make a float symbolic. An infinity or NaN is a constant.
        """
        if not (math.isfinite(value) and self._changed(name, value)) or settings.current().capture.specialize_float:
            return False
        return self._follows() and (name, -1) not in self.static

    def _follows(self) -> bool:
        """Whether a value that changes becomes a symbol."""
        return self.mode is True or (self.mode is None and settings.current().capture.automatic_dynamic)

    def _changed(self, name: str, value: int | float) -> bool:
        """Record the number; return whether it had another value at an earlier compilation."""
        key, text = (type(value), name), repr(value)
        known = self._numbers.setdefault(key, text)
        if known is not None and known != text:
            if LOG.enabled and self._follows():
                LOG.log(f"{name}: {known} became {text}: it is a symbol from now on")
            known = self._numbers[key] = None
        return known is None
