"""Complex numbers: their parts as views, pairs of reals as complex numbers, and the conjugate.

Gradients follow torch: the cotangent of a complex tensor is the cotangent of its real part plus i times the
cotangent of its imaginary part. `Op.apply_vjp` conjugates around every formula of an op with complex results,
so that formulas of holomorphic ops are written as for real numbers; those here undo it where the op
is not holomorphic.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.base.dtypes import dtype
from eager.base.spec import SpecLike, TensorSpec, broadcast_shapes, contiguous_strides, elementwise_strides
from eager.optable.declaration import zeros
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.registry import Kind
from eager.optable.shape import in_rows, laid_out, like
from eager.optable.table import OPS, declare

Geometry = tuple[tuple[int, ...], tuple[int, ...], int, dtype]


def _need_complex(who: str, x: SpecLike) -> None:
    if not x.dtype.is_complex:
        raise RuntimeError(f"{who} is only supported for complex tensors, but got a tensor of {x.dtype}")


def _offset(x: Any) -> int:
    return x.storage_offset() if hasattr(x, "storage_offset") else 0


def _doubled(strides: Sequence[int]) -> tuple[int, ...]:
    return tuple(2 * s for s in strides)


def _view_as_real(x: SpecLike) -> Geometry:
    _need_complex("view_as_real", x)
    return (*x.shape, 2), (*_doubled(x.stride()), 1), 2 * _offset(x), x.dtype.to_real()


def _view_as_complex(x: SpecLike) -> Geometry:
    strides = x.stride()
    if not x.dtype.is_floating_point or x.dtype.to_complex().to_real() is not x.dtype:
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
                           f"{x.dtype} (eager has complex64 and complex128)")  # fmt: skip
    if x.ndim == 0 or x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(n != 1 and s % 2 for n, s in zip(x.shape[:-1], strides[:-1], strict=True)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if _offset(x) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return tuple(x.shape[:-1]), tuple(s // 2 for s in strides[:-1]), _offset(x) // 2, x.dtype.to_complex()


def _part(who: str, at: int) -> Any:
    def view(x: SpecLike) -> Geometry:
        _need_complex(who, x)
        return tuple(x.shape), _doubled(x.stride()), 2 * _offset(x) + at, x.dtype.to_real()

    return view


def _samples(make: Any) -> Any:
    yield (OPS["view_as_complex"](make(3, 4, 2)),)
    yield (OPS["view_as_complex"](make(2)),)


VIEW_AS_COMPLEX = declare("view_as_complex(Tensor x) -> Tensor", Kind.VIEW, view=_view_as_complex,
                          vjp={"x": lambda g: OPS["view_as_real"](OPS["conj"](g))},
                          samples=lambda make: iter([(make(3, 4, 2),), (make(2),)]), precision=FLOAT32_ON_CPU, batch="padded")  # fmt: skip
VIEW_AS_REAL = declare("view_as_real(Tensor x) -> Tensor", Kind.VIEW, view=_view_as_real,
                       vjp={"x": lambda g: OPS["view_as_complex"](OPS["clone"](g, "contiguous"))}, samples=_samples,
                       batch="padded")  # fmt: skip
REAL = declare("real(Tensor x) -> Tensor", Kind.VIEW, view=_part("real", 0), samples=_samples,
               vjp={"x": lambda g: OPS["complex"](g, zeros(_of(g)))}, batch="padded")  # fmt: skip
IMAG = declare("imag(Tensor x) -> Tensor", Kind.VIEW, view=_part("imag", 1), samples=_samples,
               vjp={"x": lambda g: OPS["complex"](zeros(_of(g)), g)}, batch="padded")  # fmt: skip


def _of(g: Any) -> TensorSpec:
    return TensorSpec(tuple(g.shape), g.dtype, contiguous_strides(g.shape), g.device)


def _complex(x: Any, imag: Any) -> Any:
    """A complex tensor of its real and imaginary parts, which broadcast together."""
    _complex_check(x, imag)
    shape = broadcast_shapes(x.shape, imag.shape)
    parts = [OPS["expand"](x, shape), OPS["expand"](imag, shape)]
    strides = elementwise_strides(shape, [x, imag])
    if strides == contiguous_strides(shape):
        return in_rows(OPS["view_as_complex"](in_rows(OPS["stack"](parts, len(shape)))))
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d]))
    inner = in_rows(OPS["stack"]([OPS["permute"](t, tuple(order)) for t in parts], len(shape)))
    y = OPS["permute"](OPS["view_as_complex"](inner), tuple(order.index(d) for d in range(len(shape))))
    return laid_out(y, strides)


def _complex_check(x: SpecLike, imag: SpecLike) -> None:
    if x.dtype.to_complex().to_real() is not x.dtype or not x.dtype.is_floating_point:
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {x.dtype} and {imag.dtype}")
    if x.dtype is not imag.dtype:
        raise RuntimeError(f"Expected object of scalar type {x.dtype} but got scalar type {imag.dtype} for second argument")


COMPLEX = declare("complex(Tensor x, Tensor imag) -> Tensor", Kind.COMPOSITE, decompose=_complex,
                  samples=lambda make: iter([(make(3, 4), make(3, 4)), (make(), make())]), linear_in=("x", "imag"))  # fmt: skip


def _conjugate(xp: Any, out: Any, x: Any) -> None:
    xp.conjugate(x, out=out)


# Made at once, where torch keeps a flag; of real numbers a copy.
CONJ = declare("conj(Tensor x) -> Tensor", Kind.OPAQUE, meta=like, kernel=_conjugate, vjp={"x": lambda g: OPS["conj"](g)},
               samples=_samples, batch="padded", linear_in=("x",))  # fmt: skip
