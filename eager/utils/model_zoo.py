"""torch.utils.model_zoo: the older name of `hub.load_state_dict_from_url`."""
from __future__ import annotations

from eager.hub import load_state_dict_from_url as load_url
from eager.utils._progress import tqdm

__all__ = ["load_url", "tqdm"]
