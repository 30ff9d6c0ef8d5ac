"""Whether a call has an effect beside its result, so that dead code elimination must keep it.

Owns `is_effectful`. Ops declare effects by their kind (in-place, effect); methods by a trailing underscore; modules by
`_is_impure`, as in torch.fx. Among other callables only Python's operators are known to be pure; every other call is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from fxir.ir.leaves import SIDE_EFFECTS

_PURE_FUNCTIONS: frozenset[Any] = frozenset(
    [
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
        *(operator.matmul, operator.neg, operator.pos, operator.abs, operator.invert, operator.and_, operator.or_),
        *(operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne, operator.lt, operator.le),
        *(operator.gt, operator.ge, operator.getitem, operator.not_, operator.truth, operator.is_, operator.is_not),
        *(operator.contains, operator.index, getattr),
    ]
)
_EFFECT_KINDS = frozenset({"INPLACE", "EFFECT"})


def is_effectful(op: str, target: Any, root: Mapping[str, Any]) -> bool:
    """Whether a program could notice that a node without users was erased.

    op and target: the node's; root: the values that its graph carries.
    """
    if op in ("placeholder", "output"):
        return True
    if op == "get_attr":
        return False
    if op == "call_method":
        return str(target).endswith("_")
    if op == "call_module":
        return target not in root or bool(getattr(root[target], "_is_impure", False))
    if target in SIDE_EFFECTS:
        return True
    schema = getattr(target, "_schema", None)
    if schema is not None:  # an overload of torch.ops
        return bool(schema.is_mutable)
    kind = getattr(target, "kind", None)
    if kind is not None and hasattr(kind, "name"):
        return kind.name in _EFFECT_KINDS
    return target not in _PURE_FUNCTIONS
