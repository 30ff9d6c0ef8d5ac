"""Custom autograd functions under vmap: by their `vmap` staticmethod, or by a rule made from their own parts."""
from __future__ import annotations

from typing import Any, NamedTuple

from eager import _native
from eager.autograd.function import Function
from eager.base.pytree.tree import broadcast_to_and_flatten, tree_flatten, tree_unflatten
from eager.dispatch.calls import without
from eager.transforms.batching import Batching, set_custom_function
from eager.transforms.lifting import require_setup_context
from eager.transforms.mapping import _to_front, call_batched

TensorBase = _native.TensorBase


class VmapInfo(NamedTuple):
    """The first argument of a `vmap` staticmethod: the number of rows and the treatment of random numbers."""

    batch_size: int
    randomness: str


def _apply(level: Batching, cls: Any, args: tuple[Any, ...]) -> Any:
    if not any(level.is_batched(a) for a in args):
        with without(level):
            return cls.apply(*args)
    has_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if has_rule:
            raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                               "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
                               "avoid ambiguity. For more details, please see "
                               "https://pytorch.org/docs/main/notes/extending.func.html")  # fmt: skip
        return _generated(level, cls, args)
    if not has_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
                           "vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
                           "https://pytorch.org/docs/main/notes/extending.func.html")  # fmt: skip
    in_dims = tuple(0 if level.is_batched(a) else None for a in args)
    with without(level):
        result = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *level.values(args))
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(f"Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                               f"compatible with the output. Got a {type(result)}.")  # fmt: skip
        output, out_dims = result
        ys, spec = tree_flatten(output)
        dims = broadcast_to_and_flatten(out_dims, spec)
        if dims is None:
            raise RuntimeError("The vmap staticmethod returned out_dims that do not fit its output: "
                               f"{tree_flatten(out_dims)[1]} against {spec}")  # fmt: skip
        fronted = [y if d is None else _to_front(y, d % y.ndim) for y, d in zip(ys, dims, strict=True)]
    return tree_unflatten([y if d is None else level.wrap(y) for y, d in zip(fronted, dims, strict=True)], spec)


def _generated(level: Batching, cls: Any, args: tuple[Any, ...]) -> Any:
    """A Function of a batch: it maps the forward, backward and jvp of `cls` over the rows."""
    require_setup_context(cls)
    batched = tuple(level.is_batched(a) for a in args)

    class Mapped(Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            inner = Batching(level.depth, level.size, level.randomness)
            rows = [inner.wrap(v) if b else v for v, b in zip(values, batched, strict=True)]
            with inner:
                result = cls.forward(*rows)
            ys = result if isinstance(result, tuple) else (result,)
            found = tuple(inner.front(y) if isinstance(y, TensorBase) else y for y in ys)
            return found if isinstance(result, tuple) else found[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*(x if isinstance(x, TensorBase) else None for x in inputs),
                                  *(output if isinstance(output, tuple) else (output,)))  # fmt: skip
            ctx.inputs = [None if isinstance(x, TensorBase) else x for x in inputs]
            ctx.single = not isinstance(output, tuple)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return _mapped_backward(cls, ctx, batched, grads)

    Mapped.__name__ = cls.__name__
    with without(level):
        result = Mapped.apply(*level.values(args))
    return level.wrap_results(result)


def _mapped_backward(cls: Any, ctx: Any, batched: tuple[bool, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """The backward of one row, mapped over all rows. An input that all rows share gets the sum of their gradients."""
    n = len(ctx.inputs)
    saved = ctx.saved_tensors
    inputs = [x if s is None else s for x, s in zip(ctx.inputs, saved[:n], strict=True)]
    outputs = saved[n:]
    mapped = [v for v, b in zip(inputs, batched, strict=True) if b]

    def one(*rows: Any) -> list[Any]:
        at = iter(rows)
        own = [next(at) if b else v for v, b in zip(inputs, batched, strict=True)]
        ys = [next(at) for _ in outputs]
        gs = [next(at) for _ in grads]
        inner = cls._backward_cls([], [])
        inner.needs_input_grad = ctx.needs_input_grad
        cls.setup_context(inner, tuple(own), ys[0] if ctx.single else tuple(ys))
        found = cls.backward(inner, *gs)
        return list(found) if isinstance(found, tuple) else [found]

    found = call_batched(one, [*mapped, *outputs, *grads])
    return tuple(g if g is None or b else g.sum(0) for g, b in zip(found, batched, strict=True))


set_custom_function(_apply)
