"""The lowest layer of Module: attribute access, and the registries of parameters, buffers and submodules.

Every change of structure, of hooks, or of the value of a plain attribute bumps the epoch counter that compiled
code compares. One integer comparison therefore guards a whole module tree.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.nn.parameter import Buffer, Parameter

_MISSING = object()
# Attribute values that compare by value without running user code.
_PLAIN = (int, float, str, bool, type(None), bytes)


@_native.seal_type  # no instance can change its class, so compiled code need not guard a registry's class
class Registry(dict[Any, Any]):
    """A dict that bumps the epoch on every change, so that writes that bypass `Module.__setattr__` are seen too."""

    __slots__ = ("__weakref__",)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.get(key, _MISSING) is not value:
            _native.bump_epoch()
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        _native.bump_epoch()
        super().__delitem__(key)

    def pop(self, *args: Any) -> Any:
        """As dict.pop; bumps the epoch."""
        _native.bump_epoch()
        return super().pop(*args)

    def popitem(self) -> tuple[Any, Any]:
        """As dict.popitem; bumps the epoch."""
        _native.bump_epoch()
        return super().popitem()

    def clear(self) -> None:
        """As dict.clear; bumps the epoch."""
        _native.bump_epoch()
        super().clear()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As dict.update; bumps the epoch."""
        _native.bump_epoch()
        super().update(*args, **kwargs)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As dict.setdefault; bumps the epoch."""
        _native.bump_epoch()
        return super().setdefault(key, default)

    def __ior__(self, other: Any) -> Registry:  # type: ignore[misc]
        self.update(other)
        return self

    def move_to_end(self, key: Any, last: bool = True) -> None:
        """Move `key` to the end, or to the front with last=False, as OrderedDict does: `prepend=True` hooks run first."""
        items = list(self.items())
        value = super().pop(key)
        rest = [(k, v) for k, v in items if k != key]
        super().clear()
        self.update([*rest, (key, value)] if last else [(key, value), *rest])


# Called with (module, name, value) for every registration, in the order they were added.
module_registration_hooks: dict[int, Callable[..., Any]] = Registry()
parameter_registration_hooks: dict[int, Callable[..., Any]] = Registry()
buffer_registration_hooks: dict[int, Callable[..., Any]] = Registry()
REGISTRATION_HOOKS = (module_registration_hooks, parameter_registration_hooks, buffer_registration_hooks)


def typename(o: Any) -> str:
    """The name by which torch's error messages refer to the type of `o`."""
    if isinstance(o, Tensor) and not isinstance(o, Parameter):
        return o.type()
    kind = type(o)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__builtin__") else f"{module}.{kind.__qualname__}"


def _differs(old: Any, new: Any) -> bool:
    if old is new:
        return False
    if type(old) is type(new) and isinstance(new, _PLAIN):
        return bool(old != new)
    return True


class ModuleBase:
    """Registries of a module, and attribute access over them."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    dump_patches: bool = False
    _version: int = 1
    # A subclass sets this to pass its constructor arguments on to the next class in the MRO.
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if not self.call_super_init and args:
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        _native.bump_epoch()
        d = self.__dict__
        d["training"] = True
        d["_parameters"] = Registry()
        d["_buffers"] = Registry()
        d["_non_persistent_buffers_set"] = set()
        d["_backward_pre_hooks"] = Registry()
        d["_backward_hooks"] = Registry()
        d["_is_full_backward_hook"] = None
        d["_forward_hooks"] = Registry()
        d["_forward_hooks_with_kwargs"] = Registry()
        d["_forward_hooks_always_called"] = Registry()
        d["_forward_pre_hooks"] = Registry()
        d["_forward_pre_hooks_with_kwargs"] = Registry()
        d["_state_dict_hooks"] = Registry()
        d["_state_dict_pre_hooks"] = Registry()
        d["_load_state_dict_pre_hooks"] = Registry()
        d["_load_state_dict_post_hooks"] = Registry()
        d["_modules"] = Registry()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- attribute access ----

    def __getattr__(self, name: str) -> Any:
        d = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            entries = d.get(registry)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in d:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in d.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")  # fmt: skip
            self.register_parameter(name, None)
        elif isinstance(value, ModuleBase):
            if "_modules" not in d:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            d["_modules"][name] = _registered(module_registration_hooks, self, name, value)
        elif name in d.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")  # fmt: skip
            d["_modules"][name] = _registered(module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) or name in d.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            if _differs(d.get(name, _MISSING), value):
                _native.bump_epoch()
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")  # fmt: skip
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffers before Module.__init__() call")
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.__dict__["persistent"])
        else:
            self._buffers[name] = _registered(buffer_registration_hooks, self, name, value)

    def _forget(self, name: str, but: str) -> None:
        """Remove `name` from the instance dict and from every registry except `but`, which is about to receive it."""
        d = self.__dict__
        if name in d:
            _native.bump_epoch()
            del d[name]
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry != but and name in d[registry]:
                del d[registry][name]
        if but != "_buffers":
            d["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        _native.bump_epoch()
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                if registry is self._buffers:
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({n for n in names if not n[0].isdigit()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        _native.bump_epoch()
        self.__dict__.update(state)
        for name in ("_parameters", "_buffers", "_modules"):  # files written by torch hold plain dicts
            if not isinstance(self.__dict__.get(name), Registry):
                self.__dict__[name] = Registry(self.__dict__.get(name, ()))
        for name in ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_backward_pre_hooks", "_backward_hooks", "_state_dict_hooks",
                     "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):  # fmt: skip
            if not isinstance(self.__dict__.get(name), Registry):
                self.__dict__[name] = Registry(self.__dict__.get(name, ()))
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- registration ----

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not a parameter, such as a running mean.

        persistent: include the buffer in `state_dict()`.
        Raises: TypeError for a name or value of the wrong type; KeyError if the name is taken, empty or has a dot;
        AttributeError before `Module.__init__()` has run.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = _registered(buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, reachable as an attribute; None reserves the name.

        Raises: TypeError, KeyError and AttributeError as `register_buffer`; ValueError for a tensor that is not a leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")  # fmt: skip
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                             "forward() method.")  # fmt: skip
        self._parameters[name] = _registered(parameter_registration_hooks, self, name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule, reachable as an attribute; None reserves the name.

        Raises: TypeError for a value that is not a Module; TypeError and KeyError for a name, as `register_buffer`.
        """
        if module is not None and not isinstance(module, ModuleBase):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _registered(module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, what: str, name: Any, registry: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')


def _registered(hooks: dict[int, Callable[..., Any]], module: Any, name: str, value: Any) -> Any:
    """`value`, or its replacement if a global registration hook returns one."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value
