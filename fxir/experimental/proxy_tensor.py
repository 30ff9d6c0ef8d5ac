"""torch.fx.experimental.proxy_tensor: whether the ops of this thread are being written down."""
from __future__ import annotations

from eager.dispatch import active_modes
from fxir.trace import TraceMode

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> TraceMode | None:
    """The innermost mode that records ops into a graph, or None where they just run."""
    return next((mode for mode in reversed(active_modes()) if isinstance(mode, TraceMode)), None)
