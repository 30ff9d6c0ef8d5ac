"""A module as a function of its parameters: functorch's interface that preceded `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from eager.functions.joining import stack
from eager.nn import Module
from eager.nn.utils.stateless import functional_call

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
           "make_functional_with_buffers"]  # fmt: skip


class FunctionalModule(Module):
    """Calls a module with the parameters given as the first argument, in the order of `param_names`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """Calls a module with the parameters and buffers given as the first two arguments."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(self.param_names, params, strict=True)), **dict(zip(self.buffer_names, buffers, strict=True))}
        return functional_call(self.stateless_model, given, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """(a function of parameters and the model's arguments, the model's parameters). The model is copied.

    disable_autograd_tracking: the returned parameters do not require gradients.
    Raises: RuntimeError for a model with buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    inner, names, params = _split(model, disable_autograd_tracking)
    return FunctionalModule(inner, names), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """(a function of parameters, buffers and the model's arguments, the parameters, the buffers). The model is copied."""
    inner, names, params = _split(model, disable_autograd_tracking)
    buffers = dict(inner.named_buffers())
    return FunctionalModuleWithBuffers(inner, names, tuple(buffers)), params, tuple(buffers.values())


def _split(model: Module, is_detached: bool) -> tuple[Module, tuple[str, ...], tuple[Any, ...]]:
    inner = copy.deepcopy(model)
    named = dict(inner.named_parameters())
    if is_detached:
        for parameter in named.values():
            parameter.requires_grad_(False)
    return inner, tuple(named), tuple(named.values())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """`make_functional_with_buffers` of equal models, with each parameter and buffer stacked along a new dim 0.

    Raises: RuntimeError for no models, and for models of different classes or training modes.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return (functions[0], tuple(stack(list(group)).detach() for group in zip(*params, strict=True)),
            tuple(stack(list(group)).detach() for group in zip(*buffers, strict=True)))  # fmt: skip
