"""The ranges of axes that a mask implies, and values read through a mask."""

from __future__ import annotations

import itertools
import operator

from hypothesis import given, settings
from hypothesis import strategies as st

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.masks import bounded
from inductor.ir.values import both

SIZES = (5, 6)
AXES = [ir.axis(k, n) for k, n in enumerate(SIZES)]
COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}


@st.composite
def _comparisons(draw):
    """(name, axis, number added to it, number compared with it, whether the number is on the left)."""
    name, axis = draw(st.sampled_from(sorted(COMPARE))), draw(st.integers(0, 1))
    return name, axis, draw(st.integers(-4, 4)), draw(st.integers(-4, 9)), draw(st.booleans())


def _mask(comparisons):
    mask = None
    for name, k, added, c, is_swapped in comparisons:
        sides = (ir.index(E.add(AXES[k], added)), ir.index(c))
        mask = both(mask, ir.make_op(name, sides[::-1] if is_swapped else sides, dtypes.bool_))
    return mask


@given(st.lists(_comparisons(), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_a_mask_holds_only_within_its_ranges(comparisons) -> None:
    found = bounded(_mask(comparisons))
    for point in itertools.product(*map(range, SIZES)):
        holds = all(
            COMPARE[name](c, point[k] + added) if is_swapped else COMPARE[name](point[k] + added, c)
            for name, k, added, c, is_swapped in comparisons
        )
        if holds:
            assert all(new.lo <= point[AXES.index(axis)] <= new.hi for axis, new in found.items())
    assert all(axis.lo <= new.lo <= new.hi <= axis.hi for axis, new in found.items())


def test_bounds_are_exact() -> None:
    column = ir.axis(1, 70)
    inside = both(ir.make_op("lt", (ir.index(column), ir.index(64)), dtypes.bool_),
                  ir.make_op("ge", (ir.index(column - 3), ir.index(0)), dtypes.bool_))  # fmt: skip
    (new,) = bounded(inside).values()
    assert (new.lo, new.hi) == (3, 63)


def test_an_element_of_wider_rows_has_the_row_and_column_of_its_source() -> None:
    """Rows of 50 read as rows of 64: without the mask, the source's row would be a quotient."""
    source = ir.Pointwise((4, 2, 50), ir.load("x", ir.axis(0, 4) * 100 + ir.axis(1, 2) * 50 + ir.axis(2, 50), dtypes.float32))
    row, column = ir.axis(0, 8), ir.axis(1, 64)
    inside = ir.make_op("lt", (ir.index(column), ir.index(50)), dtypes.bool_)
    found = ir.producer_at(source, ir.load("y", row * 50 + column, dtypes.float32, inside))
    assert isinstance(found, ir.Load) and found.index is row * 50 + column and found.mask is inside
