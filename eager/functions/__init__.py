"""The public functions by family; importing this package makes them methods of Tensor.

A family lists `FUNCTIONS` (names in the `eager` namespace) and `METHODS` (names on Tensor).
"""
import inspect
import types
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor, attach
from eager.functions import (
    complex_numbers,
    convert,
    convolution,
    copies,
    creation,
    dlpack,
    einsum,
    foreach,
    indexing,
    joining,
    linalg,
    lobpcg,
    lowrank,
    matmul,
    memory,
    pointwise,
    pooling,
    properties,
    quantizing,
    random,
    reductions,
    removed,
    resampling,
    sampling,
    segments,
    shape,
    sorting,
    special,
    spectral,
    statistics,
    symbolic,
    views,
)
from eager.public.wrapper import publish, wrap

FAMILIES = (pointwise, reductions, views, convert, creation, dlpack, memory, random, matmul, indexing, joining, shape, sorting,
            convolution, pooling, resampling, einsum, linalg,
            complex_numbers, special, copies, foreach, properties, sampling, segments, spectral, statistics, lowrank,
            lobpcg, removed, symbolic, quantizing)  # fmt: skip
# in-place methods that are functions as well
_IN_PLACE = (
    "abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max clamp_min clip cos cosh "
    "deg2rad erf erfc exp exp2 expm1 fill fix floor frac gcd i0 lcm ldexp log log10 log1p log2 logit nan_to_num neg negative "
    "rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy zero addmv"
).split()
FUNCTIONS: dict[str, Any] = {}
for _family in FAMILIES:
    FUNCTIONS.update(publish(_family.FUNCTIONS, "eager"))
    attach(publish(_family.METHODS, "eager", are_methods=True))
for _name in _native.NATIVE_METHODS:  # methods with a fast path in C before the function, under all their names
    _plain = getattr(Tensor, _name)
    attach(dict.fromkeys([n for n, fn in vars(Tensor).items() if fn is _plain], _native.native_method(_name, _plain)))
for _name in _IN_PLACE:
    _method = getattr(Tensor, _name + "_")
    if not isinstance(_method, _native.OpBase):  # a wrapper whose texts count the tensor among the arguments
        _method = wrap(inspect.unwrap(_method), _name + "_", "eager", name=_name + "_")
    FUNCTIONS[_name + "_"] = _method
FUNCTIONS["detach_"] = wrap(Tensor.detach_, "detach_", "eager")
for _name, _fn in FUNCTIONS.items():  # pickling and printed graphs find a function by its name
    if isinstance(_fn, types.FunctionType):
        if FUNCTIONS.get(_fn.__name__) is not _fn:
            _fn.__name__ = _name
        _fn.__module__, _fn.__qualname__ = "eager", _fn.__name__

__all__ = ["FUNCTIONS"]
