"""Operators, comparison, equality, hashing, subscripts and len() of captured values.

Every binary operator follows Python's rule: constants compute, tensors make a node, containers combine, instances of user
classes run their special methods (reflected methods too), and all other operands end the graph.
"""

from __future__ import annotations

import collections
import enum
import operator
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dynamo.guards.sources import module_of
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import CONSTANT_TYPES, NONE, Constant, Opaque
from dynamo.values.builtin_subclasses import ContainerObject, container_base, text_of_scalar, value_of_scalar
from dynamo.values.functions import CellValue, FunctionValue
from dynamo.values.iterators import (
    Iterator,
)
from dynamo.values.mappings import DictValue, DictView, ProxyValue, SetValue, is_like_a_set, united
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.objects import BuiltinValue, ClassValue, Giving, PythonModule, UserObject
from dynamo.values.protocols import Machine, NotConstant, Raised, Value
from dynamo.values.sequences import ListValue, RangeValue, Sequence, SliceValue, TupleValue
from dynamo.values.symbolic import SymbolicValue, host_value
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import to_host
from eager.base.records import dataclass
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from fxir.symbols.shapes import GuardOnDataDependentSymNode

# operator function -> (method, reflected method)
BINARY: Final[dict[Any, tuple[str, str]]] = {
    getattr(operator, name): (f"__{name.strip('_')}__", f"__r{name.strip('_')}__")
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
}
# in-place operator function -> (in-place method, plain operator function)
INPLACE: Final[dict[Any, tuple[str, Any]]] = {
    getattr(operator, "i" + name): (f"__i{name}__", getattr(operator, {"and": "and_", "or": "or_"}.get(name, name)))
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split()
}
COMPARE: Final[dict[Any, tuple[str, str]]] = {
    operator.eq: ("__eq__", "__eq__"),
    operator.ne: ("__ne__", "__ne__"),
    operator.lt: ("__lt__", "__gt__"),
    operator.le: ("__le__", "__ge__"),
    operator.gt: ("__gt__", "__lt__"),
    operator.ge: ("__ge__", "__le__"),
}
UNARY: Final[dict[Any, str]] = {
    operator.neg: "__neg__",
    operator.pos: "__pos__",
    operator.invert: "__invert__",
    abs: "__abs__",
}
# How to read the data of an enum member, by the comparison and hash that its class has from its data type.
_MIXED_IN: Final[dict[Any, Callable[[Any], Any]]] = {
    (str.__eq__, str.__hash__): str.__str__, (int.__eq__, int.__hash__): int.__int__, (float.__eq__, float.__hash__): float.__float__,
}  # fmt: skip
_SYMBOLS: Final = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}

_ONLY_DICTS: Final = frozenset({dict})
_ONLY_SLICES: Final = frozenset({slice})


@dataclass(eq=False)
class Operators:
    """Applies operators, comparisons, len(), subscripts and hashing to captured values. It has no state."""

    cap: Machine

    # -- operators ---------------------------------------------------------------------------------------------
    def binary(self, fn: Any, a: Value, b: Value, written: Any = None) -> Value:
        """fn(a, b) for an operator of BINARY. written: the in-place operator in the program, for messages."""
        a, b = self.cap.realize(a), self.cap.realize(b)
        written = written or fn
        if isinstance(a, Constant) and isinstance(b, Constant):
            return self._of_constants(written, a, b)
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            a, b = self.beside_tensor(a), self.beside_tensor(b)
        if isinstance(a, UserObject) or isinstance(b, UserObject):
            return self._special(fn, written, a, b)
        if isinstance(a, NdArrayValue) or isinstance(b, NdArrayValue):
            return self.cap.arrays.operator(fn, a, b)
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            return self.cap.recorder.call(fn, [a, b], {})
        return self._containers(fn, written, a, b)

    def beside_tensor(self, value: Value) -> Value:
        """The other operand of a tensor operator."""
        return self.cap.arrays.number_for_tensor(value_of_scalar(self.cap, value))

    def _of_constants(self, fn: Any, a: Constant, b: Constant) -> Value:
        grows = fn in (operator.pow, operator.lshift, operator.ipow, operator.ilshift)
        x, y = host_value(a), host_value(b)
        if (isinstance(x, np.generic) or isinstance(y, np.generic)) and (isinstance(a, SymbolicValue) or isinstance(b, SymbolicValue)):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of a symbolic number and numpy's")
        if grows and type(x) is int and type(y) is int and y > 10_000:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of huge numbers")
        result = self.cap.host(fn, x, y)
        return self.cap.world.wrap_new(result)

    def _containers(self, fn: Any, written: Any, a: Value, b: Value) -> Value:
        if fn is operator.or_ and _unites(a) and _unites(b):
            return self.cap.world.wrap_static(self.cap.host(fn, _alternative(a), _alternative(b)))
        if fn is operator.add and isinstance(a, Sequence) and isinstance(b, Sequence) and a.family is b.family:
            return a.like([*a.items, *b.items])
        if fn is operator.mul:
            seq, n = (a, b) if isinstance(a, Sequence) else (b, a)
            if isinstance(seq, Sequence) and isinstance(n, Constant) and not isinstance(n.value, np.generic):
                return seq.like(self.cap.host(operator.mul, seq.items, n.value))
        if is_like_a_set(a) and is_like_a_set(b) and BINARY[fn][0] in SetValue.OPERATORS:
            return a.operate(self.cap, BINARY[fn][0], [b])
        if fn is operator.or_ and isinstance(a, DictValue) and isinstance(b, DictValue):
            return united(self.cap, a, b)
        if fn is operator.mod and isinstance(a, Constant) and isinstance(a.value, str | bytes):
            return self._percent(a, b)
        known = (Constant, Sequence, DictValue, SetValue, RangeValue, ClassValue, FunctionValue)
        if isinstance(a, known) and isinstance(b, known) and not isinstance(a, ClassValue) and not isinstance(b, ClassValue):
            self.cap.host(written, _sample(a), _sample(b))  # Python raises the TypeError
        raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of {a.describe()} and {b.describe()}")

    def _percent(self, a: Constant, b: Value) -> Value:
        try:
            return Constant(self.cap.host(operator.mod, a.value, b.as_constant()))
        except NotConstant:
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, "formatting of a value that is not constant") from None

    def _special(self, fn: Any, written: Any, a: Value, b: Value) -> Value:
        """Special methods in Python's order: the reflected method of a subclass runs first."""
        method, reflected = BINARY[fn]
        ta, tb = a.python_type(), b.python_type()
        attempts = [(a, method, b), (b, reflected, a)]
        if tb is not ta and ta in tb.__mro__ and self._overrides(ta, tb, reflected):
            attempts.reverse()
        elif ta is tb:
            attempts = attempts[:1]
        for left, name, right in attempts:
            if not self.cap.classes.has(left.python_type(), name):
                continue
            if not isinstance(left, UserObject):
                if isinstance(left, TensorValue):
                    if isinstance(right, UserObject):
                        continue  # Tensor's operators return NotImplemented for foreign objects
                    return self.cap.recorder.call(fn, [a, b], {})
                if not isinstance(right, ContainerObject):
                    continue  # constants and containers return NotImplemented for foreign objects
                if left is a and isinstance(left, Sequence) and right.base is left.family:
                    return self._containers(fn, written, left, right.contents(self.cap))
                if right.is_scalar:
                    read = text_of_scalar if fn is operator.mod else value_of_scalar
                    result = self.cap.realize(self.cap.call_method(left, name, [read(self.cap, right)], {}))
                    if not (isinstance(result, Constant) and result.holds(NotImplemented)):
                        return result
                    continue
                raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of {a.describe()} and {b.describe()}")
            result = self.cap.realize(self.cap.call_method(left, name, [right], {}))
            if not (isinstance(result, Constant) and result.holds(NotImplemented)):
                return result
        symbol = _OPERATOR_TEXT[fn] if written is fn else _OPERATOR_TEXT[fn].removesuffix(" or pow()") + "="
        message = f"unsupported operand type(s) for {symbol}: '{ta.__name__}' and '{tb.__name__}'"
        return self.cap.raise_(TypeError, message)

    def _overrides(self, base: type, derived: type, name: str) -> bool:
        return self.cap.classes.lookup(derived, name) is not self.cap.classes.lookup(base, name)

    def inplace(self, fn: Any, a: Value, b: Value) -> Value:
        """fn(a, b) for an operator of INPLACE."""
        a, b = self.cap.realize(a), self.cap.realize(b)
        method, plain = INPLACE[fn]
        if isinstance(a, TensorValue):
            return self.cap.recorder.call(fn, [a, self.beside_tensor(b)], {})
        if isinstance(a, NdArrayValue) and not a.scalar:
            return self.cap.arrays.operator(fn, a, b)
        if isinstance(a, UserObject):
            if fn is operator.imul and issubclass(b.python_type(), (str, bytes, list, tuple)):  # CPython may not call the sequence's method
                raise Unsupported(causes.OPAQUE_OBJECT, f"{a.describe()} *= {b.describe()}")
            if self.cap.classes.has(a.cls, method):
                result = self.cap.realize(self.cap.call_method(a, method, [b], {}))
                if not (isinstance(result, Constant) and result.holds(NotImplemented)):
                    return result
        elif self._combines_inplace(a, method, b):
            return self.cap.call_method(a, method, [b], {})
        return self.binary(plain, a, b, fn)

    def _combines_inplace(self, a: Value, method: str, b: Value) -> bool:
        if isinstance(a, ListValue):
            return method in ("__iadd__", "__imul__")
        if isinstance(a, SetValue):
            return a.cls is set and method in SetValue.MUTATORS and isinstance(b, SetValue)  # with a view, the result is a new set
        return isinstance(a, DictValue) and method == "__ior__"

    def unary(self, fn: Any, a: Value) -> Value:
        """fn(a) for an operator of UNARY."""
        a = self.cap.realize(a)
        if isinstance(a, Constant):
            return self.cap.world.wrap_new(self.cap.host(fn, host_value(a)))
        if isinstance(a, TensorValue):
            return self.cap.recorder.call(fn, [a], {})
        if isinstance(a, NdArrayValue):
            return self.cap.arrays.operator(fn, a)
        if isinstance(a, UserObject) and self.cap.classes.has(a.cls, UNARY[fn]):
            return self.cap.call_method(a, UNARY[fn], [], {})
        raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of {a.describe()}")

    # -- comparison --------------------------------------------------------------------------------------------
    def compare(self, fn: Any, a: Value, b: Value) -> Value:
        """fn(a, b) for an operator of COMPARE."""
        a, b = self.cap.realize(a), self.cap.realize(b)
        if isinstance(a, Constant) and isinstance(b, Constant):
            try:
                return self.cap.world.wrap_new(self.cap.host(fn, host_value(a), host_value(b)))
            except GuardOnDataDependentSymNode:
                condition = self.cap.data.comparison(fn, a, b)
                if condition is None:
                    raise
                return condition
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            a, b = self.beside_tensor(a), self.beside_tensor(b)
        if isinstance(a, UserObject) or isinstance(b, UserObject):
            return self._compare_objects(fn, a, b)
        if isinstance(a, NdArrayValue) or isinstance(b, NdArrayValue):
            return self.cap.arrays.operator(fn, a, b)
        if _is_dtype(a) or _is_dtype(b):
            return Constant(self.cap.host(fn, self.object_constant(a), self.object_constant(b)))
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            return self._compare_tensors(fn, a, b)
        if isinstance(a, CellValue) and isinstance(b, CellValue):
            x, y = a.load(self.cap), b.load(self.cap)
            return Constant(fn(x is not None, y is not None)) if x is None or y is None else self.compare(fn, x, y)
        if fn in (operator.eq, operator.ne):
            if isinstance(a, DictValue) and isinstance(b, DictValue) and a.cls is b.cls is collections.Counter:
                return Constant(self._equal_dicts(a, b) == (fn is operator.eq))
            return Constant(self.equal(a, b) == (fn is operator.eq))
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            return self._compare_sequences(fn, a, b)
        if is_like_a_set(a) and is_like_a_set(b):
            return a.operate(self.cap, COMPARE[fn][0], [b])
        raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__} of {a.describe()} and {b.describe()}")

    def _compare_tensors(self, fn: Any, a: Value, b: Value) -> Value:
        other = b if isinstance(a, TensorValue) else a
        comparable = isinstance(other, TensorValue) or (
            isinstance(other, Constant) and isinstance(host_value(other), int | float | complex | SymInt | SymFloat)
        )
        if not comparable and isinstance(other, Constant) and fn in (operator.eq, operator.ne):
            return Constant(fn is operator.ne) if other.value is None or isinstance(other.value, str) else self._no_compare(a, b)
        return self.cap.recorder.call(fn, [a, b], {})

    def _no_compare(self, a: Value, b: Value) -> Value:
        raise Unsupported(causes.OPAQUE_OBJECT, f"comparison of {a.describe()} and {b.describe()}")

    def _compare_sequences(self, fn: Any, a: Sequence, b: Sequence) -> Value:
        if a.family is not b.family:
            message = f"'{_SYMBOLS[fn]}' not supported between instances of '{a.cls.__name__}' and '{b.cls.__name__}'"
            return self.cap.raise_(TypeError, message)
        i = self._common_start(a, b)
        if i < len(a.items) and i < len(b.items):
            return self.compare(fn, a.items[i], b.items[i])
        return Constant(fn(len(a.items), len(b.items)))

    def _compare_objects(self, fn: Any, a: Value, b: Value) -> Value:
        method, reflected = COMPARE[fn]
        attempts = [(a, method, b), (b, reflected, a)]
        ta, tb = a.python_type(), b.python_type()
        if ta is not tb and ta in tb.__mro__:
            attempts.reverse()
        for left, name, right in attempts:
            if not isinstance(left, UserObject):
                if isinstance(left, Constant) and (found := self._compare_constant(name, left, right)) is not NotImplemented:
                    return Constant(found)
                continue
            raw = self.cap.classes.lookup(left.cls, name)
            if not isinstance(raw, types.FunctionType):
                if isinstance(raw, types.WrapperDescriptorType) and raw.__objclass__ is object:
                    if name == "__ne__" and isinstance(self.cap.classes.lookup(left.cls, "__eq__"), types.FunctionType):
                        result = self.cap.realize(self.cap.call_method(left, "__eq__", [right], {}))
                        if not (isinstance(result, Constant) and result.holds(NotImplemented)):
                            return Constant(not self.cap.truth(result))
                    continue
                if not self.cap.classes.has(left.cls, name):
                    continue
                if not isinstance(left, ContainerObject):
                    found = self._compare_members(raw, left, right)
                    if found is NotImplemented:
                        continue
                    return Constant(found)
            result = self.cap.realize(self.cap.call_method(left, name, [right], {}))
            if not (isinstance(result, Constant) and result.holds(NotImplemented)):
                return result
        if fn in (operator.eq, operator.ne):
            return Constant(self.same_object(a, b) == (fn is operator.eq))
        message = f"'{_SYMBOLS[fn]}' not supported between instances of '{ta.__name__}' and '{tb.__name__}'"
        return self.cap.raise_(TypeError, message)

    def _compare_constant(self, name: str, left: Constant, right: Value) -> Any:
        """left.name(right) for a right whose class derives from str or a number; NotImplemented for others."""
        x = host_value(left)
        if isinstance(right, ContainerObject) and right.is_scalar:
            other = right.contents(self.cap).as_constant()
        else:
            other = right.real if isinstance(right, UserObject) and isinstance(right.real, enum.Enum) else None
        if other is None or type(x) not in CONSTANT_TYPES:
            return NotImplemented
        return self.cap.host(getattr(type(x), name), x, other)

    def _compare_members(self, raw: Any, left: UserObject, right: Value) -> Any:
        """raw(left, right) for a member of an enum with data of type str or a number: it compares like its data."""
        other = right.real if isinstance(right, UserObject) and isinstance(right.real, enum.Enum) else None
        known = other is not None
        if isinstance(right, Constant):
            other = host_value(right)
            known = type(other) in CONSTANT_TYPES
        if not (known and isinstance(left.real, enum.Enum) and getattr(raw, "__objclass__", None) in CONSTANT_TYPES):
            return self._no_compare(left, right)
        return self.cap.host(raw, left.real, other)

    def same_object(self, a: Value, b: Value) -> bool:
        """a is b"""
        a, b = self.cap.realize(a), self.cap.realize(b)
        if isinstance(b, Constant) and not isinstance(a, Constant):
            return False
        return a.same_object(self.cap, b)

    def equal(self, a: Value, b: Value) -> bool:
        """bool(a == b) with the identity shortcut of containers."""
        a, b = self.cap.realize(a), self.cap.realize(b)
        if a is b:
            return True
        if isinstance(a, Constant) and isinstance(b, Constant):
            x, y = host_value(a), host_value(b)
            return bool(x is y or self.cap.host(operator.eq, x, y))
        cells = isinstance(a, CellValue) and isinstance(b, CellValue)
        if cells or any(isinstance(v, TensorValue | UserObject | NdArrayValue) or _is_dtype(v) for v in (a, b)):
            return self.cap.truth(self.compare(operator.eq, a, b))
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            if a.family is not b.family or len(a.items) != len(b.items):
                return False
            i = self._common_start(a, b)
            return (i >= len(a.items) or i >= len(b.items)) and len(a.items) == len(b.items)
        if isinstance(a, DictValue) and isinstance(b, DictValue):
            return self._equal_dicts(a, b)
        if is_like_a_set(a) and is_like_a_set(b):
            return bool(a.operate(self.cap, "__eq__", [b]).as_constant())
        if isinstance(a, RangeValue) and isinstance(b, RangeValue):
            return a.value == b.value
        if isinstance(a, SliceValue) and isinstance(b, SliceValue):
            return all(self.equal(x, y) for x, y in zip(a.parts, b.parts, strict=True))
        plain = (Constant, Sequence, DictValue, SetValue, RangeValue, SliceValue, FunctionValue, ClassValue, PythonModule,
                 BuiltinValue, Iterator, DictView, CellValue)  # fmt: skip
        if isinstance(a, plain) and isinstance(b, plain):
            return a.same_object(self.cap, b) if type(a) is type(b) else False
        raise Unsupported(causes.OPAQUE_OBJECT, f"== of {a.describe()} and {b.describe()}")

    def _common_start(self, a: Sequence, b: Sequence) -> int:
        """The number of equal leading items. An __eq__ may change the sequences meanwhile."""
        i = 0
        while i < len(a.items) and i < len(b.items) and self.equal(a.items[i], b.items[i]):
            i += 1
        return i

    def _equal_dicts(self, a: DictValue, b: DictValue) -> bool:
        if a.cls is b.cls is collections.Counter:  # a missing element counts 0
            nothing = NONE, Constant(0)
            pairs = ((a.entries.get(key, nothing)[1], b.entries.get(key, nothing)[1]) for key in {**a.entries, **b.entries})
            return all(self.cap.truth(self.compare(operator.eq, x, y)) for x, y in pairs)
        if len(a.entries) != len(b.entries):
            return False
        if a.cls is b.cls is collections.OrderedDict and list(a.entries) != list(b.entries):
            return False
        mine = list(a.entries.items())
        return all(key in b.entries and self.equal(value, b.entries[key][1]) for key, (_, value) in mine)

    def contains(self, container: Value, item: Value) -> bool:
        """item in container"""
        container = self.cap.realize(container)
        if isinstance(container, Constant):
            return bool(self.cap.host(operator.contains, container.value, self.cap.realize(item).as_constant()))
        if isinstance(container, RangeValue):
            return self.cap.realize(item).is_constant and self.cap.realize(item).as_constant() in container.value
        if isinstance(container, Sequence | DictValue | SetValue | DictView | ProxyValue):
            return bool(self.cap.call_method(container, "__contains__", [item], {}).as_constant())
        if isinstance(container, UserObject) and self.cap.classes.has(container.cls, "__contains__"):
            return self.cap.truth(self.cap.call_method(container, "__contains__", [item], {}))
        if isinstance(container, ClassValue) and issubclass(container.cls, enum.Enum):
            return bool(self.cap.host(operator.contains, container.cls, self.object_constant(item)))
        if isinstance(container, TensorValue):
            raise Unsupported(causes.DATA_DEPENDENT_BRANCH, "`in` on a tensor")
        if isinstance(container, UserObject) and not any(self.cap.classes.has(container.cls, n) for n in ("__iter__", "__getitem__")):
            self.cap.raise_(TypeError, f"argument of type '{container.cls.__name__}' is not iterable")
        iterator = self.cap.iteration.iter(container)
        while (found := self.cap.iteration.next(iterator)) is not None:
            if self.equal(found, item):
                return True
        return False

    def object_constant(self, value: Value) -> Any:
        """The host object of a constant, a class or an enum member: operations on it run no user code."""
        return to_host(self.cap, value, _ONLY_DICTS, self._object_leaf)

    def _object_leaf(self, value: Value) -> Any:
        if isinstance(value, UserObject) and isinstance(value.real, enum.Enum):
            return value.real
        try:
            return value_of_scalar(self.cap, value).as_constant()
        except NotConstant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as a constant") from None

    # -- items -------------------------------------------------------------------------------------------------
    def getitem(self, container: Value, key: Value) -> Value:
        """container[key]"""
        container, key = self.cap.realize(container), self.cap.realize(key)
        if isinstance(container, Sequence):
            return container.getitem(self.cap, key)
        if isinstance(container, DictValue):
            return container.getitem(self.cap, key)
        if isinstance(container, TensorValue):
            return self.cap.items.get(container, key)
        if isinstance(container, Constant | RangeValue):
            return self.cap.world.wrap_new(self.cap.host(operator.getitem, container.as_constant(), self.index_constant(key)))
        if isinstance(container, ClassValue):
            return self._class_getitem(container, key)
        return self.cap.call_method(container, "__getitem__", [key], {})

    def _class_getitem(self, container: ClassValue, key: Value) -> Value:
        if self.cap.classes.lookup(type(container.cls), "__getitem__") is enum.EnumType.__getitem__:
            return self.cap.world.wrap_static(self.cap.host(operator.getitem, container.cls, self.object_constant(key)))
        if self.cap.classes.has(type(container.cls), "__getitem__"):  # the method of the metaclass takes precedence over __class_getitem__
            return self.cap.call(self.cap.classes.special_method(container, "__getitem__"), [key], {})
        generic = container.cls is type or hasattr(container.cls, "__class_getitem__")
        if generic and module_of(container.cls) == "builtins":
            return self.cap.world.wrap_static(self.cap.host(operator.getitem, container.cls, self.object_constant(key)))
        if not hasattr(container.cls, "__class_getitem__"):
            self.cap.raise_(TypeError, f"type '{container.cls.__name__}' is not subscriptable")
        return self.cap.call_method(container, "__class_getitem__", [key], {})

    def index_constant(self, value: Value) -> Any:
        """An index, slice or other constant argument as a host value."""
        return to_host(self.cap, value, _ONLY_SLICES, self._index_leaf)

    def _index_leaf(self, value: Value) -> Any:
        value = value_of_scalar(self.cap, value)
        if isinstance(value, UserObject) and self.cap.classes.has(value.cls, "__index__"):
            found = self.cap.realize(self.cap.call_method(value, "__index__", [], {}))
            if not isinstance(found, Constant) or type(found.value) is not int:
                raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as an index")  # Python warns or raises
            return found.value
        if isinstance(value, TensorValue):
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{value.describe()} as an index")
        try:
            return value.as_constant()
        except NotConstant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as an index") from None

    def hash_key(self, value: Value) -> Any:
        """A host key. Two host keys are equal exactly if Python's dict treats the keys as equal."""
        value = self.cap.realize(value)
        if isinstance(value, Constant):
            return ("c", value.value)
        if isinstance(value, TupleValue):
            return ("t", *map(self.hash_key, value.items))
        if isinstance(value, ClassValue | PythonModule):
            self._identified(value)
        if isinstance(value, ClassValue | BuiltinValue | PythonModule):
            return ("i", id(value.as_constant()))
        if isinstance(value, FunctionValue):
            return ("i", id(value.real) if value.real is not None else id(value))
        if isinstance(value, SetValue) and value.cls is frozenset:
            return ("f", frozenset(value.entries))
        if isinstance(value, UserObject):
            return self._object_key(value)
        if isinstance(value, TensorValue):
            return ("i", id(value))
        if isinstance(value, ListValue | DictValue | SetValue | CellValue):
            self.cap.raise_(TypeError, f"unhashable type: '{value.python_type().__name__}'")
        if isinstance(value, RangeValue):
            return ("c", value.value)
        raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as a key")

    def _hashing(self, cls: type) -> tuple[Any, Any]:
        """__hash__ and __eq__ of instances of cls; TypeError if they have no hash."""
        hasher, eq = self.cap.classes.lookup(cls, "__hash__"), self.cap.classes.lookup(cls, "__eq__")
        if hasher is None:
            self.cap.raise_(TypeError, f"unhashable type: '{cls.__name__}'")
        return hasher, eq

    def _identified(self, value: ClassValue | PythonModule) -> None:
        """Break the graph if the hash or equality of a class or module is not its identity: its metaclass, or the
        module's class, overrides it.
        """
        if self._hashing(value.python_type()) != (object.__hash__, object.__eq__):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as a key (its class defines __hash__ or __eq__)")

    def _object_key(self, value: UserObject) -> Any:
        hasher, eq = self._hashing(value.cls)
        plain = hasher is object.__hash__ and eq is object.__eq__
        if plain or (issubclass(value.cls, enum.Enum) and eq is object.__eq__):
            return ("i", id(value.real) if value.real is not None else id(value))
        base = container_base(value.cls)
        if isinstance(value, ContainerObject) and value.is_scalar and base and hasher is base.__hash__ and eq is base.__eq__:
            return self.hash_key(value.contents(self.cap))
        if issubclass(value.cls, enum.Enum) and (eq, hasher) in _MIXED_IN:
            return ("c", _MIXED_IN[eq, hasher](value.real))  # the member equals its string or number
        raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} as a key (its class defines __hash__ or __eq__)")

    # -- iteration ---------------------------------------------------------------------------------------------
    def length(self, value: Value) -> Value:
        """len(value)"""
        value = self.cap.realize(value)
        if isinstance(value, Constant):
            return Constant(self.cap.host(len, value.value))
        if isinstance(value, Sequence | DictValue | SetValue | DictView | ProxyValue | TensorValue | NdArrayValue):
            return self.cap.call_method(value, "__len__", [], {})
        if isinstance(value, RangeValue):
            return Constant(self.cap.host(len, value.value))
        if isinstance(value, ClassValue) and issubclass(value.cls, enum.Enum):
            return Constant(len(value.cls))
        if isinstance(value, UserObject):
            if not self.cap.classes.has(value.cls, "__len__"):
                self.cap.raise_(TypeError, f"object of type '{value.cls.__name__}' has no len()")
            result = self.cap.realize(self.cap.call_method(value, "__len__", [], {}))
            return Constant(self.cap.host(len, Giving(self.index_constant(result))))
        raise Unsupported(causes.OPAQUE_OBJECT, f"len of {value.describe()}")

    def length_hint(self, value: Value) -> None:
        """Read the length hint, as list() and extend() do, for its effects and for errors other than TypeErrors."""
        if not isinstance(value, UserObject):
            return
        try:
            if self.cap.classes.has(value.cls, "__len__"):
                self.length(value)
                return
        except Raised as error:
            if not issubclass(error.value.python_type(), TypeError):
                raise
        if not self.cap.classes.has(value.cls, "__length_hint__"):
            return
        try:
            hint = self.cap.realize(self.cap.call_method(value, "__length_hint__", [], {}))
        except Raised as error:
            if not issubclass(error.value.python_type(), TypeError):
                raise
            return
        if not hint.is_constant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{hint.describe()} as a length")
        self.cap.host(operator.length_hint, _Hinted(hint.as_constant()))


def _is_dtype(value: Value) -> bool:
    """Whether the value is a numpy dtype: it equals the classes and names that denote it."""
    return isinstance(value, Constant) and isinstance(value.python_type(), type(np.dtype))


def _sample(value: Value) -> Any:
    """A host value of the same kind, for the TypeError that an operator raises."""
    if isinstance(value, Constant):
        return value.value
    kind = value.python_type()
    return kind() if kind in (list, tuple, dict, set, frozenset, collections.deque) else kind(0) if kind is range else _identity


def _identity(x: Any) -> Any:
    return x


_OPERATOR_TEXT: Final = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "** or pow()", operator.matmul: "@", operator.lshift: "<<", operator.rshift: ">>",
    operator.and_: "&", operator.or_: "|", operator.xor: "^",
}  # fmt: skip


def _unites(value: Value) -> bool:
    """Whether `|` of the value and a class makes a union of types."""
    if isinstance(value, ClassValue):
        return type(value.cls).__or__ is type.__or__ and type(value.cls).__ror__ is type.__ror__
    return (isinstance(value, Constant) and value.holds(None)) or (isinstance(value, Opaque) and isinstance(value.real, types.UnionType))


def _alternative(value: Value) -> Any:
    return value.real if isinstance(value, Opaque) else value.as_constant()


class _Hinted:
    """operator.length_hint() of an instance checks a __length_hint__ result as Python does."""

    def __init__(self, hint: Any) -> None:
        self._hint = hint

    def __length_hint__(self) -> Any:
        return self._hint
