"""Ready-made parametrizations: weight normalisation, spectral normalisation, orthogonality."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base.spec import normalize_dim as _normalize_dim
from eager.nn.module import Module
from eager.nn.utils import parametrize
from eager.nn.utils.orthogonal import orthogonal
from eager.optable.table import OPS


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:  # noqa: A002 - torch's name
    """Norm over all dims except `dim`, keeping dims; over all dims for dim = -1.

    Raises: TypeError if dim is not an int; IndexError for a dim out of range.
    """
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"_weight_norm(): argument 'dim' (position 3) must be int, not {type(dim).__name__}")
    if dim == -1:
        return v.reshape(-1).norm(pow)
    kept = _normalize_dim(dim, v.ndim)
    others = tuple(i for i in range(v.ndim) if i != kept)
    if pow == 2:
        return OPS["sqrt"](OPS["sum"](v * v, others, True, None))
    return OPS["pow"](OPS["sum"](OPS["pow"](OPS["abs"](v), pow), others, True, None), 1.0 / pow)


def weight_from_norm(g: Tensor, v: Tensor, dim: int) -> Tensor:
    """`v` scaled to the norm `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_from_norm(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Reparametrize `module.name` as norm times direction. Source: Salimans & Kingma, 2016 (arXiv:1602.07868)."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def _unit(x: Tensor, eps: float) -> Tensor:
    return x / OPS["clamp"](x.norm(), eps, None)


class _SpectralNorm(Module):
    """Divides a weight by an estimate of its largest singular value, which each training forward refines."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight).detach()
            rows, columns = matrix.shape
            self.register_buffer("_u", _unit(matrix.new_empty((rows,)).normal_(0, 1), eps))
            self.register_buffer("_v", _unit(matrix.new_empty((columns,)).normal_(0, 1), eps))
            self._improve(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            order = (self.dim, *(d for d in range(weight.ndim) if d != self.dim))
            weight = OPS["permute"](weight, order)
        return weight.reshape(weight.shape[0], -1)

    def _improve(self, matrix: Tensor, iterations: int) -> None:
        before = _native.set_grad_enabled(False)
        try:
            for _ in range(iterations):
                self._u.copy_(_unit(matrix @ self._v, self.eps))
                self._v.copy_(_unit(matrix.t() @ self._u, self.eps))
        finally:
            _native.set_grad_enabled(before)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return _unit(weight, self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._improve(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        sigma = (u * (matrix @ v)).sum()
        return weight / sigma

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:  # fmt: skip
    """Divide `module.name` by its largest singular value. Source: Miyato et al., 2018 (arXiv:1802.05957).

    Raises: ValueError for a missing parameter or n_power_iterations < 1; IndexError for a dim out of range.
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


__all__ = ["norm_except_dim", "orthogonal", "spectral_norm", "weight_from_norm", "weight_norm"]
