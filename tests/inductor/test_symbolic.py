"""Graphs of symbolic sizes: compiled once, right for all sizes, in memory that never overlaps, and kept on disk."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager.base import settings
from eager.base.spec import TensorSpec, fake
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.expr import rules as E
from fxir.ir.graph import Graph
from fxir.symbols.shapes import NeedsStatic, Relation, ShapeEnv
from fxir.trace.trace import TraceMode
from inductor.artifact.format import ArtifactPlan
from inductor.cpp.products import Problem
from inductor.lowering import builder, lower
from inductor.lowering.builder import Facts
from inductor.plan.memory import ALIGNMENT, Lifetime, plan_arena
from inductor.plan.schedule import schedule
from inductor.runtime.compiled import load
from tests.inductor.helpers_symbolic import agree, compile_graph, compiled, symbolic_graph, tensor

SIZES = (2, 3, 7, 16, 33, 130)  # the least, odd ones, more than a vector, not a multiple of one


def _loss(x: Any, target: Any) -> Any:
    return F.cross_entropy(x, target)


def _block(x: Any, w: Any, b: Any) -> Any:
    q = F.linear(x, w, b).view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)
    a = F.softmax(q @ q.transpose(-1, -2) / 8**0.5, -1) @ q
    return F.layer_norm(a.transpose(1, 2).reshape(x.shape) + x, (32,))


# One function for each way in which code is generated, with its inputs' shapes.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "flat loop": (lambda x, y: (x * 2 + y, x - y), [("n", "m"), ("n", "m")]),
    "rows, broadcast, reductions of everything": (lambda x, b: ((x + b).exp(), x.mean(), x.amax(0)), [("n", "m"), ("m",)]),
    "argmax and columns": (lambda x: (x.argmax(1), x.argmin(), x.sum(0), x.var(1)), [("n", "m")]),
    "softmax in memory": (lambda x: (F.softmax(x, -1), F.softmax(x, 0)), [("n", "m")]),
    "static inner rows": (lambda x, w: F.layer_norm(x, (48,), w), [("n", "m", 48), (48,)]),
    "product with an epilogue": (lambda x, w, b: F.gelu(x @ w + b), [("n", "m", 32), (32, 48), (48,)]),
    "products of all layouts": (
        lambda x, y, z: (x @ y, x @ z.transpose(0, 1), x.transpose(0, 1) @ x), [("n", "m"), ("m", "k"), ("k", "m")]),
    "batched product": (lambda x, y: x @ y, [("b", "n", "m"), ("b", "m", 16)]),
    "views": (lambda x: (x.view(-1, 6) + 1, x.transpose(0, 1).reshape(-1), x[1:, 1:] * 2, x[:, 0] + x[:, -1]), [("n", "m", 6)]),
    "cat, pad, flip, roll": (
        lambda x, y: (eager.cat([x, y, x], 1), F.pad(x, (1, 2, 0, 3)), x.flip(0), y.roll(3, 0)), [("n", "m"), ("n", "k")]),
    "sizes as values": (
        lambda x: (x * x.shape[0], x / x.shape[1], eager.arange(x.shape[0]) + x.shape[1], x.tril()), [("n", "m")]),
    "scans": (lambda x: (x.cumsum(1), x.cumsum(0)), [("n", "m")]),
    "gathers": (lambda w, i: F.embedding(i, w), [(9, 16), (("b", "t"), "int64")]),
    "scatters": (lambda x, i, v: (x.index_add(0, i, v), x.index_put((i,), v)), [(9, "m"), (("k",), "int64"), ("k", "m")]),
    "extern calls": (lambda x: (x.sort(-1)[0] + 1, x.topk(2, -1)[0] * 2), [("n", "m")]),
    "extern call with sizes": (lambda x, w: F.relu(F.conv1d(x, w, padding=1)), [("b", 3, "t"), (4, 3, 3)]),
    "half precision": (lambda x: F.softmax(x, -1) * 2, [(("n", "m"), "bfloat16")]),
    "loss": (_loss, [("n", 9), (("n",), "int64")]),
    "attention block": (_block, [("b", "t", 32), (32, 32), (32,)]),
}  # fmt: skip


def _arguments(rng: np.random.Generator, inputs: list[Any], sizes: dict[str, int]) -> list[Any]:
    made = []
    for entry in inputs:
        typed = len(entry) == 2 and isinstance(entry[1], str) and not isinstance(entry[0], str | int)
        shape, dtype = entry if typed else (entry, "float32")
        made.append(tensor(rng, *(n if isinstance(n, int) else sizes[n] for n in shape), dtype=dtype))
    return made


def _symbols(inputs: list[Any]) -> list[str]:
    return sorted({n for n in itertools.chain(*(e[0] if isinstance(e[0], tuple) else e for e in inputs)) if isinstance(n, str)})


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_compilation_is_right_for_all_sizes(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    run = compiled(fn, *inputs)
    rng = np.random.default_rng(1)
    for k in range(8):
        sizes = {s: 2 if k == 0 else int(rng.choice(SIZES)) for s in _symbols(inputs)}
        args = _arguments(rng, inputs, sizes)
        want = fn(*args)
        for got, expected in zip(run(*args), want if isinstance(want, tuple) else (want,), strict=True):
            agree(got, expected, 2e-2 if expected.dtype is eager.bfloat16 else 1e-4)


def test_sizes_on_both_sides_of_the_parallel_threshold() -> None:
    run = compiled(lambda x, b: (F.gelu(x + b), x.sum(), x.sum(0), F.softmax(x, -1)), ("n", "m"), ("m",))
    rng = np.random.default_rng(2)
    for n, m in ((2, 2), (700, 900), (3, 200_001), (70_000, 3)):
        x, b = tensor(rng, n, m), tensor(rng, m)
        for got, want in zip(run(x, b), (F.gelu(x + b), x.sum(), x.sum(0), F.softmax(x, -1)), strict=True):
            agree(got, want, 1e-3)


def test_a_dim_that_is_empty_at_run_time() -> None:
    run = compiled(lambda x: (x[2:] * 2, x[2:].sum(0)), ("n", 5))
    doubled, total = run(eager.ones(2, 5))
    assert doubled.shape == (0, 5) and total.tolist() == [0.0] * 5
    assert run(eager.ones(4, 5))[1].tolist() == [2.0] * 5


def test_ints_are_inputs_and_outputs() -> None:
    env = ShapeEnv()
    n, k = env.create(6, None), env.create(4, None)
    mode = TraceMode(Graph())
    x = fake(TensorSpec.contiguous((n, 3), eager.float32))
    mode.add_input(x, "x")
    mode.add_symbol(k)
    with mode:
        y = x * k + n
    graph = mode.graph
    graph.output((mode.value(y), (n * k + 1).expr, k.expr))
    graph.find_symbols()
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    got = run(eager.ones(5, 3), 7)
    assert got[0].tolist() == [[12.0] * 3] * 5 and got[1:] == (36, 7)
    with pytest.raises(TypeError, match="input 1 is a Tensor; allowed: an int"):
        run(eager.ones(5, 3), eager.ones(1))
    with pytest.raises(RuntimeError, match="value 1 of input 1"):
        run(eager.ones(5, 3), 1)
    with pytest.raises(OverflowError):
        run(eager.ones(5, 3), 1 << 70)


@pytest.mark.parametrize(
    "args, error, text",
    [
        (lambda: (eager.ones(1, 4), eager.ones(1, 4)), RuntimeError, "size 1 of input 0"),
        (lambda: (eager.ones(3, 4), eager.ones(3, 5)), RuntimeError, r"shape \(3, 5\).*compiled for.*shape \(3, 4\)"),
        (lambda: (eager.ones(4, 3).transpose(0, 1), eager.ones(3, 4)), RuntimeError, "strides"),
        (lambda: (eager.ones(3, 4, dtype=eager.float64), eager.ones(3, 4)), RuntimeError, "dtype"),
        (lambda: (eager.ones(3), eager.ones(3, 4)), RuntimeError, "shape"),
        (lambda: (3, eager.ones(3, 4)), TypeError, "input 0 is a int; allowed: a tensor"),
    ],
)
def test_inputs_that_the_code_was_not_made_for_are_refused(args: Any, error: type, text: str) -> None:
    run = compiled(lambda x, y: x + y, ("n", "m"), ("n", "m"))
    with pytest.raises(error, match=text):
        run(*args())
    assert run(eager.ones(3, 4), eager.ones(3, 4))[0].tolist() == [[2.0] * 4] * 3


def test_a_position_out_of_range_names_the_size_of_the_call() -> None:
    run = compiled(lambda x, i: x[i], ("n", 3), (("k",), "int64"))
    for n in (4, 9):
        with pytest.raises(IndexError, match=f"index 99 is out of bounds for dimension 0 with size {n}"):
            run(eager.ones(n, 3), eager.tensor([0, 99]))


def test_kept_outputs_fit_the_sizes_of_each_call() -> None:
    run = compiled(lambda x: (x * 2, x.sum(-1)), ("n", "m"), mode="reduce-overhead")
    for n, m in ((4, 4), (4, 4), (64, 8), (2, 3), (64, 8), (3, 2)):
        x = eager.ones(n, m)
        doubled, total = run(x)
        assert doubled.shape == (n, m) and doubled.sum().item() == 2.0 * n * m and total.tolist() == [float(m)] * n


# --------------------------------------------------------------------------- memory


def test_buffers_alive_together_never_overlap_for_any_sizes() -> None:
    rng = np.random.default_rng(3)
    n, m = E.sym("n0", 2, 1 << 62), E.sym("n1", 2, 1 << 62)
    forms = [4 * n, 4 * n * m, 8 * m, 4 * (n - 2) * m, 64, 4 * m * m, 1000, 4 * ((n + 7) // 8) * m]
    for _ in range(40):
        buffers = []
        for i in range(int(rng.integers(2, 14))):
            first = int(rng.integers(0, 8))
            buffers.append(Lifetime(f"b{i}", forms[int(rng.integers(len(forms)))], first, first + int(rng.integers(0, 4))))
        offsets, total = plan_arena(buffers)
        for values in ({"n0": 2, "n1": 2}, {"n0": 3, "n1": 1000}, {"n0": 777, "n1": 5}):
            at = {b.name: E.evaluate(offsets[b.name], values) for b in buffers}
            end = {b.name: at[b.name] + E.evaluate(b.nbytes, values) for b in buffers}
            assert all(a % ALIGNMENT == 0 for a in at.values()) and max(end.values()) <= E.evaluate(total, values)
            for a, b in itertools.combinations(buffers, 2):
                if a.overlaps(b):
                    assert end[a.name] <= at[b.name] or end[b.name] <= at[a.name] or at[a.name] == end[a.name]


def test_memory_is_used_again() -> None:
    n = E.sym("n0", 2, 1 << 62)
    chain = [Lifetime(f"b{i}", 4 * n, i, i + 1) for i in range(10)]
    offsets, total = plan_arena(chain)
    assert len(set(offsets.values())) == 2 and E.evaluate(total, {"n0": 1024}) == 8192


# --------------------------------------------------------------------------- generated code


def test_no_kernel_relies_on_a_stride_that_may_be_one() -> None:
    width = E.sym("n0", 2, 1 << 62) // 64  # nominally 1
    problem = Problem("float32", 1, 32, 64, 64, (64, 1), (1, width), 64, (0, 0, 0))
    assert problem.nominal().b_strides == (1, 2) and not problem.suits_blas()
    run = compiled(lambda x, y: x @ y[:, : y.shape[1] // 64].transpose(0, 1), (32, "k"), ("n", 640), hints={"k": 10, "n": 64})
    x, y = eager.ones(32, 10), tensor(np.random.default_rng(4), 50, 640)
    agree(run(x, y)[0], x @ y[:, :10].transpose(0, 1), 1e-4)


def test_a_view_of_symbolic_sizes_needs_no_division_in_its_loop() -> None:
    graph = symbolic_graph(lambda x, w: (x.view(-1, x.shape[-1]) * 2).view(x.shape) + w, ("b", "t", "h"), ("h",))
    made = schedule(lower(graph))
    assert len(made.steps) == 1 and "//" not in str(made.steps[0]) and "%" not in str(made.steps[0])


def test_a_decision_that_is_not_proved_needs_static_sizes() -> None:
    with pytest.raises(NeedsStatic, match="depends on") as refusal:
        lower(_without_relations(symbolic_graph(lambda x: x[:5] * 2, ("n", 3), hints={"n": 9})))
    assert len(refusal.value.symbols) == 1


def _without_relations(graph: Any) -> Any:
    graph.shapes.relations.clear()
    return graph


def test_relations_of_the_capture_are_used() -> None:
    run = compiled(lambda x: x[:5] * 2, ("n", 3), hints={"n": 9})
    assert run(eager.ones(11, 3))[0].shape == (5, 3)


def test_facts_follow_from_relations() -> None:
    n, m = E.sym("n0", 2, 1 << 62), E.sym("n1", 2, 1 << 62)
    facts = Facts([Relation("==", n // 3 * m, 6 * m), Relation("<", E.as_expr(5), n), Relation("!=", m, E.as_expr(7))])
    left, right, size, other = facts.lift((n // 3 * m, 6 * m, n, m))
    assert left == right and left <= right and not left < right
    assert size > 5 and size >= 6 and size != 4 and not size <= 5
    assert other != 7
    for unknown in (lambda: size > 6, lambda: other == 8, lambda: size == other, lambda: int(size)):
        with pytest.raises(NeedsStatic):
            unknown()


def test_facts_look_only_at_relations_that_can_say_something_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with hundreds of relations took minutes, because every query searched all of them."""
    sizes = [E.sym(f"n{i}", 2, 1 << 62) for i in range(200)]
    facts = Facts([Relation("<", E.as_expr(5), n) for n in sizes for _ in range(3)])
    asked: list[Any] = []
    monkeypatch.setattr(builder, "least", lambda d: asked.append(d) or E.least(d))
    n = facts.wrap(sizes[7])
    for _ in range(10):
        assert n > 5 and not n <= 5
    assert 0 < len(asked) < 5


# --------------------------------------------------------------------------- plans on disk


def test_plan_survives_json() -> None:
    run = compiled(_block, ("b", "t", 32), (32, 32), (32,))
    plan = run.artifact.entry.plan
    again = ArtifactPlan.from_json(plan.to_json())
    assert again == plan and again.sizes == plan.sizes and all(a is b for a, b in zip(again.sizes, plan.sizes, strict=True))
    assert "size of input 0, dim 1" in run.artifact.explain()


@pytest.mark.parametrize("broken", ['{"":"Add","expr":[0,[[{"":"Sym"},1]]]}', '{"":"Mul","expr":[1,2]}', '{"":"Mul","expr":[7]}'])
def test_a_damaged_expression_is_refused(broken: str) -> None:
    text = compiled(lambda x: x * 2, ("n",)).artifact.entry.plan.to_json()
    at = text.index('"nbytes":') + len('"nbytes":')
    end = text.index(',"device"', at)
    with pytest.raises((ValueError, KeyError)):
        ArtifactPlan.from_json(text[:at] + broken + text[end:])


def test_graphs_that_differ_in_names_and_values_only_share_an_artifact(tmp_path: Path) -> None:
    with settings.scope(cache_dir=tmp_path):
        first = compiled(lambda x, y: x @ y, ("a", "b"), ("b", "c"))
        other = compiled(lambda x, y: x @ y, ("r", "q"), ("q", "p"), hints={"r": 50, "q": 60, "p": 70})
        square = compiled(lambda x, y: x @ y, ("a", "a"), ("a", "a"))
        bounded = compiled(lambda x, y: x @ y, ("a", "b"), ("b", "c"), most=512)
    assert (first.artifact.origin, other.artifact.origin) == ("compiled", "disk cache")
    assert first.artifact.key == other.artifact.key
    assert len({first.artifact.key, square.artifact.key, bounded.artifact.key}) == 3


_SECOND = """
import numpy as np, eager
from tests.inductor.helpers_symbolic import compiled
run = compiled(lambda x, y: (x @ y).exp(), ("n", 8), (8, "m"))
print(run.artifact.origin, [tuple(run(eager.ones(n, 8), eager.ones(8, m))[0].shape) for n, m in ((2, 3), (40, 17))])
"""


def test_a_second_process_finds_the_artifact(tmp_path: Path) -> None:
    said = [subprocess.run([sys.executable, "-c", _SECOND], check=True, capture_output=True, text=True,
                           cwd=Path(__file__).parents[2],
                           env={"FRAMEJIT_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}).stdout.strip()
            for _ in range(2)]  # fmt: skip
    assert said == ["compiled [(2, 3), (40, 17)]", "disk cache [(2, 3), (40, 17)]"]


def test_a_saved_artifact_runs_for_all_sizes(tmp_path: Path) -> None:
    compiled(lambda x: x * 3, ("n",)).artifact.save(tmp_path / "graph.fj")
    run = load(tmp_path / "graph.fj")
    assert [run(eager.ones(n))[0].tolist() for n in (2, 9)] == [[3.0] * 2, [3.0] * 9]
