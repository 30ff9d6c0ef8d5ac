"""Mixed precision: `autocast` selects the precision of each op, `GradScaler` prevents underflow of small gradients."""
from __future__ import annotations

from eager.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from eager.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
