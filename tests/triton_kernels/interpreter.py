"""Triton's interpreter over numpy arrays. TRITON_INTERPRET=1 must be set before this module is imported.

The interpreter has no libdevice, truncates float32 to bfloat16, spreads the result of a comparison of scalars as a number of the
type that was compared, and runs reductions with a given function one element at a time: `patch` replaces these parts. Functions of
libdevice are replaced by the reference kernels, so agreement says that the right function is called, not how a GPU rounds.
"""
import ml_dtypes
import numpy as np
import triton.language as tl
import triton.language.extra.libdevice as libdevice
from triton.runtime import interpreter

from eager.optable.loop_api import ArrayLoop
from fxir.expr import rules as E
from inductor.ir.sizes import Size
from inductor.triton.compile import jit_function

TRITON_NAME = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1", "int8": "i8",
               "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
               "uint64": "u64"}  # fmt: skip
LIBDEVICE = {"rint": "round"}
FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc "
    "erfinv lgamma trunc fmod copysign rint pow"
).split()


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        if other is not self:
            self.array[...] = other.array


class Host:
    """The tensor methods that the interpreter uses, over an ndarray."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, TRITON_NAME[array.dtype.name], array.shape

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return Storage(self.array)

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def element_size(self):
        return self.array.itemsize

    def new_empty(self, n, device=None):
        return View(self.dtype)


class View:
    def __init__(self, dtype):
        self.dtype = dtype

    def set_(self, storage, offset, size, stride):
        self.storage, self.shape, self.strides = storage, size, stride

    def data_ptr(self):
        return self.storage.data_ptr()

    def untyped_storage(self):
        return self.storage

    def stride(self):
        return self.strides


def _tensors(handles):
    return tuple(tl.tensor(h, tl.block_type(h.dtype.scalar, list(h.data.shape))) for h in handles)


def _combined(op, a, b, types):
    """The arrays of combine(a, b) for tuples of arrays."""
    left = _tensors(interpreter.TensorHandle(x, t) for x, t in zip(a, types, strict=True))
    right = _tensors(interpreter.TensorHandle(x, t) for x, t in zip(b, types, strict=True))
    out = op.combine_fn.fn(*left, *right)
    out = out if isinstance(out, tuple | tl.core.tuple) else (out,)
    return [np.asarray(t.handle.data).reshape(x.shape).astype(x.dtype) for t, x in zip(out, a, strict=True)]


def _parts(arrays, axis, start, stop=None, step=1):
    where = tuple(slice(start, stop, step) if d == axis else slice(None) for d in range(arrays[0].ndim))
    return [a[where] for a in arrays]


def _reduce(self, inputs):
    """A tree over neighbours, as on a GPU; the number of elements is a power of two."""
    arrays, types = [x.handle.data for x in inputs], [x.handle.dtype for x in inputs]
    axis = self.axis
    while arrays[0].shape[axis] > 1:
        arrays = _combined(self, _parts(arrays, axis, 0, None, 2), _parts(arrays, axis, 1, None, 2), types)
    if not self.keep_dims:
        arrays = [a.squeeze(axis) for a in arrays]
    return [self.to_tensor(a, x.dtype) for a, x in zip(arrays, inputs, strict=True)]


def _scan(self, inputs):
    """Prefixes by doubling (Hillis and Steele, 1986)."""
    arrays, types = [np.array(x.handle.data) for x in inputs], [x.handle.dtype for x in inputs]
    axis, step = self.axis, 1
    while step < arrays[0].shape[axis]:
        new = _combined(self, [np.roll(a, step, axis) for a in arrays], arrays, types)
        for a, n in zip(arrays, new, strict=True):
            _parts([a], axis, step)[0][...] = _parts([n], axis, step)[0]
        step *= 2
    return [self.to_tensor(a, x.dtype) for a, x in zip(arrays, inputs, strict=True)]


def _dot(self, a, b, total, precision, limit):
    """Products of half precision numbers are exact in float32; the interpreter multiplies their bits."""
    left, right = (x.data.view(ml_dtypes.bfloat16) if x.dtype.scalar == tl.bfloat16 else x.data for x in (a, b))
    made = np.matmul(left.astype(total.data.dtype), right.astype(total.data.dtype))
    return interpreter.TensorHandle(made + total.data, total.dtype.scalar)


def _splat(self, to, x):
    return interpreter.TensorHandle(np.full(to.shape, x.data.item(), dtype=x.data.dtype), to.scalar)


def _on_arrays(fn):
    def call(*tensors):
        tensors = [t if isinstance(t, tl.tensor) else tl.to_tensor(t) for t in tensors]
        arrays = np.broadcast_arrays(*(t.handle.data for t in tensors))
        first = tensors[0]
        result = np.asarray(fn(*arrays), dtype=arrays[0].dtype)
        shape = list(result.shape)
        kind = tl.block_type(first.dtype, shape) if any(t.type.is_block() for t in tensors) else first.dtype
        return tl.tensor(interpreter.TensorHandle(result, first.dtype), kind)

    return call


def patch():
    """Replace what the interpreter lacks (see the module)."""
    convert = interpreter._convert_float

    def rounding(data, source, target, mode):
        if source == tl.float32 and target == tl.bfloat16:
            return data.astype(ml_dtypes.bfloat16).view(np.uint16)
        if source == tl.bfloat16 and target == tl.float32:
            return data.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
        return convert(data, source, target, mode)

    interpreter._convert_float = rounding
    interpreter.InterpreterBuilder.create_splat = _splat
    interpreter.InterpreterBuilder.create_dot = _dot
    interpreter.ReduceOps.generic_reduce = _reduce
    interpreter.ScanOps.generic_scan = _scan
    tensor_methods = interpreter._patch_lang_tensor

    def indexed(tensor, scope):
        tensor_methods(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = indexed
    reference = ArrayLoop(np)
    for name in FUNCTIONS:
        setattr(libdevice, name, _on_arrays(getattr(reference, LIBDEVICE.get(name, name))))


def run(launches, memory, symbols):
    """Run kernels over memory, flat arrays by name, in place. symbols: values of sizes, by symbol."""
    for x in launches.scratch:
        memory[x.name] = np.zeros(_size(x.size, symbols), x.dtype.numpy)
    values = {s.name: n for s, n in symbols.items()}
    for kernel in launches.kernels:
        fn = jit_function(kernel)
        grid = _size(kernel.grid, symbols)
        if grid:
            with np.errstate(all="ignore"):
                fn[(grid,)](*[Host(memory[n]) for n in kernel.pointers], *[values[n] for n in kernel.sizes])


def _size(n: Size, symbols):
    return n if isinstance(n, int) else E.evaluate(n, symbols)
