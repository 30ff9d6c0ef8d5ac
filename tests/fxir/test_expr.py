"""Integer expressions against brute force: every law, every printer, bounds, interning."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxir.expr import rules as E
from fxir.expr.printing import C_HELPERS, TRITON, C, to_c, to_python, to_source
from fxir.expr.rules import (
    FloorDiv,
    Max,
    Min,
    Mod,
    ceildiv,
    evaluate,
    integer,
    maximum,
    minimum,
    strides_of,
    substitute,
    sym,
)

ROOT = Path(__file__).resolve().parents[2]

# name -> (lo, hi, multiple); small enough to try every combination of values
RANGES = {"i": (0, 5, 1), "j": (0, 3, 1), "k": (-3, 4, 1), "n": (1, 4, 1), "t": (0, 16, 8)}
SYMS = {name: sym(name, lo, hi, mult) for name, (lo, hi, mult) in RANGES.items()}


def floor_div(a, b):
    return a // b


def modulo(a, b):
    return a % b


class Tree:
    """An unsimplified expression: the reference evaluates it, `build` makes the simplified one."""

    def __init__(self, op, *args):
        self.op, self.args = op, args

    def value(self, env):
        if self.op == "sym":
            return env[self.args[0]]
        if self.op == "int":
            return self.args[0]
        v = [a.value(env) for a in self.args]
        return {
            "+": lambda: v[0] + v[1],
            "-": lambda: v[0] - v[1],
            "*": lambda: v[0] * v[1],
            "//": lambda: v[0] // v[1],
            "%": lambda: v[0] % v[1],
            "min": lambda: min(v),
            "max": lambda: max(v),
        }[self.op]()

    def build(self):
        if self.op == "sym":
            return SYMS[self.args[0]]
        if self.op == "int":
            return integer(self.args[0])
        v = [a.build() for a in self.args]
        return {
            "+": E.add,
            "-": lambda a, b: a - b,
            "*": E.mul,
            "//": E.floordiv,
            "%": E.mod,
            "min": E.minimum,
            "max": E.maximum,
        }[self.op](*v)

    def names(self):
        if self.op == "sym":
            return {self.args[0]}
        return set().union(*(a.names() for a in self.args if isinstance(a, Tree)), set())

    def __repr__(self):
        return f"{self.op}({', '.join(map(repr, self.args))})"


divisors = st.one_of(
    st.integers(1, 12).map(lambda v: Tree("int", v)),
    st.sampled_from([-4, -3]).map(lambda v: Tree("int", v)),
    st.just(Tree("sym", "n")),
    st.integers(1, 4).map(lambda c: Tree("*", Tree("sym", "n"), Tree("int", c))),
)
leaves = st.one_of(
    st.sampled_from(sorted(SYMS)).map(lambda n: Tree("sym", n)), st.integers(-20, 20).map(lambda v: Tree("int", v))
)
coefs = st.sampled_from([-2, 1, 2, 3, 4, 6, 8, 12])
scaled = st.tuples(coefs, leaves).map(lambda p: Tree("*", Tree("int", p[0]), p[1]))


def _grow(inner):
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: Tree("+", *p)),
        st.tuples(inner, inner).map(lambda p: Tree("-", *p)),
        st.tuples(inner, leaves).map(lambda p: Tree("*", *p)),
        st.tuples(inner, divisors).map(lambda p: Tree("//", *p)),
        st.tuples(inner, divisors).map(lambda p: Tree("%", *p)),
        st.tuples(inner, inner).map(lambda p: Tree("min", *p)),
        st.tuples(inner, inner).map(lambda p: Tree("max", *p)),
    )


trees = st.recursive(st.one_of(leaves, scaled), _grow, max_leaves=8)


def envs(names, limit=400):
    axes = [range(RANGES[n][0], RANGES[n][1] + 1, 1) for n in sorted(names)]
    points = [
        dict(zip(sorted(names), p, strict=True))
        for p in itertools.product(*axes)
        if all(v % RANGES[n][2] == 0 for n, v in zip(sorted(names), p, strict=True))
    ]
    return points if len(points) <= limit else random.Random(len(points)).sample(points, limit)


@settings(max_examples=400, deadline=None)
@given(trees)
def test_simplified_value_bounds_multiple_and_text_agree_with_brute_force(tree):
    e = tree.build()
    code = compile(to_python(e), "<expr>", "eval")
    for env in envs(tree.names()):
        want = tree.value(env)
        assert evaluate(e, env) == want
        assert e.lo <= want <= e.hi
        assert want % e.multiple_of == 0 if e.multiple_of else want == 0
        assert eval(code, {"min": min, "max": max}, dict(env)) == want


@settings(max_examples=150, deadline=None)
@given(trees, st.sampled_from(sorted(SYMS)), trees)
def test_substitution_agrees_with_evaluation(tree, name, value):
    # The bounds of the replaced symbol are a promise, so only values within them are compared.
    e, v = tree.build(), value.build()
    lo, hi, mult = RANGES[name]
    kept = []
    for env in envs(tree.names() | value.names(), 100):
        x = value.value(env)
        if lo <= x <= hi and x % mult == 0:
            kept.append((env, tree.value({**env, name: x})))
    try:
        replaced = substitute(e, {SYMS[name]: v})
    except ZeroDivisionError:
        assert not kept, "only a value outside of the bounds may divide by zero"
        return
    for env, want in kept:
        assert evaluate(replaced, env) == want


@settings(max_examples=150, deadline=None)
@given(trees)
def test_interned_identity_survives_copy_pickle_and_a_fresh_build(tree):
    e = tree.build()
    assert copy.deepcopy(e) is e
    assert pickle.loads(pickle.dumps(e)) is e
    E.clear_memo()
    assert tree.build() is e


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["i", "j", "n"]), st.integers(-5, 5)), max_size=6), st.integers(-9, 9))
def test_sums_have_one_form_for_every_order(terms, const):
    forward = integer(const)
    for n, c in terms:
        forward = forward + SYMS[n] * c
    backward = integer(0)
    for n, c in reversed(terms):
        backward = c * SYMS[n] + backward
    assert backward + const is forward
    assert E.linear(const, [(SYMS[n], c) for n, c in terms]) is forward


# Every law, at least once: (expression, its simplified form).
i, j, k, n, t = (SYMS[x] for x in "ijknt")
x = sym("x", 0, 1000)
y = sym("y", 0, 1000)
p = sym("p", 0, 31)
size = sym("size", 2)
below = sym("below", 0, below=size // 20 - 1)
LAWS = [
    ((4 * x + j) // 4, x),
    ((4 * x + j) % 4, j),
    ((8 * x + j) // 2, 4 * x + j // 2),
    ((4 * x + j) // 8, x // 2),
    ((12 * x + 4 * j + 3) // 24, (3 * x + j) // 6),
    ((4 * x + j) % 8, 4 * (x % 2) + j),
    ((x // 3) // 4, x // 12),
    ((x // 3 + 5) // 4, (x + 15) // 12),
    ((x % 12) // 4, (x // 4) % 3),
    ((x % 12) % 4, x % 4),
    ((x % 12 + y) % 4, (x + y) % 4),
    (4 * (x // 4) + x % 4, x),
    (12 * (x // 12) + 4 * ((x // 4) % 3) + x % 4, x),
    (x - 4 * (x // 4), x % 4),
    (5 * x // 5, x),
    ((x + 7) // 4, 1 + (x + 3) // 4),
    (t % 4, integer(0)),
    ((t + j) // 4, t // 4),
    ((n * x + j * n + n) // n, x + j + 1),
    ((n * x + n) % n, integer(0)),
    (n * (x // n) + x % n, x),
    ((32 * x + p) // (32 * n), x // n),
    ((32 * x + p) % (32 * n), 32 * (x % n) + p),
    (n * ((x // n) % n) + n * n * (x // (n * n)), n * (x // n)),
    (p + 32 * n * n * ((32 * x + p) // (32 * n * n)) + 32 * n * (((32 * x + p) // (32 * n)) % n) + 32 * (x % n), 32 * x + p),
    (i // 6, integer(0)),
    (i % 6, i),
    (x // -1, -x),
    (minimum(x, x + 1, 2000), x),
    (maximum(minimum(x, 5), -1), minimum(x, 5)),
    (maximum(i, 5), integer(5)),
    (ceildiv(4 * x, 4), x),
    ((x + 1) * (y - 1), x * y - x + y - 1),
    # divisors that are sums: their multiples are recognised after multiplying out, for either sign
    (((y - 1) * (16 * x + j) + i) // (y - 1), 16 * x + j + i // (y - 1)),
    (((y - 1) * (16 * x + j) + i) % (y - 1), i % (y - 1)),
    ((x + y + 2) // (y - 1), 1 + (x + 3) // (y - 1)),
    ((y - 1) * (x // (y - 1)) + x % (y - 1), x),
    (3 * j * ((2 * y + n) * (x // (2 * y + n)) + x % (2 * y + n)), 3 * j * x),
    (below % (size // 20 - 1), below),
    (((size // 20 - 1) * x + below) // (size // 20 - 1), x),
    (((size // 20 - 1) * x + below) % (size // 20 - 1), below),
]


@pytest.mark.parametrize("got,want", LAWS, ids=[str(k) for k in range(len(LAWS))])
def test_law(got, want):
    assert got is want


SOURCES = [
    "(4*x + j)//4", "(4*x+j)%4", "(4*x+j)//8", "(4*x+j)%8", "(x//3)//4", "(x%12)//4", "(x%12)%4", "(x%12+y)%4",
    "(n*x+n)//n", "(n*x+n)%n", "x//1", "x%1", "x//-3", "x%-3", "(x*3+7)//2", "(t+x)//4", "(7-j)//4", "x//0", "x%0",
]  # fmt: skip


@pytest.mark.parametrize("kind,place", [(c, p) for c, rules in E.RULES.items() for p in range(len(rules))])
def test_every_rule_of_the_tables_does_something(monkeypatch, kind, place):
    def results():
        E.clear_memo()
        out = []
        for source in SOURCES:
            try:
                out.append(eval(source, {"j": j, "n": n, "t": t, "x": x, "y": y}))
            except (ZeroDivisionError, RecursionError) as e:
                out.append(type(e))
        return out

    full = results()
    rules = E.RULES[kind]
    monkeypatch.setitem(E.RULES, kind, rules[:place] + rules[place + 1 :])
    without = results()
    monkeypatch.undo()
    E.clear_memo()
    assert without != full, f"no expression notices that {rules[place].statement!r} is missing"


def test_numerators_are_made_non_negative_so_that_c_divides_plainly():
    assert "fj_" not in to_c((7 - i) // 4) and "fj_" not in to_c((k + j) // 3 + (k - 3) % 5)
    free = sym("free")
    assert to_c(free // 3) == "fj_floordiv(free, 3)"
    assert to_source(free % 3, TRITON) == "fj_floormod(free, 3)"
    assert to_source(minimum(i, j), TRITON) == "tl.minimum(i, j)"


def test_symbols_are_written_as_the_caller_says():
    assert to_c(i * 4 + j, lambda s: f"v[{s.name!r}]") == "4*v['i'] + v['j']"
    assert to_source(i - 3, C.with_symbols(lambda s: "p")) == "p - 3"


def test_strides_of():
    assert strides_of(3 * i + n * j + x // 2, [i, j]) == ({i: integer(3), j: n}, x // 2)
    assert strides_of(7 * x, [i]) == ({i: integer(0)}, 7 * x)
    assert strides_of(i * j, [i, j]) is None
    assert strides_of(i // 2 if (i // 2) is not integer(0) else i * i, [i]) is None


def test_bad_use_is_refused():
    for bad in (lambda: i // 0, lambda: i % 0, lambda: integer(3) // 0):
        with pytest.raises(ZeroDivisionError):
            bad()
    with pytest.raises(TypeError, match="float"):
        i + 1.5
    with pytest.raises(ValueError, match="lo <= hi"):
        sym("z", 3, 2)
    with pytest.raises(KeyError):
        evaluate(i + j, {"i": 1})


def test_kinds_stay_visible():
    assert isinstance(x // 4, FloorDiv) and isinstance(x % 4, Mod)
    assert isinstance(minimum(x, y), Min) and isinstance(maximum(x, y), Max)
    assert minimum(x, minimum(y, 3)) is minimum(3, y, x)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_c_source_computes_the_same(tmp_path):
    rng = random.Random(7)
    tests = []
    lines = [C_HELPERS, "#include <stdio.h>", "int main(void) {"]
    free = {name: sym(name, -50, 50) for name in "abc"}
    for _ in range(200):
        e = _random_expr(rng, free)
        env = {name: rng.randint(-50, 50) for name in free}
        tests.append(evaluate(e, env))
        decl = " ".join(f"long long {n} = {v};" for n, v in env.items())
        lines.append(f'{{ {decl} printf("%lld\\n", (long long)({to_c(e)})); (void)a; (void)b; (void)c; }}')
    source = tmp_path / "t.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["gcc", "-O0", "-o", str(tmp_path / "t"), str(source)], check=True, timeout=300)
    out = subprocess.run([str(tmp_path / "t")], check=True, capture_output=True, text=True, timeout=300).stdout
    assert [int(v) for v in out.split()] == tests


def _random_expr(rng, free, depth=3):
    if depth == 0:
        return rng.choice([*free.values(), integer(rng.randint(-9, 9))])
    a, b = _random_expr(rng, free, depth - 1), _random_expr(rng, free, depth - 1)
    d = rng.choice([2, 3, 5, 7, -3])
    return rng.choice([lambda: a + b, lambda: a - b, lambda: a * 3, lambda: a // d, lambda: a % d,
                       lambda: minimum(a, b), lambda: maximum(a, b)])()  # fmt: skip


def test_text_is_the_same_in_every_process():
    program = (
        "from fxir.expr.rules import sym, minimum\nfrom fxir.expr.printing import to_python\n"
        "s=[sym(f's{i}',0,99) for i in range(12)]\ne=s[3]*0\n"
        "for i in map(int, '{}'.split(',')): e = e + s[i]*(i+1) + (s[i]//7)*3 + s[i]*s[(i+5)%12] + minimum(*s)\n"
        "print(to_python(e))"
    )
    orders = ["0,1,2,3,4,5,6,7,8,9,10,11", "11,3,5,1,0,2,4,10,9,8,7,6"]
    texts = {
        subprocess.run(
            [sys.executable, "-c", program.replace("{}", o)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True, timeout=300,
        ).stdout
        for o, seed in zip(orders, ("1", "77"), strict=True)
    }  # fmt: skip
    assert len(texts) == 1
