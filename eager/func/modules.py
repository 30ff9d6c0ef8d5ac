"""Calls of modules as functions of their parameters, and the stacked parameters of several like modules."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.functions.joining import stack
from eager.nn import Module
from eager.nn.modules.batchnorm import _BatchNorm
from eager.nn.utils import stateless


def functional_call(module: Module, parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:  # fmt: skip
    """`module(*args, **kwargs)` with the given tensors in place of its parameters and buffers of those names.

    tie_weights: a tensor given for one name of a shared parameter stands for its other names too. strict: all names
    must be given, and no others. Raises RuntimeError listing the names that do not fit.
    """
    return stateless.functional_call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make the batch norms in `root` use the statistics of each batch only: they then write to no buffer, which
    `vmap` over their input could not follow. Returns `root`, changed."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Sequence[Module] | Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of like modules, each stacked along a new dim 0: for `vmap` over `functional_call`.

    The stacked parameters are leaves that require gradients as the modules' own do.
    Raises: RuntimeError for no modules, for ones of different classes, or in different training modes.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = {name: _stacked([dict(m.named_parameters())[name] for m in models]) for name, _ in models[0].named_parameters()}
    buffers = {name: _stacked([dict(m.named_buffers())[name] for m in models]) for name, _ in models[0].named_buffers()}
    return params, buffers


def _stacked(tensors: list[Any]) -> Any:
    wanted = {t.requires_grad for t in tensors}
    if len(wanted) > 1:
        raise RuntimeError("Expected all parameters to have the same requires_grad")
    return stack([t.detach() for t in tensors]).requires_grad_(wanted.pop())


__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]
