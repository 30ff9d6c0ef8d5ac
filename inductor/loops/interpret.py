"""Runs loops on numpy arrays, one iteration at a time: the oracle for schedules and for printed code.

Loops that promise no order run their iterations in a shuffled order, so a schedule that breaks a dependence gives another result.
A local begins with values that no program stores, so a read of uninitialised memory shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import numpy as np

from eager.base.dtypes import dtype
from eager.optable.loop_api import ArrayLoop
from eager.optable.random import philox, place_of
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.loops.reductions import COMBINES, folded, state_of
from inductor.loops.tree import (
    UNORDERED,
    Accumulate,
    Allocate,
    Block,
    Contract,
    Fold,
    Guard,
    Kernel,
    Loop,
    Place,
    Statement,
    Store,
)

_NUMPY: Final = ArrayLoop(np)
_BINARY: Final = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
                  "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}  # fmt: skip


class Unfilled(AssertionError):
    """The loops read an element of a local before they stored it."""


def interpret(kernel: Kernel, memory: Mapping[str, np.ndarray], symbols: Mapping[E.Sym, int] | None = None, seed: int = 0) -> None:
    """Run the loops. memory: a flat array for every buffer, written in place. symbols: values of the sizes.

    seed: of the order in which unordered loops run. Raises: Unfilled; IndexError for a position outside a buffer.
    """
    with np.errstate(all="ignore"):
        _Interpreter(memory, dict(symbols or {}), Random(seed)).block(kernel.body)


class _Interpreter:
    """The state of a run: memory by name and the values of the axes."""

    def __init__(self, memory: Mapping[str, np.ndarray], axes: dict[E.Sym, int], order: Random) -> None:
        self.memory: dict[str, np.ndarray] = dict(memory)
        self.filled: dict[str, np.ndarray] = {}  # of locals: which elements are stored
        self.axes = axes
        self.order = order

    def block(self, block: Block) -> None:
        for s in block:
            self.run(s)

    def run(self, s: Statement) -> None:
        match s:
            case Loop():
                for i in self._iterations(s):
                    self.axes[s.axis] = i
                    self.block(s.body)
                self.axes.pop(s.axis, None)
            case Guard():
                if self.values((s.condition,))[0]:
                    self.block(s.body)
            case Allocate():
                size = self.size(s.local.size)
                self.memory[s.local.name] = np.zeros(size, s.local.dtype.numpy)
                self.filled[s.local.name] = np.zeros(size, bool)
                self.block(s.body)
            case Store():
                (value,) = self.values((s.value,))
                self.write(s.place, value)
            case Accumulate():
                self.accumulate(s)
            case Fold():
                self.fold(s)
            case Contract():
                self.contract(s)

    def contract(self, s: Contract) -> None:
        """The sums first, then the body: the elements of each in any order."""
        for _ in self._points(s.axes.result):
            total = np.zeros((), np.float64 if s.place.name in self.memory and self.memory[s.place.name].dtype.kind == "f" else np.int64)
            for _ in self._points(s.axes.depth, is_ordered=True):
                a, b = self.values((s.a, s.b))
                total = total + a * b.astype(total.dtype)
            self.write(s.place, total.astype(self.memory[s.place.name].dtype))
        if s.body:
            for _ in self._points(s.axes.result):
                self.block(s.body)

    def _points(self, axes: Sequence[tuple[E.Sym, Size]], is_ordered: bool = False) -> Iterator[None]:
        """Each combination of the values of axes in turn, while the axes have these values."""
        points = list(itertools.product(*(range(self.size(n)) for _, n in axes)))
        if not is_ordered:
            self.order.shuffle(points)
        for point in points:
            self.axes.update({s: i for (s, _), i in zip(axes, point, strict=True)})
            yield
        for s, _ in axes:
            self.axes.pop(s, None)

    def _iterations(self, loop: Loop) -> Sequence[int]:
        n = self.size(loop.extent)
        order = list(range(n))
        if loop.kind in UNORDERED:
            self.order.shuffle(order)
        return order

    def size(self, e: E.IntLike) -> int:
        return e if isinstance(e, int) else E.evaluate(e, self.axes)

    def position(self, name: str, index: E.Expr, indirect: Sequence[tuple[E.Sym, Any]]) -> int:
        at = E.evaluate(index, {**self.axes, **dict(indirect)} if indirect else self.axes)
        if not 0 <= at < self.memory[name].size:
            raise IndexError(f"{name}[{at}]: outside of {self.memory[name].size} elements")
        return at

    def write(self, place: Place, value: Any) -> None:
        at = self._at(place)
        self.memory[place.name][at] = value
        if place.name in self.filled:
            self.filled[place.name][at] = True

    def _at(self, place: Place) -> int:
        bound = [(s, int(v)) for (s, _), v in zip(place.indirect, self.values([v for _, v in place.indirect]), strict=True)]
        return self.position(place.name, place.index, bound)

    def accumulate(self, s: Accumulate) -> None:
        old = state_of(s)
        new = self.values(COMBINES[s.combine].merge(old, s.values))
        for place, value in zip(s.places, new, strict=True):
            self.write(place, value)

    def fold(self, s: Fold) -> None:
        for k in range(self.size(s.parts[0].size)):
            parts = tuple(ir.load(x.name, k, x.dtype) for x in s.parts)
            self.accumulate(Accumulate(s.places, *folded(s.combine, parts, s.dtype)))

    # -- values ----------------------------------------------------------------------------------------------------
    def values(self, roots: Sequence[ir.Value]) -> list[Any]:
        """The numbers that `roots` have now. Loads under a mask that does not hold give 0."""
        done: dict[ir.Value, Any] = {}
        for v in ir.walk(roots):
            done[v] = self.value(v, done)
        return [done[v] for v in roots]

    def value(self, v: ir.Value, done: Mapping[ir.Value, Any]) -> Any:
        match v:
            case ir.Const():
                return _scalar(v.value, v.dtype)
            case ir.Index():
                return np.int64(E.evaluate(v.expr, self.axes))
            case ir.Load():
                if v.mask is not None and not done[v.mask]:
                    return _scalar(0, v.dtype)
                at = self.position(v.buffer, v.index, [(s, int(done[x])) for s, x in v.indirect])
                if v.buffer in self.filled and not self.filled[v.buffer][at]:
                    raise Unfilled(f"{v.buffer}[{at}] is read before it is stored")
                return self.memory[v.buffer][at]
            case ir.Op():
                return operate(v.name, [done[a] for a in v.args], v.dtype)
        raise TypeError(f"interpret: {type(v).__name__} is not a value of loops")


def _scalar(value: Any, of: dtype) -> Any:
    return np.asarray(value).astype(of.numpy)[()]


def operate(name: str, args: Sequence[Any], of: dtype) -> Any:
    """One operation of `definitions.OPS` on numpy scalars."""
    if name == "cast":
        return _NUMPY.cast(np.asarray(args[0]), of)[()]
    if name == "where":
        return args[1] if args[0] else args[2]
    if name in ("check_index", "wrap_index"):
        index, size = int(args[0]), int(args[1])
        if name == "wrap_index" and -size <= index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError(f"index {index} is outside of {size}")
        return np.int64(index)
    if name in _BINARY:
        return _scalar(_BINARY[name](*args), of)
    if name == "neg":
        return _scalar(np.negative(args[0]), of)
    if name == "div":
        return _scalar(np.true_divide(*args), of)
    if name == "philox":
        key_low, key_high, offset, i, word, words = map(int, args)
        counter, first = place_of(i, words)
        return _scalar(philox(np, key_low | key_high << 32, (offset + counter) % (1 << 64), 1)[first + word, 0], of)
    return _scalar(getattr(_NUMPY, name)(*args), of)


