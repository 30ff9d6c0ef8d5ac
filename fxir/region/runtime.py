"""The code between a caller and a compiled graph, written as source for each case.

It writes new values into mutated inputs, replays views, returns inputs that are results as the same objects, and attaches the
backward to the results. If a program needs none of that, the caller gets the compiled callable itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Final, TypeAlias

from eager import _native, random
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.locks import new_lock
from eager.base.records import dataclass
from eager.base.spec import TensorSpec
from eager.optable.memory import empty
from eager.optable.table import OPS
from eager.tape.node import RELEASED, SavedTensor, attach
from eager.tape.state import per_thread
from fxir.autodiff.partition import Saved
from fxir.expr.printing import to_python
from fxir.expr.rules import Expr, Sym
from fxir.region.double_backward import SecondOrder
from fxir.region.interior_gradients import Rerun, copy_of
from fxir.symbols.floats import FloatExpr, to_text
from fxir.symbols.shapes import SymbolSource, symbols_in
from fxir.trace.output_aliasing import Computed, Derived, FromInput, Literal, Output, Repeat, Step

GradientPlaces: TypeAlias = "tuple[tuple[str, int] | None, ...]"
NODE_NAME: Final = "CompiledFunctionBackward"


@dataclass(frozen=True, slots=True)
class InputBase:
    """A flat tensor over the memory that several inputs share: `span` elements, starting `low` elements before input `index`."""

    index: int
    low: int
    span: int


@dataclass(frozen=True, slots=True)
class FloatInput:
    """A 0-d float64 tensor that holds the value of an expression, or a number."""

    expression: FloatExpr | float


GraphInput: TypeAlias = "int | InputBase | FloatInput"


@dataclass(frozen=True, slots=True)
class Write:
    """Leading output `position` is written into graph input `graph_input`; recorded: autograd records the write."""

    position: int
    graph_input: int
    recorded: bool


@dataclass(slots=True)
class Region:
    """A compiled program, described for the runtime.

    n_args: tensors that the caller passes; bound: further arguments, held by the region and numbered after them.
    graph_inputs: the arguments of the graph: an argument, a base shared by several arguments, or (last) a float. outputs: see
    `fxir.trace.output_aliasing`.
    single: the program returns its one output as a bare value. differentiable: graph outputs that the backward is attached to.
    refused: outputs whose backward raises, with the error's text. requiring_grad: graph inputs that get a gradient. saved: the values
    saved for backward. watched: arguments that only a gradient of the gradient needs. placed: arguments whose placement in
    memory the program relies on (shared storages, as_strided); if their `places` differ, `again` is called.
    symbols: their sources among the graph inputs. float_arguments: the arguments that are symbols in expressions of floats.
    """

    n_args: int
    bound: tuple[Tensor, ...]
    graph_inputs: tuple[GraphInput, ...]
    outputs: tuple[Output, ...]
    single: bool
    writes: tuple[Write, ...] = ()
    differentiable: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    requiring_grad: tuple[int, ...] = ()
    saved: tuple[Saved, ...] = ()
    backward: Backward | None = None
    watched: tuple[int, ...] = ()
    placed: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    again: Callable[..., Any] | None = None
    symbols: dict[Sym, SymbolSource] = field(default_factory=dict)
    float_arguments: dict[Sym, int] = field(default_factory=dict)


@dataclass(slots=True)
class Backward:
    """The backward of a region, compiled at its first call: once for each set of outputs that receive no gradient.

    specs: of the tangents. compile: for the absent tangents, a bit mask, returns the graph from the saved values and all
    tangents (it does not read absent tangents), and the place of each requested gradient: ("output" of the graph or "input" to
    it, index), or None. conflicts: see `fxir.autodiff.reachability`. symbols: their values follow the tangents. states:
    positions of random states among the saved values. feeding: outputs that other outputs depend on, a bit mask. A request for
    a gradient at such an output runs the region again with `inside`, from the generator's state before the forward if it
    `draws`.
    """

    specs: tuple[TensorSpec, ...]
    compile: Callable[[int], tuple[Callable[..., Any], GradientPlaces]] | None
    conflicts: tuple[int, ...]
    second: SecondOrder
    symbols: tuple[Sym, ...] = ()
    states: tuple[int | None, ...] = ()
    feeding: int = 0
    inside: Rerun | None = None
    draws: bool = False
    _runs: dict[int, tuple[Callable[..., Any], GradientPlaces]] = field(default_factory=dict)
    _lock: AbstractContextManager[Any] = field(default_factory=new_lock)

    def run(self, absent: int = 0) -> tuple[Callable[..., Any], GradientPlaces]:
        """The compiled backward graph without the `absent` tangents, and the places of the gradients."""
        if absent not in self._runs:
            with self._lock:
                if absent not in self._runs:
                    assert self.compile is not None
                    self._runs[absent] = self.compile(absent)
                    if len(self.specs) == 1:
                        self.compile = None  # drops the reference to the graph
        return self._runs[absent]


class Call:
    """The values that one call of a region saves for its backward; autograd calls the object as the backward.

    args: arguments of the call. versions: of the watched arguments. present: outputs (a bit mask) with a gradient in the last
    backward. spent: outputs whose graph is freed.
    """

    __slots__ = ("args", "before", "drawn", "ints", "present", "region", "saved", "specs", "spent", "versions")

    def __init__(
        self, region: Backward, saved: list[Any], args: tuple[Any, ...], versions: tuple[tuple[Tensor, int], ...],
        specs: tuple[TensorSpec, ...], ints: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.region = region
        self.saved: list[Any] | None = saved
        self.args = args
        self.versions = versions
        self.specs = specs  # of the tangents in this call
        self.ints = ints
        self.drawn: Any = ()  # states of the random number generators before the forward
        self.before: tuple[Tensor | None, ...] = ()  # former values of arguments that the region writes to
        self.present = self.spent = 0

    def release(self) -> None:
        """Free the values that no later backward needs. Outputs that share no saved tensors with these can still be differentiated."""
        self.spent |= self.present
        if all(c & self.spent for c in self.region.conflicts):
            self.saved, self.args, self.versions, self.before = None, (), (), ()

    def __call__(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        region = self.region
        absent = self._begin(grads)
        assert self.saved is not None
        if _native.grad_enabled():
            return self._differentiably(grads)
        values = [_unpack(s) if type(s) is SavedTensor else s for s in self.saved]
        values += [empty(s) if g is None else _tangent(g, s) for g, s in zip(grads, self.specs, strict=True)]
        values += self.ints
        run, places = region.run(absent)
        results = run(*values)
        return tuple([None if at is None else results[at[1]] if at[0] == "output" else values[at[1]] for at in places])

    def _begin(self, grads: Sequence[Any]) -> int:
        """The absent gradients, a bit mask. Raises RuntimeError if saved values that the others need are freed."""
        absent = 0
        for i, g in enumerate(grads):
            if g is None:
                absent |= 1 << i
        self.present = ~absent & (1 << len(grads)) - 1
        if self.saved is None or (self.spent and self._is_freed()):
            raise RuntimeError(RELEASED)
        return absent

    def inside(self, grads: Sequence[Any], hooks: dict[int, Callable[[Tensor], Tensor]], targets: Sequence[int],
               wanted: Sequence[bool]) -> tuple[list[Tensor | None], list[Tensor | None]]:  # fmt: skip
        """See `fxir.region.interior_gradients`."""
        self._begin(grads)
        self._check_versions()
        assert self.region.inside is not None
        return self.region.inside(self, grads, hooks, targets, wanted)

    def _is_freed(self) -> bool:
        """Whether a present output shares saved tensors with an output that was differentiated without retain_graph."""
        return any(self.present >> i & 1 and c & self.spent for i, c in enumerate(self.region.conflicts))

    def _differentiably(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients that can themselves be differentiated (the backward runs under `create_graph=True`)."""
        region = self.region
        kept = self._check_versions()
        tangents = [None if g is None else _tangent(g, s) for g, s in zip(grads, self.specs, strict=True)]
        return tuple(region.second(self.args, tangents, [None if k is None else kept[k] for k in region.states]))

    def _check_versions(self) -> list[Any]:
        """The saved values. Raises RuntimeError, with eager's text, if a saved value or a watched argument was written to."""
        assert self.saved is not None
        kept = [_unpack(s) if type(s) is SavedTensor else s for s in self.saved]
        for t, version in self.versions:
            if t._version != version:
                s = SavedTensor(t, False)
                s.version = version
                _raise_modified(s)
        return kept


class _Name:
    """The node's name for the message about a saved tensor that was written to."""

    @staticmethod
    def name() -> str:
        return NODE_NAME


def _unpack(s: SavedTensor) -> Tensor:
    t: Tensor = s.tensor
    if s.unpack_hook is not None:
        t = s.unpack_hook(t)
    elif t._version != s.version:
        _raise_modified(s)
    return t


def _raise_modified(s: SavedTensor) -> None:
    """Raise eager's RuntimeError about a saved tensor that was written to."""
    s.unpack(_Name())  # type: ignore[arg-type]


def _keep(t: Tensor) -> Tensor | SavedTensor:
    """A tensor that only the graph refers to is saved without a version check, unless saved-tensor hooks are installed."""
    return SavedTensor(t, False) if per_thread.saved_hooks else t


def _tangent(g: Any, s: TensorSpec) -> Tensor:
    """A gradient in the layout that the graph was compiled for: copied if its layout differs."""
    tangent: Tensor = g
    if tuple(tangent.stride()) != s.strides or tangent.dtype is not s.dtype:
        tangent = OPS["copy_"](empty(s), g)
    return tangent


def _refuse(result: Tensor, text: str) -> None:
    """Attach a history that raises when backward runs it."""

    def refuse(_: tuple[Any, ...]) -> tuple[Any, ...]:
        raise RuntimeError(text)

    attach([result], (), refuse, NODE_NAME)


def _replay(t: Tensor, steps: Sequence[Step]) -> Tensor:
    """Replay view ops, each in the grad mode of its recording: a region may be called in another mode than it ends in."""
    before = _native.grad_enabled()
    try:
        for step in steps:
            _native.set_grad_enabled(step.recorded)
            t = step.op(t, *step.args)
    finally:
        _native.set_grad_enabled(before)
    return t


def _with_history(view: Tensor, result: Tensor) -> Tensor:
    """A view that a custom function returned, with the history of the result that was computed for it."""
    node = result.grad_fn
    if node is not None:
        view._set_history(node, result.output_nr)
    return view


def _base(x: Tensor, low: int, span: int) -> Tensor:
    flat: Tensor = _native.alias(x, (span,), (1,), x.storage_offset() - low)
    return flat


def _number(value: float) -> Tensor:
    t: Tensor = _native.empty(dtypes.float64.code, (), ())
    t._array[()] = value
    return t


def places(args: Sequence[Tensor]) -> tuple[tuple[int, int], ...]:
    """The placement of tensors in memory: for each, (the first of them over the same storage, its storage offset)."""
    first: dict[int, int] = {}
    return tuple((first.setdefault(id(t.untyped_storage().root), i), t.storage_offset()) for i, t in enumerate(args))


def wrap(run: Callable[..., Any], region: Region) -> Callable[..., Any]:
    """The callable for callers: takes `n_args` tensors, returns the program's results."""
    lead = 0 if getattr(run, "writes_inputs", False) else len(region.writes)
    if _bare(region, lead):
        return run
    writer = _Writer(run, region, lead)
    return writer.compile()


def _bare(region: Region, lead: int) -> bool:
    plain_inputs = region.graph_inputs == tuple(range(region.n_args)) and not region.bound
    results = [o for o in region.outputs if isinstance(o, Computed) and not o.leaf]
    in_order = [o.index for o in results] == list(range(len(region.outputs)))
    nothing_around = region.backward is None and not (region.placed or region.refused or region.single)
    return plain_inputs and in_order and lead == 0 and nothing_around


class _Writer:
    """Writes the source of one wrapper."""

    def __init__(self, run: Callable[..., Any], region: Region, lead: int) -> None:
        self.region = region
        self.lead = lead
        self.env: dict[str, Any] = {"run": run}
        self.lines: list[str] = []

    def compile(self) -> Callable[..., Any]:
        region = self.region
        self.env |= {f"a{region.n_args + i}": t for i, t in enumerate(region.bound)}
        if region.placed:
            self.env |= {"places": places, "expected": region.places, "again": region.again}
            checked = ", ".join(f"a{i}" for i in region.placed)
            everything = ", ".join(f"a{i}" for i in range(region.n_args))
            self.lines.append(f"if places([{checked}]) != expected: return again({everything})")
        inputs = [self._input(i, g) for i, g in enumerate(region.graph_inputs) if not isinstance(g, FloatInput)]
        self._read_symbols(inputs)
        inputs += [self._float(i, g) for i, g in enumerate(region.graph_inputs) if isinstance(g, FloatInput)]
        if region.backward is not None:
            self._record_state(region.backward)
        self.lines.append(f"o = run({', '.join(inputs)})")
        if region.backward is not None:
            self._attach(inputs)
        for k, text in region.refused:
            self.env["refuse"] = _refuse
            self.lines.append(f"refuse({self._result(k)}, {self._constant(text)})")
        self._write(inputs)
        sources = [o.source if isinstance(o, Derived) else o for o in region.outputs]
        leaves = dict.fromkeys(self._source(s) for s in sources if isinstance(s, Computed) and s.leaf)
        self.lines += [f"{leaf}._requires_grad = True" for leaf in leaves]
        names = [self._output(i, out) for i, out in enumerate(region.outputs)]
        self.lines.append(f"return {names[0]}" if region.single else f"return ({', '.join(names)}{',' * bool(names)})")
        args = ", ".join(f"a{i}" for i in range(region.n_args))
        source = f"def compiled({args}):\n" + "".join(f"    {line}\n" for line in self.lines)
        exec(compile(source, "<compiled region>", "exec"), self.env)
        compiled: Callable[..., Any] = self.env["compiled"]
        compiled.__doc__ = source
        return compiled

    def _input(self, i: int, g: GraphInput) -> str:
        if isinstance(g, int):
            return f"a{g}"
        assert isinstance(g, InputBase)
        self.env["base"] = _base
        self.lines.append(f"b{i} = base(a{g.index}, {g.low}, {g.span})")
        return f"b{i}"

    def _float(self, i: int, g: FloatInput) -> str:
        self.env |= {"number": _number, "math": math}
        arguments = self.region.float_arguments
        text = to_text(g.expression, lambda s: f"a{arguments[s]}" if s in arguments else s.name)
        self.lines.append(f"b{i} = number({text})")
        return f"b{i}"

    def _attach(self, inputs: list[str]) -> None:
        region = self.region
        self.env |= {"attach": attach, "Call": Call, "Saved": SavedTensor, "keep": _keep, "backward": region.backward}
        kept = []
        for s in region.saved:
            if s.place == "input":
                kept.append(f"Saved({inputs[s.index]}, False)")
            elif s.place == "output":
                kept.append(f"Saved({self._result(s.index)}, True)")
            else:
                first_extra = self.lead + _n_computed(region)
                kept.append(f"keep(o[{first_extra + s.index}])")
        outs = ", ".join(map(self._result, region.differentiable))
        ins = ", ".join(inputs[i] for i in region.requiring_grad)
        assert region.backward is not None
        self.env["specs"] = region.backward.specs
        specs = self._text(region.backward.specs) if region.symbols else "specs"
        ints = self._text(region.backward.symbols)
        args = "".join(f"a{i}, " for i in range(region.n_args))
        versions = "".join(f"(a{i}, a{i}._version), " for i in region.watched)
        self.lines.append(f"call = Call(backward, [{', '.join(kept)}], ({args}), ({versions}), {specs}, {ints})")
        feeding = f".feeding = {region.backward.feeding}" if region.backward.feeding else ""
        if region.backward.draws:
            self.lines.append("call.drawn = drawn")
        if region.backward.inside is not None and region.backward.inside.kept:
            self.lines.append("call.before = was")
        self.lines.append(f"attach([{outs}], [{ins}], call, {NODE_NAME!r}, call.release){feeding}")

    def _record_state(self, backward: Backward) -> None:
        """Source that records the state before the region runs, for `fxir.region.interior_gradients`."""
        if backward.draws:
            self.env["drawing"] = random.places
            self.lines.append("drawn = drawing()")
        if backward.inside is not None and backward.inside.kept:
            self.env["copy_of"] = copy_of
            self.lines.append(f"was = ({''.join(f'copy_of(a{i}), ' for i in backward.inside.kept)})")

    def _result(self, k: int) -> str:
        """Graph output k."""
        return f"o[{k - len(self.region.writes) + self.lead}]"

    def _write(self, inputs: list[str]) -> None:
        if self.lead == 0:
            return
        self.env |= {"copy_": OPS["copy_"], "set_grad": _native.set_grad_enabled}
        self.lines += ["before = set_grad(False)", "try:"]
        for recorded, writes in itertools.groupby(sorted(self.region.writes, key=lambda w: w.recorded), lambda w: w.recorded):
            self.lines.append(f"    set_grad({recorded})")
            self.lines += [f"    copy_({inputs[w.graph_input]}, o[{w.position}])" for w in writes]
        self.lines += ["finally:", "    set_grad(before)"]

    def _output(self, i: int, out: Output) -> str:
        if isinstance(out, Repeat):
            return f"r{out.index}"
        if isinstance(out, Literal):
            return self._text(out.value)
        if isinstance(out, Derived):
            self.env |= {"replay": _replay, "Step": Step, "with_history": _with_history}
            text, rest = self._source(out.source), out.steps
            if out.custom is not None:
                first, rest = rest[: out.custom.steps], rest[out.custom.steps :]
                text = f"with_history(replay({text}, {self._steps(first)}), {self._source(out.custom.result)})"
            text = f"replay({text}, {self._steps(rest)})"
        else:
            text = self._source(out)
        self.lines.append(f"r{i} = {text}")
        return f"r{i}"

    def _steps(self, steps: tuple[Step, ...]) -> str:
        if not self.region.symbols or not any(symbols_in(s.args) for s in steps):
            return self._constant(steps)
        made = (f"Step({self._constant(s.op)}, {self._text(s.args)}, {s.recorded})" for s in steps)
        return f"({', '.join(made)},)"

    # -- symbols -----------------------------------------------------------------------------------------------
    def _read_symbols(self, inputs: list[str]) -> None:
        """Source that reads the symbols that results or the backward need into local variables."""
        region = self.region
        if not region.symbols:
            return
        used = {s for o in region.outputs for s in _symbols_of(o)}
        used |= {s for g in region.graph_inputs if isinstance(g, FloatInput) for s in symbols_in(g.expression)}
        if region.backward is not None:
            used |= symbols_in(region.backward.specs) | set(region.backward.symbols)
        for s, source in region.symbols.items():
            if s in used:
                self.lines.append(f"{s.name} = {source.text(inputs[source.input])}")

    def _text(self, value: Any) -> str:
        """An expression for a value whose parts may be expressions of symbols."""
        if isinstance(value, Expr):
            return to_python(value)
        if isinstance(value, TensorSpec):
            self.env["TensorSpec"] = TensorSpec
            rest = f"{self._constant(value.dtype)}, {self._text(value.strides)}, {self._constant(value.device)}"
            return f"TensorSpec({self._text(value.shape)}, {rest})"
        if type(value) is tuple and value:
            return f"({', '.join(map(self._text, value))},)"
        if type(value) is list:
            return f"[{', '.join(map(self._text, value))}]"
        return self._constant(value)

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.env)}"
        self.env[name] = value
        return name

    def _source(self, out: FromInput | Computed) -> str:
        return f"a{out.index}" if isinstance(out, FromInput) else f"o[{self.lead + out.index}]"


def _symbols_of(out: Output) -> frozenset[Sym]:
    if isinstance(out, Derived):
        return symbols_in([s.args for s in out.steps])
    return symbols_in(out.value) if isinstance(out, Literal) else frozenset()


def _n_computed(region: Region) -> int:
    sources = [o.source if isinstance(o, Derived) else o for o in region.outputs]
    sources += [o.custom.result for o in region.outputs if isinstance(o, Derived) and o.custom is not None]
    return 1 + max((s.index for s in sources if isinstance(s, Computed)), default=-1)
