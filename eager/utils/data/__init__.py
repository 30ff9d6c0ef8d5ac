"""Datasets, samplers and the DataLoader."""
from __future__ import annotations

from eager.utils.data import dataloader, dataset, distributed, sampler
from eager.utils.data._utils.collate import default_collate, default_convert
from eager.utils.data._utils.worker import get_worker_info
from eager.utils.data.dataloader import DataLoader, _DatasetKind
from eager.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from eager.utils.data.distributed import DistributedSampler
from eager.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "_DatasetKind", "dataloader", "dataset", "default_collate", "default_convert", "distributed",
    "get_worker_info", "random_split", "sampler",
]  # fmt: skip
