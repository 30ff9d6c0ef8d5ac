"""OrderedSet: a set that keeps insertion order."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, MutableSet, Reversible
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set with the interface of the built-in set, iterated in insertion order. `pop` removes the last element."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] = ()) -> None:
        self._dict = dict.fromkeys(iterable)

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, elem: T) -> None:
        """Add an element at the end, unless it is already present."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Remove an element if it is present."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Remove all elements."""
        self._dict.clear()

    def pop(self) -> T:
        """Remove and return the last element. Raises: KeyError if the set is empty."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """A shallow copy."""
        return OrderedSet(self)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of all `others`."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """This set's elements, followed by the new elements of `others`."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that are also in all `others`."""
        kept = [_members(other) for other in others]
        return OrderedSet(x for x in self if all(x in other for other in kept))

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Keep only the elements that are also in all `others`."""
        self._dict = self.intersection(*others)._dict

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements that are in none of `others`."""
        left_out = [_members(other) for other in others]
        return OrderedSet(x for x in self if not any(x in other for other in left_out))

    def difference_update(self, *others: Iterable[T]) -> None:
        """Remove the elements of all `others`."""
        self._dict = self.difference(*others)._dict

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """The elements that are in exactly one of the two sets, this set's first."""
        second = OrderedSet(other)
        return self.difference(second).union(second.difference(self))

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Keep the elements that are in exactly one of the two sets."""
        self._dict = self.symmetric_difference(other)._dict

    def issubset(self, other: Iterable[T]) -> bool:
        """Whether `other` has every element of this set."""
        members = _members(other)
        return all(x in members for x in self)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Whether this set has every element of `other`."""
        return all(x in self._dict for x in other)

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Whether no element is in both sets."""
        return not any(x in self._dict for x in other)

    # The base class's operators, accepting any iterable on the right; this set's elements come first.
    def __or__(self, other: Iterable[Any]) -> OrderedSet[Any]:
        return self.union(other)

    def __and__(self, other: Iterable[Any]) -> OrderedSet[Any]:
        return self.intersection(other)

    def __sub__(self, other: Iterable[Any]) -> OrderedSet[Any]:
        return self.difference(other)

    def __xor__(self, other: Iterable[Any]) -> OrderedSet[Any]:
        return self.symmetric_difference(other)


def _members(x: Iterable[T]) -> Collection[T]:
    return x if isinstance(x, (OrderedSet, set, frozenset, dict)) else set(x)
