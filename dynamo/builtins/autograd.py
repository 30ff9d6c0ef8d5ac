"""autograd inside captured code: custom Functions, autograd.grad, requires_grad_().

A custom Function is followed in place, with its ctx as a value; its backward becomes a separate graph, and a node of
the graph attaches it to the results. Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from dynamo.builtins.registry import Args, Kwargs
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, is_none
from dynamo.values.objects import BuiltinMethod, ClassValue
from dynamo.values.protocols import Machine, Raised, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.values.writer import Writer
from eager import Tensor
from eager.autograd.function import ONCE, Function, FunctionCtx, attach_outputs, once_differentiable
from eager.base import thread_state
from eager.base.records import dataclass
from eager.base.spec import fake, spec_of
from eager.tape import engine
from eager.tape.node import Node, edge_of
from fxir.ir.graph_module import GraphModule

_MOST_PATTERNS: Final = 3  # differentiable outputs of a function whose backward depends on which gradients are missing


class ContextValue(Value):
    """The `ctx` of a custom function that the capture follows."""

    def __init__(self, cls: type[Function], needs: Sequence[bool], born: int) -> None:
        self.cls = cls
        self.born = born
        self.attributes: dict[str, Value] = {"needs_input_grad": TupleValue([Constant(n) for n in needs])}
        self.saved: list[Value] = []
        self.constant_outputs: list[Value] = []
        self.materialize = True

    def python_type(self) -> type:
        return self.cls._backward_cls

    def describe(self) -> str:
        return f"the ctx of {self.cls.__name__}"

    def truth(self, cap: Machine) -> bool:
        return True

    def getattr(self, cap: Machine, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        if name == "saved_tensors":
            return TupleValue(list(self.saved))
        if name in _METHODS:
            return BuiltinMethod(self, name)
        if hasattr(self.python_type(), name) or name in _OWN:
            raise Unsupported(causes.AUTOGRAD, f"{self.describe()}.{name}")
        return cap.raise_(AttributeError, f"'{self.python_type().__name__}' object has no attribute '{name}'")

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        if name in _OWN:
            raise Unsupported(causes.AUTOGRAD, f"{self.describe()}.{name} = ...")
        cap.effects.change(self)
        self.attributes[name] = value

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name not in _METHODS or kwargs:
            return super().call_method(cap, name, args, kwargs)
        cap.effects.change(self)
        given = [cap.realize(a) for a in args]
        if name == "save_for_backward":
            if not all(isinstance(v, TensorValue) or v is NONE or is_none(v) for v in given):
                raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} saves a value that is not a tensor")
            self.saved = given
        elif name == "mark_non_differentiable":
            self.constant_outputs = given
        elif name == "set_materialize_grads":
            self.materialize = given[0].truth(cap)
        elif name != "save_for_forward":
            raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} calls ctx.{name}()")
        return NONE

    def reconstruct(self, cg: Writer) -> str:
        cg.impossible(self, f"{self.describe()} is used outside the function")


_OWN: Final = frozenset({*vars(FunctionCtx), *Node.__slots__, "saved_tensors", "_saved", "_released", "_positions"}) - {"needs_input_grad"}
_METHODS: Final = frozenset({"save_for_backward", "save_for_forward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads"})


@dataclass(frozen=True, slots=True)
class BackwardGraph:
    """A graph of one backward pass.

    Inputs: the gradients of the outputs `grads`, then the kept tensors `kept` (positions). Outputs: for each argument
    of forward, its gradient or None.
    """

    gm: GraphModule
    grads: tuple[int, ...]
    kept: tuple[int, ...]


class WithBackward:
    """A node's target: (tensor arguments, outputs, kept tensors) -> outputs with a custom backward.

    graphs: a graph for each set of outputs (a bit mask) that receive gradients. saved: number of kept tensors whose
    writes autograd detects. positions: of the tensors among the arguments. constant: outputs without a history.
    """

    def __init__(self, cls: type[Function], needs: tuple[bool, ...], positions: tuple[int, ...], constant: frozenset[int],
                 materialize: bool, saved: int, graphs: dict[int, BackwardGraph]) -> None:  # fmt: skip
        self.__name__ = f"{cls.__name__}.apply"
        self.needs = needs
        self.positions = positions
        self.constant = constant
        self.materialize = materialize
        self.saved = saved
        self.graphs = graphs
        backward = self._backward
        run = once_differentiable(backward) if is_once_differentiable(cls) else backward
        self.function: Any = type(cls.__name__, (Function,), {"backward": staticmethod(run)})

    def __call__(self, inputs: Sequence[Tensor], outputs: Sequence[Any], kept: Sequence[Any]) -> tuple[Any, ...]:
        ctx = self.function._backward_cls([edge_of(t) for t in inputs], self.positions)
        ctx.needs_input_grad = self.needs
        ctx.materialize_grads = self.materialize
        ctx.non_differentiable = tuple(outputs[i] for i in self.constant)
        ctx.to_save = tuple(kept[: self.saved])
        ctx.kept = tuple(kept[self.saved :])
        return tuple(attach_outputs(ctx, tuple(inputs), list(outputs)))

    def _backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        present = sum(1 << i for i, g in enumerate(grads) if g is not None)
        graph = self.graphs[present]
        kept = (*ctx.saved_tensors, *ctx.kept)
        before = thread_state.set_autocast(None)
        try:
            found: tuple[Any, ...] = graph.gm(*(grads[i] for i in graph.grads), *(kept[i] for i in graph.kept))
        finally:
            thread_state.set_autocast(before)
        return found


def is_once_differentiable(cls: type[Function]) -> bool:
    """Whether the backward of the class is marked once_differentiable: it cannot be differentiated again."""
    return bool(getattr(cls.backward, ONCE, False))


def _apply(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """cls.apply(*args)"""
    owner = cap.realize(args[0])
    if not isinstance(owner, ClassValue) or kwargs:
        raise Unsupported(causes.AUTOGRAD, "a custom Function applied with keyword arguments")
    return _Application(cap, owner, [cap.realize(a) for a in args[1:]]).run()


class _Application:
    """One call of a custom function."""

    def __init__(self, cap: Machine, owner: ClassValue, args: list[Value]) -> None:
        self.cap = cap
        self.owner = owner
        self.cls: type[Function] = owner.cls
        self.name = f"{owner.cls.__name__}.backward()"
        self.args = args
        self.tensors = {i: a for i, a in enumerate(args) if isinstance(a, TensorValue)}
        needs = [isinstance(a, TensorValue) and a.fake._requires_grad for a in args]
        self.recording = cap.modes.grad and any(needs)
        self.ctx = ContextValue(self.cls, needs, cap.steps)
        self.needs = tuple(needs)

    def run(self) -> Value:
        cap = self.cap
        result = self._forward()
        if not self.recording:
            return result
        if cap.recorder.transforming:
            raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} inside a function transform")
        single = not isinstance(result, TupleValue)
        outputs = [cap.realize(v) for v in result.items] if isinstance(result, TupleValue) else [result]
        self._check_outputs(outputs)
        attached = self._attach(outputs)
        return attached[0] if single else TupleValue(attached, None, result.python_type())

    def _forward(self) -> Value:
        cap, owner = self.cap, self.owner
        before = cap.modes.grad
        if before:
            cap.modes.set_grad(False)
        try:
            forward = cap.attributes.read(owner, "forward")
            if self.cls.has_setup_context():
                result = cap.realize(cap.call(forward, list(self.args), {}))
                cap.call(cap.attributes.read(owner, "setup_context"), [self.ctx, TupleValue(list(self.args)), result], {})
            else:
                result = cap.realize(cap.call(forward, [self.ctx, *self.args], {}))
        except Raised:
            if before:
                cap.modes.set_grad(True)
            raise
        if before:
            cap.modes.set_grad(True)
        return result

    def _check_outputs(self, outputs: list[Value]) -> None:
        """Refuse outputs that are not new tensors of the function: only eager supports them."""
        inputs = {id(t.fake) for t in self.tensors.values()}
        seen: set[int] = set()
        for y in outputs:
            if not isinstance(y, TensorValue):
                if not isinstance(y, Constant):
                    raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} returns a {y.python_type().__name__}")
                continue
            if id(y.fake) in inputs or id(y.fake) in seen or y.source is not None or y.fake._grad_fn is not None:
                raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} returns a tensor that it did not create")
            seen.add(id(y.fake))

    def _attach(self, outputs: list[Value]) -> list[Value]:
        cap = self.cap
        constant = frozenset(i for i, y in enumerate(outputs) if any(y is c for c in self.ctx.constant_outputs))
        kept: list[Any] = list(self.ctx.saved)
        graphs = {mask: self._backward(outputs, mask, kept) for mask in self._patterns(outputs, constant)}
        target = WithBackward(self.cls, self.needs, tuple(self.tensors), constant, self.ctx.materialize, len(self.ctx.saved), graphs)
        given: list[Value] = [ListValue(list(self.tensors.values())), ListValue(list(outputs)), ListValue(kept)]
        cap.recorder.effect(target, given)
        return outputs

    def _patterns(self, outputs: list[Value], constant: frozenset[int]) -> list[int]:
        """The sets of outputs that may receive gradients, as bit masks.

        With materialized gradients, the only set has all tensors.
        """
        tensors = {i: y for i, y in enumerate(outputs) if isinstance(y, TensorValue)}
        if self.ctx.materialize:
            return [sum(1 << i for i in tensors)]
        wanted = [i for i, y in tensors.items() if i not in constant and y.fake.dtype.category >= 2]
        if len(wanted) > _MOST_PATTERNS:
            raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} depends on which of {len(wanted)} gradients are missing")
        choices = product((False, True), repeat=len(wanted))
        return [mask for chosen in choices if (mask := sum(1 << i for i, c in zip(wanted, chosen, strict=True) if c))]

    def _backward(self, outputs: list[Value], mask: int, kept: list[Any]) -> BackwardGraph:
        """Follow backward with gradients for the outputs of `mask`; append the outside values that backward reads to
        `kept`.
        """
        cap = self.cap
        with cap.graphs.recording(self.name, False, later=True) as level:
            given: list[Value] = []
            for i, y in enumerate(outputs):
                spec = spec_of(y.fake) if isinstance(y, TensorValue) and mask >> i & 1 else None
                given.append(NONE if spec is None else level.add_input(cap, fake(spec), spec))
            result = cap.realize(cap.call(self._backward_function(), [self.ctx, *given], {}))
            found = [cap.realize(v) for v in result.items] if isinstance(result, TupleValue) else [result]
            gm = level.finish(tuple(self._gradient(i, g) for i, g in enumerate(self._trimmed(found))))
        places = []
        for value in level.captured:
            at = next((k for k, v in enumerate(kept) if v is value), None)
            places.append(len(kept) if at is None else at)
            if at is None:
                kept.append(value)
        return BackwardGraph(gm, tuple(i for i in range(len(outputs)) if mask >> i & 1), tuple(places))

    def _backward_function(self) -> Value:
        if self.cls.vjp is not Function.vjp or self.cls.backward is Function.backward:
            raise Unsupported(causes.AUTOGRAD, f"{self.cls.__name__} does not define backward()")
        found = self.cap.attributes.read(self.owner, "backward")
        if not is_once_differentiable(self.cls):
            return found
        inner = vars(self.cls.backward)["__wrapped__"]
        return self.cap.world.wrap_static(inner, self.name)

    def _trimmed(self, found: list[Value]) -> list[Value]:
        total = len(self.args)
        if len(found) > total and all(is_none(v) for v in found[total:]):
            found = found[:total]
        if len(found) != total:
            raise Unsupported(causes.AUTOGRAD, f"{self.name} returns {len(found)} gradients for {total} arguments")
        return found

    def _gradient(self, i: int, g: Value) -> Any:
        if is_none(g):
            return None
        if not isinstance(g, TensorValue) or i not in self.tensors:
            raise Unsupported(causes.AUTOGRAD, f"{self.name} returns a {g.python_type().__name__} for argument {i}")
        return self.cap.graphs.node_of(g)


# --- autograd.grad -----------------------------------------------------------------------------------------------


def _grad(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """autograd.grad(outputs, inputs, ...) if every node that it visits belongs to the graph."""
    if cap.recorder.transforming:
        raise Unsupported(causes.AUTOGRAD, "autograd.grad() inside a function transform")
    outputs = _tensors(cap, args[0] if args else kwargs.get("outputs", NONE))
    inputs = _tensors(cap, args[1] if len(args) > 1 else kwargs.get("inputs", NONE))
    _refuse_history(cap, outputs, inputs)
    return cap.recorder.call(engine.grad, args, kwargs)


def _tensors(cap: Machine, value: Value) -> list[TensorValue]:
    value = cap.realize(value)
    items = [cap.realize(v) for v in value.items] if isinstance(value, TupleValue | ListValue) else [value]
    tensors = [v for v in items if isinstance(v, TensorValue)]
    if len(tensors) != len(items):
        raise Unsupported(causes.AUTOGRAD, "autograd.grad() of a value that is not a tensor")
    return tensors


def _refuse_history(cap: Machine, outputs: list[TensorValue], inputs: list[TensorValue]) -> None:
    """Break the graph if the gradient would pass through a history or a hook from outside.

    Such histories and hooks exist only when the compiled function runs. They matter only if `inputs` contains a tensor
    from outside: a path to a tensor of the graph stays within the graph.
    """
    given = [t for t in inputs if any(t is v for v in cap.recorder.inputs)]
    if not given:
        return
    roots = [e[0] for v in outputs if (e := edge_of(v.fake)) is not None]
    reached = set(engine.reachable(roots)[1])
    for v in cap.recorder.inputs:
        edge = edge_of(v.fake) if v.real is not None else None
        if edge is None or edge[0] not in reached:
            continue
        if _has_hooks(v.real):
            raise Unsupported(causes.AUTOGRAD, f"autograd.grad() through {v.describe()}, which has hooks")
        if v.real.grad_fn is not None and any(t is not v for t in given):
            raise Unsupported(causes.AUTOGRAD, f"autograd.grad() through the history of {v.describe()}")


def _has_hooks(tensor: Any) -> bool:
    """Whether code runs when `tensor` receives a gradient. A node holds the hooks of the tensors that it computed."""
    meta, node = tensor._autograd, tensor.grad_fn
    of_node = node.tensor_hooks if node is not None else None
    return (meta is not None and bool(meta.hooks or meta.post_hooks)) or bool(of_node and of_node.get(tensor.output_nr))


ANSWERS[vars(Function)["apply"].__func__] = _apply
ANSWERS[engine.grad] = _grad
