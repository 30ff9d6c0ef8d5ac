"""The tree layer of Module: walking submodules, parameters and buffers, and changing all of them."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base.device import device
from eager.base.dtypes import bfloat16 as bfloat16_type
from eager.base.dtypes import dtype, float16, float32, float64
from eager.functions.convert import parse_to
from eager.nn._base import ModuleBase
from eager.nn._hooks import HookedModule
from eager.nn.parameter import Parameter, is_lazy

Self = TypeVar("Self", bound="TreeModule")


class TreeModule(HookedModule):
    """Adds traversal (`named_*`, `get_*`), changes of the whole tree (`apply`, conversions), and train/eval mode."""

    # ---- walking ----

    def children(self) -> Iterator[Any]:
        """Immediate submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Names and immediate submodules, each module once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all its descendants, each once unless remove_duplicate is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:  # fmt: skip
        """Dotted names and modules of the whole tree, depth first, starting with this module."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def _named_members(self, get: Callable[[Any], Iterable[tuple[str, Any]]], prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:  # fmt: skip
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield module_prefix + ("." if module_prefix else "") + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with `recurse`, of its descendants; each once."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:  # fmt: skip
        """Dotted names and parameters of this module and, with `recurse`, of its descendants."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with `recurse`, of its descendants; each once."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:  # fmt: skip
        """Dotted names and buffers of this module and, with `recurse`, of its descendants."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    # ---- looking up by dotted name ----

    def get_submodule(self, target: str) -> Any:
        """The submodule with this dotted name; "" is this module. Raises: AttributeError for an unknown name."""
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, ModuleBase):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put `module` at a dotted name; with `strict`, only in place of an existing submodule.

        Raises: ValueError for an empty name or a value that is not a Module; AttributeError for a path that does not exist.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleBase):
            raise ValueError(f'`module` is not an nn.Module, found {type(module)}')
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), ModuleBase):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with this dotted name. Raises: AttributeError for an unknown name."""
        parent_name, _, name = target.rpartition(".")
        module = self.get_submodule(parent_name)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name. Raises: AttributeError for an unknown name."""
        parent_name, _, name = target.rpartition(".")
        module = self.get_submodule(parent_name)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        found: Tensor = module._buffers[name]
        return found

    # ---- changing the whole tree ----

    def apply(self: Self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every module, children before their parent."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, its gradient and every buffer `t` by `fn(t)`. Parameters keep their identity."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for p in self._parameters.values():
            if p is None:
                continue
            before = _native.set_grad_enabled(False)
            try:
                p.data = fn(p.detach())
                if p.grad is not None:
                    grad = fn(p.grad.detach())
                    grad.requires_grad_(p.grad.requires_grad)
                    p.grad = grad
            finally:
                _native.set_grad_enabled(before)
        for name, b in self._buffers.items():
            if b is None:
                continue
            if is_lazy(b):
                b.data = fn(b.detach())  # remains uninitialised, with the new dtype or device
            else:
                self._buffers[name] = fn(b)
        return self

    def float(self: Self) -> Self:
        """Cast all floating parameters and buffers to float32."""
        return self._apply(lambda t: t.to(float32) if t.is_floating_point() else t)

    def double(self: Self) -> Self:
        """Cast all floating parameters and buffers to float64."""
        return self._apply(lambda t: t.to(float64) if t.is_floating_point() else t)

    def half(self: Self) -> Self:
        """Cast all floating parameters and buffers to float16."""
        return self._apply(lambda t: t.to(float16) if t.is_floating_point() else t)

    def bfloat16(self: Self) -> Self:
        """Cast all floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.to(bfloat16_type) if t.is_floating_point() else t)

    def type(self: Self, dst_type: Any) -> Self:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def cuda(self: Self, device: Any = None) -> Self:
        """Move all parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self: Self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Give all parameters and buffers fresh, undefined memory on `device`."""
        from_like = _empty_like_on(device)
        return self._apply(from_like, recurse=recurse)

    @overload
    def to(self: Self, device: Any = ..., dtype: dtype | None = ..., non_blocking: bool = ...) -> Self: ...
    @overload
    def to(self: Self, *args: Any, **kwargs: Any) -> Self: ...
    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move and/or cast: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`.

        Only floating and complex parameters and buffers are cast; all are moved.
        Raises: TypeError for an integer dtype.
        """
        where, kind, _, memory_format, non_blocking = parse_to(args, kwargs)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")

        def convert(t: Tensor) -> Tensor:
            target = kind if kind is not None and (t.is_floating_point() or t.is_complex()) else t.dtype
            if memory_format is not None and t.ndim in (4, 5):
                return t.to(where or t.device, target, non_blocking, memory_format=memory_format)
            return t.to(where or t.device, target, non_blocking)

        return self._apply(convert)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set every parameter's gradient to None, or with `set_to_none=False` fill it with zeros."""
        for p in self.parameters():
            if set_to_none:  # whether there is a gradient is not read: a capture would depend on it
                p.grad = None
            elif p.grad is not None:
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    def share_memory(self: Self) -> Self:
        """Move all parameters and buffers into shared memory. Raises: RuntimeError for an uninitialised one."""
        if any(is_lazy(t) for m in self.modules() for t in (*m._parameters.values(), *m._buffers.values())):
            raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
                               "parameters before calling `module.share_memory()`.")  # fmt: skip
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()  # share `t` itself: sharing `t.data` would fail, because `t` would still refer to the old memory
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode on this module and all its descendants. Raises: ValueError if mode is not a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)


def _empty_like_on(where: Any) -> Callable[[Tensor], Tensor]:
    target = device(where)

    def make(t: Tensor) -> Tensor:
        return t.new_empty(tuple(t.shape), device=target)

    return make
