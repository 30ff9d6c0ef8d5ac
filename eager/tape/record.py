"""Recording: running an op beneath autograd and noting how to reverse it."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from eager import _native
from eager.tape.node import NO_GRAD_VIEW, edge_of, meta_of, op_node_class

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
    result = _native.record_op(op, args, below, op._plans)
    if result is not NotImplemented:
        return result
    edges, needs = _edges(op, args)
    node = op_node_class(op)(op, args, edges, needs)
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


def owned(result: Any, given: Iterable[Any] = ()) -> Any:
    """The result of a function of several ops, as its caller sees it: a view of memory that the function made is not a view for the caller.

    given: tensors that the result may be a view of. A sequence of results is treated item by item.
    """
    if isinstance(result, tuple | list):
        given = tuple(given)
        for r in result:
            owned(r, given)
    elif isinstance(result, _native.TensorBase) and (m := result._autograd) is not None and m.base is not None:
        root = result.untyped_storage().root
        if not any(t.untyped_storage().root is root for t in given):
            result._autograd = None
    return result


def view(op: Any, args: tuple[Any, ...], below: Below) -> Any:
    """Run a view op: its result knows its base, so that writes through either reach both histories."""
    x = args[0]
    recording = _native.grad_enabled()
    result = apply(op, args, below) if recording and x._requires_grad and x.dtype.category >= 2 else below(op, args)
    note_view(result, x, op, args)
    if not recording:
        result._autograd.creation = NO_GRAD_VIEW
        if x._requires_grad:
            result._ask_base()  # a view without a history requires a gradient if its base does
    return result


def note_one_of_many(views: Any, name: str) -> Any:
    """Mark the results of an op that returns several views: none may be written in place. Returns `views`."""
    for i, v in enumerate(views):
        if v._autograd is not None:
            v._autograd.creation = (
                f"Output {i} of {name} is a view and is being modified inplace. This view is the output of a function that "
                "returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
                "replace the inplace operation by an out-of-place one.")  # fmt: skip
    return views


def note_view(result: Any, x: Any, op: Any, args: tuple[Any, ...]) -> None:
    """Record that `result` is the view `op` of `x`, as a chain of view ops from the base, which is not a view."""
    m = meta_of(result)
    parent = x._autograd
    step = ((op, args[1:]),)
    if parent is not None and parent.base is not None:
        m.base, m.replay, m.creation = parent.base, parent.replay + step, parent.creation
    else:
        m.base, m.replay = x, step
    m.seen_version = result._version
