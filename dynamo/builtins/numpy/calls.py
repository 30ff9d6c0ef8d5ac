"""Calls of numpy on arrays of the graph.

numpy itself decides the form of a result: the capture calls it on stand-ins, which are arrays of zeros with the dtypes,
shapes, strides and flags of the real arrays. The result of this call gives dtype, shape and memory order, whether the
result is an array or a scalar, whether it is a view and of which array, or the exception. A row of `table` computes the
values with functions of tensors. If the form of a row's result differs from numpy's, the graph breaks; so a row may be
missing, but its result never has another form.

As in torch, compiled code does not issue numpy's floating-point warnings (of divisions by zero and the like). Under an
`np.errstate` that raises them, nothing is captured.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy._core import umath

import eager
from dynamo.builtins.registry import Row
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.objects import ClassValue
from dynamo.values.protocols import Machine, Raised, Value
from dynamo.values.sequences import ListValue, SliceValue, TupleValue
from dynamo.values.symbolic import SymbolicValue
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import to_host, walk_values
from dynamo.world.array_memory import is_known
from eager.base import dtypes
from eager.base.records import dataclass
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt, hint_of

Rule: TypeAlias = "Callable[..., Any]"
_MOST_NUMBERS: Final = 4096  # of a constant array in the graph
_QUIET: Final[dict[str, Any]] = {"divide": "ignore", "over": "ignore", "under": "ignore", "invalid": "ignore"}
_CONTAINERS: Final = frozenset({list, tuple, slice, eager.Size})
_UNUSED: Final = (None, np._NoValue)  # numpy's defaults of optional arguments
_error_state: Final = getattr(umath, "_get_extobj_dict", np.geterr)  # the same as geterr() without Python code
_signature: Final = functools.lru_cache(maxsize=None)(inspect.signature)


class Call:
    """One call that is being recorded into the graph: the interface of rules to the capture.

    expected: numpy's result for the stand-ins.
    """

    def __init__(self, cap: Machine, name: str, expected: Any) -> None:
        self.cap = cap
        self.name = name
        self.expected = expected

    def refuse(self, why: str) -> Any:
        """Break the graph."""
        raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{self.name}() {why}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the result."""
        found: np.dtype[Any] = (self.expected[0] if isinstance(self.expected, tuple | list) else self.expected).dtype
        return found

    def tensor(self, value: Any, dtype: Any = None) -> TensorValue:
        """A value as a tensor: an array, a number, or nested sequences of them, cast to `dtype` first.

        Without `dtype`, the tensor shares the memory of the array.
        """
        if isinstance(value, Value):
            value = self.cap.realize(value)
        if isinstance(value, TensorValue):
            return value if dtype is None else self._cast(value, dtype)
        if isinstance(value, NdArrayValue):
            return value.tensor if dtype is None else self._cast(value.tensor, dtype)
        if isinstance(value, ListValue | TupleValue | list | tuple):
            items = value.items if isinstance(value, ListValue | TupleValue) else value
            wanted = np.dtype(dtype) if dtype is not None else self.dtype
            return self.op(eager.stack, [self.tensor(v, wanted) for v in items])
        number = value.as_constant() if isinstance(value, Constant) else value
        wanted = np.dtype(dtype) if dtype is not None else np.asarray(number).dtype
        try:
            with np.errstate(all="ignore"):
                rounded = wanted.type(number).item()
        except OverflowError:  # a comparison with a number outside the dtype's range
            self.refuse(f"in {wanted} with {number}")
        return self.op(eager.full, (), rounded, dtype=dtypes.from_numpy(wanted))

    def _cast(self, x: TensorValue, dtype: Any) -> TensorValue:
        wanted = dtypes.from_numpy(np.dtype(dtype))
        return x if x.fake.dtype is wanted else self.method("to", x, wanted)

    def op(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs) as a node.

        Arguments: values or host objects. A new tensor is on the CPU, for any default device.
        """
        if fn in (eager.full, eager.tensor):
            kwargs["device"] = "cpu"
        named = {k: self._value(v) for k, v in kwargs.items()}
        return self.cap.recorder.call(fn, [self._value(a) for a in args], named)

    def method(self, name: str, x: TensorValue, *args: Any, **kwargs: Any) -> Any:
        """x.name(*args, **kwargs) as a node."""
        return self.cap.recorder.method(name, [x, *map(self._value, args)], {k: self._value(v) for k, v in kwargs.items()})

    def _value(self, given: Any) -> Value:
        if isinstance(given, Value):
            return given
        if isinstance(given, list | tuple):
            items = [self._value(v) for v in given]
            return ListValue(items) if isinstance(given, list) else TupleValue(items)
        if isinstance(given, slice):
            return SliceValue(self._value(given.start), self._value(given.stop), self._value(given.step))
        return self.cap.world.wrap_new(given)


@dataclass(eq=False)
class Arrays:
    """Calls numpy's functions and methods on arrays of the graph.

    operators, methods: a rule for each operator, a row of the builtin table for each method.
    """

    cap: Machine
    operators: Mapping[Any, tuple[str, Rule]]
    methods: Mapping[str, Row]

    # -- tensors and arrays ------------------------------------------------------------------------------------
    def of(self, x: TensorValue) -> NdArrayValue:
        """x.numpy()"""
        if isinstance(x.array, NdArrayValue):
            return x.array
        fake = x.fake
        has_history = fake.requires_grad and self.cap.modes.grad
        if self.cap.recorder.transforming or fake.device.type != "cpu" or not fake.dtype.in_numpy or has_history:
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f".numpy() of {x.describe()}")
        tensor = x if not fake.requires_grad else self.cap.recorder.method("detach", [x], {})
        assert isinstance(tensor, TensorValue)
        made = x.array = NdArrayValue(tensor)
        return made

    def tensor(self, fn: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """from_numpy(a), as_tensor(a, ...), asarray(a, ...), tensor(a, ...) for an array or a scalar of numpy."""
        array = self.cap.realize(args[0])
        assert isinstance(array, NdArrayValue)
        named = {k: self.cap.realize(v) for k, v in kwargs.items()}
        if len(args) > 1:
            named["dtype"] = self.cap.realize(args[1])
        if len(args) > 2 or not set(named) <= {"dtype"} | {"device" for v in (named.get("device"),) if v is not None and _is_cpu(v)}:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() of an array with more than a dtype")
        given = named["dtype"].as_constant() if "dtype" in named else None
        made = self.cap.host(fn, array.stand_in(), **({} if given is None else {"dtype": given}))  # gives the dtype, or the exception
        shares = fn is not eager.tensor and not array.scalar and array.writeable and made.dtype is array.tensor.fake.dtype
        if shares:
            return self.cap.recorder.method("detach", [array.tensor], {})
        copy = self.cap.recorder.method("clone", [array.tensor], {"memory_format": Constant(eager.contiguous_format)})
        return copy if made.dtype is array.tensor.fake.dtype else self.cap.recorder.method("to", [copy, Constant(made.dtype)], {})

    def number_for_tensor(self, value: Value) -> Value:
        """The number of a numpy scalar, for a call with tensors. Any other value is returned unchanged."""
        if isinstance(value, NdArrayValue) and value.scalar:
            number = self.cap.data.number_of(value.tensor)
            if number is None:
                raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{value.describe()} beside a tensor")
            return number
        return value

    # -- calls -------------------------------------------------------------------------------------------------
    def call(self, fn: Any, name: str, rule: Rule, args: list[Any], kwargs: dict[str, Any], run: Any = None) -> Value:
        """fn(*args, **kwargs) by `rule`, which takes a Call and the arguments: arrays as values, other arguments as
        host objects.

        run: the function to call on the stand-ins, if it is not `fn`.
        """
        self._check_errstate(name)
        stands: dict[int, Any] = {}
        given, named = [self._host(a, stands, name) for a in args], {k: self._host(v, stands, name) for k, v in kwargs.items()}
        arrays = [(v, stands[id(v)]) for v in self._arrays((*args, *kwargs.values()))]
        try:
            expected = self._call_on_stand_ins(run or fn, name, given, named)
        except Raised:
            if fn in (operator.getitem, operator.setitem) and len(arrays) > 1:
                raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}(): whether this raises depends on the index values") from None
            for value, _ in arrays:
                value.fix_sizes()  # the text of the error contains them
            raise
        call = Call(self.cap, name, expected)
        bound = self._rule_arguments(call, rule, args, kwargs)
        try:
            return self._settle(call, rule(*bound.args, **bound.kwargs), expected, arrays)
        except Raised as error:  # numpy did not raise
            raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}(): {error.value.describe()} from its rule") from None

    def _rule_arguments(self, call: Call, rule: Rule, args: list[Any], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """The arguments of a rule. Only its first parameter and parameters annotated as arrays may hold arrays."""
        known = _signature(rule).parameters
        named = {k: self._plain(v) for k, v in kwargs.items()}
        named = {k: v for k, v in named.items() if k in known or not any(v is u for u in _UNUSED)}
        try:
            bound = _signature(rule).bind(call, *(self._plain(a) for a in args), **named)
        except TypeError as error:
            raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{call.name}() with these arguments: its rule {error}") from None
        for parameter, value in list(bound.arguments.items())[2:]:
            if known[parameter].annotation != "Array" and _holds_array(value):
                call.refuse(f"with an array for {parameter}")
        return bound

    def _check_errstate(self, name: str) -> None:
        if not set(np.geterr().values()) <= {"ignore", "warn"}:
            raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}() under an errstate that does more than warn")
        self.cap.world.guards.add("call_eq", (), _error_state, _error_state(), origin=self.cap.origin)

    def _call_on_stand_ins(self, fn: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """numpy's result for stand-ins."""

        def call() -> Any:
            try:
                with np.errstate(**_QUIET):
                    return fn(*args, **kwargs)
            except Exception as error:
                if type(error).__module__ != "builtins":  # such an error keeps references to its arguments
                    raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}() that raises {type(error).__name__}") from None
                raise

        return self.cap.host(call)

    def _host(self, value: Any, stands: dict[int, Any], name: str) -> Any:
        """The argument of numpy's call for a value; each array has one stand-in."""

        def leaf(value: Value) -> Any:
            if isinstance(value, NdArrayValue):
                if id(value) not in stands:
                    stands[id(value)] = value.stand_in()
                return stands[id(value)]
            if isinstance(value, SymbolicValue):
                return hint_of(value.symbolic) if isinstance(value.symbolic, SymInt) else value.value
            if isinstance(value, Constant | ClassValue):
                return value.as_constant()
            raise Unsupported(causes.UNKNOWN_CALL, f"numpy.{name}() of {value.describe()}")

        return to_host(self.cap, value, _CONTAINERS, leaf) if isinstance(value, Value) else value

    def _plain(self, value: Any) -> Any:
        """The argument of the rule's call for a value."""
        if not isinstance(value, Value):
            return value
        value = self.cap.realize(value)
        if isinstance(value, ListValue | TupleValue):
            return (list if value.cls is list else tuple)(self._plain(v) for v in value.items)
        if isinstance(value, SliceValue):
            return slice(*(self._plain(p) for p in value.parts))
        if isinstance(value, SymbolicValue) and isinstance(value.symbolic, SymInt | SymFloat):
            return value.symbolic
        return value.as_constant() if isinstance(value, Constant | ClassValue) else value

    def _arrays(self, values: Any) -> Iterator[NdArrayValue]:
        """The arrays among the arguments, in order."""
        for value in values:
            if isinstance(value, Value):
                yield from (leaf for leaf in walk_values(self.cap, value) if isinstance(leaf, NdArrayValue))

    # -- results -----------------------------------------------------------------------------------------------
    def _settle(self, call: Call, result: Any, expected: Any, arrays: list[tuple[NdArrayValue, Any]]) -> Value:
        """The value of a rule's result, in the form of numpy's result."""
        if expected is None and result is None:
            return NONE  # the function writes into an argument
        for value, stand in arrays:
            if expected is stand and not value.scalar:
                return value
        if isinstance(expected, list | tuple):
            parts = result.items if isinstance(result, TupleValue | ListValue) else result
            if len(parts) != len(expected):
                call.refuse(f"returns {len(expected)} arrays; its rule gives {len(parts)}")
            items = [self._settle(call, r, e, arrays) for r, e in zip(parts, expected, strict=True)]
            return ListValue(items) if type(expected) is list else TupleValue(items, None, type(expected))
        if not isinstance(expected, np.ndarray | np.generic) or type(expected) is np.matrix:
            call.refuse(f"returns a {type(expected).__name__}")
        result = self.cap.realize(result)
        assert isinstance(result, TensorValue)
        fake = result.fake
        if fake.dtype.numpy != expected.dtype or tuple(map(hint_of, fake.shape)) != expected.shape:
            call.refuse(f"returns {expected.dtype}{list(expected.shape)}; its rule gives {fake.dtype}{list(fake.shape)}")
        if isinstance(expected, np.generic):  # a scalar is a copy: the program may write to its array later
            return NdArrayValue(self._apart(call, result, arrays), scalar=True)
        shared = next(((v, s) for v, s in arrays if not v.scalar and _lies_in(expected, s)), None)
        if shared is None:
            result = self._in_separate_memory(call, result, expected, arrays)
        elif not _same_view(result, expected, *shared):
            call.refuse("returns a view that tensors do not support")
        return NdArrayValue(result, writeable=expected.flags.writeable)

    def _in_separate_memory(self, call: Call, result: TensorValue, expected: Any, arrays: list[tuple[NdArrayValue, Any]]) -> TensorValue:
        """`result` in memory that it shares with no argument, in the memory order of numpy's result."""
        fake = result.fake
        if tuple(map(hint_of, fake.shape)) and not _same_strides(fake, expected):
            order = sorted(range(expected.ndim), key=lambda d: (-expected.strides[d], d))
            back = [order.index(d) for d in range(expected.ndim)]
            laid = call.method("contiguous", call.method("permute", result, *order))
            if laid.fake.untyped_storage() is fake.untyped_storage():
                laid = call.method("clone", laid)
            result = call.method("permute", laid, *back)
        result = self._apart(call, result, arrays)
        if not _same_strides(result.fake, expected):
            call.refuse(f"returns an array with strides {expected.strides}; its rule gives others")
        return result

    def _apart(self, call: Call, result: TensorValue, arrays: list[tuple[NdArrayValue, Any]]) -> TensorValue:
        """`result`, copied if it lies in the memory of an argument."""
        taken = {id(v.tensor.fake.untyped_storage().root) for v, _ in arrays}
        return call.method("clone", result) if id(result.fake.untyped_storage().root) in taken else result

    def constant(self, array: Any) -> Value:
        """An array of constants: each call makes a new array."""
        if not is_known(array.dtype) or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise Unsupported(causes.OPAQUE_OBJECT, f"an array of constants that are {array.dtype}, or not finite")
        call = Call(self.cap, "array", array)
        dtype = dtypes.from_numpy(array.dtype)
        first = array.flat[0].item() if array.size else 0
        bits = array.view(f"u{array.itemsize}") if array.ndim else array
        if array.size == 0 or bool((bits == bits.flat[0]).all()):
            made = call.op(eager.full, tuple(array.shape), first, dtype=dtype)
        elif array.size > _MOST_NUMBERS:
            raise Unsupported(causes.OPAQUE_OBJECT, f"an array of {array.size} constants")
        else:
            made = call.op(eager.tensor, array.tolist(), dtype=dtype)
        return self._settle(call, made, array, [])

    # -- attributes and methods -------------------------------------------------------------------------------
    def write(self, call: Call, target: NdArrayValue, write: Callable[[TensorValue], Any]) -> None:
        """Record a write into the memory of an array.

        Autograd does not see writes by numpy. The graph breaks at a write to memory that autograd may have saved.
        """
        storage = target.tensor.fake.untyped_storage().root
        for other in self.cap.recorder.fakes.values():
            if other.fake.untyped_storage().root is storage and other.fake.requires_grad:
                call.refuse(f"writes to memory of {other.describe()}, which requires a gradient")
        write(target.tensor)

    def attribute(self, value: NdArrayValue, name: str) -> Value:
        """value.name for the attributes T, mT, real and imag."""
        return self.call(None, f"ndarray.{name}", _ATTRIBUTES[name], [value], {}, operator.attrgetter(name))

    def operator(self, fn: Any, *args: Value) -> Value:
        """fn(*args) for a function of the module operator."""
        name, rule = self.operators[fn]
        return self.call(fn, name, rule, list(args), {})

    def method(self, value: NdArrayValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """value.name(*args, **kwargs)"""
        row = self.methods.get(name)
        if row is None:
            raise Unsupported(causes.UNKNOWN_CALL, f"ndarray.{name}() of {value.describe()}")
        return row(self.cap, [value, *args], kwargs)

    def has(self, values: Any) -> bool:
        """Whether one of the values is an array or a sequence that contains one."""
        return next(self._arrays(values), None) is not None


def _holds_array(value: Any) -> bool:
    """Whether an argument of a rule is an array, or contains one."""
    if isinstance(value, tuple | list):
        return any(map(_holds_array, value))
    if isinstance(value, slice):
        return _holds_array((value.start, value.stop, value.step))
    return isinstance(value, NdArrayValue)


def _is_cpu(value: Value) -> bool:
    return isinstance(value, Constant) and (value.holds(None) or str(value.value) == "cpu")


def _view_of(name: str) -> Rule:
    def rule(call: Call, a: NdArrayValue) -> Any:
        if name in ("real", "imag"):
            if a.dtype.kind != "c":
                return a.tensor if name == "real" else call.refuse("of an array of real numbers")
            return call.op(getattr, a.tensor, name)
        return call.method("permute", a.tensor, *reversed(range(a.ndim))) if name == "T" else call.method("transpose", a.tensor, -1, -2)

    return rule


_ATTRIBUTES: Final = {name: _view_of(name) for name in ("T", "mT", "real", "imag")}


def _lies_in(expected: Any, stand: Any) -> bool:
    """Whether an array lies in the memory of a stand-in. An empty array does not."""
    return bool(expected.size) and np.may_share_memory(expected, stand)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _same_view(result: TensorValue, expected: Any, of: NdArrayValue, stand: Any) -> bool:
    """Whether `result` is the same part of the memory of `of` as `expected` is of its stand-in."""
    fake, base = result.fake, of.tensor.fake
    if fake.untyped_storage().root is not base.untyped_storage().root:
        return False
    offset = hint_of(fake.storage_offset()) - hint_of(base.storage_offset())
    return offset * expected.itemsize == _address(expected) - _address(stand) and _same_strides(fake, expected)


def _same_strides(fake: Any, expected: Any) -> bool:
    """Whether the strides are equal in dims with more than one element."""
    if expected.size == 0:
        return True
    pairs = zip(fake.stride(), expected.strides, expected.shape, strict=True)
    return all(n == 1 or hint_of(a) * expected.itemsize == b for a, b, n in pairs)
