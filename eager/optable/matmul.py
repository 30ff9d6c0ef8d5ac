"""Matrix products: two primitives, `mm` and `bmm`; the rest is views around them."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from eager.base import float8
from eager.base.dtypes import c_name, dtype, scalar_name
from eager.base.spec import SpecLike, TensorSpec, broadcast_shapes, common_device, same_shape
from eager.optable.declaration import sum_to
from eager.optable.precision import LOWER
from eager.optable.products import matmul
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def transpose_last(x: Any) -> Any:
    """(*, m, n) -> (*, n, m), a view."""
    n = x.ndim
    return OPS["permute"](x, (*range(n - 2), n - 1, n - 2))


# torch's messages about operands of two dtypes: each product has a different one.
_MIXED: Final[dict[str, Callable[[dtype, dtype], str]]] = {
    "mm": lambda a, b: f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}",
    "bmm": lambda a, b: f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}",
    "addmm": lambda a, b: f"mat1 and mat2 must have the same dtype, but got {scalar_name(a)} and {scalar_name(b)}",
    "addmv": lambda a, b: f"addmv input tensors must have the same dtype, but got {scalar_name(b)}, {scalar_name(a)}, and {scalar_name(b)}",
    "dot": lambda a, b: f"dot : expected both vectors to have same dtype, but found {scalar_name(a)} and {scalar_name(b)}",
}


def check_same_dtype(who: str, x: SpecLike, other: SpecLike, added: SpecLike | None = None) -> None:
    """Raise RuntimeError, with torch's text for the product `who`, unless its operands have one dtype. added: what the product
    is added to."""
    if added is not None and added.dtype is not other.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(added.dtype)} and {scalar_name(other.dtype)}")
    if x.dtype is not other.dtype:
        raise RuntimeError(_MIXED[who](x.dtype, other.dtype))


def _check(who: str, x: SpecLike, other: SpecLike) -> None:
    check_same_dtype(who, x, other)
    common_device(who, [x, other])


def _mm_meta(x: SpecLike, other: SpecLike) -> TensorSpec:
    if x.ndim != 2 or other.ndim != 2:
        raise RuntimeError(f"{'self' if x.ndim != 2 else 'mat2'} must be a matrix")
    if x.shape[1] != other.shape[0]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied "
                           f"({x.shape[0]}x{x.shape[1]} and {other.shape[0]}x{other.shape[1]})")  # fmt: skip
    _check("mm", x, other)
    return TensorSpec.contiguous((x.shape[0], other.shape[1]), x.dtype, x.device)


def _product(xp: Any, out: Any, x: Any, other: Any) -> None:
    if out.dtype.itemsize <= 2 and out.dtype.kind in "fV":
        float8.store(xp, out, matmul(xp, x.astype("f4"), other.astype("f4")))
    elif out.dtype.kind == "b":
        xp.copyto(out, xp.matmul(x.astype("i8"), other.astype("i8")) != 0)
    else:
        matmul(xp, x, other, out)


def _product_like(spec: SpecLike, a: Any, b: Any) -> Any:
    """a @ b, the gradient of a matrix of `spec`: column-major if the matrix is, as in torch."""
    if tuple(spec.stride()) == (1, spec.shape[0]):
        return transpose_last(OPS["mm"](transpose_last(b), transpose_last(a)))
    return OPS["mm"](a, b)


def mm_flop(a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of (m, k) by (k, n)."""
    m, k = a_shape
    k2, n = b_shape
    assert k == k2
    return m * n * 2 * k


MM = declare("mm(Tensor x, Tensor other) -> Tensor", Kind.OPAQUE, meta=_mm_meta, kernel=_product, float8=True,
             vjp={"x": lambda g, other, x_spec: _product_like(x_spec, g, transpose_last(other)),
                  "other": lambda g, x, other_spec: _product_like(other_spec, transpose_last(x), g)},
             samples=lambda make: iter([(make(3, 4), make(4, 5)), (make(4, 3).t(), make(5, 4).t()),
                                        (make(0, 4), make(4, 2)), (make(2, 0), make(0, 3))]), precision=LOWER,
             batch="mm", bilinear_in=("x", "other", None), flops=mm_flop)  # fmt: skip


def _bmm_meta(x: SpecLike, other: SpecLike) -> TensorSpec:
    if x.ndim != 3 or other.ndim != 3:
        which, bad = ("batch1", x) if x.ndim != 3 else ("batch2", other)
        raise RuntimeError(f"{which} must be a 3D tensor: bmm got {bad.ndim} dims")
    if x.shape[0] != other.shape[0] or x.shape[2] != other.shape[1]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{x.shape[0]}, {x.shape[2]}] but got: [{other.shape[0]}, {other.shape[1]}].")  # fmt: skip
    _check("bmm", x, other)
    return TensorSpec.contiguous((x.shape[0], x.shape[1], other.shape[2]), x.dtype, x.device)


def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of (b, m, k) by (b, k, n)."""
    b, m, k = a_shape
    b2, k2, n = b_shape
    assert (b, k) == (b2, k2)
    return b * m * n * 2 * k


BMM = declare("bmm(Tensor x, Tensor other) -> Tensor", Kind.OPAQUE, meta=_bmm_meta, kernel=_product,
              vjp={"x": lambda g, other: OPS["bmm"](g, transpose_last(other)),
                   "other": lambda g, x: OPS["bmm"](transpose_last(x), g)},
              samples=lambda make: iter([(make(2, 3, 4), make(2, 4, 5)), (make(2, 4, 3).transpose(1, 2), make(2, 4, 5)),
                                         (make(0, 3, 4), make(0, 4, 2))]),
              precision=LOWER, batch="bmm", bilinear_in=("x", "other", None), flops=bmm_flop)  # fmt: skip


def _matmul(x: Any, other: Any) -> Any:
    """Matrix product with numpy's broadcasting of leading dims; 1-d operands as row or column."""
    if x.ndim == 0 or other.ndim == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{x.ndim}D and {other.ndim}D")  # fmt: skip
    view, mm = OPS["view"], OPS["mm"]
    if x.ndim == 1 and other.ndim == 1:
        if x.shape != other.shape:
            raise RuntimeError(f"inconsistent tensor size, expected tensor [{x.shape[0]}] and src [{other.shape[0]}] to have "
                               "the same number of elements, but got "
                               f"{x.shape[0]} and {other.shape[0]} elements respectively")  # fmt: skip
        check_same_dtype("dot", x, other)
        return view(mm(view(x, (1, -1)), other.reshape(-1, 1)), ())
    if x.ndim == 1:
        out = _matmul(OPS["unsqueeze"](x, 0), other)
        return OPS["squeeze"](out, (-2,))
    if other.ndim == 1:
        check_same_dtype("addmv", x, other)
        return OPS["squeeze"](_matmul(x, OPS["unsqueeze"](other, 1)), (-1,))
    if x.ndim == 2 and other.ndim == 2:
        return mm(x, other)
    if other.ndim == 2:  # fold the leading dims into rows
        if x.shape[-1] != other.shape[0]:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied "
                               f"({x.numel() // max(x.shape[-1], 1)}x{x.shape[-1]} and {other.shape[0]}x{other.shape[1]})")  # fmt: skip
        rows = x.reshape(-1, x.shape[-1]) if x.shape[-1] else x.reshape(math.prod(x.shape[:-1]), 0)
        return mm(rows, other).reshape(*x.shape[:-1], other.shape[1])
    lead = broadcast_shapes(x.shape[:-2], other.shape[:-2])
    count = math.prod(lead)  # -1 would be ambiguous where a matrix has no elements
    return OPS["bmm"](_batch(x, lead, count), _batch(other, lead, count)).reshape(*lead, x.shape[-2], other.shape[-1])


def _batch(x: Any, lead: tuple[int, ...], count: int) -> Any:
    """x: (*, m, n) -> (count, m, n), where * broadcasts to `lead`. Matrices that lie transposed in memory stay so: if
    there must be a copy, it reads and writes in one order, and products read either way."""
    row, column = x.stride()[-2:]
    if isinstance(row, int) and row == 1 and not (isinstance(column, int) and column == 1):
        return transpose_last(_batch(transpose_last(x), lead, count))
    return OPS["expand"](x, (*lead, *x.shape[-2:])).reshape(count, *x.shape[-2:])


def _matmul_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(4), make(4)
    yield make(3, 4), make(4)
    yield make(4), make(4, 3)
    yield make(2, 3, 4), make(4, 5)
    yield make(2, 1, 3, 4), make(5, 4, 2)
    yield make(3, 4), make(2, 4, 5)
    yield make(2, 3, 0), make(2, 0, 4)
    yield make(2, 0, 3), make(2, 3, 4)
    yield make(2, 3, 0), make(0, 4)


MATMUL = declare("matmul(Tensor x, Tensor other) -> Tensor", Kind.COMPOSITE, float8=True, decompose=_matmul,
                 samples=_matmul_samples, precision=LOWER, bilinear_in=("x", "other", None))  # fmt: skip


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    """x @ weight.T + bias. x: (*, in), weight: (out, in) or (in,), bias: (out,) or None; result (*, out)."""
    y = OPS["matmul"](x, transpose_last(weight) if weight.ndim == 2 else weight)
    return y if bias is None else y + bias


def _linear_meta(x: SpecLike, weight: SpecLike, bias: SpecLike | None) -> TensorSpec:
    if x.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D")
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim == 1 and bias is not None and (x.ndim == 2 or bias.ndim):
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    n = weight.shape[-1]
    if x.shape[-1] != n:
        rows = x.numel() // max(x.shape[-1], 1)
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and "
                           f"{n}x{weight.shape[0] if weight.ndim == 2 else 1})")  # fmt: skip
    check_same_dtype("mm" if bias is None else "addmm", x, weight, bias)
    common_device("linear", [x, weight])
    shape = (*x.shape[:-1], *weight.shape[:-1])
    if bias is not None and x.ndim == 2:
        OPS["expand"].infer(bias, shape)
    elif bias is not None and not same_shape(wide := broadcast_shapes(shape, bias.shape), shape):
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(wide)}")
    return TensorSpec.contiguous(shape, x.dtype, x.device)


def _linear_kernel(xp: Any, out: Any, x: Any, weight: Any, bias: Any) -> None:
    if out.dtype.itemsize <= 2 and out.dtype.kind in "fV":
        wide = xp.empty(out.shape, "f4")
        _linear_kernel(xp, wide, x.astype("f4"), weight.astype("f4"), None if bias is None else bias.astype("f4"))
        float8.store(xp, out, wide)
        return
    if x.ndim > 2 and weight.ndim == 2 and out.size and x.flags.c_contiguous:  # one large product, not one per batch
        matmul(xp, x.reshape(-1, x.shape[-1]), weight.T, out.reshape(-1, out.shape[-1]))
    elif x.ndim > 1 and weight.ndim > 1:
        matmul(xp, x, weight.T, out)
    else:
        xp.matmul(x, weight.T, out=out)
    if bias is not None:
        xp.add(out, bias, out=out)


def _linear_input_vjp(g: Any, weight: Any, x_spec: SpecLike) -> Any:
    if weight.ndim == 1:
        return OPS["unsqueeze"](g, g.ndim) * weight
    return _product_like(x_spec, g, weight) if x_spec.ndim == 2 else OPS["matmul"](g, weight)


def _linear_weight_vjp(g: Any, x: Any, weight_spec: SpecLike) -> Any:
    if len(weight_spec.shape) == 1:
        return sum_to(OPS["unsqueeze"](g, g.ndim) * x, weight_spec.shape)
    rows = math.prod(x.shape[:-1])
    return OPS["mm"](transpose_last(g.reshape(rows, g.shape[-1])), x.reshape(rows, x.shape[-1]))


LINEAR = declare("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor", Kind.COMPOSITE, float8=True, decompose=_linear,
                 meta=_linear_meta, kernel=_linear_kernel,
                 vjp={"x": _linear_input_vjp,
                      "weight": _linear_weight_vjp,
                      "bias": lambda g, bias_spec: sum_to(g, bias_spec.shape)},
                 samples=lambda make: iter([(make(3, 4), make(5, 4), make(5)), (make(2, 3, 4), make(5, 4), None),
                                            (make(4), make(5, 4), make(5)), (make(3, 4), make(4), None)]), precision=LOWER,
                 batch="linear", bilinear_in=("x", "weight", "bias"))  # fmt: skip
