"""spawn: run one function in several processes, and raise their errors in the parent."""
from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from eager import _native

if TYPE_CHECKING:
    from multiprocessing.context import ForkContext, ForkServerContext
    from multiprocessing.context import SpawnContext as _SpawnContext

_GRACE_S = 30.0


class ProcessException(Exception):
    """A process of `start_processes` failed. error_index: its number; pid: its process id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The process raised an exception; the message ends with its traceback."""


class ProcessExitedException(ProcessException):
    """The process exited with a nonzero code, or was killed by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], errors: Connection) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        return  # Ctrl-C interrupts the parent too, which reports it
    except Exception as error:  # noqa: BLE001 - reported to the parent
        _native.drop_library_frames(error)
        errors.send(traceback.format_exc())
        sys.exit(1)


def _received(errors: Connection) -> str | None:
    """The traceback that a process has sent; None if it ended without one."""
    try:
        return str(errors.recv()) if errors.poll() else None
    except EOFError:
        return None


class ProcessContext:
    """The running processes of one `start_processes`."""

    def __init__(self, processes: list[Any], errors: list[Connection]) -> None:
        self.processes = processes
        self._errors = errors
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends or `timeout` seconds have passed. Returns: True once all have ended successfully.

        If one fails, the others are terminated, and killed after `grace_period` seconds.
        Raises: ProcessRaisedException or ProcessExitedException for the first process that failed.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(list(self.sentinels), timeout):
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0 and failed is None:
                failed = i
        if failed is None:
            return not self.sentinels
        self._end_all(_GRACE_S if grace_period is None else grace_period)
        self._raise_for(failed)
        raise AssertionError("not reached")

    def _end_all(self, grace_s: float) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + grace_s
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _raise_for(self, i: int) -> None:
        process = self.processes[i]
        trace = _received(self._errors[i])
        if trace is not None:
            raise ProcessRaisedException(f"\n\n-- Process {i} terminated with the following error:\n{trace}", i, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)
        raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)


SpawnContext = ProcessContext


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> ProcessContext | None:  # fmt: skip
    """Call `fn(i, *args)` in `nprocs` processes, i counting from 0.

    With `join`, wait for all; otherwise return the ProcessContext. Raises: as `ProcessContext.join`.
    """
    context = cast("ForkContext | ForkServerContext | _SpawnContext", multiprocessing.get_context(start_method))
    processes: list[Any] = []
    errors = []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    running = ProcessContext(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> ProcessContext | None:  # fmt: skip
    """`start_processes` with new interpreters: `fn` and `args` are pickled, and each process imports the main module.

    Raises: ValueError for another start_method.
    """
    if start_method != "spawn":
        raise ValueError(f"spawn: start_method={start_method!r}; allowed: 'spawn'; start_processes takes the others")
    return start_processes(fn, args, nprocs, join, daemon, start_method)
