"""torch.utils.tensorboard: writes numbers and pictures of a run for TensorBoard.

The import raises ImportError unless `tensorboard` or `tensorboardX` is installed.
"""
from __future__ import annotations

from eager.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
