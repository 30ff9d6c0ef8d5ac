"""Neural networks: Module, layers, functions, initialisers. Built on the ops and on autograd.

Start with `module.py` (the base class) and `functional/` (the formulas); `modules/` wraps the functions as layers.
"""
from eager.nn import _reduction, attention, common_types, functional, grad, init, modules, parallel, parameter, utils
from eager.nn.module import Module
from eager.nn.modules._layers import *  # noqa: F403 - its __all__ is the list of layers
from eager.nn.modules._layers import __all__ as _LAYERS
from eager.nn.modules.utils import factory_kwargs
from eager.nn.parallel import DataParallel
from eager.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *_LAYERS,
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "common_types",
    "factory_kwargs", "functional", "grad", "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip
