"""Parametrizations: a parameter that modules compute from other parameters each time it is read."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, cast

from eager import _native
from eager._tensor.tensor import Tensor
from eager.nn.module import Module
from eager.nn.modules.container import ModuleDict, ModuleList
from eager.nn.parameter import Parameter

_cache_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within the block, each parametrized tensor is computed only once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _inverse_or_same(parametrization: Any, value: Any) -> Any:
    """The result of `parametrization.right_inverse(value)`; `value` itself if there is no inverse for these settings."""
    inverse = getattr(parametrization, "right_inverse", None)
    if inverse is None:
        return value
    try:
        return inverse(value)
    except NotImplementedError:
        return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the tensors from which they compute it.

    These are `original`, or `original0`, `original1`, ... if the last `right_inverse` returned several.
    """

    is_tensor: bool
    ntensors: int

    def __init__(self, modules: list[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        before = _native.set_grad_enabled(False)
        try:
            for m in reversed(list(self)):
                new = _inverse_or_same(m, new)
        finally:
            _native.set_grad_enabled(before)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(new).__name__}")  # fmt: skip
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        d, shape = original.dtype, original.shape
        if self.is_tensor:
            self._keep(original, cast(Tensor, new))
        else:
            for i, t in enumerate(new):
                if not isinstance(t, Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                     f"Got element {i} of the sequence with type {type(t).__name__}.")  # fmt: skip
                self._take(f"original{i}", t, original)
        if not unsafe:
            self._check(d, shape)

    def _keep(self, original: Any, new: Tensor) -> None:
        """Write the new value into `original` itself, so that optimizers that hold the object stay valid."""
        for what in ("dtype", "device"):
            if getattr(original, what) != getattr(new, what):
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: "
                                 f"{getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}")  # fmt: skip
        if new is not original:
            original.data = new.detach()
        if isinstance(original, Parameter):
            self.register_parameter("original", original)
        else:
            self.register_buffer("original", original)

    def _take(self, name: str, value: Tensor, original: Tensor) -> None:
        if isinstance(original, Parameter):
            wants = original.requires_grad and value.is_floating_point()
            self.register_parameter(name, Parameter(value.detach(), requires_grad=wants))
        else:
            self.register_buffer(name, value)

    def _check(self, d: Any, shape: Any) -> None:
        result: Any = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, old, new in (("dtype", d, result.dtype), ("shape", shape, result.shape)):
            if old != new:
                raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                                 f"enabled.\nunparametrized {what}: {old}\nparametrized {what}: {new}")  # fmt: skip

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized tensor becomes `value`.

        Raises: RuntimeError for a parametrization without `right_inverse`; ValueError for a result that does not fit.
        """
        before = _native.set_grad_enabled(False)
        try:
            new: Any = value
            for m in reversed(list(self)):
                inverse = getattr(m, "right_inverse", None)
                if inverse is None:
                    raise RuntimeError(f"parametrization {type(m).__name__} does not implement right_inverse.")
                new = inverse(new)
            for target, source in zip(self._originals(), [new] if self.is_tensor else new, strict=True):
                target.data = source.detach().clone() if source.data_ptr() == value.data_ptr() else source.detach()
        finally:
            _native.set_grad_enabled(before)

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        modules = list(self)
        x = modules[0](*self._originals())
        for m in modules[1:]:
            x = m(x)
        return x


def _get(module: Any, name: str) -> Any:
    parametrization = module.parametrizations[name]
    if not _cache_depth:
        return parametrization()
    key = (id(module), name)
    if key not in _cache:
        _cache[key] = parametrization()
    return _cache[key]


def _install(module: Module, name: str) -> None:
    """Give `module` a separate class, with a property that computes the tensor."""
    kind = type(module)
    if not hasattr(kind, "_parametrized_from"):
        made = type(f"Parametrized{kind.__name__}", (kind,), {"_parametrized_from": kind, "__module__": kind.__module__})
        module.__class__ = made
        module.parametrizations = ModuleDict()
    setattr(type(module), name, property(lambda self: _get(self, name), lambda self, v: self.parametrizations[name].right_inverse(v)))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Compute `module.tensor_name` by `parametrization` of its present value from now on. Repeated calls chain.

    A `right_inverse` of the parametrization maps the present value to the initial original tensors.
    Raises: ValueError if there is no such tensor, or the result differs in shape or dtype (unless `unsafe`).
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        existing = module.parametrizations[tensor_name]
        if not unsafe:
            _check_further(parametrization, getattr(module, tensor_name))
        existing.append(parametrization)
        existing.unsafe |= unsafe
        return module
    original = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
    if original is None:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")  # fmt: skip
    entries = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    _install(module, tensor_name)
    module.parametrizations[tensor_name] = entries
    return module


def _check_further(parametrization: Module, value: Tensor) -> None:
    """Raise ValueError if an additional parametrization changes dtype or shape, forwards or backwards."""
    result = parametrization(value)
    inverse = _inverse_or_same(parametrization, result)
    for what in ("dtype", "shape"):
        old = getattr(value, what)
        for who, new in (("A parametrization", result), ("The tensor returned by parametrization.right_inverse", inverse)):
            if not isinstance(new, Tensor):
                raise ValueError(f"{who} must return a tensor. Got {type(new).__name__}.")
            if getattr(new, what) != old:
                raise ValueError(f"{who} may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
                                 f"module {what}: {old}\nparametrized {what}: {getattr(new, what)}")  # fmt: skip


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module`, or its tensor `tensor_name`, is parametrized."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary one: its present value, or with leave_parametrized=False its original.

    Raises: ValueError if the tensor is not parametrized, or has several originals with leave_parametrized=False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entries = module.parametrizations[tensor_name]
    original = entries._originals()[0]
    if leave_parametrized:
        before = _native.set_grad_enabled(False)
        try:
            value = getattr(module, tensor_name).detach().clone()
        finally:
            _native.set_grad_enabled(before)
    else:
        if not entries.is_tensor:
            raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of "
                             "a sequence of tensors.")  # fmt: skip
        value = original.detach()
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, Parameter(value, requires_grad=original.requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of `module` before parametrization."""
    return getattr(type(module), "_parametrized_from", type(module))


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Copy the parametrizations and their originals, of all tensors or of `tensor_name`, to `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module
