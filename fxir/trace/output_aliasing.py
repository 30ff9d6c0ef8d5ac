"""How each result of a program relates to its inputs and to its other results: new memory, a view, or the very object.

The compiled graph computes only memory of its own. Results that are inputs, views of inputs (also of inputs the
program wrote to) or views of one another are made at run time by replaying the view ops on the real tensors, so that
aliasing, versions and autograd history come out as eager has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from eager._tensor.tensor import Tensor
from eager.autograd.function import BackwardCFunction
from eager.base.spec import is_dense
from eager.optable.table import OPS, Op
from eager.tape.node import OpNode, history_of
from eager.tape.record import NO_GRAD_VIEW
from fxir.symbols.shapes import ShapeEnv, plain, simplified
from fxir.trace.trace import CapturedTensorError, TraceMode


@dataclass(frozen=True, slots=True)
class Step:
    """One view op to replay. recorded: False where the program made the view under no_grad."""

    op: Op | Callable[..., Tensor]
    args: tuple[Any, ...]
    recorded: bool


@dataclass(frozen=True, slots=True)
class FromInput:
    """Input `index` itself, after writes to it."""

    index: int


@dataclass(frozen=True, slots=True)
class Computed:
    """Result `index` of the compiled graph (not counting new values of inputs).

    leaf: it requires grad and has no history, as a view made under no_grad of a tensor that requires grad.
    """

    index: int
    leaf: bool = False


@dataclass(frozen=True, slots=True)
class CustomHistory:
    """After `steps` of them a custom function gave its view: from there on the history is that of result `result`."""

    steps: int
    result: Computed


@dataclass(frozen=True, slots=True)
class Derived:
    """`steps` replayed on `source`."""

    source: FromInput | Computed
    steps: tuple[Step, ...]
    custom: CustomHistory | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same object as output `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class Literal:
    """No tensor: the value itself, or an expression of symbols."""

    value: Any


Output: TypeAlias = FromInput | Computed | Derived | Repeat | Literal


def settled(out: Output, env: ShapeEnv) -> Output:
    """`out` in terms of the symbols that are left at the end of a trace."""
    if isinstance(out, Literal):
        return Literal(simplified(out.value, env))
    if isinstance(out, Derived):
        steps = tuple(Step(s.op, simplified(s.args, env), s.recorded) for s in out.steps)
        return Derived(out.source, steps, out.custom)
    return out


def plan_outputs(
    results: Sequence[Any], inputs: Sequence[Tensor], mode: TraceMode
) -> tuple[list[Output], list[Tensor]]:
    """(one Output per result, the fakes that the graph has to compute).

    Raises: CapturedTensorError for a result that is a tensor from outside (it should be an input);
    NotImplementedError for a view that began to require grad by itself.
    """
    results = [_known(r, mode) for r in results]
    tensors = [(i, x) for i, x in reversed(list(enumerate(inputs))) if isinstance(x, Tensor)]
    by_input = {id(mode.memory.buffer(x)): i for i, x in tensors}
    position = {id(x): i for i, x in tensors}
    shared: dict[int, set[int]] = {}
    for r in results:
        if isinstance(r, Tensor):
            shared.setdefault(id(mode.memory.buffer(r)), set()).add(id(r))
    planner = _Planner(mode, inputs, by_input, position, shared)
    return [planner.plan(r) for r in results], planner.computed


def _known(r: Any, mode: TraceMode) -> Any:
    if not isinstance(r, Tensor) or mode.memory.buffer(r) is not None:
        return r
    if not r.is_fake and mode.is_external(r):
        raise CapturedTensorError("aot: a tensor from outside the program is one of its results", r)
    return mode.twin(r)


def is_leaf_made_inside(t: Tensor) -> bool:
    """Whether a result requires grad without a history: nothing that came before it gets a gradient through it."""
    return t._requires_grad and history_of(t) is None


class _Planner:
    def __init__(
        self,
        mode: TraceMode,
        inputs: Sequence[Tensor],
        by_input: dict[int, int],
        position: dict[int, int],
        shared: dict[int, set[int]],
    ) -> None:
        self.mode = mode
        self.inputs = inputs
        self.by_input = by_input
        self.position = position
        self.shared = shared
        self.computed: list[Tensor] = []
        self._computed_at: dict[int, Computed] = {}
        self._seen: dict[int, int] = {}
        self._bases: dict[int, Tensor] = {}  # by id of what the memory was made with
        self._count = 0

    def plan(self, r: Any) -> Output:
        at, self._count = self._count, self._count + 1
        if not isinstance(r, Tensor):
            return Literal(plain(r))
        if id(r) in self._seen:
            return Repeat(self._seen[id(r)])
        self._seen[id(r)] = at
        if id(r) in self.position:
            return FromInput(self.position[id(r)])
        if r.numel() == 0:
            return self._compute(r)  # no elements, so nothing is shared
        buffer = self.mode.memory.buffer(r)
        assert buffer is not None
        if id(buffer) in self.by_input:
            return self._of_input(r, self.by_input[id(buffer)])
        if len(self.shared[id(buffer)]) == 1 and is_dense(tuple(r.shape), r.stride()):
            return self._compute(r)
        if r._requires_grad and not buffer.base._requires_grad:
            raise NotImplementedError("aot: a result with a gradient history is a view of memory that has none")
        base = self._base(r, buffer.base)
        source = self._compute(base)
        return source if r is base else self._derived(source, r, base)

    def _base(self, r: Tensor, whole: Tensor) -> Tensor:
        """The tensor that `r` is a view of, or `r`: `whole`, or what a function made of it inside and gave as no view.

        Raises NotImplementedError where another result has another one over the same memory.
        """
        found = whole
        for d in reversed(self.mode.memory.derivation(r)[1]):
            if d.op.is_view and not _is_noted(d.tensor):
                found = d.tensor
                break
        if self._bases.setdefault(id(whole), found) is not found:
            raise NotImplementedError("aot: two results share memory, and one of them is no view of the other's base")
        return found

    def _compute(self, t: Tensor) -> Computed:
        found = self._computed_at.get(id(t))
        if found is None:
            found = self._computed_at[id(t)] = Computed(len(self.computed), is_leaf_made_inside(t))
            self.computed.append(t)
        return found

    def _of_input(self, r: Tensor, index: int) -> Output:
        """A view of the input it was derived from; of any input over that storage if it was not."""
        current = r
        for d in reversed(self.mode.memory.derivation(r)[1]):
            current = d.parent
            if id(current) in self.position:
                return self._derived(FromInput(self.position[id(current)]), r, current)
        return self._derived(FromInput(index), r, self.inputs[index])

    def _derived(self, source: FromInput | Computed, r: Tensor, base: Tensor) -> Derived:
        steps = self._steps(r, base)
        for behind, d in enumerate(reversed(self.mode.memory.derivation(r)[1])):
            if _is_custom(d.tensor):
                if behind >= len(steps):
                    raise NotImplementedError("aot: a result is a view that a custom function gave of a tensor it was not given")
                return Derived(source, steps, CustomHistory(len(steps) - behind, self._compute(d.tensor)))
            if d.parent is base:
                break
        return Derived(source, steps)

    def _steps(self, r: Tensor, source: Tensor) -> tuple[Step, ...]:
        """View ops from `source` to `r`; by geometry where the recorded ones begin elsewhere."""
        steps: list[Step] = []
        first = r
        for d in reversed(self.mode.memory.derivation(r)[1]):
            steps.append(_step(d.op, d.args, d.parent, d.tensor))
            first = d.parent
            if first is source:
                return tuple(reversed(steps))
        if first.untyped_storage() is not source.untyped_storage() and _looks(first) == _looks(source):
            return Step(data_of, (), True), *reversed(steps)  # `first` is source.data
        if r.storage_offset() != source.storage_offset():
            raise NotImplementedError("aot: a result is a view of another tensor that no recorded view op made")
        return (_step(OPS["as_strided"], (tuple(r.shape), tuple(r.stride()), None), source, r),)


def data_of(t: Tensor) -> Tensor:
    """t.data, which is no op: the same memory without history, and with versions of its own."""
    return t.data


def _looks(t: Tensor) -> tuple[Any, ...]:
    return t.dtype, tuple(t.shape), tuple(t.stride()), t.storage_offset()


def _is_noted(t: Tensor) -> bool:
    """Whether autograd knows `t` as a view."""
    return t._autograd is not None and t._autograd.base is not None


def _is_custom(t: Tensor) -> bool:
    """Whether `t` is a view with the history that a custom function gave it."""
    return _is_noted(t) and isinstance(history_of(t), BackwardCFunction)


def _step(op: Op, args: tuple[Any, ...], parent: Tensor, result: Tensor) -> Step:
    """How to make `result` again. Autograd notes the base of a view, and whether it was made under no_grad; one made
    by detach() and then written to in grad mode has a history of its own, which replaying cannot give it."""
    meta = result._autograd
    noted = _is_noted(result)
    if result._requires_grad and not noted:
        raise NotImplementedError(
            "aot: a result is a view of an input or of another result, but has a gradient history of its own "
            "(it was made by detach() or under no_grad, then written to); clone() it"
        )
    recorded = noted and (meta.creation is not NO_GRAD_VIEW or isinstance(history_of(result), OpNode))
    return Step(op, plain(args), op.name == "detach" or recorded)
