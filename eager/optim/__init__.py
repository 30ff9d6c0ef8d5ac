"""Optimizers and learning-rate schedules."""
from eager.optim import lr_scheduler, swa_utils
from eager.optim.adam import Adam, AdamW
from eager.optim.lbfgs import LBFGS
from eager.optim.optimizer import Optimizer
from eager.optim.rules import ASGD, Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop, Rprop
from eager.optim.sgd import SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler", "swa_utils",
]  # fmt: skip
