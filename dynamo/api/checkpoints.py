"""Activation checkpoints under capture: the capture follows the checkpointed function like any other call.

The partitioner decides which tensors a compiled region saves for backward, and recomputes cheap ones. `_checkpoint` replaces
`eager.utils.checkpoint` in captured functions, and the capture follows it like user code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo import _native
from dynamo.policy import callees
from eager.utils.checkpoint import checkpoint, noop_context_fn


def _checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Any = noop_context_fn,
                determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
                preserve_rng_state: bool = True, **kwargs: Any) -> Any:  # fmt: skip
    if context_fn is noop_context_fn and not debug:
        return function(*args, **kwargs)
    # The contexts of the user observe single ops of both runs, so the call runs outside the graph.
    return _native.call_outside(checkpoint, function, *args, use_reentrant=use_reentrant, context_fn=context_fn,
                                determinism_check=determinism_check, debug=debug, early_stop=early_stop,
                                preserve_rng_state=preserve_rng_state, **kwargs)  # fmt: skip


def register() -> None:
    """Make captures follow the function of a checkpoint."""
    callees.substitute(checkpoint, _checkpoint)
