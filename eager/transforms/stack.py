"""Helpers at the entry and exit of a transform: the depth of a new level, wrapping and unwrapping of trees, checks."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.pytree.tree import tree_map
from eager.dispatch.calls import Level as DispatchLevel
from eager.dispatch.calls import active_modes
from eager.transforms.level import Level

TensorBase = _native.TensorBase


def next_depth() -> int:
    """The number of a level entered now, counted from 1 on the outside."""
    return 1 + sum(isinstance(m, DispatchLevel) for m in active_modes())


def unwrap(level: Level, tree: Any) -> Any:
    """A tree with the tensors of this level unwrapped."""
    return tree_map(level.value, tree)


def wrap_all(level: Level, tree: Any) -> Any:
    """A tree with all tensors as constants of this level."""
    return tree_map(lambda x: level.wrap(x) if isinstance(x, TensorBase) else x, tree)


def name_of(func: Callable[..., Any]) -> str:
    if hasattr(func, "__name__"):
        return str(func.__name__)
    return repr(func) if not isinstance(func, functools.partial) else f"functools.partial({name_of(func.func)}, ...)"


def check_argnums(argnums: Any, count: int) -> int | tuple[int, ...]:
    """`argnums` non-negative. Raises RuntimeError with torch's texts."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple) and not argnums:
        raise RuntimeError("argnums must be non-empty")
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    for i in given:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    fixed = tuple(i % count for i in given)
    if len(set(fixed)) != len(fixed):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return fixed if isinstance(argnums, tuple) else fixed[0]


def picked(args: Sequence[Any], argnums: int | tuple[int, ...]) -> Any:
    """The arguments that `argnums` names: one, or a tuple."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def replaced(args: Sequence[Any], argnums: int | tuple[int, ...], values: Any) -> list[Any]:
    """The arguments with the ones at `argnums` replaced."""
    result = list(args)
    if isinstance(argnums, int):
        result[argnums] = values
    else:
        for i, v in zip(argnums, values, strict=True):
            result[i] = v
    return result


def split_aux(output: Any, text: str) -> tuple[Any, Any]:
    """(output, aux) of a function called with has_aux=True. Raises RuntimeError with `text`."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(text)
    return output
