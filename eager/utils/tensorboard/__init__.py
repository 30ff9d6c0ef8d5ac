"""torch.utils.tensorboard: a run's numbers and pictures for TensorBoard.

Raises ImportError on import where neither `tensorboard` nor `tensorboardX` is installed.
"""
from __future__ import annotations

from eager.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
