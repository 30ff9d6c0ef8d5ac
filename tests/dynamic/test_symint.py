"""SymInt and its environment: arithmetic keeps expressions, and each decision on a value is proved or recorded as a guard."""

from __future__ import annotations

import math
import operator
import random

import pytest

from eager import SymInt
from eager.base.spec import contiguous_strides, is_contiguous
from fxir.expr.rules import Int, evaluate
from fxir.symbols.shapes import LateDecision, ShapeEnv, bound, lifted, plain, simplified, symbols_in

BINARY = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]


def env_of(*hints: int, lo: int = 2) -> tuple[ShapeEnv, list[SymInt]]:
    env = ShapeEnv()
    return env, [env.create(h, None, lo) for h in hints]


def notes(env: ShapeEnv) -> list[str]:
    return [str(r) for r in env.relations]


@pytest.mark.parametrize("seed", range(20))
def test_random_arithmetic_is_pythons_at_every_value(seed: int) -> None:
    pick = random.Random(seed)
    env, symbols = env_of(5, 7, 12)
    values = {s.expr: pick.randint(2, 40) for s in symbols}
    terms: list[tuple[object, int]] = [(s, values[s.expr]) for s in symbols] + [(k, k) for k in (1, 2, 3, 8)]
    for _ in range(30):
        fn = pick.choice(BINARY)
        (a, x), (b, y) = pick.choice(terms), pick.choice(terms)
        if fn in (operator.floordiv, operator.mod) and (y == 0 or not isinstance(b, int)):
            continue
        terms.append((fn(a, b), fn(x, y)))
    for e, expected in terms:
        assert (evaluate(e.expr, values) if isinstance(e, SymInt) else e) == expected
        if isinstance(e, SymInt):
            assert not isinstance(e.expr, Int)
            assert e.hint == evaluate(e.expr, {s.expr: s.hint for s in symbols})
    assert not env.relations


def test_provable_relations_need_no_record() -> None:
    env, (a, b) = env_of(5, 7)
    assert a != 0 and a != 1 and a > 1 and a >= 2 and not a < 2 and bool(a)
    assert a * b > b and a * b >= a and a + 1 > a and a * b != 0 and a * 2 != 7 and max(a, 1) is a
    assert (a * b * 4) % b == 0 and a * b * 4 // b == a * 4 and math.prod((a, 3, b)) == b * 3 * a
    assert contiguous_strides((a, 3, b)) == (b * 3, b, 1) and is_contiguous((a, 3, b), (b * 3, b, 1))
    assert not env.relations


@pytest.mark.parametrize(("decide", "noted"), [
    (lambda a, b: a == b, "s1 != s0"),
    (lambda a, b: a < b, "s0 < s1"),
    (lambda a, b: a >= b, "s0 < s1"),
    (lambda a, b: a == 5, "s0 == 5"),
    (lambda a, b: a % 2 == 1, "s0 % 2 == 1"),
    (lambda a, b: int(a), "s0 == 5"),
    (lambda a, b: range(a), "s0 == 5"),
    (lambda a, b: {a: 1}, "s0 == 5"),
    (lambda a, b: f"{a}", "s0 == 5"),
    (lambda a, b: str(a), "s0 == 5"),
    (lambda a, b: float(a), "s0 == 5"),
    (lambda a, b: [0] * a, "s0 == 5"),
    (lambda a, b: 2**a, "s0 == 5"),
    (lambda a, b: a & 3, "s0 == 5"),
    (lambda a, b: (a + b) // 2 == 6, "(s0 + s1) // 2 == 6"),
])  # fmt: skip
def test_unprovable_relations_are_recorded_once(decide: object, noted: str) -> None:
    env, (a, b) = env_of(5, 7)
    decide(a, b)  # type: ignore[operator]
    before = notes(env)
    decide(a, b)  # type: ignore[operator]
    assert notes(env) == before and len(before) == 1
    left, right = sorted(before[0].replace("!=", "==").split(" == ")), sorted(noted.replace("!=", "==").split(" == "))
    assert left == right


def test_equal_symbols_become_one() -> None:
    env, (a, b) = env_of(6, 6)
    assert a == b
    assert plain(b * 2 + a) is plain(a * 3) and simplified((b.expr, 4), env) == (a.expr, 4)
    assert a * 3 == 18  # this decision makes both symbols numbers
    assert env.wrap(b.expr) == 6 and type(env.wrap(b.expr)) is int and plain([a, {"k": (b,)}]) == [6, {"k": (6,)}]


def test_conversions_between_expressions_and_values() -> None:
    env, (a, b) = env_of(5, 7)
    held = plain((a * 2, [b, 3], slice(a, None)))
    assert symbols_in(held) == {a.expr, b.expr} and bound(held, {a.expr: 4, b.expr: 9}) == (8, [9, 3], slice(4, None))
    assert plain(lifted(held, env)) == held and plain(bound(held, {a.expr: b, b.expr: 2})) == (plain(b * 2), [2, 3], slice(b.expr, None))


def test_division_by_a_symbol_that_is_zero_is_an_error() -> None:
    env, (n,) = env_of(0, lo=-10)
    for fn in (operator.floordiv, operator.mod, divmod):
        with pytest.raises(ZeroDivisionError):
            fn(5, n)
        with pytest.raises(ZeroDivisionError):
            fn(env.create(3, None), 0)
    assert notes(env) == ["s0 == 0"]


def test_operands_of_other_types_behave_as_for_an_int() -> None:
    _, (a,) = env_of(5)
    for fn in (*BINARY, operator.lt, operator.truediv, operator.pow):
        with pytest.raises(TypeError):
            fn(a, None)
    assert a != None and a != "5" and a != (5,)  # noqa: E711 - the test is about the operator


def test_nothing_is_decided_after_the_end() -> None:
    env, (a,) = env_of(5)
    env.closed = True
    assert a > 1
    with pytest.raises(LateDecision):
        _ = a > 3
