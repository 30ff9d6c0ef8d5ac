"""Arrays of the emulated device: a separate class over device memory, with CuPy's refusals.

An array is a host array over the memory of a `MemoryPointer`. Every computation is a closure over such host arrays, which
`launch` submits to the current stream. The shape and dtype of a result must be known at once: where no rule states them, the
computation runs once more, on the present contents, and its values are dropped.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eager.cuda.emulated import memory, streams

SCALARS: Final = (bool, int, float, complex, np.generic)


class ndarray:  # noqa: N801 - CuPy's name
    """An array on the emulated device. memptr: a `MemoryPointer`; strides: bytes. `methods` adds the methods."""

    if TYPE_CHECKING:  # `methods` adds the rest

        def __getattr__(self, name: str) -> Any: ...

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> None:
        shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
        d = checked_dtype(dtype)
        if strides is None:
            strides = tuple(s * d.itemsize for s in np.empty(shape, np.uint8, order).strides)  # type: ignore[call-overload]
        span = 0 if 0 in shape else d.itemsize + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        self.data = memptr if memptr is not None else memory.alloc(span)
        self._host: Any = np.ndarray(shape, d, memory.host_bytes(self.data, span), 0, strides) if span else np.empty(shape, d)
        self.base: Any = None

    shape = property(lambda self: self._host.shape, doc="Sizes of the dims.")
    strides = property(lambda self: self._host.strides, doc="Bytes between neighbours, by dim.")
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __len__(self) -> int:
        return len(self._host)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """A host array of the contents, after the work of the stream (by default the current one)."""
        if not self.flags.c_contiguous:  # a kernel makes a contiguous copy
            refuse_float8(self)
        target = np.empty(self.shape, self.dtype, order if order in "CF" else "C") if out is None else out  # type: ignore[call-overload]
        copy_to_host(target, self._host, stream, blocking or out is None)
        return target

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy a host array to the device."""
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        copy_from_host(self, arr, stream)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return bytes(self.get().tobytes(order))

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "version": 3,
                "strides": None if self.flags.c_contiguous else self.strides, "data": (int(self.data.ptr), False), "stream": 1}  # fmt: skip


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype. Raises: ValueError for objects and texts, which devices do not have."""
    d = np.dtype(dtype)
    if d.kind in "OSUMm" or (d.kind == "f" and d.itemsize > 8) or (d.kind == "c" and d.itemsize > 16):
        raise ValueError(f"Unsupported dtype {d}")
    return d


def refuse_float8(*arrays: Any) -> None:
    """Raise as CuPy does for kernels over 8-bit floats, which it can only hold and copy as a whole."""
    for a in arrays:
        d = getattr(a, "dtype", None)
        if isinstance(d, np.dtype) and d.name.startswith("float8"):
            raise ValueError(f"Unsupported dtype {d}")


def refuse_copy(target: Any, source: Any) -> None:
    """The same for a copy between host arrays of the device, unless all their bytes are in one order."""
    same = isinstance(source, np.ndarray) and source.dtype == target.dtype and source.shape == target.shape
    if not same or not (target.flags.c_contiguous and source.flags.c_contiguous):
        refuse_float8(target, source)


def view(host: Any, of: ndarray) -> ndarray:
    """A device array over a host view of the memory of `of`."""
    made = ndarray.__new__(ndarray)
    made._host = host
    made.base = of if of.base is None else of.base
    at = host.ctypes.data - of.data.mem.ptr if host.size else of.data.ptr - of.data.mem.ptr
    made.data = memory.MemoryPointer(of.data.mem, at)
    return made


def as_host(a: Any) -> Any:
    """The host array under a device array; numbers, and lists of such, unchanged. Raises: TypeError for a host array."""
    if isinstance(a, ndarray):
        return a._host
    if isinstance(a, np.ndarray):
        raise TypeError(f"Unsupported type {type(a)}")
    if isinstance(a, (list, tuple)):
        return type(a)(as_host(v) for v in a)
    return a


def waits() -> bool:
    """Whether work submitted now runs later."""
    stream = streams.get_current_stream()
    return not stream._is_default or stream._recording is not None


def submit(work: Callable[[], object]) -> None:
    """Queue work on the current stream."""

    def quietly() -> None:
        with np.errstate(all="ignore"):
            work()

    streams.get_current_stream().enqueue(quietly)


def launch(compute: Callable[..., Any], *args: Any, out: Any = None, settled: bool = False, **kwargs: Any) -> Any:
    """The result of `compute` over host arrays, as device arrays; or `out`, which receives the only result.

    settled: the stream was synchronised, so that the size of the result may depend on the contents.
    """
    args, kwargs = as_host(args), as_host(list(kwargs.items()))
    named = dict(kwargs)  # type: ignore[arg-type]
    refuse_float8(*args, *named.values(), *(a for given in args if isinstance(given, (list, tuple)) for a in given), out)

    def call(given: Any = args) -> Any:
        with np.errstate(all="ignore"):
            return compute(*given, **named)

    if not waits() and streams.get_current_stream()._recording is None:
        streams.Stream.null.enqueue(lambda: None)  # the default stream comes after the blocking ones
    first = call(_harmless(args) if waits() and not settled else args)
    several = isinstance(first, (tuple, list))
    outs = [on_device(f, not waits()) for f in first] if several else [on_device(first, not waits())]
    if out is not None:
        if tuple(out.shape) != outs[0].shape:
            raise ValueError(f"Output shape mismatch: {out.shape} against {outs[0].shape}")
        if not np.can_cast(outs[0].dtype, out.dtype, "same_kind"):
            raise TypeError(f"Cannot cast from {outs[0].dtype} to {out.dtype} with casting rule 'same_kind'")
        outs = [out]
    if waits():
        submit(lambda: store_all(outs, call() if several else [call()]))
    elif out is not None:
        store(out, first)
    if out is not None:
        return out
    return type(first)(outs) if type(first) in (tuple, list) else type(first)(*outs) if several else outs[0]


def _harmless(a: Any) -> Any:
    """Arguments for shapes and dtypes alone: integers, which may be positions, are zeros. Other contents may be old."""
    if isinstance(a, (list, tuple)):
        return type(a)(map(_harmless, a))
    return np.zeros_like(a) if isinstance(a, np.ndarray) and a.dtype.kind in "iu" else a


def store_all(targets: list[ndarray], values: Any) -> None:
    """`store` of each."""
    for target, v in zip(targets, values, strict=True):
        store(target, v)


def store(target: ndarray, values: Any) -> None:
    """Write host values into the memory of a device array, now."""
    np.copyto(target._host, values, casting="unsafe")


def on_device(values: Any, filled: bool = True) -> ndarray:
    """A device array with the shape, dtype and order of a host array or number; with its contents if `filled`."""
    values = np.asarray(values)
    order = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
    made = ndarray(values.shape, values.dtype, order=order)
    if filled:
        store(made, values)
    return made


def copy_from_host(target: ndarray, source: Any, stream: Any = None) -> None:
    """Copy a host array to the device. Pageable memory is read before the call returns, pinned memory when the copy runs.

    In a capture it is prohibited: CuPy copies through a separate buffer, and queries an event that the capture recorded.
    """
    kept = source if is_pinned(source) else np.array(source)
    queue = stream or streams.get_current_stream()
    queue._broken |= queue._recording is not None
    queue.enqueue(lambda: store(target, kept))


def copy_to_host(target: Any, source: Any, stream: Any, blocking: bool) -> None:
    """Copy device memory into a host array; if `blocking`, wait for it."""
    queue = stream or streams.get_current_stream()
    if blocking or not is_pinned(target):
        queue.synchronize()
        np.copyto(target, source)
    else:
        queue.enqueue(lambda: np.copyto(target, source))


def is_pinned(a: Any) -> bool:
    """Whether a host array lies in page-locked memory."""
    return memory.pinned_pool.holds(int(a.ctypes.data))
