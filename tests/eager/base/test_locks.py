"""Locks of state that all threads share: in finalizers, which run in the middle of any code, and in forked children."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eager.base import settings
from eager.base.locks import new_lock

ROOT = Path(__file__).resolve().parents[3]
FINALIZERS = """
import gc, itertools
import eager as torch
from fxir.expr.rules import sym
from inductor.ir import values

numbers = itertools.count()

def expression():
    sym(f"s{next(numbers)}") + 1

def value():
    values.const(next(numbers), torch.int64)

def region():
    torch.compile(lambda x: x + 1, backend="eager")

def capture():
    number = next(numbers)
    torch.compile(lambda x: x + number, backend="aot_eager")(torch.ones(2))

class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        if running:
            WORK()
            Cycle()

running = True
Cycle()
gc.set_threshold(THRESHOLD)  # a collection, with its finalizer, in the middle of nearly every call
for _ in range(ROUNDS):
    WORK()
running = False
"""


@pytest.mark.parametrize(("work", "threshold", "rounds"), [("expression", 3, 60), ("value", 3, 60), ("region", 3, 60), ("capture", 301, 4)])
def test_a_finalizer_may_call_the_function_that_it_interrupts(work: str, threshold: int, rounds: int) -> None:
    code = FINALIZERS.replace("WORK", work).replace("THRESHOLD", str(threshold)).replace("ROUNDS", str(rounds))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def held_by_another_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """The lock is held by a thread, from before the test until its end."""
    lock, held, end = request.param(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            end.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    yield lock
    end.set()
    holder.join()


def _in_child(work: Any) -> int:
    """The exit code of a forked child that calls `work`. A child that does not end within a minute is ended by SIGALRM."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _of(module: str, name: str) -> Any:
    return lambda: getattr(importlib.import_module(module), name)


LOCKS = {
    "new": new_lock,
    "settings": lambda: settings._lock,
    "expressions": _of("fxir.expr.nodes", "_lock"),
    "values": _of("inductor.ir.values", "_lock"),
    "parses": _of("dynamo.emit.function", "_PARSING"),
    "readers": _of("inductor.artifact.readers", "_registering"),
    "temporary folder": _of("inductor.artifact.cache", "_temporary_lock"),
}


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("held_by_another_thread", LOCKS.values(), ids=LOCKS, indirect=True)
def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent(held_by_another_thread: Any) -> None:
    def take() -> None:
        with held_by_another_thread, held_by_another_thread:
            pass

    assert _in_child(take) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_lock_that_is_held_across_a_fork_is_released_in_both_processes() -> None:
    lock = new_lock()
    lock.__enter__()
    taken: list[bool] = []

    def release_and_take_elsewhere() -> None:
        lock.__exit__(None, None, None)
        other = threading.Thread(target=lambda: taken.append(bool(lock.__enter__())))
        other.start()
        other.join()
        assert taken == [True]

    assert _in_child(release_and_take_elsewhere) == 0
    release_and_take_elsewhere()
