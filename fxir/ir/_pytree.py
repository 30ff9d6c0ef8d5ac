"""`torch.fx._pytree`: flattens containers by a known spec, as the arguments of a traced function are flattened."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from eager.utils._pytree import PyTree, TreeSpec, tree_flatten

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFnSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[PyTree, TreeSpec], bool]
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(cls: Any, flatten_fn_spec: FlattenFnSpec,
                                 flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None) -> None:  # fmt: skip
    """Register `flatten_fn_spec(container, spec)`, which returns the children of a container of this class."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of `pytree` in the order of `spec`. Raises: RuntimeError if the container has another spec."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree, spec)
        return [leaf for child, s in zip(children, spec.children(), strict=False) for leaf in tree_flatten_spec(child, s)]
    leaves, real = tree_flatten(pytree)
    if spec != real:
        raise RuntimeError(f"Real spec {real} of object {pytree} is different from expected spec {spec}.")
    return leaves


def _by_key(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[k] for k in spec.context]


def _by_index(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


register_pytree_flatten_spec(dict, _by_key, _same_length)
for _cls in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_cls, _by_index, _same_length)
