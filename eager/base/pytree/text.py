"""Specs as text: JSON to keep them, and a short form to read."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from eager.base.pytree.registry import SERIALIZED_NAMES, SUPPORTED_NODES
from eager.base.pytree.tree import TreeSpec, tree_unflatten, treespec_leaf

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON, in torch's layout (protocol 1).

    Raises: TypeError for another object, ValueError for an unknown protocol, NotImplementedError for a type that was
    registered without a name for this.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _layout(protocol)
    return json.dumps((protocol, _to_json(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that `treespec_dumps` wrote. Raises ValueError for an unknown protocol, NotImplementedError for an unknown name."""
    protocol, schema = json.loads(serialized)
    return _layout(protocol)(schema)


def _layout(protocol: int) -> Callable[[Any], TreeSpec]:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}]")
    return _from_json


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.serialized_type_name is None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")  # fmt: skip
    if node.to_dumpable_context is not None:
        context = node.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                            f"using _register_pytree_node. ({error})") from error  # fmt: skip
    return {"type": node.serialized_type_name, "context": context, "children_spec": [_to_json(c) for c in spec.children_specs]}


def _from_json(schema: dict[str, Any]) -> TreeSpec:
    name = schema["type"]
    if name is None:
        return treespec_leaf()
    if name not in SERIALIZED_NAMES:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_NAMES[name]
    load = SUPPORTED_NODES[kind].from_dumpable_context
    context = schema["context"]
    return TreeSpec(kind, json.loads(context) if load is None else load(context), [_from_json(c) for c in schema["children_spec"]])


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with `*` for every leaf, as `{'a': [*, *]}`."""
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))
