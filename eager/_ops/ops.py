"""`import torch.ops`: this module's place is taken by the namespace of operators itself."""
from __future__ import annotations

import sys

from eager import _ops

_ops.ops.__spec__ = sys.modules[__name__].__spec__
sys.modules[__name__] = _ops.ops
