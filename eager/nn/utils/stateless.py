"""Calls of a module with other parameters and buffers."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from eager import _native
from eager.nn.module import Module

_ABSENT = object()


def _tied_names(module: Module) -> dict[str, list[str]]:
    """Maps each tensor name to all names of the same tensor."""
    groups: dict[int, list[str]] = {}
    for name, t in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        groups.setdefault(id(t), []).append(name)
    return {name: names for names in groups.values() for name in names}


def _put(module: Module, name: str, value: Any) -> Any:
    """Set a parameter or buffer by dotted name, bypassing `__setattr__`. Returns the former value, or _ABSENT.

    A name that is neither becomes an attribute; with the value _ABSENT the attribute is removed.
    """
    parent_name, _, attribute = name.rpartition(".")
    parent = module.get_submodule(parent_name)
    for registry in (parent._parameters, parent._buffers):
        if attribute in registry:
            before = registry[attribute]
            registry[attribute] = value
            return before
    before = parent.__dict__.get(attribute, _ABSENT)
    if value is _ABSENT:
        object.__delattr__(parent, attribute)
    else:
        object.__setattr__(parent, attribute, value)
    _native.bump_epoch()
    return before


@contextlib.contextmanager
def _reparametrize_module(module: Module, parameters_and_buffers: dict[str, Any], *, tie_weights: bool = False,
                          strict: bool = False, stack_weights: bool = False) -> Iterator[None]:  # fmt: skip
    """Within the block the module has the given tensors. strict: the given names must match its own exactly."""
    values = dict(parameters_and_buffers)
    if tie_weights:
        tied = _tied_names(module)
        for name, value in list(values.items()):
            for other in tied.get(name, ()):
                given = values.setdefault(other, value)
                if given is not value:
                    raise ValueError(f"functional_call got multiple values for keys {sorted(tied[name])}, which are tied. "
                                     "Consider using tie_weights=False")  # fmt: skip
    if strict:
        module_names = {n for n, _ in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]}
        unexpected, missing = sorted(set(values) - module_names), sorted(module_names - set(values))
        if unexpected or missing:
            text = "".join(f"\n\t{what} key(s): {', '.join(map(repr, names))}." for what, names in
                           (("Unexpected", unexpected), ("Missing", missing)) if names)  # fmt: skip
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{text}")
    before: dict[str, Any] = {}
    try:
        for name, value in values.items():
            before[name] = _put(module, name, value)
        yield
    finally:
        for name, value in reversed(before.items()):  # restore in reverse, because a shared submodule was set under each of its names
            _put(module, name, value)


def functional_call(module: Module, parameters_and_buffers: dict[str, Any] | Sequence[dict[str, Any]], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:  # fmt: skip
    """`module(*args, **kwargs)` with the given tensors; its own tensors are restored afterwards.

    parameters_and_buffers: a dict by dotted name, or a tuple of dicts. strict: require exactly the module's names.
    Raises: ValueError for a name in several dicts, or tied names with different tensors; RuntimeError (strict).
    """
    if isinstance(parameters_and_buffers, Sequence):
        merged: dict[str, Any] = {}
        for part in parameters_and_buffers:
            for name, value in part.items():
                if name in merged:
                    raise ValueError(f"{[name]} appeared in multiple dictionaries; behavior of functional call is ambiguous")
                merged[name] = value
        parameters_and_buffers = merged
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"expected keyword arguments to be dict or None, got {type(kwargs).__name__}")
    call = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*call, **(kwargs or {}))
