"""Lists, dicts, sets and other containers."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import eager as torch
from tests.dynamo.guards.states.table import State, state


@state
def list_items_and_length() -> State:
    ks = [1, 2, 3]
    return State(
        lambda x: x * sum(ks) + len(ks),
        (lambda: ks.append(4), lambda: ks.__setitem__(0, 9), ks.reverse, ks.pop, lambda: ks.append(1)),
    )


@state
def list_in_place_order() -> State:
    ks = [3, 1, 2]
    return State(lambda x: x * ks[0] - ks[-1], (ks.sort, ks.reverse, lambda: ks.insert(0, 8)))


@state
def list_slice() -> State:
    ks = [3, 1, 2, 7]
    return State(
        lambda x: x * sum(ks[1:3]), (lambda: ks.__setitem__(1, 5), lambda: ks.__setitem__(slice(0, 2), [1, 1, 1]))
    )


@state
def dict_values_keys_and_order() -> State:
    d = {"a": 1, "b": 2}

    def read(x: Any) -> Any:
        for i, (k, v) in enumerate(d.items()):
            x = x * (i + 2) + v + ord(k)
        return x

    def rotate() -> None:
        k = next(iter(d))
        d[k] = d.pop(k)

    return State(read, (rotate, lambda: d.update(c=5), lambda: d.update(a=7), lambda: d.pop("c", None)))


@state
def dict_membership() -> State:
    d: dict[str, int] = {}
    return State(
        lambda x: x + 1 if "k" in d else x - 1, (lambda: d.update(k=1), lambda: d.pop("k", None), lambda: d.update(j=1))
    )


@state
def dict_get_with_default() -> State:
    d: dict[Any, int] = {}
    return State(lambda x: x * d.get("k", 3), (lambda: d.update(k=1), d.clear, lambda: d.update(k=0)))


@state
def set_content() -> State:
    s = {1, 2}
    return State(lambda x: x * len(s) + (3 in s), (lambda: s.add(3), lambda: s.discard(3), lambda: s.add(7)))


@state
def set_of_strings() -> State:
    s = {"a"}
    return State(lambda x: x * 2 if "b" in s else x, (lambda: s.add("b"), lambda: s.discard("b"), lambda: s.add("c")))


@state
def set_of_objects() -> State:
    token, other = object(), object()
    s = {other}
    return State(lambda x: x * 2 if token in s else x, (lambda: s.add(token), lambda: s.discard(token)))


@state
def nested_containers() -> State:
    c: dict[str, Any] = {"rows": [{"k": (1, [2])}]}
    rows = c["rows"]
    return State(
        lambda x: x * c["rows"][0]["k"][1][0] + len(c["rows"]),
        (
            lambda: rows[0]["k"][1].__setitem__(0, 5),
            lambda: rows[0].update(k=(1, [7])),
            lambda: rows.append({}),
            lambda: c.update(rows=rows),
        ),
    )


@state
def items_change_their_kind() -> State:
    ks: list[Any] = [2]
    return State(
        lambda x: x * ks[0], tuple(functools.partial(ks.__setitem__, 0, v) for v in (2.0, True, 2, torch.ones(2), 3))
    )


@state
def zero_changes_its_sign() -> State:
    ks: list[Any] = [0.0]
    return State(
        lambda x: (x + 1) / torch.tensor(ks[0]), (lambda: ks.__setitem__(0, -0.0), lambda: ks.__setitem__(0, 0.0))
    )


@state
def subclass_of_list() -> State:
    class Twice(list):
        def __getitem__(self, i: Any) -> Any:
            return 2 * list.__getitem__(self, i)

    ks = Twice([3])
    return State(lambda x: x * ks[0] + len(ks), (lambda: ks.__setitem__(0, 5), lambda: ks.append(1)))


@state
def subclass_of_dict() -> State:
    class Missing(dict):
        def __missing__(self, key: str) -> int:
            return 7

    d = Missing(a=1)
    return State(
        lambda x: x * d["a"] + d["b"], (lambda: d.update(a=3), lambda: d.update(b=2), lambda: d.pop("b", None))
    )


@state
def deque_items() -> State:
    q = collections.deque([1, 2, 3], maxlen=3)
    return State(lambda x: x * q[0] + len(q), (lambda: q.append(9), q.rotate, lambda: q.appendleft(4)))


@state
def default_dict() -> State:
    d: Any = collections.defaultdict(lambda: 4)
    d["a"] = 1
    return State(lambda x: x * d["a"], (lambda: d.update(a=3), lambda: d.update(z=1)))


@state
def ordered_dict_moves() -> State:
    d = collections.OrderedDict(a=1, b=2)

    def read(x: Any) -> Any:
        for v in d.values():
            x = x * 2 + v
        return x

    return State(read, (lambda: d.move_to_end("a"), lambda: d.move_to_end("b"), lambda: d.update(a=6)))


@state
def counter() -> State:
    c = collections.Counter("aab")
    return State(lambda x: x * c["a"] + c["z"], (lambda: c.update("az"), lambda: c.subtract("a")))


@state
def chain_map() -> State:
    low, high = {"k": 1}, {}
    c = collections.ChainMap(high, low)
    return State(lambda x: x * c["k"], (lambda: low.update(k=3), lambda: high.update(k=5), high.clear))


@state
def view_of_a_dict() -> State:
    d = {"a": 1}
    values = d.values()
    return State(lambda x: x * sum(values), (lambda: d.update(b=2), lambda: d.update(a=4), lambda: d.pop("b", None)))


@state
def mapping_proxy() -> State:
    d = {"a": 1}
    p = types.MappingProxyType(d)
    return State(lambda x: x * p["a"] + len(p), (lambda: d.update(a=3), lambda: d.update(b=2)))


@state
def bytes_and_arrays() -> State:
    b = bytearray(b"\x02\x03")
    return State(lambda x: x * b[0] + len(b), (lambda: b.__setitem__(0, 5), lambda: b.append(1)))
