"""Ops about a boolean mask: filling, selecting and writing where it is true, and finding those places."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.scalars import check_element
from eager.base.spec import Fresh, SpecLike, TensorSpec, broadcast_shapes, common_device, preserve_strides
from eager.optable.declaration import cast_to, sum_to
from eager.optable.gradient_strides import as_input, laid_out
from eager.optable.index_along_dim import stored
from eager.optable.index_kernels import begin
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _check_mask(who: str, mask: SpecLike) -> None:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{who} only supports boolean masks, but got mask with dtype {mask.dtype}")


def _masked_fill_meta(x: SpecLike, mask: SpecLike, value: Any) -> TensorSpec:
    _check_mask("masked_fill", mask)
    if hasattr(value, "stride"):
        if value.ndim:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.ndim} dimension(s).")  # fmt: skip
        common_device("masked_fill", [x, mask, value])
    else:
        check_element(value, x.dtype)
    return TensorSpec.contiguous(broadcast_shapes(x.shape, mask.shape), x.dtype, common_device("masked_fill", [x, mask]))


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """`x` with `value` where `mask` is true, in x's dtype."""
    shape = _masked_fill_meta(x, mask, value).shape
    if hasattr(value, "stride"):
        value = cast_to(value, x.dtype)
    elif x.dtype.is_integral:
        value = bool(value) if x.dtype is dtypes.bool_ else int(value)
    result = cast_to(OPS["where"](mask, value, x), x.dtype)
    return OPS["clone"](OPS["expand"](result, shape), "contiguous")


def _masked_fill_kernel(xp: Any, out: Any, x: Any, mask: Any, value: Any) -> None:
    begin(xp, out, x)
    xp.copyto(out, stored(value, out.dtype), where=mask, casting="unsafe")


def _masked_fill_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), make.bool(3, 4), 0.5
    yield make(4, 3).t(), make.bool(4), -7.5
    yield make(3, 1), make.bool(3, 4), make()
    yield make.int(3, 4, high=9), make.bool(3, 1), 2
    yield make(0, 4), make.bool(4), 1.0


MASKED_FILL = declare("masked_fill(Tensor x, Tensor mask, Tensor value) -> Tensor", Kind.COMPOSITE, meta=_masked_fill_meta,
                      decompose=_masked_fill, kernel=_masked_fill_kernel, inplace=True, over_input=True, numbers="value",
                      samples=_masked_fill_samples,
                      vjp={"x": lambda g, x_spec, mask: sum_to(OPS["masked_fill"](g, mask, 0), x_spec.shape),
                           "value": lambda g, mask: OPS["sum"](
                               OPS["where"](mask, g, 0), tuple(range(g.ndim)), False, None)}, linear_in=("x", "value"))  # fmt: skip


def _masked_scatter_meta(x: SpecLike, mask: SpecLike, source: SpecLike) -> TensorSpec:
    _check_mask("masked_scatter", mask)
    if source.dtype is not x.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {x.dtype} and {source.dtype}")
    where = common_device("masked_scatter", [x, mask, source])
    return TensorSpec.contiguous(broadcast_shapes(x.shape, mask.shape), x.dtype, where)


def _masked_scatter(xp: Any, out: Any, x: Any, mask: Any, source: Any) -> None:
    begin(xp, out, x)
    mask = xp.broadcast_to(mask, out.shape)
    n = int(mask.sum())
    if n > source.size:
        raise RuntimeError(f"masked_scatter: expected the source to have at least as many elements as the mask has ones: got "
                           f"{source.size} elements for {n} ones")  # fmt: skip
    out[mask] = source.reshape(-1)[:n]


def _masked_scatter_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), make.bool(3, 4), make(12)
    yield make(4, 3).t(), make.bool(4), make(3, 5)
    yield make(0, 4), make.bool(0, 4), make(2)


# The elements of `source`, in order, at the places where `mask` is true.
MASKED_SCATTER = declare("masked_scatter(Tensor x, Tensor mask, Tensor source) -> Tensor", Kind.OPAQUE, fallible=True,
                         meta=_masked_scatter_meta, kernel=_masked_scatter, inplace=True, over_input=True, samples=_masked_scatter_samples,
                         vjp={"x": lambda g, x_spec, mask: sum_to(OPS["masked_fill"](g, mask, 0), x_spec.shape),
                              "source": lambda g, mask, source_spec: OPS["masked_scatter_backward"](
                                  g, mask, tuple(source_spec.shape))}, linear_in=("x", "source"))  # fmt: skip


def _masked_scatter_backward(xp: Any, out: Any, g: Any, mask: Any, size: Any) -> None:
    found = g[xp.broadcast_to(mask, g.shape)]
    out.fill(0)
    out.reshape(-1)[: found.size] = found


MASKED_SCATTER_BACKWARD = declare(
    "masked_scatter_backward(Tensor grad, Tensor mask, int[] size) -> Tensor", Kind.OPAQUE, kernel=_masked_scatter_backward,
    meta=lambda grad, mask, size: TensorSpec.contiguous(tuple(size), grad.dtype, grad.device),
    vjp={"grad": lambda g, grad_spec, mask: OPS["masked_scatter"](
        OPS["full"](tuple(grad_spec.shape), 0, g.dtype, g.device), mask, g)},
    samples=lambda make: iter([(make(3, 4), make.bool(3, 4), (15,)), (make(4, 3).t(), make.bool(4), (4, 3))]),
    linear_in=("grad",))  # fmt: skip


def _masked_select(xp: Any, out: Any, x: Any, mask: Any) -> Any:
    shape = broadcast_shapes(x.shape, mask.shape)
    return xp.broadcast_to(x, shape)[xp.broadcast_to(mask, shape)]


def _masked_select_sizes(fresh: Fresh, x: SpecLike, mask: SpecLike) -> TensorSpec:
    return TensorSpec.contiguous((fresh(math.prod(broadcast_shapes(x.shape, mask.shape))),), x.dtype, x.device)


def _masked_select_vjp(g: Any, x_spec: SpecLike, mask: Any) -> Any:
    shape = broadcast_shapes(x_spec.shape, mask.shape)
    return sum_to(OPS["masked_scatter"](OPS["full"](shape, 0, g.dtype, g.device), mask, g), x_spec.shape)


MASKED_SELECT = declare("masked_select(Tensor x, Tensor mask) -> Tensor", Kind.OPAQUE, float8=True,
                        kernel=_masked_select, dynamic_output=_masked_select_sizes,
                        vjp={"x": as_input(_masked_select_vjp)},
                        samples=lambda make: iter([(make(3, 4), make.bool(3, 4)), (make(4, 3).t(), make.bool(4)),
                                                   (make(3, 1), make.bool(4))]), linear_in=("x",))  # fmt: skip


def _nonzero(xp: Any, out: Any, x: Any) -> Any:
    if x.ndim == 0:
        return xp.zeros((int(bool(x)), 0), "i8")
    return xp.stack(xp.nonzero(x), 0).astype("i8", copy=False).T


def _nonzero_sizes(fresh: Fresh, x: SpecLike) -> TensorSpec:
    n = fresh(math.prod(x.shape))
    return TensorSpec((n, x.ndim), dtypes.int64, (1, n) if x.ndim else (1, 1), x.device)


# Positions of the elements that are not zero, in row-major order: (count, ndim).
NONZERO = declare("nonzero(Tensor x) -> Tensor", Kind.OPAQUE, kernel=_nonzero, dynamic_output=_nonzero_sizes,
                  nondifferentiable=True,
                  samples=lambda make: iter([(make.bool(3, 4),), (make.int(4, high=3),), (make.bool(),), (make.bool(0, 2),)]))  # fmt: skip


# ---- flat positions ----


def _take(x: Any, index: Any) -> Any:
    """Elements of the flattened `x` at `index`, in the shape of `index`."""
    return OPS["clone"](OPS["index"](x.reshape(x.numel()), [index]), "contiguous")


def _take_meta(x: SpecLike, index: SpecLike) -> TensorSpec:
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    return TensorSpec.contiguous(tuple(index.shape), x.dtype, common_device("take", [x, index]))


def _take_kernel(xp: Any, out: Any, x: Any, index: Any) -> None:
    n = x.size
    if index.size:
        low, high = int(index.min()), int(index.max())
        if high >= n or low < -n:
            raise IndexError(f"out of range: tried to access index {high if high >= n else low} on a tensor of {n} elements.")
        xp.copyto(out, x.reshape(-1)[index])


TAKE = declare("take(Tensor x, Tensor index) -> Tensor", Kind.COMPOSITE, fallible=True,
               decompose=_take, meta=_take_meta, kernel=_take_kernel,
               vjp={"x": as_input(lambda g, x_spec, index: OPS["put"](
                   OPS["full"](tuple(x_spec.shape), 0, g.dtype, g.device), index, g, True))},
               samples=lambda make: iter([(make(3, 4), make.int(2, 5, high=12)), (make(4, 3).t(), make.int(5, high=12)),
                                          (make(3), make.int(0, high=3))]), linear_in=("x",))  # fmt: skip


def _put(x: Any, index: Any, source: Any, accumulate: bool) -> Any:
    """`x` with `source` at the positions `index` of its flattened form."""
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    if x.dtype is not source.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {scalar_name(x.dtype)} and "
                           f"source.dtype = {scalar_name(source.dtype)}")  # fmt: skip
    if source.numel() != index.numel():
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got source.numel() = "
                         f"{source.numel()}, index.numel() = {index.numel()}")  # fmt: skip
    flat = OPS["index_put"](x.reshape(x.numel()), [index.reshape(index.numel())], source.reshape(source.numel()), accumulate)
    return laid_out(flat.reshape(tuple(x.shape)), preserve_strides(x))


def _put_vjp(g: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else OPS["put"](g, index, OPS["full"](tuple(index.shape), 0, g.dtype, g.device), False)


PUT = declare("put(Tensor x, Tensor index, Tensor source, bool accumulate=False) -> Tensor", Kind.COMPOSITE, fallible=True, decompose=_put,
              inplace=True, vjp={"x": _put_vjp, "source": lambda g, index, source_spec: OPS["take"](g, index).reshape(
                  tuple(source_spec.shape))},
              samples=lambda make: iter([(make(3, 4), make.distinct(5, high=12), make(5), False),
                                         (make(4, 3).t(), make.int(2, 3, high=12), make(2, 3), True)]),
                                         linear_in=("x", "source"))  # fmt: skip
