"""Compiling, forgetting and calling leave nothing behind. The long form: `python -m tests.dynamo.memory`."""

from __future__ import annotations

from tests.dynamo import memory


def test_compile_reset_cycles_leave_nothing_behind() -> None:
    more, objects = memory.growth(memory.cycle, 80)
    assert objects <= 20 and more < memory.SLACK_BYTES


def test_warm_calls_leave_nothing_behind() -> None:
    more, objects = memory.growth(memory.warm_call(), 4000)
    assert objects <= 20 and more < memory.SLACK_BYTES


def test_gradients_of_gradients_leave_nothing_behind() -> None:
    more, objects = memory.growth(memory.warm_gradients(), 200)
    assert objects <= 20 and more < memory.SLACK_BYTES
