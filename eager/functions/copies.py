"""The `_copy` forms of view functions: the same result in memory of its own."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.functions import complex_numbers, joining, views
from eager.optable.table import OPS, write_out

TensorBase = _native.TensorBase


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return OPS["slice"](input, dim, start, end, step)


_VIEWS: dict[str, Callable[..., Any]] = {
    **{name: getattr(views, name) for name in (
        "unfold", "view", "permute", "t", "transpose", "select", "squeeze", "unsqueeze", "diagonal", "as_strided", "narrow")},
    "expand": views.expand, "slice": _slice, "detach": OPS["detach"], "alias": OPS["alias"],
    "unbind": joining.unbind, "split": joining.split,
    "split_with_sizes": joining.split_with_sizes, "view_as_real": complex_numbers.view_as_real,
    "view_as_complex": complex_numbers.view_as_complex,
}  # fmt: skip


def _copied(view: Any) -> Any:
    return OPS["clone"](view, "contiguous") if isinstance(view, TensorBase) else tuple(_copied(v) for v in view)


def _copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(view)
    def copy(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = _copied(view(*args, **kwargs))
        return result if out is None else write_out(out, result, differentiable=False)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"What `{name}` gives, in memory of its own."
    return copy


FUNCTIONS: dict[str, Any] = {f"{name}_copy": _copying(name, view) for name, view in _VIEWS.items()}
METHODS: dict[str, Any] = {"narrow_copy": FUNCTIONS["narrow_copy"]}
