"""For tests: comparing tensors within tolerances, and making random ones."""
from __future__ import annotations

from eager.testing.comparison import assert_allclose, assert_close
from eager.testing.creation import make_tensor
from eager.tracebacks import filter_frames_of as _filter_frames_of

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_filter_frames_of(__name__)
