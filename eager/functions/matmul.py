"""Public matrix products."""
from __future__ import annotations

from typing import Any

from eager.base import dtypes
from eager.base.dtypes import c_name
from eager.base.overlap import check_no_overlap
from eager.base.scalars import check_element
from eager.base.spec import size_at
from eager.functions.pointwise import operand
from eager.optable.declaration import composition
from eager.optable.matmul import check_same_dtype
from eager.optable.out import write_out
from eager.optable.precision import LOWER, Policy, Precision
from eager.optable.table import OPS
from eager.public.record import BETA_FIRST, Out, public, variant


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result, exact=True)


@public(autocast=LOWER)
def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Matrix product (*, n, k) @ (*, k, m) -> (*, n, m); leading dims broadcast, a vector (k,) counts as a row or column.

    Raises: RuntimeError for a scalar, sizes that do not fit, or two dtypes.
    """
    if input.is_sparse:
        return _out(input.matmul(other), out)
    return _out(OPS["matmul"](input, other), out)


@public(autocast=LOWER)
def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """(n, k) by (k, m) to (n, m). Raises: RuntimeError for shapes that do not fit or two dtypes."""
    return _out(input.mm(mat2) if input.is_sparse else OPS["mm"](input, mat2), out)


@public(out=Out(exact=True))
def _scaled_mm(input: Any, mat2: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None, out_dtype: Any = None,
               use_fast_accum: bool = False) -> Any:  # fmt: skip
    """(n, k) by (k, m) to (n, m) for matrices of float8_e4m3fn or float8_e5m2: (input @ mat2) * scale_a * scale_b + bias.

    Sums are of float32, also where `use_fast_accum` allows less. scale_a, scale_b: float32, one number each, or (n, 1) and (1, m).
    bias: (m,).
    out_dtype: of the result, by default the dtype of `input`.
    Raises: RuntimeError for other operands, ValueError for other scales, NotImplementedError for a `scale_result`.
    """
    if scale_result is not None:
        raise NotImplementedError("_scaled_mm: scale_result is not supported; multiply scale_a by it instead")
    total = OPS["float8_mm"](input, mat2)
    shapes = tuple(scale_a.shape), tuple(scale_b.shape)
    is_one = scale_a.numel() == 1 and scale_b.numel() == 1
    rows, columns = total.shape
    if any(s.dtype is not dtypes.float32 for s in (scale_a, scale_b)) or not (is_one or shapes == ((rows, 1), (1, columns))):
        raise ValueError(f"Invalid scaling configuration: scales of {scale_a.dtype} {list(shapes[0])} and {scale_b.dtype} "
                         f"{list(shapes[1])}; allowed: float32, one number each, or [{rows}, 1] and [1, {columns}]")  # fmt: skip
    if is_one:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    if bias is not None and bias.numel() != columns:
        raise RuntimeError(f"Bias must be size {columns} but got {bias.numel()}")
    total = total * (scale_a * scale_b)
    return (total if bias is None else total + bias.float()).to(input.dtype if out_dtype is None else out_dtype)


@public(out=Out(exact=True), autocast=LOWER)
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """(b, n, k) by (b, k, m) to (b, n, m). Raises: RuntimeError for shapes that do not fit or two dtypes."""
    return _out(OPS["bmm"](input, mat2), out)


@public(out=Out(exact=True), autocast=Precision(cuda=Policy.LOWER, cpu=Policy.KEEP))
def mv(input: Any, vec: Any) -> Any:
    """(n, m) by (m,) to (n,). Raises: RuntimeError for other ranks."""
    size_at(input.shape, 0)
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {vec.ndim}")
    return OPS["matmul"](input, vec)


@public(out=Out(exact=True), autocast=Precision(cuda=Policy.PROMOTE, cpu=Policy.KEEP))
def dot(input: Any, tensor: Any) -> Any:
    """The sum of products of two vectors of one length: (n,) by (n,) to (). Raises: RuntimeError for other ranks."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    return OPS["matmul"](input, tensor)


@public(out=Out(not_over_itself=True, not_over_inputs=True))
def outer(input: Any, vec2: Any) -> Any:
    """(n,) by (m,) to (n, m). Raises: RuntimeError for tensors that are not vectors."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError("outer: Expected 1-D arguments")
    return OPS["mul"](OPS["unsqueeze"](input, 1), vec2)


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def _factors(dtype: Any, *factors: Any) -> tuple[Any, ...]:
    """beta and alpha as torch's kernels of `dtype` take them: of integers the whole part. Raises RuntimeError for factors that
    `dtype` does not hold and for complex factors of real numbers."""
    for f in factors:
        check_element(dtypes.option(dtype, f), dtype)
    return tuple(int(f) if dtype.is_integral and isinstance(f, float) else f for f in factors)


def _product(product: Any, alpha: Any) -> Any:
    """alpha * product; zeros for alpha = 0, even if the product is not finite."""
    return OPS["fill"](product, 0) if alpha == 0 else _scaled(product, alpha)


def _added(input: Any, beta: Any, product: Any) -> Any:
    """beta * input + product, where `input` broadcasts to the product and not the other way; of beta = 0 the product alone."""
    if tuple(input.shape) != tuple(product.shape):
        input = OPS["expand"](input, tuple(product.shape))
    return product if beta == 0 else product + _scaled(input, beta)  # the product first: it says how the result lies


@composition
def _combined(input: Any, beta: Any, alpha: Any, op: str, a: Any, b: Any) -> Any:
    """beta * input + alpha * op(a, b)."""
    return _added(input, beta, _product(OPS[op](a, b), alpha))


@public(out=Out(exact=True, not_over_itself=True), former=BETA_FIRST, autocast=LOWER)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """beta * input + alpha * (mat1 @ mat2). mat1: (n, k), mat2: (k, m); input broadcasts to (n, m). Raises: RuntimeError."""
    beta, alpha = _factors(mat1.dtype, beta, alpha)
    check_same_dtype("addmm", mat1, mat2, input)
    return _out(_combined(input, beta, alpha, "mm", mat1, mat2), out)


@public(out=Out(exact=True), former=BETA_FIRST, autocast=Precision(cuda=Policy.LOWER, cpu=Policy.KEEP))
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec). mat: (n, m), vec: (m,), input broadcasts to (n,). Raises: RuntimeError for other shapes."""
    if input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if input.ndim == 1 and mat.ndim == 2 and input.shape[0] not in (1, mat.shape[0]):
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})")
    check_same_dtype("addmv", mat, vec, input)
    beta, alpha = _factors(mat.dtype, beta, alpha)
    return _added(input, beta, _product(mv(mat, vec), alpha))


@public(out=Out(exact=True), former=BETA_FIRST, autocast=LOWER)
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """beta * input + alpha * (batch1 @ batch2). batch1: (b, n, k), batch2: (b, k, m), input broadcasts to (b, n, m)."""
    if input.dtype is not batch1.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: input {c_name(input.dtype)}, batch1: {c_name(batch1.dtype)}, batch2: "
                           f"{c_name(batch2.dtype)}")  # fmt: skip
    beta, alpha = _factors(batch1.dtype, beta, alpha)
    for batch, dim in ((batch1, 1), (batch2, 2)):  # torch reads these sizes first
        if hasattr(batch, "shape"):
            size_at(batch.shape, dim)
    return _out(_combined(input, beta, alpha, "bmm", batch1, batch2), out)


@public(out=Out(exact=True, not_over_itself=True), former=BETA_FIRST, autocast=LOWER, composed=True)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * sum over b of batch1 @ batch2. batch1: (b, n, k), batch2: (b, k, m). Result: (n, m). Raises: RuntimeError."""
    check_same_dtype("bmm", batch1, batch2, input)
    beta, alpha = _factors(batch1.dtype, beta, alpha)
    product = _product(OPS["sum"](OPS["bmm"](batch1, batch2), (0,), False, batch1.dtype if batch1.dtype.is_integral else None), alpha)
    return _added(input, beta, product)


@public(out=Out(not_over_itself=True), former=BETA_FIRST, autocast=Precision(cuda=Policy.LOWER, cpu=Policy.KEEP), composed=True)
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * the outer product of vec1 and vec2; bools are combined by `and` and `or`.

    Raises: RuntimeError for a fraction as beta or alpha of integers.
    """
    product = outer(vec1, vec2)
    if input.dtype.is_integral and product.dtype.is_integral:
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    beta, alpha = _factors(dtypes.promote_types(input.dtype, product.dtype), beta, alpha)
    if not input.dtype is product.dtype is dtypes.bool_:
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, bool):
                raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    else:
        beta, alpha = bool(beta), bool(alpha)
    return _added(input, beta, _scaled(product, alpha))


def _matmul(self: Any, other: Any) -> Any:
    other = operand(other)
    return OPS["matmul"](self, other) if hasattr(other, "ndim") else NotImplemented


def _rmatmul(self: Any, other: Any) -> Any:
    other = operand(other)
    return OPS["matmul"](other, self) if hasattr(other, "ndim") else NotImplemented


def _inplace(fn: Any) -> Any:
    @public(former=BETA_FIRST)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            raise TypeError(f"{fn.__name__}_() got an unexpected keyword argument 'out'")
        result = fn(self, *args, **kwargs)
        if fn is addr:
            check_no_overlap(self, args)
        return self.copy_(result)

    return method


_PRODUCTS: dict[str, Any] = {
    "matmul": matmul, "mm": mm, "bmm": bmm, "mv": mv, "dot": dot, "outer": outer, "ger": variant(outer, name="ger"),
    "addmm": addmm, "addmv": addmv, "baddbmm": baddbmm, "addr": addr,
    "addbmm": addbmm,
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {**_PRODUCTS, "_scaled_mm": _scaled_mm}
METHODS: dict[str, Any] = {
    **_PRODUCTS, "__matmul__": _matmul, "__rmatmul__": _rmatmul, "addmm_": _inplace(addmm), "baddbmm_": _inplace(baddbmm),
    "addmv_": _inplace(addmv),
    "addbmm_": _inplace(addbmm), "addr_": _inplace(addr),
}  # fmt: skip
