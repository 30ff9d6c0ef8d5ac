"""The worker process of a DataLoader: answers tasks until the other end of its channel is shut.

It must not outlive its parent and must not block it. A thread reads the tasks, so that a send of the parent never waits
for a busy worker, and checks whether the parent is alive.
"""
from __future__ import annotations

import os
import queue
import random
import signal
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from eager._utils import ExceptionWrapper
from eager.base.records import dataclass
from eager.base.threads import set_num_threads
from eager.random import manual_seed
from eager.utils.data._utils.fetch import Fetcher, IterableFetcher
from eager.utils.data._utils.transfer import Channel

_PARENT_CHECK_S = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """Request for the batch of `indices`. `number` counts the tasks of a pass, `epoch` the passes."""

    epoch: int
    number: int
    indices: Any


@dataclass(frozen=True, slots=True)
class Restart:
    """Request to begin a new pass over the dataset; tasks of earlier passes are dropped."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one task: a batch, an ExceptionWrapper, or `EndOfStream`."""

    epoch: int
    number: int
    data: Any


class EndOfStream:
    """Result if the worker's copy of an iterable dataset is exhausted; it answers no more tasks of this pass."""


@dataclass(frozen=True)
class WorkerInfo:
    """Result of `get_worker_info()`: this worker's id, the number of workers, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The start arguments of a worker; picklable if its parts are."""

    id: int
    num_workers: int
    base_seed: int
    dataset: Any
    make_fetcher: Callable[[], Fetcher]
    init_fn: Callable[[int], None] | None


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Information about this worker process of a DataLoader; None in any other process.

    `worker_init_fn`, `IterableDataset.__iter__` and `Dataset.__getitem__` use it to distinguish copies of a dataset.
    """
    return _info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The four-word numpy seed of one worker: a hash of both numbers."""
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed `random`, numpy and the default generator for one worker. Returns: the seed of `random` and the default generator.

    numpy receives a hash of both numbers, because its 32-bit seeds would collide.
    """
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))  # noqa: NPY002 - datasets use this global generator
    return seed


def run(channel: Channel, inherited: Channel | None, settings: WorkerSettings) -> None:
    """Main function of a worker process.

    inherited: the parent's end of the channel, of which a forked child has a copy.
    """
    # The terminal sends Ctrl-C to the whole process group; the parent handles it and shuts the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if inherited is not None:
        inherited.close()
    set_num_threads(1)  # the workers share the machine's cores
    inbox = _Inbox(channel)
    worker = _Worker(settings)
    while (message := inbox.next()) is not None:
        if isinstance(message, Restart):
            worker.restart()
        elif message.epoch == inbox.epoch and not worker.ended and not _answer(channel, worker, message):
            break
    channel.close()


def _answer(channel: Channel, worker: _Worker, task: Task) -> bool:
    """Send the answer to a task. False if the parent has shut the channel."""
    answer = Result(task.epoch, task.number, worker.fetch(task))
    try:
        channel.send(answer)
    except OSError:
        return False
    except Exception:  # noqa: BLE001 - the batch cannot be pickled: send the error as the answer
        context = f"in DataLoader worker process {worker.settings.id} while sending a batch"
        channel.send(Result(task.epoch, task.number, ExceptionWrapper(where=context)))
    return True


class _Inbox:
    """Messages from the parent, read by a thread; None marks the end."""

    def __init__(self, channel: Channel) -> None:
        self.epoch = 0  # the latest pass that the parent has begun
        self._channel = channel
        self._messages: queue.SimpleQueue[Task | Restart | None] = queue.SimpleQueue()
        self._forebear = os.getppid()
        threading.Thread(target=self._read, name="DataLoader inbox", daemon=True).start()

    def next(self) -> Task | Restart | None:
        return self._messages.get()

    def _read(self) -> None:
        parent = parent_process()
        assert parent is not None
        open_ = True
        watched: list[Any] = [self._channel, parent.sentinel]
        while True:
            ready: list[Any] = wait(watched, _PARENT_CHECK_S)
            if parent.sentinel in ready or os.getppid() != self._forebear:
                os._exit(1)  # the parent has ended, and the main thread may stay in user code for long
            if open_ and self._channel in ready:
                open_ = self._take()
                if not open_:
                    watched = [parent.sentinel]

    def _take(self) -> bool:
        """Read one message. False if the channel was shut."""
        try:
            message = self._channel.receive()
        except (EOFError, OSError):
            self.epoch = -1  # queued tasks need no answer
            self._messages.put(None)
            return False
        if isinstance(message, Restart):
            self.epoch = message.epoch
        self._messages.put(message)
        return True


class _Worker:
    """Holds the dataset, with one fetcher per pass. An error at the start becomes the answer to every task."""

    def __init__(self, settings: WorkerSettings) -> None:
        global _info
        self.settings = settings
        self.fetcher: Fetcher | None = None
        self.failure: ExceptionWrapper | None = None
        self.ended = False
        self._usable = True  # whether init_fn succeeded
        seed = seed_worker(settings.base_seed, settings.id)
        _info = WorkerInfo(settings.id, settings.num_workers, seed, settings.dataset)
        try:
            if settings.init_fn is not None:
                settings.init_fn(settings.id)
        except Exception:  # noqa: BLE001 - reported to the parent
            self.failure = self._wrapped()
            self._usable = False
        self.restart()

    def restart(self) -> None:
        """Begin a pass: create a new iterator of an iterable dataset."""
        self.ended = False
        if not self._usable:
            return
        self.failure = None
        try:
            self.fetcher = self.settings.make_fetcher()
        except Exception:  # noqa: BLE001 - reported to the parent
            self.failure = self._wrapped()

    def fetch(self, task: Task) -> Any:
        if self.failure is not None:
            return self.failure
        assert self.fetcher is not None
        try:
            return self.fetcher.fetch(task.indices)
        except Exception as error:  # noqa: BLE001 - reported to the parent
            if isinstance(error, StopIteration) and isinstance(self.fetcher, IterableFetcher):
                self.ended = True
                return EndOfStream()
            return self._wrapped()

    def _wrapped(self) -> ExceptionWrapper:
        return ExceptionWrapper(where=f"in DataLoader worker process {self.settings.id}")
