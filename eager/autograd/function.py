"""Custom differentiable functions: subclasses of Function with static forward and backward."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.autograd.node import Node, SavedTensor, edge_of
from eager.ops.table import zeros as _zeros
from eager.spec import spec_of

TensorBase = _native.TensorBase


class FunctionCtx:
    """What forward may leave for backward."""

    def __init__(self) -> None:
        self.to_save: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.non_differentiable: set[int] = set()
        self.dirty: tuple[Any, ...] = ()
        self.materialize_grads = True
        self._node: _CustomNode | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep these tensors, with a check in backward that nobody wrote to them since."""
        self.to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        assert self._node is not None
        return self._node.unpack_saved()

    def mark_non_differentiable(self, *outputs: Any) -> None:
        self.non_differentiable = {id(o) for o in outputs}

    def mark_dirty(self, *inputs: Any) -> None:
        """These inputs were written in place by forward and are returned."""
        self.dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing output gradients reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


class _CustomNode(Node):
    __slots__ = ("ctx", "cls", "saved", "tensor_positions", "released")

    def __init__(self, cls: Any, ctx: FunctionCtx, edges: Sequence[Any], positions: Sequence[int]) -> None:
        super().__init__(edges, ())
        self.cls, self.ctx = cls, ctx
        self.saved: tuple[Any, ...] = ()
        self.tensor_positions = positions
        self.released = False

    def name(self) -> str:
        return self.cls.__name__ + "Backward"

    def unpack_saved(self) -> tuple[Any, ...]:
        if self.released:
            raise RuntimeError("Trying to backward through the graph a second time (or directly access saved tensors after "
                               "they have already been freed). Specify retain_graph=True if you need to backward through the "
                               "graph a second time.")  # fmt: skip
        return tuple(s.unpack(self) if isinstance(s, SavedTensor) else s for s in self.saved)

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        if self.released:
            self.unpack_saved()
        if self.ctx.materialize_grads:
            grads = [_zeros(s) if g is None and s is not None else g for g, s in zip(grads, self.output_specs, strict=True)]
        result = self.cls.backward(self.ctx, *grads)
        if not isinstance(result, tuple):
            result = (result,)
        total = len(self.ctx.needs_input_grad)
        if len(result) < total or any(r is not None for r in result[total:]):
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {total}, got "
                               f"{len(result)})")  # fmt: skip
        return [result[i] for i in self.tensor_positions]

    def release(self) -> None:
        self.saved, self.released = (), True




class Function:
    """Subclass with `forward(ctx, *args)` and `backward(ctx, *grads)`; call through `apply`.

    With a `setup_context(ctx, inputs, output)`, forward takes no ctx.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward with recording off, and give its outputs this function's backward."""
        ctx = FunctionCtx()
        positions = [i for i, a in enumerate(args) if isinstance(a, TensorBase)]
        recording = _native.grad_enabled()
        edges = [edge_of(args[i]) if recording else None for i in positions]
        ctx.needs_input_grad = tuple(isinstance(a, TensorBase) and a._requires_grad for a in args)
        node = _CustomNode(cls, ctx, edges, positions)
        ctx._node = node
        before = _native.set_grad_enabled(False)
        try:
            if hasattr(cls, "setup_context"):
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            _native.set_grad_enabled(before)
        single = not isinstance(result, tuple)
        outputs = [result] if single else list(result)
        if any(e is not None for e in edges):
            outputs = cls._attach(node, ctx, args, outputs)
        return outputs[0] if single else tuple(outputs)

    @classmethod
    def _attach(cls, node: _CustomNode, ctx: FunctionCtx, args: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
        inputs = {id(a) for a in args}
        dirty = {id(d) for d in ctx.dirty}
        fresh = []
        for y in outputs:
            if isinstance(y, TensorBase) and id(y) in inputs and id(y) not in dirty:
                y = _native.alias(y, tuple(y.shape), y.stride(), y.storage_offset())
            fresh.append(y)
        node.output_specs = [spec_of(y) if isinstance(y, TensorBase) else None for y in fresh]
        for i, (y, original) in enumerate(zip(fresh, outputs, strict=True)):
            if isinstance(y, TensorBase) and id(original) not in ctx.non_differentiable and y.dtype.category >= 2:
                y._set_history(node, i)
        own = {id(y) for y in fresh}
        node.saved = tuple(SavedTensor(t, id(t) in own) if isinstance(t, TensorBase) else t for t in ctx.to_save)
        return fresh


def once_differentiable(fn: Any) -> Any:
    """A backward that cannot itself be differentiated: with create_graph it gives constants."""

    def wrapper(ctx: Any, *grads: Any) -> Any:
        before = _native.set_grad_enabled(False)
        try:
            return fn(ctx, *grads)
        finally:
            _native.set_grad_enabled(before)

    return wrapper
