"""Checkpoints by saved-tensor hooks: `use_reentrant=False`.

In forward a hook stores a numbered slot in place of every tensor that is saved for backward. The first slot
that backward opens runs the function again; a second hook then collects the tensors in the same order, and
the run stops as soon as it has all of them. The inputs are saved outside the checkpoint's own hook: under an
outer checkpoint they become slots of that checkpoint, and checkpoints nest.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.autograd.function import Function
from eager.autograd.graph import saved_tensors_hooks
from eager.compiler import call_outside
from eager.dispatch import calls
from eager.functions.creation import empty
from eager.utils.checkpoint.surroundings import Surroundings

ContextPair = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
Describe = Callable[[Tensor], Any]

_TIP = (
    "Tip: To see a more detailed error message, either pass `debug=True` to `torch.utils.checkpoint.checkpoint(...)` or wrap the "
    "code block with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to enable checkpoint-debug mode globally."
)


class CheckpointError(RuntimeError):
    """The recomputation of a checkpointed function saved other tensors than the first run."""


class _Stop(BaseException):
    """Ends a recomputation once all saved tensors exist. A BaseException, so that user code does not catch it."""


class _Slot:
    """Placeholder in the graph for the `index`-th tensor that a checkpointed function saved."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index

    def __del__(self) -> None:
        self.frame.values.pop(self.index, None)


def _shape_dtype_device(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


# The properties of a saved tensor that must be equal in both runs.
DETERMINISM_CHECKS: dict[str, Describe] = {"default": _shape_dtype_device, "none": lambda x: None}


class _Inputs(Function):
    """Keeps tensors alive as long as its node, saved through the active hooks.

    Its result only serves to hold the node.
    """

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return empty((0,))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("a checkpoint's inputs have no part in backward")


class _Arguments:
    """Positional arguments; the tensors among them are saved as a node's saved tensors."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self._positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self._rest = [None if isinstance(a, Tensor) else a for a in args]
        anchor = empty((0,), requires_grad=True)
        self._node = _Inputs.apply(anchor, *(args[i] for i in self._positions)).grad_fn

    def get(self) -> list[Any]:
        args = list(self._rest)
        for i, t in zip(self._positions, self._node.saved_tensors, strict=True):
            args[i] = t
        return args


class Frame:
    """One call of `checkpoint`: how to run the function again, and the slots that the first run left."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], surroundings: Surroundings,
                 recompute_context: AbstractContextManager[Any], describe: Describe, early_stop: bool,
                 explain: Callable[[], str] | None) -> None:  # fmt: skip
        self.function = function
        self.arguments = _Arguments(args)
        self.kwargs = kwargs
        self.surroundings = surroundings
        self.recompute_context = recompute_context
        self.describe = describe
        self.early_stop = early_stop
        self.explain = explain
        self.finished = False  # whether the first run has ended
        self.slots: list[weakref.ref[_Slot]] = []
        self.descriptions: list[Any] = []
        self.values: dict[int, Tensor] = {}  # by slot index, from a recomputation until backward reads them

    def recording(self) -> AbstractContextManager[Any]:
        """A context that replaces tensors saved inside it by slots."""
        return saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, x: Tensor) -> _Slot:
        slot = _Slot(self, len(self.slots))
        self.slots.append(weakref.ref(slot))
        self.descriptions.append(self.describe(x))
        return slot

    def _unpack(self, slot: _Slot) -> Tensor:
        if slot.index not in self.values:
            self._recompute()
        return self.values.pop(slot.index)  # read once: a second backward recomputes, so that no memory stays allocated

    def _recompute(self) -> None:
        try:
            _Recomputation(self).run()
        except CheckpointError as error:
            if self.explain is None:
                raise
            raise CheckpointError(f"{error}\n{self.explain()}") from error


class _Recomputation:
    """A second run of a frame's function, up to the last tensor that it saves."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.count = 0
        self.mismatches: list[str] = []

    def run(self) -> None:
        """Fill the frame's `values`. Raises: CheckpointError if the runs differ."""
        frame = self.frame
        args = frame.arguments.get()
        with (contextlib.suppress(_Stop), _recording_gradients(), frame.surroundings.restored(), frame.recompute_context,
              saved_tensors_hooks(self._pack, lambda x: x)):  # fmt: skip
            call_outside(frame.function, *args, **frame.kwargs)
        saved, recomputed = len(frame.slots), self.count
        if recomputed != saved:
            raise CheckpointError("torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                                  f"recomputation.\nNumber of tensors saved during forward: {saved}\nNumber of tensors saved "
                                  f"during recomputation: {recomputed}.\n{_TIP}")  # fmt: skip
        if self.mismatches:
            raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                                  f"during the forward pass.\n{chr(10).join(self.mismatches)}.\n{_TIP}")  # fmt: skip

    def _pack(self, x: Tensor) -> Tensor:
        frame, index = self.frame, self.count
        if index >= len(frame.slots):
            raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                                  f"original forward pass.\n{_TIP}")  # fmt: skip
        self.count += 1
        was, now = frame.descriptions[index], frame.describe(x)
        if was != now:
            self.mismatches.append(f"tensor at position {index}:\nsaved metadata: {was}\nrecomputed metadata: {now}")
        if frame.slots[index]() is not None:
            frame.values[index] = x.detach()
        # A backward inside the function opens slots before the first run ends: only the slots so far are needed.
        if self.count == len(frame.slots) and (frame.early_stop or not frame.finished):
            raise _Stop
        return x


@contextlib.contextmanager
def _recording_gradients() -> Iterator[None]:
    before = _native.set_grad_enabled(True)
    try:
        yield
    finally:
        _native.set_grad_enabled(before)


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], preserve_rng_state: bool, contexts: ContextPair,
        describe: Describe, early_stop: bool, explain: Callable[[], str] | None = None) -> Any:  # fmt: skip
    """Call `function` and save only its inputs for backward. explain: returns text to append to a CheckpointError."""
    forward_context, recompute_context = contexts
    frame = Frame(function, args, kwargs, Surroundings.now(preserve_rng_state), recompute_context, describe, early_stop, explain)
    with frame.recording(), forward_context:
        result = call_outside(function, *args, **kwargs)
        frame.finished = True
        return result
    raise RuntimeError("torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
                       "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
                       "forward.")  # fmt: skip


# ---- debug: the ops that both runs called ----


class _OpLog(calls.Mode):
    """Records every op call with the shapes and dtypes of its tensors; entering it clears the record."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> calls.Mode:
        self.lines.clear()
        return super().__enter__()

    def dispatch(self, op: Any, args: tuple[Any, ...]) -> Any:
        shown = ", ".join(f"{a.dtype.name}{list(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in args)
        self.lines.append(f"  {op.name}({shown})")
        return calls.below(op, args)


def logging_contexts() -> tuple[ContextPair, Callable[[], str]]:
    """Contexts that record the ops of both runs, and a function that formats the two latest records."""
    forward, again = _OpLog(), _OpLog()

    def compare() -> str:
        return "\n".join(["An error happened while unpacking tensors; dumping logs of latest computation because you passed "
                          "`debug=True` to `torch.utils.checkpoint.checkpoint()`.", "Operations executed during the original "
                          "forward:", *forward.lines, "Operations executed during recomputation:", *again.lines])  # fmt: skip

    return (forward, again), compare
