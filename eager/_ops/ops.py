"""`import torch.ops`: the namespace object of operators replaces this module."""
from __future__ import annotations

import sys

from eager import _ops

_ops.ops.__spec__ = sys.modules[__name__].__spec__
sys.modules[__name__] = _ops.ops
