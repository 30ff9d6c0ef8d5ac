"""`dataclass` with the standard meaning, whose methods are written at their first use.

The standard decorator compiles six functions for a class when the class is made. This project has over two hundred
such classes, and a process uses few of them: on CPython 3.11 the decorator took 75 ms of 180 ms of imports. Here a
method is a stub until its first call, which writes the method, puts it into the class and calls it.

The classes are dataclasses to everything else: `dataclasses.fields`, `replace`, `asdict` and `is_dataclass` take them,
and type checkers see the standard decorator. It takes the parameters that `_dataclass` lists.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, dataclass_transform

__all__ = ["dataclass"]

_FACTORY: Final = object()  # default of a parameter whose field has a factory
_set: Final = object.__setattr__


@dataclasses.dataclass
class _Ordinary:
    value: int


# The mark by which `dataclasses.fields` knows a field that is neither a class variable nor a parameter alone.
_ORDINARY: Final[Any] = getattr(dataclasses.fields(_Ordinary)[0], "_field_type")  # noqa: B009 -- not a public name


def _fields_of(cls: type) -> dict[str, Any]:
    """name -> `dataclasses.Field`, of the bases and then of the class itself; defaults leave the namespace of slots."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(base.__dict__.get("__dataclass_fields__", ()))
    for name, annotation in inspect.get_annotations(cls).items():
        if str(annotation).removeprefix("typing.").startswith("ClassVar"):
            continue
        given = cls.__dict__.get(name, dataclasses.MISSING)
        own: Any = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        own.name, own.type, own._field_type = name, annotation, _ORDINARY
        own.kw_only = False
        found[name] = own
        if own is not given:
            continue
        if own.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, own.default)
    required = [f.default is dataclasses.MISSING is f.default_factory for f in found.values() if f.init]
    if required != sorted(required, reverse=True):
        late = [f.name for f in found.values() if f.init][len(required) - required[::-1].index(True) - 1]
        raise TypeError(f"{cls.__name__}: field {late!r} has no default and follows a field with a default")
    return found


def _with_slots(cls: Any, names: dict[str, Any], weakref_slot: bool) -> Any:
    """The class again, with a slot for each field that no base has a slot for."""
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    wanted = (*names, "__weakref__") if weakref_slot else names
    slots = tuple(name for name in wanted if name not in inherited)
    namespace = {k: v for k, v in cls.__dict__.items() if k not in names and k not in ("__dict__", "__weakref__")}
    namespace["__slots__"] = slots
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _parameter(f: Any) -> str:
    if f.default is not dataclasses.MISSING:
        return f"{f.name}=_default_{f.name}"
    return f.name if f.default_factory is dataclasses.MISSING else f"{f.name}=_FACTORY"


def _init_text(cls: Any, frozen: bool) -> tuple[str, dict[str, Any]]:
    """`__init__` as text, and the names that it reads."""
    names: dict[str, Any] = {"_FACTORY": _FACTORY, "_set": _set}
    parameters, body = [], []
    for f in cls.__dataclass_fields__.values():
        value = f.name
        if f.default is not dataclasses.MISSING:
            names[f"_default_{f.name}"] = f.default
            value = f.name if f.init else f"_default_{f.name}"
        elif f.default_factory is not dataclasses.MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}()" + (f" if {f.name} is _FACTORY else {f.name}" if f.init else "")
        elif not f.init:
            continue
        if f.init:
            parameters.append(_parameter(f))
        slot = getattr(cls, f.name, None)
        if not frozen:
            body.append(f"self.{f.name} = {value}")
        elif isinstance(slot, types.MemberDescriptorType):
            names[f"_set_{f.name}"] = slot.__set__  # half the time of object.__setattr__, which looks the name up
            body.append(f"_set_{f.name}(self, {value})")
        else:
            body.append(f"_set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    return f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join(body or ["pass"]), names


def _values_text(cls: Any, of: str) -> str:
    """A tuple of the fields that count in comparisons."""
    return "(" + "".join(f"{of}.{f.name}, " for f in cls.__dataclass_fields__.values() if f.compare) + ")"


def _text(cls: Any, name: str, frozen: bool) -> tuple[str, dict[str, Any]]:
    if name == "__init__":
        return _init_text(cls, frozen)
    if name == "__hash__":
        return f"def __hash__(self):\n return hash({_values_text(cls, 'self')})", {}
    if name == "__repr__":
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in cls.__dataclass_fields__.values() if f.repr)
        return f"def __repr__(self):\n return self.__class__.__qualname__ + f'({shown})'", {}
    same = f"{_values_text(cls, 'self')} == {_values_text(cls, 'other')}"
    return f"def __eq__(self, other):\n return {same} if other.__class__ is self.__class__ else NotImplemented", {}


def _put_stub(cls: Any, name: str, frozen: bool) -> None:
    """Gives the class a method that writes the real one at its first call."""

    def stub(self: Any, *args: Any, **kwargs: Any) -> Any:
        text, names = _text(cls, name, frozen)
        exec(text, names)
        method = recursive_repr()(names[name]) if name == "__repr__" else names[name]
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        method.__module__ = cls.__module__
        setattr(cls, name, method)
        return method(self, *args, **kwargs)

    stub.__name__, stub.__qualname__, stub.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    setattr(cls, name, stub)


def _refusals(cls: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """`__setattr__` and `__delattr__` of a frozen class. A subclass may still add attributes."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        _set(self, name, value)


def _complete(cls: Any, frozen: bool, slots: bool, eq: bool, weakref_slot: bool) -> Any:
    own = set(cls.__dict__)
    # Python sets __hash__ to None in a class that defines __eq__, without a word from the class.
    hash_given = "__hash__" in own and not (cls.__dict__["__hash__"] is None and "__eq__" in own)
    found = _fields_of(cls)
    if slots:
        cls = _with_slots(cls, found, weakref_slot)
    cls.__dataclass_fields__ = found
    cls.__dataclass_params__ = types.SimpleNamespace(frozen=frozen)  # read where a standard dataclass derives from this
    setattr(cls, "__match_args__", tuple(name for name, f in found.items() if f.init))  # noqa: B010 -- mypy forbids `=`
    if "__init__" not in own:
        _put_stub(cls, "__init__", frozen)
    if "__repr__" not in own:
        _put_stub(cls, "__repr__", frozen)
    if eq and "__eq__" not in own:
        _put_stub(cls, "__eq__", frozen)
    if eq and not hash_given:
        if frozen:
            _put_stub(cls, "__hash__", frozen)
        else:
            cls.__hash__ = None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls)
        if slots and "__getstate__" not in own:
            cls.__getstate__, cls.__setstate__ = _getstate, _setstate
    return cls


@dataclass_transform(field_specifiers=(dataclasses.field,))
def _dataclass(
    cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, weakref_slot: bool = False
) -> Any:
    """`dataclasses.dataclass` of these parameters; the others are not taken.

    Raises TypeError where a field without a default follows a field with a default.
    """
    if cls is not None:
        return _complete(cls, frozen, slots, eq, weakref_slot)
    return lambda cls: _complete(cls, frozen, slots, eq, weakref_slot)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass
