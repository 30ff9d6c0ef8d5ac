"""Signal processing: `torch.signal`."""
from eager.signal import windows
from eager.tracebacks import filter_frames_of as _filter_frames_of

__all__ = ["windows"]

_filter_frames_of(__name__)
