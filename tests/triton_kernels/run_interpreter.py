"""Run Triton kernels in Triton's interpreter against numpy. A separate program, since TRITON_INTERPRET=1 must be set before
triton is imported. Prints one JSON line: kernel name -> largest error over its outputs.
"""
import json
import math
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import triton.language as tl
import triton.language.extra.libdevice as libdevice
from triton.runtime import interpreter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from inductor.triton.compile import jit_function  # noqa: E402
from tests.triton_kernels import programs  # noqa: E402

TRITON_NAME = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1", "int8": "i8",
               "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8"}  # fmt: skip


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


def patch():
    """The interpreter truncates float32 to bfloat16 and has no libdevice: round, and use numpy."""
    convert = interpreter._convert_float

    def rounding(data, source, target, mode):
        if source == tl.float32 and target == tl.bfloat16:
            return data.astype(ml_dtypes.bfloat16).view(np.uint16)
        if source == tl.bfloat16 and target == tl.float32:
            return data.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
        return convert(data, source, target, mode)

    interpreter._convert_float = rounding
    names = {"tanh": np.tanh, "erf": np.vectorize(math.erf, otypes=[np.float64]), "expm1": np.expm1, "log1p": np.log1p,
             "rint": np.rint, "trunc": np.trunc, "pow": np.power}  # fmt: skip

    def wrap(fn):
        def call(*tensors):
            arrays = [t.handle.data for t in tensors]
            first = tensors[0]
            result = np.asarray(fn(*arrays), dtype=arrays[0].dtype)
            return tl.tensor(interpreter.TensorHandle(result, first.handle.dtype), first.type)

        return call

    for name, fn in names.items():
        setattr(libdevice, name, wrap(fn))


def main():
    patch()
    errors = {}
    for case in programs.cases():
        kernel = case.kernel
        fn = jit_function(kernel)
        arrays = [np.ascontiguousarray(case.arrays[n]) for n in kernel.pointers]
        fn[(kernel.grid,)](*[Host(a) for a in arrays], kernel.xnumel, **dict(kernel.constants))
        worst = 0.0
        for n, a in zip(kernel.pointers, arrays, strict=True):
            if n in case.expected:
                worst = max(worst, float(np.max(np.abs(a.astype(np.float64) - case.expected[n].astype(np.float64)))))
        errors[case.name] = worst
    print(json.dumps(errors))


main()
