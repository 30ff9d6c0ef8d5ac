"""Orders of arguments that torch had before its factors became keywords: `p.add_(-lr, grad)`, `x.addcmul_(value, a, b)`.

torch still takes them, with one warning, and code of those days is full of them.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from eager import _native
from eager.callers import warn

# What stands where, t a tensor and n a number, and the keywords that the numbers have now.
_ALPHA: Final = {"tnt": ("alpha",)}
_VALUE: Final = {"tntt": ("value",)}
_BETA: Final = {"nttt": ("beta",), "ntntt": ("beta", "alpha"), "tntt": ("beta",), "tnntt": ("beta", "alpha")}
_ORDERS: Final[dict[str, Mapping[str, tuple[str, ...]]]] = {
    **dict.fromkeys(("add", "add_", "sub", "sub_"), _ALPHA),
    **dict.fromkeys(("addcmul", "addcmul_", "addcdiv", "addcdiv_"), _VALUE),
    **{name + suffix: _BETA for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm") for suffix in ("", "_")},
}
_warned: list[str] = []  # the name that was warned about


def accept_former_orders(functions: dict[str, Any]) -> None:
    """Make those functions of a table that had another order of arguments take it too."""
    for name in _ORDERS.keys() & functions.keys():
        functions[name] = _reordering(name, functions[name])


@functools.cache
def _reordering(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, taking the former order too: one function, wherever it stands."""
    orders = _ORDERS[name]
    fewest = min(map(len, orders))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) < fewest:
            return fn(*args, **kwargs)
        keywords = orders.get("".join("t" if isinstance(a, _native.TensorBase) else "n" for a in args))
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
