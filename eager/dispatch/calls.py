"""The one point that every op call goes through: autograd, then a mode, then metadata or a kernel.

Order of a call:
  1. autocast  - inside an autocast block, the inputs of an op with a declared precision are cast (`eager.optable.autocast`);
  2. autograd  - if gradients are recorded and an input requires one, the op's gradient formula is recorded;
  3. mode      - the innermost mode on this thread's stack sees the op with its full arguments;
  4. fake      - if an input has no data, only the op's meta rule runs;
  5. kernel    - else the device's kernel runs; an op without a kernel is decomposed.
In-place ops have a separate path: `eager.tape.inplace` updates the history of their targets.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from eager import _native
from eager.base import thread_state
from eager.tape import inplace, record

Below = Callable[[Any, tuple[Any, ...]], Any]


class Op(Protocol):
    """The part of an op's record (`eager.optable.table.Op`) that dispatch reads."""

    @property
    def name(self) -> str: ...
    @property
    def mutates(self) -> bool: ...
    @property
    def is_view(self) -> bool: ...
    @property
    def vjp(self) -> Any: ...
    @property
    def decompose(self) -> Callable[..., Any] | None: ...
    @property
    def nondifferentiable(self) -> bool: ...
    def tensors(self, args: tuple[Any, ...]) -> Iterator[Any]: ...
    def execute(self, args: tuple[Any, ...]) -> Any: ...


_grad_enabled = _native.grad_enabled
_mode_depth = _native.mode_depth
_set_mode_depth = _native.set_mode_depth
_traits = _native.argument_traits
_WANTS_GRAD = 16  # of `_native.argument_traits`
TensorBase = _native.TensorBase


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modes: list[Mode] = []
        self.level: Level | None = None  # the innermost Level among them


_stack = _Stack()
_cast_inputs: Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None]


def set_caster(cast_inputs: Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None]) -> None:
    """Registration by autocast: the cast arguments of an op, or None for an op that autocast leaves alone."""
    global _cast_inputs
    _cast_inputs = cast_inputs


def _show_depth() -> None:
    _stack.level = next((m for m in reversed(_stack.modes) if isinstance(m, Level)), None)
    _set_mode_depth((_mode_depth() & ~thread_state.MODES) | len(_stack.modes))


class Mode:
    """Handles every op call of this thread while it is entered. It is off while it handles a call.

    records_graph: whether it records calls in a graph, whose tensors are on one device.
    """

    records_graph = False

    def dispatch(self, op: Any, args: tuple[Any, ...]) -> Any:
        """Handle one op call. `args` is the full positional tuple in schema order."""
        raise NotImplementedError(f"{type(self).__name__}.dispatch")

    def __enter__(self) -> Mode:
        _stack.modes.append(self)
        _show_depth()
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.modes.remove(self)
        _show_depth()


class Level(Mode):
    """A mode with its own class of tensors (see `eager.transforms`): it sees a call before gradients are recorded, and records the
    gradients of its tensors itself. The calls that it passes on are recorded below, for the tensors below."""

    def custom_function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Handle one call of a custom `autograd.Function`."""
        raise NotImplementedError(f"{type(self).__name__}.custom_function")


def active_level() -> Level | None:
    """The innermost Level of this thread, if there is one."""
    return _stack.level if _mode_depth() else None


def active_modes() -> tuple[Mode, ...]:
    """Modes of this thread, outermost first."""
    return tuple(_stack.modes)


class modes_off:  # noqa: N801 - used like a function
    """Hides the op calls of this block from all modes: for work outside the program, such as inferring a spec."""

    def __enter__(self) -> None:
        self._before = _stack.modes
        _stack.modes = []
        _show_depth()

    def __exit__(self, *exc: object) -> None:
        _stack.modes = self._before
        _show_depth()


class without:  # noqa: N801 - used like a function
    """Hides the op calls of this block from `mode` and from the modes that were entered inside it."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode

    def __enter__(self) -> None:
        self._before = _stack.modes
        at = max(i for i, m in enumerate(self._before) if m is self._mode)
        _stack.modes = self._before[:at]
        _show_depth()

    def __exit__(self, *exc: object) -> None:
        _stack.modes = self._before
        _show_depth()


def _through_mode(op: Op, args: tuple[Any, ...]) -> Any:
    level = _stack.level
    mode = _stack.modes.pop()
    _show_depth()
    try:
        return mode.dispatch(op, args)
    finally:
        _stack.modes.append(mode)
        _stack.level = level
        _set_mode_depth((_mode_depth() & ~thread_state.MODES) | len(_stack.modes))


def call(op: Op, args: tuple[Any, ...]) -> Any:
    """Run `op` on its full positional arguments, and record its gradient if an input requires one."""
    if _mode_depth() & thread_state.AUTOCAST:
        cast = _cast_inputs(op, args)
        if cast is not None:
            return _without_autocast(op, cast)
    if _mode_depth() & thread_state.MODES and _stack.level is not None:
        return _through_mode(op, args)
    return recorded(op, args, below)


def recorded(op: Op, args: tuple[Any, ...], below: Below) -> Any:
    """Run `op` by `below`, and record its gradient formula if an input requires a gradient."""
    if op.mutates:
        return inplace.call(op, args, below)
    if op.is_view:
        return record.view(op, args, below)
    if _grad_enabled() and _traits(args) & _WANTS_GRAD:
        if op.vjp:
            return record.apply(op, args, below)
        if op.decompose is not None:
            return record.owned(op.decompose(*args), op.tensors(args))
        if not op.nondifferentiable:
            raise NotImplementedError(f"{op.name}: the derivative is not implemented")
    return below(op, args)


def _without_autocast(op: Op, args: tuple[Any, ...]) -> Any:
    """An op on autocast's lists runs whole in the precision chosen for it."""
    before = thread_state.set_autocast(None)
    try:
        return call(op, args)
    finally:
        thread_state.set_autocast(before)


def below(op: Op, args: tuple[Any, ...]) -> Any:
    """Run `op` beneath autograd: mode, meta rule, kernel or decomposition."""
    if _mode_depth() & thread_state.MODES:
        return _through_mode(op, args)
    return op.execute(args)
