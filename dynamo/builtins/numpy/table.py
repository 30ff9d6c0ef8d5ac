"""The table of numpy's functions and methods, by name: calls on arrays of the graph use `numpy.rules`; calls on
constants run at capture.

A numpy scalar computed from constants is a constant. An array computed from constants is a node: each call makes a new
array. The graph breaks at a scalar that is not finite, because numpy may warn about it, and at a function without a
row. Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

import eager
from dynamo.builtins.numpy import rules
from dynamo.builtins.numpy.calls import Rule
from dynamo.builtins.registry import Args, Kwargs, Row, on_constants
from dynamo.policy import callees
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NUMPY_SCALARS, Constant
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import walk_values
from eager.base import dtypes

_sum = rules.reduction(rules.over(eager.sum))
_max, _min = (rules.without_dtype(rules.reduction(rules.over(fn), "biuf", adds=False)) for fn in (eager.amax, eager.amin))
_any, _all = (rules.without_dtype(rules.truth_reduction(fn)) for fn in (eager.any, eager.all))
# Functions of numpy that are also methods of arrays, under the same names.
SHARED: Final[dict[str, Rule]] = {
    "sum": _sum,
    "prod": rules.reduction(rules.one_by_one(eager.prod)),
    "mean": rules.reduction(rules.mean),
    "max": _max,
    "min": _min,
    "any": _any,
    "all": _all,
    "var": rules.spread(False),
    "std": rules.spread(True),
    "argmax": rules.place(eager.argmax),
    "argmin": rules.place(eager.argmin),
    "cumsum": rules.scan(eager.cumsum),
    "cumprod": rules.scan(eager.cumprod),
    "ravel": rules.flat,
    "squeeze": rules.squeeze,
    "swapaxes": lambda call, a, axis1, axis2: call.method("transpose", call.tensor(a), axis1, axis2),
    "repeat": rules.repeat,
    "take": rules.take,
    "diagonal": rules.diagonal,
    "round": rules.round_,
    "dot": rules.dot,
    "argsort": rules.argsort,
    "copy": rules.copied,
    "reshape": rules.reshape,
    "transpose": rules.transpose,
}
ONLY_FUNCTIONS: Final[dict[str, Rule]] = {
    "amax": _max,
    "amin": _min,
    "ptp": rules.without_dtype(rules.reduction(rules.extent, "iuf", adds=False)),
    "median": rules.median,
    "linalg.norm": rules.norm,
    "moveaxis": lambda call, a, source, destination: call.op(eager.movedim, call.tensor(a), source, destination),
    "expand_dims": rules.expand_dims,
    "concatenate": rules.joined(eager.cat),
    "stack": rules.joined(eager.stack),
    "vstack": rules.joined(eager.vstack),
    "hstack": rules.joined(eager.hstack),
    "dstack": rules.joined(eager.dstack),
    "column_stack": rules.joined(eager.column_stack),
    "split": rules.split,
    "array_split": rules.split,
    "atleast_1d": rules.at_least(eager.atleast_1d),
    "atleast_2d": rules.at_least(eager.atleast_2d),
    "atleast_3d": rules.at_least(eager.atleast_3d),
    "tile": rules.tile,
    "roll": rules.roll,
    "broadcast_to": rules.broadcast_to,
    "tril": rules.triangle(eager.tril),
    "triu": rules.triangle(eager.triu),
    "diag": rules.diag,
    "pad": rules.pad,
    "diff": rules.diff,
    "sort": rules.sort,
    "where": rules.where,
    "clip": rules.clip,
    "outer": rules.outer,
    "inner": rules.inner,
    "einsum": rules.einsum,
    "tensordot": rules.tensordot,
    "meshgrid": rules.meshgrid,
    "zeros_like": rules.filled(0),
    "ones_like": rules.filled(1),
    "empty_like": rules.filled(0),
    "full_like": rules.filled(None),
    "array": rules.converted,
    "asarray": rules.converted,
    "asanyarray": rules.converted,
    "ascontiguousarray": rules.converted,
    "asfortranarray": rules.converted,
}
ONLY_METHODS: Final[dict[str, Rule]] = {
    "flatten": rules.flat,
    "astype": rules.converted,
    "conj": lambda call, a: call.tensor(a) if a.dtype.kind != "c" else call.refuse("of complex numbers"),
    "clip": rules.clipped,
    "fill": rules.fill,
    "__getitem__": rules.getitem,
    "__setitem__": rules.setitem,
}
# Functions that also accept constants, or only constants: constructors of arrays, and queries about dtypes and shapes.
_OF_CONSTANTS: Final = (
    "zeros ones full empty arange linspace logspace geomspace eye identity tri indices hanning hamming blackman bartlett kaiser "
    "allclose isclose array_equal issubdtype result_type promote_types can_cast broadcast_shapes isscalar"
).split()
_OPERATORS: Final = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "matmul": np.matmul, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor, "neg": np.negative,
    "pos": np.positive, "abs": np.absolute, "invert": np.invert, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
OPERATORS: Final[dict[Any, tuple[str, Rule]]] = {
    getattr(operator, name): (ufunc.__name__, rules.UFUNCS[ufunc]) for name, ufunc in _OPERATORS.items()
} | {abs: ("absolute", rules.UFUNCS[np.absolute]), operator.getitem: ("ndarray.__getitem__", rules.getitem)}


def _in_place(rule: Rule) -> Rule:
    """a op= b: writes the result of op into a."""

    def into(call: Any, a: NdArrayValue, b: Any) -> Any:
        made = rule(call, a, b)
        call.cap.arrays.write(call, a, lambda x: call.method("copy_", x, call.tensor(made, a.dtype)))
        return made

    return into


for _name, _ufunc in _OPERATORS.items():
    if hasattr(operator, "i" + _name.strip("_")):
        OPERATORS[getattr(operator, "i" + _name.strip("_"))] = _ufunc.__name__, _in_place(rules.UFUNCS[_ufunc])


def _of_arrays(fn: Any, name: str, rule: Rule, of_constants: Row) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if cap.arrays.has((*args, *kwargs.values())):
            return cap.arrays.call(fn, name, rule, args, kwargs)
        return of_constants(cap, args, kwargs)

    return row


def _of_tensor(fn: Any, name: str, rule: Rule, of_constants: Row) -> Row:
    """array(), asarray() and related functions of a tensor: applied to the array that the tensor's numpy() returns."""
    plain = _of_arrays(fn, name, rule, of_constants)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if args else None
        return plain(cap, [cap.arrays.of(first), *args[1:]] if isinstance(first, TensorValue) else args, kwargs)

    return row


def _method(name: str, rule: Rule) -> Row:
    spread = name in ("reshape", "transpose")  # they also take the axes as separate arguments
    run = getattr(operator, name.strip("_")) if name in ("__getitem__", "__setitem__") else operator.methodcaller

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if run is not operator.methodcaller:
            return cap.arrays.call(run, f"ndarray.{name}", rule, args, kwargs)
        given = [args[0], cap.iteration.make_tuple(args[1:])] if spread and len(args) > 2 else args
        return cap.arrays.call(None, f"ndarray.{name}", rule, given, kwargs, lambda a, *rest, **named: getattr(a, name)(*rest, **named))

    return row


def _of_constants(fn: Any, name: str) -> Row:
    plain = on_constants(fn)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        result = cap.realize(plain(cap, args, kwargs))
        if not isinstance(result, Constant) or not isinstance(result.value, np.inexact) or np.isfinite(result.value):
            return result
        raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}() with a result that is not finite")

    return row


def _scalar_class(kind: Any) -> Row:
    """numpy.float32(x) and the other scalar classes."""
    of_constants = _of_constants(kind, kind.__name__)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if cap.arrays.has((*args, *kwargs.values())):
            return cap.arrays.call(kind, kind.__name__, rules.converted, args, kwargs)
        return of_constants(cap, args, kwargs)

    return row


def _no_rule(call: Any, *args: Any, **kwargs: Any) -> Any:
    call.refuse("of an array")


def _function(name: str) -> Any:
    return operator.attrgetter(name)(np)


def _add(name: str, rule: Rule) -> None:
    fn = _function(name)
    of = _of_tensor if rule is rules.converted else _of_arrays
    row = of(fn, name, rule, _of_constants(np.zeros if fn is np.empty else fn, name))  # the contents of new memory are undefined
    ANSWERS[fn] = row


for _kind in NUMPY_SCALARS:
    ANSWERS[_kind] = _scalar_class(_kind)
for _name in (*(_n for _n, _f in vars(np).items() if isinstance(_f, np.ufunc)), *_OF_CONSTANTS):
    _add(_name, rules.UFUNCS.get(_function(_name), _no_rule))
for _name, _rule in (SHARED | ONLY_FUNCTIONS).items():
    _add(_name, _rule)
METHODS: Final[dict[str, Row]] = {name: _method(name, rule) for name, rule in (SHARED | ONLY_METHODS).items()}


def _attribute(name: str) -> Row:
    """numpy.shape(a), numpy.ndim(a) and numpy.size(a)."""
    of_constants = _of_constants(getattr(np, name), name)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if len(args) == 1 and not kwargs else None
        return first.getattr(cap, name) if isinstance(first, NdArrayValue) else of_constants(cap, args, kwargs)

    return row


for _name in ("shape", "ndim", "size"):
    ANSWERS[getattr(np, _name)] = _attribute(_name)
ANSWERS[np.dtype] = on_constants(np.dtype)


def _with_dtype(cap: Machine, fn: Any, args: Args, kwargs: Kwargs) -> Kwargs:
    """The keywords, with the dtype of a constant numpy scalar: the number that replaces the scalar in the graph has no
    dtype.
    """
    given = _host_scalars(cap, args[0]) if args else []
    if not given or "dtype" in kwargs or (len(args) > 1 and fn is not eager.tensor):
        return kwargs
    if not isinstance(cap.realize(args[0]), ListValue | TupleValue):
        return {**kwargs, "dtype": Constant(dtypes.from_numpy(given[0].dtype))}
    raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() of a list of numpy scalars")


def _host_scalars(cap: Machine, value: Value) -> list[np.generic]:
    """The numpy scalars among the constants of nested lists and tuples. The value of a symbolic number is not read."""
    of_numpy = (v for v in walk_values(cap, value) if issubclass(v.python_type(), np.generic))
    found = (v.value if isinstance(v, Constant) else getattr(v, "real", None) for v in of_numpy)
    return [real for real in found if isinstance(real, np.generic)]


def _tensor_of(fn: Any) -> None:
    """Register from_numpy() or a related function: a call with an array goes to `Arrays.tensor`, any other call to the
    usual row.
    """

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if args and isinstance(cap.realize(args[0]), NdArrayValue):
            return cap.arrays.tensor(fn, args, kwargs)
        if callees.is_allowed(fn):
            return cap.recorder.call(fn, args, _with_dtype(cap, fn, args, kwargs))
        raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() of {args[0].describe() if args else 'nothing'}")

    ANSWERS[fn] = row


for _fn in (eager.from_numpy, eager.as_tensor, eager.asarray, eager.tensor):
    _tensor_of(_fn)
