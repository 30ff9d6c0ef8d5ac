"""A CUDA plan as an artifact: its kernels as machine code, and its steps over numbered buffers.

The machine code of all kernels is one file, in the order of the kernels. A plan for the emulated device holds Triton's source instead.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, Final

from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from fxir.ir.graph import Graph
from inductor.artifact import format as A
from inductor.base.target import TARGETS, Target
from inductor.cpp.units import Sizes
from inductor.driver.cuda import Call, Choose, Copy, CudaPlan, Launch, Product, Step, Upload, is_on_host, lower_to_cuda
from inductor.driver.gpu_candidates import default_candidate
from inductor.driver.gpu_library import matrix_product
from inductor.ir import definitions as ir
from inductor.ir.sizes import at_least, plain
from inductor.triton.compile import Cubin, compile_kernel, prepare
from inductor.triton.kernel import CHECKS_POINTER, TritonKernel

_WARP: Final = 32  # threads
_EARLY_LAUNCH: Final = 90  # the first compute capability with programmatic dependent launch


@dataclass(frozen=True, slots=True)
class CompiledForCuda:
    """The plan and sources of a graph, and the machine code of its kernels in one piece and one by one: None for the emulated device."""

    compiled: A.Compiled
    code: bytes | None
    plan: CudaPlan
    cubins: Sequence[Cubin] | None


def target_of(capability: tuple[int, int]) -> Target:
    """The record of a device of that compute capability: the newest record that is not newer than the device, under the device's name.

    Raises: RuntimeError for a device older than every record.
    """
    number = 10 * capability[0] + capability[1]
    known = {int(name.removeprefix("sm_")): t for name, t in TARGETS.items() if name.startswith("sm_")}
    fitting = [n for n in known if n <= number]
    if not fitting:
        raise RuntimeError(f"compile: a CUDA device of capability {capability[0]}.{capability[1]}; allowed: {min(known) / 10} or newer")
    return known[max(fitting)]._replace(name=f"sm_{number}")


def compile_for_cuda(
    graph: Graph, where: device, target: Target, precision: str = "ieee", choose: Choose = default_candidate, *, is_emulated: bool,
    is_deterministic: bool = False, launches_early: bool = False,
) -> CompiledForCuda:
    """Compile `graph`, whose tensors are on the CUDA device `where`. precision: of products of float32, "ieee" or "tf32".

    choose: the schedule of each kernel. is_deterministic: as in `lower_to_cuda`. launches_early: whether kernels may be launched before the
    kernels in front of them end, on devices that can do that.
    Raises: Unprintable for a kernel without a Triton form; NeedsStatic; TritonUnavailable.
    """
    plan = lower_to_cuda(graph, target, precision, choose, is_deterministic)
    if launches_early and not is_emulated and capability_of(target) >= _EARLY_LAUNCH:
        plan = replace(plan, kernels=tuple(replace(k, waits=True) for k in plan.kernels))
    cubins = None if is_emulated else compile_kernels(plan.kernels, capability_of(target))
    kernels, code = device_kernels(plan.kernels, cubins)
    hosted = frozenset(i for i, node in enumerate(graph.placeholders) if is_on_host(node.info.spec))
    made = _Translation(plan, where, hosted).plan(kernels)
    units = tuple(A.SourceUnit(k.name, k.source, suffix=".py") for k in plan.kernels)
    return CompiledForCuda(A.Compiled(made, units, ()), None if is_emulated else code, plan, cubins)


def capability_of(target: Target) -> int:
    """The compute capability of a target, times 10."""
    return int(target.name.removeprefix("sm_"))


def workers_for(count: int) -> int:
    """The processes that compile `count` kernels."""
    return min(count, len(os.sched_getaffinity(0)), 16)


def compile_kernels(kernels: Sequence[TritonKernel], capability: int) -> list[Cubin]:
    """The machine code of kernels, compiled in forked processes if there are several."""
    workers = workers_for(len(kernels))
    if workers <= 1:
        return [compile_kernel(k, capability) for k in kernels]
    prepare()  # before the processes start, since each would need seconds for it
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return list(pool.map(compile_kernel, kernels, [capability] * len(kernels)))


def device_kernels(kernels: Sequence[TritonKernel], cubins: Sequence[Cubin] | None) -> tuple[tuple[A.DeviceKernel, ...], bytes]:
    """The records of kernels, and their machine code in one piece. cubins: None for the emulated device."""
    found, code = [], b""
    for i, k in enumerate(kernels):
        dtypes = tuple(d.name for d in k.dtypes)
        if cubins is None:
            found.append(A.DeviceKernel(k.name, 0, 0, _WARP * k.num_warps, 0, dtypes, k.source))
            continue
        c = cubins[i]
        found.append(A.DeviceKernel(k.name, len(code), len(c.code), _WARP * c.num_warps, c.shared_bytes, dtypes, waits=k.waits))
        code += c.code
    return tuple(found), code


class _Translation:
    """The records of one CUDA plan as records of an artifact."""

    def __init__(self, plan: CudaPlan, where: device, hosted: Collection[int]) -> None:
        """hosted: the numbers of the inputs on the host."""
        self.cuda, self.hosted = plan, hosted
        self.device = f"cuda:{where.index or 0}"
        self.symbols = {s.name: s for s, _ in plan.symbols}
        self.given = {n: (m.kind, m.number) for n, m in plan.memory.items() if m.kind in ("input", "constant")}
        self.returned = {n: m.number for n, m in plan.memory.items() if m.kind == "output"}

    def plan(self, kernels: tuple[A.DeviceKernel, ...]) -> A.ArtifactPlan:
        """The artifact's plan."""
        program = self.cuda.program
        inputs = tuple(map(self._input, range(len(program.inputs))))
        constants = tuple(A.Constant(key, self._spec(program.buffers[n].layout)) for n, key in program.constants)
        by_number = sorted(self.returned, key=self.returned.__getitem__)
        allocations = tuple(A.Allocation(at_least(self.cuda.memory[n].nbytes, 1), self.device) for n in by_number)
        self.made = A.ArtifactPlan(inputs, (), allocations, constants, device=self.device)
        symbols = tuple(A.Symbol(s, source.kind, source.input, source.dim) for s, source in self.cuda.symbols)
        made = replace(
            self.made,
            outputs=tuple(map(self._output, self.cuda.outputs)),
            arena_bytes=self.cuda.arena_bytes,
            steps=tuple(map(self._step, self.cuda.steps)),
            written_inputs=tuple(program.inputs.index(w.input) for w in program.writes),
            checks=tuple(A.Check(*c) for c in self.cuda.checks),
            symbols=symbols,
            kernels=kernels,
        )
        return replace(made, derived=Sizes([s for s, _ in self.cuda.symbols]).derived(made))

    def _input(self, i: int) -> A.Spec | A.IntInput:
        buffer = self.cuda.program.buffers.get(self.cuda.program.inputs[i])
        if buffer is None:
            return A.IntInput()
        made = self._spec(buffer.layout)
        return replace(made, device="cpu") if i in self.hosted else made

    def _place(self, name: str) -> tuple[int, Any]:
        """(index in `bufs`, offset in bytes) of a buffer."""
        if name == CHECKS_POINTER:
            return A.CHECKS_BUFFER, 0
        where = self.cuda.memory[name]
        if where.kind == "arena":
            return self.made.arena_buffer, where.at
        places = {"input": self.made.input_buffer, "constant": self.made.constant_buffer, "output": self.made.output_buffer}
        return places[where.kind](where.number), 0

    def _step(self, step: Step) -> A.Step:
        match step:
            case Launch():
                k = self.cuda.kernels[step.kernel]
                return A.KernelLaunch(step.kernel, tuple(map(self._place, step.arguments)),
                                      tuple(self.symbols[s] for s in k.sizes), k.grid)  # fmt: skip
            case Product():
                return matrix_product(step.call, self._place)
            case Copy():
                return A.BufferCopy(self._place(step.target), self._place(step.source), self.cuda.memory[step.target].nbytes)
            case Call():
                return self._call(step)
            case Upload():
                return A.Upload(self._place(step.target), tuple(map(self.cuda.program.inputs.index, step.inputs)))

    def _call(self, step: Call) -> A.ExternCall:
        buffers = self.cuda.program.buffers
        views = tuple(None if n is None else self._view(buffers[n].ref()) for n in step.results)
        first = next((buffers[n] for n in step.results if n is not None), None)
        nodes = first.source.nodes if first is not None else ()
        return A.ExternCall(step.op, self._arguments(step.args), views, nodes[0] if nodes else -1)

    def _arguments(self, args: Any) -> Any:
        if isinstance(args, ir.Ref):
            return self._view(args)
        if isinstance(args, tuple | list):
            return tuple(map(self._arguments, args))
        if isinstance(args, dtype):
            return A.DtypeArg(args.name)
        return A.DeviceArg(str(args)) if isinstance(args, device) else args

    def _view(self, r: ir.Ref) -> A.BufferView:
        buffer, at = self._place(r.buffer)
        return A.BufferView(buffer, plain(at + r.offset * r.layout.dtype.itemsize), self._spec(r.layout))

    def _output(self, r: Any) -> A.Output:
        if isinstance(r, E.Expr):
            return A.IntOutput(r)
        if not isinstance(r, ir.Ref):
            return A.Literal(r)
        if r.buffer in self.returned:
            return A.NewOutput(self.returned[r.buffer], self._spec(r.layout), r.offset)
        kind, index = self.given[r.buffer]
        if r.offset == 0 and r.layout == self.cuda.program.buffers[r.buffer].layout:
            return A.InputAlias(index) if kind == "input" else A.ConstantAlias(index)
        return A.ViewOf(kind, index, self._spec(r.layout), r.offset)

    def _spec(self, layout: ir.Layout) -> A.Spec:
        return A.Spec(layout.shape, layout.strides, layout.dtype.name, self.device)
