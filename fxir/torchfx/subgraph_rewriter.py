"""`torch.fx.replace_pattern`: finds a small graph within a graph and replaces it by another graph.

A pattern is matched from its output backwards, by the kind, target and arguments of its nodes; a placeholder matches any value,
the same value wherever it occurs. Only the pattern's result may have readers outside the match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eager.base.records import dataclass
from eager.nn import Module
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Argument, Node, walk_nodes
from fxir.torchfx.tracer import symbolic_trace

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One match of a pattern. anchor: the node that matches the pattern's output. nodes_map: pattern node -> matched node."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass(frozen=True, slots=True)
class ReplacedPatterns:
    """One replacement, with the inserted nodes."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


MatchFilter = Callable[[Match, Graph, Graph], bool]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace every match of `pattern` in `gm` by `replacement`, in place; returns the matches.

    pattern, replacement: functions, Modules or GraphModules with equally many arguments and one tensor as result.
    Raises: RuntimeError if their numbers of arguments differ; NotImplementedError for a pattern with several results.
    """
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: Sequence[MatchFilter] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable[..., Any] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    """As `replace_pattern`, for matches that every filter (match, graph, pattern's graph) -> bool accepts.

    ignore_literals: a number in the pattern matches any number. replacement_callback: (match, graph, pattern's graph) -> the
    graph to insert instead of `replacement`.
    """
    wanted = _graph(pattern)
    given = None if replacement is None else _graph(replacement)
    if given is not None and len(given.placeholders) != len(wanted.placeholders):
        counts = f"the pattern has {len(wanted.placeholders)} arguments, the replacement {len(given.placeholders)}"
        raise RuntimeError(f"replace_pattern: {counts}; allowed: equal numbers")
    made: list[ReplacedPatterns] = []
    taken: set[Node] = set()
    for match in _matches(gm.graph, wanted, ignore_literals):
        inside = _inside(match, wanted)
        if taken & inside or not all(agrees(match, gm.graph, wanted) for agrees in match_filters or ()):
            continue
        taken |= inside
        graph = given if replacement_callback is None else _graph(replacement_callback(match, gm.graph, wanted))
        if graph is None:
            raise TypeError("replace_pattern: give a replacement or a replacement_callback")
        made.append(_replace(gm.graph, match, wanted, graph, inside))
    gm.recompile()
    return made


def _graph(given: Any) -> Graph:
    if isinstance(given, Graph):
        return given
    if isinstance(given, GraphModule):
        return given.graph
    if not callable(given) and not isinstance(given, Module):
        raise TypeError(f"replace_pattern: got a {type(given).__name__}; allowed: a function, a Module or a GraphModule")
    return symbolic_trace(given).graph


def _result(graph: Graph) -> Node:
    outputs = graph.outputs
    if len(outputs) != 1 or not isinstance(outputs[0], Node):
        raise NotImplementedError("replace_pattern: patterns with several results are not supported; allowed: one tensor")
    return outputs[0]


def _matches(graph: Graph, pattern: Graph, ignore_literals: bool) -> list[Match]:
    result = _result(pattern)
    found: list[Match] = []
    for node in graph.nodes:
        bound: dict[Node, Any] = {}
        if node.op != "output" and _same(result, node, bound, ignore_literals) and _is_closed(bound, result):
            found.append(Match(node, bound))
    return found


def _same(pattern: Any, value: Any, bound: dict[Node, Any], ignore_literals: bool) -> bool:
    """Whether `value` matches `pattern`; adds the matched nodes to `bound`."""
    if isinstance(pattern, Node):
        if pattern in bound:
            return bound[pattern] is value or (not isinstance(value, Node) and bound[pattern] == value)
        if pattern.op == "placeholder":
            bound[pattern] = value
            return True
        if not isinstance(value, Node) or pattern.op != value.op or not _same_target(pattern, value):
            return False
        bound[pattern] = value
        parts = ((pattern.args, value.args), (pattern.kwargs, value.kwargs))
        return all(_same(p, v, bound, ignore_literals) for p, v in parts)
    if isinstance(pattern, tuple | list):
        alike = isinstance(value, tuple | list) and len(value) == len(pattern)
        return alike and all(_same(p, v, bound, ignore_literals) for p, v in zip(pattern, value, strict=True))
    if isinstance(pattern, dict):
        alike = isinstance(value, dict) and value.keys() == pattern.keys()
        return alike and all(_same(p, value[k], bound, ignore_literals) for k, p in pattern.items())
    if isinstance(value, Node):
        return False
    return (ignore_literals and isinstance(pattern, int | float | str)) or (type(pattern) is type(value) and bool(pattern == value))


def _same_target(pattern: Node, node: Node) -> bool:
    """Modules match by their class, since the pattern has its own module objects."""
    if pattern.op == "call_module":
        return type(pattern.graph.root[str(pattern.target)]) is type(node.graph.root[str(node.target)])
    return bool(pattern.target == node.target)


def _is_closed(bound: dict[Node, Any], result: Node) -> bool:
    """Whether no node outside the match reads an intermediate value of the pattern."""
    inside = {v for p, v in bound.items() if p.op != "placeholder"}
    return all(u in inside for p, v in bound.items() if p.op != "placeholder" and p is not result for u in v.users)


def _inside(match: Match, pattern: Graph) -> set[Node]:
    return {match.nodes_map[p] for p in pattern.nodes if p.op not in ("placeholder", "output") and p in match.nodes_map}


def _replace(graph: Graph, match: Match, pattern: Graph, replacement: Graph, inside: set[Node]) -> ReplacedPatterns:
    env: dict[Node, Argument] = {
        new: match.nodes_map.get(old) for old, new in zip(pattern.placeholders, replacement.placeholders, strict=True)
    }
    before = set(graph.nodes)
    with graph.inserting_before(match.anchor):
        value = graph.copy_from(replacement, env)
    made = [n for n in graph.nodes if n not in before]
    (result,) = [value] if isinstance(value, Node) else walk_nodes(value)
    match.anchor.replace_all_uses_with(result)
    for node in reversed(list(graph.nodes)):
        if node in inside and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchor, match.nodes_map, made)
