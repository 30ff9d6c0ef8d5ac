"""`torch.utils.module_tracker`: the running modules by dotted name, in forward and in backward.

A module's backward begins at the first gradient of its outputs and ends when all its inputs have their gradients; if
its inputs require no gradient, it ends with the pass.
"""
from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.autograd.graph import register_multi_grad_hook
from eager.nn import Module
from eager.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from eager.tape.engine import in_backward, queue_callback
from eager.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]

_log = logging.getLogger(__name__)
_EVERYTHING = "Global"


class ModuleTracker:
    """Tracks the modules of a block.

    parents: names of the running modules, and "Global"; a name consists of the outermost module's class and the path below it.
    is_bw: whether a backward pass is running.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {_EVERYTHING}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._ends_with_pass = False
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running on this thread."""
        return in_backward()

    def __enter__(self) -> ModuleTracker:
        self._hooks = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _name(self, module: Module) -> str:
        if module not in self._names:
            self._name_all(module, type(module).__name__)
        return self._names[module]

    def _name_all(self, module: Module, name: str) -> None:
        self._names[module] = name
        for child_name, child in module.named_children():
            if child not in self._names:
                self._name_all(child, f"{name}.{child_name}")

    def _begin(self, name: str) -> None:
        if name in self.parents:
            _log.info("The module hierarchy tracking seems to be broken as this Module was already entered. %s during %s",
                      name, "backward" if self.is_bw else "forward")  # fmt: skip
        self.parents.add(name)

    def _end(self, name: str) -> None:
        if name not in self.parents:
            _log.info("The Module hierarchy tracking is confused as we're exiting a Module that was never entered. %s during %s",
                      name, "backward" if self.is_bw else "forward")  # fmt: skip
        self.parents.discard(name)

    def _begin_backward(self, name: str) -> None:
        if not self._ends_with_pass:
            self._ends_with_pass = True
            queue_callback(self._end_of_pass)
        self._begin(name)

    def _end_of_pass(self) -> None:
        self.parents = {_EVERYTHING}
        self._ends_with_pass = False

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self._begin(name)
        self._at_gradients(args, "all", lambda grads: self._end(name))

    def _after(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self._end(name)
        self._at_gradients(output, "any", lambda grad: self._begin_backward(name))

    def _at_gradients(self, values: Any, mode: Any, hook: Callable[[Any], None]) -> None:
        if not _native.grad_enabled() or self.is_bw:  # a recomputation belongs to its backward pass
            return
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            register_multi_grad_hook(tensors, hook, mode=mode)
