"""Shape guards run in a separate phase. Their reports contain the user's line, the old values and the new values."""

from __future__ import annotations

import logging

import pytest

import dynamo
import eager as torch
from dynamo.guards.shape_guards import check_of
from dynamo.guards.sources import GeometrySource, SlotSource
from eager.base import logs
from fxir.expr.rules import floordiv, maximum, minimum, mod
from fxir.symbols.shapes import Relation, ShapeEnv
from tests.dynamic.support import compiled

r = torch.randn


def variant_guards(made: object, *args: object) -> list[str]:
    return [g.what for g in dynamo.explain_guards(made, *args).guards if g.variant == 1]


def test_guards_are_shown_with_the_line_that_needed_them_and_their_cost() -> None:
    def f(x, y):  # type: ignore[no-untyped-def]
        if x.shape[0] % 2 == 0:
            x = x + 1
        return x + y

    made, _ = compiled(f)
    for n in (4, 6):
        made(r(n, 3), r(n, 3))
    shown = dynamo.explain_guards(made, r(8, 3), r(8, 3))
    mine = [g for g in shown.guards if g.variant == 1 and ".size(" in g.what.split("#")[0]]
    line = f.__code__.co_firstlineno
    assert [g.what.split("  # ")[0] for g in mine] == ["y.size(0) == x.size(0)", "x.size(0) % 2 == 0"]
    assert [int(g.what.split(":")[1].split()[0]) for g in mine] == [line + 3, line + 1]
    assert all(g.when == "each call" and g.cost_ns is not None and g.cost_ns < 2000 for g in mine)


@pytest.mark.parametrize(("sizes", "failed"), [
    ((7, 7), "x.size(0) % 2 == 0 [shape]: expected x.size(0) % 2 == 0 (as with x.size(0)=6), got x.size(0)=7, needed at"),
    ((8, 1), "y [tensor]"),
])  # fmt: skip
def test_a_recompilation_reports_the_relation_and_both_values(sizes: tuple[int, int], failed: str) -> None:
    def f(x, y):  # type: ignore[no-untyped-def]
        if x.shape[0] % 2 == 0:
            x = x + 1
        return x + y

    made, _ = compiled(f)
    for n in (4, 6):
        made(r(n, 3), r(n, 3))
    with logs.capture() as records:
        logs.set_logs(recompiles=True)
        try:
            made(*(r(n, 3) for n in sizes))
        finally:
            logs.set_logs()
    assert any(failed in rec.message and "test_guards.py" in rec.message for rec in records)


def test_related_sizes_that_differ_are_reported() -> None:
    made, _ = compiled(lambda x, y: x + y, fullgraph=False)
    for n in (4, 6):
        made(r(n, 3), r(n, 3))
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(7\) must match the size of tensor b \(8\)"):
        made(r(7, 3), r(8, 3))


def test_static_code_has_no_shape_guards() -> None:
    made, counting = compiled(lambda x: x.view(2, -1) + x.shape[0])
    made(r(4, 3))
    assert not [g for g in dynamo.explain_guards(made, r(4, 3)).guards if ".size(" in g.what]
    assert counting.graphs[0].graph.shapes is None


def test_checks_agree_with_their_relation() -> None:
    env = ShapeEnv()
    a = env.create(6, GeometrySource(SlotSource(0, "x"), "size", 1)).expr
    b = env.create(4, GeometrySource(SlotSource(1, "y"), "stride", 0)).expr
    n = env.create(3, SlotSource(2, "n"), -100).expr
    expressions = [a, b, n, a * b + 3, a * a * 2 - n, floordiv(a * 5 - n, 3), mod(a + b * n, 4), minimum(a, b, n), maximum(a, n) - 7]
    tensors = [(torch.zeros(2, p), torch.zeros(3, q)) for p, q in ((6, 4), (2, 9), (5, 5))]
    for left in expressions:
        for right in (*expressions, *map(int, (0, 7))):
            for op in ("==", "!=", "<", "<="):
                relation = Relation(op, left, right if not isinstance(right, int) else left * 0 + right)
                bases, check = check_of(relation, env)
                program = dynamo._native.GuardProgram([("shape", tuple(s.index for s in bases), check.steps)], 3)  # type: ignore[attr-defined]
                for x, y in tensors:
                    for k in (3, -5, 0):
                        assert program.check([x, y, k]) is relation.holds({a: x.size(1), b: y.stride(0), n: k}), str(relation)


def test_the_dynamic_log_reports_each_new_symbol_and_its_cause() -> None:
    with logs.capture() as records:
        logs.set_logs(dynamic=logging.INFO)
        try:
            made, _ = compiled(lambda x: x * 2)
            for n in (4, 6):
                made(r(n, 3))
        finally:
            logs.set_logs()
    text = "\n".join(rec.message for rec in records)
    assert "x.size(0): 4 became 6: it is a symbol from now on" in text
    assert "s0 = 6 for x.size(0) in [2, inf]: it changed (" in text and "test_guards.py" in text
