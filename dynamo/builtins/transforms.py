"""Function transforms under capture: grad, vjp, jvp, vmap, jacobians; and functional_call.

A transform is called at capture with fakes, on a function that follows the user's: the computation of that function becomes a
separate graph, which sees the tensors of the transform as the user's function would. A node of the graph is then the same
transform of that graph. Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynamo.builtins.registry import Args, Kwargs, Row
from dynamo.policy.callees import ANSWER_RULES, ANSWERS
from dynamo.recording.nested_graphs import InGraph
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant, is_none
from dynamo.values.mappings import DictValue
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.symbolic import SymbolicValue
from dynamo.values.trees import map_tree, to_host
from dynamo.values.writer import Writer
from eager import Tensor, func
from eager import _native as eager_native
from eager.base.records import dataclass
from eager.base.spec import spec_of
from eager.nn import Module
from eager.nn.utils import stateless
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node, NodeInfo, walk_tree
from fxir.symbols.shapes import plain

_FACTORIES: Final = (func.grad, func.grad_and_value, func.vmap, func.jacrev, func.jacfwd, func.hessian)
_DIRECT: Final = (func.vjp, func.jvp)


# --- trees -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slot:
    """A placeholder for leaf `index` of a tree."""

    index: int


def _slots(tree: Any, kind: Any) -> tuple[Any, list[Any]]:
    """(the tree with slots for its leaves of `kind`, the leaves)."""
    found: list[Any] = []

    def take(leaf: Any) -> _Slot:
        found.append(leaf)
        return _Slot(len(found) - 1)

    return map_tree(tree, kind, take), found


# --- targets of nodes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Body:
    """One run of the transformed function.

    gm: takes the tensors of the function's arguments, then the captured tensors.
    """

    gm: GraphModule
    captured: tuple[int, ...]
    result: Any  # a tree of slots


class Transformed:
    """A node's target: (arguments, keyword arguments, captured tensors) -> the tensors and functions of the result.

    make: takes a function and returns the transformed function. bodies: one graph for each run of the function.
    """

    def __init__(self, make: Callable[[Any], Any], name: str) -> None:
        self.__name__ = name
        self.make = make
        self.bodies: list[_Body] = []

    def __call__(self, args: Sequence[Any], kwargs: dict[str, Any], captured: Sequence[Any]) -> list[Any]:
        runs = iter(self.bodies)

        def function(*inner: Any, **named: Any) -> Any:
            body = next(runs)
            outputs = body.gm(*walk_tree((inner, named), Tensor), *(captured[i] for i in body.captured))
            return map_tree(body.result, _Slot, lambda s: outputs[s.index])

        return walk_tree(self.make(function)(*args, **kwargs), (Tensor, types.FunctionType))


def call_result(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """A node's target: a call of a function that a transform returned."""
    return walk_tree(fn(*args, **kwargs), (Tensor, types.FunctionType))


# --- values --------------------------------------------------------------------------------------------------------


class TransformValue(Value):
    """A transformed function, not yet called."""

    def __init__(self, make: Callable[[Any], Any], name: str, function: Value) -> None:
        self.make = make
        self.name = name
        self.function = function

    def python_type(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"{self.name} of {self.function.describe()}"

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return transform(cap, self.make, self.name, self.function, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        return f"{cg.bind(self.make, self.name)}({cg.value(self.function)})"


class ResultFunction(Value):
    """A function that a transform returned: it exists in the graph only. fake: the function that runs on fakes."""

    def __init__(self, node: Node, fake: Callable[..., Any], born: int) -> None:
        self.node = node
        self.fake = fake
        self.born = born

    def python_type(self) -> type:
        return types.FunctionType

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        nodes, fakes = cap.recorder.arguments(args, kwargs)
        result, _ = cap.recorder.transform(lambda: self.fake(*fakes[0], **fakes[1]))
        node = cap.graphs.graph.call_function(call_result, (cap.graphs.node_of(self), *nodes), info=NodeInfo(None, cap.origin))
        return _result(cap, result, node)

    def reconstruct(self, cg: Writer) -> str:
        cg.impossible(self, "a function that a transform returned is used outside the graph")


def _result(cap: Machine, tree: Any, node: Node) -> Value:
    """The value of a node's result. The node returns a list of the leaves of `tree`."""
    shape, leaves = _slots(tree, (Tensor, types.FunctionType))
    values: list[Value] = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            values.append(cap.recorder.part(leaf, node, i))
        else:
            values.append(ResultFunction(cap.graphs.graph.call_function(_item, (node, i)), leaf, cap.steps))
    return _value(cap, shape, values)


def _item(items: Sequence[Any], i: int) -> Any:
    return items[i]


def _value(cap: Machine, tree: Any, leaves: Sequence[Value]) -> Value:
    """A tree of slots and constants as a value."""
    if isinstance(tree, _Slot):
        return leaves[tree.index]
    if isinstance(tree, tuple):
        return TupleValue([_value(cap, item, leaves) for item in tree], None, type(tree))
    if isinstance(tree, list):
        return ListValue([_value(cap, item, leaves) for item in tree])
    if isinstance(tree, dict):
        made = DictValue()
        made.update(cap, ((cap.world.wrap_new(k), _value(cap, v, leaves)) for k, v in tree.items()))
        return made
    return cap.world.wrap_new(tree)


# --- calls ---------------------------------------------------------------------------------------------------------


def transform(
    cap: Machine, make: Callable[[Any], Any], name: str, function: Value, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """make(function)(*args, **kwargs) as a node."""
    if cap.graphs.frozen_since is not None:
        cap.graphs.refuse_later(f"calls {name}")
    target = Transformed(make, name)
    captured: list[InGraph | SymbolicValue] = []
    nodes, fakes = cap.recorder.arguments(args, kwargs)

    def follow(*inner: Any, **named: Any) -> Any:
        return _follow(cap, target, function, captured, inner, named)

    result, is_effectful = cap.recorder.transform(lambda: make(follow)(*fakes[0], **fakes[1]))
    given = [plain(v.symbolic) if isinstance(v, SymbolicValue) else cap.graphs.node_of(v) for v in captured]
    node = cap.graphs.graph.call_function(target, (*nodes, given), info=NodeInfo(None, cap.origin))
    if is_effectful:
        cap.effects.change(None)
        cap.recorder.effect_nodes.add(node)
    return _result(cap, result, node)


def _follow(
    cap: Machine, target: Transformed, function: Value, captured: list[InGraph | SymbolicValue], inner: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:  # fmt: skip
    """Follow `function` on the tensors of the transform, and record it into a graph.

    Returns its result, on the same tensors.
    """
    with cap.graphs.recording(target.__name__, eager_native.grad_enabled(), later=False) as level:
        shape, leaves = _slots((inner, named), Tensor)
        values = [level.add_input(cap, t, spec_of(t)) for t in leaves]
        given, by_name = (_value(cap, tree, values) for tree in shape)
        assert isinstance(given, TupleValue) and isinstance(by_name, DictValue)
        keywords = {cap.realize(k).as_constant(): v for k, v in by_name.entries.values()}
        result = cap.realize(cap.call(function, list(given.items), keywords))
        nodes, fakes = cap.recorder.arguments([result], {})
        slots, outputs = _slots(nodes[0][0], Node)
        gm = level.finish(tuple(outputs))
    for v in level.captured:
        if not any(v is c for c in captured):
            captured.append(v)
    places = tuple(next(i for i, c in enumerate(captured) if c is v) for v in level.captured)
    target.bodies.append(_Body(gm, places, slots))
    return fakes[0][0]


def _factory(fn: Callable[..., Any]) -> Row:
    """The row of grad() or another transform whose call returns a function."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        named = dict(kwargs)
        function = args[0] if args else named.pop("func", None)
        if function is None:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() without a function")
        given, options = [to_host(cap, a) for a in args[1:]], {k: to_host(cap, v) for k, v in named.items()}
        return TransformValue(lambda f: fn(f, *given, **options), fn.__name__, function)

    return row


def _direct(fn: Callable[..., Any]) -> Row:
    """The row of vjp() or another transform that runs its function at once."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if not args:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() without a function")
        return transform(cap, lambda f: functools.partial(fn, f), fn.__name__, args[0], args[1:], kwargs)

    return row


# --- transforms made outside -----------------------------------------------------------------------------------------

_WRAPPERS: Final = {
    code: fn
    for fn in _FACTORIES
    for code in fn.__code__.co_consts
    if isinstance(code, types.CodeType) and code.co_name in ("wrapper", "wrapped")
}


def _made_outside(real: Any) -> Row | None:
    """The row of a function that a transform returned outside the captured program."""
    fn = _WRAPPERS.get(real.__code__) if isinstance(real, types.FunctionType) else None
    if fn is None:
        return None
    seen = _closure(real)
    options = {p: seen[p] for p in inspect.signature(fn).parameters if p in seen and p != "func"}

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        inner = cap.world.wrap_static(real.__wrapped__, "function")  # type: ignore[attr-defined]
        return transform(cap, lambda f: fn(f, **options), fn.__name__, inner, args, kwargs)

    return row


ANSWER_RULES.append(_made_outside)


def _closure(fn: types.FunctionType) -> dict[str, Any]:
    """The contents of the cells of a wrapper and of the wrappers that it calls, by name."""
    found: dict[str, Any] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        held = cell.cell_contents
        if isinstance(held, types.FunctionType) and held.__code__ in _WRAPPERS and name != "func":
            found = {**_closure(held), **found}
        found[name] = held
    return found


# --- functional_call -------------------------------------------------------------------------------------------------


def _functional_call(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """functional_call(module, tensors, args, kwargs): reads of the module's tensors return the given tensors."""
    names = ("module", "parameters_and_buffers", "args", "kwargs")
    given = dict(zip(names, args, strict=False)) | {k.replace("parameter_and_buffer_dicts", names[1]): v for k, v in kwargs.items()}
    module = cap.realize(given["module"])
    real = getattr(module, "real", None)
    if not isinstance(module, UserObject) or not isinstance(real, Module) or cap.attributes.overlays:
        raise Unsupported(causes.UNKNOWN_CALL, "functional_call() of this kind")
    if set(given) - {*names, "tie_weights"} or any(len(v) > 1 for v in _groups(real)):
        raise Unsupported(causes.UNKNOWN_CALL, "functional_call(strict=True), or of a module with tied weights")
    tensors = cap.realize(given["parameters_and_buffers"])
    parts = tensors.items if isinstance(tensors, TupleValue | ListValue) else [tensors]
    overlays: dict[tuple[int, str], Value] = {}
    for part in map(cap.realize, parts):
        if not isinstance(part, DictValue):
            raise Unsupported(causes.UNKNOWN_CALL, "functional_call() with an argument that is not a dict")
        for key, value in part.entries.values():
            place = _place(cap, module, cap.realize(key).as_constant())
            if place in overlays:
                raise Unsupported(causes.UNKNOWN_CALL, "functional_call() with a name given twice")
            overlays[place] = value
    cap.attributes.overlays = overlays
    try:
        return cap.call(module, *_call_arguments(cap, given))
    finally:
        cap.attributes.overlays = {}


def _groups(module: Module) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for name, t in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        groups.setdefault(id(t), []).append(name)
    return list(groups.values())


def _place(cap: Machine, module: Value, name: str) -> tuple[int, str]:
    """The registry that holds the tensor `name` of a module (its id), and the name in the registry."""
    *path, own = name.split(".")
    for part in path:
        module = cap.attributes.read(module, part)
    real = getattr(module, "real", None)
    for registry in ("_parameters", "_buffers"):
        entries = getattr(real, registry, {})
        if own in entries:
            return id(entries), own
    raise Unsupported(causes.UNKNOWN_CALL, f"functional_call() with {name}, which is neither a parameter nor a buffer")


def _call_arguments(cap: Machine, given: dict[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    args = cap.realize(given.get("args", Constant(None)))
    kwargs = cap.realize(given.get("kwargs", Constant(None)))
    positional = list(args.items) if isinstance(args, TupleValue) else [] if is_none(args) else [args]
    if isinstance(kwargs, DictValue):
        return positional, {cap.realize(k).as_constant(): v for k, v in kwargs.entries.values()}
    return positional, {}


ANSWERS.update({fn: _factory(fn) for fn in _FACTORIES})
ANSWERS.update({fn: _direct(fn) for fn in _DIRECT})
ANSWERS.update(dict.fromkeys((func.functional_call, stateless.functional_call), _functional_call))
