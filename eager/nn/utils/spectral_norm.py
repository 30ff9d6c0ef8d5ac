"""The older form of spectral normalisation: parameter `name_orig`, buffers `name_u` and `name_v`, and a hook."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.nn.module import Module
from eager.nn.parameter import Parameter
from eager.nn.utils.parametrizations import _unit
from eager.optable.table import OPS


class SpectralNorm:
    """The pre-forward hook of one weight."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix: `dim` first, the other dims joined."""
        if self.dim != 0:
            weight = OPS["permute"](weight, (self.dim, *(d for d in range(weight.ndim) if d != self.dim)))
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(_unit(matrix.t() @ u, self.eps))
                    u.copy_(_unit(matrix @ v, self.eps))
        sigma = (u.clone() * (matrix @ v.clone())).sum()
        return weight / sigma

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Split the weight and add the hook to the module. Raises: RuntimeError if the weight is already normalised."""
        if _hook_of(module, name) is not None:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        matrix = fn.reshape_weight_to_matrix(weight.detach())
        rows, columns = matrix.shape
        del module._parameters[name]
        module.register_parameter(name + "_orig", Parameter(weight.detach(), weight.requires_grad))
        object.__setattr__(module, name, weight.detach())
        module.register_buffer(name + "_u", _unit(matrix.new_empty((rows,)).normal_(0, 1), eps))
        module.register_buffer(name + "_v", _unit(matrix.new_empty((columns,)).normal_(0, 1), eps))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter. The caller removes the hook."""
        weight = self.compute_weight(module, do_power_iteration=False)
        module.__dict__.pop(self.name, None)
        for suffix, registry in (("_orig", module._parameters), ("_u", module._buffers), ("_v", module._buffers)):
            del registry[self.name + suffix]
        module.register_parameter(self.name, Parameter(weight.detach()))


def _hook_of(module: Module, name: str) -> Any:
    """The key of the hook that normalises a weight, or None."""
    return next((k for k, h in module._forward_pre_hooks.items() if isinstance(h, SpectralNorm) and h.name == name), None)


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:  # fmt: skip
    """Divide a weight by its largest singular value at each call.

    Raises: RuntimeError if the weight is already normalised.
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight an ordinary parameter. Raises: ValueError if it is not normalised."""
    key = _hook_of(module, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook: Any = module._forward_pre_hooks[key]
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module
