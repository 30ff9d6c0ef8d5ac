"""From a plan and a shared library to a callable.

Owns the translation of an `ArtifactPlan` into the tuples that `_native.CompiledGraph` is built from. It does not depend on the
compiler or the disk cache.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base import machine as host
from eager.base.device import device
from inductor._native import CompiledGraph, Library
from inductor.artifact.format import (
    ArtifactPlan,
    BufferCopy,
    BufferView,
    ConstantAlias,
    ExternCall,
    InputAlias,
    IntInput,
    IntOutput,
    KernelLaunch,
    Literal,
    MatrixProduct,
    NewOutput,
    Output,
    Size,
    Spec,
    Symbol,
    Upload,
    ViewOf,
)
from inductor.base.user_lines import Lines
from inductor.runtime import extern
from inductor.runtime.size_programs import size_program

__all__ = ["CompiledGraph", "load"]

# The numbers of `enum output_kind` in native/graph.h.
_NEW, _INPUT, _CONSTANT, _VIEW_INPUT, _VIEW_CONSTANT, _VIEW_OUTPUT, _LITERAL, _INT = range(8)
_VIEW_KINDS = {"input": _VIEW_INPUT, "constant": _VIEW_CONSTANT, "output": _VIEW_OUTPUT}
# The numbers of `enum step_kind` in native/graph.h.
_SEGMENT, _EXTERN, _LAUNCH, _COPY, _UPLOAD, _PRODUCT = range(6)
# The numbers of `enum symbol_kind` in native/graph.h.
_SYMBOL_KINDS = {"size": 0, "stride": 1, "offset": 2, "int": 3}
_MOST = (1 << 63) - 1
_SIZE_ARGUMENT = -1  # ARGUMENT_SIZE in native/graph.h


def load(
    plan: ArtifactPlan,
    library: Path | None,
    constants: Mapping[str, Tensor],
    *,
    name: str,
    single: bool = False,
    keep_outputs: bool = False,
    recording: int = 0,
    lines: Lines = MappingProxyType({}),
) -> CompiledGraph:
    """Make `plan` callable.

    library: its shared object; None if the plan has no native code. constants: the values of `plan.constants` by name. single:
    return the only output bare instead of a tuple. keep_outputs: the next call reuses an output tensor without references.
    recording: of CUDA graphs, a number of `inductor.runtime.cuda.Recording`.
    lines: the user's line of each node.
    Raises: OSError if the library cannot be loaded, LookupError if library, constants or op table lack a name in the plan,
    RuntimeError if the plan's device is not available.
    """
    host.configure()
    if plan.device != "cpu":
        return _load_for_device(plan, library, constants, name, single, keep_outputs, recording, lines)
    translated = _Translation(plan, lines)
    opened = None if library is None else Library(library)
    return CompiledGraph(
        **_described(plan, translated, constants, name, single, keep_outputs),
        library=opened,
        packs=tuple((_address(opened, p.symbol), p.sources, p.nbytes) for p in plan.packs),
        steps=tuple(translated.step(s, opened) for s in plan.steps),
        derive=_address(opened, "fj_sizes") if plan.derived else 0,
        device=None,
    )


def _load_for_device(
    plan: ArtifactPlan, library: Path | None, constants: Mapping[str, Tensor], name: str, single: bool, keep: bool,
    recording: int, lines: Lines,
) -> CompiledGraph:  # fmt: skip
    """The same for a plan whose kernels run on a device."""
    cuda = importlib.import_module("inductor.runtime.cuda")  # here, so that the CPU does not pay for the import
    code = cuda.load_code(plan, None if library is None else library.read_bytes(), cuda.Recording(recording))
    translated = _Translation(plan, lines, code)
    graph = CompiledGraph(
        **_described(plan, translated, constants, name, single, keep),
        library=None,
        packs=(),
        steps=tuple(translated.step(s, None) for s in plan.steps),
        derive=size_program(plan) if plan.derived else 0,
        device=code.device,
    )
    code.watch(graph)
    return graph


def _described(
    plan: ArtifactPlan, translated: _Translation, constants: Mapping[str, Tensor], name: str, single: bool, keep: bool
) -> dict[str, Any]:
    """The arguments of `CompiledGraph` that every device has."""
    return {
        "name": name,
        "inputs": tuple(map(translated.layout, plan.inputs)),
        "allocations": tuple(translated.size(a.nbytes) for a in plan.allocations),
        "constants": _constants(plan, constants),
        "outputs": tuple(map(translated.output, plan.outputs)),
        "written": plan.written_inputs,
        "arena_bytes": translated.size(plan.arena_bytes),
        "single": single,
        "keep": keep,
        "checks": tuple((getattr(builtins, c.error), c.text, translated.size(c.size)) for c in plan.checks),
        "symbols": tuple(map(_symbol, plan.symbols)),
        "n_sizes": len(plan.sizes),
    }


def _constants(plan: ArtifactPlan, values: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    found = []
    for constant in plan.constants:
        value = values.get(constant.name)
        if value is None:
            raise LookupError(f"inductor: the graph has no constant {constant.name!r}, which its plan names")
        have = Spec(tuple(value.shape), tuple(value.stride()), value.dtype.name, str(value.device))
        if have != constant.spec:
            raise LookupError(f"inductor: constant {constant.name!r} is {have}; its plan needs {constant.spec}")
        found.append(value)
    return tuple(found)


def _device_index(text: str) -> int:
    """-1 for the CPU, else the number of the CUDA device."""
    return -1 if text == "cpu" else device(text).index or 0


def _address(library: Any, symbol: str) -> int:
    if library is None:
        raise LookupError(f"inductor: the plan names the function {symbol!r}, but it has no library")
    return int(library.address(symbol))


def _symbol(s: Symbol) -> tuple[int, int, int, int, int]:
    low, high = (int(min(max(x, -_MOST), _MOST)) for x in (s.symbol.lo, s.symbol.hi))
    return _SYMBOL_KINDS[s.kind], s.input, s.dim, low, high


class _Translation:
    """The records of one plan for the native type: a `Size` is an int, or a tuple of its index alone."""

    def __init__(self, plan: ArtifactPlan, lines: Lines, code: Any = None) -> None:
        self.lines, self.code = lines, code
        self.numbers = {e: i for i, e in enumerate(plan.sizes)}

    def size(self, n: Size) -> int | tuple[int]:
        if isinstance(n, int):
            return n
        number = self.numbers.get(n)
        if number is None:
            raise LookupError(f"inductor: the plan uses {n!r}, which is not among its sizes")
        return (number,)

    def layout(self, spec: Spec | IntInput) -> Any:
        """A layout as a tuple; None for an input that is an int."""
        if isinstance(spec, IntInput):
            return None
        sizes, strides = tuple(map(self.size, spec.shape)), tuple(map(self.size, spec.strides))
        return dtypes.by_name(spec.dtype).code, sizes, strides, _device_index(spec.device)

    def view(self, view: BufferView) -> tuple[int, Any, Any]:
        return view.buffer, self.size(view.offset_bytes), self.layout(view.spec)

    def step(self, step: Any, library: Any) -> tuple[Any, ...]:
        if isinstance(step, ExternCall):
            run, views, ints = extern.bind(step, self.lines.get(step.node, ""))
            return _EXTERN, (run, tuple(map(self.view, views)), tuple(self.numbers[e] for e in ints))
        if isinstance(step, KernelLaunch):
            return self._launch(step)
        if isinstance(step, MatrixProduct):
            return self._product(step)
        if isinstance(step, BufferCopy):
            return self._copy(step)
        if isinstance(step, Upload):
            return self._upload(step)
        return _SEGMENT, (_address(library, step.symbol), self.size(step.cost_ns))

    def _launch(self, step: KernelLaunch) -> tuple[Any, ...]:
        bound = self._interpreted(step)
        if bound is not None:
            return bound
        function, threads, shared_bytes = self.code.function(step.kernel)
        arguments = [(buffer, self.size(offset)) for buffer, offset in step.buffers]
        arguments += [(_SIZE_ARGUMENT, self.size(n)) for n in step.sizes]
        return _LAUNCH, (function, self.size(step.grid), threads, shared_bytes, tuple(arguments), self.code.waits(step.kernel))

    def _interpreted(self, step: KernelLaunch | MatrixProduct | BufferCopy | Upload) -> tuple[Any, ...] | None:
        """The step as a call, if the device is emulated."""
        bound = self.code.interpreted(step)
        if bound is None:
            return None
        run, views, ints = bound
        return _EXTERN, (run, tuple(map(self.view, views)), tuple(self.numbers[e] for e in ints))

    def _product(self, step: MatrixProduct) -> tuple[Any, ...]:
        bound = self._interpreted(step)
        if bound is not None:
            return bound
        a, b, result = (self._place(m.place) for m in (step.a, step.b, step.result))
        bias = None if step.bias is None else self._place(step.bias.place)
        workspace = self._place(step.workspace) if step.workspace_bytes else None
        return _PRODUCT, (self.code.product(step), a, b, result, bias, workspace, step.workspace_bytes)

    def _place(self, place: tuple[int, Size]) -> tuple[int, int | tuple[int]]:
        return place[0], self.size(place[1])

    def _upload(self, step: Upload) -> tuple[Any, ...]:
        target, at = step.target
        return self._interpreted(step) or (_UPLOAD, ((target, self.size(at)), step.inputs))

    def _copy(self, step: BufferCopy) -> tuple[Any, ...]:
        bound = self._interpreted(step)
        if bound is not None:
            return bound
        (target, at), (source, start) = step.target, step.source
        return _COPY, ((target, self.size(at)), (source, self.size(start)), self.size(step.nbytes))

    def output(self, output: Output) -> tuple[int, int, Any, Any]:
        if isinstance(output, NewOutput):
            return _NEW, output.allocation, self.size(output.offset), self.layout(output.spec)
        if isinstance(output, InputAlias):
            return _INPUT, output.index, 0, None
        if isinstance(output, ConstantAlias):
            return _CONSTANT, output.index, 0, None
        if isinstance(output, ViewOf):
            return _VIEW_KINDS[output.of], output.index, self.size(output.offset), self.layout(output.spec)
        if isinstance(output, IntOutput):
            return _INT, 0, self.size(output.value), None
        assert isinstance(output, Literal)
        return _LITERAL, 0, 0, output.value
