"""The compiler's stages in order: graph -> loop program -> schedule -> C++ and a plan.

Owns the order, the placement of buffers in `bufs`, the printing of steps that are not nests, and the plan's outputs. It does
not depend on g++, the disk cache or the runtime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, NamedTuple

from eager.base import logs
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.base.options import GraphKind
from fxir.expr import rules as E
from fxir.ir.graph import Graph, GraphSignature
from fxir.symbols.shapes import NeedsStatic
from inductor.artifact import format as A
from inductor.base.choice import DEFAULT
from inductor.base.request import Request
from inductor.base.toolchain import compile_workers
from inductor.cpp.contractions import Core, choose_core, is_near, print_steps
from inductor.cpp.gemm import block_tile
from inductor.cpp.gemm_core import block_core
from inductor.cpp.loops import print_kernel
from inductor.cpp.prelude import prelude
from inductor.cpp.units import (
    SIZES,
    SIZES_IN,
    Code,
    Functions,
    Kernel,
    Place,
    Sizes,
    comment,
    declared,
    spread,
)
from inductor.cpp.values import size_source
from inductor.cpp.vector_math import forms_used
from inductor.driver import packs
from inductor.driver.packs import Pack
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, at_least, fixed, is_symbolic, plain
from inductor.loops import tree as loops
from inductor.loops.refusal import Refusal as LoopRefusal
from inductor.loops.steps import to_text
from inductor.lowering import in_own_symbols, lower
from inductor.plan.attention import fuse_attention
from inductor.plan.in_place import in_place
from inductor.plan.kernels import (
    Scheduled,
    Unscheduled,
    attention_kernel,
    copy_kernel,
    expanded_kernel,
    nest_kernel,
    product_kernel,
    recurrence_kernel,
    scan_kernel,
    scatter_kernel,
)
from inductor.plan.memory import lifetimes, plan_arena
from inductor.plan.producers import computing, producer_of
from inductor.plan.schedule import (
    FUSION,
    SCHEDULE,
    LoopNest,
    Nest,
    Refusal,
    Schedule,
    Single,
    Step,
    in_memory,
    loop_nest,
    row_local,
    schedule,
)

LOOPS: Final = logs.artifact("loops")
_FAIL: Final = "rt->fail(rt, (int)FJ_CHECKS[0] - 1, FJ_CHECKS[1]);"
CHECK_BYTES: Final = 64  # bytes at the start of the arena of a program with checks


def compile_graph(graph: Graph, kind: GraphKind, request: Request) -> A.Compiled:
    """The plan and the source units of `graph`.

    Raises: NeedsStatic if a stage needs a symbol of the graph as an int.
    """
    return _compiled(graph, request)[1]


class Tunable(NamedTuple):
    """A kernel whose schedule depends on a choice. memory: dtype and bytes of each buffer, by canonical name.

    checks: of the graph. runs: how often the graph runs the kernel. cost_ns: estimated time of one run; 0 if its sizes are symbolic.
    """

    plain: Unscheduled
    memory: Mapping[str, tuple[dtype, Size]]
    title: str
    checks: int
    runs: int
    cost_ns: float


def tunable_kernels(graph: Graph, request: Request) -> tuple[list[Tunable], float]:
    """The different kernels of a graph that a choice may change, and the estimated nanoseconds of its other kernels."""
    compiler, made = _compiled(graph, request)
    found: dict[Unscheduled, Tunable] = {}
    for kernel, printed in compiler.printed:
        if kernel.plain is None:
            continue
        layouts = {n: compiler.program.buffers[b].layout for n, b in kernel.names.items() if b in compiler.program.buffers}
        memory = {n: (layout.dtype, layout.nbytes) for n, layout in layouts.items()}
        known = found.get(kernel.plain)
        found[kernel.plain] = Tunable(kernel.plain, memory, printed.title, len(compiler.program.checks), known.runs + 1 if known else 1,
                                      printed.cost_ns)  # fmt: skip
    total = sum(s.cost_ns for s in made.plan.steps if isinstance(s, A.NativeSegment) and isinstance(s.cost_ns, int))
    return list(found.values()), max(0.0, total - sum(t.runs * t.cost_ns for t in found.values()))


def _compiled(graph: Graph, request: Request) -> tuple[_Compiler, A.Compiled]:
    try:
        program = lower(graph)
        if ir.Contraction in program.kinds:
            program = fuse_attention(program)
        weights = _weights(program, graph.signature) if request.packing != "none" else ()
        compiler = _Compiler(schedule(program, weights if request.packing == "all" else ()), request, weights)
        return compiler, compiler.build()
    except NeedsStatic as refusal:
        raise in_own_symbols(graph, refusal) from None


def _weights(program: ir.Program, signature: GraphSignature | None) -> frozenset[str]:
    """The tensors that are the same in most calls: parameters and buffers of modules that the graph does not write, and constants."""
    kept = signature.unwritten if signature is not None else ()
    inputs = [program.inputs[i] for i in kept if program.inputs[i] in program.buffers]
    return frozenset((*inputs, *(n for n, _ in program.constants)))


@dataclass(slots=True)
class _Code:
    """The code of one step: the statements that run it, or an extern call."""

    statements: list[str] = field(default_factory=list)
    extern: A.ExternCall | None = None
    cost_ns: float = 0.0
    symbolic_ps: Size = 0


class _Compiler:
    def __init__(self, made: Schedule, request: Request, weights: Collection[str] = ()) -> None:
        self.made, self.program, self.request, self.weights = made, made.program, request, weights
        self.nests: dict[int, LoopNest] = {i: loop_nest(s) for i, s in enumerate(made.steps) if isinstance(s, Nest)}
        self.memory = in_memory(made, self.nests)
        self.local = row_local(made, self.nests, self.memory)
        self.units: dict[str, A.SourceUnit] = {}
        self.functions = Functions()
        self.notes: list[str] = [str(r) for r in made.refusals]
        self.packs: dict[str, Pack] = {}  # by name of the packed weight
        self.kept_codes: dict[int, _Code] = {}  # by step: the code of the steps in `kept`
        self.cores: dict[int, dict[str, Core]] = {}  # by step, then by name of the contraction
        self.kernels: dict[int, Scheduled] = {}
        self.printed: list[tuple[Scheduled, Kernel]] = []  # the kernels of plain loops
        self.dtypes = {n: b.layout.dtype for n, b in self.program.buffers.items()}
        self.absorbed: dict[int, int] = {}  # nests that run on the blocks of a product -> its step
        self.kept = {i for i, s in enumerate(made.steps) if isinstance(s, Nest) and s.members[0].name in made.fixed}
        self.made_at = {m.name: i for i, s in enumerate(made.steps) for m in self.made.steps[i].members if i not in self.kept}
        self.places: dict[str, Place] = {}
        self.taken: dict[str, str] = {}  # targets of scatters -> the buffer that takes over their memory
        self.sizes = Sizes([s for s, _ in self.program.symbols])
        self.results = _extern_results(self.program)
        self.given = {n: ("input", i) for i, n in enumerate(self.program.inputs)}
        self.given |= {n: ("constant", i) for i, (n, _) in enumerate(self.program.constants)}

    # ---- the plan ----

    def build(self) -> A.Compiled:
        buffers = self.program.buffers
        inputs = tuple(_spec(buffers[n].layout) if n in buffers else A.IntInput() for n in self.program.inputs)
        constants = tuple(A.Constant(key, _spec(self.program.buffers[n].layout)) for n, key in self.program.constants)
        returned = _returned(self.program)
        allocations = tuple(A.Allocation(at_least(buffers[n].layout.nbytes, 1)) for n in returned)
        plan = A.ArtifactPlan(inputs, (), allocations, constants)
        self._schedule_kept()
        self._schedule_products()
        plan = replace(plan, packs=tuple(A.Pack(f"pack_{k}", packs.entries(self.program, p.sources, plan), p.nbytes)
                                         for k, p in enumerate(self.packs.values())))  # fmt: skip
        for i, n in enumerate(self.program.inputs):
            if n in buffers:
                self._put(n, plan.input_buffer(i), 0)
        for i, n in enumerate(returned):
            self._put(n, plan.output_buffer(i), 0)
        for i, (n, _) in enumerate(self.program.constants):
            self._put(n, plan.constant_buffer(i), 0)
        for k, (n, p) in enumerate(self.packs.items()):
            if p.weight:
                self.places[n] = Place(plan.packed_buffer(k), 0, self.program.buffers[p.weight].layout.dtype)
            for name, offset in self._offsets(p.step).items() if not p.weight else ():
                self._put(name, plan.packed_buffer(k), offset)
        self._schedule(self._write_in_place())
        arena = self._arena(plan)
        steps, text = self._steps()
        positions = {n: i for i, n in enumerate(returned)}
        outputs = tuple(self._output(r, positions) for r in self.program.outputs)
        written = tuple(self.program.inputs.index(w.input) for w in self.program.writes)
        symbols = tuple(A.Symbol(s, source.kind, source.input, source.dim) for s, source in self.program.symbols)
        plan = A.ArtifactPlan(inputs, outputs, allocations, constants, plan.packs, arena, steps, written,
                              checks=tuple(A.Check(*c) for c in self.program.checks), symbols=symbols)  # fmt: skip
        plan = replace(plan, derived=self.sizes.derived(plan))
        units = self._source_units(text, plan)
        return A.Compiled(plan, (*units, *self.units.values()), tuple(self.notes))

    def _put(self, name: str, entry: int, offset: Size) -> None:
        number = -1 if isinstance(offset, int) else self.sizes.number(offset)
        self.places[name] = Place(entry, offset, self.program.buffers[name].layout.dtype, number)

    def _schedule(self, homes: Mapping[str, str]) -> None:
        """Schedule every kernel. A result that the kernel could not make local needs memory.

        homes: the input in whose memory a result is computed, by name of the result.
        """
        for i, step in enumerate(self.made.steps):
            if isinstance(step, Nest) and i not in self.absorbed and i not in self.kept:
                self._schedule_nest(i, step, homes)
            elif isinstance(step, Single) and isinstance(step.member.definition, ir.Attention):
                self.kernels[i] = attention_kernel(step.members, self.dtypes, self.request.tools.simd_bits // 8)

    def _schedule_nest(self, i: int, step: Nest, homes: Mapping[str, str]) -> None:
        stored = [m.name for m in step.members if m.name in self.memory and m.name not in self.local[i]]
        made = self.kernels[i] = nest_kernel(step, self.dtypes, stored, homes, self.request.choose)
        self.memory |= made.temporary
        self.local[i] = {n: size for n, size in self.local[i].items() if n not in made.temporary}

    def _write_in_place(self) -> dict[str, str]:
        """Place results in the memory of the inputs that they overwrite, where the order of the loops allows it; these results."""
        if not self.program.writes:
            return {}
        own = {i: nest for i, nest in self.nests.items() if i not in self.absorbed and i not in self.kept}
        homes, objections = in_place(self.made, own, {*self.places, *self.taken, *self.taken.values()})
        for name, given in homes.items():
            self.places[name] = self.places[given]
        for o in objections:
            self.notes.append(str(o))
            FUSION.log(str(o))
        return homes

    def _arena(self, plan: A.ArtifactPlan) -> Size:
        sizes: dict[str, Size] = {}
        uses: list[set[str]] = []
        for i, step in enumerate(self.made.steps):
            uses.append(self._touched(i, step))
        for nest in self.absorbed:
            uses[nest] = set()
        uses.append({w.value.buffer for w in self.program.writes})
        self._reuse_scatter_targets()
        uses = [{self._holder(n) for n in names} for names in uses]
        for names in uses:
            for n in names:
                if n in self.memory and n not in self.places:
                    sizes[n] = self.program.buffers[n].layout.nbytes
        offsets, total = plan_arena(lifetimes(sizes, uses)) if sizes else ({}, 0)
        head = CHECK_BYTES if self.program.checks else 0
        for n, offset in offsets.items():
            self._put(n, plan.arena_buffer, plain(head + offset))
        for n in self.taken:
            holder = self.places[self._holder(n)]
            self._put(n, holder.entry, holder.offset_bytes)
        return plain(head + total)

    def _reuse_scatter_targets(self) -> None:
        """A scatter works in the memory of its target if no other step reads the target later."""
        readers = Counter(n for b in self.program.buffers.values() for n in b.reads)
        loaded = {v.buffer for s in self.made.steps if isinstance(s, Single) and s.member.definition is not None
                  for v in s.member.definition.loads}  # fmt: skip
        for step in self.made.steps:
            if not isinstance(step, Single):
                continue
            d = step.member.definition
            if isinstance(d, ir.Scatter) and readers[d.target] == 1 and d.target not in self.places and d.target not in loaded:
                self.taken[d.target] = step.member.name

    def _holder(self, name: str) -> str:
        """The buffer whose memory `name` is in."""
        while name in self.taken:
            name = self.taken[name]
        return name

    def _touched(self, i: int, step: Step) -> set[str]:
        if i in self.kernels and isinstance(step, Single):
            return self.kernels[i].touched
        if isinstance(step, Single):
            return {step.member.name, *step.member.reads, *self._results(step.member.definition)}
        names = {m.buffer.name for b in self.nests[i].bundles for m in b.members}
        for b in self.nests[i].bundles:
            for m in b.members:
                names |= {v.buffer for v in m.value.loads}
        return names - {n for n, size in self.local[i].items() if isinstance(size, int)}

    def _results(self, d: Any) -> list[str]:
        """Every buffer that an extern call or a recurrence writes; results without readers need memory too."""
        if not isinstance(d, ir.Extern):
            return list(d.results) if isinstance(d, ir.Recurrence) else []
        return [b.name for b in self.results[d.call].values()]

    def _output(self, r: Any, returned: Mapping[str, int]) -> A.Output:
        if isinstance(r, E.Expr):
            return A.IntOutput(r)
        if not isinstance(r, ir.Ref):
            return A.Literal(r)
        spec = _spec(r.layout)
        kind, index = self.given.get(r.buffer, ("", 0))
        if not kind:
            return A.NewOutput(returned[r.buffer], spec, r.offset)
        if r.offset == 0 and r.layout == self.program.buffers[r.buffer].layout:
            return A.InputAlias(index) if kind == "input" else A.ConstantAlias(index)
        return A.ViewOf(kind, index, spec, r.offset)

    # ---- contractions: which core, what runs on its blocks, and which weights are kept packed ----

    def _schedule_kept(self) -> None:
        """The steps that compute values of weights alone, each a pack of the plan. They run before all others."""
        for i in sorted(self.kept):
            step = self.made.steps[i]
            assert isinstance(step, Nest)
            self._schedule_nest(i, step, {})
            sources = frozenset().union(*(self.made.fixed[m.name] for m in step.members))
            last = [(offset, self.program.buffers[n].layout.nbytes) for n, offset in self._offsets(i).items()][-1]
            self.packs[f"step {i}"] = Pack(sources, fixed((plain(last[0] + last[1]),), "a pack")[0], i)

    def _offsets(self, i: int) -> dict[str, int]:
        """The place of each result of a step in its pack."""
        found, at = {}, 0
        for m in self.made.steps[i].members:
            if m.name in self.memory and m.name not in self.local[i]:
                found[m.name] = at
                at += -(-fixed((m.layout.nbytes,), "a pack")[0] // 64) * 64
        return found

    def _schedule_products(self) -> None:
        """Runs before memory is placed, since packed weights need buffers."""
        calls: set[str] = set()
        for i, step in enumerate(self.made.steps):
            d = step.member.definition if isinstance(step, Single) else None
            if isinstance(step, Single) and isinstance(d, ir.Contraction):
                self._schedule_product(i, self._with_producer(i, step.member), self._follower(i, step.member))
            elif isinstance(d, ir.Recurrence) and d.call not in calls:
                calls.add(d.call)
                results = [self.program.buffers[n] for n in d.results]
                self._choose_cores(i, recurrence_kernel(d, results, self.dtypes))

    def _with_producer(self, i: int, b: ir.Buffer) -> ir.Buffer:
        """The product with a prologue for its operand, if a nest computes this operand alone and a core takes the prologue."""
        nest = producer_of(self.made, i, {*self.absorbed, *self.kept})
        if nest < 0:
            return b
        (source,) = self.made.steps[nest].members
        found = computing(b, source)
        made = product_kernel(found, (), self.dtypes, (b.name,))
        s = made.kernel.body[0] if isinstance(made, Scheduled) else None
        if not isinstance(made, Scheduled) or not isinstance(s, loops.Contract) or self._core(i, s, made, is_followed=False) is None:
            self._refuse(source.name, [b], "the product has too few rows, or so many columns that a stored operand costs little")
            return b
        self.absorbed[nest] = i
        self.memory.discard(source.name)
        return found

    def _schedule_product(self, i: int, b: ir.Buffer, follower: int) -> None:
        made = product_kernel(b, (), self.dtypes, (b.name,))
        assert not isinstance(made, LoopRefusal)
        (s,) = made.kernel.body
        assert isinstance(s, loops.Contract)
        core = self._core(i, s, made, is_followed=True) if follower >= 0 else None
        if core is not None and core.is_followed:
            after = self.made.steps[follower]
            assert isinstance(after, Nest)
            stored = self.memory - {b.name} if _is_read_by(self.program, b.name, after) else self.memory
            found = product_kernel(b, after.members, self.dtypes, [m.name for m in (b, *after.members) if m.name in stored])
            if isinstance(found, LoopRefusal):
                self._refuse(b.name, after.members, found.reason)
            else:
                made, self.absorbed[follower] = found, i
        self._choose_cores(i, made)

    def _choose_cores(self, i: int, made: Scheduled) -> None:
        """Choose the core of each contraction of a step. A contraction that no core takes becomes plain loops."""
        cores: dict[str, Core] = {}
        near: set[str] = set()
        for s in loops.walk(made.kernel.body):
            if isinstance(s, loops.Contract):
                core = self._core(i, s, made, is_followed=bool(s.body))
                if core is None:
                    made = expanded_kernel(made, s.name)
                else:
                    core = core._replace(is_near=is_near(made.kernel, s, core))
                    cores[s.name] = self._packed(i, s, made, core)
                    near |= {made.names[s.place.name]} if core.is_near else set()
        self.kernels[i] = made
        self.memory = (self.memory | made.temporary) - near
        if cores:
            self.cores[i] = cores

    def _core(self, i: int, s: loops.Contract, made: Scheduled, is_followed: bool) -> Core | None:
        """The core for a contraction of a step. BLAS is excluded if the contraction has a body."""
        can_pack, of = self._can_pack(i, s, made), made.kernel.dtypes[s.place.name]
        core = choose_core(s, of, is_followed, can_pack, self.request.tools, self.request.has_blas)
        if core is not None and core.code is None and s.body:
            return choose_core(s, of, True, can_pack, self.request.tools, False)
        return core

    def _packed(self, i: int, s: loops.Contract, made: Scheduled, core: Core) -> Core:
        """The core with a buffer for its weight in panels, if it packs one. Equal weights have one buffer."""
        if core.code is None or core.code.pack is None:
            return core
        assert isinstance(s.b, ir.Load)
        weight = made.names[s.b.buffer]
        namespace = self.functions.add("weight", core.code.pack, weight)
        name, sources = f"{weight} {namespace}", self.made.fixed.get(weight, frozenset((weight,)))
        self.packs.setdefault(name, Pack(sources, core.code.packed_bytes, i, weight, namespace))
        return core._replace(packed=name)

    def _follower(self, i: int, product: ir.Buffer) -> int:
        """The first nest that reads the product, if all its other inputs exist by then; else -1."""
        for j in range(i + 1, len(self.made.steps)):
            step = self.made.steps[j]
            if isinstance(step, Single) or product.name not in {n for m in step.members for n in m.reads}:
                continue
            mine = {m.name for m in step.members}
            late = [n for m in step.members for n in m.reads if n not in mine and self.made_at.get(n, -1) > i]
            if not late:
                return j
            self._refuse(product.name, step.members, f"{late[0]} is computed after the product")
            break
        return -1

    def _refuse(self, first: str, second: Sequence[ir.Buffer], reason: str) -> None:
        refusal = Refusal(first, ", ".join(m.name for m in second), reason)
        self.notes.append(str(refusal))
        FUSION.log(str(refusal))

    def _can_pack(self, i: int, s: loops.Contract, made: Scheduled) -> bool:
        """Whether operand b is a value of weights alone, which panels can hold between calls."""
        step = self.made.steps[i]
        is_repeated = isinstance(step, Single) and isinstance(step.member.definition, ir.Recurrence)
        if not isinstance(s.b, ir.Load) or (self.request.packing == "repeated" and not is_repeated):
            return False
        weight = made.names[s.b.buffer]
        layout = self.program.buffers[weight].layout
        return (weight in self.weights or weight in self.made.fixed) and not is_symbolic(*layout.shape, *layout.strides)

    # ---- steps ----

    def _steps(self) -> tuple[tuple[A.Step, ...], list[_Code]]:
        codes: list[_Code] = []
        calls: set[str] = set()
        last_check = max([self.made_at[n] for n in self.program.early_checks], default=-1)
        for i, step in enumerate(self.made.steps):
            if i == last_check + 1 and last_check >= 0:
                codes.append(_Code([f"if (FJ_CHECKS[0]) {{ {_FAIL} return; }} /* nothing is written to then */"]))
            if isinstance(step, Nest):
                if i in self.kept:
                    self.kept_codes[i] = self._nest(i)
                elif i not in self.absorbed:
                    codes.append(self._nest(i))
                continue
            d = step.member.definition
            if isinstance(d, ir.Extern):
                if d.call not in calls:
                    calls.add(d.call)
                    codes.append(self._extern(d))
                continue
            codes.append(self._single(i, step.member))
        if self.program.checks and self.program.writes:
            codes.append(_Code([f"if (FJ_CHECKS[0]) {{ {_FAIL} return; }} /* nothing is written to then */"]))
        codes += [self._write(w) for w in self.program.writes if self.places[w.value.buffer] != self.places[w.input]]
        return _segments(codes)

    def _nest(self, i: int) -> _Code:
        step = self.made.steps[i]
        assert isinstance(step, Nest)
        return self._loops("k", self.kernels[i], step.members)

    def _loops(self, prefix: str, made: Scheduled, computed: Sequence[ir.Buffer]) -> _Code:
        """The code of a scheduled kernel that computes these buffers."""
        if not made.kernel.body:
            return _Code()
        self._log_loops(made)
        for of in {s.a.dtype.name for s in loops.walk(made.kernel.body) if isinstance(s, loops.Contract)}:
            unit = block_core(block_tile(of, self.request.tools))
            self.units.setdefault(unit.name, unit)
        printed = print_kernel(made.kernel, self._places_of(made), made.choice.parallel_ns, ir.titles(computed))
        self.printed.append((made, printed))
        code = printed.code._replace(vector_bits=made.choice.vector_bits)
        return self._call(printed, self.functions.add(prefix, code, printed.title))

    def _log_loops(self, made: Scheduled) -> None:
        if SCHEDULE.enabled:
            SCHEDULE.log(f"{made.legend}: {to_text(made.steps)}")
        if LOOPS.enabled:
            LOOPS.log(f"{made.legend}:\n{made.kernel}")

    def _places_of(self, made: Scheduled) -> dict[str, Place]:
        """The places of a kernel's buffers, by their names in the kernel."""
        return {name: self.places[buffer] for name, buffer in made.names.items() if buffer in self.places}

    def _call(self, k: Kernel, namespace: str) -> _Code:
        """The statement that runs a printed kernel, which is in `namespace`."""
        return _Code([f"/* {comment(k.title)} */\n  {k.run(namespace)}"], cost_ns=k.cost_ns, symbolic_ps=k.symbolic_ps)

    def _single(self, i: int, b: ir.Buffer) -> _Code:
        d = b.definition
        if isinstance(d, ir.Contraction | ir.Recurrence):
            return self._product(i, b)
        if isinstance(d, ir.Attention):
            return self._loops("attention", self.kernels[i], self.made.steps[i].members)
        if isinstance(d, ir.Scan):
            return self._scan(b)
        assert isinstance(d, ir.Scatter)
        return self._scatter(b, d)

    def _extern(self, d: ir.Extern) -> _Code:
        results = self.results[d.call]
        views = tuple(self._view(results[i].ref()) if i in results else None for i in range(d.count))
        nodes = results[min(results)].source.nodes
        call = A.ExternCall(d.op, self._extern_args(d.args), views, nodes[0] if nodes else -1)
        return _Code(extern=call)

    def _extern_args(self, args: Any) -> Any:
        if isinstance(args, ir.Ref):
            return self._view(args)
        if isinstance(args, tuple | list):
            return tuple(self._extern_args(a) for a in args)
        if isinstance(args, dtype):
            return A.DtypeArg(args.name)
        return A.DeviceArg(str(args)) if type(args).__name__ == "device" else args

    def _view(self, r: ir.Ref) -> A.BufferView:
        p = self.places[r.buffer]
        return A.BufferView(p.entry, plain(p.offset_bytes + r.offset * r.layout.dtype.itemsize), _spec(r.layout))

    def _pointer(self, name: str, offset: Size = 0) -> str:
        p = self.places[name]
        inside = plain(offset * p.dtype.itemsize)
        if isinstance(p.offset_bytes, int) and isinstance(inside, int):
            return f"(bufs[{p.entry}] + {p.offset_bytes + inside})"
        return f"(bufs[{p.entry}] + {p.offset} + {size_source(inside)})"

    def _product(self, i: int, b: ir.Buffer) -> _Code:
        if i not in self.kernels:  # another result of a recurrence, which is one step
            return _Code()
        made = self.kernels[i]
        members = [*(m for j in sorted([i, *(j for j, at in self.absorbed.items() if at == i)]) for m in self.made.steps[j].members)]
        cores = self.cores.get(i)
        if cores is None:
            return self._loops("k", made, members)
        self._log_loops(made)
        places = self._places_of(made)
        for name, core in cores.items():
            if core.packed:
                places[core.packed] = self.places[core.packed]
            if core.code is not None:
                self.units.setdefault(core.code.unit.name, core.code.unit)
                self.notes.append(f"{made.names.get(name, b.name)}: {core.code.note}")
        printed = print_steps(made.kernel, cores, places, DEFAULT.parallel_ns, ir.titles(members))
        return self._call(printed, self.functions.add("gemm", printed.code, printed.title) if printed.code.text else "")

    # ---- scans, scatters, writes ----

    def _scan(self, b: ir.Buffer) -> _Code:
        return self._loops("scan", scan_kernel(b, self.dtypes, self.request.threads, self.request.choose), [b])

    def _scatter(self, b: ir.Buffer, d: ir.Scatter) -> _Code:
        """Loops in order, since the last write must win. They are preceded by a copy of the target, if it is read later."""
        code = self._loops("scatter", scatter_kernel(b, self.dtypes, self.request.choose), [b])
        if d.target in self.taken or self.places[d.target] == self.places[b.name]:
            return code
        copied, symbolic = _cost(b.layout.nbytes, 0.125)
        copy = f"__builtin_memcpy({self._pointer(b.name)}, {self._pointer(d.target)}, {size_source(b.layout.nbytes)});"
        return replace(code, statements=[copy, *code.statements], cost_ns=code.cost_ns + copied,
                       symbolic_ps=plain(code.symbolic_ps + symbolic))  # fmt: skip

    def _write(self, w: ir.Write) -> _Code:
        target = self.program.buffers[w.input]
        return self._loops("write", copy_kernel(target, w.value, self.request.choose), [target])

    # ---- source units ----

    def _pack_text(self, k: int, p: Pack, target: int) -> str:
        source = self._pointer(p.weight) if p.weight else ""
        return packs.function_of(p, f"pack_{k}", target, source, () if p.weight else self.kept_codes[p.step].statements)

    def _source_units(self, codes: list[_Code], plan: A.ArtifactPlan) -> list[A.SourceUnit]:
        if not (any(c.statements for c in codes) or plan.derived or plan.packs):
            return []
        vector_functions = self.request.tools.vector_functions
        head = prelude(vector_functions)
        functions = [*self.functions.codes]
        checked = bool(self.program.checks)
        if checked:
            head += f"#define FJ_CHECKS ((i64*)bufs[{plan.arena_buffer}]) /* 1 + the check that failed, and the value */\n"
        if plan.symbols:
            head += f"#define {SIZES_IN}(b) ((const i64*)(b)[{plan.sizes_buffer}]) /* of symbols, then of expressions */\n"
            head += f"#define {SIZES} {SIZES_IN}(bufs)\n"
            functions.append(Code(self.sizes.function(plan.derived)))
        kept = [self._pack_text(k, p, plan.packed_buffer(k)) for k, p in enumerate(self.packs.values())]
        calls = "".join(kept) + codes_segments(codes, checked, [s for s, _ in self.program.symbols])
        return spread(head, functions, calls, compile_workers(), lambda called: forms_used(called, vector_functions))


def _returned(program: ir.Program) -> list[str]:
    """Buffers created by the graph that outputs refer to, without repeats."""
    given = {*program.inputs, *(n for n, _ in program.constants)}
    return [n for n in dict.fromkeys(r.buffer for r in program.outputs if isinstance(r, ir.Ref)) if n not in given]


def _is_read_by(program: ir.Program, product: str, nest: Nest) -> bool:
    """Whether nothing but `nest` reads the product."""
    readers = {b.name for b in program.buffers.values() if product in b.reads}
    leaves = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    return readers <= nest.produced and product not in leaves


def _extern_results(program: ir.Program) -> dict[str, dict[int, ir.Buffer]]:
    """The buffers that an extern call writes, by number of the output."""
    found: dict[str, dict[int, ir.Buffer]] = {}
    for b in program.buffers.values():
        if isinstance(b.definition, ir.Extern):
            found.setdefault(b.definition.call, {})[b.definition.output] = b
    return found


def codes_segments(codes: Sequence[_Code], checked: bool, symbols: Sequence[E.Sym]) -> str:
    """The `extern "C"` functions: one per run of native steps between extern calls."""
    before = "".join(f"  [[maybe_unused]] {line}\n" for line in declared(symbols)) + ("  FJ_CHECKS[0] = 0;\n" if checked else "")
    after = f"  if (FJ_CHECKS[0]) {_FAIL}\n" if checked else ""
    text, number, run = "", 0, []
    for c in [*codes, _Code(extern=A.ExternCall("", (), ()))]:
        if c.extern is None:
            run += c.statements
            continue
        if run:
            body = before + "".join(f"  {s}\n" for s in run) + after
            text += f'extern "C" __attribute__((visibility("default"))) void seg_{number}(char** bufs, const Runtime* rt) {{\n{body}}}\n'
            number, run = number + 1, []
    return text


def _segments(codes: list[_Code]) -> tuple[tuple[A.Step, ...], list[_Code]]:
    steps: list[A.Step] = []
    number, cost, pending = 0, 0.0, False
    symbolic: Size = 0
    for c in [*codes, _Code(extern=A.ExternCall("", (), ()))]:
        if c.extern is None:
            cost += c.cost_ns
            symbolic = plain(symbolic + c.symbolic_ps)
            pending = pending or bool(c.statements)
            continue
        if pending:
            steps.append(A.NativeSegment(f"seg_{number}", plain(symbolic // 1000 + int(cost))))
            number, cost, symbolic, pending = number + 1, 0.0, 0, False
        if c.extern.op:
            steps.append(c.extern)
    return tuple(steps), codes


def _cost(count: Size, each_ns: float) -> tuple[float, Size]:
    """(nanoseconds, picoseconds) of `count` times `each_ns`: nanoseconds if the count is fixed, else picoseconds."""
    return (count * each_ns, 0) if isinstance(count, int) else (0.0, plain(count * max(int(each_ns * 1000), 1)))


def _spec(layout: ir.Layout) -> A.Spec:
    return A.Spec(layout.shape, layout.strides, layout.dtype.name)
