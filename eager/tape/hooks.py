"""Functions that the engine calls around a node: hooks on tensors and nodes, anomaly checks, initial gradients."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.spec import SpecLike
from eager.startup import first_use
from eager.tape.node import AccumulateGrad, Node, legacy_name

TensorBase = _native.TensorBase
Factory = Callable[[SpecLike, float], Any]

_full: Factory | None = None


def set_factory(full: Factory) -> None:
    """Registered by the op table: a tensor of a spec, filled with a number."""
    global _full
    _full = full


def ones(like: SpecLike) -> Any:
    assert _full is not None
    return _full(like, 1)


def zeros(like: SpecLike) -> Any:
    assert _full is not None
    return _full(like, 0)


def batched(fn: Callable[..., Any], rows: Sequence[Any]) -> Sequence[Any]:
    """The results of `fn` over the leading dim of all `rows`, by vmap. vmap is in a layer above and is found on first use."""
    return first_use.find(__name__, "call_batched")(fn, rows)


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _check_replacement(hook: Any, old: Any, new: Any) -> None:
    """Raise TypeError or RuntimeError, with torch's texts, if the result of a hook cannot replace the gradient `old`."""
    if not isinstance(new, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old is None:
        return
    if new.dtype is not old.dtype or new.device is not old.device:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {legacy_name(old)} got {legacy_name(new)})")
    if tuple(new.shape) != tuple(old.shape):
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")


def run_tensor_hooks(node: Node, grads: list[Any]) -> None:
    """Hooks of the tensors that `node` made, in order of registration; `retain_grad` last."""
    found = node.tensor_hooks
    if isinstance(node, AccumulateGrad):
        meta = node.variable._autograd
        found = {0: meta.hooks} if meta is not None and meta.hooks else None
    for index, by_id in (found or {}).items():
        for hook in list(by_id.values()):
            if grads[index] is None:
                break
            replaced = hook(grads[index])
            if replaced is not None:
                _check_replacement(hook, grads[index], replaced)
                grads[index] = replaced
    for index, ref in (node.retained or {}).items():
        t = ref()
        if t is not None and grads[index] is not None:
            t._grad = grads[index] if t._grad is None else t._grad + grads[index]


def _check_count(hook: Any, given: Sequence[Any], expected: int) -> None:
    if len(given) != expected:
        raise RuntimeError(f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(given)}, but expected "
                           f"{expected})")  # fmt: skip


def run_prehooks(node: Node, grads: list[Any]) -> None:
    for hook in list((node.pre_hooks or {}).values()):
        replaced = hook(tuple(grads))
        if replaced is not None:
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            _check_count(hook, replaced, len(grads))
            grads[:] = replaced


def run_posthooks(node: Node, result: Sequence[Any], grads: Sequence[Any]) -> Sequence[Any]:
    result = tuple(result)
    for hook in list((node.hooks or {}).values()):
        replaced = hook(result, tuple(grads))
        if replaced is not None:
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            _check_count(hook, replaced, len(result))
            result = replaced
    return result


def forward_trace(node: Node) -> str:
    """The report of anomaly mode on a failed node: the traceback of its forward call, and of the calls that induced it."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        return (f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward "
                "pass for more information.")  # fmt: skip
    text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_")
        text += (f"\n\nPrevious calculation was induced by {parent.name()}. " + (
            "No forward pass information available." if stack is None else
            f"Traceback of forward call that induced the previous calculation:\n{''.join(stack)}"))  # fmt: skip
        parent = parent.metadata.get("parent_")
    return text


def refuse_nan(node: Node, result: Sequence[Any]) -> None:
    """Raise RuntimeError if a gradient that `node` returned holds nan."""
    before = _native.set_grad_enabled(False)
    try:
        for i, g in enumerate(result):
            if isinstance(g, TensorBase) and not g.is_fake and g.device.type != "meta" and bool((g != g).any().item()):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    finally:
        _native.set_grad_enabled(before)
