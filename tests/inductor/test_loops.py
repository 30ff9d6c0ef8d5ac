"""Loops and schedules: their text, the reasons of refused steps, and the states of reductions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.loops.apply import ROW_BYTES, Refusal, apply
from inductor.loops.build import build
from inductor.loops.interpret import Unfilled, interpret
from inductor.loops.reductions import COMBINES, lift
from inductor.loops.steps import Join, Localise, Mark, from_text, to_text
from inductor.loops.tree import Allocate, Kernel, Local, Loop, Place, Store

F32, I64 = dtypes.float32, dtypes.int64
I, J, R = ir.axis(0, 6), ir.axis(1, 10), ir.reduced_axis(0, 10)


def _x(at: E.IntLike) -> ir.Load:
    return ir.load("x", at, F32)


def _buffer(name: str, shape: tuple[int, ...], definition: ir.Definition, of: dtypes.dtype = F32) -> ir.Buffer:
    return ir.Buffer(name, ir.row_major(shape, of), definition)


def centred() -> Kernel:
    """Each row of x (6, 10) less its maximum, which nothing else reads."""
    top = _buffer("m", (6,), ir.Reduction((6,), (10,), "max", _x(I * 10 + R)))
    y = _buffer("y", (6, 10), ir.Pointwise((6, 10), ir.make_op("sub", (_x(I * 10 + J), ir.load("m", I, F32)), F32)))
    return build([top, y], {"x": F32}, ["m"])


def test_a_row_and_its_result_stay_in_registers_and_vectors_have_a_tail() -> None:
    steps = from_text("join(m_i0, y_i0); localise(m, m_i0); split(y_i1, 4, peel); mark(y_i1_i, vector); mark(m_i0, parallel)")
    assert str(apply(centred(), steps)) == """\
parallel for m_i0 < 6:
  with register m: float32[1]:
    with register m_acc0: float32[1]:
      m_acc0[0] = -inf
      for m_r0 < 10:
        m_acc0[0] max= x[10*m_i0 + m_r0]
      m[0] = m_acc0[0]
      for y_i1_o < 2:
        vector for y_i1_i < 4:
          y[10*m_i0 + y_i1_i + 4*y_i1_o] = sub(x[10*m_i0 + y_i1_i + 4*y_i1_o], m[0])
      for y_i1_t < 2:
        y[10*m_i0 + y_i1_t + 8] = sub(x[10*m_i0 + y_i1_t + 8], m[0])"""


def running() -> Kernel:
    """The running sum of each row of x (6, 10)."""
    return build([_buffer("s", (6, 10), ir.Scan((6,), 10, "sum", _x(I * 10 + R)))], {"x": F32})


def scattered(mode: str) -> Kernel:
    """x (6,) written to t at positions that k (6,) holds."""
    g = E.sym("g", 0, 4)
    assert isinstance(g, E.Sym)
    d = ir.Scatter((6,), "t", g, ((g, ir.load("k", I, I64)),), _x(I), mode)
    return build([_buffer("t", (5,), d)], {"x": F32, "k": I64})


def multiplied(rows: int = 40, depth: int = 20, columns: int = 30) -> Kernel:
    """z = x (rows, depth) @ y (depth, columns)."""
    a = ir.load("x", ir.linear_position((rows, depth), (ir.axis(0, rows), ir.reduced_axis(0, depth))), F32)
    b = ir.load("y", ir.linear_position((depth, columns), (ir.reduced_axis(0, depth), ir.axis(1, columns))), F32)
    made = _buffer("z", (rows, columns), ir.Contraction((rows, columns), (depth,), ("row", "column"), a, b))
    return build([made], {"x": F32, "y": F32})


def test_a_persistent_program_computes_every_nth_block() -> None:
    """Five programs may run; three take as many turns for the 6 blocks."""
    assert str(apply(multiplied(), from_text("blocks(z, 16, 16, 32); persistent(z, 5)"))).startswith("""\
grid for z_p < 3:
  turns for z_t < 2:
""")
    assert str(apply(multiplied(80), from_text("blocks(z, 16, 16, 32); persistent(z, 4)"))).startswith("""\
grid for z_p < 4:
  turns for z_t < ((-1*z_p + 5)//4) + 2:
""")


def test_plain_loops_print_as_they_run() -> None:
    assert str(centred()) == """\
for m_i0 < 6:
  with register m_acc0: float32[1]:
    m_acc0[0] = -inf
    for m_r0 < 10:
      m_acc0[0] max= x[10*m_i0 + m_r0]
    m[m_i0] = m_acc0[0]
for y_i0 < 6:
  for y_i1 < 10:
    y[10*y_i0 + y_i1] = sub(x[10*y_i0 + y_i1], m[y_i0])"""


def test_a_column_reduction_is_made_of_steps() -> None:
    steps = from_text("split(m_i0, 4); distribute(m_i0_i); reorder(m_i0_i_1, m_r0); mark(m_i0_i_1, vector)")
    assert str(apply(centred(), steps)).startswith("""\
for m_i0_o < 2:
  with stack m_acc0: float32[4]:
    for m_i0_i < 4:
      if lt([m_i0_i + 4*m_i0_o], 6):
        m_acc0[m_i0_i] = -inf
    for m_r0 < 10:
      vector for m_i0_i_1 < 4:
        if lt([m_i0_i_1 + 4*m_i0_o], 6):
          m_acc0[m_i0_i_1] max= x[10*m_i0_i_1 + 40*m_i0_o + m_r0]
""")


LEGAL = {
    "columns of results that are stored later": (centred, "distribute(m_i0); join(m_i0, m_i0_1); columns(m_i0, 4, 16)"),
    "rows in parallel": (centred, "join(m_i0, y_i0); mark(m_i0, parallel); mark(y_i1, vector)"),
    "tail of a split inner loop": (centred, "split(y_i1, 4); mark(y_i0, parallel); mark(y_i1_i, vector)"),
    "lanes of a reduction": (centred, "lanes(m_r0, 4, 2); mark(m_i0, parallel)"),
    "one loop of two": (centred, "fuse_axes(y_i0, y_i1); split(y_i0.y_i1, 8); mark(y_i0.y_i1_o, parallel)"),
    "rows of a scan": (running, "mark(s_i0, parallel)"),
    "scan along columns": (running, "distribute(s_i0); reorder(s_i0_1, s_r0)"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_a_schedule_is_accepted(name: str) -> None:
    make, text = LEGAL[name]
    assert isinstance(apply(make(), from_text(text)), Kernel), apply(make(), from_text(text))


REFUSED = {
    "a scan in parallel": (running, "mark(s_r0, parallel)", "depend on each other through s_acc0[0]"),
    "a running result in lanes": (centred, "mark(m_r0, vector)", "depend on each other through m_acc0[0]"),
    "writes by data": (lambda: scattered("set"), "mark(t_i0, vector)", "depend on each other through t[g"),
    "additions by data": (lambda: scattered("add"), "mark(t_i0, parallel)", "depend on each other through t[g"),
    "no such loop": (centred, "split(z, 2)", "there is no loop z; the loops are m_i0, m_r0, y_i0, y_i1"),
    "a block of all": (centred, "split(m_i0, 6)", "no more than one block of 6"),
    "an imperfect nest": (centred, "reorder(m_i0, m_r0)", "the body of m_i0 is not one loop"),
    "another loop inside": (centred, "reorder(y_i0, m_r0)", "the body of y_i0 is the loop y_i1"),
    "other extents": (centred, "join(m_i0, y_i1)", "does not follow"),
    "a vector of loops": (centred, "mark(m_i0, vector)", "a vector loop holds no other loop"),
    "parallel in parallel": (centred, "mark(y_i1, parallel); mark(y_i0, parallel)", "holds no other parallel loop"),
    "lanes of a scan": (running, "lanes(s_r0, 2, 16)", "the loop reads the running result"),
    "memory that is read later": (centred, "localise(y, y_i0)", "y is read after the kernel"),
    "memory of two loops": (centred, "localise(m, m_i0)", "m is used outside of m_i0"),
    "memory of all iterations": (centred, "join(m_i0, y_i0); localise(m, y_i1)", "m is used outside of y_i1"),
    "a tail of all": (centred, "split(m_i0, 7, peel)", "no whole block of 7"),
    "persistent programs without a grid": (multiplied, "persistent(z, 2)", "no loops over programs run around the product z alone"),
    "no fewer programs than blocks": (multiplied, "blocks(z, 16, 16, 16); persistent(z, 6)", "z has 6 blocks for 6 programs"),
    "turns of any loop": (centred, "mark(y_i0, turns)", "only a persistent product computes programs in turns"),
    "descriptors of wide numbers": (multiplied, "descriptors(z)", "elements of 4 bytes and rows 80 bytes apart; allowed: 2 bytes"),
    "descriptors of blocks": (multiplied, "blocks(z, 16, 16, 16); descriptors(z)", "other loops run around the product z"),
    "one statement": (centred, "distribute(y_i1)", "the body of y_i1 is one statement"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_step_is_refused_with_its_reason(name: str) -> None:
    make, text, reason = REFUSED[name]
    found = apply(make(), from_text(text))
    assert isinstance(found, Refusal) and reason in str(found), found


def test_a_loop_that_reads_its_neighbour_cannot_be_joined() -> None:
    """z[i] reads y[i + 1], which a joined loop would not have stored yet."""
    n, i = 6, ir.axis(0, 5)
    y = _buffer("y", (n,), ir.Pointwise((n,), _x(ir.axis(0, n))))
    z = _buffer("z", (5,), ir.Pointwise((5,), ir.load("y", i + 1, F32)))
    w = _buffer("w", (n,), ir.Pointwise((n,), ir.load("y", 5 - ir.axis(0, n), F32)))
    assert isinstance(apply(build([y, w], {"x": F32}), from_text("join(y_i0, w_i0)")), Refusal)
    assert isinstance(apply(build([y, z], {"x": F32}), from_text("split(y_i0, 5); join(y_i0_i, z_i0)")), Refusal)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(3, 0, 4), (0, 2, 4), (3, 2, 0), (1, 0, 1)])
def test_a_product_of_empty_matrices_has_no_elements_or_zeros(rows: int, depth: int, columns: int) -> None:
    memory = {name: np.full(n, 7, np.float32) for name, n in (("x", rows * depth), ("y", depth * columns), ("z", rows * columns))}
    interpret(multiplied(rows, depth, columns), memory)
    assert memory["z"].tolist() == [0.0] * (rows * columns)


def test_other_texts_than_schedules_are_refused() -> None:
    for text in ("spilt(i, 2)", "split(i)", "split(i, two)", "split"):
        with pytest.raises(ValueError):
            from_text(text)
    text = "split(i, 8, peel); mark(i_i, vector); lanes(r, 16, 64); cut(i, 3 8)"
    assert to_text(from_text(text)) == text and from_text("") == ()
    assert from_text("split(i, 8)") == from_text("split(i, 8, guard)")


def test_reading_a_local_before_it_is_stored_is_an_error() -> None:
    zero = E.as_expr(0)
    body = (Allocate(Local("a", 1, F32), (Store(Place("y", zero), ir.load("a", 0, F32)),)),)
    with pytest.raises(Unfilled):
        interpret(Kernel(body, {"y": F32}), {"y": np.zeros(1, np.float32)})


# -- states of reductions ------------------------------------------------------------------------------------------
SAMPLES = [[3.0, -1.0, 4.0, 4.0, -5.0], [math.nan, 1.0, math.inf], [-math.inf, -math.inf], [1.0, 2.0, math.nan, 3.0, math.nan], [2.5]]


def _reduced(kind: str, values: list[float], groups: int) -> list[float]:
    """The state of all values, reduced in `groups` interleaved groups that are merged at the end."""
    combine = COMBINES[kind]
    stores: list[Store] = []
    memory = {"out": np.zeros(4, np.float64)}
    states = [combine.identity(dtypes.float64) for _ in range(groups)]
    for k, v in enumerate(values):
        states[k % groups] = combine.merge(states[k % groups], lift(kind, ir.const(v, dtypes.float64), ir.index(k)))
    state = states[-1]
    for other in reversed(states[:-1]):
        state = combine.merge(state, other)
    stores = [Store(Place("out", E.as_expr(k)), v) for k, v in enumerate(state)]
    interpret(Kernel(tuple(stores), {"out": dtypes.float64}), memory)
    return memory["out"][: len(state)].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("values", SAMPLES)
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_groups_of_a_reduction_merge_to_the_whole(values: list[float], groups: int) -> None:
    x = np.array(values)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(_reduced("max", values, groups), [x.max()], equal_nan=True)
        assert _reduced("argmax", values, groups)[1] == np.argmax(x) and _reduced("argmin", values, groups)[1] == np.argmin(x)
        if np.isfinite(x).all():
            mean, squares, count = _reduced("welford", values, groups)
            assert count == len(x) and np.allclose([mean, squares], [x.mean(), ((x - x.mean()) ** 2).sum()])
        if not np.isnan(x).any() and np.isfinite(x.max()):
            top, total = _reduced("softmax", values, groups)
            assert top == x.max() and np.isclose(total, np.exp(x - top).sum())
    if np.isneginf(x).all():
        assert _reduced("softmax", values, groups) == [-math.inf, 0.0]


def test_a_peeled_block_of_one_iteration_has_no_loop() -> None:
    d = ir.Reduction((), (3,), "max", ir.load("x", ir.reduced_axis(0, 3), F32))
    kernel = build([_buffer("m", (), d)], {"x": F32})
    found = apply(kernel, from_text("stages(m_r0, 2); split(m_r0_s, 2, peel)"))
    assert isinstance(found, Kernel), found


def test_steps_of_different_length_may_meet_in_one_element() -> None:
    """Iterations (1, 1) and (2, 0) of i and j write element i * (j + 1) = 2."""
    i, j = ir.counter("i", 4), ir.counter("j", 4)
    assert isinstance(i, E.Sym) and isinstance(j, E.Sym)
    store = Store(Place("y", i * (j + 1)), ir.const(0, F32))
    kernel = Kernel((Loop(i, 4, "serial", (Loop(j, 4, "serial", (store,)),)),), {"y": F32})
    assert isinstance(apply(kernel, (Mark("i", "parallel"),)), Refusal)


def test_a_row_that_fills_the_nearest_cache_is_not_made_local() -> None:
    n = ROW_BYTES // 4 + 1
    ranges = (2, n)
    buffers = [
        ir.Buffer("t", ir.row_major(ranges, F32), ir.Pointwise(ranges, ir.load("x", ir.own_position(ranges), F32))),
        ir.Buffer("y", ir.row_major(ranges, F32), ir.Pointwise(ranges, ir.load("t", ir.own_position(ranges), F32))),
    ]
    found = apply(build(buffers, {"x": F32}, ["t"]), (Join("t_i0", "y_i0"), Localise(("t",), "t_i0")))
    assert isinstance(found, Refusal) and f"allowed: up to {ROW_BYTES // 4}" in str(found)
