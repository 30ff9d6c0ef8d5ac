"""Names of torch.fx that rewriters of graphs use: purity, marks, immutable arguments, tracer options."""
from __future__ import annotations

import operator
import pickle
from typing import Any

import pytest

import eager
from fxir import PH, Graph, GraphModule, Tracer, has_side_effect, symbolic_trace
from fxir.ir.immutable_collections import immutable_dict, immutable_list

torch: Any = eager


def _print(x: Any) -> None:
    """An effect."""


def test_dead_calls_stay_if_they_are_marked_or_write() -> None:
    has_side_effect(operator.pos)
    graph = Graph()
    x = graph.placeholder("x")
    marked, plain = graph.call_function(operator.pos, (x,)), graph.call_function(operator.neg, (x,))
    pure, writes = graph.call_function(torch.ops.aten.add.Tensor, (x, 1)), graph.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    graph.output(x)
    assert [n.is_impure() for n in (x, marked, plain, pure, writes)] == [True, True, False, False, True]
    graph.eliminate_dead_code()
    assert [n for n in graph.nodes if n.op == "call_function"] == [marked, writes]


def test_a_tracer_may_refuse_calls_that_write() -> None:
    class Functional(Tracer):
        check_mutable_operations = True

    for fn in (lambda x: x.add_(1), lambda x: torch.add(x, 1, out=x), lambda x: torch.ops.aten.add_.Tensor(x, 1)):
        assert len(list(Tracer().trace(fn).nodes)) == 3
        with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
            Functional().trace(fn)
    assert len(list(Functional().trace(lambda x: x.add(1) + 1).nodes)) == 4
    with pytest.raises(NotImplementedError, match="param_shapes_constant"):
        Tracer(param_shapes_constant=True)


def test_a_placeholder_among_concrete_arguments_stays_an_input() -> None:
    traced = symbolic_trace(lambda x, y: x + y if True else x, concrete_args={"x": PH, "y": 2})
    assert isinstance(traced, GraphModule) and traced(torch.ones(1), 2).item() == 3


def test_immutable_collections_refuse_changes() -> None:
    items, table = immutable_list([1, 2]), immutable_dict(a=1)
    for call in (lambda: items.append(3), lambda: items.__setitem__(0, 1), lambda: table.update(b=2), lambda: table.pop("a")):
        with pytest.raises(TypeError, match="does not support mutation"):
            call()
    assert items == [1, 2] and hash(items) == hash(immutable_list([1, 2])) and hash(table) == hash(immutable_dict(a=1))
    assert pickle.loads(pickle.dumps((items, table))) == ([1, 2], {"a": 1})
