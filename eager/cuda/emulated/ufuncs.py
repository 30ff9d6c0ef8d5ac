"""CuPy's ufuncs: the dtypes that each accepts, as data, and numpy's loops behind them.

A call takes the first loop to which all operands can be cast; Python numbers take the dtype of the arrays beside them. bfloat16
computes in float32 and rounds, as CuPy's class `bfloat16` does.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from eager.cuda.emulated.arrays import SCALARS, as_host, ndarray, submit

BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
_INT, _FLOAT, _COMPLEX = "b B h H i I l L q Q", "e E f d", "F D"


def _rows(pattern: str, codes: str) -> list[str]:
    return [pattern.replace("x", c) for c in codes.split()]


def _loops(nin: int, codes: str, out: str = "x") -> list[str]:
    return _rows("x" * nin + "->" + out, codes)


_COMPARED = ["??->?", "qq->?", "QQ->?", "qQ->?", "Qq->?", "ee->?", "EE->?", "ff->?", "dd->?"]
_COMPLEX_COMPARED = ["FF->?", "DD->?"]
_WIDE_QUOTIENTS = ["qq->d", "qQ->d", "Qq->d", "QQ->d"]

# Loops in the order in which a call tries them: names -> loops.
_TABLE: Final[list[tuple[str, list[str]]]] = [
    ("arccos arccosh arcsin arcsinh arctan arctanh cos cosh exp exp2 expm1 log log10 log1p log2 rint sin sinh sqrt tan tanh acos acosh "
     "asin asinh atan atanh", _loops(1, f"{_FLOAT} {_COMPLEX}")),
    ("cbrt deg2rad degrees fabs rad2deg radians", _loops(1, _FLOAT)),
    ("isfinite isinf isnan", _loops(1, f"{_FLOAT} {_COMPLEX}", "?")),
    ("signbit", _loops(1, "e f d", "?")),
    ("ceil floor trunc", _loops(1, f"? {_INT} {_FLOAT}")),
    ("conjugate conj reciprocal sign square", _loops(1, f"{_INT} {_FLOAT} {_COMPLEX}")),
    ("negative positive", _loops(1, f"? {_INT} {_FLOAT} {_COMPLEX}")),
    ("absolute abs", [*_loops(1, f"? {_INT} {_FLOAT}"), "F->f", "D->d"]),
    ("invert bitwise_not bitwise_invert", _loops(1, f"? {_INT}")),
    ("logical_not", _loops(1, f"? {_INT} e f d", "?")),
    ("frexp", ["e->ei", "E->Ei", "f->fi", "d->di"]),
    ("modf", _loops(1, _FLOAT, "xx")),
    ("add fmax fmin maximum minimum multiply subtract", _loops(2, f"? {_INT} {_FLOAT} {_COMPLEX}")),
    ("power pow", ["??->b", *_loops(2, f"{_INT} {_FLOAT} {_COMPLEX}")]),
    ("divide true_divide", [*_WIDE_QUOTIENTS, *_loops(2, f"{_FLOAT} {_COMPLEX}")]),
    ("floor_divide fmod remainder mod", _loops(2, f"{_INT} {_FLOAT}")),
    ("arctan2 atan2 copysign hypot nextafter", _loops(2, _FLOAT)),
    ("heaviside logaddexp logaddexp2", _loops(2, "e E f d")),
    ("bitwise_and bitwise_or bitwise_xor gcd lcm", _loops(2, f"? {_INT}")),
    ("left_shift right_shift bitwise_left_shift bitwise_right_shift", _loops(2, _INT)),
    ("greater greater_equal less less_equal", _COMPARED + _COMPLEX_COMPARED),
    ("equal not_equal", _COMPARED + _COMPLEX_COMPARED),
    ("logical_and logical_or", _COMPARED),
    ("logical_xor", _loops(2, f"? {_INT} e f d", "?")),
    ("ldexp", ["ei->e", "Ei->E", "fi->f", "el->e", "El->E", "fl->f", "di->d", "dq->d"]),
]  # fmt: skip


class Ufunc:
    """One ufunc over device arrays. loops: `types` in the order in which they are tried."""

    def __init__(self, name: str, loops: list[str], compute: Callable[..., Any]) -> None:
        self.__name__ = self.name = name
        self.types = list(loops)
        self._loops = [(left, right) for left, right in (row.split("->") for row in loops)]
        self._compute = compute
        self.nin, self.nout = len(self._loops[0][0]), len(self._loops[0][1])
        self.nargs = self.nin + self.nout

    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.name}'>"

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", _where: Any = None) -> Any:
        """Apply to each element. Raises: TypeError for host arrays and for dtypes that no loop accepts."""
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for 'cupy_{self.name}'. It must be either {self.nin} or {self.nargs} "
                            f"(with outputs), but given {len(args)}.")  # fmt: skip
        outs = list(args[self.nin :]) or (list(out) if isinstance(out, tuple) else [out] * self.nout)
        operands = [_operand(a) for a in args[: self.nin]]
        ins, results = self._loop(operands, None if dtype is None else np.dtype(dtype))
        for o, d in zip(outs, results, strict=True):
            if o is not None and not isinstance(o, ndarray):
                raise TypeError(f"Unsupported type {type(o)}")
            if o is not None and not np.can_cast(d, o.dtype, casting):  # type: ignore[arg-type]
                raise TypeError(f"Cannot cast from {d!r} to {o.dtype!r} with casting rule '{casting}'")
        shapes = [np.shape(a) for a in operands] + [o.shape for o in outs if o is not None]
        shape = np.broadcast_shapes(*shapes)
        if any(o is not None and o.shape != shape for o in outs):
            raise ValueError(f"Out shape is mismatched for {shape}")
        where = True if _where is None else as_host(_where)
        values = [np.asarray(_number(a, d) if not isinstance(a, np.ndarray) else a) for a, d in zip(operands, ins, strict=True)]
        order = _order(values, shape)
        targets = [o if o is not None else ndarray(shape, d, strides=order(d)) for o, d in zip(outs, results, strict=True)]
        into = [t._host for t in targets]

        def work() -> None:
            cast = [v.astype(_wide(d), copy=False) for v, d in zip(values, ins, strict=True)]
            made = self._compute(*cast)
            for target, r, d in zip(into, made if isinstance(made, tuple) else (made,), results, strict=True):
                np.copyto(target, np.asarray(r).astype(d, copy=False), casting="unsafe", where=where)

        submit(work)
        return targets[0] if self.nout == 1 else tuple(targets)

    def _loop(self, operands: list[Any], dtype: Any) -> tuple[list[Any], list[Any]]:
        """Dtypes of operands and results of the first loop that fits."""
        if dtype is not None:
            for left, right in self._loops:
                if np.dtype(_CODES.get(right[0], right[0])) == dtype:
                    return _dtypes(left), _dtypes(right)
            raise TypeError(f"No matching signature found for cupy_{self.name}")
        arrays = [a.dtype for a in operands if hasattr(a, "dtype")]
        weak = [not hasattr(a, "dtype") for a in operands]
        numbers = [_score(a) for a, w in zip(operands, weak, strict=True) if w]
        by_arrays = bool(arrays) and max(map(_kind_of, arrays)) >= max(numbers, default=-1)
        for left, right in self._loops:
            ins = _dtypes(left)
            if all(_number_fits(a, d) if w and by_arrays else np.can_cast(np.asarray(a).dtype if w else a.dtype, d)
                   for a, w, d in zip(operands, weak, ins, strict=True)):  # fmt: skip
                return ins, _dtypes(right)
        raise TypeError(f"Wrong type ({[np.asarray(a).dtype for a in operands]}) of arguments for cupy_{self.name}")

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """Combine `b` into elements of `a`, each index in turn."""
        op = _SCATTERED.get(self.name)
        if op is None:
            raise NotImplementedError(f"`cupy_{self.name}.at` is not supported yet")
        a._scatter_op(indices, b, op)

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The sum or product; no other ufunc reduces."""
        if self.name in ("add", "multiply"):
            return (array.sum if self.name == "add" else array.prod)(axis, dtype, out, keepdims)
        raise NotImplementedError(f"`cupy_{self.name}.reduce` is not supported yet")

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The running sum or product; no other ufunc accumulates."""
        if self.name in ("add", "multiply"):
            return (array.cumsum if self.name == "add" else array.cumprod)(axis, dtype, out)
        raise NotImplementedError(f"`cupy_{self.name}.accumulate` is not supported yet")

    def outer(self, A: Any, B: Any, **kwargs: Any) -> Any:  # noqa: N803 - CuPy's names
        """All pairs of elements."""
        return self(A.reshape(A.shape + (1,) * B.ndim), B.reshape((1,) * A.ndim + B.shape), **kwargs)


_CODES: Final = {"E": BFLOAT16}
_SCATTERED: Final = {"add": "add", "subtract": "sub", "maximum": "max", "minimum": "min", "bitwise_and": "and", "bitwise_or": "or",
                     "bitwise_xor": "xor"}  # fmt: skip


def _dtypes(codes: str) -> list[Any]:
    return [BFLOAT16 if c == "E" else np.dtype(c) for c in codes]


def _wide(d: Any) -> Any:
    return np.float32 if d == BFLOAT16 else d


def _operand(a: Any) -> Any:
    if isinstance(a, SCALARS):
        return a
    if isinstance(a, ndarray):
        return a._host
    raise TypeError(f"Unsupported type {type(a)}")


def _kind_of(d: Any) -> int:
    return 0 if d.kind == "b" else 1 if d.kind in "iu" else 2 if d.kind in "fc" else 3


def _score(number: Any) -> int:
    return 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2


def _number_fits(number: Any, d: Any) -> bool:
    """Whether a Python number of this type may take the dtype."""
    if isinstance(number, bool):
        return True
    if isinstance(number, int):
        return d.kind != "b"
    return d.kind == "c" or (isinstance(number, float) and d.kind in "fV")


def _number(value: Any, d: Any) -> Any:
    """A number in a dtype. Raises: OverflowError for a Python int beyond its range."""
    if type(value) is int and d.kind in "iu":
        info = np.iinfo(d)
        if not info.min <= value <= info.max:
            raise OverflowError(f"Python integer {value} out of bounds for {d}")
    return np.asarray(value).astype(d)


def _order(values: list[Any], shape: tuple[int, ...]) -> Callable[[Any], tuple[int, ...]]:
    """Strides of a result: column-major if all operands of its shape are, else row-major."""
    same = [v for v in values if v.shape == shape and v.ndim > 1]
    columns = bool(same) and all(v.flags.f_contiguous and not v.flags.c_contiguous for v in same)
    strides = np.empty(shape, np.uint8, "F" if columns else "C").strides
    return lambda d: tuple(s * d.itemsize for s in strides)


def _all() -> dict[str, Ufunc]:
    return {name: Ufunc(name, loops, getattr(np, name)) for names, loops in _TABLE for name in names.split()}


UFUNCS: Final = _all()
