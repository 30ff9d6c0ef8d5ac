"""Recording: running an op beneath autograd and noting how to reverse it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager.autograd.node import OpNode, edge_of, meta_of

TensorBase = _native.TensorBase
Below = Callable[[Any, tuple[Any, ...]], Any]


def _edges(op: Any, args: tuple[Any, ...]) -> tuple[list[Any], tuple[bool, ...]]:
    """Edges of all tensor inputs, lists flattened in place, and which parameters want a gradient."""
    edges: list[Any] = []
    needs = []
    for param, a in zip(op.schema.params, args, strict=True):
        if isinstance(a, TensorBase):
            e = edge_of(a)
            edges.append(e)
            needs.append(e is not None)
        elif param.is_tensor_list and a is not None:
            es = [edge_of(t) for t in a]
            edges.extend(es)
            needs.append(any(e is not None for e in es))
        else:
            if param.is_tensor:
                edges.append(None)
            needs.append(False)
    return edges, tuple(needs)


def apply(op: Any, args: tuple[Any, ...], below: Below) -> Any:
    """Run `op` with recording off and give its differentiable outputs a history."""
    edges, needs = _edges(op, args)
    node = OpNode(op, args, edges, needs)
    _native.set_grad_enabled(False)
    try:
        result = below(op, args)
    finally:
        _native.set_grad_enabled(True)
    outputs = (result,) if isinstance(result, TensorBase) else tuple(result)
    for i, y in enumerate(outputs):
        if y.dtype.category >= 2 and i not in op.nondifferentiable_outputs:
            y._set_history(node, i)
    node.keep(args, outputs)
    return result


def view(op: Any, args: tuple[Any, ...], below: Below) -> Any:
    """Run a view op: its result knows its base, so that writes through either reach both histories."""
    x = args[0]
    result = apply(op, args, below) if x._requires_grad and x.dtype.category >= 2 else below(op, args)
    note_view(result, x, op, args)
    return result


def note_view(result: Any, x: Any, op: Any, args: tuple[Any, ...]) -> None:
    """Remember that `result` is `op` of `x`, chained down to the base that is no view itself."""
    m = meta_of(result)
    parent = x._autograd
    step = ((op, args[1:]),)
    if parent is not None and parent.base is not None:
        m.base, m.replay = parent.base, parent.replay + step
    else:
        m.base, m.replay = x, step
    m.seen_version = result._version
