"""The numbers of autocast settings and of thread states, made by several threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eager.base import thread_state

THREADS = 8
VALUES = 1000

pytestmark = pytest.mark.usefixtures("switches_often")


def test_a_number_stands_for_its_setting_as_soon_as_a_thread_sees_it() -> None:
    gate = threading.Barrier(THREADS)

    def work(_: int) -> bool:
        gate.wait()
        for i in range(VALUES):
            value = ("setting", i)
            thread_state.switch_autocast(thread_state.number_of(value))
            if thread_state.autocast() != value or repr(value) not in thread_state.describe(thread_state.word()):
                return False
        thread_state.switch_autocast(0)
        return thread_state.word() == 0

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))
