"""Tensors under capture: inputs become placeholders, calls become nodes, and both run on fakes.

Owns `Modes` too: the program's modes of gradients, inference and autocast, whose switches are nodes, and regions that forbid uncaptured
calls of compiled functions.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import numpy as np

import eager
from dynamo.guards.program import TENSOR_MASK, meta_word
from dynamo.guards.sources import ConstSource, DictItemSource, Source
from dynamo.policy import callees
from dynamo.recording.failing_calls import is_handled
from dynamo.recording.op_errors import error_in_eager
from dynamo.report import causes
from dynamo.report.errors import CaptureError, Steering, Unsupported, describe
from dynamo.values.base import CONSTANT_TYPES, Constant
from dynamo.values.builtin_subclasses import value_of_scalar
from dynamo.values.mappings import DictValue
from dynamo.values.protocols import DataDependence, Machine, NotConstant, Raised, Value
from dynamo.values.sequences import ListValue, RangeValue, SliceValue, TupleValue
from dynamo.values.symbolic import SymbolicValue
from dynamo.values.tensor import TensorValue
from dynamo.world.array_memory import InputMemory
from dynamo.world.wrap import is_named_tuple, refuse_fakes
from eager import Tensor
from eager import _native as eager_native
from eager.base import dtypes, logs, precision, thread_state
from eager.base.spec import DataDependentError, TensorSpec, fake, fake_like, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch.calls import Mode
from eager.optable.registry import Kind
from eager.optable.table import Op
from eager.tape.inplace import check_may_write
from eager.tape.node import attach
from fxir.ir.node import Node, NodeInfo, walk_tree
from fxir.symbols.shapes import plain


# -- the modes of the program ---------------------------------------------------------------------------------------
class Modes:
    """Owns the modes of the captured program at the captured instruction, and the modes at the beginning.

    grad: gradients are recorded. autocast: number of the settings. forbidden: calls of compiled functions that are not
    captured raise. switches_inference: the program switches inference mode. ambient: the thread's state word at the
    beginning.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.grad = self.initial_grad = eager_native.grad_enabled()
        self.inference = self.initial_inference = eager_native.inference_mode()
        self.autocast = self.initial_autocast = thread_state.autocast_number()
        self.forbidden = self.initial_forbidden = causes.FORBIDDEN.value
        self.switches_inference = False
        self.ambient = eager_native.mode_depth() >> thread_state.SHIFT

    def set_grad(self, on: bool) -> bool:
        """Switch the recording of gradients; return the former setting."""
        before = self.grad
        self.cap.effects.change(None)
        node = self.cap.graphs.graph.call_function(eager_native.set_grad_enabled, (on,), info=NodeInfo(None, self.cap.origin))
        self.cap.recorder.effect_nodes.add(node)
        eager_native.set_grad_enabled(on)
        self.grad = on
        return before

    def set_inference(self, on: bool) -> bool:
        """Switch inference mode; return the former setting.

        The graph runs outside of the mode; each output becomes an inference tensor if its fake is one.
        """
        before = self.inference
        self.cap.effects.change(None)
        self.cap.graphs.refuse_later("switches inference mode")
        self.switches_inference = self.switches_inference or on != before
        eager_native.set_inference_mode(on)
        self.inference = on
        return before

    def switch_autocast(self, number: int) -> int:
        """Open or close a block of autocast; return the number of the former settings."""
        before = self.autocast
        self.cap.effects.change(None)
        node = self.cap.graphs.graph.call_function(thread_state.switch_autocast, (number,), info=NodeInfo(None, self.cap.origin))
        self.cap.recorder.effect_nodes.add(node)
        thread_state.switch_autocast(number)
        self.autocast = number
        return before

    @contextmanager
    def entered(self, grad: bool, autocast: int | None = None) -> Iterator[None]:
        """A context for code that runs with other modes, in the capture and in the thread.

        autocast: None for the present settings.
        """
        before = self.grad, self.autocast
        self._enter(grad, self.autocast if autocast is None else autocast)
        try:
            yield
        finally:
            self._enter(*before)

    def _enter(self, grad: bool, autocast: int) -> None:
        self.grad, self.autocast = grad, autocast
        eager_native.set_grad_enabled(grad)
        thread_state.switch_autocast(autocast)

    def leave(self) -> None:
        """Restore the modes of the thread at the beginning of the capture."""
        eager_native.set_grad_enabled(self.initial_grad)
        eager_native.set_inference_mode(self.initial_inference)
        if thread_state.autocast_number() != self.initial_autocast:
            thread_state.switch_autocast(self.initial_autocast)


# -- calls ----------------------------------------------------------------------------------------------------------
DEFAULT_DTYPE: Final = DictItemSource(ConstSource(vars(dtypes), "eager.base.dtypes"), "_default")
_PRECISION: Final = ConstSource(vars(precision), "eager.base.precision")
_ARITHMETIC: Final = tuple(DictItemSource(_PRECISION, name) for name in ("_precision", "_deterministic"))
# operator function -> the methods of Tensor that it runs
_OPERATOR_METHODS: Final[dict[Any, tuple[str, ...]]] = {
    fn: tuple(m for m in (f"__{name.strip('_')}__", f"__r{name.strip('_')}__") if hasattr(Tensor, m))
    for name, fn in vars(operator).items()
    if type(fn) is types.BuiltinFunctionType and not name.startswith("__")
}
_SOURCELESS: Final = frozenset({Kind.CREATION, Kind.RANDOM, Kind.EFFECT})


class FakeMode(Mode):
    """Ops return fakes for any arguments: nothing is computed, and no generator advances.

    effectful: an op with an effect ran (a generator would have advanced). fallible: an op ran that may raise because of
    its data.
    """

    records_graph = True

    effectful: bool = False
    fallible: bool = False
    # made: a data-dependent size was made. The results of equal calls have equal sizes: `_sizes` holds their specs, by op and arguments.
    made: bool = False

    def __init__(self, data: DataDependence | None = None) -> None:
        """data: makes data-dependent sizes; without it, an op that returns one raises."""
        super().__init__()
        self._data = data
        self._sizes: dict[Any, tuple[Any, Any]] = {}

    def _data_dependent(self, op: Op, args: tuple[Any, ...]) -> Any:
        fresh = None if self._data is None else self._data.fresh_size()
        if fresh is None:
            raise DataDependentError(f"{op.name}: the shape of its result depends on the data")
        assert op.dynamic_output is not None
        self.made = True
        key = op.name, tuple((id(a), a._version) if isinstance(a, Tensor) else a for a in args)
        if key not in self._sizes:
            self._sizes[key] = args, op.dynamic_output(fresh, *args)
        return _fakes(self._sizes[key][1])

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.fallible:
            self.fallible = True
        elif op.kind is Kind.EFFECT:
            self.effectful = True
        if op.dynamic_output:
            return self._data_dependent(op, args)
        if op.kind in _SOURCELESS:
            return _fakes(op.infer(*args))
        mapped = tuple(_faked(a) for a in args)
        if op.decompose is not None and op.meta is None and op.kind is not Kind.POINTWISE and not op.mutates:
            with self:
                return op.decompose(*mapped)
        return op.execute(mapped)


def _faked(arg: Any) -> Any:
    if isinstance(arg, Tensor):
        return arg if arg.is_fake else fake_like(arg, False)
    if isinstance(arg, tuple | list) and any(isinstance(a, Tensor) for a in arg):
        return type(arg)(_faked(a) for a in arg)
    return arg


def _history(real: Tensor, source: Source) -> Any:
    """The grad_fn of an input.

    Raises: Unsupported if the read raises: the base of a view made under no_grad was written.
    """
    try:
        return real._grad_fn if real._autograd is None else real.grad_fn
    except RuntimeError as error:
        raise Unsupported(causes.AUTOGRAD, f"{source.name}: {error}") from None


def _fakes(specs: Any) -> Any:
    return fake(specs) if isinstance(specs, TensorSpec) else tuple(fake(s) for s in specs)


class Recorder:
    """Owns the inputs of the graph, the fakes of its tensors, and the effects of its calls.

    inputs: tensors from outside, each a placeholder. fakes: the value of each fake, by its id. written: inputs that the
    graph writes to. became: tensors that took the geometry of a view of themselves in place. effect_nodes: nodes that
    run even if no node reads them. fallible: calls that may raise because of their data, each with an output that shows
    that the call ran. may_refuse: the graph has such a call. is_refusal_handled: a handler of the program covers such a
    call. uses_generators: a call draws from a default generator. uses_cuda: a tensor of the graph is on a CUDA device.
    transforming: a function transform is running, and its modes are active.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.inputs: list[TensorValue] = []
        self.fakes: dict[int, TensorValue] = {}
        self.mode = FakeMode(cap.data)
        self._shapes = cap.symbols.shapes
        self.written: list[TensorValue] = []
        self._memory: InputMemory | None = None  # since the first write
        self.became: list[TensorValue] = []
        self.effect_nodes: set[Node] = set()
        self.fallible: dict[Node, Node] = {}
        self.may_refuse = False
        self.uses_generators = False
        self.uses_cuda = False
        self.is_refusal_handled = False
        self.transforming = False
        self._alike = False

    def release(self) -> None:
        """Drop the program's tensors."""
        self.inputs.clear()
        self._memory = None
        self.fakes.clear()

    # -- inputs ------------------------------------------------------------------------------------------------
    def wrap_tensor(self, real: Tensor, source: Source) -> TensorValue:
        """A placeholder for a tensor from outside, guarded by its metadata (the epoch guards a parameter)."""
        refuse_fakes(real)
        if self.writes_inputs:  # arrays of numpy may share memory between storages
            other = self._memory_of_inputs().shared_with(real)
            if other is not None:
                raise Unsupported(causes.ALIASED_INPUTS, f"{other.describe()} shares memory with {source.name}")
        history = _history(real, source)
        spec = self.cap.symbols.spec(real, source)
        if spec is None:
            self.cap.world.guard("tensor", source, type(real), meta_word(real), TENSOR_MASK, tuple(real.shape), tuple(real.stride()))
            stand_in = fake_like(real)
        else:
            self.cap.symbols.guard(real, source, spec, TENSOR_MASK)
            stand_in = fake(spec, real.requires_grad)
        stand_in._is_inference = real.is_inference()
        if history is not None:
            attach([stand_in], [fake_like(stand_in, True)], lambda gradients: gradients, "Input")
        name = _placeholder_name(source)
        info = NodeInfo(self.held_specs(stand_in), self.cap.origin, isinstance(source, ConstSource))
        if self.inputs:
            with self.cap.graphs.main.inserting_after(self.inputs[-1].node):
                node = self.cap.graphs.main.placeholder(name, info=info)
        else:
            with self.cap.graphs.at_start():
                node = self.cap.graphs.main.placeholder(name, info=info)
        value = TensorValue(node, stand_in, source, real)
        self.uses_cuda = self.uses_cuda or stand_in.is_cuda
        self.inputs.append(value)
        self.fakes[id(stand_in)] = value
        return value

    def _memory_of_inputs(self) -> InputMemory:
        if self._memory is None:
            self._memory = InputMemory()
        self._memory.see(self.inputs)
        return self._memory

    def held_specs(self, result: Any) -> Any:
        """The specs of a result as a graph holds them."""
        found = _specs(result)
        return plain(found) if self._shapes.symbols else found

    # -- calls -------------------------------------------------------------------------------------------------
    def call(self, fn: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """fn(*args, **kwargs) as a node. A custom op is recorded as its overload, as torch does."""
        for name in _OPERATOR_METHODS.get(fn, ()) if type(fn) is types.BuiltinFunctionType else ():
            if self.replaced_in_tensor(name, Tensor) is not None:
                raise Unsupported(causes.TENSOR_ATTRIBUTE, f"Tensor.{name}, which the program has replaced")
        fn = getattr(fn, "_opoverload", None) or fn
        return self._record("call_function", fn, args, kwargs, fn)

    def replaced_in_tensor(self, name: str, cls: type) -> Any | None:
        """The attribute `name` that the program has put into Tensor's class; None for an attribute of this library.

        Guarded.
        """
        raw = self.cap.classes.lookup(cls, name)
        return raw if callees.is_of_program(raw) else None

    def method(self, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """args[0].name(*args[1:], **kwargs) as a node."""

        def run(x: Any, *rest: Any, **named: Any) -> Any:
            return getattr(x, name)(*rest, **named)

        return self._record("call_method", name, args, kwargs, run)

    def _record(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value], run: Callable[..., Any]) -> Value:
        both = [self._argument(a) for a in args]
        named = {k: self._argument(v) for k, v in kwargs.items()}
        given = [f for _, f in both], {k: f for k, (_, f) in named.items()}
        used = walk_tree(given, Tensor)
        before = [t._version for t in used]
        self.mode.effectful = self.mode.made = self.mode.fallible = False
        try:
            result = self._run(run, *given, who=str(getattr(target, "__name__", target)))
        except (Raised, Unsupported) as error:
            if self._shapes.unbacked.symbols and not self._alike:
                return self._record_alike(op, target, args, kwargs, run)
            if isinstance(error, Unsupported):
                raise
            if not any(isinstance(self.cap.realize(v), SymbolicValue) for v in (*args, *kwargs.values())):
                raise
            # The number may cause the error: record the call with fixed numbers, and see whether it still raises.
            plainly = [self._fixed(a) for a in args]
            return self._record(op, target, plainly, {k: self._fixed(v) for k, v in kwargs.items()}, run)
        outputs = walk_tree(result, Tensor)
        if not any(map(_is_inexact, used)) and (not used or any(map(_is_inexact, outputs))):
            self.depend_on_defaults()
        written = [t for t, v in zip(used, before, strict=True) if t._version != v]
        if written:
            self._wrote(written)
        self.may_refuse = self.may_refuse or self.mode.fallible
        self.uses_generators = self.uses_generators or self.mode.effectful
        if self.mode.fallible and not self.is_refusal_handled and is_handled(self.cap.frames.running):
            self.is_refusal_handled = True
            self._refuse_handled_write()
        effectful, made = bool(written) or self.mode.effectful, self.mode.made
        fallible = self.mode.fallible and not (self.cap.graphs.levels or self.transforming)
        showing = [*outputs, *written]  # each of these shows that the call ran
        if fallible and not showing:
            detail = f"{getattr(target, '__name__', target)}: it may raise because of its data, and returns no tensor"
            raise Unsupported(causes.UNKNOWN_CALL, detail)
        if not effectful and not outputs:
            return self._constant_result(result, target)
        nodes = tuple(n for n, _ in both), {k: n for k, (n, _) in named.items()}
        node = self.cap.graphs.graph.create_node(op, target, *nodes, info=NodeInfo(None, self.cap.origin))
        if effectful:
            self.cap.effects.change(None)
            self.effect_nodes.add(node)
        if made:
            self.cap.data.note_call(node)
        value = self._result(result, node) if outputs else self._constant_result(result, target)
        if fallible:
            self.fallible[node] = next((self.fakes[id(t)].node for t in showing if id(t) in self.fakes), node)
        return value

    def _record_alike(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value], run: Callable[..., Any]) -> Value:
        """Record the call under the assumption that data-dependent sizes are equal wherever the call requires it."""
        self._alike = True
        try:
            return self._record(op, target, args, kwargs, run)
        finally:
            self._alike = False

    def _constant_result(self, result: Any, target: Any) -> Value:
        if type(result) in CONSTANT_TYPES or isinstance(result, tuple | list | eager.Size | SymInt | SymFloat):
            return self.cap.world.wrap_new(result)
        raise Unsupported(causes.UNKNOWN_CALL, f"{getattr(target, '__name__', target)}: it returns a {type(result).__name__}")

    def _run(self, run: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], who: str) -> Any:
        try:
            with nullcontext() if self.transforming else self.mode, self._shapes.attempt(), self._shapes.unbacked.assuming(self._alike):
                return run(*args, **kwargs)
        except DataDependentError as error:
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{who}: {error}") from None
        except NotImplementedError as error:
            raise Unsupported(causes.UNKNOWN_CALL, f"{who}: {error}") from None
        except Exception as error:  # noqa: BLE001 - raised or reported below
            failure: Exception = error
        if isinstance(failure, RuntimeError) and self.cap.modes.grad:
            self._refuse_other_history((args, kwargs))
        # the error may come from the assumption that data-dependent sizes are at least 2
        unchecked = self.transforming or self.cap.graphs.levels or self.mode.made
        found: Exception | None = None
        try:
            found = failure if unchecked else error_in_eager(run, args, kwargs, failure)
            if found is None:
                text = f"{who}: its shape rule raises {describe(failure)}, and the call itself does not"
                logs.warn_once(f"shape-rule {who}", f"compile: {text} (a bug of the compiler); the call runs outside the graph")
                raise Unsupported(causes.SHAPE_RULE, text) from failure
            raise Raised(self.cap.exceptions.with_context(self.cap.exceptions.like(found))) from found
        finally:  # their tracebacks hold these frames, and through them all objects of the program
            del failure, found

    def _refuse_other_history(self, given: Any) -> None:
        """Break the graph if eager forbids a write to an input for another reason than to its fake: the call itself
        must then raise the error.
        """
        storages = {id(t.untyped_storage()) for t in walk_tree(given, Tensor)}
        for v in self.inputs:
            if id(v.fake.untyped_storage()) in storages and _why_forbidden(v.real) != _why_forbidden(v.fake):
                _refuse_forbidden(v)

    def transform(self, run: Callable[[], Any]) -> tuple[Any, bool]:
        """(the result of run(), a function transform of eager, on fakes; whether it had an effect).

        Its errors are the program's.
        """
        outer, self.transforming = self.transforming, True
        self.mode.effectful = self.mode.effectful and outer
        try:
            with nullcontext() if outer else self.mode:
                return run(), self.mode.effectful
        except (CaptureError, NotConstant, Steering):
            raise
        except DataDependentError as error:
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"in a function transform: {error}") from None
        except NotImplementedError as error:
            raise Unsupported(causes.UNKNOWN_CALL, f"in a function transform: {error}") from None
        except Exception as error:
            raise Raised(self.cap.exceptions.with_context(self.cap.exceptions.like(error))) from error
        finally:
            self.transforming = outer

    def depend_on_defaults(self) -> None:
        """Guard the default dtype: a call without floating tensors may have made one."""
        self.cap.world.guard("is", DEFAULT_DTYPE, eager.get_default_dtype())

    def depend_on_arithmetic(self) -> None:
        """Guard the settings of `eager.base.precision`: code for CUDA depends on them."""
        for source in _ARITHMETIC:
            self.cap.world.guard("is", source, vars(precision)[source.key])

    def effect(self, fn: Any, args: list[Value]) -> None:
        """Record fn(*args) as a node that runs for its effect on the arguments."""
        both = [self._argument(a) for a in args]
        self._run(fn, *([f for _, f in both], {}), who=fn.__name__)
        node = self.cap.graphs.graph.call_function(fn, tuple(n for n, _ in both), info=NodeInfo(None, self.cap.origin))
        self.cap.effects.change(None)
        self.effect_nodes.add(node)

    def arguments(self, args: list[Value], kwargs: dict[str, Value]) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """(args and kwargs for a node, args and kwargs for a run on fakes)"""
        both = [self._argument(a) for a in args]
        named = {k: self._argument(v) for k, v in kwargs.items()}
        nodes = tuple(n for n, _ in both), {k: n for k, (n, _) in named.items()}
        return nodes, (tuple(f for _, f in both), {k: f for k, (_, f) in named.items()})

    def part(self, result: Tensor, node: Node, i: int) -> TensorValue:
        """Item i of the result of a node."""
        return self._tensor_result(result, self.cap.graphs.graph.call_function(operator.getitem, (node, i)))

    def _wrote(self, written: list[Tensor]) -> None:
        if self.cap.graphs.levels:
            self.cap.graphs.levels[-1].refuse_writes(written)
        self.cap.items.refuse_write(written)
        storages = {id(t.untyped_storage()) for t in written}
        for v in self.became:
            if v.became is not None and v.fake.requires_grad and id(v.fake.untyped_storage()) in storages:
                raise Unsupported(causes.AUTOGRAD, f"a write to {v.describe()}, whose shape was changed in place before")
        memory = self._memory_of_inputs()
        targets = memory.over(written)
        if not targets:
            return
        other = memory.sharing(targets)
        if other is not None:
            raise Unsupported(causes.ALIASED_INPUTS, f"{targets[0].describe()} shares memory with {other.describe()}")
        if self.cap.modes.grad:
            for v in targets:
                _refuse_forbidden(v)
        self.written += [v for v in targets if v not in self.written]
        self._refuse_handled_write()

    @property
    def writes_inputs(self) -> bool:
        return bool(self.written)

    def _refuse_handled_write(self) -> None:
        """Break the graph: a program that handles an error of a call runs again without the graph, so the graph must
        write to no input.
        """
        if self.is_refusal_handled and self.writes_inputs:
            detail = "a write to an input of the graph, and a handler around a call that may raise because of its data"
            raise Unsupported(causes.REFUSAL, detail)

    def _fixed(self, value: Value) -> Value:
        value = self.cap.realize(value)
        return Constant(value.value) if isinstance(value, SymbolicValue) else value

    def _argument(self, value: Value) -> tuple[Any, Any]:
        """(the argument of the node, the argument of the run on fakes)"""
        value = self.cap.realize(value)
        if isinstance(value, TensorValue):
            return self.cap.graphs.node_of(value), value.fake
        if isinstance(value, SymbolicValue):
            return plain(value.symbolic), value.symbolic
        if not isinstance(value, Constant):
            value = value_of_scalar(self.cap, value)
        if isinstance(value, TupleValue | ListValue):
            both = [self._argument(v) for v in value.items]
            nodes, fakes = [n for n, _ in both], [f for _, f in both]
            cls = value.cls
            if is_named_tuple(cls):
                return cls(*nodes), cls(*fakes)
            return (nodes, fakes) if cls is list else (tuple(nodes), tuple(fakes))
        if isinstance(value, SliceValue):
            parts = [self._argument(p) for p in value.parts]
            return slice(*(n for n, _ in parts)), slice(*(f for _, f in parts))
        if isinstance(value, DictValue):
            items = {self.cap.realize(k).as_constant(): self._argument(v) for k, v in value.entries.values()}
            return {k: n for k, (n, _) in items.items()}, {k: f for k, (_, f) in items.items()}
        if isinstance(value, RangeValue):
            return tuple(value.value), tuple(value.value)
        if self.cap.classes.has(value.python_type(), "__index__") and not isinstance(value, Constant):
            index = self.cap.operators.index_constant(value)
            return index, index
        return self._plain_argument(value)

    def _plain_argument(self, value: Value) -> tuple[Any, Any]:
        try:
            constant = value.as_constant()
            if isinstance(constant, np.generic):
                constant = constant.item()  # to a tensor they are numbers like Python's
        except NotConstant:
            real = getattr(value, "real", None)
            if isinstance(real, eager.Generator):
                raise Unsupported(causes.UNKNOWN_CALL, "a tensor function with a Generator argument") from None
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as an argument of a tensor function") from None
        return constant, constant

    # -- results -----------------------------------------------------------------------------------------------
    def _result(self, result: Any, node: Node) -> Value:
        if isinstance(result, Tensor):
            return self._tensor_result(result, node)
        node.info = NodeInfo(self.held_specs(result), self.cap.origin)
        if isinstance(result, dict):
            made = DictValue()
            for key, item in result.items():
                if type(key) not in CONSTANT_TYPES:
                    raise Unsupported(causes.UNKNOWN_CALL, f"a call that returns a dict with a key of type {type(key).__name__}")
                made.entries[self.cap.operators.hash_key(Constant(key))] = Constant(key), self._part(item, node, key)
            return made
        items = [self._part(item, node, i) for i, item in enumerate(result)]
        return ListValue(items) if type(result) is list else TupleValue(items, None, type(result))

    def _part(self, item: Any, node: Node, key: Any) -> Value:
        """The value at an index or key of the result of a node."""
        if isinstance(item, Tensor | tuple | list | dict) and walk_tree(item, Tensor):
            return self._result(item, self.cap.graphs.graph.call_function(operator.getitem, (node, key)))
        return Constant(item) if type(item) in CONSTANT_TYPES else self.cap.world.wrap_static(item)

    def _tensor_result(self, result: Tensor, node: Node) -> TensorValue:
        known = self.fakes.get(id(result))
        if known is not None:  # an in-place op, or an op that returned its argument
            node.info = NodeInfo(self.held_specs(result), self.cap.origin)
            return known
        if not result.is_fake:
            result = fake_like(result)
        node.info = NodeInfo(self.held_specs(result), self.cap.origin)
        value = TensorValue(node, result)
        self.uses_cuda = self.uses_cuda or result.is_cuda
        if self.mode.made:
            self.cap.data.place_symbols(node, result)
        if self.cap.graphs.levels:
            value.born = self.cap.graphs.levels[0].step
        self.fakes[id(result)] = value
        return value

    def default_dtype(self) -> Value:
        """eager.get_default_dtype(), guarded."""
        found = eager.get_default_dtype()
        self.depend_on_defaults()
        return Constant(found)


def _refuse_forbidden(v: TensorValue) -> None:
    """Break the graph at a write that eager forbids because of the base of a view: a fake has no base."""
    forbidden = _why_forbidden(v.real)
    if forbidden is not None:
        raise Unsupported(causes.AUTOGRAD, f"a write to {v.describe()}: {forbidden}")


def _why_forbidden(t: Tensor | None) -> str | None:
    """The message of the error that a recorded write to a tensor raises, or None."""
    try:
        if t is not None:
            check_may_write(t)
    except RuntimeError as error:
        return str(error)
    return None


def _is_inexact(t: Tensor) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


def _placeholder_name(source: Source) -> str:
    if isinstance(source, ConstSource):
        return "p_" + source.label.replace(".", "_")
    return source.name


def _specs(result: Any) -> Any:
    if isinstance(result, Tensor):
        return spec_of(result)
    parts = result.values() if isinstance(result, dict) else result
    return tuple(_specs(r) for r in parts if isinstance(r, Tensor | tuple | list | dict))
