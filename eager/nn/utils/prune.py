"""Pruning: a parameter becomes `name_orig` times the buffer `name_mask`, recomputed before each forward."""
from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.overriding import open_parameters
from eager.nn.module import Module
from eager.nn.utils.convert_parameters import parameters_to_vector
from eager.optable.table import OPS
from eager.random import state_for


def _ones_like(t: Tensor) -> Tensor:
    return OPS["full"](tuple(t.shape), 1.0, t.dtype, t.device)


def _drawn(size: tuple[int, ...], device: Any) -> Tensor:
    """Uniform random numbers from the default generator."""
    n = 1
    for s in size:
        n *= s
    return OPS["philox_uniform"](state_for(n, None, device), size, dtypes.float32)


class BasePruningMethod(ABC):
    """Base class of rules that compute a mask. PRUNING_TYPE: "unstructured", "structured" or "global"."""

    _tensor_name: str
    PRUNING_TYPE: str
    dim: int  # of a structured method: the dim of the channels

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The new mask, of t's shape, from the importance of the entries of t; zeros of default_mask remain zero."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter times its mask. Raises: AssertionError if it is not pruned."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(original.dtype) * original

    @classmethod
    @open_parameters
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> BasePruningMethod:
        """Prune `module.name`. If a method already prunes it, both are combined in a PruningContainer.

        Raises: AssertionError for importance scores of another shape; errors of the method itself.
        """
        earlier = [(key, hook) for key, hook in module._forward_pre_hooks.items()
                   if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]  # fmt: skip
        if len(earlier) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                                 "PruningContainer.")  # fmt: skip
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        for key, hook in earlier:
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        first = not earlier
        default_mask = _ones_like(original) if first else getattr(module, name + "_mask").detach().clone()
        mask = method.compute_mask(scores.detach(), default_mask)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of t. Raises: AssertionError for importance scores of another shape."""
        scores = t if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(t.shape):
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(scores.detach(), _ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the parameter an ordinary one with the pruned values. Raises: AssertionError if it is not pruned."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        values = self.apply_mask(module).detach()
        module.__dict__.pop(name, None)
        original = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        assert original is not None
        original.data = values
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor; each one sees only the entries that the earlier ones kept."""

    PRUNING_TYPE = "global"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same tensor. Raises: TypeError, ValueError for any other argument."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError("Can only add pruning methods acting on the parameter named "
                             f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'")  # fmt: skip
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask with additional zeros from the last method, which sees only unpruned entries."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone()
        selection: Any
        if method.PRUNING_TYPE == "unstructured":
            selection = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim
            dims = tuple(d for d in range(t.ndim) if d != dim % t.ndim)
            alive = OPS["sum"](default_mask, dims, False, None) != 0
            selection = tuple(alive if d == dim % t.ndim else slice(None) for d in range(t.ndim))
        elif method.PRUNING_TYPE == "global":
            selection = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[selection] = method.compute_mask(t[selection], default_mask[selection]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` unchanged."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:
        """Prune `module.name` with this method."""
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Prunes `amount` entries: a number, or a fraction of all."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(self.amount, size)
        return count


class RandomUnstructured(_ByAmount):
    """Prunes entries at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros at random entries."""
        return _zeroed(default_mask, _drawn((t.numel(),), t.device), self._count(t.numel()))

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> BasePruningMethod:
        """Prune `module.name` with this method."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the entries of smallest magnitude."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros at the smallest magnitudes."""
        return _zeroed(default_mask, OPS["abs"](t).reshape(-1), self._count(t.numel()))

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> BasePruningMethod:
        """Prune `module.name` with this method; importance_scores replace the magnitudes."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _zeroed(mask: Tensor, keys: Tensor, count: int) -> Tensor:
    """The mask with zeros at the `count` smallest keys; one key per entry."""
    mask = mask.clone().contiguous()
    if count:
        mask.view(-1)[OPS["topk"](keys, count, 0, False, True)[1]] = 0
    return mask


class _Structured(_ByAmount):
    """Prunes whole channels along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _keep(self, t: Tensor, keys: Tensor, count: int) -> Tensor:
        """1 for the kept channels, 0 for the `count` channels of smallest key; broadcasts against t."""
        kept = _ones_like(keys)
        if count:
            kept[OPS["topk"](keys, count, 0, False, True)[1]] = 0
        return kept.view(*(-1 if d == self.dim % t.ndim else 1 for d in range(t.ndim))).to(t.dtype)

    def _channels(self, t: Tensor) -> tuple[int, int]:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        n = t.shape[self.dim]
        return n, self._count(n)


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros in random channels."""
        n, count = self._channels(t)
        return default_mask * self._keep(t, _drawn((n,), t.device), count)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, dim: int = -1) -> BasePruningMethod:
        """Prune `module.name` with this method."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of smallest n-norm."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros in the channels of smallest n-norm."""
        _, count = self._channels(t)
        others = tuple(d for d in range(t.ndim) if d != self.dim % t.ndim)
        return default_mask * self._keep(t, t.norm(self.n, others), count)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, n: Any, dim: int,
              importance_scores: Tensor | None = None) -> BasePruningMethod:  # fmt: skip
        """Prune `module.name` with this method; importance_scores replace the entries in the norms."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks. Raises: AssertionError for differing shapes."""
        if tuple(default_mask.shape) != tuple(self.mask.shape):
            raise AssertionError("default_mask and self.mask must have the same shape")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:
        """Prune `module.name` with this method."""
        return super().apply(module, name, mask=mask)


# ---- as functions ----


def identity(module: Module, name: str) -> Module:
    """Register a mask of ones for a parameter, which prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune `amount` (a number or a fraction) of a parameter's entries at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the entries of smallest magnitude (of the parameter, or of importance_scores)."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune channels along dim at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None) -> Module:
    """Prune the channels along dim of smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Iterable[tuple[Module, str]], pruning_method: type[BasePruningMethod],
                        importance_scores: dict[tuple[Module, str], Tensor] | None = None, **kwargs: Any) -> None:  # fmt: skip
    """Prune several parameters as one: the method sees their concatenated entries. kwargs: the method's settings.

    Raises: TypeError for an argument that is not an iterable or dict, or a method that is not "unstructured".
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    before = _native.set_grad_enabled(False)
    try:
        scores = parameters_to_vector(given.get(pair, t) for pair, t in zip(pairs, tensors, strict=True))
        masks = parameters_to_vector(getattr(module, name + "_mask", _ones_like(t))
                                     for (module, name), t in zip(pairs, tensors, strict=True))  # fmt: skip
    finally:
        _native.set_grad_enabled(before)
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                        f"{pruning_method} of type {method.PRUNING_TYPE}")  # fmt: skip
    final = PruningContainer(method).compute_mask(scores, masks)
    offset = 0
    for (module, name), t in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, final[offset : offset + t.numel()].view(tuple(t.shape)))
        offset += t.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune where `mask` is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one with its pruned values. Raises: ValueError if it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether any parameter of this module or of a descendant is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())


# ---- checks ----


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.ndim <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                         f"{t.shape} with {t.ndim} dims")  # fmt: skip


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
