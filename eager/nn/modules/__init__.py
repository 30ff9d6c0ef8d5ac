"""The layers by family, under the file names that model code imports them from."""
from eager.nn.modules import (
    activation,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    embedding,
    flatten,
    lazy,
    linear,
    loss,
    module,
    multihead,
    normalization,
    padding,
    pooling,
    rnn,
    transformer,
    upsampling,
    utils,
)
from eager.nn.modules.module import Module

__all__ = [
    "Module", "activation", "batchnorm", "container", "conv", "distance", "dropout", "embedding", "flatten", "lazy",
    "linear", "loss", "module", "multihead", "normalization", "padding", "pooling", "rnn", "transformer", "upsampling",
    "utils",
]  # fmt: skip
