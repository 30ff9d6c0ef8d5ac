"""Optimizers and learning-rate schedules."""
from eager.optim import (
    _adafactor,
    _muon,
    adadelta,
    adagrad,
    adam,
    adamax,
    adamw,
    asgd,
    lbfgs,
    lr_scheduler,
    nadam,
    optimizer,
    radam,
    rmsprop,
    rprop,
    sgd,
    sparse_adam,
    swa_utils,
)
from eager.optim._adafactor import Adafactor
from eager.optim._muon import Muon
from eager.optim.adadelta import Adadelta
from eager.optim.adagrad import Adagrad
from eager.optim.adam import Adam
from eager.optim.adamax import Adamax
from eager.optim.adamw import AdamW
from eager.optim.asgd import ASGD
from eager.optim.lbfgs import LBFGS
from eager.optim.nadam import NAdam
from eager.optim.optimizer import Optimizer
from eager.optim.radam import RAdam
from eager.optim.rmsprop import RMSprop
from eager.optim.rprop import Rprop
from eager.optim.sgd import SGD
from eager.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "_adafactor", "_muon", "adadelta", "adagrad", "adam", "adamax", "adamw",
    "asgd", "lbfgs", "lr_scheduler", "nadam", "optimizer", "radam", "rmsprop", "rprop", "sgd", "sparse_adam", "swa_utils",
]  # fmt: skip
