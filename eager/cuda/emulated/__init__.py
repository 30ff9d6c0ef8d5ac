"""A stand-in for CuPy over numpy: a test device, chosen by FRAMEJIT_EMULATE_CUDA=1 alone.

It accepts at most what CuPy 14.2 accepts, so that a program that runs here runs on a GPU: the functions, parameters and dtypes of
CuPy, no host arrays, no implicit copies to the host. Streams keep their order and no other, as a GPU's do.

Layers: errors; streams; memory; arrays; ufuncs; functions and basics; methods; library and runtime; this module, the namespace.
"""
from __future__ import annotations

import types
from typing import Final

import numpy as np

from eager.cuda.emulated import basics, library, methods, runtime
from eager.cuda.emulated.arrays import ndarray
from eager.cuda.emulated.functions import FUNCTIONS
from eager.cuda.emulated.ufuncs import UFUNCS

_BASICS: Final = """array asarray ascontiguousarray asnumpy empty empty_like copyto where take repeat reshape ravel matmul broadcast_arrays
may_share_memory put_along_axis fill_diagonal get_default_memory_pool get_default_pinned_memory_pool""".split()
_FROM_NUMPY: Final = """bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 dtype nan inf
pi newaxis finfo iinfo result_type can_cast promote_types broadcast_shapes""".split()

methods.install()


def cupy_module() -> types.ModuleType:
    """The namespace `cupy` of the emulated device."""
    made = types.ModuleType("cupy", "CuPy's namespace on the emulated device.")
    made.__dict__.update({name: getattr(np, name) for name in _FROM_NUMPY})
    made.__dict__.update(UFUNCS)
    made.__dict__.update(FUNCTIONS)
    made.__dict__.update({name: getattr(basics, name) for name in _BASICS})
    strides = types.ModuleType("cupy.lib.stride_tricks")
    strides.__dict__.update(as_strided=basics.as_strided)
    lib = types.ModuleType("cupy.lib")
    lib.__dict__.update(stride_tricks=strides)
    made.__dict__.update(ndarray=ndarray, cuda=runtime.cuda_module(), linalg=library.linalg_module(), fft=library.fft_module(), lib=lib)
    return made


errstate = library.errstate


def special_module() -> types.ModuleType:
    """The namespace `cupyx.scipy.special` of the emulated device."""
    return library.special_module()
