"""torch._tensor_str: the printing functions that libraries import."""
from __future__ import annotations

from eager._tensor.text import PRINT_OPTS
from eager._tensor.text import values_text as _tensor_str

__all__ = ["PRINT_OPTS", "_tensor_str"]
