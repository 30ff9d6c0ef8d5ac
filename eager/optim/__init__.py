"""Optimizers and learning-rate schedules."""
from eager.optim import lr_scheduler
from eager.optim.adam import Adam, AdamW
from eager.optim.optimizer import Optimizer
from eager.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
