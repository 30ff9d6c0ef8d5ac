"""Instances of user classes, classes, modules of Python, super() and exceptions.

Attribute look-up follows `object.__getattribute__`: data descriptors, the instance's dict, other class attributes,
`__getattr__`. Guards on watched classes and instances cover the attributes that a look-up reads.
"""

from __future__ import annotations

import types
from typing import Any, Final

from dynamo.bytecode.decode import Place
from dynamo.guards.sources import Source, type_attribute
from dynamo.policy.callees import name_of
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, type_name
from dynamo.values.functions import BoundMethod
from dynamo.values.protocols import Frame, Machine, Raised, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.writer import Writer
from eager._ops import OperatorBase
from eager.base.records import dataclass

DELETED: Final = object()


class Giving:
    """An object whose special methods return `found`: Python itself then computes the result of str(), len() and
    others.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def _give(self, *_: Any) -> Any:
        return self._found

    __bool__ = __len__ = __str__ = __repr__ = __format__ = __hash__ = _give


class UserObject(Value):
    """An instance of a Python class: existing (real), or made by the captured program (real is None)."""

    def __init__(self, cls: type, real: Any = None, source: Source | None = None, born: int = -1) -> None:
        self.cls = cls
        self.real = real
        self.source = source
        self.born = born
        self.new_args: list[Value] = []  # constructor arguments after the class (exceptions, tuples)

    def python_type(self) -> type:
        return self.cls

    def __repr__(self) -> str:
        return f"UserObject({self.cls.__name__}{'' if self.source else ', new'})"

    def truth(self, cap: Machine) -> bool:
        if cap.classes.has(self.cls, "__bool__"):
            result = cap.call_method(self, "__bool__", [], {})
            if not result.is_constant:
                raise Unsupported(causes.DATA_DEPENDENT_BRANCH, f"the truth of {self.describe()}")
            return bool(cap.host(bool, Giving(result.as_constant())))
        return bool(cap.operators.length(self).as_constant()) if cap.classes.has(self.cls, "__len__") else True

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.instance_attribute(self, self.cls, name)

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        cap.attributes.set_instance_attribute(self, name, value)

    def delattr(self, cap: Machine, name: str) -> None:
        cap.attributes.delete_instance_attribute(self, name)

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.calls.of_instance(self, args, kwargs)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name.startswith("__") and name.endswith("__") and not cap.classes.has(self.cls, name):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")
        found = cap.classes.special_method(self, name) if name.startswith("__") else self.getattr(cap, name)
        return cap.call(found, args, kwargs)

    def iterate(self, cap: Machine) -> Value:
        if cap.classes.has(self.cls, "__iter__"):
            found = cap.realize(cap.call_method(self, "__iter__", [], {}))
            kind = found.python_type()
            if not any("__next__" in vars(c) for c in kind.__mro__):
                cap.raise_(TypeError, f"iter() returned non-iterator of type '{type_name(kind)}'")
            return found
        if cap.classes.has(self.cls, "__getitem__"):
            return cap.iteration.getitem_iterator(self)
        return cap.raise_(TypeError, f"'{self.cls.__name__}' object is not iterable")

    def unpack(self, cap: Machine) -> list[Value]:
        iterator = self.iterate(cap)
        if cap.classes.has(self.cls, "__len__") or cap.classes.has(self.cls, "__length_hint__"):
            cap.operators.length_hint(self)
        return cap.iteration.exhaust(iterator)

    def next(self, cap: Machine) -> Value | None:
        if not cap.classes.has(self.cls, "__next__"):
            raise Unsupported(causes.OPAQUE_ITERATOR, f"next() of {self.describe()}")
        try:
            return cap.call_method(self, "__next__", [], {})
        except Raised as error:
            if cap.exceptions.is_instance_of(error.value, StopIteration):
                return None
            raise

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return cg.new_object(self)


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """An entry of a traceback: a frame of the captured program that the exception passed, and the position of the frame
    at that time.

    callers: the callers of the frame, outermost first. The entry holds them as long as the traceback lives.
    """

    place: Place
    frame: Any
    callers: tuple[Any, ...]

    def leads_to(self, frame: Frame) -> bool:
        """Whether the variables of `frame` live as long as the entry."""
        return frame is self.frame or frame in self.callers


class ExceptionValue(UserObject):
    """An exception: an object with `args` and attributes."""

    def __init__(self, cls: type, args: list[Value], real: Any = None, source: Source | None = None) -> None:
        super().__init__(cls, real, source)
        self.args = args
        self.new_args = args
        self.context: Value = NONE
        # Raised while the captured code handled no exception: the context is the exception that its caller handles.
        self.raised_bare = False
        self.cause: Value = NONE
        self.suppress = False
        self.initialized = True  # whether the __init__ of its C base ran, with `args`
        self.passed: list[Passed] = []  # its traceback, outermost frame first
        self._traceback: TracebackValue | None = None
        self._args: TupleValue | None = None

    def describe(self) -> str:
        return f"exception {self.cls.__name__}"

    def truth(self, cap: Machine) -> bool:
        return True if not cap.classes.has(self.cls, "__bool__") else super().truth(cap)

    def args_tuple(self) -> TupleValue:
        """The value of `args`: the same tuple at each read."""
        if self._args is None or self._args.items != self.args:
            self._args = TupleValue(list(self.args))
        return self._args

    def traceback(self, born: int = -1) -> Value:
        """The present traceback. born: the instruction that reads it."""
        if not self.passed:
            return NONE
        if self._traceback is None or self._traceback.passed != tuple(self.passed):
            self._traceback = TracebackValue(tuple(self.passed), born)
        return self._traceback

    def getattr(self, cap: Machine, name: str) -> Value:
        if self.source is not None and self.passed and name == "__traceback__":
            raise Unsupported(causes.EXCEPTION, "the traceback of an exception from outside, raised here")
        if self.source is None:
            if name == "args":
                return self.args_tuple()
            if name == "__context__":
                return self.context
            if name == "__cause__":
                return self.cause
            if name == "__suppress_context__":
                return Constant(self.suppress)
            if name == "__traceback__":
                return self.traceback(cap.steps)
            if name == "value" and issubclass(self.cls, StopIteration) and "value" not in cap.effects.attributes_of(self):
                return self.args[0] if self.args else NONE
        return super().getattr(cap, name)

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        if self.source is None and name in ("args", "__context__", "__cause__", "__suppress_context__", "__traceback__"):
            cap.effects.change(self)
            if name == "args":
                self.args = cap.iteration.unpack(value)
            elif name == "__context__":
                self.context = value
            elif name == "__cause__":
                self.cause, self.suppress = value, True
            elif name == "__traceback__":
                value = cap.realize(value)
                if not isinstance(value, TracebackValue) and value is not NONE:
                    raise Unsupported(causes.EXCEPTION, "a traceback from outside, set on an exception")
                self.passed = list(value.passed) if isinstance(value, TracebackValue) else []
            else:
                self.suppress = value.truth(cap)
            return
        super().setattr(cap, name, value)


class TracebackValue(Value):
    """The traceback of an exception that the captured program raised. A read of its attributes breaks the graph."""

    def __init__(self, passed: tuple[Passed, ...], born: int) -> None:
        self.passed = passed
        self.born = born

    def python_type(self) -> type:
        return types.TracebackType

    def truth(self, cap: Machine) -> bool:
        return True

    def reconstruct(self, cg: Writer) -> str:
        return cg.traceback(self)


class ClassValue(Value):
    """A class. It always exists outside: class statements run in plain Python."""

    def __init__(self, cls: type, source: Source) -> None:
        self.cls = cls
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.cls)

    def as_constant(self) -> Any:
        return self.cls

    def describe(self) -> str:
        return f"class {self.cls.__qualname__}"

    def truth(self, cap: Machine) -> bool:
        meta = type(self.cls)
        asks = meta is not type and (hasattr(meta, "__bool__") or hasattr(meta, "__len__"))
        return True if not asks or hasattr(meta, "__members__") else super().truth(cap)

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.classes.attribute(self, name)

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name} = ...")

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.calls.of_class(self, args, kwargs)

    def iterate(self, cap: Machine) -> Value:
        if hasattr(type(self.cls), "__members__"):
            items = [cap.world.wrap_static(m) for m in cap.host(list, self.cls)]
            made = cap.iteration.sequence_iterator(items, self)
            made.stands_for = "the generator that iterates over an enum"
            return made
        return super().iterate(cap)

    def same_object(self, cap: Machine, other: Value) -> bool:
        return isinstance(other, ClassValue) and other.cls is self.cls

    def reconstruct(self, cg: Writer) -> str:
        return cg.bind(self.cls, self.cls.__name__)


class PythonModule(Value):
    """A module object of Python (not of nn)."""

    def __init__(self, module: types.ModuleType, source: Source) -> None:
        self.module = module
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.module)

    def as_constant(self) -> Any:
        return self.module

    @property
    def name(self) -> str:
        """The entry of the module itself: its class may override it."""
        return str(types.ModuleType.__getattribute__(self.module, "__dict__").get("__name__", "?"))

    def describe(self) -> str:
        return f"module {self.name}"

    def truth(self, cap: Machine) -> bool:
        cls = type(self.module)
        asks = cls is not types.ModuleType and any(cap.classes.has(cls, name) for name in ("__bool__", "__len__"))
        return super().truth(cap) if asks else True

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.classes.module_attribute(self, name)

    def same_object(self, cap: Machine, other: Value) -> bool:
        return isinstance(other, PythonModule) and other.module is self.module

    def reconstruct(self, cg: Writer) -> str:
        return cg.bind(self.module, self.name.rpartition(".")[2])


class SuperValue(Value):
    """super(cls, obj)"""

    def __init__(self, cls: type, obj: Value) -> None:
        self.cls = cls
        self.obj = obj

    def python_type(self) -> type:
        return super

    def truth(self, cap: Machine) -> bool:
        return True

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.classes.super_attribute(self, name)

    def reconstruct(self, cg: Writer) -> str:
        return f"super({cg.bind(self.cls, self.cls.__name__)}, {cg.value(self.obj)})"


class BuiltinValue(Value):
    """A function or method descriptor of C code, or a callable that the builtin table lists by identity."""

    def __init__(self, fn: Any, source: Source) -> None:
        self.fn = fn
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.fn)

    def as_constant(self) -> Any:
        return self.fn

    def describe(self) -> str:
        return name_of(self.fn)

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.calls.of_builtin(self, args, kwargs)

    def getattr(self, cap: Machine, name: str) -> Value:
        if name in ("__name__", "__qualname__", "__doc__", "__module__") and hasattr(self.fn, name):
            return cap.world.wrap_static(getattr(self.fn, name))
        if isinstance(self.fn, OperatorBase):  # an overload of a packet: it cannot be replaced
            return cap.world.wrap_static(cap.host(getattr, self.fn, name), name)
        if isinstance(self.fn, types.BuiltinFunctionType) and not hasattr(self.fn, name):
            cap.host(getattr, self.fn, name)  # AttributeError; it cannot be set
        return super().getattr(cap, name)

    def same_object(self, cap: Machine, other: Value) -> bool:
        return isinstance(other, BuiltinValue) and other.fn is self.fn

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source)


class BuiltinMethod(Value):
    """A method of a captured container or constant, not yet called: `items.append`.

    is_called: whether only the following call reads the method: the interpreter then calls it without binding.
    """

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name
        self.is_called = False

    def unbound(self) -> Any:
        """The method of the class, if the interpreter calls this method without binding; None otherwise."""
        found = type_attribute(self.owner.python_type(), self.name, None)
        return found if self.is_called and isinstance(found, types.MethodDescriptorType) else None

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def describe(self) -> str:
        return f"method {self.name} of {self.owner.describe()}"

    def truth(self, cap: Machine) -> bool:
        return True

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "__self__":
            return self.owner
        if name == "__name__":
            return Constant(self.name)
        return super().getattr(cap, name)

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.call_method(self.owner, self.name, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        return f"{cg.value(self.owner)}.{self.name}"


def bind_descriptor(cap: Machine, found: Value, raw: Any, obj: Value, owner: type) -> Value:
    """The value of `found` (the class attribute `raw`), read through an instance."""
    if isinstance(raw, types.FunctionType) or type(raw).__name__ in ("method_descriptor", "wrapper_descriptor"):
        return BoundMethod(obj, found)
    return found
