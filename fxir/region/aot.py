"""From a captured graph to a callable: trace, functionalise, differentiate, partition, compile, wrap.

A backend that compiles only functional graphs calls `aot_compile` and passes `compile_graph(graph, kind, options)`. That
function receives a functional graph (see `fxir.ir.verifier`, functional=True; each output of an inference or forward graph is
in separate memory and is not an input) and returns a callable from real tensors to a tuple of results, which ignores autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from eager import _native
from eager._tensor.tensor import Tensor
from eager.autograd.function import TWICE
from eager.base import settings, thread_state
from eager.base.logs import artifact, component, current_frame
from eager.base.records import dataclass
from eager.base.spec import TensorSpec, fake, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.optable.declaration import zeros
from eager.optable.table import OPS
from eager.tape import engine
from eager.tape.inplace import note_base
from eager.tape.node import RELEASED, attach, history_of
from eager.tape.state import saved_hooks_off
from fxir.autodiff.drop_tangents import drop_absent_tangents
from fxir.autodiff.joint import Joint, add_gradients, effects
from fxir.autodiff.partition import Partition, ancestors, partition
from fxir.autodiff.reachability import Reach, reach
from fxir.base.compilation import compiling
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph, GraphSignature, spec
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node
from fxir.ir.passes import OPTIONAL, run_optional, run_passes
from fxir.ir.verifier import verify
from fxir.region import repro
from fxir.region.double_backward import UNABLE, SecondOrder, Shape
from fxir.region.interior_gradients import Rerun, plan_rerun
from fxir.region.runtime import (
    Backward,
    FloatInput,
    GradientPlaces,
    GraphInput,
    InputBase,
    Region,
    Write,
    places,
    wrap,
)
from fxir.symbols.shapes import NeedsStatic, environment_of, plain, simplified
from fxir.trace.output_aliasing import Computed, Literal, Output, is_leaf_made_inside, plan_outputs, settled
from fxir.trace.trace import (
    DEFAULT,
    CapturedTensorError,
    Decompositions,
    OutputBuilder,
    TraceMode,
    fakes_like,
    run_traced,
    settle_symbols,
)

_GRAPHS = artifact("aot_graphs")
_JOINT = artifact("aot_joint_graph")
_AOT = component("aot")
_MAX_PLACES = 16

CompileGraph: TypeAlias = Callable[[Graph, GraphKind, CompileOptions], Callable[..., Any]]


def aot_compile(
    gm: GraphModule,
    inputs: Sequence[Tensor],
    compile_graph: CompileGraph,
    options: CompileOptions | None = None,
    decompositions: Decompositions = DEFAULT,
    passes: Sequence[str] = (),
) -> Callable[..., Any]:
    """Compile `gm` for real tensors like `inputs` (fakes; is_leaf, requires_grad and shared storages are significant).

    The callable takes one tensor per placeholder and returns the outputs of `gm` as a tuple (as a bare value, if gm's output is
    a single value). It is valid for the grad mode in which it was compiled. The forward is compiled now, the backward at its
    first call. passes: names of the optional passes (`fxir.ir.passes.OPTIONAL`) that the backend requests.
    Raises: errors of running `gm` (shape errors are eager's own); errors of compile_graph; NotImplementedError for aliasing
    that it cannot express.
    """
    return _compile_traced(
        lambda fakes: _trace(gm, fakes, decompositions, passes), gm, list(inputs), compile_graph, options or CompileOptions()
    )


def _compile_traced(
    trace: Trace, plain: Callable[..., Any], inputs: list[Any], compile_graph: CompileGraph, options: CompileOptions
) -> Callable[..., Any]:
    """The program that `trace` traces, compiled for fakes like `inputs`. plain: the same program, uncompiled."""
    grad_mode, autocast = _native.grad_enabled(), thread_state.autocast_number()
    try:
        program = trace(inputs)
    finally:  # a program may end in other modes than it begins in; the caller's modes must not change
        _native.set_grad_enabled(grad_mode)
        if thread_state.autocast_number() != autocast:
            thread_state.switch_autocast(autocast)
    program.examples = inputs
    symbolic = program.mode.graph.shapes is not None
    program.again = _OtherPlacements(plain, lambda fakes: _compile_traced(trace, plain, fakes, compile_graph, options), symbolic)
    if not program.differentiable:
        return _compile_inference(program, compile_graph, options)
    return _compile_training(program, compile_graph, options, _second_order(trace, compile_graph, options))


@dataclass(slots=True)
class _OtherPlacements:
    """The same program for arguments with another sharing of memory: compiled once per placement, for the first few placements."""

    plain: Callable[..., Any]
    compile: Callable[[list[Tensor]], Callable[..., Any]]
    symbolic: bool
    variants: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def __call__(self, *args: Any) -> Any:
        tensors = [t for t in args if isinstance(t, Tensor)]
        key: Any = places(tensors)
        if self.symbolic:  # these variants are compiled for static sizes
            key = key, tuple((t.shape, t.stride()) if isinstance(t, Tensor) else t for t in args)
        found = self.variants.get(key)
        if found is None:
            if len(self.variants) >= _MAX_PLACES:
                return self.plain(*args)
            try:
                found = self.compile(fakes_like(args))
            except Exception as e:
                if not settings.current().capture.suppress_errors:
                    raise
                # No caller can fall back to eager here, so a warning is logged and gm runs.
                _AOT.warning(f"a call whose inputs share memory differently runs uncompiled: {type(e).__name__}: {e}")
                found = self.plain
            self.variants[key] = found
        return found(*args)


@dataclass(slots=True)
class _Inputs:
    """The inputs of one trace.

    args: the arguments of gm, lifted tensors last. graph_inputs, traced, leaves: per placeholder of the graph, the source of
    its value, the fake that owns its memory, and the tensor that gradients are taken with respect to (the last two for tensors
    only: placeholders of symbolic ints follow the tensors). parameters: placeholders that are parameters or buffers of modules.
    """

    args: list[Tensor] = field(default_factory=list)
    graph_inputs: list[GraphInput] = field(default_factory=list)
    traced: list[Tensor] = field(default_factory=list)
    leaves: list[Tensor] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Program:
    """A traced program. computed: the fakes that its graph computes, in order, after the new values of inputs. passes: optional ones."""

    mode: TraceMode
    inputs: _Inputs
    bound: list[Tensor]
    outputs: list[Output]
    computed: list[Tensor]
    single: bool
    writes: list[Write]
    built: OutputBuilder
    passes: Sequence[str] = ()
    refused: dict[int, str] = field(default_factory=dict)
    examples: list[Tensor] = field(default_factory=list)
    again: Callable[..., Any] | None = None

    def placed(self) -> tuple[int, ...]:
        """Arguments whose placement in memory the program relies on."""
        n = len(self.inputs.args) - len(self.bound)
        args = self.inputs.args[:n]
        return tuple(i for i, t in enumerate(args) if isinstance(t, Tensor) and self.mode.memory.is_placed(t))

    def results(self) -> list[Tensor | None]:
        """The fake of each graph output; None for a new value that is written under no_grad."""
        written = [self.inputs.traced[w.graph_input] if w.recorded else None for w in self.writes]
        return [*written, *self.computed]

    @property
    def differentiable(self) -> list[int]:
        """Positions of graph outputs that require a gradient and may receive one."""
        requiring_grad = [k for k, t in enumerate(self.results()) if t is not None and t._requires_grad and not is_leaf_made_inside(t)]
        return [k for k in requiring_grad if k not in self.refused]

    def requiring_grad(self) -> list[int]:
        """Graph inputs that require a gradient."""
        return [i for i, leaf in enumerate(self.inputs.leaves) if leaf._requires_grad]

    def reach(self) -> Reach:
        """The dependences among outputs and inputs that require gradients."""
        results = self.results()
        outputs = [t for k in self.differentiable if (t := results[k]) is not None]
        return reach(outputs, [self.inputs.leaves[i] for i in self.requiring_grad()])

    @property
    def mutated_inputs(self) -> tuple[int, ...]:
        return tuple(w.graph_input for w in self.writes)

    def region(self, called: Graph, **more: Any) -> Region:
        """The description of the program for the runtime; `called` is the graph that the runtime calls."""
        shapes = self.mode.graph.shapes
        # A size in a float input may have become a constant since the input was made.
        floats = [FloatInput(simplified(e, shapes)) for e in self.mode.float_inputs] if shapes is not None else []
        return Region(
            n_args=len(self.inputs.args) - len(self.bound),
            bound=tuple(self.bound),
            graph_inputs=(*self.inputs.graph_inputs, *floats),
            float_arguments=dict(self.mode.float_arguments),
            outputs=tuple(self.outputs if shapes is None else (settled(o, shapes) for o in self.outputs)),
            symbols={} if shapes is None else called.input_symbols(),
            single=self.single,
            writes=tuple(self.writes),
            refused=tuple(self.refused.items()),
            placed=self.placed(),
            places=places([self.examples[i] for i in self.placed()]),
            again=self.again,
            **more,
        )


Trace: TypeAlias = Callable[[list[Any]], _Program]
Groups: TypeAlias = "dict[int, list[int]]"  # by storage: the inputs over it


# -- tracing -----------------------------------------------------------------------------------------------------
def _trace(gm: GraphModule, inputs: list[Tensor], decompositions: Decompositions, passes: Sequence[str] = ()) -> _Program:
    """Trace in the simplest form first: tensors from outside as constants, memory shared by inputs ignored."""
    lifted: list[str] = []
    merged: Groups = {}
    while True:
        try:
            program = _trace_once(gm, inputs, decompositions, lifted, merged)
        except CapturedTensorError as e:
            key = next((k for k, v in gm.root.items() if v is e.tensor and k not in lifted), None)
            if key is None:
                raise
            lifted.append(key)
            continue
        written = _written_groups(program, inputs)
        if written.keys() <= merged.keys():
            program.passes = passes
            return program
        merged |= written


def _trace_once(
    gm: GraphModule, inputs: list[Tensor], decompositions: Decompositions, lifted: list[str], merged: Groups
) -> _Program:
    external = {k: v for k, v in gm.root.items() if isinstance(v, Tensor) and k not in lifted}
    mode = TraceMode(Graph(), decompositions, external, owns_constants=True)
    bound: list[Tensor] = [gm.root[k] for k in lifted]
    names = [p.name for p in gm.graph.placeholders] + lifted
    made = _make_inputs(mode, [*inputs, *bound], names, merged)
    held = [i for i, p in enumerate(gm.graph.placeholders) if p.info.held]
    made.parameters = [k for k, at in enumerate(made.graph_inputs) if at in held or k in made.parameters]
    history = [history_of(t) if t._requires_grad else None for t in made.traced]
    grad_mode, autocast = _native.grad_enabled(), thread_state.autocast_number()
    try:
        result = run_traced(_with_inputs(gm, lifted), made.args, mode)
    finally:  # a no_grad or autocast block at the program's end may be left open, so the modes are restored here
        _native.set_grad_enabled(grad_mode)
        if thread_state.autocast_number() != autocast:
            thread_state.switch_autocast(autocast)
    single = not isinstance(result, tuple | list)
    outputs, computed = plan_outputs([result] if single else list(result), made.args, mode)
    written = [i for i, t in enumerate(made.traced) if mode.memory.writes(t)]
    writes = [Write(k, i, history_of(made.traced[i]) is not history[i]) for k, i in enumerate(written)]
    built = OutputBuilder(mode.graph)
    for w in writes:
        built.add(mode.value(made.traced[w.graph_input]))
    for t in computed:
        built.add(mode.value(t), tuple(t.stride()))
    return _refuse_freed(_Program(mode, made, bound, outputs, computed, single, writes, built))


def _refuse_freed(program: _Program) -> _Program:
    """Record the results whose graph the program has freed, or whose gradient may not be differentiated."""
    outputs = program.differentiable
    if not outputs:
        return program
    known = program.reach()
    for mask, text in ((known.twice, TWICE), (known.released, RELEASED)):
        program.refused.update((k, text) for i, k in enumerate(outputs) if mask >> i & 1)
    return program


def _with_inputs(gm: GraphModule, lifted: list[str]) -> GraphModule:
    """`gm` with the carried tensors of these names read from new inputs, which follow its own inputs."""
    if not lifted:
        return gm
    graph = gm.graph.copy()
    for key in lifted:
        last = graph.placeholders[-1:] or [graph._sentinel]
        with graph.inserting_after(last[0]):
            new = graph.placeholder(key)
        for node in graph.find("get_attr", key):
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    return GraphModule(graph.root, graph, gm.name)


def _make_inputs(mode: TraceMode, inputs: list[Tensor], names: list[str], merged: Groups) -> _Inputs:
    """New fakes like `inputs`, defined in the trace's memory. One object given twice is one input."""
    made = _Inputs()
    bases: dict[int, tuple[Tensor, int]] = {}
    first: dict[int, Tensor] = {}
    for i, t in enumerate(inputs):
        if not isinstance(t, Tensor):
            made.args.append(t)
            continue
        if id(t) in first:
            made.args.append(first[id(t)])
            continue
        group = merged.get(id(t.untyped_storage().root))
        if group is None:
            arg = _plain_input(mode, made, t, i, names[i])
        else:
            key = id(t.untyped_storage().root)
            if key not in bases:
                bases[key] = _base_input(mode, made, group, inputs, names[i])
            arg = _member(mode, t, *bases[key])
        first[id(t)] = arg
        made.args.append(arg)
    for i, t in enumerate(inputs):
        if isinstance(t, SymInt):
            mode.add_symbol(t)
            made.graph_inputs.append(i)
        elif isinstance(t, SymFloat):
            mode.add_float(t, i)
    return made


def _plain_input(mode: TraceMode, made: _Inputs, t: Tensor, i: int, name: str) -> Tensor:
    leaf: Tensor = fake(spec_of(t), t.requires_grad)
    arg = leaf
    if t.storage_offset():
        span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + t.storage_offset()
        flat = fake(TensorSpec.contiguous((max(span, 0),), t.dtype, t.device))
        arg = _native.alias(flat, tuple(t.shape), tuple(t.stride()), t.storage_offset())
        arg._requires_grad = t.requires_grad
        leaf = arg
    if t.requires_grad and not t.is_leaf:
        # A tensor with a history, so that writes to it are legal; its gradient is the gradient of `leaf`.
        leaf = fake(spec_of(t), True)
        arg._requires_grad = False
        attach([arg], [leaf], lambda gs: gs, "Input")
    if t._is_param:
        made.parameters.append(len(made.traced))
    mode.add_input(arg, name)
    made.graph_inputs.append(i)
    made.traced.append(arg)
    made.leaves.append(leaf)
    return arg


def _base_input(
    mode: TraceMode, made: _Inputs, group: list[int], inputs: list[Tensor], name: str
) -> tuple[Tensor, int]:
    """One flat input for all inputs that share a storage: (its fake, the offset of its first element in the storage)."""
    members = [inputs[i] for i in group]
    if any(t.requires_grad for t in members) or len({t.dtype for t in members}) > 1:
        raise NotImplementedError(
            "aot: inputs that share memory are written to, and they require grad or differ in dtype; "
            "clone() one of them, or run this function in eager"
        )
    low = min(t.storage_offset() for t in members)
    ends = [
        t.storage_offset() + 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) for t in members
    ]
    span = max(ends) - low
    if (shapes := environment_of((span, low))) is not None:
        raise NeedsStatic(shapes.symbols, "inputs that share memory are written to, and their sizes are symbolic")
    base: Tensor = fake(TensorSpec.contiguous((span,), members[0].dtype, members[0].device))
    mode.add_input(base, f"{name}_base")
    made.graph_inputs.append(InputBase(group[0], members[0].storage_offset() - low, span))
    made.traced.append(base)
    made.leaves.append(base)
    return base, low


def _member(mode: TraceMode, t: Tensor, base: Tensor, low: int) -> Tensor:
    op, args = OPS["as_strided"], (tuple(t.shape), tuple(t.stride()), t.storage_offset() - low)
    arg: Tensor = op.alias(base, *args)
    mode.memory.view(arg, base, op, args)
    return arg


def _repeats(t: Tensor) -> bool:
    """Whether elements of `t` may share a place in memory, as in expanded tensors and windows. Symbolic sizes count with their\nhints."""
    sizes, steps = tuple(t.shape), tuple(t.stride())
    if (shapes := environment_of((sizes, steps))) is not None:
        sizes, steps = (tuple(shapes.hint(plain(n)) for n in numbers) for numbers in (sizes, steps))
    reach = 0
    for step, n in sorted((step, n) for n, step in zip(sizes, steps, strict=True) if n != 1):
        if step <= reach:
            return True
        reach += (n - 1) * step
    return False


def _written_groups(program: _Program, inputs: list[Tensor]) -> Groups:
    """The shared storages that the program writes to."""
    places = [program.inputs.graph_inputs[i] for i in program.mutated_inputs]
    written = {at.index if isinstance(at, InputBase) else at for at in places}
    groups: dict[int, dict[int, int]] = {}
    for i, t in enumerate(inputs):
        if isinstance(t, Tensor) and t.numel():
            groups.setdefault(id(t.untyped_storage().root), {}).setdefault(id(t), i)
    touched = {k: [*g.values()] for k, g in groups.items() if not written.isdisjoint(g.values())}
    return {k: group for k, group in touched.items() if len(group) > 1 or _repeats(inputs[group[0]])}


# -- compiling ---------------------------------------------------------------------------------------------------
def _nothing(*_: Tensor) -> tuple[()]:
    return ()


def _compile(graph: Graph, kind: GraphKind, compile_graph: CompileGraph, options: CompileOptions) -> Callable[..., Any]:
    if settings.current().debug.verify:
        verify(graph, functional=True, specs=True)
    if _GRAPHS.enabled:
        _GRAPHS.log(f"{kind.value} graph\n{GraphModule(graph.root, graph).readable()}")
    if _AOT.enabled:
        calls = sum(n.op == "call_function" for n in graph.in_order())
        _AOT.log(f"{kind.value} graph: {calls} ops, {len(graph.placeholders)} inputs, {len(graph.outputs)} outputs")
    if not (graph.outputs or effects(graph)):
        return _nothing
    if not thread_state.autocast_number():
        return _with_repro(compile_graph, graph, kind, options)
    return _outside_autocast(_outside_autocast(_with_repro)(compile_graph, graph, kind, options))


def _with_repro(compile_graph: CompileGraph, graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
    if settings.current().debug.repro_after == "aot":
        return repro.after_aot(graph, kind, options, compile_graph)
    return compile_graph(graph, kind, options)


def _outside_autocast(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with autocast off: the graph contains the casts already, and a decomposition must not add them again."""

    def call(*args: Any) -> Any:
        before = thread_state.set_autocast(None)
        try:
            return fn(*args)
        finally:
            thread_state.set_autocast(before)

    return call


def _compile_backward(graph: Graph, compile_graph: CompileGraph, options: CompileOptions) -> Callable[..., Any]:
    """Compile a backward graph. Under suppress_errors a failure falls back to eager here, since no caller of `.backward()` can."""
    if not settings.current().capture.suppress_errors:
        return _compile(graph, GraphKind.BACKWARD, compile_graph, options)
    try:
        return _compile(graph, GraphKind.BACKWARD, compile_graph, options)
    except NeedsStatic:
        raise
    except Exception as e:  # noqa: BLE001 - any error of a backend; it is logged, and the ops run one by one
        _AOT.warning(f"the backward graph was not compiled and runs op by op: {type(e).__name__}: {e}")
        return interpret(graph, GraphKind.BACKWARD, options)


def _passes(graph: Graph, optional: Sequence[str]) -> None:
    settle_symbols(graph)
    run_passes(graph, check=settings.current().debug.verify)
    settle_symbols(graph)
    run_optional(graph, [OPTIONAL[name] for name in optional], check=settings.current().debug.verify)


def _compile_inference(program: _Program, compile_graph: CompileGraph, options: CompileOptions) -> Callable[..., Any]:
    graph = program.mode.graph
    graph.output(tuple(program.built.nodes))
    graph.signature = GraphSignature(
        program.mutated_inputs, len(program.computed), 0, tuple(program.inputs.parameters), may_write=True
    )
    _passes(graph, program.passes)
    run = _compile(graph, GraphKind.INFERENCE, compile_graph, options)
    return wrap(run, program.region(graph))


def _compile_training(
    program: _Program, compile_graph: CompileGraph, options: CompileOptions, second: SecondOrder
) -> Callable[..., Any]:
    joint, requiring_grad, known = _joint(program)
    cut = partition(joint)
    forward = _compile(cut.forward, GraphKind.FORWARD, compile_graph, options)
    backward = Backward(
        tuple(map(spec, joint.tangents)),
        _backward_compiler(cut, known, compile_graph, options),
        known.conflicts,
        second,
        cut.symbols,
        cut.states,
    )
    if known.feeding:
        backward.feeding = known.feeding
        backward.inside = _plan_rerun(program, requiring_grad, joint)
        backward.draws = bool(joint.forward_effects)
    if cut.backward.symbols:
        backward.run()  # compiled now, so that a failure on a symbol is raised while the capture can still make the symbol static
    region = program.region(
        cut.forward,
        differentiable=tuple(program.differentiable),
        requiring_grad=tuple(requiring_grad),
        saved=cut.saved,
        backward=backward,
        watched=_watched(program, joint, cut),
    )
    return wrap(forward, region)


def _plan_rerun(program: _Program, requiring_grad: list[int], joint: Joint) -> Rerun:
    plain = program.again.plain if isinstance(program.again, _OtherPlacements) else None
    n_args = len(program.inputs.args) - len(program.bound)

    def argument(graph_input: int) -> int | None:
        at = program.inputs.graph_inputs[graph_input]
        return at if isinstance(at, int) and at < n_args else None

    written = [None if w.recorded else argument(w.graph_input) for w in program.writes]
    read = ancestors(joint.forward_outputs[len(written) :])
    kept = [a for a, w in zip(written, program.writes, strict=True) if a is not None and joint.primals[w.graph_input] in read]
    once = plain if isinstance(plain, GraphModule) else None  # not a program of gradients, which would be compiled again
    return plan_rerun(once, program.outputs, program.differentiable, written, [argument(i) for i in requiring_grad], kept)


def _watched(program: _Program, joint: Joint, cut: Partition) -> tuple[int, ...]:
    """Arguments that the gradients depend on, though the backward does not read them."""
    known = {s.index for s in cut.saved if s.place == "input"} | set(joint.mutated_inputs)
    needed = ancestors([g for g in joint.grads if g is not None])
    places_ = zip(program.inputs.graph_inputs, joint.primals, strict=False)  # the floats, which follow, never change
    found = [at for i, (at, n) in enumerate(places_) if n in needed and i not in known]
    n_args = len(program.inputs.args) - len(program.bound)
    return tuple(a for a in found if isinstance(a, int) and a < n_args)


def _backward_compiler(
    cut: Partition, known: Reach, compile_graph: CompileGraph, options: CompileOptions
) -> Callable[[int], tuple[Callable[..., Any], GradientPlaces]]:
    """The function for `Backward.compile`. It keeps only the backward graph of the trace."""
    whole, places_, inputs = cut.backward, cut.grads, known.inputs
    first, count = len(cut.saved), len(known.conflicts)
    frame_id = current_frame()  # the backward is compiled later, outside the compilation of its frame

    def compile_backward(absent: int) -> tuple[Callable[..., Any], GradientPlaces]:
        graph, found = (whole.copy() if count > 1 else whole), places_
        if absent:
            dropped = {first + i for i in range(count) if absent >> i & 1}
            graph, kept = drop_absent_tangents(whole, dropped, range(first, first + count))
            found = tuple(
                None if at is None or not mask & ~absent else _place_after_removal(at, kept, dropped)
                for at, mask in zip(places_, inputs, strict=True)
            )
        with compiling(frame_id):
            return _compile_backward(graph, compile_graph, options), found

    return compile_backward


def _place_after_removal(at: tuple[str, int], kept: list[int | None], dropped: set[int]) -> tuple[str, int] | None:
    """The place of a gradient after the outputs that depend on the placeholders `dropped` were removed."""
    place, k = at
    new = kept[k] if place == "output" else None if k in dropped else k
    return None if new is None else (place, new)


# -- gradients of gradients --------------------------------------------------------------------------------------
def _second_order(trace: Trace, compile_graph: CompileGraph, options: CompileOptions) -> SecondOrder:
    """The gradients of the region as a program, compiled under the region's own grad mode and autocast."""
    grad_mode, autocast = _native.grad_enabled(), thread_state.autocast_number()

    def compile_gradients(shape: Shape, inputs: list[Any]) -> Callable[..., Any]:
        def trace_gradients(fakes: list[Any]) -> _Program:
            return _gradients_of(trace, fakes, shape)

        def run(*values: Any) -> Any:
            return compile_gradients(shape, fakes_like(values))(*values)

        before, around = _native.set_grad_enabled(grad_mode), thread_state.autocast_number()
        thread_state.switch_autocast(autocast)
        try:
            with saved_hooks_off():
                return _compile_traced(trace_gradients, run, inputs, compile_graph, options)
        finally:
            thread_state.switch_autocast(around)
            _native.set_grad_enabled(before)

    return SecondOrder(compile_gradients)


def _gradients_of(trace: Trace, fakes: list[Any], shape: Shape) -> _Program:
    """The program of the gradients of the program that `trace` traces. Results: one per input that requires a gradient, or None."""
    program = trace(fakes[: shape.arguments])
    mode, made, extra = program.mode, program.inputs, len(fakes) - shape.arguments
    graph, requiring_grad, results = mode.graph, program.requiring_grad(), program.results()
    drawn = effects(graph)
    outputs = [results[k] for i, k in enumerate(program.differentiable) if not shape.absent >> i & 1]
    made.graph_inputs = [g + extra if isinstance(g, int) and g >= shape.arguments else g for g in made.graph_inputs]
    anchor = next((n for n in graph.in_order() if n.op != "placeholder"), graph._sentinel)
    with graph.inserting_before(anchor):
        given = [_plain_input(mode, made, fakes[i], i, f"given{i}") for i in range(shape.arguments, len(fakes))]
    made.args[shape.arguments : shape.arguments] = given
    with mode:
        found = engine.grad(
            outputs, [made.leaves[i] for i in requiring_grad], given[: len(outputs)], create_graph=True, allow_unused=True
        )
    built = OutputBuilder(graph)
    computed = [g for g in found if g is not None]
    for g in computed:
        built.add(mode.value(g))
    _replace_draws(graph, drawn, dict(zip(shape.draws, graph.placeholders[-len(shape.draws) :], strict=False)))
    needed = ancestors(built.nodes)
    if any(graph.placeholders[i] in needed for i in program.mutated_inputs):
        raise NotImplementedError(UNABLE)
    at = iter(range(len(computed)))
    plan: list[Output] = [Literal(None) if g is None else Computed(next(at)) for g in found]
    return _refuse_freed(_Program(mode, made, program.bound, plan, computed, False, [], built, program.passes))


def _replace_draws(graph: Graph, drawn: Sequence[Node], states: dict[int, Node]) -> None:
    """Replace the random states that the forward drew by the given states. A draw without a given state is not needed."""
    for k, n in enumerate(drawn):
        if k not in states:
            with graph.inserting_before(n):
                states[k] = graph.get_attr(graph.add_constant(zeros(spec(n)), "_undrawn"), info=n.info)
        n.replace_all_uses_with(states[k])
        graph.erase_node(n)


def _joint(program: _Program) -> tuple[Joint, list[int], Reach]:
    """(the joint graph after the passes, graph inputs that require a gradient, the dependences among outputs and inputs)."""
    known = program.reach()
    mode, inputs = program.mode, program.inputs
    graph = mode.graph
    before = effects(graph)
    results = program.results()
    requiring_grad = program.requiring_grad()
    tangents, grads = add_gradients(
        mode, [t for k in program.differentiable if (t := results[k]) is not None], [inputs.leaves[i] for i in requiring_grad]
    )
    primals = [n for n in graph.placeholders if n not in tangents]
    graph.output((*program.built.nodes, *(g for g in grads if g is not None)))
    joint = Joint(
        graph,
        primals,
        tangents,
        list(program.built.nodes),
        grads,
        mutated_inputs=program.mutated_inputs,
        parameters=tuple(inputs.parameters),
        forward_effects=before,
        backward_effects=tuple(e for e in effects(graph) if e not in before),
        may_write=not any(w.recorded for w in program.writes),
    )
    _passes(graph, program.passes)
    joint.refresh()
    if _JOINT.enabled:
        _JOINT.log(GraphModule(graph.root, graph).readable())
    return joint, requiring_grad, known


def interpret(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
    """A `compile_graph` without compilation: the graph's ops run one by one in eager."""
    gm = GraphModule(graph.root, graph, f"{kind.value}_graph")
    forward = gm.forward

    def run(*args: Tensor) -> Any:
        before = _native.set_grad_enabled(False)
        try:
            return tuple(map(_without_base, forward(*args)))
        finally:
            _native.set_grad_enabled(before)

    return run


def _without_base(t: Any) -> Any:
    """A tensor over the memory of `t` that autograd does not treat as a view: its base may be an intermediate of the graph."""
    if not isinstance(t, Tensor) or note_base(t) is None:
        return t
    return _native.alias(t, tuple(t.shape), t.stride(), t.storage_offset())


repro.BACKEND_NAMES[interpret] = "aot_eager"
