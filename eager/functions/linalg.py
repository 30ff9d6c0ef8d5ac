"""Linear algebra in the main namespace: contractions, norms, distances, and aliases of `eager.linalg`."""
from __future__ import annotations

import math
from typing import Any

from eager import _native, linalg
from eager.base import dtypes, return_types
from eager.base.dtypes import scalar_name
from eager.base.spec import broadcast_shapes, normalize_dim, normalize_dims, size_at
from eager.functions.pointwise import kept
from eager.functions.views import transpose
from eager.optable.linalg import check_lapack_dtype, check_square
from eager.optable.lu_factors import check_pivots, permutation_of, unpack_factors
from eager.optable.matmul import transpose_last
from eager.optable.out import write_out
from eager.optable.precision import (
    FLOAT32,
    FLOAT32_ON_CPU,
    FLOAT32_ON_CUDA,
    FLOAT32_UNLESS_ASKED,
    LOWER,
    PROMOTE_ON_CUDA,
    Policy,
    Precision,
)
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import Out, public
from eager.tape.record import owned

TensorBase = _native.TensorBase


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result)


# ---- other contractions ----


@public(out=Out(differentiable=False), autocast=PROMOTE_ON_CUDA, parsed=False, kinds={"dims": ""})
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum of products over pairs of dims: the last `dims` of a with the first of b, or two lists of dims.

    Result: the remaining dims of a, then of b. Raises: RuntimeError if the sizes of a pair differ.
    """
    if isinstance(dims, TensorBase):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    dims_a = [normalize_dim(d, a.ndim) for d in dims_a]
    dims_b = [normalize_dim(d, b.ndim) for d in dims_b]
    if len(dims_a) != len(dims_b):
        raise RuntimeError(f"both dimension lists should have same length, got {dims_a} and {dims_b}")
    for i, j in zip(dims_a, dims_b, strict=True):  # a dim of one element stands for as many as its partner has
        if a.shape[i] != b.shape[j] and b.shape[j] == 1:
            a = OPS["sum"](a, (i,), True, a.dtype)
        elif a.shape[i] != b.shape[j] and a.shape[i] == 1:
            b = OPS["sum"](b, (j,), True, b.dtype)
        elif a.shape[i] != b.shape[j]:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size "
                               f"{b.shape[j]} in dim {j}")  # fmt: skip
    kept_a = [d for d in range(a.ndim) if d not in dims_a]
    kept_b = [d for d in range(b.ndim) if d not in dims_b]
    shape = (*(a.shape[d] for d in kept_a), *(b.shape[d] for d in kept_b))
    inner = math.prod(a.shape[d] for d in dims_a)
    left = OPS["permute"](a, (*kept_a, *dims_a)).reshape(math.prod(shape[: len(kept_a)]), inner)
    right = OPS["permute"](b, (*dims_b, *kept_b)).reshape(inner, math.prod(shape[len(kept_a) :]))
    return _out(OPS["mm"](left, right).reshape(shape), out)


@public(out=Out(exact=True, differentiable=False))
def inner(input: Any, other: Any, *, out: Any = None) -> Any:  # noqa: A002
    """Sum of products over the last dims: (*a, n), (*b, n) -> (*a, *b). Raises: RuntimeError if the last sizes differ."""
    if input.ndim == 0 or other.ndim == 0:
        return _out(input * other, out)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(input.shape)} and {list(other.shape)}")  # fmt: skip
    return tensordot(input, other, ([input.ndim - 1], [other.ndim - 1]), out)


@public(out=Out(exact=True), autocast=Precision(cuda=Policy.PROMOTE, cpu=Policy.KEEP))
def vdot(input: Any, other: Any) -> Any:  # noqa: A002
    """Dot product of vectors (n,), (n,) -> (), with the first conjugated. Raises: RuntimeError for other ranks or lengths."""
    if input.dtype.is_complex:
        input = OPS["conj"](input)
    return input.dot(other)


@public(out=Out(not_over_inputs=True))
def kron(input: Any, other: Any) -> Any:  # noqa: A002
    """Kronecker product: every element of `input` times `other`. Sizes multiply, after dims of 1 are added in front."""
    n = max(input.ndim, other.ndim)
    a = input.reshape((1,) * (n - input.ndim) + tuple(input.shape))
    b = other.reshape((1,) * (n - other.ndim) + tuple(other.shape))
    wide = a.reshape(tuple(v for m in a.shape for v in (m, 1))) * b.reshape(tuple(v for m in b.shape for v in (1, m)))
    return owned(wide.reshape(tuple(p * q for p, q in zip(a.shape, b.shape, strict=True))))


@public(out=Out(exact=True, not_over_inputs=True), autocast=PROMOTE_ON_CUDA)
def cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:  # noqa: A002
    """Cross product along `dim` of size 3, by default the first such dim. Operands of one rank broadcast. Raises: RuntimeError."""
    if dim is None:
        found = [i for i, n in enumerate(broadcast_shapes(input.shape, other.shape)) if n == 3]
        if not found:
            raise RuntimeError("no dimension of size 3 in input")
        dim = found[0]
    return linalg.cross(input, other, dim=dim, out=out)


@public(out=Out(), autocast=LOWER, parsed=False)
def chain_matmul(*matrices: Any) -> Any:
    """Product of several matrices in the cheapest order. Raises: RuntimeError for an empty list, and for a tensor that is not a matrix."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    return linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]


# ---- norms and distances ----


@public(out=Out(exact=True), autocast=FLOAT32_UNLESS_ASKED, parsed=False)
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:  # noqa: A002
    """Norm over `dim` (all dims by default). p: a number, "fro" or "nuc" (two dims). Raises: RuntimeError for integers or another p."""
    if isinstance(p, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    x = input if dtype is None else OPS["to_dtype"](input, dtype)
    if p == "nuc":
        dims = (-2, -1) if dim is None else tuple(dim)
        return _out(linalg.matrix_norm(x, "nuc", dims, keepdim), out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid p arguments are numbers, 'fro' and 'nuc', got {p!r}")
    order = 2.0 if p in ("fro", None) else float(p)
    result = OPS["vector_norm"](x, order, normalize_dims(dim, x.ndim), keepdim)
    return result if out is None else write_out(out, result, exact=True)


@public(autocast=FLOAT32_ON_CUDA, composed=True)
def dist(input: Any, other: Any, p: Any = 2) -> Any:  # noqa: A002
    """The p-norm of input - other, a tensor of shape (). The operands broadcast. Raises: RuntimeError if they do not."""
    if isinstance(p, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    d = input - other
    return OPS["vector_norm"](d, float(p), tuple(range(d.ndim)), False)


_CDIST_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@public(autocast=FLOAT32, composed=True, parsed=False)
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = _CDIST_MODES[0]) -> Any:
    """Distances between the rows of (*, n, d) and the rows of (*, m, d): (*, n, m).

    compute_mode: checked only. Each of torch's modes gives the distances of "donot_use_mm_for_euclid_dist", the accurate one.
    Raises: RuntimeError for shapes that do not fit or p below 0; ValueError for another compute_mode.
    """
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.ndim < 2 or x2.ndim < 2:
        raise RuntimeError(f"cdist only supports at least 2D tensors, X1 got: {x1.ndim}D and X2 got: {x2.ndim}D")
    for x in (x1, x2):
        if x.dtype.itemsize == 2 and x.dtype.is_floating_point:
            raise dtypes.no_kernel("cdist", x.dtype)
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x1.dtype)} but found {scalar_name(x2.dtype)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    d = OPS["unsqueeze"](x1, x1.ndim - 1) - OPS["unsqueeze"](x2, x2.ndim - 2)
    return OPS["vector_norm"](d, float(p), (d.ndim - 1,), False)


@public(out=Out(exact=True, not_over_inputs=True), autocast=FLOAT32_ON_CUDA, composed=True)
def renorm(input: Any, p: Any, dim: int, maxnorm: Any) -> Any:  # noqa: A002
    """A copy whose slices along `dim` have a p-norm of at most `maxnorm`. Raises: RuntimeError for p <= 0 or a negative maxnorm."""
    for name, value in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(value, complex):
            raise RuntimeError(f"renorm: {name} must be real-valued")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    d = normalize_dim(dim, input.ndim)
    norms = OPS["vector_norm"](input, float(p), tuple(i for i in range(input.ndim) if i != d), True)
    return in_rows(input.contiguous() * OPS["where"](norms > maxnorm, maxnorm / (norms + 1e-7), 1.0))


@public(autocast=Precision(cpu=Policy.KEEP), composed=True)
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:  # noqa: A002
    """Covariance of the rows of a matrix, columns being observations.

    fweights: how often each observation counts, integers (n); aweights: its importance, floating (n).
    Raises RuntimeError for weights of other shapes or dtypes, or below zero.
    """
    x = input.reshape(1, -1) if input.ndim < 2 else input
    x = OPS["to_dtype"](x, dtypes.get_default_dtype()) if x.dtype.is_integral else x
    weights = _observation_weights(x, fweights, aweights)
    total = x.shape[1] if weights is None else OPS["sum"](weights, (0,), False, None)
    if weights is None:
        x = x - OPS["mean"](x, (1,), True, None)
        norm: Any = max(total - correction, 0)
        weighted = x
    else:
        x = x - OPS["sum"](x * weights, (1,), True, None) / total
        norm = total - correction
        if aweights is not None:
            norm = total - correction * OPS["sum"](weights * aweights, (0,), False, None) / total
        norm = OPS["clamp"](norm, 0, None)
        weighted = x * weights
    turned = OPS["permute"](OPS["conj"](x) if x.dtype.is_complex else x, (1, 0))
    result = OPS["mm"](weighted, turned) / norm
    return OPS["view"](result, ()) if input.ndim < 2 or input.shape[0] == 1 else result


def _observation_weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """The product of both kinds of weights in x's real dtype, or None."""
    found = None
    for name, weights, integral in (("fweights", fweights, True), ("aweights", aweights, False)):
        if weights is None:
            continue
        if weights.ndim > 1 or weights.numel() != x.shape[1]:
            raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                               f"{weights.numel()} != {x.shape[1]}")  # fmt: skip
        if weights.dtype.is_integral is not integral:
            raise RuntimeError(f"cov(): expected {name} to have {'integral' if integral else 'floating point'} dtype but got {name} with "
                               f"{weights.dtype} dtype")  # fmt: skip
        cast = OPS["to_dtype"](weights, x.dtype.to_real())
        found = cast if found is None else found * cast
    return found


@public(autocast=Precision(cpu=Policy.KEEP), composed=True)
def corrcoef(input: Any) -> Any:  # noqa: A002
    """Correlation coefficients of the rows: (n, observations) -> (n, n), (observations,) -> (). Raises: RuntimeError for more dims."""
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = OPS["diagonal"](c, 0, 0, 1)
    deviation = OPS["sqrt"](OPS["real"](deviation) if c.dtype.is_complex else deviation)
    c = c / deviation.reshape(-1, 1) / deviation
    if c.dtype.is_complex:
        return OPS["complex"](OPS["clamp"](OPS["real"](c), -1, 1), OPS["clamp"](OPS["imag"](c), -1, 1))
    return OPS["clamp"](c, -1, 1)


# ---- older names ----


@public(out=Out(exact=True), autocast=FLOAT32_ON_CPU)
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:  # noqa: A002
    """U, S, V with U @ diag(S) @ V.mH = input (*, m, n). V is not transposed, unlike in `linalg.svd`.

    some: reduced U (*, m, k) and V (*, n, k), k = min(m, n). Raises: RuntimeError for fewer than 2 dims.
    """
    if not compute_uv:
        m, n = input.shape[-2:]
        blank = [OPS["full"]((*input.shape[:-2], k, k), 0, input.dtype, input.device) for k in (m, n)]
        return return_types.svd(blank[0], OPS["svdvals"](input), blank[1])
    u, s, vh = OPS["svd"](input, not some)
    return return_types.svd(u, s, transpose_last(vh))


@public(out=Out(exact=True), autocast=FLOAT32_ON_CPU)
def qr(input: Any, some: bool = True) -> Any:  # noqa: A002
    """Q and R with Q @ R = input (*, m, n): reduced if `some`, else complete. Raises: RuntimeError as `linalg.qr`."""
    return linalg.qr(input, "reduced" if some else "complete")


@public(out=Out(), autocast=FLOAT32_ON_CPU)
def cholesky(input: Any, upper: bool = False) -> Any:  # noqa: A002
    """`linalg.cholesky`."""
    return linalg.cholesky(input, upper=upper)


def _check_factor(who: str, b: Any, factor: Any) -> None:
    """Raise RuntimeError unless a right-hand side and a triangular factor are of one dtype, which LAPACK has."""
    if b.dtype is not factor.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {scalar_name(b.dtype)} and A of type "
                           f"{scalar_name(factor.dtype)} instead.")  # fmt: skip
    check_lapack_dtype(who, factor)


@public(out=Out(not_over_itself=True), autocast=FLOAT32_ON_CPU)
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Any:  # noqa: A002
    """X (*, n, k) with A @ X = input, from the Cholesky factor `input2` (*, n, n) of A. Raises: RuntimeError for other shapes."""
    _check_factor("cholesky_solve", input, input2)
    lower = adjoint(input2) if upper else input2
    y = linalg.solve_triangular(lower, input, upper=False)
    return linalg.solve_triangular(adjoint(lower), y, upper=True)


@public(out=Out(), autocast=FLOAT32_ON_CPU)
def cholesky_inverse(input: Any, upper: bool = False) -> Any:  # noqa: A002
    """The inverse (*, n, n) of A from its Cholesky factor `input`. upper: the factor is upper. Raises: RuntimeError unless square."""
    check_square("cholesky_inverse", input)
    identity = OPS["diag_embed"](OPS["full"](tuple(input.shape[:-1]), 1, input.dtype, input.device), 0, -2, -1)
    return cholesky_solve(identity, input, upper)


def det(input: Any) -> Any:  # noqa: A002
    """`linalg.det`."""
    return linalg.det(input)


@public(autocast=FLOAT32_ON_CPU)
def inverse(input: Any, *, out: Any = None) -> Any:  # noqa: A002
    """`linalg.inv`."""
    return linalg.inv(input, out=out)


@public(out=Out(exact=True))
def slogdet(input: Any) -> Any:  # noqa: A002
    """`linalg.slogdet`."""
    return linalg.slogdet(input)


def logdet(input: Any) -> Any:  # noqa: A002
    """Logarithm of determinants; nan for a negative one, and of complex ones the principal value."""
    sign, magnitude = OPS["slogdet"](input)
    if input.dtype.is_complex:
        return OPS["log"](sign) + magnitude
    return OPS["where"](sign < 0, math.nan, magnitude)


@public(out=Out())
def matrix_power(input: Any, n: int) -> Any:  # noqa: A002
    """`linalg.matrix_power`."""
    return linalg.matrix_power(input, n)


@public(out=Out(exact=True), autocast=FLOAT32_ON_CPU)
def triangular_solve(input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:  # noqa: A002, N803
    """(X, A) with A @ X = input for triangular A (*, n, n). input: (*, n, k). Raises: RuntimeError for other shapes."""
    _check_factor("linalg.solve_triangular", input, A)
    a = transpose_last(A) if transpose else A
    x = linalg.solve_triangular(a, input, upper=upper != transpose, unitriangular=unitriangular)
    return return_types.triangular_solve(x, OPS["clone"](A, None))


@public(out=Out(not_over_itself=True, not_over_inputs=True), autocast=FLOAT32_ON_CPU)
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:  # noqa: N803
    """X (*, n, k) with A @ X = b, from the factors and pivots of `linalg.lu_factor(A)`. Raises: RuntimeError for other shapes."""
    return linalg.lu_solve(LU_data, LU_pivots, b)


@public(out=Out(exact=True))
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:  # noqa: N803
    """P (*, m, m), L (*, m, k) and U (*, k, n) from the result of `linalg.lu_factor`. Raises: RuntimeError unless LU_pivots is int32."""
    if unpack_pivots:
        check_pivots("torch.lu_unpack", LU_data, LU_pivots)
    blank = OPS["full"]((0,), 0.0, LU_data.dtype, LU_data.device)
    lower, upper = unpack_factors(LU_data) if unpack_data else (blank, blank)
    turned = blank
    if unpack_pivots:
        turned = permutation_of(OPS["pivot_order"](LU_pivots, LU_data.shape[-2]), LU_data.dtype)
    return return_types.lu_unpack(turned, lower, upper)


@public(out=Out(exact=True))
def geqrf(input: Any) -> Any:  # noqa: A002
    """Householder reflectors a (*, m, n), with R in the upper triangle, and tau (*, min(m, n)), as LAPACK packs them."""
    return return_types.geqrf(*OPS["geqrf"](input))


@public(out=Out(exact=True))
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:  # noqa: A002
    """`other` multiplied by Q of the reflectors (input, tau) from the left or right. transpose: by Q^H. Raises: RuntimeError."""
    if input.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    m, count, side = input.shape[-2], tau.shape[-1], -2 if left else -1
    if other.shape[side] < count:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != m:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if count != min(m, input.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    square = OPS["constant_pad_nd"](input, (0, m - input.shape[-1]), 0)  # of a wide input the columns beyond m hold no reflector
    q = linalg.householder_product(square, tau)
    q = adjoint(q) if transpose else q
    return OPS["matmul"](q, other) if left else OPS["matmul"](other, q)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Norms of the slices along `dim`, as a tensor of v's rank; of all of v for dim -1."""
    if dim == -1:
        return OPS["vector_norm"](v, float(pow), tuple(range(v.ndim)), False)
    if size_at(v.shape, dim) == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape [{0 if dim == 0 else -1}, {-1 if dim == 0 else 0}] because the "
                           "unspecified dimension size -1 can be any value and is ambiguous")  # fmt: skip
    return OPS["vector_norm"](v, float(pow), tuple(d for d in range(v.ndim) if d != dim % v.ndim), True)


def frobenius_norm(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:  # noqa: A002
    """The root of the sum of squares over `dim`."""
    return linalg.vector_norm(input, 2, dim, keepdim, out=out)


@public(out=Out(exact=True))
def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False) -> Any:  # noqa: A002
    """The sum of singular values over the two dims `dim`. Raises: RuntimeError for fewer than 2 dims."""
    return linalg.matrix_norm(input, "nuc", (dim,) if isinstance(dim, int) else dim, keepdim)


@public(autocast=FLOAT32_ON_CPU)
def pinverse(input: Any, rcond: float = 1e-15) -> Any:  # noqa: A002
    """`linalg.pinv`."""
    return linalg.pinv(input, rcond)


def adjoint(input: Any) -> Any:  # noqa: A002
    """Matrices transposed and conjugated."""
    turned = transpose(input, -2, -1)
    return OPS["conj"](turned) if turned.dtype.is_complex else turned


def matrix_exp(input: Any) -> Any:  # noqa: A002
    """`linalg.matrix_exp`."""
    return linalg.matrix_exp(input)


def orgqr(input: Any, tau: Any, *, out: Any = None) -> Any:  # noqa: A002
    """`linalg.householder_product`."""
    return linalg.householder_product(input, tau, out=out)


_ALIASES = {"inverse": inverse, "det": det, "slogdet": slogdet, "logdet": logdet, "pinverse": pinverse,
            "matrix_power": matrix_power, "matrix_exp": matrix_exp, "cholesky": cholesky, "qr": qr, "svd": svd,
            "cholesky_solve": cholesky_solve, "cholesky_inverse": cholesky_inverse, "triangular_solve": triangular_solve,
            "lu_solve": lu_solve, "geqrf": geqrf, "ormqr": ormqr, "orgqr": orgqr}  # fmt: skip
_BOTH = {"tensordot": tensordot, "inner": inner, "vdot": vdot, "kron": kron, "cross": cross, "norm": norm, "dist": dist,
         "renorm": renorm, "cov": cov, "corrcoef": corrcoef, **_ALIASES}  # fmt: skip
FUNCTIONS: dict[str, Any] = {**_BOTH, "chain_matmul": chain_matmul, "cdist": cdist, "linalg": linalg,
                             "lu_unpack": lu_unpack,
                             "norm_except_dim": norm_except_dim, "frobenius_norm": frobenius_norm, "nuclear_norm": nuclear_norm}
METHODS: dict[str, Any] = dict(_BOTH)
METHODS.pop("tensordot")
METHODS["renorm_"] = lambda self, p, dim, maxnorm: self.copy_(renorm(kept(self), p, dim, maxnorm))
