"""Triton's interpreter over memory of the host, with the missing parts added.

The interpreter has no libdevice, truncates float32 to bfloat16, gives the result of a comparison the type that was compared,
reads a spread element as consecutive memory in atomic updates, and runs reductions with a given function one element at a time:
`_Patches` replaces these parts. It also omits the interpreter's checks for overflow, whose results only kernels in debug mode read.
Functions of libdevice are replaced by the reference kernels, so agreement says that the right function is called, not how a GPU
rounds.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from eager.optable.loop_api import ArrayLoop
from inductor.runtime.triton_source import jit_function, load_triton

__all__ = ["Pointer", "run_kernel"]

Pointer = tuple[int, str]  # an address, and the name of the dtype there
_TRITON_NAME: Final = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
_LIBDEVICE: Final = {"rint": "round"}  # names that the reference kernels have otherwise
_FUNCTIONS: Final = (
    "exp exp2 expm1 log log2 log10 log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc "
    "erfinv lgamma trunc fmod copysign rint pow"
).split()



def run_kernel(name: str, source: str, pointers: Sequence[Pointer], sizes: Sequence[int], grid: int) -> None:
    """Run `grid` programs of a kernel over memory of the host. Pointers without a name in the source are for machine code alone.

    Raises: TritonUnavailable; RuntimeError if triton was imported for a GPU; errors of the interpreter for a faulty kernel.
    """
    _patched()
    fn = _function(name, source)
    if grid:
        with np.errstate(all="ignore"):
            named = pointers[: len(fn.arg_names) - len(sizes)]
            fn[(grid,)](*(_Memory(address, _TRITON_NAME[dtype]) for address, dtype in named), *sizes)


@cache
def _function(name: str, source: str) -> Any:
    return jit_function(name, source)


@cache
def _patched() -> None:
    """Import triton as an interpreter, and add the missing parts. Once in a process."""
    if "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"  # triton reads it when it is imported
    triton = load_triton()
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("triton was imported before the emulated device was used; set TRITON_INTERPRET=1 to emulate a device")
    _Patches().apply()


class _Memory:
    """The tensor methods that the interpreter calls, over memory of the host: it is tensor and storage at once."""

    def __init__(self, address: int, dtype: str) -> None:
        self.address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> _Memory:
        return self

    def cpu(self) -> _Memory:
        return self

    def copy_(self, other: _Memory) -> None:
        """Nothing to do: the copy on the host is the memory itself."""

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return (1,)

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def new_empty(self, n: int, device: Any = None) -> _Memory:
        return _Memory(self.address, self.dtype)

    def set_(self, storage: _Memory, offset: int, size: Any, stride: Any) -> None:
        self.address = storage.address



class _Patches:
    """Functions in place of the interpreter's own."""

    def __init__(self) -> None:
        self.tl: Any = importlib.import_module("triton.language")
        self.libdevice: Any = importlib.import_module("triton.language.extra.libdevice")
        self.interpreter: Any = importlib.import_module("triton.runtime.interpreter")

    def apply(self) -> None:
        """Put them in place."""
        i = self.interpreter
        i._convert_float = self._converting(i._convert_float)
        i.InterpreterBuilder.binary_op = self._typed(i.InterpreterBuilder.binary_op)
        i.InterpreterBuilder.create_atomic_rmw = self._dense(i.InterpreterBuilder.create_atomic_rmw)
        i.InterpreterBuilder.create_dot = lambda _, *args: self._dot(*args)
        i.ReduceOps.generic_reduce = lambda op, inputs: self._reduce(op, inputs)
        i.ScanOps.generic_scan = lambda op, inputs: self._scan(op, inputs)
        i._patch_lang_tensor = _with_index(i._patch_lang_tensor)
        i.interpreter_builder.options = dataclasses.replace(i.interpreter_builder.options, sanitize_overflow=False)
        self._patch_language()
        reference = ArrayLoop(np)
        for name in _FUNCTIONS:
            setattr(self.libdevice, name, self._on_arrays(getattr(reference, _LIBDEVICE.get(name, name))))

    def _patch_language(self) -> None:
        """Put the interpreter's functions into the language once. The interpreter does so for every call of every device function."""
        caller = types.FunctionType((lambda: None).__code__, {"tl": self.tl, "core": self.tl.core})
        self.interpreter._patch_lang(caller)
        self.interpreter._patch_lang = lambda fn: self.interpreter._LangPatchScope()

    def _combined(self, op: Any, a: Sequence[Any], b: Sequence[Any], types: Sequence[Any]) -> list[Any]:
        """The arrays of combine(a, b) for tuples of arrays."""
        left, right = self._tensors(a, types), self._tensors(b, types)
        out = op.combine_fn.fn(*left, *right)
        out = out if isinstance(out, tuple | self.tl.core.tuple) else (out,)
        return [np.asarray(t.handle.data).reshape(x.shape).astype(x.dtype) for t, x in zip(out, a, strict=True)]

    def _tensors(self, arrays: Sequence[Any], types: Sequence[Any]) -> list[Any]:
        handles = [self.interpreter.TensorHandle(x, t) for x, t in zip(arrays, types, strict=True)]
        return [self.tl.tensor(h, self.tl.block_type(h.dtype.scalar, list(h.data.shape))) for h in handles]

    def _reduce(self, op: Any, inputs: Sequence[Any]) -> list[Any]:
        """A tree over neighbours, as on a GPU; the number of elements is a power of two."""
        arrays, types = [x.handle.data for x in inputs], [x.handle.dtype for x in inputs]
        axis = op.axis
        while arrays[0].shape[axis] > 1:
            arrays = self._combined(op, _parts(arrays, axis, 0, None, 2), _parts(arrays, axis, 1, None, 2), types)
        if not op.keep_dims:
            arrays = [a.squeeze(axis) for a in arrays]
        return [op.to_tensor(a, x.dtype) for a, x in zip(arrays, inputs, strict=True)]

    def _scan(self, op: Any, inputs: Sequence[Any]) -> list[Any]:
        """Prefixes by doubling (Hillis and Steele, 1986)."""
        arrays, types = [np.array(x.handle.data) for x in inputs], [x.handle.dtype for x in inputs]
        axis, step = op.axis, 1
        while step < arrays[0].shape[axis]:
            new = self._combined(op, [np.roll(a, step, axis) for a in arrays], arrays, types)
            for a, n in zip(arrays, new, strict=True):
                _parts([a], axis, step)[0][...] = _parts([n], axis, step)[0]
            step *= 2
        return [op.to_tensor(a, x.dtype) for a, x in zip(arrays, inputs, strict=True)]

    def _dot(self, a: Any, b: Any, total: Any, precision: Any, limit: Any) -> Any:
        """Products of numbers of 16 and 8 bits are exact in float32; the interpreter multiplies their bits."""
        of = {self.tl.bfloat16: ml_dtypes.bfloat16, self.tl.float8e4nv: ml_dtypes.float8_e4m3fn, self.tl.float8e5: ml_dtypes.float8_e5m2}
        left, right = (x.data.view(of[x.dtype.scalar]) if x.dtype.scalar in of else x.data for x in (a, b))
        made = np.matmul(left.astype(total.data.dtype), right.astype(total.data.dtype))
        return self.interpreter.TensorHandle(made + total.data, total.dtype.scalar)

    def _dense(self, update: Callable[..., Any]) -> Callable[..., Any]:
        """Atomic updates with operands in row-major memory, as which the interpreter reads a spread element too."""

        def create_atomic_rmw(builder: Any, op: Any, *operands: Any) -> Any:
            *tensors, order, scope = operands
            dense = (self.interpreter.TensorHandle(np.ascontiguousarray(t.data), t.dtype) for t in tensors)
            return update(builder, op, *dense, order, scope)

        return create_atomic_rmw

    def _typed(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Truth values are of one bit; the interpreter gives the result of a comparison the type that was compared."""

        def binary_op(builder: Any, a: Any, b: Any, op: Any) -> Any:
            made = compute(builder, a, b, op)
            return self.interpreter.TensorHandle(made.data, self.tl.int1) if made.data.dtype == np.bool_ else made

        return binary_op

    def _converting(self, convert: Callable[..., Any]) -> Callable[..., Any]:
        def rounding(data: Any, source: Any, target: Any, mode: Any) -> Any:
            if source == self.tl.float32 and target == self.tl.bfloat16:
                return data.astype(ml_dtypes.bfloat16).view(np.uint16)
            if source == self.tl.bfloat16 and target == self.tl.float32:
                return data.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
            return convert(data, source, target, mode)

        return rounding

    def _on_arrays(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*tensors: Any) -> Any:
            given = [t if isinstance(t, self.tl.tensor) else self.tl.to_tensor(t) for t in tensors]
            arrays = np.broadcast_arrays(*(t.handle.data for t in given))
            first = given[0]
            result = np.asarray(fn(*arrays), dtype=arrays[0].dtype)
            is_block = any(t.type.is_block() for t in given)
            kind = self.tl.block_type(first.dtype, list(result.shape)) if is_block else first.dtype
            return self.tl.tensor(self.interpreter.TensorHandle(result, first.dtype), kind)

        return call


def _parts(arrays: Sequence[Any], axis: int, start: int, stop: int | None = None, step: int = 1) -> list[Any]:
    where = tuple(slice(start, stop, step) if d == axis else slice(None) for d in range(arrays[0].ndim))
    return [a[where] for a in arrays]


def _with_index(patch: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's patch of tensors, after which a scalar can be the bound of a loop."""

    def indexed(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    return indexed
