"""The relation of each result of a program to its inputs and to its other results: new memory, a view, or the same object.

The compiled graph returns only new memory. Results that are inputs, views of inputs (including inputs that the program wrote
to) or views of one another are created at run time by replaying the view ops on the real tensors, so that aliasing, versions
and autograd history equal eager's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from eager._tensor.tensor import Tensor
from eager.autograd.function import BackwardCFunction
from eager.base.records import dataclass
from eager.base.spec import is_dense
from eager.optable.table import OPS, Op
from eager.tape.node import OpNode, history_of
from eager.tape.record import NO_GRAD_VIEW
from fxir.symbols.shapes import ShapeEnv, plain, simplified
from fxir.trace.trace import CapturedTensorError, TraceMode


@dataclass(frozen=True, slots=True)
class Step:
    """One view op to replay. recorded: False if the program created the view under no_grad."""

    op: Op | Callable[..., Tensor]
    args: tuple[Any, ...]
    recorded: bool


@dataclass(frozen=True, slots=True)
class FromInput:
    """Input `index` itself, after the program's writes to it."""

    index: int


@dataclass(frozen=True, slots=True)
class Computed:
    """Result `index` of the compiled graph (new values of inputs are not counted).

    leaf: it requires grad and has no history, as a view created under no_grad of a tensor that requires grad.
    """

    index: int
    leaf: bool = False


@dataclass(frozen=True, slots=True)
class CustomHistory:
    """A custom function returned the view after `steps` of the view ops; from there on its history is that in result `result`."""

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
    """A result that is not a tensor: the value itself, or an expression of symbols."""

    value: Any


Output: TypeAlias = FromInput | Computed | Derived | Repeat | Literal


def settled(out: Output, env: ShapeEnv) -> Output:
    """`out` in terms of the symbols that remain at the end of a trace."""
    if isinstance(out, Literal):
        return Literal(simplified(out.value, env))
    if isinstance(out, Derived):
        steps = tuple(Step(s.op, simplified(s.args, env), s.recorded) for s in out.steps)
        return Derived(out.source, steps, out.custom)
    return out


def plan_outputs(
    results: Sequence[Any], inputs: Sequence[Tensor], mode: TraceMode
) -> tuple[list[Output], list[Tensor]]:
    """(one Output per result, the fakes that the graph must compute).

    Raises: CapturedTensorError for a result that is a tensor from outside (it should be an input); NotImplementedError for a
    view that requires grad and has no history.
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
        raise CapturedTensorError("aot: a result is a tensor from outside the program", r)
    return mode.fake_of(r)


def is_leaf_made_inside(t: Tensor) -> bool:
    """Whether a result requires grad without a history, so that no gradient passes through it."""
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
        self._bases: dict[int, Tensor] = {}  # by id of the tensor that created the memory
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
            return self._compute(r)  # without elements, no memory is shared
        buffer = self.mode.memory.buffer(r)
        assert buffer is not None
        if id(buffer) in self.by_input:
            return self._of_input(r, self.by_input[id(buffer)])
        if len(self.shared[id(buffer)]) == 1 and is_dense(tuple(r.shape), r.stride()):
            return self._compute(r)
        if r._requires_grad and not buffer.base._requires_grad:
            raise NotImplementedError("aot: a result with a gradient history is a view of memory without a history")
        base = self._base(r, buffer.base)
        source = self._compute(base)
        return source if r is base else self._derived(source, r, base)

    def _base(self, r: Tensor, whole: Tensor) -> Tensor:
        """The tensor that `r` is a view of, or `r` itself: `whole`, or a tensor that a custom function created and returned as
        its result.

        Raises: NotImplementedError if another result has another base over the same memory.
        """
        found = whole
        for d in reversed(self.mode.memory.derivation(r)[1]):
            if d.op.is_view and not _is_noted(d.tensor):
                found = d.tensor
                break
        if self._bases.setdefault(id(whole), found) is not found:
            raise NotImplementedError("aot: two results share memory, but one of them is not a view of the other's base")
        return found

    def _compute(self, t: Tensor) -> Computed:
        found = self._computed_at.get(id(t))
        if found is None:
            found = self._computed_at[id(t)] = Computed(len(self.computed), is_leaf_made_inside(t))
            self.computed.append(t)
        return found

    def _of_input(self, r: Tensor, index: int) -> Output:
        """A view of the input that it was derived from, or else of any input over that storage."""
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
                    raise NotImplementedError(
                        "aot: a result is a view, returned by a custom function, of a tensor that is not an argument of the function"
                    )
                return Derived(source, steps, CustomHistory(len(steps) - behind, self._compute(d.tensor)))
            if d.parent is base:
                break
        return Derived(source, steps)

    def _steps(self, r: Tensor, source: Tensor) -> tuple[Step, ...]:
        """View ops from `source` to `r`; a view by geometry if the recorded ops start at another tensor."""
        steps: list[Step] = []
        first = r
        for d in reversed(self.mode.memory.derivation(r)[1]):
            steps.append(_step(d.op, d.args, d.parent, d.tensor))
            first = d.parent
            if first is source:
                return tuple(reversed(steps))
        separate = first.untyped_storage() is not source.untyped_storage()  # `first` is the `data` of source or of a view of it
        if separate and _metadata(first) == _metadata(source):
            return Step(data_of, (), True), *reversed(steps)
        seen = first if separate else r
        if seen.storage_offset() != source.storage_offset():
            raise NotImplementedError("aot: a result is a view of another tensor without a recorded view op")
        view = _step(OPS["as_strided"], (tuple(seen.shape), tuple(seen.stride()), None), source, seen)
        return (view, Step(data_of, (), True), *reversed(steps)) if separate else (view,)


def data_of(t: Tensor) -> Tensor:
    """t.data, which is not an op: the same memory without history, with a separate version counter."""
    return t.data


def _metadata(t: Tensor) -> tuple[Any, ...]:
    return t.dtype, tuple(t.shape), tuple(t.stride()), t.storage_offset()


def _is_noted(t: Tensor) -> bool:
    """Whether autograd treats `t` as a view."""
    return t._autograd is not None and t._autograd.base is not None


def _is_custom(t: Tensor) -> bool:
    """Whether `t` is a view whose history a custom function set."""
    return _is_noted(t) and isinstance(history_of(t), BackwardCFunction)


def _step(op: Op, args: tuple[Any, ...], parent: Tensor, result: Tensor) -> Step:
    """The op that makes `result` again. Autograd records the base of a view, and whether it was created under no_grad. A view
    from detach() that is then written to in grad mode has a separate history, which a replay cannot restore.
    """
    meta = result._autograd
    noted = _is_noted(result)
    if result._requires_grad and not noted:
        raise NotImplementedError(
            "aot: a result is a view of an input or of another result, but has a separate gradient history "
            "(it was made by detach() or under no_grad, then written to); clone() it"
        )
    recorded = noted and (meta.creation is not NO_GRAD_VIEW or isinstance(history_of(result), OpNode))
    return Step(op, plain(args), op.name == "detach" or recorded)
