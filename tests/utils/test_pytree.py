"""utils._pytree in compiled functions, and its properties that the comparison with torch does not cover."""
from __future__ import annotations

import json
from typing import Any

import pytest

import eager as torch
from eager.utils import _pytree as pytree


def test_trees_are_followed_by_the_compiler() -> None:
    def fn(tree: dict[str, Any]) -> Any:
        doubled = pytree.tree_map(lambda x: x * 2, tree)
        leaves, spec = pytree.tree_flatten(doubled)
        back = pytree.tree_unflatten([leaf.sin() for leaf in leaves], spec)
        return back, sum(leaf.sum() for leaf in pytree.tree_leaves(back)), pytree.tree_map_only(torch.Tensor, torch.exp, (tree["x"], 3))

    tree = {"x": torch.ones(3), "y": [torch.zeros(2), (torch.ones(1),)]}
    got, expected = torch.compile(fn, fullgraph=True)(tree), fn(tree)
    assert pytree.tree_structure(got) == pytree.tree_structure(expected)
    for a, b in zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True):
        assert a == b if isinstance(b, int) else torch.allclose(a, b)


def test_results_with_names_are_nodes() -> None:
    leaves, spec = pytree.tree_flatten(torch.max(torch.eye(2), 0))
    assert len(leaves) == 2 and pytree.tree_unflatten(leaves, spec).indices.tolist() == [0, 1]
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_reading_a_spec_imports_nothing() -> None:
    text = pytree.treespec_dumps(pytree.tree_structure(__import__("collections").defaultdict(list, a=1)))
    protocol, schema = json.loads(text)
    schema["context"]["default_factory_module"] = "antigravity"
    with pytest.raises(NotImplementedError, match="import antigravity first"):
        pytree.treespec_loads(json.dumps([protocol, schema]))


def test_a_type_can_be_taken_out_again() -> None:
    class Box:
        pass

    pytree.register_pytree_node(Box, lambda b: ([], None), lambda xs, _: Box(), serialized_type_name="tests.Box")
    assert pytree.tree_leaves(Box()) == []
    pytree._deregister_pytree_node(Box)
    assert len(pytree.tree_leaves(Box())) == 1
    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(Box, lambda b: ([], None), lambda xs, _: Box(), to_dumpable_context=str)
    with pytest.raises(TypeError, match="__eq__"):
        pytree.register_constant(Box)


def test_paths_need_a_separate_rule() -> None:
    class Box:
        pass

    pytree.register_pytree_node(Box, lambda b: ([1], None), lambda xs, _: Box())
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_leaves_with_path(Box())
    pytree._deregister_pytree_node(Box)
