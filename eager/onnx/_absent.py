"""Modules of torch.onnx none of whose functions is here, which is said when one is taken."""
from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def absent(module: str) -> Callable[[str], NoReturn]:
    """The module's `__getattr__`. Raises: NotImplementedError; AttributeError for names of Python's own."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807 - that is what it becomes
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"onnx.{module}.{name}: framejit writes no ONNX")

    return __getattr__
