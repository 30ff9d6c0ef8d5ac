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
from eager.functions.argument_types import all_refusing, refusing
from eager.functions.former_orders import accept_former_orders
from eager.functions.keywords import accept_numpy_names
from eager.functions.results import EXACT_OUT, TAKE_OUT, takes_out
from eager.optable.autocast import listed

FAMILIES = (pointwise, reductions, views, convert, creation, dlpack, memory, random, matmul, indexing, joining, shape, sorting,
            convolution, pooling, resampling, einsum, linalg,
            complex_numbers, special, copies, foreach, properties, sampling, segments, spectral, statistics, lowrank,
            lobpcg, removed, symbolic, quantizing)  # fmt: skip
# in-place forms that are functions as well
_IN_PLACE = (
    "abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max clamp_min clip cos cosh "
    "deg2rad erf erfc exp exp2 expm1 fill fix floor frac gcd i0 lcm ldexp log log10 log1p log2 logit nan_to_num neg negative "
    "rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy zero addmv"
).split()
# functions that want a list of whole numbers, where the method takes them one by one
_OF_LISTS = ("flip", "permute", "reshape", "tile")
FUNCTIONS: dict[str, Any] = {}
for _family in FAMILIES:
    accept_numpy_names(_family.FUNCTIONS)
    accept_numpy_names(_family.METHODS)
    accept_former_orders(_family.FUNCTIONS)
    accept_former_orders(_family.METHODS)
    _with_out = {name: takes_out(name, fn, name in EXACT_OUT) if name in TAKE_OUT else fn for name, fn in _family.FUNCTIONS.items()}
    FUNCTIONS.update(all_refusing(listed(_with_out), "eager"))
    attach(all_refusing(listed(_family.METHODS), "eager", are_methods=True))
for _name in _native.FAST_METHODS:  # with a short way in C before the function, under all names that it has
    _plain = getattr(Tensor, _name)
    attach(dict.fromkeys([n for n, fn in vars(Tensor).items() if fn is _plain], _native.fast_method(_name, _plain)))
for _name in _IN_PLACE:
    _method = getattr(Tensor, _name + "_")
    if not isinstance(_method, _native.OpBase):  # a wrapper of its own: its texts count the tensor among the arguments
        _method = refusing(inspect.unwrap(_method), _name + "_", "eager")
    FUNCTIONS[_name + "_"] = _method
FUNCTIONS.update({name: refusing(inspect.unwrap(FUNCTIONS[name]), name, "eager", False) for name in _OF_LISTS})
FUNCTIONS["detach_"] = refusing(Tensor.detach_, "detach_", "eager")
for _name, _fn in FUNCTIONS.items():  # each is found again under its name: so it pickles, and is written in graphs
    if isinstance(_fn, types.FunctionType) and FUNCTIONS.get(_fn.__name__) is not _fn:
        _fn.__name__ = _fn.__qualname__ = _name
    if isinstance(_fn, types.FunctionType):
        _fn.__module__, _fn.__qualname__ = "eager", _fn.__name__

__all__ = ["FUNCTIONS"]
