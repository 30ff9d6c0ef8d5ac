"""Datasets: map an index to a sample or yield samples; classes that join and split datasets."""
from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from eager._tensor.tensor import Tensor
from eager.functions.random import randperm
from eager.random import Generator

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Maps an index (or any key) to a sample.

    Subclasses define `__getitem__`, and `__len__` if a sampler or DataLoader needs it. They may define
    `__getitems__(indices) -> list of samples`, which DataLoader then calls once per batch.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any] | ChainDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Yields samples: for streams and files without random access.

    Each worker process iterates its own copy, so `__iter__` must divide the samples among the workers
    (`get_worker_info()`); otherwise every sample appears once per worker.
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The samples are tuples of slices of tensors along their first dim.

    tensors: any number, each (n, *). Raises: AssertionError if their first sizes differ.
    """

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """The samples are tuples (positional datasets) or dicts (keyword datasets) of the datasets' samples.

    Raises: ValueError for no dataset, both forms at once, or datasets of different lengths.
    """

    datasets: Any

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                             "types are given.")  # fmt: skip
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = kwargs or args
        lengths = {len(cast(Sized, d)) for d in self._members()}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def _members(self) -> list[Dataset[Any]]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _join(self, parts: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, parts, strict=True)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._join(d[index] for d in self._members())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = []
        for d in self._members():
            items = _items(d, indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        return [self._join(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Several map-style datasets in sequence. Raises: AssertionError for an empty list or an iterable dataset."""

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The cumulative lengths of the datasets."""
        return list(itertools.accumulate(len(d) for d in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Several iterable datasets in sequence, each read when needed. Raises: AssertionError for a map-style dataset."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`.

    Raises: NotImplementedError for a subclass that overrides only `__getitem__`: batches would bypass it.
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding __getitem__, "
                "you must also override __getitems__ to ensure DataLoader works correctly with your custom logic. A simple "
                "implementation:\n\ndef __getitems__(self, indices):\n    return [self.__getitem__(idx) for idx in indices]"
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _items(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at `indices`, by a single `__getitems__` call if the dataset defines it."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if callable(many) else [dataset[i] for i in indices]


def random_split(dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[T]]:
    """Split a dataset at random into non-overlapping Subsets.

    lengths: counts that add up to the dataset's length, or fractions that add up to 1; counts from fractions
    are rounded down, and the first subsets get the remaining samples, one each.
    Raises: ValueError if the lengths do not add up, or for a fraction outside [0, 1].
    """
    total = len(cast(Sized, dataset))
    counts = _counts(total, lengths)
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(int(sum(counts)), generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[int(end - n) : int(end)]) for end, n in zip(ends, counts, strict=True)]


def _counts(total: int, lengths: Sequence[int | float]) -> Sequence[int | float]:
    if not (math.isclose(sum(lengths), 1) and sum(lengths) <= 1):
        return lengths
    counts = []
    for i, fraction in enumerate(lengths):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts.append(math.floor(total * fraction))
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    for i, n in enumerate(counts):
        if n == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return counts
