"""Functions, methods, partials, cells and generators of the captured program."""

from __future__ import annotations

import functools
import sys
import types
from types import CodeType
from typing import Any, Final

from dynamo.bytecode.decode import CO_VARARGS, CO_VARKEYWORDS
from dynamo.guards.sources import (
    AttrSource,
    ClosureCellSource,
    ConstSource,
    DictAttrSource,
    DictItemSource,
    Source,
    type_attribute,
)
from dynamo.report import causes
from dynamo.report.errors import BreakFound, Restart, Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.iterators import Iterator
from dynamo.values.mappings import DictValue
from dynamo.values.protocols import Frame, Machine, Raised, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.writer import Writer

_PLAIN_ATTRIBUTES: Final = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
_SETTABLE: Final = _PLAIN_ATTRIBUTES | {"__type_params__"}


class CellValue(Value):
    """A variable shared between functions.

    contents: None if empty. written: the program changed an existing cell, which generated code must update.
    """

    def __init__(self, contents: Value | None = None, source: Source | None = None, name: str = "") -> None:
        self.contents = contents
        self.source = source
        self.name = name
        self.written = False

    def python_type(self) -> type:
        return types.CellType

    def load(self, cap: Machine) -> Value | None:
        return self.contents

    def store(self, cap: Machine, value: Value | None) -> None:
        cap.effects.change(self)
        self.contents = value
        self.written = True

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "cell_contents":
            return self.contents if self.contents is not None else cap.raise_(ValueError, "Cell is empty")
        return super().getattr(cap, name)

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return cg.container(self, f"{cg.helper('make_cell')}()", lambda var: self._fill(cg, var), None)

    def _fill(self, cg: Writer, var: str) -> None:
        if self.contents is not None:
            cg.statement(f"{var}.cell_contents = {cg.value(self.contents)}")


class FunctionValue(Value):
    """A Python function: existing (real), or made by the captured program (real is None)."""

    def __init__(self, code: CodeType, global_ns: dict[str, Any], real: types.FunctionType | None = None,
                 source: Source | None = None) -> None:  # fmt: skip
        self.code = code
        self.globals = global_ns
        self.real = real
        self.source = source
        self.name = real.__qualname__ if real is not None else code.co_qualname
        self.new_defaults: list[Value] = []
        self.new_kwdefaults: dict[str, Value] = {}
        self.new_closure: list[CellValue] = []
        self.new_annotations: Value | None = None
        self.attributes: dict[str, Value] = {}
        self._dict: _FunctionDict | None = None

    def python_type(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.name}"

    def truth(self, cap: Machine) -> bool:
        return True

    # -- what a call needs --------------------------------------------------------------------------------------
    def defaults(self, cap: Machine) -> list[Value]:
        if self.real is None:
            return self.new_defaults
        return self._existing_tuple(cap, "__defaults__")

    def _existing_tuple(self, cap: Machine, name: str) -> list[Value]:
        real = getattr(self.real, name)
        assert self.source is not None
        source = AttrSource(self.source, name)
        cap.world.guard("is", source, real)
        if real is None:
            return []
        return [cap.world.lazy(v, ConstSource(v, f"{source.name}[{i}]")) for i, v in enumerate(real)]  # the items of a tuple do not change

    def kwdefaults(self, cap: Machine) -> dict[str, Value]:
        if self.real is None:
            return self.new_kwdefaults
        real = self.real.__kwdefaults__
        assert self.source is not None
        source = AttrSource(self.source, "__kwdefaults__")
        cap.world.guard("is", source, real)
        if real is None:
            return {}
        known = cap.world.by_id.get(id(real))
        if isinstance(known, DictValue) and known.mutated:
            return {k.as_constant(): v for k, v in known.entries.values()}
        held = ConstSource(real, source.name)
        cap.world.guard("dict_keys", held, tuple(real))
        return {k: cap.world.lazy(v, DictItemSource(held, k)) for k, v in real.items()}

    def closure(self, cap: Machine) -> list[CellValue]:
        if self.real is None:
            return self.new_closure
        assert self.source is not None
        cells = self.real.__closure__ or ()
        names = self.code.co_freevars
        return [cap.world.wrap_cell(c, self._cell_source(c, i), names[i]) for i, c in enumerate(cells)]

    def _cell_source(self, cell: Any, index: int) -> Source:
        assert self.source is not None
        if isinstance(self.source, ConstSource):
            return ConstSource(cell, f"{self.name}.{self.code.co_freevars[index]}")
        return ClosureCellSource(self.source, index)

    # -- protocol ----------------------------------------------------------------------------------------------
    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.calls.of_function(self, args, kwargs)

    def getattr(self, cap: Machine, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        pending = cap.effects.attributes_of(self).get(name)
        if isinstance(pending, Value):
            return pending
        if name == "__get__" or pending is not None:
            return super().getattr(cap, name)
        if self.real is None:
            return self._new_attribute(cap, name)
        assert self.source is not None
        if name in _PLAIN_ATTRIBUTES:
            return cap.world.wrap(getattr(self.real, name), AttrSource(self.source, name))
        if name in ("__annotations__", "__type_params__") and name in vars(types.FunctionType):
            return cap.world.wrap(getattr(self.real, name), AttrSource(self.source, name))
        if name in ("__code__", "__defaults__", "__kwdefaults__"):
            return cap.world.wrap(getattr(self.real, name), AttrSource(self.source, name))
        if name == "__dict__":
            return cap.attributes.instance_dict(self)
        cap.attributes.meet_namespace(self)
        of_class = type_attribute(types.FunctionType, name, None)
        if name in self.real.__dict__ and not (hasattr(type(of_class), "__set__") or hasattr(type(of_class), "__delete__")):
            return cap.world.wrap(self.real.__dict__[name], DictAttrSource(self.source, name))
        if name == "__class__":
            return cap.world.wrap_static(types.FunctionType)
        if of_class is not None:
            raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name}")
        cap.world.guard("no_attr", self.source, name)
        return cap.raise_(AttributeError, f"'function' object has no attribute '{name}'")

    def _new_attribute(self, cap: Machine, name: str) -> Value:
        if name in ("__name__", "__qualname__"):
            return Constant(self.code.co_name if name == "__name__" else self.code.co_qualname)
        if name == "__module__":
            return Constant(self.globals.get("__name__"))
        if name == "__class__":
            return cap.world.wrap_static(types.FunctionType)
        if name == "__annotations__":
            return self._annotations(cap)
        if name == "__type_params__" and name in vars(types.FunctionType):
            return TupleValue([])
        if name == "__code__":
            return Constant(self.code)
        if name in ("__defaults__", "__kwdefaults__") and not (self.new_defaults if name == "__defaults__" else self.new_kwdefaults):
            return NONE
        if name == "__dict__":
            self._dict = self._dict or _FunctionDict(self, cap)
            return self._dict
        if name == "__doc__":
            has_doc = bool(self.code.co_consts) and isinstance(self.code.co_consts[0], str)
            return Constant(self.code.co_consts[0] if has_doc else None)
        if type_attribute(types.FunctionType, name, None) is not None:
            raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name}")
        return cap.raise_(AttributeError, f"'function' object has no attribute '{name}'")

    def _annotations(self, cap: Machine) -> Value:
        """The annotations as a dict; MAKE_FUNCTION may have received a tuple of alternating names and values."""
        found = self.new_annotations
        if not isinstance(found, DictValue):
            flat = [] if found is None else cap.iteration.unpack(found)
            found = DictValue()
            found.update(cap, zip(flat[::2], flat[1::2], strict=True))
            self.new_annotations = found
        return found

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        if name in ("__name__", "__qualname__"):
            kind = cap.realize(value).python_type()
            if not issubclass(kind, str):
                cap.raise_(TypeError, f"{name} must be set to a string object")
        elif name == "__annotations__" and self.real is None and isinstance(cap.realize(value), DictValue):
            cap.effects.change(self)
            self.new_annotations = cap.realize(value)
            return
        elif name not in _SETTABLE and type_attribute(types.FunctionType, name, None) is not None:
            raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name} = ...")
        if self.real is not None:
            cap.effects.set_attribute(self, name, value)
            return
        cap.effects.change(self)
        self.attributes[name] = value

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return cg.container(self, None, lambda var: self._fill(cg, var), None, self._make)

    def _make(self, cg: Writer) -> str:
        code = cg.bind(self.code, self.code.co_name)
        cells = "".join(cg.value(c) + ", " for c in self.new_closure)
        namespace = cg.bind(self.globals, "globals")
        closure = f", None, ({cells})" if cells else ""  # __closure__ of a function without a closure is None
        return f"{cg.helper('FunctionType')}({code}, {namespace}, {self.code.co_name!r}{closure})"

    def _fill(self, cg: Writer, var: str) -> None:
        if self.new_defaults:
            cg.statement(f"{var}.__defaults__ = ({''.join(cg.value(v) + ', ' for v in self.new_defaults)})")
        if self.new_kwdefaults:
            items = ", ".join(f"{k!r}: {cg.value(v)}" for k, v in self.new_kwdefaults.items())
            cg.statement(f"{var}.__kwdefaults__ = {{{items}}}")
        if self.new_annotations is not None:
            cg.statement(f"{cg.helper('set_annotations')}({var}, {cg.value(self.new_annotations)})")
        for name, value in self.attributes.items():
            cg.statement(f"{var}.{name} = {cg.value(value)}")


class _FunctionDict(DictValue):
    """The __dict__ of a function that the captured program made: always its current attributes.

    Entries can be stored.
    """

    def __init__(self, owner: FunctionValue, cap: Machine) -> None:
        self._cap = cap
        self.fn = owner
        super().__init__()

    @property
    def entries(self) -> dict[Any, tuple[Value, Value]]:
        own = [(Constant(n), v) for n, v in self.fn.attributes.items() if not _is_of_class(n)]
        return {self._cap.operators.hash_key(k): (k, v) for k, v in own}

    @entries.setter
    def entries(self, value: Any) -> None:
        assert not value, "a function's __dict__ is made of its attributes"

    def set(self, cap: Machine, key: Value, value: Value) -> None:
        name = cap.realize(key)
        if not (isinstance(name, Constant) and type(name.value) is str and name.value.isidentifier()):
            raise Unsupported(causes.MUTATION, "a write into the __dict__ of a function, not of an attribute's name")
        if _is_of_class(name.value):  # a look-up finds the attribute of the class, not the dict's entry
            raise Unsupported(causes.MUTATION, f"a write into the __dict__ of a function, of {name.value}")
        self.fn.setattr(cap, name.value, value)

    def changed(self, cap: Machine) -> None:
        raise Unsupported(causes.MUTATION, "a change of the __dict__ of a function")

    def reconstruct(self, cg: Writer) -> str:
        return f"{cg.value(self.fn)}.__dict__"


def _is_of_class(name: str) -> bool:
    """Whether the class of functions defines the attribute."""
    return type_attribute(types.FunctionType, name, None) is not None


class BoundMethod(Value):
    """A function with its first argument. is_called: see BuiltinMethod."""

    def __init__(self, self_value: Value, func: Value, source: Source | None = None) -> None:
        self.self_value = self_value
        self.func = func
        self.source = source
        self.is_called = False

    def python_type(self) -> type:
        kind = self.func.python_type()
        if kind is types.WrapperDescriptorType:
            return types.MethodWrapperType
        return types.BuiltinMethodType if kind is types.MethodDescriptorType else types.MethodType

    def describe(self) -> str:
        return f"method {self.func.describe()}"

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.func.call(cap, [self.self_value, *args], kwargs)

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "__self__":
            return self.self_value
        if name == "__func__":
            return self.func
        if name == "__class__":
            return cap.world.wrap_static(types.MethodType)
        return self.func.getattr(cap, name)

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        if self.python_type() is types.MethodType:
            return f"{cg.helper('MethodType')}({cg.value(self.func)}, {cg.value(self.self_value)})"
        return f"{cg.value(self.func)}.__get__({cg.value(self.self_value)})"


class PartialValue(Value):
    """functools.partial.

    A new partial of an existing partial keeps the existing partial as its `fn`. CPython merges the two only if the
    existing partial has no `__dict__`, and a read of the `__dict__` would create it. Both forms make the same calls,
    and generated code calls functools.partial, which decides.
    """

    def __init__(self, fn: Value, args: TupleValue, kwargs: dict[str, Value], source: Source | None = None) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.source = source

    def python_type(self) -> type:
        return functools.partial

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.realize(self.fn).call(cap, [*self.args.items, *args], {**self.kwargs, **kwargs})

    def getattr(self, cap: Machine, name: str) -> Value:
        if self.source is None and issubclass(cap.realize(self.fn).python_type(), functools.partial):
            raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name}, a partial of an existing partial")
        if name == "func":
            return self.fn
        if name == "args":
            return self.args
        return super().getattr(cap, name)  # the program may write into the dict of keywords

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        parts = [cg.value(self.fn), *(cg.value(a) for a in self.args.items)]
        parts += [f"**{{{', '.join(f'{k!r}: {cg.value(v)}' for k, v in self.kwargs.items())}}}"] if self.kwargs else []
        return f"{cg.bind(functools.partial, 'partial')}({', '.join(parts)})"


class GeneratorValue(Iterator):
    """A generator of the captured program, run step by step. Once started, it cannot be rebuilt outside.

    args, kwargs: every argument, defaults included: the defaults of the function may have changed when the generator is
    rebuilt.
    """

    kind = types.GeneratorType

    def __init__(self, frame: Frame, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value], born: int) -> None:
        self.frame = frame
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.born = born
        self.started = False
        self.finished = False
        self.running = False
        self.returned: Value = NONE

    def describe(self) -> str:
        return f"generator {self.fn.name}"

    @property
    def has_unfinished_business(self) -> bool:
        """Whether dropping the generator runs code: it is suspended in a try or with block."""
        return self.started and not self.finished and self.frame.in_block

    def closes_quietly(self, cap: Machine) -> bool:
        """Close the generator, as dropping it does; return whether this is unobservable because it changes nothing."""
        before, nodes = cap.effects.mutations, len(cap.graphs.graph)
        try:
            self._close(cap)
        except (Raised, Unsupported, Restart, BreakFound):
            return False
        return cap.effects.mutations == before + 1 and len(cap.graphs.graph) == nodes  # 1: the change of the generator itself

    def next(self, cap: Machine) -> Value | None:
        return self.send(cap, NONE)

    def send(self, cap: Machine, value: Value) -> Value | None:
        """The next value; None after the generator has returned (`returned` holds its value)."""
        if self.finished:
            self.returned = NONE
            return None
        if not self.started and not (value.is_constant and value.as_constant() is None):
            cap.raise_(TypeError, "can't send non-None value to a just-started generator")
        self._enter(cap)
        if self.started:
            self.frame.push(value)
        self.started = True
        return self._step(cap, None)

    def throw(self, cap: Machine, exception: Value) -> Value | None:
        """Raise `exception` at the instruction where the generator is suspended."""
        if self.finished or not self.started:
            self.finished = True
            raise Raised(exception)
        self._enter(cap)
        return self._step(cap, exception)

    def _enter(self, cap: Machine) -> None:
        if self.running:
            cap.raise_(ValueError, "generator already executing")
        cap.effects.change(self)

    def _step(self, cap: Machine, exception: Value | None) -> Value | None:
        self.running = True
        try:
            yielded, value = cap.frames.step(self.frame, exception)
        except Raised as error:
            self.finished = True
            if cap.exceptions.is_instance_of(error.value, StopIteration):
                cap.exceptions.raise_from(RuntimeError, "generator raised StopIteration", error.value)
            raise
        finally:
            self.running = False
        if yielded:
            return value
        self.finished = True
        self.returned = NONE if isinstance(value, Constant) and value.holds(None) else value
        return None

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("__next__", "send", "throw"):
            if name == "throw":
                found = self.throw(cap, cap.exceptions.exception_thrown(args))
            else:
                found = self.send(cap, args[0] if args else NONE)
            if found is None:
                given = [] if self.returned is NONE else [self.returned]
                return cap.exceptions.raise_values(StopIteration, given)
            return found
        if name == "close":
            return self._close(cap)
        return super().call_method(cap, name, args, kwargs)

    def _close(self, cap: Machine) -> Value:
        if self.finished or not self.started:
            self.finished = True
            return NONE
        try:
            found = self.throw(cap, cap.exceptions.new(GeneratorExit, []))
        except Raised as error:
            if cap.exceptions.is_instance_of(error.value, GeneratorExit) or cap.exceptions.is_instance_of(error.value, StopIteration):
                return NONE
            raise
        if found is not None:
            return cap.raise_(RuntimeError, "generator ignored GeneratorExit")
        return self.returned if sys.version_info >= (3, 13) else NONE

    def reconstruct(self, cg: Writer) -> str:
        if self.started or self.finished:
            cg.impossible(self, f"{self.describe()}, started here, is needed after a graph break")
        args = [cg.value(a) for a in self.args]
        if self.kwargs:
            args.append(f"**{{{', '.join(f'{k!r}: {cg.value(v)}' for k, v in self.kwargs.items())}}}")
        return f"{cg.value(self.fn)}({', '.join(args)})"


# --- binding ---------------------------------------------------------------------------------------------------


def unbound(code: CodeType, slots: list[Any]) -> tuple[list[Value], dict[str, Value]]:
    """The arguments for which `bind` gives these slots, without use of defaults."""
    n_pos, n = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    args, kwargs, rest = slots[:n_pos], dict(zip(code.co_varnames[n_pos:n], slots[n_pos:n], strict=True)), slots[n:]
    if code.co_flags & CO_VARARGS:
        args += rest.pop(0).items
    if code.co_flags & CO_VARKEYWORDS:
        kwargs |= {k.as_constant(): v for k, v in rest.pop(0).entries.values()}
    return args, kwargs


def bind(cap: Machine, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> list[Value | None]:
    """Values of the argument slots of a call. Raises Python's error for invalid arguments."""
    code = fn.code
    n_pos, n_kw = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: n_pos + n_kw]
    slots: list[Value | None] = [None] * (n_pos + n_kw)
    slots[: min(len(args), n_pos)] = args[:n_pos]
    surplus = args[n_pos:]
    extra: dict[str, Value] = {}
    if surplus and not code.co_flags & CO_VARARGS:
        _wrong_call(cap, fn, args, kwargs)
    for name, value in kwargs.items():
        k = names.index(name) if name in names else -1
        if k >= code.co_posonlyargcount:
            if slots[k] is not None:
                _wrong_call(cap, fn, args, kwargs)
            slots[k] = value
        elif code.co_flags & CO_VARKEYWORDS:
            extra[name] = value
        else:
            _wrong_call(cap, fn, args, kwargs)
    _fill_defaults(cap, fn, slots, args, kwargs)
    if code.co_flags & CO_VARARGS:
        slots.append(TupleValue(list(surplus)))
    if code.co_flags & CO_VARKEYWORDS:
        d = DictValue()
        d.entries = {cap.operators.hash_key(c): (c, v) for k, v in extra.items() for c in [Constant(k)]}
        slots.append(d)
    return slots


def _fill_defaults(cap: Machine, fn: FunctionValue, slots: list[Value | None], args: list[Value],
                   kwargs: dict[str, Value]) -> None:  # fmt: skip
    n_pos = fn.code.co_argcount
    if any(s is None for s in slots[:n_pos]):
        defaults = fn.defaults(cap)
        for i in range(n_pos):
            if slots[i] is None:
                k = i - (n_pos - len(defaults))
                if k < 0:
                    _wrong_call(cap, fn, args, kwargs)
                slots[i] = defaults[k]
    if any(s is None for s in slots[n_pos:]):
        keyword = fn.kwdefaults(cap)
        for i in range(n_pos, len(slots)):
            if slots[i] is None:
                name = fn.code.co_varnames[i]
                if name not in keyword:
                    _wrong_call(cap, fn, args, kwargs)
                slots[i] = keyword[name]


def _wrong_call(cap: Machine, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Raise Python's TypeError: a function with the same code rejects a call of the same form before it runs."""
    defaults = tuple([None] * len(fn.defaults(cap)))
    closure = tuple(types.CellType(None) for _ in fn.code.co_freevars)
    twin = types.FunctionType(fn.code, {}, fn.code.co_name, defaults, closure)
    twin.__kwdefaults__ = dict.fromkeys(fn.kwdefaults(cap)) or None
    twin.__qualname__ = fn.name
    cap.host(twin, *([None] * len(args)), **dict.fromkeys(kwargs))
    raise AssertionError(f"{fn.name}: Python accepts a call that the capture could not bind")
