"""Orders of arguments that torch had before its factors became keywords: `p.add_(-lr, grad)`, `x.addcmul_(value, a, b)`.

torch still takes them, with one warning, and code of those days is full of them.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base.warn import warn
from eager.optable.signatures import FORMER_ORDERS, pattern_of

_warned: list[str] = []  # the name that was warned about


def accept_former_orders(functions: dict[str, Any]) -> None:
    """Make those functions of a table that had another order of arguments take it too."""
    for name in FORMER_ORDERS.keys() & functions.keys():
        functions[name] = _reordering(name, functions[name])


@functools.cache
def _reordering(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, taking the former order too: one function, wherever it stands."""
    orders = FORMER_ORDERS[name]
    fewest = min(map(len, orders))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) < fewest:
            return fn(*args, **kwargs)
        keywords = orders.get(pattern_of(args))
        if keywords is None or not kwargs.keys().isdisjoint(keywords):
            return fn(*args, **kwargs)
        if not _warned:
            _warned.append(name)
            warn(f"This overload of {name} is deprecated: a number before a tensor. Give it by keyword: {', '.join(keywords)}.")
        numbers = [a for a in args if not isinstance(a, _native.TensorBase)]
        tensors = [a for a in args if isinstance(a, _native.TensorBase)]
        return fn(*tensors, **dict(zip(keywords, numbers, strict=True)), **kwargs)

    call.__name__ = call.__qualname__ = name
    return call
