"""Argument forms of torch.fx that programs use to rewrite graphs."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch
from eager import fx


def _f(x: Any) -> Any:
    y = x.relu()
    return y + y.exp()


def _traced() -> Any:
    return fx.symbolic_trace(_f)


def test_an_interpreter_keeps_values_on_request() -> None:
    m, x = _traced(), torch.randn(3)
    run = fx.Interpreter(m, garbage_collect_values=False)
    assert torch.equal(run.run(x), _f(x))
    values = {n.name: v for n, v in run.env.items()}
    assert torch.equal(values["relu"], x.relu()) and torch.equal(values["exp"], x.relu().exp())
    other = fx.Interpreter(m)
    other.run(x)
    assert other.env == {}
    relu = next(n for n in m.graph.nodes if n.name == "relu")
    assert torch.equal(fx.Interpreter(m).run(x, initial_env={relu: torch.zeros(3)}), torch.ones(3))
    assert torch.equal(fx.Interpreter(m, graph=_traced().graph).run(x), _f(x))


def test_only_the_selected_users_are_changed() -> None:
    m, x = _traced(), torch.randn(3)
    relu = next(n for n in m.graph.nodes if n.name == "relu")
    relu.meta["mark"] = 1
    with m.graph.inserting_after(relu):
        new = m.graph.call_function(torch.neg, (relu,))
    new.meta = {}
    assert relu.replace_all_uses_with(new, lambda user: user.name == "exp", propagate_meta=True) and new.meta["mark"] == 1
    m.recompile()
    assert torch.allclose(m(x), x.relu() + (-x.relu()).exp())
    with pytest.raises(ValueError, match="propagate_meta needs a node without meta"):
        relu.replace_all_uses_with(new, propagate_meta=True)


def test_nodes_at_either_end_and_code_that_counts_as_alive() -> None:
    m = _traced()
    with m.graph.inserting_before():
        m.graph.placeholder("first")
    assert next(iter(m.graph.nodes)).name == "first"
    with m.graph.inserting_before(m.graph.output_node):
        m.graph.call_function(torch.neg, (next(iter(m.graph.nodes)),))
    assert m.graph.eliminate_dead_code(is_impure_node=lambda n: n.target is torch.neg) == 0
    assert m.graph.eliminate_dead_code() == 1
