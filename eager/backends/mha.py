"""The inference fast path of nn.MultiheadAttention and the Transformer layers: a flag."""
from __future__ import annotations

_fastpath = True


def get_fastpath_enabled() -> bool:
    """Whether the fast path is allowed."""
    return _fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast path."""
    global _fastpath
    _fastpath = bool(value)
