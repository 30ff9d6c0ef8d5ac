"""Named results of functions that return several tensors: `torch.return_types`."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any


def _named(name: str, *fields: str) -> Any:
    """A named tuple class that prints as torch's and pickles by its name in this module."""
    make: Callable[..., type[tuple[Any, ...]]] = namedtuple  # the fields are not literals
    kind = make(name, fields, module=__name__)

    def show(self: Any) -> str:
        inside = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{inside})"

    setattr(kind, "__repr__", show)  # noqa: B010 - mypy takes a plain assignment for an override
    return kind


sort, topk, kthvalue, mode = (_named(name, "values", "indices") for name in ("sort", "topk", "kthvalue", "mode"))
median, nanmedian = (_named(name, "values", "indices") for name in ("median", "nanmedian"))
cummax, cummin = (_named(name, "values", "indices") for name in ("cummax", "cummin"))
max, min = (_named(name, "values", "indices") for name in ("max", "min"))  # noqa: A001
histogram, histogramdd = _named("histogram", "hist", "bin_edges"), _named("histogramdd", "hist", "bin_edges")
frexp = _named("frexp", "mantissa", "exponent")
aminmax = _named("aminmax", "min", "max")
slogdet = _named("slogdet", "sign", "logabsdet")
qr = _named("qr", "Q", "R")
svd = _named("svd", "U", "S", "V")
linalg_svd = _named("linalg_svd", "U", "S", "Vh")
linalg_eigh = _named("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_eig = _named("linalg_eig", "eigenvalues", "eigenvectors")
linalg_lu_factor = _named("linalg_lu_factor", "LU", "pivots")
linalg_lu = _named("linalg_lu", "P", "L", "U")
linalg_lstsq = _named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_cholesky_ex = _named("linalg_cholesky_ex", "L", "info")
linalg_inv_ex = _named("linalg_inv_ex", "inverse", "info")
linalg_solve_ex = _named("linalg_solve_ex", "result", "info")
linalg_lu_factor_ex = _named("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_ldl_factor = _named("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _named("linalg_ldl_factor_ex", "LD", "pivots", "info")
geqrf = _named("geqrf", "a", "tau")
lu_unpack = _named("lu_unpack", "P", "L", "U")
linalg_qr = _named("linalg_qr", "Q", "R")
linalg_slogdet = _named("linalg_slogdet", "sign", "logabsdet")
triangular_solve = _named("triangular_solve", "solution", "cloned_coefficient")
