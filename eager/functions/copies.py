"""The `_copy` forms of view functions: the same result in separate memory."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.functions import complex_numbers, joining, views
from eager.optable.table import OPS
from eager.public.record import Out, Public, Variant


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return OPS["slice"](input, dim, start, end, step)


def _detach(input: Any) -> Any:
    return OPS["detach"](input)


def _alias(input: Any) -> Any:
    return OPS["alias"](input)


_VIEWS: dict[str, Callable[..., Any]] = {
    **{name: getattr(views, name) for name in (
        "unfold", "view", "permute", "t", "transpose", "select", "squeeze", "unsqueeze", "diagonal", "as_strided", "narrow")},
    "expand": views.expand, "slice": _slice, "detach": _detach, "alias": _alias,
    "unbind": joining.unbind, "split": joining.split,
    "split_with_sizes": joining.split_with_sizes, "view_as_real": complex_numbers.view_as_real,
    "view_as_complex": complex_numbers.view_as_complex,
}  # fmt: skip


def _copying(name: str, view: Callable[..., Any]) -> Variant:
    return Variant(view, Public(name=f"{name}_copy", doc=f"The result of `{name}`, in separate memory.", copied=True,
                                out=Out(exact=name == "narrow", differentiable=False)))  # fmt: skip


FUNCTIONS: dict[str, Any] = {f"{name}_copy": _copying(name, view) for name, view in _VIEWS.items()}
METHODS: dict[str, Any] = {"narrow_copy": FUNCTIONS["narrow_copy"]}
