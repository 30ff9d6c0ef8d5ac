"""Signal processing: `torch.signal`."""
from eager.signal import windows

__all__ = ["windows"]
