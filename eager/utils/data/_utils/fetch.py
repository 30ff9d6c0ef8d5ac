"""Fetchers: turn one item of the index sampler into one batch."""
from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any


class MapFetcher:
    """Looks up samples by index. Without `batched`, an index yields one sample."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn
        many = getattr(dataset, "__getitems__", None)
        self.many = many if callable(many) else None

    def fetch(self, indices: Any) -> Any:
        """The collated samples at `indices`, or the sample at one index without `batched`."""
        if not self.batched:
            return self.collate_fn(self.dataset[indices])
        if self.many is not None:
            return self.collate_fn(self.many(indices))
        return self.collate_fn([self.dataset[i] for i in indices])


class IterableFetcher:
    """Takes as many samples from an iterator as there are (dummy) indices."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, indices: Any) -> Any:
        """The next `len(indices)` samples, collated. Raises: StopIteration at the end of the iterator."""
        if not self.batched:
            return self.collate_fn(next(self.samples))
        samples = list(islice(self.samples, len(indices)))
        if not samples or (self.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return self.collate_fn(samples)


Fetcher = MapFetcher | IterableFetcher
