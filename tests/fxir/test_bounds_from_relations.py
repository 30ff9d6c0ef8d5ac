"""Bounds from relations: they exclude no value that satisfies the relations, and are exact for monotone relations."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fxir.expr.rules import Expr, Sym, sym
from fxir.symbols.bounds_from_relations import narrowed_bounds
from fxir.symbols.shapes import Relation

S = sym("s", 2, 60)
T = sym("t", 2, 60)
assert isinstance(S, Sym) and isinstance(T, Sym)

sides = st.recursive(
    st.sampled_from([S]) | st.integers(-40, 200).map(lambda n: S * 0 + n),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] % p[1]),
        st.tuples(inner, st.integers(-3, 3)).map(lambda p: p[0] * p[1]),
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["==", "!=", "<", "<="]), sides, sides), min_size=1, max_size=3))
def test_no_value_is_lost(drawn: list[tuple[str, Expr, Expr]]) -> None:
    relations = [Relation(*d) for d in drawn]
    lo, hi = narrowed_bounds([S], relations)[S]
    allowed = [n for n in range(2, 61) if all(r.holds({S: n}) for r in relations)]
    assert 2 <= lo <= hi <= 60
    assert all(lo <= n <= hi for n in allowed)


def test_bounds_of_monotone_relations_are_exact() -> None:
    one = S * 0 + 1
    assert narrowed_bounds([S], [Relation("<", one, S // 8)])[S] == (16, 60)
    assert narrowed_bounds([S], [Relation("!=", (S // 8) * (S // 8), S * 0)])[S] == (8, 60)
    assert narrowed_bounds([S], [Relation("<=", 3 * S + (S // 4), S * 0 + 50)])[S] == (2, 15)
    assert narrowed_bounds([S], [Relation("<", one, S // 8), Relation("<", S, S * 0 + 30)])[S] == (16, 29)


def test_relations_of_several_symbols_say_nothing() -> None:
    assert narrowed_bounds([S, T], [Relation("<", S + 9, T)]) == {S: (2, 60), T: (2, 60)}
