"""Helpers for tests: comparison of tensors within tolerances, and random tensors."""
from __future__ import annotations

from eager.testing.comparison import assert_allclose, assert_close
from eager.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
