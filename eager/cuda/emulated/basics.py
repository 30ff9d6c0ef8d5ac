"""Functions of CuPy that do not follow numpy's: conversion, copies, selection, products, elements by position."""
from __future__ import annotations

from typing import Any

import numpy as np

from eager.cuda.emulated import memory, streams
from eager.cuda.emulated.arrays import (
    SCALARS,
    as_host,
    checked_dtype,
    copy_from_host,
    launch,
    ndarray,
    refuse_copy,
    submit,
    view,
)
from eager.cuda.emulated.ufuncs import BFLOAT16


def array(obj: Any, dtype: Any = None, copy: bool | None = True, order: str = "K", subok: bool = False, ndmin: int = 0, *,
          blocking: bool = False) -> ndarray:  # fmt: skip
    """A new device array of a device array, host array, number or (nested) list."""
    if isinstance(obj, ndarray):
        d = obj.dtype if dtype is None else checked_dtype(dtype)
        made = obj if not copy and d == obj.dtype and order != "F" else obj.astype(d, order)
        return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made
    if isinstance(obj, (list, tuple)) and _holds_device_arrays(obj):
        return launch(lambda parts: np.array(parts, dtype, ndmin=ndmin), obj)  # type: ignore[no-any-return]
    source = np.array(obj, dtype, ndmin=ndmin, order=order if order in "CF" else "C")  # type: ignore[call-overload]
    checked_dtype(source.dtype)
    made = ndarray(source.shape, source.dtype, order="F" if order == "F" else "C")
    copy_from_host(made, obj if isinstance(obj, np.ndarray) and obj.dtype == source.dtype and not ndmin else source)
    return made


def _holds_device_arrays(obj: Any) -> bool:
    return isinstance(obj, ndarray) or (isinstance(obj, (list, tuple)) and any(map(_holds_device_arrays, obj)))


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, blocking: bool = False) -> ndarray:
    """`a` itself if it is a device array of the dtype, else a new array."""
    return array(a, dtype, bool(copy), order or "K", blocking=blocking)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """A row-major array with at least one dim; `a` itself if it is one."""
    a = asarray(a, dtype)
    if a.ndim == 0:
        return a.reshape(1)  # type: ignore[no-any-return]
    return a if a.flags.c_contiguous else a.copy()  # type: ignore[no-any-return]


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """A host array of the contents."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a, order=order)  # type: ignore[call-overload]


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype, order=order)


def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    if not isinstance(prototype, ndarray):
        raise TypeError(f"Unsupported type {type(prototype)}")
    columns = prototype.flags.f_contiguous and not prototype.flags.c_contiguous
    return ndarray(prototype.shape if shape is None else shape, dtype or prototype.dtype, order="F" if columns and order in "KA" else "C")


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    """Write `src`, a device array or a number, into `dst`, broadcast, where the mask is true."""
    if not isinstance(dst, ndarray):
        raise TypeError(f"Unsupported type {type(dst)}")
    if not isinstance(src, (ndarray, *SCALARS)):
        raise TypeError(f"Unsupported type {type(src)}")
    if isinstance(src, ndarray):
        if not np.can_cast(src.dtype, dst.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(f"Cannot cast {src.dtype} to {dst.dtype} in {casting} casting mode")
    elif not _number_casts(src, dst.dtype, casting):
        raise TypeError(f"Cannot cast {type(src)} to {dst.dtype} in {casting} casting mode")
    if where is not None and not isinstance(where, (ndarray, bool, np.bool_)):
        raise TypeError(f"Unsupported type {type(where)}")
    _check_broadcast(dst.shape, np.shape(as_host(src)))
    target, values, mask = dst._host, as_host(src), True if where is None else as_host(where)
    refuse_copy(target, values)
    submit(lambda: np.copyto(target, np.array(values), casting="unsafe", where=mask))


def _number_casts(value: Any, d: Any, casting: str) -> bool:
    if casting == "unsafe" or isinstance(value, (bool, np.bool_)):
        return True
    if isinstance(value, np.generic):
        return bool(np.can_cast(value.dtype, d, casting))  # type: ignore[arg-type]
    kinds = "biufcV" if isinstance(value, bool) else "iufcV" if isinstance(value, int) else "fcV" if isinstance(value, float) else "c"
    return d.kind in kinds


def _check_broadcast(target: tuple[int, ...], source: tuple[int, ...]) -> None:
    if np.broadcast_shapes(target, source) != target:
        raise ValueError(f"could not broadcast input array from shape {source} into shape {target}")


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of x or y by a mask; without them, `nonzero`."""
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return condition.nonzero()
    if not isinstance(condition, ndarray):
        raise AttributeError(f"'{type(condition).__name__}' object has no attribute 'astype'")
    if not all(isinstance(a, (ndarray, *SCALARS)) for a in (x, y)):
        raise TypeError(f"Unsupported type {type(condition)}")
    if BFLOAT16 in (getattr(x, "dtype", None), getattr(y, "dtype", None)) and not _same_dtype(x, y):
        raise TypeError("where: bfloat16 beside another dtype")
    if condition.dtype != bool:
        condition = condition.astype(bool)
    return launch(_where, condition, x, y)


def _same_dtype(x: Any, y: Any) -> bool:
    return all(not isinstance(a, ndarray) or a.dtype == BFLOAT16 for a in (x, y))


def _where(condition: Any, x: Any, y: Any) -> Any:
    weak = [a for a in (x, y) if isinstance(a, (int, float))]
    strong = next((a for a in (x, y) if not isinstance(a, (int, float))), None)
    if weak and strong is not None and strong.dtype == BFLOAT16:
        x, y = (np.asarray(a, BFLOAT16) for a in (x, y))
    return np.where(condition, x, y)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    """Elements by position along an axis. A position out of range wraps around, as on the device."""
    if isinstance(indices, np.ndarray):
        raise TypeError(f"Unsupported type {type(indices)}")
    n = a.size if axis is None else a.shape[axis]
    return launch(lambda x, i: np.take(x, i % max(1, n), axis=axis), a, indices, out=out)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Elements repeated. Waits for the device if their counts are an array."""
    counted = isinstance(repeats, ndarray)
    if counted:
        streams.get_current_stream().synchronize()
    return launch(np.repeat, a, repeats, axis=axis, settled=counted)


def reshape(a: Any, newshape: Any, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """The elements in another shape: a view if the strides allow one, else a copy."""
    newshape = tuple(newshape) if isinstance(newshape, (tuple, list)) else (int(newshape),)
    try:
        return view(np.reshape(a._host, newshape, order=order, copy=False), a)  # type: ignore[call-overload]
    except ValueError:
        np.empty(a.shape, np.uint8).reshape(newshape)  # raises for sizes that do not fit
        return launch(lambda x: np.reshape(x, newshape, order=order).copy(), a)  # type: ignore[call-overload, no-any-return]


def ravel(a: Any, order: str = "C") -> ndarray:
    return reshape(a, -1, order)


def matmul(*args: Any, axes: Any = None, axis: Any = None, keepdims: bool = False, casting: str = "same_kind", dtype: Any = None,
           signature: Any = None, order: str = "K", out: Any = None) -> ndarray:  # fmt: skip
    """Matrix products, bfloat16 and float16 with totals in float32."""
    a, b, *rest = args
    out = rest[0] if rest else out
    for x in (a, b):
        if not isinstance(x, ndarray):
            raise TypeError(f"Unsupported type {type(x)}")
    if not (a.ndim and b.ndim):
        raise ValueError("matmul: operands must have at least one dim")
    return launch(_matmul, a, b, out=out)  # type: ignore[no-any-return]


def _matmul(a: Any, b: Any) -> Any:
    d = np.result_type(a.dtype, b.dtype)
    if d.itemsize == 2 and d.kind in "fV":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(d)
    return np.matmul(a, b)


def broadcast_arrays(*args: Any) -> list[ndarray]:
    shape = np.broadcast_shapes(*[a.shape for a in args])
    return [view(np.broadcast_to(a._host, shape), a) for a in args]


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether the address ranges overlap."""
    return bool(np.may_share_memory(a._host, b._host))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    target, at, source = arr._host, as_host(indices), as_host(values)
    submit(lambda: np.put_along_axis(target, at, source, axis))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    target, value = a._host, as_host(val)
    submit(lambda: np.fill_diagonal(target, value, wrap))


def as_strided(x: Any, shape: Any = None, strides: Any = None) -> ndarray:
    """A view with other sizes and strides (bytes)."""
    shape = x.shape if shape is None else shape
    return ndarray(shape, x.dtype, x.data, x.strides if strides is None else strides)


def get_default_memory_pool() -> memory.MemoryPool:
    return memory.pool


def get_default_pinned_memory_pool() -> memory.PinnedMemoryPool:
    return memory.pinned_pool
