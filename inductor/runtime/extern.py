"""Extern calls: running an op's eager kernel between native segments.

Owns the conversion of an `ExternCall` into a Python callable over tensors that view the graph's buffers. The op's native kernel
runs if it has one for these arguments, as in eager. This module does not depend on the compiler or on the allocation of
buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.spec import TensorSpec
from eager.optable import table
from eager.optable.memory import array_module, assign, empty
from eager.optable.registry import Kind
from fxir.expr.nodes import Expr
from inductor.artifact.format import BufferView, DeviceArg, DtypeArg, ExternCall

__all__ = ["bind"]

Run = Callable[..., None]


def bind(call: ExternCall, origin: str = "") -> tuple[Run, tuple[BufferView, ...], tuple[Expr, ...]]:
    """A callable with its views and expressions: `callable(*tensors, *ints)`, one tensor per view, one int per expression.

    origin: "file:line" of the user's call, for error messages.
    Raises: LookupError if the op table has no such op (an artifact of another version).
    """
    op = table.OPS.get(call.op)
    if op is None:
        raise LookupError(f"extern call: the op table has no op {call.op!r}; delete the cache entry and compile again")
    views: list[BufferView] = []
    ints: list[Expr] = []
    arguments = tuple(_template(a, views, ints) for a in call.args)
    inputs = len(views)
    views.extend(v for v in call.outputs if v is not None)
    template = _placed(arguments, len(views)) if ints else arguments
    read = tuple(v is not None for v in call.outputs)
    has_native = not op.mutates and (op._native_kernel >= 0 or op._pointwise_loop >= 0)
    direct = op.kernel is not None and op.kind not in (Kind.VIEW, Kind.POINTWISE)

    def run(*given: Any) -> None:
        args = tuple(_fill(t, given) for t in template)
        rest = iter(given[inputs:])
        outputs = [next(rest) if r else None for r in read]
        try:
            if has_native and (found := _native.run_kernel(op, args)) is not None:
                _copy(found, outputs)
                return
            if direct and (whole := _laid_out(op, args, outputs)) is not None:
                op.execute_into(whole[0] if len(whole) == 1 else whole, args, array_module(whole[0].device))
                return
            # Results of several ops (decompositions) and results in another layout need one more copy.
            _copy(op.execute(args), outputs)
        except Exception as error:
            if origin:
                error.add_note(f"in {op.name}, called at {origin}")
            raise

    return run, tuple(views), tuple(ints)


def _copy(results: Tensor | tuple[Tensor, ...], outputs: list[Tensor | None]) -> None:
    """Copy the results of an op into the outputs that are read."""
    for out, result in zip(outputs, results if isinstance(results, tuple) else (results,), strict=True):
        if out is not None:
            assign(out, result)


def _laid_out(op: Any, args: tuple[Any, ...], outputs: list[Tensor | None]) -> tuple[Tensor, ...] | None:
    """Memory for the kernel's results: `outputs`, and scratch for the results without readers; None if an output does not have
    the strides that the kernel relies on.
    """
    specs = op.infer(*args)
    specs = (specs,) if isinstance(specs, TensorSpec) else tuple(specs)
    if len(specs) != len(outputs) or any(
        o is not None and (s.dtype is not o.dtype or s.shape != tuple(o.shape) or s.strides != o.stride())
        for s, o in zip(specs, outputs, strict=True)
    ):
        return None
    return tuple(empty(s) if o is None else o for s, o in zip(specs, outputs, strict=True))


class _Slot:
    """The place, in the argument template, of the callable's argument `index`."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _IntSlot(_Slot):
    """The same, counted among the ints until all views are known."""

    __slots__ = ()


def _placed(template: Any, n_views: int) -> Any:
    if type(template) is _IntSlot:
        return _Slot(n_views + template.index)
    return tuple(_placed(t, n_views) for t in template) if type(template) is tuple else template


def _template(argument: Any, views: list[BufferView], ints: list[Expr]) -> Any:
    if isinstance(argument, BufferView):
        views.append(argument)
        return _Slot(len(views) - 1)
    if isinstance(argument, Expr):
        ints.append(argument)
        return _IntSlot(len(ints) - 1)
    if isinstance(argument, DtypeArg):
        return dtypes.by_name(argument.name)
    if isinstance(argument, DeviceArg):
        return device(argument.text)
    if isinstance(argument, tuple):
        return tuple(_template(a, views, ints) for a in argument)
    return argument


def _fill(template: Any, given: tuple[Any, ...]) -> Any:
    if type(template) is _Slot:
        return given[template.index]
    if type(template) is tuple:
        return tuple(_fill(t, given) for t in template)
    return template
