"""A graph on CUDA tensors as a plan: kernels with their launch parameters, calls of eager kernels, and memory. Nothing is launched.

The first stages serve every target: graph -> loop program -> kernels. Each kernel's loops are then scheduled over programs and tiles
(`inductor.plan.gpu_schedule`) and printed as Triton. A plan prints, so that it can be read and tested without
a GPU.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from eager.base import dtypes, logs
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.base.spec import TensorSpec
from fxir.expr import rules as E
from fxir.ir.graph import Graph
from fxir.symbols.shapes import NeedsStatic
from inductor.artifact.format import UPLOAD_SLOT
from inductor.base.target import SM_90, Target
from inductor.driver.gpu_candidates import Candidate, default_candidate
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, at_least, fixed, plain
from inductor.loops.apply import Refusal
from inductor.loops.build import build
from inductor.loops.build import copy as copy_loops
from inductor.loops.steps import Schedule as LoopSchedule
from inductor.loops.steps import to_text
from inductor.loops.tree import Kernel
from inductor.lowering import in_own_symbols, lower
from inductor.plan.attention import fuse_attention
from inductor.plan.gpu_attention import schedule_attention
from inductor.plan.gpu_nests import join_sums, separate_results
from inductor.plan.heuristics import schedule_product
from inductor.plan.in_place import in_place
from inductor.plan.launch_groups import Effect, launch_groups
from inductor.plan.library_products import WORKSPACE_ALIGNMENT, LibraryCall
from inductor.plan.memory import lifetimes, plan_arena
from inductor.plan.narrow_operands import narrow_operands
from inductor.plan.narrow_results import converted_results, narrowed
from inductor.plan.padded_operands import pad_operands
from inductor.plan.schedule import FUSION, SCHEDULE, Nest, Schedule, Single, loop_nest, schedule
from inductor.plan.split_products import split_products
from inductor.triton.combined import MOST_POINTERS, combined, grouped, most_sets
from inductor.triton.kernel import CHECKS_POINTER, DESCRIPTOR_BYTES, Options, TritonKernel

LOOPS: Final = logs.artifact("loops")
GROUPED_BYTES: Final = 1 << 24  # most bytes that a kernel in one launch with others reads and writes: a launch takes as long
GROUP_BYTES: Final = 1 << 26  # of all kernels in one launch: their results are in memory from there on


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. kernel: the number of the kernel in the plan. arguments: buffers in the order of the kernel's pointers.

    title: the user's calls that it computes. schedule: the steps that its loops were made with.
    """

    kernel: int
    arguments: tuple[str, ...]
    title: str
    schedule: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices by the device's library."""

    call: LibraryCall
    title: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the eager kernel of `op`. results: the buffer of each result, None for a result without readers."""

    op: str
    args: tuple[Any, ...]
    results: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """The bytes of one buffer copied to another of the same layout."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Upload:
    """The 0-d inputs on the host, copied to the buffer `target` on the device: slot k holds inputs[k]."""

    inputs: tuple[str, ...]
    target: str


Step: TypeAlias = Launch | Product | Call | Copy | Upload
LIGHT_LAUNCH: Final = 8  # programs of a multiprocessor whose work takes not much longer than their launch
_UPLOADED: Final = "uploaded"  # the buffer of the slots
Choose: TypeAlias = Callable[[Kernel, Target, Options], Candidate]  # the schedule of plain loops


@dataclass(frozen=True, slots=True)
class Memory:
    """Where a buffer is. kind: "input" or "output" with its number, "constant", or "arena" with its offset in bytes."""

    kind: str
    at: Size
    dtype: dtype
    nbytes: Size

    @property
    def number(self) -> int:
        """Of an input, an output or a constant."""
        return fixed((self.at,), "the number of a buffer")[0]

    def __str__(self) -> str:
        return f"{self.kind} {'+' if self.kind == 'arena' else ''}{self.at}, {self.nbytes} bytes of {self.dtype.name}"


@dataclass(frozen=True, slots=True)
class CudaPlan:
    """The kernels and steps of one graph for one target.

    program: the definitions that they compute. memory: of every buffer. arena_bytes: of the one allocation for intermediate buffers.
    checks: as of the program; two int64 each in the buffer "checks", zero before the first step. symbols: as of the program.
    """

    program: ir.Program
    target: Target
    kernels: tuple[TritonKernel, ...]
    steps: tuple[Step, ...]
    memory: Mapping[str, Memory]
    arena_bytes: Size
    outputs: tuple[Any, ...]
    checks: tuple[tuple[str, str, Size], ...]
    symbols: tuple[tuple[E.Sym, Any], ...]

    def __str__(self) -> str:
        lines = [f"plan for {self.target.name}: {len(self.kernels)} kernels, {len(self.steps)} steps, {self.arena_bytes} bytes of arena"]
        lines += [f"  {name}: {where}" for name, where in self.memory.items()]
        lines += [f"  {number}: {self._step(step)}" for number, step in enumerate(self.steps)]
        lines.append(f"  return {', '.join(map(str, self.outputs))}")
        return "\n".join([*lines, *(f"\n{k.source}" for k in self.kernels)])

    def _step(self, step: Step) -> str:
        match step:
            case Launch():
                k = self.kernels[step.kernel]
                return f"{k.name}<<<{k.grid}, {k.num_warps} warps>>>({', '.join((*step.arguments, *k.sizes))})  # {step.title}"
            case Product():
                return f"{step.call}  # {step.title}"
            case Call():
                return f"{', '.join(map(str, step.results))} = {step.op}({', '.join(map(str, step.args))})"
            case Copy():
                return f"{step.target} = {step.source}"
            case Upload():
                return f"{step.target} = {', '.join(step.inputs)} of the host"


def lower_to_cuda(graph: Graph, target: Target = SM_90, precision: str = "ieee", choose: Choose = default_candidate,
                  is_deterministic: bool = False) -> CudaPlan:  # fmt: skip
    """The plan of `graph`, whose tensors are on one CUDA device; fake tensors suffice. precision: of products, as in `Options`.

    Placeholders may also be 0-d tensors on the CPU, as operands: no output may be one of them.
    choose: called for every kernel except kernels of attention, whose tiles have fixed sizes. is_deterministic: whether floats are added
    at repeated positions in a fixed order, by eager kernels; else by atomic additions.
    Raises: NeedsStatic if a stage needs a symbol as an int; Unprintable for a kernel without a Triton form.
    """
    try:
        return _planned(graph, target, precision, choose, is_deterministic)
    except NeedsStatic as refusal:
        raise in_own_symbols(graph, refusal) from None


def _planned(graph: Graph, target: Target, precision: str, choose: Choose, is_deterministic: bool) -> CudaPlan:
    # A step of a recurrence needs the whole state of the step before, which separate programs of one kernel compute.
    lowered = lower(graph, has_recurrences=False, has_tiles=True, adds_floats=not is_deterministic,
                    has_float8=target.multiplies_shared)  # fmt: skip
    program = pad_operands(split_products(narrow_operands(fuse_attention(lowered)), target))
    hosted = [f"in{i}" for i, node in enumerate(graph.placeholders) if is_on_host(node.info.spec)]
    given = target, Options(precision=precision), choose, hosted
    made = _sink_products(separate_results(join_sums(schedule(program))))
    planner = _Planner(made, *given)
    stored = planner.stored_products()
    narrow = {n: to for n, to in converted_results(made.program).items() if n in stored}
    return (_Planner(_sink_products(narrowed(made, narrow)), *given) if narrow else planner).plan()


def is_on_host(spec: Any) -> bool:
    """Whether a placeholder of this spec is a tensor on the CPU."""
    return isinstance(spec, TensorSpec) and spec.device.type == "cpu"


def _sink_products(made: Schedule) -> Schedule:
    """The schedule with each contraction right before its first reader: by then the reader's other inputs exist, so that it can run on
    the blocks of the result."""
    steps = list(made.steps)
    for i in reversed(range(len(steps))):
        step = steps[i]
        if not isinstance(step, Single) or not isinstance(step.member.definition, ir.Contraction):
            continue
        name = step.member.name
        reader = next((j for j in range(i + 1, len(steps)) if any(name in m.reads for m in _members(steps[j]))), i + 1)
        steps.insert(reader - 1, steps.pop(i))
    return replace(made, steps=tuple(steps))


class _Planner:
    def __init__(self, made: Schedule, target: Target, options: Options, choose: Choose, hosted: Sequence[str]) -> None:
        """hosted: the inputs on the host."""
        self.made, self.program, self.target, self.options, self.choose = made, made.program, target, options, choose
        self.dtypes = {n: b.layout.dtype for n, b in self.program.buffers.items()}
        self.kernels: dict[tuple[object, ...], tuple[int, TritonKernel]] = {}
        self.sizes: dict[str, Size] = {}  # bytes of scratch, by name
        self.given = {*self.program.inputs, *(n for n, _ in self.program.constants)}
        self.outside = self._outside()
        self.hosted = hosted
        self.absorbed: dict[int, int] = {}  # nests that run on the blocks of a product -> its step
        self.joint = self._joint_products()
        self.homes = self._homes()
        self.taken = self._taken()

    def _outside(self) -> dict[int, set[str]]:
        """By step: the results that other steps read, or that leave the graph."""
        leaving = {r.buffer for r in self.program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in self.program.writes}
        readers: dict[str, set[int]] = {}
        for i, step in enumerate(self.made.steps):
            for m in _members(step):
                for n in m.reads:
                    readers.setdefault(n, set()).add(i)
        return {i: {m.name for m in _members(step) if m.name in leaving or readers.get(m.name, set()) - {i}}
                for i, step in enumerate(self.made.steps)}  # fmt: skip

    def _taken(self) -> dict[str, str]:
        """The targets of scatters that nothing else reads, with the result that is computed in their memory."""
        readers = Counter(n for b in self.program.buffers.values() for n in b.reads)
        leaving = {r.buffer for r in self.program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in self.program.writes}
        found = {}
        for step in self.made.steps:
            for m in _members(step):
                d = m.definition
                if not isinstance(d, ir.Scatter) or readers[d.target] > 1 or d.target in self.given | leaving | self.homes.keys():
                    continue
                if all(x.buffer != d.target for x in d.loads):
                    found[d.target] = m.name
        return found

    def _homes(self) -> dict[str, str]:
        """The results of pointwise loops and scatters that are stored into the input that they overwrite, and the input.

        Other results are copied to it: `in_place` knows no order among the programs of a reduction.
        """
        if not self.program.writes:
            return {}
        nests = {i: loop_nest(step) for i, step in enumerate(self.made.steps)
                 if isinstance(step, Nest) and i not in self.absorbed and _is_pointwise(step)}  # fmt: skip
        returned = {r.buffer for r in self.program.outputs if isinstance(r, ir.Ref)}
        homes, objections = in_place(self.made, nests, self.given | returned)
        for o in objections:
            FUSION.log(str(o))
        return homes

    def _holder(self, name: str) -> str:
        """The buffer whose memory `name` is in."""
        while name in self.taken:
            name = self.taken[name]
        return self.homes.get(name, name)

    def plan(self) -> CudaPlan:
        """The whole plan."""
        steps: list[Step] = []
        calls: set[str] = set()
        for i, step in enumerate(self.made.steps):
            member = step.member if isinstance(step, Single) else None
            if i in self.absorbed:
                continue
            if member is not None and isinstance(member.definition, ir.Contraction):
                steps += self._product(i, member)
                continue
            if member is not None and isinstance(member.definition, ir.Attention):
                for kernel, tiling in schedule_attention(_members(step), self.dtypes, self.target):
                    options = replace(self.options, num_warps=tiling.warps, num_stages=tiling.stages)
                    steps += self._launches([m for m in _members(step) if m.name in kernel.dtypes], kernel, (), options)
                continue
            if member is not None and isinstance(member.definition, ir.Extern):
                if member.definition.call not in calls:
                    calls.add(member.definition.call)
                    steps.append(self._call(member.definition))
                continue
            steps += self._launches(_members(step), self._loops(i, step))
        for w in self.program.writes:
            if w.value.buffer in self.homes:
                continue
            target = self.program.buffers[w.input]
            steps += self._launches([replace(target, definition=None)], copy_loops(target, w.value))
        made = [k for _, k in self.kernels.values()]
        kernels, steps = _numbered(*self._grouped(*self._combined(made, [*self._upload(steps), *steps])))
        memory, arena = self._memory(steps)
        outputs = self._held(self.program.outputs)
        return CudaPlan(self.program, self.target, kernels, tuple(steps), memory, arena, outputs, self.program.checks, self.program.symbols)

    def _combined(self, kernels: Sequence[TritonKernel], steps: Sequence[Step]) -> tuple[list[TritonKernel], list[Step]]:
        """The kernels and steps with launches of one small kernel over different buffers as one, at the place of the last."""
        all_kernels: list[TritonKernel] = list(kernels)
        made: list[Step] = []
        for group in launch_groups([self._effect(s, kernels) for s in steps]):
            first = steps[group[0]]
            launches = [s for s in (steps[i] for i in group) if isinstance(s, Launch)]
            if len(group) == 1 or not isinstance(first, Launch):
                made.append(first)
                continue
            shared = [k for k, given in enumerate(zip(*(s.arguments for s in launches), strict=True)) if len(set(given)) == 1]
            own = [k for k in range(len(first.arguments)) if k not in shared]
            arguments = (*(first.arguments[k] for k in shared), *(s.arguments[k] for s in launches for k in own))
            kernel = combined(kernels[first.kernel], len(launches), shared)
            number = next((k for k, known in enumerate(all_kernels) if known.code == kernel.code), len(all_kernels))
            if number == len(all_kernels):
                all_kernels.append(kernel)
            made.append(Launch(number, arguments, f"{first.title} and {len(group) - 1} more", first.schedule))
        return all_kernels, made

    def _effect(self, step: Step, kernels: Sequence[TritonKernel]) -> Effect:
        """The buffers of a step. A launch with few programs may run with others; with more, if that keeps no results alive longer."""
        touched = frozenset(_touched(step))
        if not isinstance(step, Launch):
            return Effect(touched, touched)
        kernel = kernels[step.kernel]
        written = frozenset(_outputs(kernel, step))
        programs = self.target.cores * (LIGHT_LAUNCH if touched - written <= self.given else 1)
        is_small = isinstance(kernel.grid, int) and kernel.grid <= programs
        most = most_sets(kernel)
        if isinstance(kernel.grid, int) and kernel.num_stages > 1:  # products share the multiprocessors that one would leave idle
            most = min(most, self.target.cores // kernel.grid)
        return Effect(touched, written, step.kernel if is_small else None, most)

    def _loops(self, i: int, step: Nest | Single) -> Kernel:
        """The plain loops of a step."""
        members = _members(step)
        names = {m.name for m in members}
        memory = {n: self.dtypes[n] for m in members for n in m.reads}
        if isinstance(step, Single):
            return build(members, memory)
        same = {self.homes[n]: n for n in names if n in self.homes}
        return build(members, memory, names - self.outside[i], () if _is_pointwise(step) or step.column else step.rows, same)

    def _joint_products(self) -> dict[int, tuple[list[ir.Buffer], Kernel, LoopSchedule]]:
        """By step of a contraction: its loops with the first nest that reads it on each of its blocks, if the nest can run there."""
        made = {}
        for i, step in enumerate(self.made.steps):
            if not isinstance(step, Single) or not isinstance(step.member.definition, ir.Contraction):
                continue
            product = step.member
            j = self._follower(i, product)
            if j < 0:
                continue
            after = _members(self.made.steps[j])
            readers = {b.name for b in self.program.buffers.values() if product.name in b.reads}
            needed = self.outside[j] | ({product.name} if self._leaves(product.name) or not readers <= {m.name for m in after} else set())
            found = schedule_product(product, after, self.dtypes, needed)
            if isinstance(found, Refusal):
                FUSION.log(f"{product.name} into {', '.join(m.name for m in after)}: {found.reason}")
            else:
                self.absorbed[j] = i
                made[i] = [product, *after], *found
        return made

    def stored_products(self) -> set[str]:
        """The contractions whose result is in memory, since the loops that read it do not run on its blocks."""
        products = {i: step.member.name for i, step in enumerate(self.made.steps)
                    if isinstance(step, Single) and isinstance(step.member.definition, ir.Contraction)}  # fmt: skip
        return {name for i, name in products.items() if i not in self.joint}

    def _product(self, i: int, product: ir.Buffer) -> list[Step]:
        """The launches of a contraction, with the nest that runs on its blocks."""
        if i in self.joint:
            return self._launches(*self.joint[i])
        return self._launches([product], self._loops(i, Single(product)))

    def _follower(self, i: int, product: ir.Buffer) -> int:
        """The first nest that reads the product, if all its other inputs exist by then; else -1."""
        made_at = {m.name: k for k, step in enumerate(self.made.steps) for m in _members(step)}
        for j in range(i + 1, len(self.made.steps)):
            members = _members(self.made.steps[j])
            reads = {n for m in members for n in m.reads} - {m.name for m in members}
            if isinstance(self.made.steps[j], Nest) and product.name in reads and j not in self.absorbed:
                return j if all(made_at.get(n, -1) <= i for n in reads) else -1
        return -1

    def _leaves(self, name: str) -> bool:
        """Whether a buffer leaves the graph."""
        leaving = {r.buffer for r in self.program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in self.program.writes}
        return name in leaving

    def _launches(self, members: Sequence[ir.Buffer], loops: Kernel, done: LoopSchedule = (), options: Options | None = None) -> list[Step]:
        """The launches of a kernel, and the copy of the memory that a scatter takes over. done: the steps that made the loops.

        options: of loops that are programs over tiles already.
        """
        chosen = self.choose(loops, self.target, self.options) if options is None else Candidate(loops, (), options)
        kernel = chosen.kernel
        scattered = [(m.definition.target, m.name) for m in members if isinstance(m.definition, ir.Scatter)]
        before: list[Step] = [Copy(self._holder(a), self._holder(n)) for a, n in scattered if self._holder(a) != self._holder(n)]
        title = "; ".join(f"{m.name}: {m.source.title or 'copy'}" for m in members)
        printed = chosen.printed("kernel")
        for n in kernel.temporary:
            self.sizes[n] = self.program.buffers[n].layout.nbytes
        for x in printed.scratch:
            self.sizes[x.name] = plain(x.size * x.dtype.itemsize)
            self.dtypes[x.name] = x.dtype
        text = to_text((*done, *chosen.steps))
        if SCHEDULE.enabled:
            SCHEDULE.log(f"{'+'.join(m.name for m in members)}: {text}")
        if LOOPS.enabled:
            LOOPS.log(f"{'+'.join(m.name for m in members)}:\n{kernel}")
        if chosen.library is not None:
            before.append(Product(chosen.library._replace(product=chosen.library.product.renamed(self._holder)), title))
        kernels = [k for k in printed.kernels if k.pointers]
        return [*before, *(Launch(self._number(k), tuple(map(self._holder, k.pointers)), title, text) for k in kernels)]

    def _number(self, kernel: TritonKernel) -> int:
        """The number of a kernel; equal kernels over other buffers are one."""
        number = len(self.kernels)
        return self.kernels.setdefault(kernel.code, (number, kernel))[0]

    def _grouped(self, kernels: Sequence[TritonKernel], steps: Sequence[Step]) -> tuple[list[TritonKernel], list[Step]]:
        """The kernels and steps with small kernels that read inputs and constants alone in few launches, at the first one's place."""
        groups: list[list[int]] = []
        left, pointers = 0.0, 0
        for i in self._independent(kernels, steps):
            step = steps[i]
            assert isinstance(step, Launch)
            nbytes = self._nbytes(step.arguments)
            if not groups or nbytes > left or pointers + len(step.arguments) > MOST_POINTERS:
                groups.append([])
                left, pointers = GROUP_BYTES, 0
            groups[-1].append(i)
            left, pointers = left - nbytes, pointers + len(step.arguments)
        all_kernels, new, gone = list(kernels), list(steps), set[int]()
        for group in (g for g in groups if len(g) > 1):
            launches = [s for i in group if isinstance(s := steps[i], Launch)]
            all_kernels.append(grouped("kernel", [(kernels[s.kernel], s.arguments) for s in launches]))
            title, text = launches[0].title, launches[0].schedule
            new[group[0]] = Launch(len(all_kernels) - 1, all_kernels[-1].pointers, f"{title} and {len(group) - 1} more", text)
            gone |= set(group[1:])
        return all_kernels, [s for i, s in enumerate(new) if i not in gone]

    def _independent(self, kernels: Sequence[TritonKernel], steps: Sequence[Step]) -> list[int]:
        """The launches of small kernels that could be the first steps: they read inputs and constants that no step writes."""
        first: dict[str, int] = {}
        written = set(self.hosted)
        for i, step in enumerate(steps):
            for n in _touched(step):
                first.setdefault(n, i)
            written |= set(_outputs(kernels[step.kernel], step)) if isinstance(step, Launch) else _touched(step)
        found = []
        for i, step in enumerate(steps):
            if not isinstance(step, Launch):
                continue
            k, outputs = kernels[step.kernel], set(_outputs(kernels[step.kernel], step))
            is_fixed = not k.sizes and isinstance(k.grid, int) and k.num_stages == 1 and CHECKS_POINTER not in k.pointers
            is_early = all(first[n] == i and n not in self.given if n in outputs else n in self.given and n not in written
                           for n in step.arguments)  # fmt: skip
            if is_fixed and is_early and self._nbytes(step.arguments) <= GROUPED_BYTES:
                found.append(i)
        return found

    def _nbytes(self, names: Sequence[str]) -> float:
        """Bytes of buffers, infinity if a size is symbolic."""
        sizes = [self.program.buffers[n].layout.nbytes if n in self.program.buffers else self.sizes[n] for n in names]
        return sum((n if isinstance(n, int) else math.inf for n in sizes), 0.0)

    def _call(self, d: ir.Extern) -> Call:
        results: list[str | None] = [None] * d.count
        for b in self.program.buffers.values():
            if isinstance(b.definition, ir.Extern) and b.definition.call == d.call:
                results[b.definition.output] = b.name
        return Call(d.op, self._held(d.args), tuple(None if n is None else self._holder(n) for n in results))

    def _held(self, args: Any) -> Any:
        """Arguments of a call over the buffers that hold them."""
        if isinstance(args, ir.Ref):
            return replace(args, buffer=self._holder(args.buffer))
        return tuple(map(self._held, args)) if isinstance(args, tuple | list) else args

    def _upload(self, steps: Sequence[Step]) -> list[Step]:
        """The copy of the inputs on the host that the steps read."""
        read = set().union(*map(_touched, steps))
        found = tuple(n for n in self.hosted if n in read)
        self.sizes[_UPLOADED] = UPLOAD_SLOT * len(found)
        self.dtypes[_UPLOADED] = dtypes.uint8
        return [Upload(found, _UPLOADED)] if found else []

    def _memory(self, steps: Sequence[Step]) -> tuple[dict[str, Memory], Size]:
        """Where each buffer is, and the bytes of the arena."""
        memory: dict[str, Memory] = {}
        buffers = self.program.buffers

        def put(name: str, kind: str, at: Size) -> None:
            nbytes = buffers[name].layout.nbytes if name in buffers else self.sizes[name]
            memory[name] = Memory(kind, at, self.dtypes[name], nbytes)

        for k, n in enumerate(self.program.inputs):
            if n in buffers and n not in self.hosted:
                put(n, "input", k)
        for k, (n, _) in enumerate(self.program.constants):
            put(n, "constant", k)
        returned = dict.fromkeys(r.buffer for r in self.program.outputs if isinstance(r, ir.Ref) and r.buffer not in memory)
        for k, n in enumerate(returned):
            put(n, "output", k)
        upload = next((s for s in steps if isinstance(s, Upload)), None)
        slots = {n: UPLOAD_SLOT * k for k, n in enumerate(upload.inputs)} if upload else {}
        uses = [{_UPLOADED if n in slots else n for n in _touched(s)} for s in steps]
        sizes = {n: at_least(buffers[n].layout.nbytes if n in buffers else self.sizes[n], 1)
                 for names in uses for n in names if n not in memory and n != CHECKS_POINTER}  # fmt: skip
        alignment = WORKSPACE_ALIGNMENT if any(isinstance(s, Product) and s.call.workspace for s in steps) else DESCRIPTOR_BYTES
        offsets, total = plan_arena(lifetimes(sizes, uses), alignment) if sizes else ({}, 0)
        for n, offset in offsets.items():
            put(n, "arena", offset)
        for n, offset in slots.items():
            put(n, "arena", plain(memory[_UPLOADED].at + offset))
        return memory, total


def _members(step: Nest | Single) -> list[ir.Buffer]:
    return list(step.members)


def _is_pointwise(step: Nest) -> bool:
    """Whether all members of a nest are pointwise over its rows."""
    return all(isinstance(m.definition, ir.Pointwise) and m.definition.ranges == step.rows for m in step.members)


def _outputs(kernel: TritonKernel, launch: Launch) -> list[str]:
    """The buffers that a launch writes."""
    return [n for n, own in zip(launch.arguments, kernel.pointers, strict=True) if own in kernel.outputs]


def _numbered(kernels: Sequence[TritonKernel], steps: Sequence[Step]) -> tuple[tuple[TritonKernel, ...], list[Step]]:
    """The kernels that the steps launch, in the order of their first launches, which number them; and the steps."""
    used = list(dict.fromkeys(s.kernel for s in steps if isinstance(s, Launch)))
    number = {k: i for i, k in enumerate(used)}
    named = tuple(replace(kernels[k], name=f"kernel_{i}") for i, k in enumerate(used))
    return named, [replace(s, kernel=number[s.kernel]) if isinstance(s, Launch) else s for s in steps]


def _touched(step: Step) -> set[str]:
    """The buffers that a step reads or writes."""
    match step:
        case Launch():
            return set(step.arguments)
        case Product():
            return set(step.call.buffers)
        case Call():
            return {r.buffer for r in ir.refs_of(step.args)} | {n for n in step.results if n is not None}
        case Copy():
            return {step.source, step.target}
        case Upload():
            return {step.target}
