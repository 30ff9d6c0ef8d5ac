"""Random pairs of graphs: the keys are equal if and only if the graphs compute the same, by a comparison written here."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
from eager._tensor.tensor import Tensor
from eager.base.spec import TensorSpec, spec_of
from eager.optable.table import OPS
from fxir.ir.fingerprint import SMALL_BYTES, canonical_form, graph_hash
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.node import Node, NodeInfo

LARGE = SMALL_BYTES // 4 + 8


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


# Values of which some pairs compare equal in Python, or print alike, and are different arguments.
CONSTANTS: tuple[Any, ...] = (
    0, 0.0, -0.0, 1, 1.0, True, False, None, "1", b"1", 1j, complex(0.0, -0.0), complex(-0.0, 0.0), complex(0.0, 0.0), float("inf"),
    Colour.RED, Colour.BLUE, Level.LOW, Level.HIGH, slice(None, 1), slice(1, None), slice(None, None, 1), slice(0, 1), (1,), [1],
    (1, (2,)), ((1, 2),), (), [], ..., eager.float32, eager.float64, "float32", {"a": 1}, {"a": True}, {"b": 1}, 1e-320, 2**63,
)  # fmt: skip


def strict(x: Any) -> Any:
    """A value that compares equal only for the same argument."""
    if isinstance(x, tuple | list):
        return type(x).__name__, *map(strict, x)
    if isinstance(x, dict):
        return "dict", *((strict(k), strict(v)) for k, v in x.items())
    if isinstance(x, slice):
        return "slice", strict(x.start), strict(x.stop), strict(x.step)
    return type(x).__name__, repr(x)


def same(a: Graph, b: Graph) -> bool:
    """Whether two graphs are one program up to names: node by node, and key by key and tensor by tensor one to one."""
    if len(a) != len(b) or a.signature != b.signature:
        return False
    other = dict(zip(a.nodes, b.nodes, strict=True))
    keys: dict[str, str] = {}
    tensors: dict[int, int] = {}

    def pair(known: dict[Any, Any], x: Any, y: Any) -> bool:
        return known.setdefault(x, y) == y and list(known.values()).count(y) == 1

    def argument(x: Any, y: Any) -> bool:
        if isinstance(x, Node):
            return isinstance(y, Node) and other[x] is y
        if isinstance(x, Tensor):
            return isinstance(y, Tensor) and pair(tensors, id(x), id(y)) and same_tensor(x, y)
        if isinstance(x, tuple | list):
            return type(x) is type(y) and len(x) == len(y) and all(map(argument, x, y))
        return not isinstance(y, Node | Tensor) and strict(x) == strict(y)

    def node(x: Node, y: Node) -> bool:
        if x.op != y.op or x.info.spec != y.info.spec:
            return False
        if x.op == "placeholder":
            return True
        if x.op == "get_attr":
            here, there = str(x.target), str(y.target)
            return pair(keys, here, there) and argument(a.root[here], b.root[there])
        kwargs = x.kwargs.keys() == y.kwargs.keys() and all(argument(v, y.kwargs[k]) for k, v in x.kwargs.items())
        return x.target is y.target or x.target == y.target if x.op == "output" else (
            x.target is y.target and argument(x.args, y.args) and kwargs)  # fmt: skip

    return all(map(node, a.nodes, b.nodes)) and argument(a.output_node.args, b.output_node.args)


def same_tensor(x: Tensor, y: Tensor) -> bool:
    small = x.nbytes <= SMALL_BYTES
    return spec_of(x) == spec_of(y) and (not small or x._array.tobytes() == y._array.tobytes())


FUNCTIONS = tuple(OPS[n] for n in ("add", "mul", "sub", "maximum", "where"))


def numbers(*values: float) -> Tensor:
    return eager.from_numpy(np.array(values, np.float32))


def random_graph(rng: random.Random, prefix: str = "") -> Graph:
    """Inputs, a few carried tensors (some under two keys), and calls of anything on anything: keys read no meaning."""
    tensors = [eager.zeros(LARGE), eager.zeros(LARGE), eager.ones(3), numbers(0.0, 1.0, -0.0), eager.ones(3)]
    root = {f"{prefix}w{i}": rng.choice(tensors) for i in range(4)}
    g = Graph(root)
    spec = TensorSpec.contiguous((3,), eager.float32)
    made: list[Node] = [g.placeholder(f"{prefix}x{i}", info=NodeInfo(spec)) for i in range(2)]
    for _ in range(rng.randint(2, 6)):
        if rng.random() < 0.4:
            made.append(g.get_attr(rng.choice(sorted(root)), info=NodeInfo(spec)))
            continue
        args = tuple(argument(rng, made, tensors) for _ in range(rng.randint(1, 3)))
        kwargs = {rng.choice("ab"): argument(rng, made, tensors)} if rng.random() < 0.3 else {}
        made.append(g.call_function(rng.choice(FUNCTIONS), args, kwargs, info=NodeInfo(spec)))
    g.output(tuple(rng.sample(made, 2)))
    g.signature = GraphSignature(n_user_outputs=2)
    return g


def argument(rng: random.Random, made: list[Node], tensors: list[Tensor]) -> Any:
    choice = rng.random()
    if choice < 0.55:
        return rng.choice(made)
    return rng.choice(CONSTANTS) if choice < 0.85 else rng.choice(tensors)


# -- mutations: each changes one thing of a copy, or nothing if the graph has no such thing -----------------------


def reread(rng: random.Random, g: Graph) -> None:
    """One node reads another carried tensor."""
    reads = list(g.find("get_attr"))
    if reads:
        rng.choice(reads).target = rng.choice(sorted(g.root))


def rebind(rng: random.Random, g: Graph) -> None:
    """One key names another tensor: equal in content, equal in spec, or the tensor of another key."""
    key = rng.choice(sorted(g.root))
    old = g.root[key]
    g.root[key] = rng.choice([old.clone(), eager.zeros(LARGE), g.root[rng.choice(sorted(g.root))], numbers(0.0, 1.0, 0.0)])


def rearrange(rng: random.Random, g: Graph) -> None:
    """The arguments of a call in another order."""
    for node in calls(rng, g):
        args = list(node.args)
        rng.shuffle(args)
        node.args = tuple(args)


def replace_argument(rng: random.Random, g: Graph) -> None:
    for node in calls(rng, g):
        args = list(node.args)
        args[rng.randrange(len(args))] = rng.choice(CONSTANTS)
        node.args = tuple(args)


def rename_keyword(rng: random.Random, g: Graph) -> None:
    for node in calls(rng, g):
        node.kwargs = {{"a": "b", "b": "a"}[k]: v for k, v in node.kwargs.items()}


def replace_target(rng: random.Random, g: Graph) -> None:
    for node in calls(rng, g):
        node.target = rng.choice(FUNCTIONS)


def replace_spec(rng: random.Random, g: Graph) -> None:
    node = rng.choice([*g.placeholders, *g.find("get_attr")])
    shape, dtype = rng.choice([((3,), eager.float32), ((3,), eager.float64), ((3, 1), eager.float32), ((1, 3), eager.float32)])
    node.info = NodeInfo(TensorSpec.contiguous(shape, dtype))


def resign(rng: random.Random, g: Graph) -> None:
    g.signature = rng.choice([GraphSignature(n_user_outputs=2), GraphSignature((0,), 1), GraphSignature(n_saved=2), None])


def calls(rng: random.Random, g: Graph) -> list[Node]:
    found = [n for n in g.nodes if n.op == "call_function"]
    return [rng.choice(found)] if found else []


MUTATIONS: tuple[Callable[[random.Random, Graph], None], ...] = (
    reread, rebind, rearrange, replace_argument, rename_keyword, replace_target, replace_spec, resign, lambda rng, g: None,
)  # fmt: skip


def renamed_copy(g: Graph) -> Graph:
    """An equal graph with other names of nodes and keys."""
    new = Graph({f"other_{k}": v for k, v in g.root.items()})
    env: dict[Node, Node] = {}
    for n in g.nodes:
        env[n] = new.copy_node(n, env.__getitem__)
        if n.op == "get_attr":
            env[n].target = f"other_{n.target}"
    new.signature = g.signature
    return new


@pytest.mark.parametrize("seed", range(4))
def test_keys_are_equal_exactly_if_the_graphs_are(seed: int) -> None:
    rng = random.Random(seed)
    differ = equal = 0
    for round_ in range(150):
        g = random_graph(rng)
        other = renamed_copy(g)
        for _ in range(rng.randint(1, 2)):
            rng.choice(MUTATIONS)(rng, other)
        expected = same(g, other)
        assert (graph_hash(g) == graph_hash(other)) == expected, (
            f"seed {seed}, round {round_}:\n{canonical_form(g)}\n--- {'is' if expected else 'is not'} ---\n{canonical_form(other)}"
        )
        equal, differ = equal + expected, differ + (not expected)
    assert equal > 10 and differ > 40


@pytest.mark.parametrize("seed", range(2))
def test_no_two_of_many_graphs_share_a_key(seed: int) -> None:
    rng = random.Random(seed)
    graphs = [random_graph(rng) for _ in range(60)]
    graphs += [renamed_copy(g) for g in graphs[:20]]
    keys = [graph_hash(g) for g in graphs]
    for i, a in enumerate(graphs):
        for j in range(i):
            assert (keys[i] == keys[j]) == same(a, graphs[j]), f"seed {seed}, graphs {j} and {i}"


def test_no_two_constants_share_a_text() -> None:
    def of(value: Any) -> str:
        g = Graph()
        g.output(g.call_function(OPS["add"], (value,)))
        return canonical_form(g)

    assert len({of(c) for c in CONSTANTS}) == len(CONSTANTS)


def test_the_reader_of_each_large_tensor_counts() -> None:
    def reading(order: str) -> str:
        g = Graph({"a": eager.zeros(LARGE), "b": eager.zeros(LARGE)})
        g.output(tuple(g.call_function(OPS["neg"], (g.get_attr(k),)) for k in order))
        return graph_hash(g)

    assert reading("ab") == reading("ba")  # the names are not part of the key
    assert len({reading(order) for order in ("ab", "aa", "aba", "abb", "aab", "aaa")}) == 6


def test_large_tensors_as_arguments_count_by_identity() -> None:
    one, two = eager.zeros(LARGE), eager.zeros(LARGE)

    def passing(*tensors: Tensor) -> str:
        g = Graph()
        g.output(g.call_function(OPS["add"], tensors))
        return graph_hash(g)

    assert passing(one, one) == passing(two, two) != passing(one, two)


def test_a_function_counts_by_the_globals_that_it_reads() -> None:
    def of(scale: Any) -> str:
        names: dict[str, Any] = {"scale": scale, "__name__": "user"}
        exec("def f(x):\n    return [x * scale for _ in range(2)]", names)
        g = Graph()
        g.output(g.call_function(names["f"], (g.placeholder("x"),)))
        return graph_hash(g)

    assert of(2) == of(2) and len({of(2), of(3), of(2.0), of(True)}) == 4
