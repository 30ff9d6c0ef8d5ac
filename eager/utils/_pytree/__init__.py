"""Trees of containers: flatten to leaves and a spec, map, and rebuild.

Nodes are tuple, list, dict, OrderedDict, defaultdict, deque and named tuples, torch.Size and registered types;
every other value is a leaf, including None. The children of a dict keep its order.
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from eager._tensor.tensor import Size
from eager.base import return_types
from eager.base.pytree.registry import (
    BUILTIN_TYPES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFn,
    FlattenFunc,
    FlattenWithKeysFn,
    FlattenWithKeysFunc,
    FromDumpableContextFn,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    ToDumpableContextFn,
    UnflattenFn,
    UnflattenFunc,
    _deregister_pytree_node,
    _register_namedtuple,
    _register_pytree_node,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from eager.base.pytree.registry import node_type as _get_node_type
from eager.base.pytree.text import treespec_dumps, treespec_loads, treespec_pprint
from eager.base.pytree.tree import (
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
    _broadcast_to_and_flatten,
    _is_leaf,
    arg_tree_leaves,
    broadcast_to_and_flatten,
    key_get,
    keystr,
    map_only,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
    treespec_dict,
    treespec_leaf,
    treespec_tuple,
)

_is_namedtuple_instance = is_namedtuple_instance

# The flattening of built-in containers, under the names that code imports to register similar containers.
_NAMES = (("list", list), ("tuple", tuple), ("dict", dict), ("namedtuple", namedtuple), ("ordereddict", OrderedDict),
          ("defaultdict", defaultdict), ("deque", deque))  # fmt: skip
for _name, _type in _NAMES:
    globals()[f"_{_name}_flatten"] = SUPPORTED_NODES[_type].flatten_fn
    globals()[f"_{_name}_unflatten"] = SUPPORTED_NODES[_type].unflatten_fn
    globals()[f"_{_name}_flatten_with_keys"] = SUPPORTED_NODES[_type].flatten_with_keys_fn


__all__ = [
    "BUILTIN_TYPES", "STANDARD_DICT_TYPES", "SUPPORTED_NODES", "ConstantNode", "Context", "DumpableContext", "FlattenFn",
    "FlattenFunc", "FlattenWithKeysFn", "FlattenWithKeysFunc", "FromDumpableContextFn", "GetAttrKey", "KeyEntry", "KeyPath",
    "LeafSpec", "MappingKey", "NodeDef", "PyTree", "PyTreeSpec", "SequenceKey", "ToDumpableContextFn", "TreeSpec",
    "UnflattenFn", "UnflattenFunc", "_broadcast_to_and_flatten", "_deregister_pytree_node", "_get_node_type", "_is_leaf",
    "_is_namedtuple_instance", "_register_namedtuple", "_register_pytree_node", "arg_tree_leaves", "broadcast_to_and_flatten",
    "is_constant_class", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq",
    "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "map_only", "register_constant", "register_dataclass",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_",
    "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dict",
    "treespec_dumps", "treespec_leaf", "treespec_loads", "treespec_pprint", "treespec_tuple",
]  # fmt: skip

# This library's tuple types are separate node types. A Size is rebuilt as a plain tuple, because mapped leaves need
# not be ints.
register_pytree_node(Size, lambda s: (list(s), None), lambda sizes, _: tuple(sizes), serialized_type_name="torch.Size",
                     flatten_with_keys_fn=lambda s: ([(SequenceKey(i), n) for i, n in enumerate(s)], None))  # fmt: skip


def _constructor(cls: type) -> Callable[[Iterable[Any], Any], Any]:
    return lambda children, _: cls(*children)


for _cls in list(vars(return_types).values()):
    if is_namedtuple_class(_cls):
        register_pytree_node(
            _cls, lambda t: (list(t), None), _constructor(_cls),
            serialized_type_name=f"torch.return_types.{_cls.__name__}",
            flatten_with_keys_fn=lambda t: ([(SequenceKey(i), x) for i, x in enumerate(t)], None))  # fmt: skip
