"""Iteration over captured values: iter() and next(), the iterators of containers, and sorted().

Loops are unrolled: every call of next() counts towards one limit.
"""

from __future__ import annotations

import operator

from dynamo.policy import callees
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant, is_none
from dynamo.values.iterators import DictIterator, RangeIterator, ReversedIterator, SequenceIterator, TextIterator
from dynamo.values.mappings import DictValue, SetValue, constants_of
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.sequences import ListValue, Sequence, TupleValue
from dynamo.values.set_order import History
from eager.base.records import dataclass


@dataclass(eq=False)
class Iteration:
    """Owns the number of unrolled iterations; most: its limit."""

    cap: Machine
    most: int
    unrolled: int = 0

    def iter(self, value: Value) -> Value:
        """iter(value)"""
        return self.cap.realize(value).iterate(self.cap)

    def next(self, iterator: Value) -> Value | None:
        """The next item; None at the end. Counts towards the unroll limit, except in loops of optimizers."""
        if callees.is_unrolled(self.cap.frames.running[-1].code):
            self.unrolled += 1
        if self.unrolled > self.most:
            raise Unsupported(causes.UNROLL_LIMIT, f"more than {self.most} iterations")
        return self.cap.realize(iterator).next(self.cap)

    def exhaust(self, iterator: Value) -> list[Value]:
        """list(iterator)"""
        items = []
        while (item := self.next(iterator)) is not None:
            items.append(item)
        return items

    def unpack(self, value: Value) -> list[Value]:
        """list(value)"""
        return self.cap.realize(value).unpack(self.cap)

    def sequence_iterator(self, items: list[Value], owner: Value) -> SequenceIterator:
        made = SequenceIterator(items, owner)
        made.born = self.cap.steps
        return made

    def range_iterator(self, value: range) -> Value:
        return RangeIterator(value)

    def text_iterator(self, text: Constant, backwards: bool = False, owner: Value | None = None) -> Value:
        return TextIterator(text, backwards, owner)

    def reversed_iterator(self, owner: ListValue | TupleValue) -> Value:
        return ReversedIterator(owner)

    def dict_iterator(self, owner: DictValue, kind: str, backwards: bool = False) -> Value:
        return DictIterator(owner, kind, backwards=backwards)

    def getitem_iterator(self, obj: Value) -> Value:
        raise Unsupported(causes.OPAQUE_ITERATOR, f"iteration of {obj.describe()} by __getitem__")

    def make_tuple(self, items: list[Value]) -> TupleValue:
        return TupleValue(list(items))

    def set_of(self, items: list[Value]) -> SetValue:
        new = SetValue()
        for item in map(self.cap.realize, items):
            new.entries.setdefault(self.cap.operators.hash_key(item), item)
        known = constants_of(self.cap, items)
        new.made, new.born = None if known is None else History(set, (known,)), self.cap.steps
        return new

    def sorted(self, items: list[Value], kwargs: dict[str, Value]) -> list[Value]:
        """sorted(items, key=, reverse=) for keys whose order depends on constants only."""
        key_fn = kwargs.get("key")
        keyed = items if key_fn is None or is_none(self.cap.realize(key_fn)) else [self.cap.call(key_fn, [i], {}) for i in items]
        reverse = "reverse" in kwargs and self.cap.truth(kwargs["reverse"])
        try:
            keys = [self.cap.realize(k).as_constant() for k in keyed]
        except NotConstant:
            if len(items) < 2:
                return items
            if not all(isinstance(self.cap.realize(k), Sequence | Constant) for k in keyed):
                raise Unsupported(causes.DATA_DEPENDENT_VALUE, "sorting by values that are not constant") from None
            keys = [_Compared(self.cap, k) for k in keyed]
        order = self.cap.host(sorted, range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[i] for i in order]



class _Compared:
    """A captured key for the host's sort. The first items of tuples and lists often decide the order."""

    def __init__(self, cap: Machine, key: Value) -> None:
        self.cap = cap
        self.key = key

    def __lt__(self, other: _Compared) -> bool:
        return self.cap.truth(self.cap.operators.compare(operator.lt, self.key, other.key))
