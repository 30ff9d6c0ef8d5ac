"""The law of schedules: interpret(scheduled) == interpret(unscheduled), for random definitions and legal schedules."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inductor.loops.interpret import interpret
from inductor.loops.steps import Step, from_text, to_text
from tests.inductor.loop_programs import Program, products, programs, scheduled

CASES = int(os.environ.get("FRAMEJIT_TEST_LOOP_CASES", "300"))
IS_SEARCH = "FRAMEJIT_TEST_LOOP_CASES" in os.environ  # new cases in every run; else the same cases


@given(data=st.data(), program=programs(has_masks=True), seed=st.integers(0, 1 << 16))
@settings(max_examples=CASES, deadline=None, derandomize=not IS_SEARCH)
def test_a_legal_schedule_changes_no_result(data: st.DataObject, program: Program, seed: int) -> None:
    _check(data, program, (), seed)


@given(data=st.data(), product=products(), seed=st.integers(0, 1 << 16))
@settings(max_examples=CASES // 3, deadline=None, derandomize=not IS_SEARCH)
def test_loops_that_follow_a_product_change_no_result(data: st.DataObject, product: tuple[Program, tuple[Step, ...]], seed: int) -> None:
    _check(data, *product, seed)


def _check(data: st.DataObject, program: Program, first: Sequence[Step], seed: int) -> None:
    plain = program.kernel()
    kernel, steps, _ = data.draw(scheduled(plain, first=first))
    expected, found = program.memory(seed), program.memory(seed)
    interpret(plain, expected, program.symbols)
    interpret(kernel, found, program.symbols, seed)
    for name, value in expected.items():
        if name in program.temporary:
            continue
        assert np.array_equal(value, found[name]), f"{name} differs after {to_text(steps)}\n{plain}\n\n{kernel}"
    assert from_text(to_text(steps)) == steps
