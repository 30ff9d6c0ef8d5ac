"""`torch._custom_ops`: the predecessor of `torch.library`, whose names libraries still import."""
from __future__ import annotations

from eager.library import custom_op, get_ctx, impl
from eager.library import register_fake as impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
