"""`cond` and `while_loop`: branches and loops that depend on tensor data, as function calls.

They run the given Python functions: a branch not taken costs nothing, and gradients come from the branch taken.
Compiled code breaks the graph at the decision, and captures each branch or loop body separately.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.utils import _pytree as pytree


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    pred: a bool, a number or a tensor of one element. operands: tensors, possibly in nested dicts, lists and tuples.
    Raises: RuntimeError for any other argument.
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(isinstance(t, Tensor) for t in pytree.tree_leaves(operands)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
                           f"{operands}.")  # fmt: skip
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]) -> Any:
    """Repeat `carried = body_fn(*carried)` while `cond_fn(*carried)` is true, and return `carried`.

    cond_fn returns a bool or a bool tensor of one element. carried_inputs: a tuple or list of tensors and numbers,
    whose structure the body keeps; for a single value `body_fn` may return it without a tuple.
    Raises: RuntimeError for another condition, a body that returns another number of values, or arguments of other types.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list of tensors and numbers, but got {type(carried_inputs)}.")
    carried: Any = carried_inputs
    while _holds(cond_fn(*carried)):
        made = body_fn(*carried)
        alone = not isinstance(made, (tuple, list))
        if (1 if alone else len(made)) != len(carried):
            raise RuntimeError(f"Expect body_fn to return {len(carried)} values, as many as are carried, but got {made}.")
        carried = (made,) if alone else made
    return carried


def _holds(found: Any) -> bool:
    if not isinstance(found, (bool, Tensor)) or (isinstance(found, Tensor) and found.numel() != 1):
        raise RuntimeError(f"Expect cond_fn to return a boolean scalar tensor or a bool, but got {found}.")
    return bool(found)
