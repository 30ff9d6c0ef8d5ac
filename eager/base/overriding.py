"""Typing of methods that subclasses override with other parameters, as torch's classes do."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def open_parameters(method: Callable[..., T]) -> Callable[..., T]:
    """Return `method` itself; for the type checker, an override may take any parameters."""
    return method
