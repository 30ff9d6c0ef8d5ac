"""Instances of user classes that derive from a built-in container or scalar: dict, OrderedDict, list, tuple, str, int,
float.

Such an object is an ordinary instance (attributes, special methods, overrides) with `contents`: the state of its C
base, as a captured dict, list, tuple or constant. Methods of the C base work on the contents, and call an override in a
subclass exactly where CPython's methods do.
"""

from __future__ import annotations

import collections
import enum
import types
from typing import Any, Final, TypeAlias

from dynamo.guards.sources import Source, module_of, type_attribute
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.mappings import DictValue, pairs_of
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, Sequence, TupleValue
from dynamo.values.writer import Writer

SCALAR_BASES: Final = (str, int, float)
CONTAINER_BASES: Final = (collections.OrderedDict, dict, list, tuple, *SCALAR_BASES)
_PLAIN: Final = {str: str.__str__, int: int.__index__, float: float.__float__}  # the base value of an instance
Contents: TypeAlias = DictValue | Sequence | Constant
_COMPARE: Final = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_OF_NUMBERS: Final = (
    "__int__", "__float__", "__bool__", "__floor__", "__ceil__", "__trunc__", "__round__", "__abs__", "__neg__", "__pos__", *_COMPARE,
    *(f"__{side}{name}__" for name in "add sub mul truediv floordiv mod divmod pow".split() for side in ("", "r")),
)  # fmt: skip
# Methods that C code may call on an instance instead of reading the base value.
_ASKED: Final = {
    str: ("__add__", "__radd__", "__mul__", "__rmul__", "__mod__", "__rmod__", "__len__", "__getitem__", "__iter__",
          "__contains__", *_COMPARE),
    int: ("__invert__", "numerator", "denominator", *_OF_NUMBERS), float: ("__complex__", *_OF_NUMBERS),
}  # fmt: skip
_TEXT: Final = ("__str__", "__repr__", "__format__")
_HEAP_TYPE: Final = 1 << 9
_OF_OBJECT: Final = frozenset("__getattribute__ __setattr__ __delattr__".split())
_COMBINE: Final = frozenset("__add__ __iadd__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__".split())  # they read the other operand's contents
# OrderedDict's methods that call the item methods of a subclass, and methods that make an instance of the subclass.
_BY_ITEM_METHODS: Final = frozenset("pop popitem setdefault __ior__".split())
_ITEM_METHODS: Final = "__getitem__ __setitem__ __delitem__ __contains__ __missing__ __iter__ keys".split()
_MAKE_ANOTHER: Final = frozenset("copy __or__ __ror__".split())
_FORMATS: Final = frozenset(("__mod__", "format"))  # methods of str
_PARTITIONS: Final = frozenset(("partition", "rpartition"))
# methods of str that return the same text if nothing changes
_OR_ITSELF: Final = frozenset("partition rpartition split rsplit format format_map __mod__".split())
_DICT_ONLY_READS: Final = frozenset("get keys values items __getitem__ __contains__ __len__ __iter__".split())


def is_made_in_c(cls: type) -> bool:
    """Whether a C module made a heap type: its methods are then descriptors of this class itself."""
    kinds = types.WrapperDescriptorType | types.MethodDescriptorType
    return cls.__flags__ & _HEAP_TYPE != 0 and any(isinstance(v, kinds) and v.__objclass__ is cls for v in vars(cls).values())


def container_base(cls: type) -> type | None:
    """The built-in container from which the user class cls derives; None for built-in and all other classes."""
    if not cls.__flags__ & _HEAP_TYPE:
        return None
    mro = cls.__mro__
    base = next(b for b in mro if not b.__flags__ & _HEAP_TYPE)
    if base not in CONTAINER_BASES or any(map(is_made_in_c, mro[: mro.index(base)])):
        return None
    rest = (b for b in mro if b not in base.__mro__)
    return base if all(b.__flags__ & _HEAP_TYPE or module_of(b) in ("abc", "typing") for b in rest) else None


def plain_scalar(real: Any, base: type) -> Any:
    """The str, int or float of an instance of a subclass of `base`, without calls of overridden methods."""
    return _PLAIN[base](real)


class ContainerObject(UserObject):
    """base: one of CONTAINER_BASES. The contents of an existing instance are wrapped and guarded when they are needed."""

    def __init__(self, cls: type, base: type, contents: Contents | None, real: Any = None,
                 source: Source | None = None, born: int = -1) -> None:  # fmt: skip
        super().__init__(cls, real, source, born)
        self.base = base
        self._contents = contents
        self._own(contents)

    def _own(self, contents: Contents | None) -> None:
        if isinstance(contents, DictValue | Sequence):
            contents.owner = self

    @property
    def is_scalar(self) -> bool:
        """Whether the object is a str, int or float."""
        return self.base in SCALAR_BASES

    def contents(self, cap: Machine) -> Contents:
        """The state of the C base."""
        if self._contents is None:
            assert self.source is not None
            self._contents = cap.world.wrap_contents(self.real, self.base, self.source)
            self._own(self._contents)
        return self._contents

    def base_method(self, cap: Machine, owner: type, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """owner.name(self, ...) for a method of C that the built-in class `owner` has."""
        if name in _OF_OBJECT:
            return cap.attributes.object_method(self, name, args, kwargs)
        if owner is dict and self.base is collections.OrderedDict and name not in _DICT_ONLY_READS:
            raise Unsupported(causes.OPAQUE_OBJECT, f"dict.{name}() of {self.describe()}, which is an OrderedDict")
        if name in _MAKE_ANOTHER and self.base is dict and cap.classes.lookup(self.cls, "__iter__") is not dict.__iter__:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}(), which calls keys()")
        contents = self.contents(cap)
        if name == "__iter__" and self.base is str and not args:
            return cap.iteration.text_iterator(contents, owner=self)
        if name == "__init__":
            return self._initialize(cap, contents, args, kwargs)
        if self.base is collections.OrderedDict:
            if name == "update":
                return self._update(cap, args, kwargs)
            overridden = any(not hasattr(cap.classes.lookup(self.cls, n), "__objclass__") for n in _ITEM_METHODS if hasattr(self.cls, n))
            if name in _MAKE_ANOTHER or (name in _BY_ITEM_METHODS and overridden):
                raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")
        if name == "__getitem__" and isinstance(contents, DictValue) and len(args) == 1:
            found = contents.get(cap, args[0])
            if found is None and cap.classes.has(self.cls, "__missing__"):
                return cap.call_method(self, "__missing__", args, {})
        given = [self._operand(cap, name, contents, a) for a in args]
        result = cap.call_method(contents, name, given, kwargs)
        if name in _OR_ITSELF and isinstance(contents, Constant) and _holds_text(result, contents.value):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}(), which may return the instance")
        return self if result is contents else result

    def _operand(self, cap: Machine, name: str, contents: Contents, arg: Value) -> Value:
        """An argument as the C base reads it: the contents of an instance of the same base."""
        value = cap.realize(arg)
        if isinstance(contents, Constant):
            if not (isinstance(value, ContainerObject) and value.is_scalar):
                return arg
            if name in _PARTITIONS:
                raise Unsupported(causes.OPAQUE_OBJECT, f"{name}(), which returns {value.describe()} unchanged")
            return text_of_scalar(cap, value) if name in _FORMATS else value_of_scalar(cap, value)
        if value is self and name != "append":
            return contents if name in _COMBINE or name in ("extend", "update", "__setitem__") else arg
        if name in _COMBINE and isinstance(value, ContainerObject) and issubclass(value.base, self.base):
            return value.contents(cap)
        return arg

    def _initialize(self, cap: Machine, contents: Contents, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(contents, TupleValue | Constant):
            return NONE  # object.__init__
        if self.base is collections.OrderedDict:
            return self._update(cap, args, kwargs)
        if isinstance(contents, ListValue):
            own_new = not isinstance(cap.classes.lookup(self.cls, "__new__"), types.BuiltinFunctionType)
            _check_arguments(cap, "list", args, {} if own_new else kwargs)
            if contents.items:
                cap.call_method(contents, "clear", [], {})
            return cap.call_method(contents, "extend", args, {}) if args else NONE
        return cap.call_method(contents, "update", args, kwargs)

    def _update(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """OrderedDict's update: each item is set by the subclass's own __setitem__."""
        if len(args) > 1:
            raise Unsupported(causes.UNKNOWN_CALL, f"{self.describe()}.update() with {len(args)} arguments")
        for key, value in [*(pairs_of(cap, args[0]) if args else ()), *((Constant(k), v) for k, v in kwargs.items())]:
            cap.call_method(self, "__setitem__", [key, value], {})
        return NONE

    # -- in generated code -------------------------------------------------------------------------------------
    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return cg.container(self, None, lambda var: self._fill(cg, var), None, self._make)

    def _make(self, cg: Writer) -> str:
        cls, contents = cg.bind(self.cls, self.cls.__name__), self._contents
        if isinstance(contents, TupleValue):
            return f"{cg.helper('tuple_new')}({cls}, ({''.join(cg.value(v) + ', ' for v in contents.items)}))"
        if isinstance(contents, Constant):
            return f"{self.base.__name__}.__new__({cls}, {cg.value(contents)})"
        return f"{cg.bind(self.base, self.base.__name__)}.__new__({cls})"

    def _fill(self, cg: Writer, var: str) -> None:
        contents = self._contents
        if isinstance(contents, DictValue):
            contents.fill(cg, var)
        elif isinstance(contents, ListValue) and contents.items:
            cg.statement(f"{cg.helper('list_replace')}({var}, [{', '.join(cg.value(v) for v in contents.items)}])")
        cg.set_attributes(self, var)


def _holds_text(value: Value, text: Any) -> bool:
    """Whether the value is this text, or a sequence that contains it."""
    return any(isinstance(v, Constant) and v.holds(text) for v in (value.items if isinstance(value, Sequence) else [value]))


def value_of_scalar(cap: Machine, value: Value) -> Value:
    """The constant of an instance of a subclass of str, int or float, or of a member of an enum of numbers; any other
    value unchanged.

    Raises: Unsupported if the class overrides a method that C code calls on the object.
    """
    value = cap.realize(value)
    if isinstance(value, ContainerObject) and value.is_scalar:
        _refuse_overrides(cap, value, value.base, _ASKED[value.base])
        return value.contents(cap)
    if isinstance(value, UserObject) and isinstance(value.real, enum.Enum) and issubclass(value.cls, int | float):
        base = int if issubclass(value.cls, int) else float
        _refuse_overrides(cap, value, base, _ASKED[base])
        return Constant(plain_scalar(value.real, base))
    return value


def text_of_scalar(cap: Machine, value: ContainerObject) -> Value:
    """value_of_scalar() for a formatted value."""
    _refuse_overrides(cap, value, value.base, _TEXT)
    return value_of_scalar(cap, value)


def _refuse_overrides(cap: Machine, value: UserObject, base: type, names: tuple[str, ...]) -> None:
    for name in names:
        if not cap.classes.has(value.cls, name):
            continue
        raw = cap.classes.lookup(value.cls, name)
        if raw is not type_attribute(base, name, None) and getattr(raw, "__module__", "") != "enum":
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()} in a call of C code: its class defines {name}")


def _check_arguments(cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Raise the error of the constructor of a list or a tuple for invalid arguments."""
    if kwargs:
        cap.raise_(TypeError, f"{name}() takes no keyword arguments")
    if len(args) > 1:
        cap.raise_(TypeError, f"{name} expected at most 1 argument, got {len(args)}")


def new_container(cap: Machine, cls: type, base: type, args: list[Value], kwargs: dict[str, Value]) -> ContainerObject:
    """base.__new__(cls, *args, **kwargs). Keywords may be arguments of an __init__ that the subclass defines."""
    cap.classes.check_creation(cls)
    contents: Contents
    if base is tuple:
        _check_arguments(cap, "tuple", args, {} if isinstance(cap.classes.lookup(cls, "__init__"), types.FunctionType) else kwargs)
        contents = TupleValue(cap.iteration.unpack(args[0]) if args else [])
    elif base in SCALAR_BASES:
        given = [value_of_scalar(cap, a) for a in args], {k: value_of_scalar(cap, v) for k, v in kwargs.items()}
        made = cap.realize(cap.call(cap.world.wrap_static(base), *given))
        if type(made) is not Constant:
            raise Unsupported(causes.UNKNOWN_CALL, f"{cls.__name__}() of a number that is a symbol")
        contents = made
    else:
        contents = ListValue([]) if base is list else DictValue(base)
    return ContainerObject(cls, base, contents, born=cap.steps)
