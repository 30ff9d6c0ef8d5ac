"""Iterators that the captured program makes: over sequences, ranges and dicts, and the lazy builtins over other
iterators.

Each can be rebuilt in its current state, so that a loop can continue after a graph break.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, Final

from dynamo.guards.sources import Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant
from dynamo.values.mappings import DictValue, SetValue
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.writer import Writer


class Iterator(Value):
    """Base class: iter() of an iterator is the iterator.

    Of an iterator from outside: steps, the number of calls of next(); covered, the calls among them by enumerate() or
    zip(), whose steps repeat them; depth, the nesting of iterators below it.
    """

    kind: type = type(iter(()))
    steps = 0
    covered = 0
    depth = 0

    def step(self, cap: Machine) -> None:
        """Count a call of next()."""
        cap.effects.change(self)
        if self.source is not None:
            self.born = cap.steps if self.born < 0 else self.born
            self.steps += 1

    def replay(self, cg: Writer) -> None:
        """Write the statements that advance an existing iterator to its present position, before any other write."""
        if self.steps > self.covered:
            cg.statement(f"{cg.helper('stepped')}({cg.source_of(self)}, {self.steps - self.covered})")

    def _replay_covering(self, cg: Writer, inner: list[Value]) -> None:
        """replay() of an iterator over other iterators."""
        for iterator in inner:
            if isinstance(iterator, SequenceIterator) and iterator.covered > iterator.left:
                cg.impossible(self, "a list that grew while enumerate() or zip() iterated over it")
        Iterator.replay(self, cg)

    def python_type(self) -> type:
        return self.kind

    def truth(self, cap: Machine) -> bool:
        return True

    def iterate(self, cap: Machine) -> Value:
        return self

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__iter__":
            return self
        if name == "__next__":
            found = cap.iteration.next(self)
            return found if found is not None else cap.raise_(StopIteration)
        raise Unsupported(causes.OPAQUE_ITERATOR, f"iterator.{name}()")


_EMPTY: Final[dict[str, Any]] = {
    "iter(())": iter(()), "iter([])": iter([]), "reversed(())": reversed(()), "reversed([])": reversed([]),
    **{f"{way.__name__}({{}}.{what}())": way(getattr({}, what)()) for way in (iter, reversed) for what in ("keys", "values", "items")},
    "iter(set())": iter(set()),
}  # fmt: skip
_FINISHED: Final = {type(iterator): text for text, iterator in _EMPTY.items()}


def _finished(cg: Writer, kind: type) -> str:
    """An exhausted iterator of `kind` or of a similar class."""
    if kind is type(iter(collections.OrderedDict())):
        return f"iter({cg.bind(collections.OrderedDict, 'OrderedDict')}())"
    return _FINISHED.get(kind, "iter(())")


class SequenceIterator(Iterator):
    """iter() of a sequence; like Python's, an iterator over a list sees later changes.

    stands_for: an iterator that Python code implements.
    """

    stands_for = ""

    def __init__(self, items: list[Value], owner: Value, source: Source | None = None, at: int = 0, left: int = 0) -> None:
        self.items = items
        self.owner = owner
        self.source = source
        self.at = at
        self.left = left  # items left in an existing list when the capture began
        self.done = False
        self.size = len(owner.entries) if isinstance(owner, SetValue) else -1
        self.version = owner.version if isinstance(owner, ListValue) else len(owner.calls) if isinstance(owner, SetValue) else 0
        if isinstance(owner, SetValue) or (isinstance(owner, ListValue) and owner.items is items):
            self.kind = type(iter(owner.cls()))
        else:
            self.kind = type(iter(()))

    def next(self, cap: Machine) -> Value | None:
        if isinstance(self.owner, SetValue) and not self.done and len(self.owner.entries) != self.size:
            cap.raise_(RuntimeError, "Set changed size during iteration")
        if isinstance(self.owner, ListValue) and self.owner.cls is not list and self.owner.version != self.version:
            cap.raise_(RuntimeError, "deque mutated during iteration")
        self.step(cap)
        if self.done or self.at >= len(self.items):
            self.done = True
            return None
        self.at += 1
        return self.items[self.at - 1]

    def replay(self, cg: Writer) -> None:
        if self.done:
            cg.statement(f"{cg.helper('exhausted')}({cg.source_of(self)})")
        elif self.steps > self.left:
            cg.impossible(self, "an iterator over a list that grew")
        else:
            cg.statement(f"{cg.helper('advanced')}({cg.source_of(self)}, {self.at})")

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        if self.done:
            return _finished(cg, self.kind)
        if isinstance(self.owner, ListValue) and self.owner.cls is not list and self.owner.version != self.version:
            cg.impossible(self, "an iterator over a deque that has changed")
        if self.stands_for:
            cg.impossible(self, self.stands_for)
        if isinstance(self.owner, SetValue):
            if len(self.owner.calls) != self.version:
                cg.impossible(self, "an iterator over a set that has changed")
            start = f"iter({cg.filled(self.owner)})"
            return f"{cg.helper('skipped')}({start}, {self.at})" if self.at else start
        live = isinstance(self.owner, ListValue | TupleValue) and self.owner.items is self.items
        if live:
            owner: Any = self.owner
            start = owner.iterator(cg)
            go_on = "advanced" if self.kind in (type(iter([])), type(iter(()))) else "skipped"
            return f"{cg.helper(go_on)}({start}, {self.at})" if self.at else str(start)
        rest = "".join(cg.value(v) + ", " for v in self.items[self.at :])
        return f"iter(({rest}))"


class TextIterator(SequenceIterator):
    """iter() or reversed() of a str or of bytes. owner: the instance of a subclass that holds the text."""

    def __init__(self, text: Constant, backwards: bool = False, owner: Value | None = None) -> None:
        value = text.value
        items: list[Value] = [Constant(value[i : i + 1] if isinstance(value, str) else value[i]) for i in range(len(value))]
        super().__init__(items[::-1] if backwards else items, text)
        self.given = text if owner is None else owner
        self.way = reversed if backwards else iter
        self.kind = type(self.way(value)) if owner is None else type(iter("\u20ac"))  # the layout of the text decides

    def reconstruct(self, cg: Writer) -> str:
        start = f"{self.way.__name__}({cg.value(self.given)})"  # the text decides between two classes
        return f"{cg.helper('skipped')}({start}, {self.at})" if self.at else start


class ReversedIterator(Iterator):
    """reversed() of a list or tuple: it starts at the end of the list at its creation, and sees later changes."""

    def __init__(self, owner: ListValue | TupleValue) -> None:
        self.owner = owner
        self.at = len(owner.items) - 1
        self.kind = type(reversed(owner.cls())) if owner.cls is list else reversed

    def next(self, cap: Machine) -> Value | None:
        cap.effects.change(self)
        if not 0 <= self.at < len(self.owner.items):
            self.at = -1
            return None
        self.at -= 1
        return self.owner.items[self.at + 1]

    def reconstruct(self, cg: Writer) -> str:
        if self.at < 0:
            return _finished(cg, self.kind)
        return f"{cg.helper('advanced')}(reversed({cg.filled(self.owner)}), {self.at})"


class RangeIterator(Iterator):
    """iter(range(...))"""

    def __init__(self, value: range, source: Source | None = None) -> None:
        self.value = value
        self.source = source
        self.kind = type(iter(value))  # ranges of huge numbers have another class
        self.at = 0

    def next(self, cap: Machine) -> Value | None:
        self.step(cap)
        if self.at >= len(self.value):
            return None
        self.at += 1
        return Constant(self.value[self.at - 1])

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"iter({self.value[self.at :]!r})"


class DictIterator(Iterator):
    """iter() of a dict or of one of its views."""

    def __init__(self, owner: DictValue, kind: str, source: Source | None = None, at: int = 0, backwards: bool = False) -> None:
        self.owner = owner
        self.what = kind
        self.source = source
        self.way: Any = reversed if backwards else iter
        # The host's iterator over the host's dict: it sees the same changes, and raises the same errors as Python's.
        self.items = self.way(owner.entries.values())
        for _ in range(at):
            next(self.items)
        self.keys = list(owner.entries) if source is not None else []
        self.at = at
        self.done = False
        ordered = issubclass(owner.cls, collections.OrderedDict)
        self.kind = type(self.way(getattr(collections.OrderedDict() if ordered else {}, kind)()))

    def next(self, cap: Machine) -> Value | None:
        self.step(cap)
        found = cap.host(next, self.items, None)
        if found is None:
            self.done = True
            return None
        self.at += 1
        k, v = found
        if self.what == "items":
            return cap.iteration.make_tuple([k, v])
        return k if self.what == "keys" else v

    def replay(self, cg: Writer) -> None:
        if self.keys != list(self.owner.entries):
            cg.impossible(self, "an iterator over a dict whose keys changed")
        super().replay(cg)

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        if self.done:
            return _finished(cg, self.kind)
        start = f"{self.way.__name__}({self.owner.view(cg, self.what)})"
        return start if self.at == 0 else f"{cg.helper('skipped')}({start}, {self.at})"


def _depth(inner: list[Value]) -> int:
    return 1 + max((i.depth for i in inner if isinstance(i, Iterator)), default=0)


def _cover(outer: Iterator, inner: list[Value]) -> None:
    """Record that a step of `outer`, which exists outside, is a step of each of `inner`."""
    if outer.source is not None:
        for iterator in inner:
            assert isinstance(iterator, Iterator)
            iterator.covered += 1


class EnumerateIterator(Iterator):
    """enumerate(inner, start)"""

    kind = enumerate

    def __init__(self, inner: Value, start: int, source: Source | None = None) -> None:
        self.inner = inner
        self.at = start
        self.source = source
        self.depth = _depth([inner])

    def next(self, cap: Machine) -> Value | None:
        item = cap.iteration.next(self.inner)
        if item is None:
            return None
        self.step(cap)
        _cover(self, [self.inner])
        self.at += 1
        return TupleValue([Constant(self.at - 1), item])

    def replay(self, cg: Writer) -> None:
        self._replay_covering(cg, [self.inner])

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"enumerate({cg.value(self.inner)}, {self.at})"


class ZipIterator(Iterator):
    """zip(*inner, strict=strict)"""

    kind = zip

    def __init__(self, inner: list[Value], strict: bool, source: Source | None = None) -> None:
        self.inner = inner
        self.strict = strict
        self.source = source
        self.depth = _depth(inner)

    def next(self, cap: Machine) -> Value | None:
        found: list[Value] = []
        for i, iterator in enumerate(self.inner):
            item = cap.iteration.next(iterator)
            if item is None:
                if self.strict:
                    self._check(cap, i)
                return None
            found.append(item)
        if self.source is not None:
            self.step(cap)
            _cover(self, self.inner)
        return TupleValue(found) if self.inner else None

    def replay(self, cg: Writer) -> None:
        self._replay_covering(cg, self.inner)

    def _check(self, cap: Machine, i: int) -> None:
        plural = "argument 1" if i == 1 else f"arguments 1-{i}"
        if i > 0:
            cap.raise_(ValueError, f"zip() argument {i + 1} is shorter than {plural}")
        for j, iterator in enumerate(self.inner[1:], 1):
            if cap.iteration.next(iterator) is not None:
                plural = "argument 1" if j == 1 else f"arguments 1-{j}"
                cap.raise_(ValueError, f"zip() argument {j + 1} is longer than {plural}")

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        inner = "".join(cg.value(v) + ", " for v in self.inner)
        return f"zip({inner}strict={self.strict})"


class MapIterator(Iterator):
    """map(fn, *inner)"""

    kind = map

    def __init__(self, fn: Value, inner: list[Value]) -> None:
        self.fn = fn
        self.inner = inner

    def next(self, cap: Machine) -> Value | None:
        args: list[Value] = []
        for iterator in self.inner:
            item = cap.iteration.next(iterator)
            if item is None:
                return None
            args.append(item)
        return cap.call(self.fn, args, {})

    def reconstruct(self, cg: Writer) -> str:
        return f"map({cg.value(self.fn)}, {', '.join(cg.value(v) for v in self.inner)})"


class FilterIterator(Iterator):
    """filter(fn, inner); with fn None, it yields the true items."""

    kind = filter

    def __init__(self, fn: Value, inner: Value) -> None:
        self.fn = fn
        self.inner = inner

    def next(self, cap: Machine) -> Value | None:
        while (item := cap.iteration.next(self.inner)) is not None:
            keep = item if self.fn.is_constant and self.fn.as_constant() is None else cap.call(self.fn, [item], {})
            if cap.truth(keep):
                return item
        return None

    def reconstruct(self, cg: Writer) -> str:
        return f"filter({cg.value(self.fn)}, {cg.value(self.inner)})"


class CallIterator(Iterator):
    """iter(fn, sentinel)"""

    kind = type(iter(int, 1))

    def __init__(self, fn: Value, sentinel: Value) -> None:
        self.fn = fn
        self.sentinel = sentinel
        self.done = False

    def next(self, cap: Machine) -> Value | None:
        if self.done:
            return None
        item = cap.call(self.fn, [], {})
        if cap.operators.equal(item, self.sentinel):
            cap.effects.change(self)
            self.done = True
            return None
        return item

    def reconstruct(self, cg: Writer) -> str:
        return "iter(())" if self.done else f"iter({cg.value(self.fn)}, {cg.value(self.sentinel)})"


class HostIterator(Iterator):
    """An itertools object over captured values, run by a host generator; cannot be rebuilt once started."""

    def __init__(self, kind: type, make: Callable[[Machine], Any], born: int) -> None:
        self.kind = kind
        self.born = born
        self._make = make
        self._running: Any = None

    def next(self, cap: Machine) -> Value | None:
        cap.effects.change(self)
        if self._running is None:
            self._running = self._make(cap)
        if getattr(self._running, "gi_running", False):
            raise Unsupported(causes.OPAQUE_ITERATOR, f"an {self.kind.__name__} object that calls its own next()")
        return next(self._running, None)

    def reconstruct(self, cg: Writer) -> str:
        cg.impossible(self, f"an {self.kind.__name__} object in use is needed after a graph break")
