"""Activation checkpoints: save memory in forward by recomputing parts of it in backward."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eager import _native
from eager.nn.modules.container import Sequential
from eager.utils.checkpoint import frames
from eager.utils.checkpoint.frames import DETERMINISM_CHECKS, CheckpointError, ContextPair
from eager.utils.checkpoint.reentrant import CheckpointFunction
from eager.utils.checkpoint.selective import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from eager.utils.checkpoint.surroundings import (
    DefaultDeviceType,
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
    "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class _Defaults:
    """Overrides of `checkpoint`'s arguments, set by the context managers below; None keeps the given arguments."""

    debug: bool | None = None
    early_stop: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Override `debug` of checkpoints called in the block; None keeps their own argument."""
    before, _Defaults.debug = _Defaults.debug, enabled
    try:
        yield
    finally:
        _Defaults.debug = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Override `early_stop` of checkpoints called in the block."""
    before, _Defaults.early_stop = _Defaults.early_stop, enable
    try:
        yield
    finally:
        _Defaults.early_stop = before


def noop_context_fn() -> ContextPair:
    """Two contexts that do nothing, for the first run and the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], ContextPair] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, saving only its inputs; backward recomputes the rest.

    use_reentrant: False is recommended: it supports `autograd.grad`, keyword arguments, nested structures and
        inputs that require no gradient. True runs a backward within backward. None means True, with a warning.
    preserve_rng_state: the recomputation draws the same random numbers. It always uses the same autocast state.
    context_fn: returns one context for each of the two runs. debug: errors list the ops of both runs. early_stop: stop the
        recomputation once all saved tensors exist. determinism_check: "default" compares shape, dtype and device of
        the tensors of both runs, "none" does not. (All four only for use_reentrant=False.)

    Raises: ValueError for incompatible options; CheckpointError in backward if the two runs differ.
    Source: Chen et al., arXiv:1604.06174.
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
                      "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
                      stacklevel=2)  # fmt: skip
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    debug = debug if _Defaults.debug is None else _Defaults.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    contexts, explain = frames.logging_contexts() if debug else (context_fn(), None)
    if not _native.grad_enabled():
        return function(*args, **kwargs)
    stop = early_stop if _Defaults.early_stop is None else _Defaults.early_stop
    return frames.run(function, args, kwargs, preserve_rng_state, contexts, DETERMINISM_CHECKS[determinism_check], stop, explain)


def checkpoint_sequential(functions: Sequential | Sequence[Callable[..., Any]], segments: int, input: Any,  # noqa: A002
                          use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any) -> Any:  # fmt: skip
    """Call the functions in sequence, in `segments` segments; all segments but the last are checkpointed.

    Raises: ValueError for options that `checkpoint` does not accept.
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
                      "use_reentrant=True.", stacklevel=2)  # fmt: skip
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if isinstance(functions, Sequential) else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return forward

    size = len(steps) // segments
    starts = range(0, size * (segments - 1), size) if size else ()
    for start in starts:
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant,  # noqa: A001
                           preserve_rng_state=preserve_rng_state)  # fmt: skip
    return part(size * (segments - 1), len(steps))(input)
