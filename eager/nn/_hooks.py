"""The call layer of Module: `module(...)` runs forward between hooks.

Without hooks, a call costs one test and `forward`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.hooks import RemovableHandle
from eager.base.overriding import open_parameters
from eager.nn._base import (
    ModuleBase,
    Registry,
    buffer_registration_hooks,
    module_registration_hooks,
    parameter_registration_hooks,
)
from eager.optable.table import OPS
from eager.tape.node import attach

# Hooks that run for every module, before the module's own.
global_forward_pre_hooks: dict[int, Callable[..., Any]] = Registry()
global_forward_hooks: dict[int, Callable[..., Any]] = Registry()
global_forward_hooks_with_kwargs: dict[int, bool] = Registry()
global_forward_hooks_always_called: dict[int, bool] = Registry()
global_backward_pre_hooks: dict[int, Callable[..., Any]] = Registry()
global_backward_hooks: dict[int, Callable[..., Any]] = Registry()
GLOBAL_CALL_HOOKS = (global_forward_pre_hooks, global_forward_hooks, global_backward_pre_hooks, global_backward_hooks)


class HookedModule(ModuleBase):
    """Adds hooks and `__call__`."""

    _backward_hooks: dict[int, Callable[..., Any]]
    _backward_pre_hooks: dict[int, Callable[..., Any]]
    _is_full_backward_hook: bool | None
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: dict[int, bool]

    @open_parameters
    def forward(self, *input: Any) -> Any:
        """Compute the module's outputs. Every subclass overrides this. Raises: NotImplementedError here."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        compiled = self._compiled_call_impl
        if compiled is not None:
            return compiled(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        d = self.__dict__
        if not (d["_forward_hooks"] or d["_forward_pre_hooks"] or d["_backward_hooks"] or d["_backward_pre_hooks"]
                or global_forward_pre_hooks or global_forward_hooks or global_backward_hooks
                or global_backward_pre_hooks):  # fmt: skip
            return self.forward(*args, **kwargs)
        return self._call_hooked(args, kwargs)

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._run_hooked(args, kwargs, called)
        except BaseException:
            # Hooks registered with always_call run even if forward raises; forward's error takes precedence over theirs.
            for owner, always in ((global_forward_hooks, global_forward_hooks_always_called),
                                  (self._forward_hooks, self._forward_hooks_always_called)):  # fmt: skip
                for key, hook in list(owner.items()):
                    if key in always and key not in called:
                        self._call_forward_hook(key, hook, args, kwargs, None)
            raise

    def _run_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        for key, pre_hook in [*global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                got = pre_hook(self, args, kwargs)
                if got is not None:
                    if not (isinstance(got, tuple) and len(got) == 2):
                        raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                           f"but got {got}.")  # fmt: skip
                    args, kwargs = got
            else:
                got = pre_hook(self, args)
                if got is not None:
                    args = got if isinstance(got, tuple) else (got,)
        backward = self._backward_boundary()
        if backward is not None:
            args = backward.wrap_inputs(args)
        result = self.forward(*args, **kwargs)
        for key, hook in [*global_forward_hooks.items(), *self._forward_hooks.items()]:
            called.add(key)
            got = self._call_forward_hook(key, hook, args, kwargs, result)
            if got is not None:
                result = got
        return result if backward is None else backward.wrap_outputs(result)

    def _call_forward_hook(self, key: int, hook: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> Any:
        if key in self._forward_hooks_with_kwargs or key in global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _backward_boundary(self) -> _BackwardBoundary | None:
        hooks = [*global_backward_hooks.values(), *self._backward_hooks.values()]
        pre_hooks = [*global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        return _BackwardBoundary(self, hooks, pre_hooks) if hooks or pre_hooks else None

    # ---- registration ----

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:  # fmt: skip
        """Call `hook(module, args)` before forward. A result other than None replaces the arguments.

        with_kwargs: the hook takes (module, args, kwargs) and returns a pair. prepend: run before the other hooks.
        Returns: a handle whose `remove()` unregisters the hook.
        """
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        _insert(self._forward_pre_hooks, handle.id, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:  # fmt: skip
        """Call `hook(module, args, output)` after forward. A result other than None replaces the output.

        with_kwargs: the hook takes (module, args, kwargs, output). always_call: run even if forward raises.
        Returns: a handle whose `remove()` unregisters the hook.
        """
        handle = RemovableHandle(
            self._forward_hooks, extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        )
        _insert(self._forward_hooks, handle.id, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are computed.

        A result other than None replaces grad_input. Raises: RuntimeError if the module has a regular backward hook.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")  # fmt: skip
        self._is_full_backward_hook = True
        handle = RemovableHandle(self._backward_hooks)
        _insert(self._backward_hooks, handle.id, hook, prepend)
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated form of `register_full_backward_hook`, with the same behaviour.

        Raises: RuntimeError if the module has a full backward hook.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")  # fmt: skip
        self._is_full_backward_hook = False
        handle = RemovableHandle(self._backward_hooks)
        _insert(self._backward_hooks, handle.id, hook, False)
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward.

        A result other than None replaces grad_output.
        """
        handle = RemovableHandle(self._backward_pre_hooks)
        _insert(self._backward_pre_hooks, handle.id, hook, prepend)
        return handle


def _insert(hooks: Any, key: int, hook: Any, prepend: bool) -> None:
    hooks[key] = hook
    if prepend:
        hooks.move_to_end(key, last=False)


def _flatten_tensors(value: Any) -> list[Tensor]:
    """The tensors directly in `value`: `value` itself, or the tensor members of a tuple or list."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [v for v in value if isinstance(v, Tensor)]
    return []


def _replace_tensors(value: Any, replacements: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return replacements[0]
    rest = iter(replacements)
    items = [next(rest) if isinstance(v, Tensor) else v for v in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*items)
    return type(value)(items)


class _BackwardBoundary:
    """Two identity nodes around a module's forward, through which its gradients pass.

    The gradients of the outputs arrive first and run the pre-hooks; the gradients of the inputs arrive last and run the hooks.
    """

    def __init__(self, module: HookedModule, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.wrapped_inputs = False

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        tensors = _flatten_tensors(args)
        if not any(t.requires_grad for t in tensors):
            return args
        views = [OPS["view"](t.detach(), tuple(t.shape)) for t in tensors]
        self.wrapped_inputs = True
        attach(views, tensors, self._inputs_done, "BackwardHookFunctionBackward")
        return _replace_tensors(args, views)

    def wrap_outputs(self, result: Any) -> Any:
        if isinstance(result, dict):
            return result
        tensors = _flatten_tensors(result)
        if not any(t.requires_grad for t in tensors):
            return result
        views = [OPS["view"](t.detach(), tuple(t.shape)) for t in tensors]
        attach(views, tensors, self._outputs_arrived, "BackwardHookFunctionBackward")
        return _replace_tensors(result, views)

    def _outputs_arrived(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.pre_hooks:
            got = hook(self.module, grads)
            if got is not None:
                grads = got if isinstance(got, tuple) else (got,)
        self.grad_outputs = grads
        if not self.wrapped_inputs:  # no input requires a gradient: run the hooks now
            for hook in self.hooks:
                if hook(self.module, (), grads) is not None:
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                       "None or None for all gradients.")  # fmt: skip
        return grads

    def _inputs_done(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            got = hook(self.module, grads, self.grad_outputs)
            if got is not None:
                got = got if isinstance(got, tuple) else (got,)
                if len(got) != len(grads):
                    raise RuntimeError("Backward hook returned an invalid number of grad_input, got "
                                       f"{len(got)}, but expected {len(grads)}")  # fmt: skip
                grads = got
        return grads


# ---- hooks of every module ----


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before every module's forward. Returns a handle to remove the hook."""
    handle = RemovableHandle(global_forward_pre_hooks)
    global_forward_pre_hooks[handle.id] = hook
    return handle


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:  # fmt: skip
    """Call `hook(module, args, output)` after every module's forward. Returns a handle to remove the hook."""
    handle = RemovableHandle(global_forward_hooks, extra_dict=[global_forward_hooks_with_kwargs, global_forward_hooks_always_called])
    global_forward_hooks[handle.id] = hook
    if with_kwargs:
        global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before every module's backward. Returns a handle to remove the hook."""
    handle = RemovableHandle(global_backward_pre_hooks)
    global_backward_pre_hooks[handle.id] = hook
    return handle


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after every module's backward.

    Returns a handle to remove the hook.
    """
    handle = RemovableHandle(global_backward_hooks)
    global_backward_hooks[handle.id] = hook
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated form of `register_module_full_backward_hook`."""
    return register_module_full_backward_hook(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` at every buffer registration; a result other than None replaces the buffer."""
    handle = RemovableHandle(buffer_registration_hooks)
    buffer_registration_hooks[handle.id] = hook
    return handle


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` at every submodule registration; a result other than None replaces it."""
    handle = RemovableHandle(module_registration_hooks)
    module_registration_hooks[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, param)` at every parameter registration; a result other than None replaces it."""
    handle = RemovableHandle(parameter_registration_hooks)
    parameter_registration_hooks[handle.id] = hook
    return handle
