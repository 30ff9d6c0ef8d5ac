"""OrderedSet has the operations and results of a set, in the order of insertion."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eager.utils._ordered_set import OrderedSet

ELEMENTS = st.lists(st.integers(0, 8), max_size=10)


@given(ELEMENTS, ELEMENTS)
def test_operations_agree_with_set_operations(a: list[int], b: list[int]) -> None:
    s, t = OrderedSet(a), OrderedSet(b)
    for got, expected in ((s | t, set(a) | set(b)), (s & t, set(a) & set(b)), (s - t, set(a) - set(b)), (s ^ t, set(a) ^ set(b)),
                          (s.union(b, [9]), {*a, *b, 9}), (s.difference(b, a[:1]), set(a) - set(b) - set(a[:1]))):  # fmt: skip
        assert got == expected and isinstance(got, OrderedSet) and len(got) == len(expected)
    assert s.issubset(b) == set(a).issubset(b) == (s <= t) and s.issuperset(b) == set(a).issuperset(b) == (s >= t)
    assert s.isdisjoint(b) == set(a).isdisjoint(b) and (s == t) == (set(a) == set(b))
    for name in ("update", "intersection_update", "difference_update", "symmetric_difference_update"):
        mine, plain = OrderedSet(a), set(a)
        getattr(mine, name)(b)
        getattr(plain, name)(b)
        assert mine == plain


@given(ELEMENTS, ELEMENTS)
def test_the_order_is_the_order_of_insertion(a: list[int], b: list[int]) -> None:
    assert list(OrderedSet(a)) == list(dict.fromkeys(a))
    assert list(OrderedSet(a) | b) == list(dict.fromkeys(a + b))
    assert list(OrderedSet(a) & b) == [x for x in dict.fromkeys(a) if x in b]
    assert list(reversed(OrderedSet(a))) == list(dict.fromkeys(a))[::-1]


def test_taking_out() -> None:
    s = OrderedSet([3, 1, 2, 3])
    assert repr(s) == "OrderedSet([3, 1, 2])" and s.pop() == 2
    s.discard(9)
    s.remove(3)
    with pytest.raises(KeyError):
        s.remove(3)
    assert list(s) == [1] and s.pop() == 1
    with pytest.raises(KeyError, match="empty"):
        s.pop()
