"""DistributedSampler: divides a dataset's indices among processes. Uses no communication."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

from eager.functions.random import randperm
from eager.random import Generator
from eager.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """The indices of one process (`rank`) out of `num_replicas`; all processes get equally many.

    Indices are assigned in turn. If they do not divide evenly, the first ones repeat, or with
    `drop_last` the remainder is left out. With `shuffle` the order follows from `seed + epoch`, the same in every
    process: call `set_epoch` before each epoch to change it.
    Raises: RuntimeError without num_replicas or rank (there is no process group to query);
    ValueError for a rank outside [0, num_replicas).
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            missing = "num_replicas" if num_replicas is None else "rank"
            raise RuntimeError(f"Requires distributed package to be available: DistributedSampler got {missing}=None; pass "
                               "num_replicas and rank")  # fmt: skip
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def _order(self) -> list[Any]:
        n = len(self.dataset)
        if not self.shuffle:
            return list(range(n))
        return randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()

    def __iter__(self) -> Iterator[int]:
        indices = self._order()
        if indices and len(indices) < self.total_size:
            indices = (indices * math.ceil(self.total_size / len(indices)))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Select the order of the next pass; call it with the same number in every process."""
        self.epoch = epoch
