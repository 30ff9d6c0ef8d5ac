"""Activation checkpoints under capture: the function is followed like any other call.

What a compiled region keeps for backward is the partitioner's choice, which recomputes by itself what is cheap. This
file is captured like user code: it stands in for `eager.utils.checkpoint` in captured functions.
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
    # The user's contexts see single ops of both runs: a call that is not followed, outside of the graph.
    return _native.call_outside(checkpoint, function, *args, use_reentrant=use_reentrant, context_fn=context_fn,
                                determinism_check=determinism_check, debug=debug, early_stop=early_stop,
                                preserve_rng_state=preserve_rng_state, **kwargs)  # fmt: skip


def register() -> None:
    """Have captures follow the function of a checkpoint."""
    callees.substitute(checkpoint, _checkpoint)
