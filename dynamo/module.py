"""A compiled nn.Module: behaves as the module, calls the compiled code."""

from __future__ import annotations

from typing import Any

from dynamo.compiler import CompiledRegion
from eager.nn import Module
from fxir.backends import Backend
from fxir.options import CompileOptions


def call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The root of a module's capture."""
    return module(*args, **kwargs)


def rebuild(module: Module, backend: Backend, backend_name: str, options: CompileOptions) -> OptimizedModule:
    """A compiled form of `module`, for copies and pickles."""
    return OptimizedModule(module, CompiledRegion(backend, backend_name, options))


class OptimizedModule(Module):
    """`compile(module)`: the original is `_orig_mod`, its parameters are this module's parameters.

    Attributes are read from and written to the original; `train`, `eval`, `to` and the rest reach it as a submodule.
    """

    def __init__(self, module: Module, region: CompiledRegion) -> None:
        super().__init__()
        self._modules["_orig_mod"] = module
        self.__dict__["_region"] = region
        shown = getattr(type(module).forward, "__code__", None)
        self.__dict__["_compiled_call"] = region.function(call_module, shown)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """The mode of the original."""
        module = self._modules.get("_orig_mod")
        return True if module is None else module.training

    @training.setter
    def training(self, mode: bool) -> None:
        module = self._modules.get("_orig_mod")
        if module is not None:
            module.training = mode

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, pickled or deep, is compiled in the same way, anew."""
        region: CompiledRegion = self.__dict__["_region"]
        return rebuild, (self._modules["_orig_mod"], region.backend, region.backend_name, region.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled_call(self._modules["_orig_mod"], *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled_call(self._modules["_orig_mod"], *args, **kwargs)

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
        """Set the mode of the original."""
        self._modules["_orig_mod"].train(mode)
        return self

    def __repr__(self) -> str:
        return f"OptimizedModule(\n  (_orig_mod): {self._modules['_orig_mod']!r}\n)"
