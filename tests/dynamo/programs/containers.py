"""Containers mutated on inputs, aliases, iterators."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105 - odd code is the point

from __future__ import annotations

import collections
import itertools

import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()


@PROGRAMS.program(lambda: (x23(), [1, 2, 3]), lambda: (x23(), [3, 1, 2, 9]))
def list_methods(log, x, items):
    items.append(x + 1)
    items.insert(0, "first")
    popped = items.pop(1)
    items.extend([7, 8])
    items.reverse()
    items[1:3] = [x, x]
    del items[0]
    items += (5,)
    plain = [v for v in items if isinstance(v, int)]
    return popped, plain.index(5), plain.count(5), items[-1], items[::2], 5 in plain


@PROGRAMS.program(lambda: (x23(), [3, 1, 2]))
def list_sort(log, x, items):
    items.sort(key=lambda v: -v)
    items.remove(1)
    other = items.copy()
    other.clear()
    return items, other, x


@PROGRAMS.factory(lambda: (x23(),))
def aliased_iadd():
    def f(log, x):
        a = [1]
        b = a
        b += [2]
        t = (1,)
        u = t
        u += (2,)
        return a, b is a, t, u, x

    return f


@PROGRAMS.program(lambda: (x23(), [1, 2, 3]))
def mutated_in_iteration(log, x, items):
    for v in items:
        log.append(v)
        if len(items) < 6:
            items.append(v * 10)
    return x + len(items)


@PROGRAMS.program(lambda: (x23(),))
def self_containing(log, x):
    a = [x]
    a.append(a)
    return a[1] is a, len(a), a


@PROGRAMS.program(lambda: (x23(), {"a": 1, "b": 2}), lambda: (x23(), {"b": 1}))
def dict_methods(log, x, d):
    d["c"] = x * 2
    got = d.setdefault("a", 5)
    d |= {"z": 0}
    d.update(q=1)
    popped = d.pop("b", None)
    del d["z"]
    missing = d.get("nope", "default")
    return got, popped, missing, list(d), list(d.values()), [(k, v) for k, v in d.items() if k != "c"], "q" in d, len(d)


@PROGRAMS.program(lambda: (x23(), {"a": 1}))
def dict_errors(log, x, d):
    try:
        d["zz"]
    except KeyError as error:
        log.append(error.args)
    try:
        for k in d:
            d[k + "x"] = 1
    except RuntimeError as error:
        log.append(str(error))
    return x


@PROGRAMS.program(lambda: (x23(),))
def special_dicts(log, x):
    dd = collections.defaultdict(list)
    dd["a"].append(x)
    dd["b"].append(1)
    od = collections.OrderedDict(a=1, b=2)
    od.move_to_end("a")
    c = collections.Counter("abca")
    return dd, list(od.items()), c["a"], c["zz"], dict(c)


@PROGRAMS.program(lambda: (x23(), {1, 2, 3}))
def sets(log, x, s):
    s.add(4)
    s.discard(1)
    t = frozenset([2, 9])
    return sorted(s | t), sorted(s & t), sorted(s - t), sorted(s ^ t), 4 in s, t <= s, len(s)


@PROGRAMS.program(lambda: (x23(),), held=True)
def tensor_keys(log, x):
    y = x + 1
    d = {x: "x", y: "y"}
    return d[x], d[y], len(d), x in d


@PROGRAMS.program(lambda: (x23(),))
def iterators(log, x):
    it = iter([1, 2, 3])
    first = next(it)
    rest = list(it)
    last = next(it, "end")
    z = zip([1, 2, 3], "ab")
    pairs = [p for p in z]
    return first, rest, last, pairs, x


@PROGRAMS.program(lambda: (x23(),))
def iterator_across_a_break(log, x):
    it = iter([1, 2, 3, 4])
    a = next(it)
    e = enumerate("abc")
    next(e)
    print(end="")
    return a, next(it), list(it), list(e), x + a


@PROGRAMS.program(lambda: (x23(),))
def itertools_table(log, x):
    return (
        list(itertools.chain([1], (2, 3))), list(itertools.islice(itertools.count(2), 3)), list(itertools.product("ab", [1, 2])),
        list(itertools.accumulate([1, 2, 3])), list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])),
        list(itertools.zip_longest("abc", [1], fillvalue=0)), list(itertools.repeat(x, 2)), list(itertools.pairwise([1, 2, 3])),
        list(itertools.combinations([1, 2, 3], 2)), [v for v, _ in zip(itertools.cycle("ab"), range(3))],
    )  # fmt: skip


@PROGRAMS.program(lambda: (x23(),))
def itertools_that_read_ahead(log, x):
    def note(v):
        log.append(v)
        return v // 2

    first, second, third = itertools.tee((note(v) for v in [2, 4, 6]), 3)
    ahead = [next(first), next(first)]
    groups = itertools.groupby(map(note, [2, 3, 4, 5, 9]), key=lambda v: log.append(("key", v)) or v % 2)
    key, group = next(groups)
    taken = next(group)
    later = [(k, list(g)) for k, g in groups]
    kept = [g for _, g in itertools.groupby([1, 1, 2])]
    return (
        ahead, list(second), list(first), next(third), key, taken, list(group), later, [list(g) for g in kept], x + taken,
        list(itertools.compress(map(note, [2, 4, 6]), [1, 0, 1, 1])), list(itertools.filterfalse(note, [0, 1, 2, 3])),
        list(itertools.filterfalse(None, [0, 1, ""])), list(itertools.combinations_with_replacement([x, 1], 2)),
        [sum(g) for _, g in itertools.groupby([x, x, x])],
    )  # fmt: skip


@PROGRAMS.program(lambda: (x23(), {"a": 2}))
def counters_of_mappings(log, x, counts):
    c = collections.Counter(counts, a=3, b=x.shape[0])
    d = collections.Counter("aab", a=1)
    return dict(c), dict(d), collections.Counter(None), x * c["a"] + c["missing"]


@PROGRAMS.program(lambda: (x23(),))
def zip_strict(log, x):
    it = iter([1, 2, 3])
    try:
        list(zip(it, [1], strict=True))
    except ValueError as error:
        log.append(str(error))
    return list(it), x


@PROGRAMS.program(lambda: (x23(),))
def effects_in_map(log, x):
    def note(v):
        log.append(v)
        return v * x

    return list(map(note, [1, 2])), any(note(v) is None for v in [3, 4]), [note(5) for _ in range(2)]


@PROGRAMS.program(lambda: (lambda t: (t, t))(x23()), lambda: (x23(), x23()))
def same_tensor_twice(log, a, b):
    a.add_(1)
    return b * 2, a is b


@PROGRAMS.program(lambda: (lambda t: (t[0], t))(x23()), lambda: (x23()[0], x23()))
def views_of_one_storage(log, a, b):
    a.mul_(2)
    return b + 1


@PROGRAMS.program(lambda: (lambda t: ([t, t],))(x23()), lambda: ([x23(), x23()],))
def list_with_one_tensor_twice(log, items):
    items[0].add_(1)
    return items[1] * 2, items[0] is items[1]


@PROGRAMS.program(lambda: (x23(), [x23()]))
def identity_kept(log, x, items):
    y = x + 1
    return x, items[0], items, x is items[0], [y, y]


@PROGRAMS.program(lambda: (lambda i: (x23(), i, i))([1]), lambda: (x23(), [1], [1]))
def aliased_lists(log, x, a, b):
    a.append(2)
    return x + len(b), a is b


@PROGRAMS.program(lambda: (x23(),))
def deques(log, x):
    d = collections.deque([1, 2], maxlen=3)
    d.append(3)
    d.append(4)
    d.appendleft(0)
    return list(d), d, x


@PROGRAMS.program(lambda: (x23(), [x23(), x23() * 2]))
def stacked(log, x, parts):
    return torch.stack(parts), torch.cat([x, *parts]), [p.sum() for p in parts]


@PROGRAMS.program(lambda: (x23(),))
def error_in_list(log, x):
    try:
        [1, 2][5]
    except IndexError as error:
        log.append(str(error))
    try:
        [].pop()
    except IndexError as error:
        log.append(str(error))
    try:
        [1].remove(2)
    except ValueError as error:
        log.append(str(error))
    return x


class NoIteration(collections.deque):
    def __iter__(self):
        raise TypeError("not by iterating")


class NoValues(dict):
    def values(self):
        raise TypeError("not by values()")


@PROGRAMS.program(lambda: (x23(),))
def containers_that_refuse_to_be_looked_through(log, x):
    for held in NoIteration("abc"), NoIteration("abc", 2), NoValues(a=1):
        log.append(len(held))
        print(end="")
        log.append(len(held))
    return x + 1


# Equal, and in another order: the hashes of 0 and 8 collide.
@PROGRAMS.program(*((lambda order=order, kind=kind: (x23(), kind(order))) for kind in (set, frozenset) for order in ((8, 0), (0, 8))))
def sets_of_one_content_in_two_orders(log, x, given):
    log.append([number for number in given])
    log.append(repr(given))
    print(end="")
    inner = frozenset(given)
    outer = frozenset((inner,))
    print(end="")
    log.append((repr(inner), repr(outer), str(sorted(given)), f"{given}"))
    return x + 1
