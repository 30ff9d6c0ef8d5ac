"""torch.autograd.graph: hooks on saved tensors, edges of the graph, hooks on several gradients."""
from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from eager import _native
from eager.base.hooks import RemovableHandle
from eager.dispatch.calls import Mode
from eager.optable.table import OPS, Op
from eager.tape.engine import GradientEdge, reachable
from eager.tape.node import Node, edge_of
from eager.tape.state import per_thread

TensorBase = _native.TensorBase


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge that the gradient of `tensor` flows to. Raises: RuntimeError if the tensor requires no gradient."""
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


def increment_version(tensor: Any) -> None:
    """Record that the memory of a tensor (or of several) was written to by other means."""
    for t in (tensor,) if isinstance(tensor, TensorBase) else tensor:
        t._bump_version()


class saved_tensors_hooks:  # noqa: N801 - torch's name
    """In the block, what backward will need is kept as `pack_hook(tensor)` and read back by `unpack_hook`."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if per_thread.saved_hooks_forbidden is not None:
            raise RuntimeError(per_thread.saved_hooks_forbidden)
        per_thread.saved_hooks = [*per_thread.saved_hooks, (self.pack_hook, self.unpack_hook)]

    def __exit__(self, *exc: object) -> None:
        per_thread.saved_hooks = per_thread.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - torch's name
    """In the block, what backward will need is kept in the CPU's memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Any) -> Any:
            if t.device.type == "cpu" and not pin_memory:
                return t.device, t.clone()
            moved = t.cpu()
            return t.device, moved.pin_memory() if pin_memory else moved

        def unpack(packed: tuple[Any, Any]) -> Any:
            where, t = packed
            return t.to(where)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """In the block, entering `saved_tensors_hooks` raises RuntimeError with this message."""
    if per_thread.saved_hooks:
        raise RuntimeError(error_message)
    before, per_thread.saved_hooks_forbidden = per_thread.saved_hooks_forbidden, error_message
    try:
        yield
    finally:
        per_thread.saved_hooks_forbidden = before


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., None],
                             *, mode: Literal["all", "any"] = "all") -> RemovableHandle:  # fmt: skip
    """Call `fn` in every backward pass with the gradients of `tensors`.

    mode: "all" calls `fn` once with the list of gradients (None for a tensor without a gradient), after the last of them is
    computed; "any" calls it with the first gradient. Raises: ValueError for any other mode; RuntimeError for a tensor that
    requires no gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        last = _Pass()

        @functools.wraps(fn)
        def first(grad: Any) -> None:
            if last.begins():
                fn(grad)

        return _MultiHandle([t.register_hook(first) for t in tensors])
    return _MultiHandle(_all_hooks(tensors, fn))


class _Pass(threading.local):
    """The gradients of a hook in the backward pass that this thread runs. A pass runs in one thread."""

    def __init__(self) -> None:
        self.run: Any = None  # the list of callbacks of the pass: held, so that no later pass has a list at its address
        self.grads: list[Any] = []
        self.left: set[int] = set()  # the numbers of the tensors whose gradients are to come

    def begins(self) -> bool:
        """Whether the running pass began after the last call."""
        before, self.run = self.run, per_thread.callbacks
        return self.run is None or before is not self.run


def _all_hooks(tensors: Sequence[Any], fn: Callable[..., None]) -> list[RemovableHandle]:
    """One hook per tensor; the last whose gradient comes in a backward pass calls `fn` with all."""
    last = _Pass()
    edges = [get_gradient_edge(t) for t in tensors]

    def hook_for(i: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            if last.begins():
                last.grads, last.left = [None] * len(tensors), _expected(edges)
            last.grads[i] = grad
            last.left.discard(i)
            if not last.left:
                grads, last.grads, last.run = last.grads, [], None
                fn(grads)

        return hook

    return [t.register_hook(hook_for(i)) for i, t in enumerate(tensors)]


def _expected(edges: Sequence[GradientEdge]) -> set[int]:
    """Which of the edges the running backward pass will reach."""
    nodes = per_thread.roots
    reached = set(reachable(list(nodes))[1]) if nodes else {e.node for e in edges}
    return {i for i, e in enumerate(edges) if e.node in reached}


class _CloneBeforeWrite(Mode):
    """Copies the tensors saved for backward before an in-place op overwrites them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Any, int], list[_Saved]] = {}

    def pack(self, t: Any) -> _Saved:
        saved = _Saved(t)
        self.kept.setdefault((t.untyped_storage().root, t._version), []).append(saved)
        return saved

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.mutates:
            target = args[0]
            for saved in self.kept.pop((target.untyped_storage().root, target._version), ()):
                saved.detach_from_memory()
        return op(*args)


class _Saved:
    """A saved tensor: itself until its memory is written to, then a copy."""

    def __init__(self, t: Any) -> None:
        self.tensor = t

    def detach_from_memory(self) -> None:
        self.tensor = OPS["clone"](OPS["detach"](self.tensor), None)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_CloneBeforeWrite]:
    """In the block, tensors that backward needs may be written in place: they are copied first."""
    mode = _CloneBeforeWrite()
    with saved_tensors_hooks(mode.pack, lambda saved: saved.tensor), mode:
        yield mode


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
           "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]  # fmt: skip
