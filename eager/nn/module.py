"""Module: the base class of all neural network modules.

It is built in layers, one file each: registries and attributes (`_base`), the call and its hooks
(`_hooks`), the tree (`_tree`), saved state (`_state`). This file adds printing and compilation.
"""
from __future__ import annotations

from typing import Any

from eager import _native, compiler
from eager.base.hooks import RemovableHandle
from eager.nn._base import (
    buffer_registration_hooks as _global_buffer_registration_hooks,
)
from eager.nn._base import (
    module_registration_hooks as _global_module_registration_hooks,
)
from eager.nn._base import (
    parameter_registration_hooks as _global_parameter_registration_hooks,
)
from eager.nn._base import typename
from eager.nn._hooks import global_backward_hooks as _global_backward_hooks
from eager.nn._hooks import global_backward_pre_hooks as _global_backward_pre_hooks
from eager.nn._hooks import global_forward_hooks as _global_forward_hooks
from eager.nn._hooks import global_forward_pre_hooks as _global_forward_pre_hooks
from eager.nn._hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from eager.nn._state import _EXTRA_STATE_KEY_SUFFIX, StatefulModule, _IncompatibleKeys


class Module(StatefulModule):
    """Base class of all neural network modules.

    Subclasses define `forward`. Tensors wrapped in Parameter or Buffer, and other modules, are
    registered when assigned as attributes; everything else is an ordinary attribute.
    """

    def extra_repr(self) -> str:
        """The text between the parentheses of the module's printed form. Subclasses override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the call of this module in place; takes the arguments of the top-level `compile`."""
        compiled = compiler.compile(self._call_impl, *args, **kwargs)
        _native.bump_epoch()
        self.__dict__["_compiled_call_impl"] = compiled

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_compiled_call_impl", None)
        return state


def _indent(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])


__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX",
    "Module",
    "RemovableHandle",
    "_IncompatibleKeys",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "typename",
]
