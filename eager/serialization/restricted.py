"""An unpickler that runs only code that is declared safe.

`pickle` can be restricted in the functions that a stream names, but not in setting attributes of allowed objects or
in building any object's state. This module is therefore a separate interpreter for the opcodes of protocols 0 to 5 that
data needs: it calls only allowed functions, creates instances only of allowed classes, and sets state only on those,
on tensors and on ordered dicts. A damaged stream always ends in UnpicklingError.
"""
from __future__ import annotations

import collections
import functools
import pickle
import struct
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.dtypes import dtype
from eager.nn.parameter import Parameter
from eager.serialization.rebuild import rebuild_from_type, safe_names, set_state

_MARK = object()
_DEEPEST = 100_000  # limit of nested marks; larger nesting indicates a damaged file
_CONTAINERS = (collections.OrderedDict, collections.Counter, set, frozenset, dict)
Handler = Callable[["Unpickler"], None]
_HANDLERS: dict[int, Handler] = {}


def _op(code: bytes) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS[code[0]] = handler
        return handler

    return register


class Unpickler:
    """Reads one pickle from `data`, starting at byte `at`; afterwards `at` is the position after it.

    persistent_load: makes a storage from a persistent id. trusted: additional allowed names, by (module, name).
    """

    def __init__(self, data: Any, persistent_load: Callable[[Any], Any], trusted: dict[tuple[str, str], Any], at: int = 0) -> None:
        self.data = memoryview(data)
        self.at = at
        self.persistent_load = persistent_load
        self.trusted = trusted
        self.names = {**safe_names(), ("torch._tensor", "_rebuild_from_type_v2"): functools.partial(rebuild_from_type, self.allows)}
        known = (v for v in self.names.values() if v not in (Tensor, Parameter))  # files name these, but do not call them
        self.callables = {id(v): v for v in (*known, *trusted.values()) if callable(v)}
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.outside: Exception | None = None  # an error raised by the caller's persistent_load

    def load(self) -> Any:
        """The unpickled object. Raises: UnpicklingError for a name that is not allowed and for a damaged stream."""
        try:
            while True:
                code = self.take(1)[0]
                if code == pickle.STOP[0]:
                    result = self.stack.pop()
                    if result is _MARK:
                        raise pickle.UnpicklingError("the file is damaged: its pickle ends within an object")
                    return result
                handler = _HANDLERS.get(code)
                if handler is None:
                    raise pickle.UnpicklingError(f"unsupported operand {code}")
                handler(self)
        except (pickle.UnpicklingError, NotImplementedError):
            raise
        except RecursionError:
            raise
        except Exception as error:  # any error that a damaged stream causes
            if error is self.outside:
                raise
            raise pickle.UnpicklingError(f"the file is damaged: {type(error).__name__} ({error}) at byte {self.at} of its "
                                         "pickle") from error  # fmt: skip

    def allows(self, fn: Any) -> bool:
        """Whether the file may call `fn`."""
        return self.callables.get(id(fn)) is fn

    # ---- reading ----

    def take(self, n: int) -> Any:
        """The next n bytes. Raises: UnpicklingError at the end of the data."""
        if n < 0 or self.at + n > len(self.data):
            raise pickle.UnpicklingError(f"the file ends at byte {len(self.data)} of its pickle, within an object: it is cut off")
        piece = self.data[self.at : self.at + n]
        self.at += n
        return piece

    def number(self, form: str) -> int:
        """The next number, in the `struct` format `form`."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def line(self) -> bytes:
        """The next line, without its newline."""
        rest = bytes(self.data[self.at : self.at + 65536])
        end = rest.find(b"\n")
        if end < 0:
            raise pickle.UnpicklingError("a line of the file's pickle has no end: it is cut off")
        self.at += end + 1
        return rest[:end]

    # ---- the stack ----

    def marked(self) -> list[Any]:
        """Remove and return the stack's items above the topmost mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                items = self.stack[i + 1 :]
                del self.stack[i:]
                return items
        raise pickle.UnpicklingError("the file is damaged: its pickle has no mark where one is needed")

    def find(self, module: str, name: str) -> Any:
        """The object of a name. Raises: UnpicklingError for a name that is not allowed."""
        module = "builtins" if module == "__builtin__" else module  # protocol 2 uses Python 2's name of the module
        key = (module, name)
        if key in self.names:
            return self.names[key]
        if key in self.trusted:
            return self.trusted[key]
        full = f"{module}.{name}"
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the `torch.serialization.safe_globals([{full}])` context manager "
            "to allowlist this global if you trust this class/function.")  # fmt: skip

    def call(self, fn: Any, args: Any) -> Any:
        """`fn(*args)`. Raises: UnpicklingError for a function that is not allowed."""
        if not isinstance(args, tuple):
            raise pickle.UnpicklingError(f"the file is damaged: arguments of a call are a {type(args).__name__}")
        if not self.allows(fn):
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {fn}")
        if fn in (set, frozenset, dict, collections.OrderedDict, collections.Counter) and not all(
                isinstance(a, (list, tuple, dict, set, frozenset)) for a in args):  # fmt: skip
            raise pickle.UnpicklingError(f"the file is damaged: a {fn.__name__} is made of {args!r}")
        return fn(*args)

    def make(self, kind: Any, args: Any, kwargs: Any) -> Any:
        """A new instance of a class. Raises: UnpicklingError for a class that is not allowed."""
        if not isinstance(kind, type) or not (kind in _CONTAINERS or (self.allows(kind) and kind in self.trusted.values())):
            raise pickle.UnpicklingError(f"Trying to create new object for unrecognized class {kind}")
        return kind.__new__(kind, *args, **kwargs)

    def build(self, obj: Any, state: Any) -> None:
        """Set the state of an object. Raises: UnpicklingError for an object of another class than the allowed ones."""
        if isinstance(obj, Tensor):
            set_state(obj, state)
        elif type(obj) is collections.OrderedDict:
            obj.__dict__.update(state)
        elif any(type(obj) is kind for kind in self.trusted.values()):
            if hasattr(obj, "__setstate__"):
                obj.__setstate__(state)
                return
            state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            obj.__dict__.update(state or {})
            for name, value in (slots or {}).items():
                setattr(obj, name, value)
        else:
            raise pickle.UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                                         f"but got {type(obj)}")  # fmt: skip

    def target(self, *kinds: type) -> Any:
        """The container under construction. It must be a plain container, so that no code of a class runs."""
        found = self.stack[-1]
        if not isinstance(found, kinds):
            raise pickle.UnpicklingError(f"the file is damaged: items are put into a {type(found).__name__}")
        return found

    def remember(self, key: int) -> None:
        """Store the top of the stack in the memo."""
        self.memo[key] = self.stack[-1]

    def push(self, value: Any) -> None:
        """Push a value onto the stack."""
        self.stack.append(value)


# ---- constants ----


for _code, _value in ((pickle.NONE, None), (pickle.NEWTRUE, True), (pickle.NEWFALSE, False)):
    _HANDLERS[_code[0]] = functools.partial(lambda u, v: u.push(v), v=_value)
for _code, _form in ((pickle.BININT, "<i"), (pickle.BININT1, "<B"), (pickle.BININT2, "<H")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(u.number(form)), form=_form)
for _code, _form in ((pickle.LONG1, "<B"), (pickle.LONG4, "<i")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(pickle.decode_long(bytes(u.take(u.number(form))))), form=_form)
for _code, _form in ((pickle.BINUNICODE, "<I"), (pickle.SHORT_BINUNICODE, "<B"), (pickle.BINUNICODE8, "<Q")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(str(u.take(u.number(form)), "utf-8", "surrogatepass")), form=_form)
for _code, _form in ((pickle.BINSTRING, "<i"), (pickle.SHORT_BINSTRING, "<B")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(str(u.take(u.number(form)), "utf-8")), form=_form)
for _code, _form in ((pickle.BINBYTES, "<I"), (pickle.SHORT_BINBYTES, "<B"), (pickle.BINBYTES8, "<Q")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(bytes(u.take(u.number(form)))), form=_form)


@_op(pickle.BYTEARRAY8)
def _bytearray8(u: Unpickler) -> None:
    u.push(bytearray(u.take(u.number("<Q"))))


@_op(pickle.BINFLOAT)
def _binfloat(u: Unpickler) -> None:
    u.push(struct.unpack(">d", u.take(8))[0])


@_op(pickle.INT)
def _int(u: Unpickler) -> None:
    text = u.line()
    u.push(text == b"01" if text in (b"00", b"01") else _whole(text))


@_op(pickle.LONG)
def _long(u: Unpickler) -> None:
    u.push(_whole(u.line().removesuffix(b"L")))


def _whole(text: bytes) -> int:
    if len(text) > 4000:  # parsing a decimal takes quadratic time
        raise pickle.UnpicklingError(f"the file is damaged: an integer of {len(text)} digits")
    return int(text)


@_op(pickle.FLOAT)
def _float(u: Unpickler) -> None:
    u.push(float(u.line()))


@_op(pickle.UNICODE)
def _unicode(u: Unpickler) -> None:
    u.push(str(u.line(), "raw-unicode-escape"))


# ---- containers ----


@_op(pickle.PROTO)
def _proto(u: Unpickler) -> None:
    version = u.number("<B")
    if version > pickle.HIGHEST_PROTOCOL:
        raise pickle.UnpicklingError(f"unsupported pickle protocol: {version}")


@_op(pickle.FRAME)
def _frame(u: Unpickler) -> None:
    u.number("<Q")


@_op(pickle.MARK)
def _mark(u: Unpickler) -> None:
    if len(u.stack) > _DEEPEST * 100:
        raise pickle.UnpicklingError("the file is damaged: its pickle is nested without end")
    u.push(_MARK)


@_op(pickle.POP)
def _pop(u: Unpickler) -> None:
    u.stack.pop()


@_op(pickle.POP_MARK)
def _pop_mark(u: Unpickler) -> None:
    u.marked()


@_op(pickle.DUP)
def _dup(u: Unpickler) -> None:
    u.push(u.stack[-1])


_kind: Any
for _code, _kind in ((pickle.EMPTY_LIST, list), (pickle.EMPTY_TUPLE, tuple), (pickle.EMPTY_DICT, dict), (pickle.EMPTY_SET, set)):
    _HANDLERS[_code[0]] = functools.partial(lambda u, kind: u.push(kind()), kind=_kind)
for _code, _kind in ((pickle.LIST, list), (pickle.TUPLE, tuple), (pickle.FROZENSET, frozenset)):
    _HANDLERS[_code[0]] = functools.partial(lambda u, kind: u.push(kind(u.marked())), kind=_kind)


@_op(pickle.DICT)
def _dict(u: Unpickler) -> None:
    items = u.marked()
    u.push(dict(zip(items[::2], items[1::2], strict=True)))


def _short_tuple(n: int) -> Handler:
    def make(u: Unpickler) -> None:
        items = tuple(u.stack[len(u.stack) - n :])
        if len(items) != n or _MARK in items:
            raise pickle.UnpicklingError("the file is damaged: its pickle takes more than there is")
        del u.stack[len(u.stack) - n :]
        u.push(items)

    return make


for _n, _code in enumerate((pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3), 1):
    _HANDLERS[_code[0]] = _short_tuple(_n)


@_op(pickle.APPEND)
def _append(u: Unpickler) -> None:
    value = u.stack.pop()
    u.target(list).append(value)


@_op(pickle.APPENDS)
def _appends(u: Unpickler) -> None:
    items = u.marked()
    u.target(list).extend(items)


@_op(pickle.SETITEM)
def _setitem(u: Unpickler) -> None:
    value, key = u.stack.pop(), u.stack.pop()
    u.target(dict)[key] = value


@_op(pickle.SETITEMS)
def _setitems(u: Unpickler) -> None:
    items = u.marked()
    target = u.target(dict)
    for key, value in zip(items[::2], items[1::2], strict=True):
        target[key] = value


@_op(pickle.ADDITEMS)
def _additems(u: Unpickler) -> None:
    items = u.marked()
    u.target(set).update(items)


# ---- names, calls, state ----


@_op(pickle.GLOBAL)
def _global(u: Unpickler) -> None:
    module, name = u.line(), u.line()
    u.push(u.find(str(module, "utf-8"), str(name, "utf-8")))


@_op(pickle.STACK_GLOBAL)
def _stack_global(u: Unpickler) -> None:
    name, module = u.stack.pop(), u.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise pickle.UnpicklingError("STACK_GLOBAL requires str")
    u.push(u.find(module, name))


@_op(pickle.REDUCE)
def _reduce(u: Unpickler) -> None:
    args, fn = u.stack.pop(), u.stack.pop()
    u.push(u.call(fn, args))


@_op(pickle.NEWOBJ)
def _newobj(u: Unpickler) -> None:
    args, kind = u.stack.pop(), u.stack.pop()
    u.push(u.make(kind, args, {}))


@_op(pickle.NEWOBJ_EX)
def _newobj_ex(u: Unpickler) -> None:
    kwargs, args, kind = u.stack.pop(), u.stack.pop(), u.stack.pop()
    u.push(u.make(kind, args, kwargs))


@_op(pickle.BUILD)
def _build(u: Unpickler) -> None:
    state = u.stack.pop()
    u.build(u.stack[-1], state)


@_op(pickle.BINPERSID)
def _binpersid(u: Unpickler) -> None:
    pid = u.stack.pop()
    try:
        u.push(u.persistent_load(pid))
    except Exception as error:
        u.outside = error
        raise


# ---- the memo ----


for _code, _form in ((pickle.BINGET, "<B"), (pickle.LONG_BINGET, "<I")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.push(u.memo[u.number(form)]), form=_form)
for _code, _form in ((pickle.BINPUT, "<B"), (pickle.LONG_BINPUT, "<I")):
    _HANDLERS[_code[0]] = functools.partial(lambda u, form: u.remember(u.number(form)), form=_form)


@_op(pickle.GET)
def _get(u: Unpickler) -> None:
    u.push(u.memo[_whole(u.line())])


@_op(pickle.PUT)
def _put(u: Unpickler) -> None:
    u.remember(_whole(u.line()))


@_op(pickle.MEMOIZE)
def _memoize(u: Unpickler) -> None:
    u.remember(len(u.memo))


# ---- scanning without building ----


class _Anything:
    """Placeholder for every object of a pickle of which only the storages matter."""

    def swallow(self, *args: Any) -> None:
        """Accept items without storing them."""

    append = extend = update = __setitem__ = swallow


class Scanner(Unpickler):
    """Reads a pickle without building its objects; calls only `persistent_load`, once for every id."""

    def find(self, module: str, name: str) -> Any:
        """A dtype, or a placeholder for any other name."""
        key = ("builtins" if module == "__builtin__" else module, name)
        known = self.names.get(key)
        return known if isinstance(known, dtype) else _Anything()

    def call(self, fn: Any, args: Any) -> Any:
        """A placeholder; calls nothing."""
        return _Anything()

    def make(self, kind: Any, args: Any, kwargs: Any) -> Any:
        """A placeholder; creates no instance."""
        return _Anything()

    def build(self, obj: Any, state: Any) -> None:
        """Ignore the state."""

    def target(self, *kinds: type) -> Any:
        """A placeholder that accepts items."""
        return _Anything()
