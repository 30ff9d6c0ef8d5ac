"""Decides whether the user or the compiler caused the error of a call on fakes.

Eager raises the same error if the user caused it. A shape rule that fails although the op succeeds is a bug of the
compiler; its error must not reach a handler of the user. So the call runs once more, on zeros: the user caused the
error if that call raises too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import eager
from dynamo.values.trees import map_tree
from eager import Tensor
from eager.base.symint import SymInt
from eager.tape.node import attach, meta_of
from fxir.ir.node import walk_tree

_MOST: Final = 1 << 24  # the most elements that are allocated for this check


def error_in_eager(run: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], error: Exception) -> Exception | None:
    """The exception that run(*args, **kwargs) raises on zeros like the fakes in its arguments; None if it does not
    raise.

    Returns `error`, which the call raised on the fakes, if no such zeros can be made: sizes are symbols, or the tensors
    are too large.
    """
    fakes = [t for t in walk_tree((args, kwargs), Tensor) if t.is_fake]
    if any(_is_unknown(t) for t in fakes) or sum(t.numel() for t in fakes) > _MOST:
        return error
    state = eager.get_rng_state()
    made: dict[int, Tensor] = {}
    try:
        for t in fakes:
            _zeros_like(t, made)
        given, named = map_tree((args, kwargs), Tensor, lambda t: made.get(id(t), t))
        run(*given, **named)
    except Exception as found:  # noqa: BLE001 - it is the answer
        return found
    finally:
        eager.set_rng_state(state)
    return None


def _is_unknown(t: Tensor) -> bool:
    return t.device.type != "cpu" or any(isinstance(n, SymInt) for n in (*t.shape, *t.stride(), t.numel()))


def _zeros_like(t: Tensor, made: dict[int, Tensor]) -> Tensor:
    """The tensor in `made` for the fake `t`: with its metadata, with a history if `t` has one, and a view of its base
    if `t` is a view.
    """
    if id(t) not in made:
        base = t._base
        if base is not None and base.dtype is t.dtype and not _is_unknown(base) and base.numel() <= _MOST:
            place = t.storage_offset() - base.storage_offset()
            view = made[id(t)] = _zeros_like(base, made).as_strided(tuple(t.shape), t.stride(), place)
            meta_of(view).creation = meta_of(t).creation  # the operation that forbids a write to the tensor
        else:
            zeros = eager.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype).zero_().requires_grad_(t.requires_grad)
            zeros._is_inference = t.is_inference()
            if not t.is_leaf:
                attach([zeros], [zeros.detach().requires_grad_()], lambda gradients: gradients, "History")
            made[id(t)] = zeros
    return made[id(t)]
