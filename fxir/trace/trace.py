"""Runs a program on fake tensors and records the ops it calls as a functional graph.

Owns `Decompositions` (which ops a traced graph may hold), `TraceMode` (a dispatch mode below autograd, so that gradient
computations inside the program are traced too), `trace`, and `fakes_like`, which makes the fake inputs of a program.
In-place ops do not appear in the graph: `fxir.trace.functionalize` turns them into new values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes, thread_state
from eager.base.device import device
from eager.base.records import dataclass
from eager.base.spec import DataDependentError, TensorSpec, fake, fake_like, is_dense, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch.calls import Mode
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.tape.node import attach
from fxir.base.origin import Origin
from fxir.expr.rules import Sym
from fxir.ir.graph import FRESH, Graph, GraphSignature, emit, emit_layout, infer, physical_root, spec
from fxir.ir.graph_module import GraphModule, Interpreter
from fxir.ir.node import Node, NodeInfo, Target
from fxir.symbols.floats import FloatExpr
from fxir.symbols.shapes import NeedsStatic, environment_of, plain
from fxir.trace.functionalize import Memory


@dataclass(frozen=True, slots=True)
class Decompositions:
    """Which ops a traced graph may hold. Composite ops are replaced by their own decomposition, except those in `keep`.

    The calls inside a decomposition are traced, and decomposed in turn.

    keep: names of ops that a backend compiles without decomposing them. rules: decompositions by op name, which precede an op's
    own (also for ops that are not composites). expand: names of ops that a backend replaces by their decompositions when it compiles,
    so that a graph that is in its cache is traced with few nodes.
    """

    keep: frozenset[str] = frozenset()
    expand: frozenset[str] = frozenset()
    rules: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))

    def rule(self, op: Op, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        """The function to call instead of `op`, or None to record the op itself."""
        if op.name in self.rules:
            return self.rules[op.name]
        if op.kind is not Kind.COMPOSITE or op.name in self.keep or (op.name in self.expand and _is_expandable(op, args)):
            return None
        return op.decompose


def _is_expandable(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether the parts of `op` follow from its arguments, and do not depend on autocast, on symbolic sizes, or on devices of parts."""
    tensors = list(op.tensors(args))
    fixed = not any(n.__class__ is SymInt for t in tensors for n in t.shape)
    one = len({t.device for t in tensors}) == 1
    declared = op.rules.expandable
    return fixed and one and not thread_state.autocast_number() and declared is not None and declared(*args)


DEFAULT: Final = Decompositions()


class CapturedTensorError(RuntimeError):
    """A tensor from outside the program (not an input, not created by it) is written to, or requires a gradient.

    `tensor` is that tensor. The caller can make it an input and trace again.
    """

    def __init__(self, text: str, tensor: Tensor) -> None:
        super().__init__(text)
        self.tensor = tensor


class TraceMode(Mode):
    """Records op calls into `graph`. While the mode is entered, ops return fakes for all arguments.

    decompositions: the ops to record without decomposing them. external: tensors that the program reads beside its inputs, by
    root key. owns_constants: whether every other real tensor was created by the program during the trace (`eager.tensor([1,
    2])`), so that it may write to it; otherwise a write to such a tensor raises CapturedTensorError. `origin` is set on the
    nodes made while it is not None.
    """

    records_graph = True

    def __init__(
        self,
        graph: Graph,
        decompositions: Decompositions = DEFAULT,
        external: Mapping[str, Any] | None = None,
        owns_constants: bool = False,
    ) -> None:
        self.graph = graph
        self.owns_constants = owns_constants
        self.memory = Memory(graph)
        self.decompositions = decompositions
        self._external = {id(t): key for key, t in (external or {}).items()}
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}  # real tensor (kept alive) and its fake
        self.float_arguments: dict[Sym, int] = {}  # symbol -> position of the program's argument that is the symbol
        self.float_inputs: dict[FloatExpr, Tensor] = {}  # the 0-d inputs that hold floats, after all other inputs, in order
        self._last_input: Node | None = None

    @property
    def origin(self) -> Origin | None:
        return self.memory.origin

    @origin.setter
    def origin(self, value: Origin | None) -> None:
        self.memory.origin = value

    # -- inputs and values -------------------------------------------------------------------------------------
    def add_input(self, t: Tensor, name: str) -> Node:
        """Add a placeholder, before all other nodes, for `t` (a fake over a new storage)."""
        if self.graph.shapes is None:
            self.graph.shapes = environment_of(_native.spec_of(t))
        node = self.graph.placeholder(name, info=NodeInfo(self.note(_native.spec_of(t))))
        self.memory.define(t, node)
        self._last_input = node
        return node

    def add_symbol(self, n: SymInt) -> Node:
        """A placeholder for an int argument of the program that is a symbol."""
        self.graph.shapes = environment_of(n)
        self._last_input = self.graph.add_number_input(n.expr, "int")
        return self._last_input

    def add_float(self, x: SymFloat, argument: int) -> None:
        """Record that a float argument of the program is a symbol. It becomes an input if an op computes with it."""
        self.graph.shapes = environment_of(x)
        self.float_arguments[x.expr.args[0]] = argument

    def float_input(self, x: SymFloat) -> Tensor | float:
        """A 0-d float64 input of the graph for `x`, which the graph's caller computes in Python."""
        e = plain(x)
        if not isinstance(e, FloatExpr):
            number: float = e
            return number
        if e not in self.float_inputs:
            t: Tensor = fake(TensorSpec((), dtypes.float64, (), device("cpu")))
            first = next(iter(self.graph.nodes), self.graph._sentinel)
            with self.graph.inserting_before(first if self._last_input is None else self._last_input.next):
                self._last_input = self.graph.placeholder("number", info=NodeInfo(_native.spec_of(t)))
            self.memory.define(t, self._last_input)
            self.float_inputs[e] = t
        return self.float_inputs[e]

    def note(self, x: Any) -> Any:
        """`x` (a spec, arguments) in the graph's form: SymInts as expressions. Their symbols come from inputs."""
        return x if self.graph.shapes is None else plain(x)

    def value(self, t: Tensor) -> Node:
        """The node with the current value of `t`; a tensor from outside becomes a constant."""
        return self.memory.value(self.fake_of(t))

    def fake_of(self, t: Tensor) -> Tensor:
        """`t` itself if the program created it, else the fake for this tensor from outside."""
        if id(t.untyped_storage().root) in self.memory.buffers:
            return t
        if t.is_fake:
            raise RuntimeError(
                f"trace: a fake tensor of shape {list(t.shape)} is used, but it is neither an input nor the result of an op"
            )
        found = self._twins.get(id(t))
        if found is None:
            if t._requires_grad:
                raise CapturedTensorError("trace: a tensor that requires grad is used but is not an input", t)
            key = self._external.get(id(t))
            if key is None:
                # A second object over the same data: `t` itself may become a fake, see _replace_by_fake.
                alias = _native.alias(t, tuple(t.shape), tuple(t.stride()), t.storage_offset())
                key = self.graph.add_constant(alias, FRESH)
            else:
                self.graph.root[key] = t
            stand_in = fake_like(t)
            self.memory.define(stand_in, self.graph.get_attr(key, info=NodeInfo(_native.spec_of(t))))
            found = self._twins[id(t)] = (t, stand_in)
        return found[1]

    def is_external(self, t: Tensor) -> bool:
        """Whether a real tensor is owned by code outside the program."""
        return id(t) in self._external

    # -- dispatch ----------------------------------------------------------------------------------------------
    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.mutates:
            return self._inplace(op, args)
        return self._functional(op, args)

    def _functional(self, op: Op, args: tuple[Any, ...]) -> Any:
        rule = self.decompositions.rule(op, args)
        if rule is not None:
            with self:
                result = rule(*args)
            return self._without_inner_base(op, args, result if op.kernel is None else self._in_kernel_layout(op, args, result))
        if op.dynamic_output:
            raise DataDependentError(f"{op.name}: the shape of its result depends on data; it cannot be traced")
        args = self._map_tensors(op, args, self.fake_of)
        if op.kind is Kind.VIEW:
            result = op.alias(*args)
            self.memory.view(result, args[0], op, self.note(args[1:]))
            return result
        return self._record(op, args)

    def _in_kernel_layout(self, op: Op, args: tuple[Any, ...], result: Any) -> Any:
        """A decomposition's result in the form of the op's kernel: in the kernel's layout and in separate memory."""
        args = self._map_tensors(op, args, self.fake_of)
        given = {id(self.memory.buffer(t)) for t in op.tensors(args)}
        wanted = op.infer(*args)
        if isinstance(wanted, TensorSpec):
            return self._laid_out(result, wanted, given)
        return tuple(self._laid_out(t, w, given) for t, w in zip(result, wanted, strict=True))

    def _without_inner_base(self, op: Op, args: tuple[Any, ...], result: Any) -> Any:
        """A decomposition's result in a form for autograd: not a view of memory created inside the decomposition.

        Autograd attaches its history to the result, not to that memory, and other views of the result would lead to the memory.
        """
        if isinstance(result, tuple | list):
            return type(result)(self._without_inner_base(op, args, t) for t in result)
        if not isinstance(result, Tensor) or result._requires_grad or not self.memory.derivation(result)[1]:
            return result
        buffer = self.memory.buffer(result)
        if buffer is None or any(buffer is self.memory.buffer(self.fake_of(t)) for t in op.tensors(args)):
            return result
        return self._new(_native.spec_of(result), self.value(result))

    def _laid_out(self, t: Tensor, wanted: TensorSpec, given: set[int]) -> Tensor:
        shared = id(self.memory.buffer(self.fake_of(t))) in given
        if self.note(_native.spec_of(t)) == self.note(wanted) and not shared:
            return t
        node = self.value(t)
        if shared:
            node = self.memory.emit(OPS["clone"], node, None)
        return self._new(wanted, emit_layout(self.graph, node, self.note(wanted.strides)))

    def _record(self, op: Op, args: tuple[Any, ...]) -> Any:
        args = tuple([self._numbers_as_inputs(a) if i in op._lists_at else a for i, a in enumerate(args)]) if op._lists_at else args
        if any(a.__class__ is SymFloat for a in args):
            op, args = self._with_float_inputs(op, args)
        specs = op.infer(*args)
        nodes = self.note(self._map_tensors(op, args, self.memory.value))
        same = all(self._has_spec_of(n, t) for t, n in self._pairs(op, args, nodes))
        held = self.note(specs) if same else infer(op, nodes, self.graph.shapes)
        node = self.graph.call_function(op, nodes, info=NodeInfo(held, self.origin))
        if isinstance(specs, TensorSpec):
            return self._new(specs, node)
        results = []
        for i, s in enumerate(specs):
            info = NodeInfo(held[i], self.origin)
            results.append(self._new(s, self.graph.call_function(operator.getitem, (node, i), info=info)))
        return tuple(results)

    def _numbers_as_inputs(self, items: Any) -> Any:
        """A list of tensors and numbers with symbolic floats replaced by inputs."""
        return [self.float_input(a) if a.__class__ is SymFloat else a for a in items] if isinstance(items, tuple | list) else items

    def _with_float_inputs(self, op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
        """Replace symbolic floats by inputs if the op computes on tensors with them and its result is otherwise the same; else
        by their values.
        """
        compute = op.compute_dtype(*args) if op.kind is Kind.POINTWISE and op.promotion != "raw" else None
        out = list(args)
        for i, a in enumerate(args):
            if a.__class__ is SymFloat:
                given = None
                if op.kind is Kind.COMPOSITE and op.schema.params[i].name in op.takes_numbers:
                    given = self.float_input(a)
                elif compute is not None and i in op._tensor_at:
                    given = self._as_operand(op, args, i, compute)
                out[i] = float(a) if given is None else given
        if op is OPS["pow"] and args[1].__class__ is SymFloat and op.takes_as_given(0.5, op.compute_dtype(*out)):
            op = OPS["pow_of_symbol"]
        return op, tuple(out)

    def _as_operand(self, op: Op, args: tuple[Any, ...], i: int, compute: dtypes.dtype) -> Any:
        """The input for the float `args[i]`, in a dtype that promotes as the float does; None if no input can replace the float."""
        x = self.float_input(args[i])
        for d in (dtypes.float64, compute.to_real()):
            if d.itemsize == 2 or not d.is_floating_point:
                continue  # eager computes with the unrounded float
            given = x if d is dtypes.float64 or not isinstance(x, Tensor) else self.dispatch(OPS["to_dtype"], (x, d))
            if op.compute_dtype(*args[:i], given, *args[i + 1 :]) is compute:
                return given
        return None

    def _new(self, s: TensorSpec, node: Node) -> Tensor:
        t: Tensor = fake(s)
        self.memory.define(t, node)
        return t

    def _inplace(self, op: Op, args: tuple[Any, ...]) -> Any:
        target: Tensor = args[0]
        base = op.base
        assert base is not None
        if op.decompose is not None:
            return self._update(op, op.decompose, args)
        stand_in = self._written(op, target)
        new = self._copied(stand_in, args[1]) if base is OPS["copy"] else None
        if new is None:
            new = self.memory.value(self._functional(base, (stand_in, *args[1:])))
        if spec(new).dtype is not stand_in.dtype:
            new = self.memory.emit(OPS["to_dtype"], new, stand_in.dtype)
        self.memory.write(stand_in, new)
        target._bump_version()
        return target

    def _update(self, op: Op, decompose: Callable[..., None], args: tuple[Any, ...]) -> Any:
        """An op that writes several tensors: one call of its functional form, or the ops that it consists of."""
        if self.decompositions.rule(op.base, args) is not None:
            with self:
                decompose(*args)
            return args[0]
        targets = list(op.written(args))
        stand_ins = [self._written(op, t) for t in targets]
        for t, stand_in, new in zip(targets, stand_ins, self._functional(op.base, args), strict=True):
            self.memory.write(stand_in, self.memory.value(new))
            t._bump_version()
        return args[0]

    def _written(self, op: Op, target: Tensor) -> Tensor:
        """The fake of a tensor that `op` is about to write."""
        stand_in = self.fake_of(target)
        if stand_in is not target:
            self._replace_by_fake(op, target, stand_in)
        return stand_in

    def _replace_by_fake(self, op: Op, target: Tensor, stand_in: Tensor) -> None:
        """At the first write to a real tensor: if the trace created it, its fake becomes its value."""
        if not self.owns_constants or self.is_external(target):
            raise CapturedTensorError(f"trace: {op.name} writes to a tensor that is not an input", target)
        target._set_impl(stand_in)

    def _copied(self, target: Tensor, src: Any) -> Node | None:
        """The value of `target` after `copy_(src)`, without a read of the old value if possible."""
        if not isinstance(src, Tensor) or src.device is not target.device:
            return None
        node = self.value(src)
        if tuple(src.shape) != tuple(target.shape):
            node = self.memory.emit(OPS["expand"], node, self.note(tuple(target.shape)))
        if src.dtype is not target.dtype:
            return self.memory.emit(OPS["to_dtype"], node, target.dtype)
        return self.memory.emit(OPS["clone"], node, None)  # in separate memory, like the target

    def _map_tensors(self, op: Op, args: tuple[Any, ...], fn: Callable[[Tensor], Any]) -> tuple[Any, ...]:
        mapped = list(args)
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                mapped[i] = fn(a)
            elif isinstance(a, tuple | list) and i in op._lists_at:
                mapped[i] = [fn(t) if isinstance(t, Tensor) else t for t in a]
        return tuple(mapped)

    def _has_spec_of(self, node: Node, t: Tensor) -> bool:
        if self.graph.shapes is None:
            return node.info.spec == _native.spec_of(t)
        return spec(node) == plain(_native.spec_of(t))

    def _pairs(self, op: Op, args: tuple[Any, ...], nodes: tuple[Any, ...]) -> Any:
        for a, n in zip(args, nodes, strict=True):
            if isinstance(a, Tensor):
                yield a, n
            elif isinstance(n, list):
                yield from ((t, m) for t, m in zip(a, n, strict=True) if isinstance(m, Node))


class TracingInterpreter(Interpreter):
    """Runs a captured graph under a TraceMode and sets each node's user line on the nodes traced for it."""

    def __init__(self, gm: GraphModule, mode: TraceMode) -> None:
        super().__init__(gm)
        self.mode = mode

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._mark()
        return super().call_function(target, args, kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._mark()
        return super().call_method(target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._mark()
        return super().call_module(target, args, kwargs)

    def _mark(self) -> None:
        self.mode.origin = None if self.node is None else self.node.info.origin


def run_traced(fn: Callable[..., Any], args: Sequence[Any], mode: TraceMode) -> Any:
    """fn(*args) under `mode`."""
    runner = TracingInterpreter(fn, mode).run if isinstance(fn, GraphModule) else fn
    with mode, _attributed_to(mode):
        result = runner(*args)
    mode.origin = None
    return result


@contextmanager
def _attributed_to(mode: TraceMode) -> Iterator[None]:
    """In the block, decisions about symbols are recorded with the user's line that is being traced."""
    shapes = mode.graph.shapes
    if shapes is None:
        yield
        return
    before, shapes.origin = shapes.origin, lambda: mode.origin
    try:
        yield
    finally:
        shapes.origin = before


class OutputBuilder:
    """Collects the output nodes of a functional graph: each in separate memory, in the requested layout."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self._taken: set[Node] = set()

    def add(self, node: Node, strides: tuple[int, ...] | None = None) -> int:
        """Append `node` and return its position. It is copied if it is an input, a constant or part of another output."""
        if self.graph.shapes is not None:
            strides = plain(strides)
        if strides is not None:
            node = emit_layout(self.graph, node, strides)
        root = physical_root(node)
        if root.op in ("placeholder", "get_attr") or root in self._taken:
            node = emit(self.graph, OPS["clone"], node, None, origin=node.info.origin)
            if strides is not None:
                node = emit_layout(self.graph, node, strides)
            root = physical_root(node)
        if strides is not None and spec(node).strides != strides:  # of dims of size 1, which the layout leaves open
            node = emit(self.graph, OPS["as_strided"], node, spec(node).shape, strides, None)
        self._taken.add(root)
        self.nodes.append(node)
        return len(self.nodes) - 1


def trace(fn: Callable[..., Any], inputs: Sequence[Tensor], decompositions: Decompositions = DEFAULT) -> Graph:
    """The functional graph of `fn(*inputs)`; `inputs` are fakes, fn returns a tensor or a flat tuple of tensors.

    Outputs: the new values of the inputs that fn writes to (see `graph.signature`), then fn's results, each in separate memory,
    with its strides if they are dense. The graph does not express aliasing among inputs and results: `fxir.region.aot` does.
    Raises: DataDependentError if fn reads data; CapturedTensorError; any error that fn raises.
    """
    graph = Graph()
    external = fn.root if isinstance(fn, GraphModule) else None
    mode = TraceMode(graph, decompositions, external, owns_constants=isinstance(fn, GraphModule))
    names = [p.name for p in fn.graph.placeholders] if isinstance(fn, GraphModule) else []
    for i, t in enumerate(inputs):
        mode.add_input(t, names[i] if i < len(names) else f"arg{i}")
    result = run_traced(fn, inputs, mode)
    outs = list(result) if isinstance(result, tuple | list) else [result]
    built = OutputBuilder(graph)
    mutated = tuple(i for i, t in enumerate(inputs) if mode.memory.writes(t))
    for i in mutated:
        built.add(mode.value(inputs[i]))
    for t in outs:
        strides = tuple(t.stride())
        built.add(mode.value(t), strides if is_dense(tuple(t.shape), strides) else None)
    graph.output(tuple(built.nodes))
    graph.signature = GraphSignature(mutated, len(outs))
    graph.eliminate_dead_code()
    settle_symbols(graph)
    return graph


def settle_symbols(graph: Graph) -> None:
    """Settle the symbols after a trace and after passes: see `Graph.settle_symbols`. Raises: NeedsStatic if no input gives a symbol."""
    missing = graph.settle_symbols()
    if missing:
        raise NeedsStatic(missing, "a symbol is used that is neither an input nor the size of an input")


# -- example inputs -------------------------------------------------------------------------------------------------
def fakes_like(tensors: Sequence[Any], specs: Sequence[TensorSpec | None] | None = None) -> list[Any]:
    """One fake per tensor: same metadata, leaf status and class (Parameter or tensor); fakes share storage as the tensors do.

    One object given twice gives one fake. A caller that reuses code compiled for the fakes must guard these properties.
    specs: symbolic shapes and strides instead of the tensors' own. A value that is not a tensor (an int argument) is returned
    unchanged.
    Raises: NotImplementedError if two inputs share memory as different dtypes.
    """
    stated = {id(t): s for t, s in zip(tensors, specs or [None] * len(tensors), strict=True)}
    counts: dict[int, set[int]] = {}
    made: dict[int, Any] = {id(t): t for t in tensors if not isinstance(t, Tensor)}
    for t in tensors:
        if id(t) in made:
            continue
        counts.setdefault(id(t.untyped_storage().root), set()).add(id(t))
    storages: dict[int, Tensor] = {}
    for t in tensors:
        if id(t) not in made:
            alone = len(counts[id(t.untyped_storage().root)]) == 1 and t.storage_offset() == 0
            spec = stated[id(t)] or spec_of(t)
            made[id(t)] = _like(t, spec, fake(spec) if alone else _over_shared(t, spec, storages))
    return [made[id(t)] for t in tensors]


def _over_shared(t: Tensor, stated: TensorSpec, storages: dict[int, Tensor]) -> Tensor:
    root = t.untyped_storage().root
    flat = storages.get(id(root))
    if flat is None:
        spec = TensorSpec.contiguous((max(root.nbytes() // t.dtype.itemsize, 1),), t.dtype, t.device)
        flat = storages[id(root)] = fake(spec)
    if flat.dtype is not t.dtype:
        raise NotImplementedError("fakes_like: two inputs share memory as different dtypes; clone() one of them")
    view: Tensor = _native.alias(flat, stated.shape, stated.strides, t.storage_offset())
    return view


def _like(t: Tensor, spec: TensorSpec, stand_in: Tensor) -> Tensor:
    if t._is_param:
        stand_in._is_param = True
    if not t._requires_grad:
        return stand_in
    if t.is_leaf:
        stand_in._requires_grad = True
    else:
        attach([stand_in], [fake(spec, True)], lambda grads: grads, "History")
    return stand_in
