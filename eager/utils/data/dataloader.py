"""DataLoader: batches of a dataset, fetched in this process or ahead of time by worker processes."""
from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar, cast

from eager import cuda
from eager._utils import ExceptionWrapper
from eager.random import Generator
from eager.utils.data._utils.collate import default_collate, default_convert
from eager.utils.data._utils.fetch import Fetcher, IterableFetcher, MapFetcher
from eager.utils.data._utils.pin_memory import pin_memory
from eager.utils.data._utils.pool import WorkerPool
from eager.utils.data._utils.worker import EndOfStream, Restart, Task, WorkerInfo, WorkerSettings, get_worker_info
from eager.utils.data.dataset import Dataset, IterableDataset
from eager.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

T_co = TypeVar("T_co", covariant=True)

_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


_collate_fn_t = Callable[[list[Any]], Any]  # noqa: PYI042 - libraries use this name in annotations
_worker_init_fn_t = Callable[[int], None]  # noqa: PYI042


class _DatasetKind:
    """How a dataset provides samples: by index, or by iteration."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """Yields None forever: an iterable dataset has no indices and determines the end itself."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    dataset: map-style (`__getitem__`) or an IterableDataset.
    batch_size: samples per batch; None disables batching and passes each sample to `collate_fn` alone.
    shuffle, sampler, batch_sampler: the order; a sampler yields indices, a batch_sampler lists of indices (and
        excludes batch_size, shuffle, sampler and drop_last). An IterableDataset determines its own order.
    num_workers: number of worker processes; 0 fetches in this process.
    collate_fn: converts a list of samples to a batch; `default_collate` (or `default_convert` without batching).
    pin_memory: put the batches' tensors in page-locked memory, if there is a GPU.
    drop_last: leave out an incomplete last batch.
    timeout: seconds to wait for a batch of the workers; 0 waits forever. Raises RuntimeError when exceeded.
    worker_init_fn: called in each worker with its number, after seeding.
    multiprocessing_context: a start method or a context of `multiprocessing`.
    generator: source of the shuffling and of the workers' seeds; the default generator if None.
    prefetch_factor: number of batches that each worker fetches ahead (2).
    persistent_workers: keep the workers for the next pass.
    in_order: yield the workers' batches in the sampler's order; False yields them as they arrive.

    The order and all draws of this process depend on the generator only, not on `num_workers`. Worker `i` seeds
    `random`, numpy and the default generator from a seed drawn once per pass (once per loader, if persistent)
    plus `i`. An exception in a worker is raised here with its class and traceback; a worker that dies raises RuntimeError.

    Raises: ValueError for contradictory or negative options; TypeError for a wrong multiprocessing context.
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    _iterator: Any = None  # kept for the next pass if its workers are persistent
    _initialized = False

    def __init__(self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Sampler[Any] | Iterable[Any] | None = None,
                 batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None, num_workers: int = 0,
                 collate_fn: Callable[[list[T_co]], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        self._check_order(shuffle, sampler, batch_sampler, batch_size, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self._iterable_length: int | None = None  # set by `len()`; a pass then warns if the dataset yields more
        self._initialized = True
        _warn_of_too_many(num_workers)

    def _check_order(self, shuffle: bool | None, sampler: Any, batch_sampler: Any, batch_size: int | None,
                     drop_last: bool) -> None:  # fmt: skip
        if self._dataset_kind == _DatasetKind.Iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                                     f"{name}={value}")  # fmt: skip
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        if batch_sampler is None and batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(cast(Sized, self.dataset), generator=self.generator)
        return SequentialSampler(cast(Sized, self.dataset))

    @property
    def multiprocessing_context(self) -> Any:
        """The context in which workers start; None for the default context."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        self._context = None if value is None else _context_of(value, self.num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """The sampler of a pass: yields lists of indices, or single indices without batching."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def _fetcher_maker(self) -> Callable[[], Fetcher]:
        kind = MapFetcher if self._dataset_kind == _DatasetKind.Map else IterableFetcher
        return functools.partial(kind, self.dataset, self._auto_collation, self.collate_fn, self.drop_last)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        return _MultiProcessingDataLoaderIter(self) if self.num_workers > 0 else _SingleProcessDataLoaderIter(self)

    def __iter__(self) -> Any:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None or self._iterator.closed:
            self._iterator = self._get_iterator()
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        """Number of batches per pass; for an IterableDataset an estimate from its `__len__`.

        Raises: TypeError if the dataset or sampler has no length.
        """
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = self._iterable_length = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return n
        whole, rest = divmod(n, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                         "multiprocessing, otherwise set prefetch_factor to None.")  # fmt: skip
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _context_of(value: Any, num_workers: int) -> BaseContext:
    if num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                         f"num_workers={num_workers}")  # fmt: skip
    if isinstance(value, str):
        allowed = multiprocessing.get_all_start_methods()
        if value not in allowed:
            raise ValueError(f"multiprocessing_context option should specify a valid start method in {allowed!r}, but got "
                             f"multiprocessing_context={value!r}")  # fmt: skip
        return multiprocessing.get_context(value)
    if not isinstance(value, BaseContext):
        raise TypeError("multiprocessing_context option should be a valid context object or a string specifying the start "
                        f"method, but got multiprocessing_context={value}")  # fmt: skip
    return value


def _warn_of_too_many(num_workers: int) -> None:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if usable is not None and num_workers > usable:
        warnings.warn(f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker "
                      f"in current system is {usable}, which is smaller than what this DataLoader is going to create. Please be "
                      "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
                      "number to avoid potential slowness/freeze if necessary.", stacklevel=3)  # fmt: skip


class _BaseDataLoaderIter:
    """One pass over a DataLoader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader_name = type(loader).__name__
        self._begin(loader)
        # Drawn for every pass, with or without workers, so that the generator's state does not depend on num_workers.
        self._base_seed = draw_seed(loader.generator)
        self._pin = loader.pin_memory and cuda.is_available()
        if loader.pin_memory_device:
            warnings.warn("pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
                          f"pin_memory_device='{loader.pin_memory_device}'.", stacklevel=4)  # fmt: skip
        if loader.pin_memory and not self._pin:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                          "used.", stacklevel=4)  # fmt: skip

    def _begin(self, loader: DataLoader[Any]) -> None:
        self._index_sampler = loader._index_sampler
        self._indices = iter(self._index_sampler)
        self._yielded = 0
        self._expected = None if loader._iterable_length is None else len(loader)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        batch = self._fetch()
        self._yielded += 1
        if self._expected is not None and self._yielded > self._expected:
            warnings.warn(f"Length of IterableDataset was reported to be {self._expected} batches (when accessing "
                          f"len({self._loader_name})), but {self._yielded} have been fetched. With worker processes this happens "
                          "where the dataset's __iter__ does not share the work out by get_worker_info().", stacklevel=2)  # fmt: skip
        return pin_memory(batch) if self._pin else batch

    def _fetch(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._fetch")

    next = __next__

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch in this process when it is requested."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError(f"DataLoader: timeout={loader.timeout} with num_workers=0; allowed: 0, or workers to wait for")
        self._fetcher = loader._fetcher_maker()()

    def _fetch(self) -> Any:
        return self._fetcher.fetch(next(self._indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Assigns numbered tasks to worker processes and yields their answers by number, or as they arrive."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if not loader.prefetch_factor:
            raise AssertionError(f"DataLoader: prefetch_factor={loader.prefetch_factor} with num_workers > 0; allowed: 1 or more")
        self._ahead: int = loader.prefetch_factor
        self._in_order = loader.in_order
        self._timeout_s = float(loader.timeout) or None
        self._persistent = loader.persistent_workers
        self._epoch = -1
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        make_fetcher, count = loader._fetcher_maker(), loader.num_workers
        self._pool = WorkerPool(context, count, lambda i: WorkerSettings(
            i, count, self._base_seed, loader.dataset, make_fetcher, loader.worker_init_fn))  # fmt: skip
        self._pool.own(self)
        self._hand_out_first()

    def _begin(self, loader: DataLoader[Any]) -> None:
        super()._begin(loader)
        self._epoch += 1
        self._given = 0  # number of tasks assigned so far; the number of the next task
        self._wanted = 0  # number of the next batch to yield
        self._owner: dict[int, int] = {}  # the worker of each unanswered task
        self._ready: dict[int, Any] = {}  # answers not yet yielded
        self._active = list(range(loader.num_workers))  # the first worker gets the next task, then moves to the end

    @property
    def closed(self) -> bool:
        """Whether the workers have ended: after a pass unless they are persistent, or after a failure."""
        return self._pool.stopped

    def restart(self, loader: DataLoader[Any]) -> None:
        """Begin another pass with the same workers."""
        self._begin(loader)
        for i in self._active:
            self._pool.send(i, Restart(self._epoch))
        self._hand_out_first()

    def _hand_out_first(self) -> None:
        for _ in range(self._ahead * len(self._active)):
            self._hand_out()

    def _hand_out(self) -> None:
        """Assign the next indices to the next worker with capacity; none if the sampler or the workers are exhausted."""
        load = Counter(self._owner.values())
        taker = next((i for i in self._active if self._in_order or load[i] < self._ahead), None)
        if taker is None:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        self._active.remove(taker)
        self._active.append(taker)
        self._owner[self._given] = taker
        self._pool.send(taker, Task(self._epoch, self._given, indices))
        self._given += 1

    def _fetch(self) -> Any:
        try:
            while (number := self._next_ready()) is None:
                self._receive()
        except StopIteration:
            if not self._persistent:
                self._pool.shutdown()
            raise
        except BaseException:
            self._pool.shutdown()  # a dead worker, a timeout or Ctrl-C
            raise
        data = self._ready.pop(number)
        self._hand_out()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _next_ready(self) -> int | None:
        """Number of an answer to yield now, or None to wait for answers.

        Raises: StopIteration at the end of the pass.
        """
        if self.closed or not (self._ready or self._owner):
            raise StopIteration
        if not self._in_order:
            return next(iter(self._ready), None)
        while self._wanted not in self._ready and self._wanted not in self._owner:
            self._wanted += 1  # the worker's stream ended before this task
        if self._wanted not in self._ready:
            return None
        self._wanted += 1
        return self._wanted - 1

    def _receive(self) -> None:
        received = self._pool.receive(self._timeout_s)
        if received is None:
            raise RuntimeError(f"DataLoader timed out after {self._timeout_s:g} seconds")
        i, result = received
        if result.epoch != self._epoch:
            return  # the answer belongs to an abandoned pass
        if not isinstance(result.data, EndOfStream):
            del self._owner[result.number]
            self._ready[result.number] = result.data
            return
        lost = [number for number, owner in self._owner.items() if owner == i]
        for number in lost:
            del self._owner[number]
        self._active.remove(i)
        if not self._persistent:
            self._pool.stop(i)
        for _ in lost:
            self._hand_out()



__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]
