"""Extern calls: running an op's eager kernel between native segments.

Owns: turning an `ExternCall` into a Python callable over the tensors that the native call lays over the
graph's buffers. Must not know: the compiler, how buffers are allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import dtypes
from eager.device import device
from eager.ops import table
from eager.spec import TensorSpec
from eager.tensor import Tensor
from inductor.artifact import BufferView, DeviceArg, DtypeArg, ExternCall

__all__ = ["bind"]

Run = Callable[..., None]


def bind(call: ExternCall) -> tuple[Run, tuple[BufferView, ...]]:
    """A callable and the views it wants: `callable(*tensors)`, one tensor per view.

    Raises: LookupError if the op table has no such op (an artifact of another version).
    """
    op = table.OPS.get(call.op)
    if op is None:
        raise LookupError(f"extern call: the op table has no op {call.op!r}; delete the cache entry and compile again")
    views: list[BufferView] = []
    template = tuple(_template(a, views) for a in call.args)
    inputs = len(views)
    views.extend(v for v in call.outputs if v is not None)
    read = tuple(v is not None for v in call.outputs)
    direct = op.kernel is not None and op.kind not in (table.Kind.VIEW, table.Kind.POINTWISE)
    origin = call.origin

    def run(*tensors: Tensor) -> None:
        args = tuple(_fill(t, tensors) for t in template)
        given = iter(tensors[inputs:])
        outputs = [next(given) if r else None for r in read]
        try:
            if direct and (whole := _laid_out(op, args, outputs)) is not None:
                op.execute_into(whole[0] if len(whole) == 1 else whole, args)
                return
            # Results of several ops (decompositions) and results in another layout: one copy more.
            results = op.execute(args)
            for out, result in zip(outputs, results if isinstance(results, tuple) else (results,), strict=True):
                if out is not None:
                    out._array[...] = result._array
        except Exception as error:
            if origin:
                error.add_note(f"in {op.name}, called at {origin}")
            raise

    return run, tuple(views)


def _laid_out(op: Any, args: tuple[Any, ...], outputs: list[Tensor | None]) -> tuple[Tensor, ...] | None:
    """What the kernel may write into: `outputs`, and scratch for the results that nobody reads; None where an output is
    not laid out by the op's law, which the kernel relies on."""
    specs = op.infer(*args)
    specs = (specs,) if isinstance(specs, TensorSpec) else tuple(specs)
    if len(specs) != len(outputs) or any(
        o is not None and (s.dtype is not o.dtype or s.shape != tuple(o.shape) or s.strides != o.stride())
        for s, o in zip(specs, outputs, strict=True)
    ):
        return None
    return tuple(table.empty(s) if o is None else o for s, o in zip(specs, outputs, strict=True))


class _Slot:
    """Stands in the argument template for tensor number `index`."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def _template(argument: Any, views: list[BufferView]) -> Any:
    if isinstance(argument, BufferView):
        views.append(argument)
        return _Slot(len(views) - 1)
    if isinstance(argument, DtypeArg):
        return dtypes.by_name(argument.name)
    if isinstance(argument, DeviceArg):
        return device(argument.text)
    if isinstance(argument, tuple):
        return tuple(_template(a, views) for a in argument)
    return argument


def _fill(template: Any, tensors: tuple[Tensor, ...]) -> Any:
    if type(template) is _Slot:
        return tensors[template.index]
    if type(template) is tuple:
        return tuple(_fill(t, tensors) for t in template)
    return template
