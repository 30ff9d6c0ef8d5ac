"""From a plan and a shared library to something that can be called.

Owns: the translation of an `ArtifactPlan` into the tuples that `_native.CompiledGraph` is built from.
Must not know: the compiler, the disk cache.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eager import _host as host
from eager import dtypes
from eager.tensor import Tensor
from inductor._native import CompiledGraph, Library
from inductor.artifact import (
    ArtifactPlan,
    BufferView,
    ConstantAlias,
    ExternCall,
    InputAlias,
    Literal,
    NewOutput,
    Output,
    Spec,
    ViewOf,
)
from inductor.runtime import extern

__all__ = ["CompiledGraph", "load"]

# The numbers of `enum output_kind` in native/graph.h.
_NEW, _INPUT, _CONSTANT, _VIEW_INPUT, _VIEW_CONSTANT, _VIEW_OUTPUT, _LITERAL = range(7)
_VIEW_KINDS = {"input": _VIEW_INPUT, "constant": _VIEW_CONSTANT, "output": _VIEW_OUTPUT}


def load(
    plan: ArtifactPlan,
    library: Path | None,
    constants: Mapping[str, Tensor],
    *,
    name: str,
    single: bool = False,
    keep_outputs: bool = False,
) -> CompiledGraph:
    """Make `plan` callable.

    library: its shared object; None if the plan has no native code. constants: the values of
    `plan.constants` by name. single: return the only output bare instead of a tuple. keep_outputs:
    an output tensor that nobody holds any more is written again by the next call.
    Raises: OSError if the library cannot be loaded, LookupError if library, constants or op table lack
    something the plan names, NotImplementedError for a plan of another device than the CPU.
    """
    if plan.device != "cpu":
        raise NotImplementedError(f"inductor: plans for device {plan.device!r} cannot be run yet; allowed: 'cpu'")
    host.configure()
    opened = None if library is None else Library(library)
    return CompiledGraph(
        name=name,
        library=opened,
        inputs=tuple(map(_layout, plan.inputs)),
        allocations=tuple(a.nbytes for a in plan.allocations),
        constants=_constants(plan, constants),
        packs=tuple((_address(opened, p.symbol), p.source, p.nbytes) for p in plan.packs),
        steps=tuple(_step(s, opened) for s in plan.steps),
        outputs=tuple(map(_output, plan.outputs)),
        written=plan.written_inputs,
        arena_bytes=plan.arena_bytes,
        single=single,
        keep=keep_outputs,
        checks=tuple((getattr(builtins, c.error), c.text) for c in plan.checks),
    )


def _constants(plan: ArtifactPlan, values: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    found = []
    for constant in plan.constants:
        value = values.get(constant.name)
        if value is None:
            raise LookupError(f"inductor: the graph has no constant {constant.name!r}, which its plan names")
        have = Spec(tuple(value.shape), tuple(value.stride()), value.dtype.name, str(value.device))
        if have != constant.spec:
            raise LookupError(f"inductor: constant {constant.name!r} is {have}, its plan was made for {constant.spec}")
        found.append(value)
    return tuple(found)


def _layout(spec: Spec) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return dtypes.by_name(spec.dtype).code, spec.shape, spec.strides


def _view(view: BufferView) -> tuple[int, int, Any]:
    return view.buffer, view.offset_bytes, _layout(view.spec)


def _address(library: Any, symbol: str) -> int:
    if library is None:
        raise LookupError(f"inductor: the plan names the function {symbol!r}, but it came with no library")
    return int(library.address(symbol))


def _step(step: Any, library: Any) -> tuple[Any, Any]:
    if isinstance(step, ExternCall):
        run, views = extern.bind(step)
        return run, tuple(map(_view, views))
    return _address(library, step.symbol), step.cost_ns


def _output(output: Output) -> tuple[int, int, int, Any]:
    if isinstance(output, NewOutput):
        return _NEW, output.allocation, output.offset, _layout(output.spec)
    if isinstance(output, InputAlias):
        return _INPUT, output.index, 0, None
    if isinstance(output, ConstantAlias):
        return _CONSTANT, output.index, 0, None
    if isinstance(output, ViewOf):
        return _VIEW_KINDS[output.of], output.index, output.offset, _layout(output.spec)
    assert isinstance(output, Literal)
    return _LITERAL, 0, 0, output.value
