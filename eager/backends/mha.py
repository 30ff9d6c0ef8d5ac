"""The short way of nn.MultiheadAttention and the Transformer layers for inference: a permission, not taken up yet."""
from __future__ import annotations

_fastpath = True


def get_fastpath_enabled() -> bool:
    return _fastpath


def set_fastpath_enabled(value: bool) -> None:
    global _fastpath
    _fastpath = bool(value)
