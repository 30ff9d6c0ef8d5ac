"""itertools over captured values: each a host generator that pulls captured items one by one.

Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Final

from dynamo.builtins.registry import ONE, ZERO, Args, Kwargs, answers
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, is_none
from dynamo.values.iterators import HostIterator
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import TupleValue
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt

# Classes of iterators that functions in this module return; they have no public name.
_GROUPER: Final = type(next(itertools.groupby("a"))[1])
_TEE: Final = type(itertools.tee("a")[0])
# Arguments that the C constructor turns into iterators, and arguments whose items it takes, before it returns.
_ITERATED: Final[dict[type, slice]] = {
    itertools.islice: slice(0, 1), itertools.cycle: slice(0, 1), itertools.accumulate: slice(0, 1),
    itertools.takewhile: slice(1, 2), itertools.dropwhile: slice(1, 2), itertools.starmap: slice(1, 2),
    itertools.pairwise: slice(0, 1), itertools.zip_longest: slice(None), itertools.compress: slice(0, 2),
    itertools.filterfalse: slice(1, 2), itertools.groupby: slice(0, 1),
}  # fmt: skip
_TAKEN: Final[dict[type, slice]] = {
    itertools.product: slice(None), itertools.permutations: slice(0, 1), itertools.combinations: slice(0, 1),
    itertools.combinations_with_replacement: slice(0, 1),
}  # fmt: skip
# Numbers that the constructor checks: the index of the first one, and whether it takes the items before the check.
_NUMBERS: Final[dict[type | None, tuple[int, bool]]] = {
    itertools.islice: (1, False), itertools.repeat: (1, False), getattr(itertools, "batched", None): (1, False),
    itertools.product: (1 << 30, False), itertools.permutations: (1, True), itertools.combinations: (1, True),
    itertools.combinations_with_replacement: (1, True),
}  # fmt: skip


def _check_numbers(cap: Machine, kind: type, args: Args, kwargs: Kwargs) -> None:
    """Raise the error of the constructor for numbers that it rejects."""
    given = [cap.operators.index_constant(a) for a in args]
    named = {name: cap.operators.index_constant(a) for name, a in kwargs.items()}
    if not any(isinstance(n, SymInt | SymFloat) for n in (*given, *named.values())):
        cap.host(kind, (), *given, **named)


def _host_iterator(kind: type) -> Callable[[Callable[..., Iterator[Value]]], None]:
    def register(make: Callable[..., Iterator[Value]]) -> None:
        signature = inspect.signature(make)

        def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
            try:
                signature.bind(cap, *args, **kwargs)
            except TypeError:
                raise Unsupported(causes.UNKNOWN_CALL, f"{kind.__name__}() with these arguments") from None
            args = list(args)
            first, late = _NUMBERS.get(kind, (0, False))
            if kind in _NUMBERS and not late:
                _check_numbers(cap, kind, args[first:], kwargs)
            for where in (_ITERATED.get(kind), _TAKEN.get(kind)):
                if where is not None:
                    taken = where is _TAKEN.get(kind)
                    args[where] = [TupleValue(cap.iteration.unpack(a)) if taken else cap.iteration.iter(a) for a in args[where]]
            if late:
                _check_numbers(cap, kind, args[first:], kwargs)
            return HostIterator(kind, lambda cap: make(cap, *args, **kwargs), cap.steps)

        ANSWERS[kind] = row

    return register


def _drain(cap: Machine, value: Value) -> Iterator[Value]:
    iterator = cap.iteration.iter(value)
    while (item := cap.iteration.next(iterator)) is not None:
        yield item


@_host_iterator(itertools.chain)
def _chain(cap: Machine, *parts: Value) -> Iterator[Value]:
    for part in parts:
        yield from _drain(cap, part)


@_host_iterator(itertools.islice)
def _islice(cap: Machine, source: Value, stop: Value, *further: Value) -> Iterator[Value]:
    limits = slice(*(cap.operators.index_constant(b) for b in (stop, *further)))
    start, step = limits.start or 0, limits.step or 1
    iterator = cap.iteration.iter(source)
    at, wanted = 0, start
    while limits.stop is None or at < limits.stop:
        item = cap.iteration.next(iterator)
        if item is None:
            return
        if at == wanted:
            wanted += step
            yield item
        at += 1


@_host_iterator(itertools.product)
def _product(cap: Machine, *parts: Value, repeat: Value = ONE) -> Iterator[Value]:
    pools = [cap.iteration.unpack(p) for p in parts] * cap.operators.index_constant(repeat)
    for combination in itertools.product(*pools):
        yield TupleValue(list(combination))


@_host_iterator(itertools.permutations)
def _permutations(cap: Machine, pool: Value, r: Value = NONE) -> Iterator[Value]:
    for combination in itertools.permutations(cap.iteration.unpack(pool), cap.operators.index_constant(r)):
        yield TupleValue(list(combination))


@_host_iterator(itertools.combinations)
def _combinations(cap: Machine, pool: Value, r: Value) -> Iterator[Value]:
    for combination in itertools.combinations(cap.iteration.unpack(pool), cap.operators.index_constant(r)):
        yield TupleValue(list(combination))


@_host_iterator(itertools.combinations_with_replacement)
def _combinations_with_replacement(cap: Machine, iterable: Value, r: Value) -> Iterator[Value]:
    for combination in itertools.combinations_with_replacement(cap.iteration.unpack(iterable), cap.operators.index_constant(r)):
        yield TupleValue(list(combination))


@_host_iterator(itertools.repeat)
def _repeat(cap: Machine, item: Value, times: Value | None = None) -> Iterator[Value]:
    count = None if times is None else cap.operators.index_constant(times)
    while count is None or count > 0:
        yield item
        count = None if count is None else count - 1


@_host_iterator(itertools.count)
def _count(cap: Machine, start: Value = ZERO, step: Value = ONE) -> Iterator[Value]:
    while True:
        yield start
        start = cap.operators.binary(operator.add, start, step)


@_host_iterator(itertools.cycle)
def _cycle(cap: Machine, source: Value) -> Iterator[Value]:
    seen = []
    for item in _drain(cap, source):
        seen.append(item)
        yield item
    while seen:
        yield from seen


@_host_iterator(itertools.accumulate)
def _accumulate(cap: Machine, source: Value, func: Value | None = None, initial: Value = NONE) -> Iterator[Value]:
    total: Value | None = None if is_none(initial) else initial
    if total is not None:
        yield total
    for item in _drain(cap, source):
        if total is None:
            total = item
        elif func is None or is_none(cap.realize(func)):
            total = cap.operators.binary(operator.add, total, item)
        else:
            total = cap.call(func, [total, item], {})
        yield total


@_host_iterator(itertools.takewhile)
def _takewhile(cap: Machine, predicate: Value, source: Value) -> Iterator[Value]:
    for item in _drain(cap, source):
        if not cap.truth(cap.call(predicate, [item], {})):
            return
        yield item


@_host_iterator(itertools.dropwhile)
def _dropwhile(cap: Machine, predicate: Value, source: Value) -> Iterator[Value]:
    dropping = True
    for item in _drain(cap, source):
        if dropping and cap.truth(cap.call(predicate, [item], {})):
            continue
        dropping = False
        yield item


@_host_iterator(itertools.compress)
def _compress(cap: Machine, data: Value, selectors: Value) -> Iterator[Value]:
    while (item := cap.iteration.next(data)) is not None and (selector := cap.iteration.next(selectors)) is not None:
        if cap.truth(selector):
            yield item


@_host_iterator(itertools.filterfalse)
def _filterfalse(cap: Machine, predicate: Value, source: Value) -> Iterator[Value]:
    plain = is_none(cap.realize(predicate))
    for item in _drain(cap, source):
        if not cap.truth(item if plain else cap.call(predicate, [item], {})):
            yield item


@_host_iterator(itertools.groupby)
def _groupby(cap: Machine, iterable: Value, key: Value = NONE) -> Iterator[Value]:
    """As in CPython, the groups and the groupby object share one source. A group that is no longer current is empty."""
    of_itself = is_none(cap.realize(key))
    ahead: list[tuple[Value, Value]] = []  # the key and the item that were read but not yet yielded
    current = ended = None

    def step() -> bool:
        """Read one item; return whether the source had one."""
        nonlocal ended
        item = cap.iteration.next(iterable)
        ended = item is None
        if item is not None:
            ahead[:] = [(item if of_itself else cap.call(key, [item], {}), item)]
        return not ended

    def differs(target: Value) -> bool:
        return not cap.operators.equal(target, ahead[0][0])

    def group(mine: object, target: Value) -> Iterator[Value]:
        while current is mine and not ended:
            if (not ahead and not step()) or differs(target):
                return
            yield ahead.pop()[1]

    target: Value | None = None
    while True:
        current = None
        while not ahead or (target is not None and not differs(target)):
            if not step():
                return
        target, current = ahead[0][0], object()
        made = HostIterator(_GROUPER, functools.partial(_started, group, current, target), cap.steps)
        yield TupleValue([target, made])


def _started(group: Callable[..., Iterator[Value]], mine: object, target: Value, cap: Machine) -> Iterator[Value]:
    return group(mine, target)


@_host_iterator(itertools.starmap)
def _starmap(cap: Machine, fn: Value, source: Value) -> Iterator[Value]:
    for item in _drain(cap, source):
        yield cap.call(fn, cap.iteration.unpack(item), {})


@_host_iterator(itertools.pairwise)
def _pairwise(cap: Machine, source: Value) -> Iterator[Value]:
    before: Value | None = None
    for item in _drain(cap, source):
        if before is not None:
            yield TupleValue([before, item])
        before = item


@_host_iterator(itertools.zip_longest)
def _zip_longest(cap: Machine, *parts: Value, fillvalue: Value = NONE) -> Iterator[Value]:
    iterators: list[Value | None] = [cap.iteration.iter(p) for p in parts]
    while True:
        row: list[Value] = []
        for i, iterator in enumerate(iterators):
            item = None if iterator is None else cap.iteration.next(iterator)
            if item is None:
                iterators[i] = None
            row.append(fillvalue if item is None else item)
        if all(i is None for i in iterators):
            return
        yield TupleValue(row)


def _from_iterable(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    def make(cap: Machine) -> Iterator[Value]:
        return (item for part in _drain(cap, args[0]) for item in _drain(cap, part))

    return HostIterator(itertools.chain, make, cap.steps)


ANSWERS[itertools.chain.from_iterable] = _from_iterable


@answers(itertools.tee)
def _tee(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """Iterators over one source. An item that one iterator reads is kept for the others."""
    source = cap.iteration.iter(args[0])
    read: list[Value] = []

    def reader(cap: Machine) -> Iterator[Value]:
        at = 0
        while True:
            if at == len(read):
                item = cap.iteration.next(source)
                if item is None:
                    return
                read.append(item)
            at += 1
            yield read[at - 1]

    count = cap.operators.index_constant(args[1]) if len(args) > 1 else 2
    cap.host(itertools.tee, (), count)  # raises the errors of the call
    return TupleValue([HostIterator(_TEE, reader, cap.steps) for _ in range(count)])
