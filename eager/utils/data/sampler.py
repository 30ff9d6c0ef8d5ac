"""Samplers: the order in which a DataLoader reads samples."""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.functions.creation import as_tensor, empty
from eager.functions.random import multinomial, randint, random_, randperm
from eager.random import Generator

T_co = TypeVar("T_co", covariant=True)

_CHUNK = 32  # number of indices per draw with replacement


def draw_seed(generator: Generator | None = None) -> int:
    """A seed for another generator: one non-negative 63-bit integer drawn from `generator` or the default one."""
    return int(random_(empty((), dtype=dtypes.int64), generator=generator).item())


class Sampler(Generic[T_co]):
    """Yields indices, or lists of indices. Subclasses define `__iter__`, and `__len__` if the length is known.

    The base class has no `__len__`: `list(sampler)` calls it as a hint and must get a TypeError.
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        """`data_source` is ignored; subclasses written for older versions pass it."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__")


class SequentialSampler(Sampler[int]):
    """Yields 0, 1, 2, ... up to the length of `data_source`."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Yields indices of `data_source` in random order, or drawn with replacement.

    num_samples: how many; by default the length of `data_source`. Without replacement, permutations follow each
    other until num_samples is reached. generator: source of the draws; by default a new generator, seeded at each `iter`
    from the default generator, so that a pass of any length draws one number from that.
    Raises: TypeError if replacement is not a bool; ValueError for num_samples below 1.
    """

    data_source: Sized
    replacement: bool

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None) -> None:  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Number of indices per pass. The data source may grow between passes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed())
        n, left = len(self.data_source), self.num_samples
        if n == 0:
            raise ValueError(f"RandomSampler: cannot draw {left} indices from an empty data_source")
        while left > 0:
            if self.replacement:
                drawn = randint(0, n, (min(left, _CHUNK),), generator=generator)
            else:
                drawn = randperm(n, generator=generator)[:left]
            yield from drawn.tolist()
            left -= len(drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Yields the given indices in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Yields indices of `weights`, each drawn with a probability proportional to its weight.

    weights: (n,), not negative, with any sum; stored as float64. Without replacement num_samples is at most the
    number of positive weights. Raises: ValueError for a num_samples, replacement or weights of the wrong kind.
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None) -> None:  # fmt: skip
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups another sampler's indices into lists of `batch_size`; `drop_last` leaves out a shorter last list.

    Raises: ValueError for a batch_size below 1, or if drop_last is not a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices: Iterator[Any] = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(cast(Sized, self.sampler)), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
