"""The worker processes of one DataLoader iterator, from the parent's side: start, send, receive, end."""
from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from eager.utils.data._utils import worker
from eager.utils.data._utils.transfer import Channel

_CHECK_S = 5.0  # interval of liveness checks, for a death that closes no socket
_GRACE_S = 5.0  # how long a worker may finish its current task before it is terminated


class WorkerPool:
    """`count` processes of a multiprocessing context, started with `settings(i)`, each connected by a channel.

    The processes end with `shutdown`, which also runs when the pool's owner is collected (`own`) or the
    interpreter exits; they also end if this process dies.
    """

    def __init__(self, context: Any, count: int, settings: Callable[[int], worker.WorkerSettings]) -> None:
        self._pid = os.getpid()
        self.stopped = False
        self._processes: list[BaseProcess] = []
        self._channels: list[Channel] = []
        self._open: dict[Channel, int] = {}
        forks = context.get_start_method() == "fork"
        try:
            for i in range(count):
                ours, theirs = Channel.pair()
                self._channels.append(ours)
                self._open[ours] = i
                process = context.Process(target=worker.run, args=(theirs, ours if forks else None, settings(i)), daemon=True)
                try:
                    process.start()
                finally:
                    theirs.close()
                self._processes.append(process)
        except BaseException:
            self.shutdown()
            raise

    def own(self, owner: object) -> None:
        """Shut the pool down when `owner` is collected."""
        weakref.finalize(owner, self.shutdown)

    def send(self, i: int, message: worker.Task | worker.Restart) -> None:
        """Send a message to worker `i`. Raises: RuntimeError if the worker is dead."""
        try:
            self._channels[i].send(message)
        except OSError:
            self._processes[i].join(_GRACE_S)
            self._raise_for_dead()
            raise

    def stop(self, i: int) -> None:
        """Tell worker `i` to end: it receives no more tasks."""
        channel = self._channels[i]
        if self._open.pop(channel, None) is not None:
            channel.shut()

    def receive(self, timeout_s: float | None) -> tuple[int, worker.Result] | None:
        """(worker, its next result), or None after `timeout_s` seconds. Raises: RuntimeError if a worker died."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _CHECK_S if deadline is None else min(_CHECK_S, max(0.0, deadline - time.monotonic()))
            watched: list[Any] = list(self._open)
            ready = wait(watched, left)
            if not ready:
                self._raise_for_dead()
                if deadline is not None and time.monotonic() >= deadline:
                    return None
                continue
            channel = ready[0]
            assert isinstance(channel, Channel)
            try:
                return self._open[channel], channel.receive()
            except (EOFError, ConnectionResetError):
                self._processes[self._open[channel]].join(_GRACE_S)
                self._raise_for_dead()
                raise RuntimeError(f"DataLoader worker {self._open[channel]} closed its channel but continues to run") from None

    def _raise_for_dead(self) -> None:
        dead = [self._processes[i] for i in self._open.values() if not self._processes[i].is_alive()]
        if not dead:
            return
        pids = ", ".join(str(p.pid) for p in dead)
        how = "; ".join(f"worker (pid {p.pid}) {_manner_of_end(p.exitcode)}" for p in dead)
        self.shutdown()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from RuntimeError(f"DataLoader {how}")

    def shutdown(self) -> None:
        """End all workers and wait for them. Batches in progress are lost. A second call does nothing."""
        if os.getpid() != self._pid:
            return  # in a forked copy of the parent the workers are not its children
        self.stopped = True
        for channel in self._channels:
            channel.shut()
            channel.close()
        self._channels, self._open = [], {}
        deadline = time.monotonic() + _GRACE_S
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for end in (BaseProcess.terminate, BaseProcess.kill):
            for process in self._processes:
                if process.is_alive():
                    end(process)
                    process.join(_GRACE_S)
        for process in self._processes:
            process.close()
        self._processes = []


def _manner_of_end(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        name = signal.strsignal(-exitcode) or f"signal {-exitcode}"
        return f"is killed by signal: {name}."
    return f"exited with code {exitcode}"
