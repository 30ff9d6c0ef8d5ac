"""Lazy modules: parameters take their shape from the first input."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.base.hooks import RemovableHandle
from eager.nn.parameter import is_lazy


class LazyModuleMixin:
    """Mixin for a module whose parameters are uninitialised until the first call.

    A subclass defines `initialize_parameters(*args)`; `cls_to_become` names the class that it turns into afterwards.
    """

    cls_to_become: type[Any] | None = None
    register_forward_pre_hook: Callable[..., RemovableHandle]  # of the Module that this class is mixed into

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialise the parameters with the shapes that these inputs require. Subclasses override this."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether any parameter or buffer is still uninitialised."""
        return any(is_lazy(t) for t in [*self._parameters.values(), *self._buffers.values()])

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any) -> None:
        module.initialize_parameters(*args, **kwargs)
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        delattr(module, "_initialize_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
