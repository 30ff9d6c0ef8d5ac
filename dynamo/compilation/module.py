"""A compiled nn.Module: it behaves as the original module and calls the compiled code."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Final

from dynamo import _native
from dynamo.compilation.region import CompiledRegion
from dynamo.policy import callees
from eager.nn import Module
from fxir.backends import Backend
from fxir.base.options import CompileOptions

_HOOKS_OF_CALLS: Final = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The root function of the capture of a module."""
    return module(*args, **kwargs)


def rebuild(module: Module, backend: Backend, backend_name: str, options: CompileOptions) -> OptimizedModule:
    """A compiled form of `module`, for copies and pickles."""
    return OptimizedModule(module, CompiledRegion(backend, backend_name, options))


class OptimizedModule(Module):
    """The result of `compile(module)`. The original module is the submodule `_orig_mod`, and this module shares its parameters.

    Attributes are read from and written to the original. Methods such as `train`, `eval` and `to` reach the original as a submodule.
    """

    def __init__(self, module: Module, region: CompiledRegion) -> None:
        super().__init__()
        self._modules["_orig_mod"] = module
        self.__dict__["_region"] = region
        shown = getattr(type(module).forward, "__code__", None)
        self.__dict__["_compiled_call"] = self.__dict__["_entry"] = region.function(call_module, shown)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """The training mode of the original."""
        module = self._modules.get("_orig_mod")
        return True if module is None else module.training

    @training.setter
    def training(self, mode: bool) -> None:
        module = self._modules.get("_orig_mod")
        if module is not None:
            module.training = mode

    @property
    def dynamo_ctx(self) -> Callable[[Any], Any]:
        """Compiles a function or a method with the settings of this module. Libraries apply it to other methods of the original."""
        return functools.partial(compiled_with, region=self.__dict__["_region"])

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickled or deep copy is compiled again with the same settings."""
        region: CompiledRegion = self.__dict__["_region"]
        return rebuild, (self._modules["_orig_mod"], region.backend, region.backend_name, region.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._entry(self._modules["_orig_mod"], *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled_call(self._modules["_orig_mod"], *args, **kwargs)

    def _call_with_hooks(self, module: Module, *args: Any, **kwargs: Any) -> Any:
        """A call after a hook was registered on this module, not on the original: such a hook runs outside the compiled code."""
        if any(self.__dict__[name] for name in _HOOKS_OF_CALLS):
            return self._call_hooked(args, kwargs)
        return self._compiled_call(module, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            self.__dict__[name] = value
            return
        setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})

    def train(self, mode: bool = True) -> OptimizedModule:
        """Set the training mode of the original."""
        self._modules["_orig_mod"].train(mode)
        return self

    def __repr__(self) -> str:
        return f"OptimizedModule(\n  (_orig_mod): {self._modules['_orig_mod']!r}\n)"


def _registering(name: str) -> Callable[..., Any]:
    """`Module.<name>`, which also makes later calls check for hooks. Without hooks, a call goes straight to the compiled code."""
    register = getattr(Module, name)

    @functools.wraps(register)
    def method(self: OptimizedModule, *args: Any, **kwargs: Any) -> Any:
        handle = register(self, *args, **kwargs)
        self.__dict__["_entry"] = self._call_with_hooks
        return handle

    return method


for _name in ("register_forward_pre_hook", "register_forward_hook", "register_full_backward_pre_hook", "register_full_backward_hook",
              "register_backward_hook"):  # fmt: skip
    setattr(OptimizedModule, _name, _registering(_name))


def compiled_with(model: Any, region: CompiledRegion) -> Any:
    """The compiled form, in `region`, of a function, method, partial, Module or other callable. Raises: TypeError for a class."""
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, region)
    if isinstance(model, _native.CompiledFunction):
        return region.function(model.__wrapped__)
    if isinstance(model, types.FunctionType) and id(model) not in callees.graph_functions():  # such a call is one node
        return region.function(model)
    if isinstance(model, types.MethodType):
        inner = model.__func__
        return types.MethodType(compiled_with(inner, region), model.__self__)
    if isinstance(model, functools.partial):
        return functools.partial(compiled_with(model.func, region), *model.args, **model.keywords)
    if isinstance(model, type):
        raise TypeError(f"compile: got the class {model.__name__}; allowed: a function, a Module or another callable object")
    call = type(model).__call__
    if isinstance(call, types.FunctionType):
        return types.MethodType(region.function(call), model)

    def called(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    functools.update_wrapper(called, model, assigned=("__name__", "__doc__"), updated=())
    return region.function(called)
