"""The methods and operators of device arrays, and elements by index."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.cuda.emulated import basics, streams
from eager.cuda.emulated.arrays import as_host, checked_dtype, launch, ndarray, refuse_copy, refuse_float8, submit, view
from eager.cuda.emulated.functions import FUNCTIONS
from eager.cuda.emulated.ufuncs import UFUNCS


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(p is None or p is Ellipsis or isinstance(p, slice) or (isinstance(p, (int, np.integer)) and not isinstance(p, bool))
               for p in parts)  # fmt: skip


def _checked(index: Any) -> tuple[Any, ...]:
    """The parts of an index. Masks end the wait for their contents. Raises: IndexError for host arrays and unknown types."""
    parts = index if isinstance(index, tuple) else (index,)
    for p in parts:
        if isinstance(p, ndarray) and p.dtype == bool:
            streams.get_current_stream().synchronize()  # the size of the result depends on it
        elif isinstance(p, ndarray) and p.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer or boolean type")
    return tuple(np.asarray(p) if isinstance(p, list) else p._host if isinstance(p, ndarray) else p for p in parts)


def _wrapped(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Positions out of range wrap around, as in CuPy's kernels, which do not check them."""
    taken = sum(p.ndim if isinstance(p, np.ndarray) and p.dtype == bool else p is not None and p is not Ellipsis for p in index)
    found, dim = [], 0
    for p in index:
        if p is Ellipsis:
            dim += len(shape) - taken
        elif isinstance(p, np.ndarray) and p.dtype == bool:
            dim += p.ndim
        elif p is not None:
            dim += 1
            if isinstance(p, np.ndarray) and p.dtype.kind in "iu":
                p = p % max(1, shape[dim - 1])
        found.append(p)
    return tuple(found)


def _getitem(self: ndarray, index: Any) -> ndarray:
    if _is_basic(index):
        index = index if isinstance(index, tuple) else (index,)
        return view(self._host[(*index, ...)] if Ellipsis not in index else self._host[index], self)
    parts, shape = _checked(index), self.shape
    return launch(lambda x: x[_wrapped(parts, shape)], self)  # type: ignore[no-any-return]


def _setitem(self: ndarray, index: Any, value: Any) -> None:
    if isinstance(value, (np.ndarray, list, tuple)):
        if np.size(value) != 1:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        value = np.asarray(value).reshape(()).item()
    target, source, shape = self._host, as_host(value), self.shape
    parts = (index if isinstance(index, tuple) else (index,)) if _is_basic(index) else _checked(index)

    def write() -> None:
        place = parts if _is_basic(parts) else _wrapped(parts, shape)
        target[place] = source.astype(target.dtype) if isinstance(source, np.ndarray) else source

    region = self._host[parts if _is_basic(parts) else _wrapped(parts, shape)]
    if np.broadcast_shapes(np.shape(region), np.shape(source)[max(0, np.ndim(source) - np.ndim(region)):]) != np.shape(region):
        raise ValueError(f"could not broadcast input array from shape {np.shape(source)} into shape {np.shape(region)}")
    if np.ndim(source) == 0 or np.size(source) > 0:
        refuse_copy(region, source)
    submit(write)


_SCATTERED: dict[str, tuple[Any, str]] = {
    "add": (np.add, "iILQefd"), "sub": (np.subtract, "iILQ"), "max": (np.maximum, "iILQfd"), "min": (np.minimum, "iILQfd"),
    "and": (np.bitwise_and, "iIlLqQ"), "or": (np.bitwise_or, "iIlLqQ"), "xor": (np.bitwise_xor, "iIlLqQ"),
}  # fmt: skip


def _scatter_op(self: ndarray, slices: Any, value: Any, op: str) -> None:
    """Combine values into elements, each index in turn. Raises: TypeError for a dtype without atomic operations."""
    ufunc, codes = _SCATTERED[op]
    if self.dtype.char not in codes:
        raise TypeError(f"scatter_{op} does not support {self.dtype}")
    parts, target, source = _checked(slices), self._host, as_host(value)
    submit(lambda: ufunc.at(target, _wrapped(parts, target.shape), np.asarray(source).astype(target.dtype)))


def _astype(self: ndarray, dtype: Any, order: str = "K", casting: str | None = None, subok: Any = None, copy: bool = True) -> ndarray:
    d = checked_dtype(dtype)
    if casting is not None and not np.can_cast(self.dtype, d, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {self.dtype} to {d} according to the rule '{casting}'")
    if not copy and d == self.dtype:
        return self
    columns = order == "F" or (order in "KA" and self.flags.f_contiguous and not self.flags.c_contiguous)
    made = ndarray(self.shape, d, order="F" if columns else "C")
    source, target = self._host, made._host
    refuse_copy(target, source)
    submit(lambda: np.copyto(target, source.real if source.dtype.kind == "c" and d.kind not in "cb" else source, casting="unsafe"))
    return made


def _view(self: ndarray, dtype: Any = None, type: Any = None) -> ndarray:  # noqa: A002 - CuPy's name
    return view(self._host[...] if dtype is None else self._host.view(checked_dtype(dtype)), self)


def _fill(self: ndarray, value: Any) -> None:
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        value = value.item()
    target, source = self._host, as_host(value)
    refuse_float8(target, source)
    submit(lambda: target.fill(source))


def _part(name: str) -> property:
    def of(self: ndarray) -> ndarray:
        if self.dtype.kind != "c":
            return self if name == "real" else FUNCTIONS["zeros"](self.shape, self.dtype)  # type: ignore[no-any-return]
        return view(getattr(self._host, name), self)

    def put(self: ndarray, value: Any) -> None:
        getattr(self, name)[...] = value

    return property(of, put)


def _sort(self: ndarray, axis: int = -1, kind: Any = None) -> None:
    target = self._host
    submit(lambda: target.sort(axis))


def _method(name: str) -> Callable[..., Any]:
    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return FUNCTIONS[name](self, *args, **kwargs)

    return call


def _transpose(self: ndarray, *axes: Any) -> ndarray:
    return view(self._host.transpose(*axes), self)


def _reshape(self: ndarray, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
    return basics.reshape(self, shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape, order)


def _clip(self: ndarray, min: Any = None, max: Any = None, out: Any = None) -> Any:  # noqa: A002 - CuPy's names
    return FUNCTIONS["clip"](self, min, max, out=out)


def _array_ufunc(self: ndarray, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    ours = UFUNCS.get(ufunc.__name__)
    if ufunc.__name__ == "matmul" and method == "__call__":
        return basics.matmul(*inputs, **kwargs)
    if ours is None:
        return NotImplemented
    return ours(*inputs, **kwargs) if method == "__call__" else getattr(ours, method)(*inputs, **kwargs)


def _array_function(self: ndarray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    ours = FUNCTIONS.get(func.__name__) or getattr(basics, func.__name__, None)
    if ours is None or not all(issubclass(t, (ndarray, np.ndarray)) for t in types) or func.__module__ != "numpy":
        return NotImplemented
    return ours(*args, **kwargs)


def _conj(self: ndarray) -> Any:
    return self if self.dtype.kind != "c" else UFUNCS["conjugate"](self)


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    ufunc = UFUNCS[name]

    def call(self: ndarray, other: Any) -> Any:
        if isinstance(other, (str, bytes, list, tuple)) or other is None:
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return call


def _in_place(name: str) -> Callable[..., Any]:
    return lambda self, other: UFUNCS[name](self, other, out=self)


_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
              "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
              "lshift": "left_shift", "rshift": "right_shift"}  # fmt: skip
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}


_LIKE_FUNCTIONS = """sum prod mean max min any all argmax argmin var std cumsum cumprod argsort argpartition searchsorted nonzero
diagonal trace dot swapaxes squeeze""".split()
_MEMBERS: dict[str, Any] = {
    "__getitem__": _getitem, "__setitem__": _setitem, "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,
    "__matmul__": lambda self, other: basics.matmul(self, other), "astype": _astype, "view": _view, "fill": _fill, "sort": _sort,
    "real": _part("real"), "imag": _part("imag"), "transpose": _transpose, "reshape": _reshape, "ravel": basics.ravel, "clip": _clip,
    "_scatter_op": _scatter_op, "take": basics.take, "repeat": basics.repeat, "conj": _conj, "conjugate": _conj, "T": property(_transpose),
    "mT": property(lambda self: self.swapaxes(-1, -2)), "copy": lambda self, order="C": self.astype(self.dtype, order),
    "flatten": lambda self, order="C": self.astype(self.dtype, order).reshape(-1),
}  # fmt: skip


def install() -> None:
    """Give `ndarray` its methods."""
    for short, name in _OPERATORS.items():
        setattr(ndarray, f"__{short}__", _operator(name))
        setattr(ndarray, f"__r{short}__", _operator(name, True))
        setattr(ndarray, f"__i{short}__", _in_place(name))
    for short, name in _COMPARISONS.items():
        setattr(ndarray, f"__{short}__", _operator(name))
    for short, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(ndarray, f"__{short}__", functools.partialmethod(lambda self, ufunc: ufunc(self), UFUNCS[name]))
    for name in _LIKE_FUNCTIONS:
        setattr(ndarray, name, _method(name))
    for name, member in _MEMBERS.items():
        setattr(ndarray, name, member)
