"""Small programs over utils.data, written once and run twice: by `make_reference.py` with torch, by the tests with eager.

A case takes the package and returns something that JSON can hold. Nothing random: the streams differ on purpose.
"""
from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import numpy as np

Point = collections.namedtuple("Point", "x y")
CASES: dict[str, Callable[[Any], Any]] = {}


def case(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[fn.__name__] = fn
    return fn


def plain(value: Any) -> Any:
    """Tensors as (dtype, values); containers with their type's name."""
    if type(value).__name__ in ("Tensor", "Parameter"):
        return [str(value.dtype).replace("eager.", "torch."), value.tolist()]
    if isinstance(value, collections.abc.Mapping):
        return {"type": type(value).__name__, **{str(k): plain(v) for k, v in value.items()}}
    if isinstance(value, (list, tuple, collections.deque)):
        return [type(value).__name__, *(plain(v) for v in value)]
    return value if isinstance(value, (int, float, str)) or value is None else repr(value)


def outcome(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return plain(fn(*args, **kwargs))
    except Exception as error:
        return f"raises {type(error).__name__}"


def message(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Class and text of the exception that a call raises."""
    try:
        fn(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


@case
def collated(torch: Any) -> Any:
    collate = torch.utils.data.default_collate
    t = torch.tensor
    batches: list[Any] = [
        [t([1, 2]), t([3, 4])], [t(1.5), t(2.5)], [t([True]), t([False])], [np.ones(2, np.float32)] * 2, [np.array(3)] * 2,
        [np.float32(1), np.float32(2)], [np.float64(1), np.float64(2)], [np.int16(1), np.int16(2)], [np.bool_(True)] * 2,
        [1.5, 2], [1, 2], [1, 2.5], [True, False], ["a", "b"], [b"a", b"b"], [(1, "a"), (2, "b")], [[1, 2.0], [3, 4.0]],
        [{"a": 1, "b": [1.0]}, {"a": 2, "b": [2.0]}], [Point(1, t([1.0])), Point(2, t([2.0]))],
        [collections.OrderedDict(a=1)] * 2, [collections.defaultdict(int, a=1)] * 2, [collections.deque([1, 2])] * 2,
        [types.MappingProxyType({"a": 1})] * 2, [range(3), range(3)], [{"a": 1}, {"a": 2, "b": 3}], ([1, 2], [3, 4]),
        [np.array(["a"])] * 2, [None, None], [1j, 2j], [{1}, {2}], [[1], [1, 2]], [], [{"a": 1, "b": 2}, {"a": 1}],
        [np.datetime64("2020")] * 2, [t([1.0]), t([1.0, 2.0])], [t([1.0]), 1.0], [t([1.0]), t([1.0]).double()],
    ]  # fmt: skip
    return [outcome(collate, b) for b in batches]


@case
def collated_by_a_map_of_ones_own(torch: Any) -> Any:
    from importlib import import_module

    module = import_module(f"{torch.__name__}.utils.data._utils.collate")
    table = {set: lambda batch, *, collate_fn_map: sorted(set().union(*batch)), **module.default_collate_fn_map}
    return [outcome(module.collate, [{1}, {2}], collate_fn_map=table), outcome(module.collate, [({1}, 1.0)], collate_fn_map=table),
            outcome(module.collate, [torch.ones(1)])]  # fmt: skip


@case
def collate_messages(torch: Any) -> Any:
    collate = torch.utils.data.default_collate
    return [message(collate, b) for b in ([None], [np.array(["a"])], [[1], [1, 2]])]


@case
def converted(torch: Any) -> Any:
    convert = torch.utils.data.default_convert
    return [outcome(convert, d) for d in (
        np.float32(1), 1.0, (1, np.ones(2)), [np.int64(3)], "text", np.array(["a"]), {"a": np.ones(1)}, Point(np.int8(1), 2), None,
        np.datetime64("2020"), torch.tensor(1), collections.deque([np.float64(2)]))]  # fmt: skip


@case
def datasets(torch: Any) -> Any:
    d = torch.utils.data

    class Squares(d.Dataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

        def __getitem__(self, i: int) -> int:
            if not -self.n <= i < self.n:
                raise IndexError(i)
            return i * i

    class Batched(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [100 + i for i in indices]

    class Short(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [1]

    class Stream(d.IterableDataset):
        def __iter__(self) -> Any:
            return iter([1, 2])

        def __len__(self) -> int:
            return 2

    class Odd(d.Subset):
        def __getitem__(self, i: int) -> int:
            return -1

    tensors = d.TensorDataset(torch.arange(4), torch.arange(8).reshape(4, 2))
    joined = Squares(3) + Squares(2)
    stacked, named = d.StackDataset(Squares(3), Batched(3)), d.StackDataset(a=Squares(3), b=Batched(3))
    part = d.Subset(Batched(9), [3, 1, 2])
    return [
        len(tensors), plain(tensors[1]), plain(tensors[1:3]), message(d.TensorDataset, torch.ones(2), torch.ones(3)),
        len(joined), [joined[i] for i in range(5)], joined[-1], joined[-5], message(joined.__getitem__, -6), joined.cumulative_sizes,
        outcome(joined.__getitem__, 5), message(d.ConcatDataset, []), message(d.ConcatDataset, [Stream()]),
        len(stacked), plain(stacked[1]), plain(stacked.__getitems__([0, 2])), plain(named[1]), plain(named.__getitems__([0, 2])),
        message(d.StackDataset), message(d.StackDataset, Squares(1), a=Squares(1)), message(d.StackDataset, Squares(1), Squares(2)),
        message(d.StackDataset(Short(3)).__getitems__, [0, 1]), message(d.StackDataset(a=Short(3)).__getitems__, [0, 1]),
        list(Stream() + Stream()), len(Stream() + Stream()), message(list, d.ChainDataset([Squares(2)])),
        len(part), part[0], part.__getitems__([0, 2]), message(Odd, Squares(3), [0]),
        message(d.Dataset().__getitem__, 0), outcome(len, d.Dataset()), plain(d.Subset(tensors, [2, 0])[[0, 1]]),
    ]  # fmt: skip


@case
def split_sizes(torch: Any) -> Any:
    split = torch.utils.data.random_split
    sizes = [(7, [3, 4]), (10, [0.3, 0.7]), (10, [0.33, 0.33, 0.34]), (11, [0.5, 0.5]), (3, [0.25] * 4), (10, [0.5, 0.4]), (5, [5])]
    result = [outcome(lambda n, parts: [len(s) for s in split(range(n), parts)], n, parts) for n, parts in sizes]
    covered = sorted(i for s in split(range(10), [0.3, 0.7]) for i in s)
    return [result, covered, message(split, range(3), [1, 1]), message(split, range(3), [-0.5, 1.5])]


@case
def samplers(torch: Any) -> Any:
    d = torch.utils.data
    batches = [list(d.BatchSampler(range(7), n, drop)) for n in (1, 3, 7, 8) for drop in (False, True)]
    lengths = [len(d.BatchSampler(range(7), n, drop)) for n in (1, 3, 7, 8) for drop in (False, True)]
    return [
        batches, lengths, list(d.SequentialSampler(range(3))), sorted(d.RandomSampler(range(5))), len(d.RandomSampler(range(5))),
        len(list(d.RandomSampler(range(5), num_samples=12))), sorted(list(d.RandomSampler(range(5), num_samples=12))[5:10]),
        len(list(d.RandomSampler(range(5), True, 70))), sorted(d.SubsetRandomSampler([5, 7, 9])),
        sorted(d.WeightedRandomSampler([0.1, 0, 3.0], 2, replacement=False)), set(d.WeightedRandomSampler([0, 1.0, 0], 9)) == {1},
        message(d.RandomSampler, range(3), 1), message(d.RandomSampler, range(0)), message(d.RandomSampler, range(3), num_samples=0),
        message(d.WeightedRandomSampler, [1.0], 0), message(d.WeightedRandomSampler, [1.0], 1, 2),
        message(d.WeightedRandomSampler, [[1.0]], 1), message(d.BatchSampler, range(2), 0, False),
        message(d.BatchSampler, range(2), True, False), message(d.BatchSampler, range(2), 1, 0), outcome(len, d.Sampler()),
        outcome(d.Sampler().__iter__),
    ]  # fmt: skip


@case
def shares_of_a_distributed_sampler(torch: Any) -> Any:
    make = torch.utils.data.distributed.DistributedSampler
    result = []
    for n in (0, 1, 7, 8, 10):
        for replicas in (1, 3, 4):
            for drop in (False, True):
                shares = [make(range(n), replicas, r, shuffle=False, drop_last=drop) for r in range(replicas)]
                result.append([[outcome(list, s), len(s)] for s in shares])
    shuffled = sorted(i for r in range(2) for i in make(range(10), 2, r, seed=3))
    first, second = make(range(50), 2, 0), make(range(50), 2, 0)
    second.set_epoch(1)
    return [result, shuffled, list(first) == list(first), list(first) == list(second), message(make, range(3), 2, 2)]


@case
def loader_lengths_and_batches(torch: Any) -> Any:
    load = torch.utils.data.DataLoader
    data = torch.utils.data.TensorDataset(torch.arange(7))

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(7))

        def __len__(self) -> int:
            return 7

    result = []
    for dataset in (data, Stream(), list(range(7))):
        for options in ({}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"collate_fn": tuple}):
            loader = load(dataset, **options)
            result.append([len(loader), [plain(b) for b in loader]])
    result.append([plain(b) for b in load(data, batch_sampler=[[1, 2], [0]])])
    result.append([plain(b) for b in load(data, sampler=[3, 1], batch_size=2)])
    result.append([plain(b) for b in load({"x": 1, "y": 2}, sampler=["y", "x"])])
    return result


@case
def refused_options(torch: Any) -> Any:
    load = torch.utils.data.DataLoader

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(())

    wrong: list[dict[str, Any]] = [
        {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True},
        {"num_workers": 1, "prefetch_factor": -1}, {"sampler": [0], "shuffle": True}, {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_sampler": [[0]], "shuffle": True}, {"batch_size": None, "drop_last": True}, {"multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "thread"}, {"num_workers": 1, "multiprocessing_context": 3},
        {"batch_size": 0}, {"dataset": Stream(), "shuffle": True}, {"dataset": Stream(), "sampler": [0]},
        {"dataset": Stream(), "batch_sampler": [[0]]}, {"dataset": [], "shuffle": True},
    ]  # fmt: skip
    result = [message(load, **{"dataset": [1, 2], **options}) for options in wrong]
    loader = load([1, 2])
    fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    result += [message(setattr, loader, name, 1) for name in fixed]
    return [*result, message(setattr, loader, "timeout", 3), outcome(len, load(Stream()))]
