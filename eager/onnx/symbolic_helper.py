"""torch.onnx.symbolic_helper: the decorator of symbolic functions, which only an export calls."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["parse_args"]

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """Mark a symbolic function with the kinds of its arguments ("v" a value, "i" an int, "f" a float, ...)."""

    def mark(fn: F) -> F:
        vars(fn)["_arg_descriptors"] = arg_descriptors
        return fn

    return mark
