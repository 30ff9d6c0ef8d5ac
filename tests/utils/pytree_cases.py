"""Programs over utils._pytree for both packages; see `data_cases.py`."""
from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}
Point = collections.namedtuple("Point", "x y", module="cases")
Other = collections.namedtuple("Other", "x y", module="cases")


def case(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[fn.__name__] = fn
    return fn


def shown(x: Any) -> str:
    """`repr`, the same in every version of Python: 3.12 prints an OrderedDict in another way."""
    if isinstance(x, collections.OrderedDict):
        return f"OrderedDict({shown(dict(x))})"
    if isinstance(x, dict):
        return f"{type(x).__name__} {{{', '.join(f'{k!r}: {shown(v)}' for k, v in x.items())}}}"
    if type(x) in (list, tuple):
        return f"{type(x).__name__}({', '.join(map(shown, x))})"
    return repr(x)


def outcome(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    try:
        return shown(fn(*args, **kwargs)).replace(f"{__name__}.", "")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace(f"{__name__}.", "")


def trees(torch: Any) -> list[Any]:
    ordered, default = collections.OrderedDict, collections.defaultdict
    return [
        1, None, [], (), {}, [1, [2, (3,)]], (None, [None]), {"b": 1, "a": [2]}, ordered(z=1, y=[2]), default(list, q=[1]),
        default(None, q=1), collections.deque([1, [2]], maxlen=3), collections.deque(), Point(1, [2]), torch.Size([2, 3]), {1, 2}, "text",
        {"b": 1, "a": (2, [3, None]), "o": ordered(z=1, y=2), "d": default(list, q=1), "q": collections.deque([1], maxlen=3)},
    ]  # fmt: skip


@case
def flattened(torch: Any) -> Any:
    p = torch.utils._pytree
    found = []
    for tree in trees(torch):
        leaves, spec = p.tree_flatten(tree)
        back = p.tree_unflatten(leaves, spec)
        found.append([shown(leaves), repr(spec), spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf(),
                      getattr(spec.type, "__name__", None), repr(spec.context),
                      back == tree and type(back) is type(tree), p.tree_leaves(tree) == leaves, p.tree_structure(tree) == spec,
                      p.treespec_pprint(spec) if "OrderedDict" not in repr(spec) else None])  # fmt: skip
    return found


@case
def compared(torch: Any) -> Any:
    p = torch.utils._pytree
    specs = [p.tree_structure(t) for t in (*trees(torch), {"a": 1, "b": [2]}, (1,), [1], Other(1, [2]), collections.deque([1, [2]]))]
    hashes = all(hash(a) == hash(b) for a in specs for b in specs if a == b)
    return [[a == b for b in specs] for a in specs] + [hashes]


@case
def mapped(torch: Any) -> Any:
    p = torch.utils._pytree
    pairs: list[tuple[Any, ...]] = [
        ([1, 2], [3, [4, 5]]), ({"a": 1, "b": 2}, collections.OrderedDict(b=3, a=4)), (collections.OrderedDict(a=1), {"a": 2}),
        (collections.defaultdict(list, a=1), {"a": 2}), (collections.deque([1], maxlen=2), collections.deque([2], maxlen=3)),
        ([1, 2], [1]), ([1, 2], (1, 2)), ({"a": 1}, {"b": 1}), ({"a": 1, "c": 3}, {"a": 1, "b": 1}), ([1, [2]], [3, 4]),
        (Point(1, 2), Point(3, 4)), ((1, 2), (3, 4), (5, 6)), (None, 1),
    ]  # fmt: skip
    x = [1, {"a": 2}]
    return [
        *(outcome(p.tree_map, lambda *leaves: leaves, *trees_) for trees_ in pairs),
        outcome(p.tree_map, lambda a: a, [[1], 2], is_leaf=lambda t: t == [1]), p.tree_map_(lambda v: 0, x) is x,
        outcome(p.tree_map_only, int, lambda v: v + 1, [1, 2.0, "a"]),
        outcome(p.tree_map_only, (int, float), lambda v: v + 1, [1, 2.0, "a"]),
        outcome(p.tree_map_only, lambda v: v == 1, lambda v: v + 1, [1, 2]),
        outcome(p.tree_map_only, int | str, lambda v: v * 2, [1, "a", 1.5]),
        outcome(p.tree_map_only, 3, lambda v: v, [1]), p.tree_map_only_(int, lambda v: 0, x) is x,
        p.tree_any(lambda v: v > 1, [1, {"a": 2}]), p.tree_all(lambda v: v > 1, [1, 2]), p.tree_all_only(int, lambda v: v > 1, [2, "a"]),
        p.tree_any_only(str, lambda v: v == "a", [2, "a"]), p.tree_any(bool, []), p.tree_all(bool, []),
        outcome(p.tree_leaves, {"a": [1, 2], "b": None}, is_leaf=lambda t: isinstance(t, list)), p.arg_tree_leaves(1, [2], a=3),
        list(p.tree_iter([1, (2, {"a": 3})])), p.tree_is_leaf(None), p.tree_is_leaf(()), p.tree_is_leaf([1], is_leaf=lambda t: True),
    ]  # fmt: skip


@case
def refused(torch: Any) -> Any:
    p = torch.utils._pytree
    spec = p.tree_structure({"a": [1, 2]})
    return [outcome(p.tree_unflatten, [1], spec), outcome(p.tree_unflatten, [1], 3), outcome(spec.flatten_up_to, [1]),
            outcome(p.register_pytree_node, dict, None, None), outcome(p.treespec_loads, "[9, {}]"), outcome(p.treespec_dumps, 3),
            outcome(p.treespec_dumps, p.tree_structure(Point(1, 2))), outcome(p.register_dataclass, int)]  # fmt: skip


@case
def broadcast(torch: Any) -> Any:
    p = torch.utils._pytree
    spec = p.tree_structure((1, [2, {"a": 3}]))
    return [p._broadcast_to_and_flatten(t, spec) for t in (1, (1, 2), (1, [2, 3]), (1, [2, {"a": 3}]), (1, 2, 3), [1, 2], (1, {"b": 1}))]


@case
def paths(torch: Any) -> Any:
    p = torch.utils._pytree
    tree = {"a": [1, (2,)], "p": Point(3, collections.deque([4]))}
    pairs, spec = p.tree_flatten_with_path(tree)
    return [repr(pairs), [p.keystr(path) for path, _ in pairs], [p.key_get(tree, path) for path, _ in pairs], repr(spec),
            outcome(p.tree_map_with_path, lambda path, *v: (p.keystr(path), *v), {"a": 1}, {"a": 2}),
            p.tree_leaves_with_path(tree) == pairs, str(p.MappingKey("k")), str(p.SequenceKey(0)), str(p.GetAttrKey("n"))]  # fmt: skip


@case
def types_of_ones_own(torch: Any) -> Any:
    p = torch.utils._pytree

    class Box:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    @dataclasses.dataclass
    class Plain:
        x: int
        y: Any = None

    @dataclasses.dataclass
    class Dropped:
        x: int
        y: int = 3

    @dataclasses.dataclass(frozen=True)
    class Unit:
        name: str

    p.register_pytree_node(Box, lambda b: ([b.a, b.b], "ctx"), lambda xs, _: Box(*xs))
    p.register_dataclass(Plain)
    p.register_dataclass(Dropped, field_names=["x"], drop_field_names=["y"])
    p.register_constant(Unit)
    back = p.tree_map(lambda v: v + 1, Box(1, [2]))
    return [
        outcome(p.tree_flatten, Box(1, [2])), back.a, back.b, outcome(p.tree_leaves_with_path, Box(1, 2)).replace(str(Box), "Box"),
        outcome(p.tree_flatten, Plain(1, [2])), outcome(p.tree_flatten, Plain(1)), repr(p.tree_map(lambda v: v + 1, Plain(1)))[-16:],
        outcome(p.tree_flatten_with_path, Plain(1)), outcome(p.tree_flatten, Dropped(1, 2)),
        repr(p.tree_map(lambda v: v, Dropped(1, 2)))[-19:],
        p.tree_leaves([Unit("m"), 1]), p.tree_structure(Unit("m")) == p.tree_structure(Unit("m")),
        p.tree_structure(Unit("m")) == p.tree_structure(Unit("s")), p.is_constant_class(Unit),
    ]  # fmt: skip


@case
def serialized(torch: Any) -> Any:
    p = torch.utils._pytree
    found = []
    ordered, default = collections.OrderedDict(a=1), collections.defaultdict(list, a=1)
    for tree in ({"a": [1, (2,)]}, ordered, default, collections.deque([1], 2), 1, torch.Size([1])):
        spec = p.tree_structure(tree)
        text = p.treespec_dumps(spec)
        found.append([text, p.treespec_loads(text) == spec])
    return found


@case
def kinds_of_tuples(torch: Any) -> Any:
    p = torch.utils._pytree
    now = time.gmtime(0)
    return [[bool(f(x)) for f in (p.is_namedtuple, p.is_namedtuple_class, p.is_namedtuple_instance, p.is_structseq, p.is_structseq_class,
                                  p.is_structseq_instance)] for x in (Point, Point(1, 2), (1,), tuple, now, type(now), int)]  # fmt: skip
