"""The protocol `__torch_function__`: classes and modes that handle calls of the public functions.

Owns: the test for overriding classes (`overrides`), the per-thread switches and stack of modes, the order of the handlers,
Tensor's own handler, and the activation of the protocol. A program activates it when it defines a subclass of Tensor, enters a
TorchFunctionMode or imports `eager.overrides`; before that, no function calls a handler and the protocol costs nothing.
`activate` gives every public function a body that calls the handlers first. The function objects stay the same: names
imported earlier, and tables keyed by function, remain valid. This module does not depend on the computation of a function.
"""
from __future__ import annotations

import dis
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import thread_state
from eager.base.locks import new_lock
from eager.base.tracebacks import with_handler
from eager.optable.table import Op
from eager.tape import engine

TensorBase = _native.TensorBase
Handler = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class _State(threading.local):
    def __init__(self) -> None:
        self.off = False  # the handlers of subclasses are off
        self.modes_off = False
        self.modes: list[Any] = []


state = _State()


def _disabled_torch_function_impl(func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                                  kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """As `__torch_function__` of a subclass: it takes no part, and functions compute with it as a Tensor."""
    with subclasses_off():
        return func(*args, **(kwargs or {}))


class subclasses_off:  # noqa: N801 - used like a function
    """A block that calls no handler of a subclass, and no mode if `modes` is true."""

    def __init__(self, modes: bool = False) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        self._before = state.off, state.modes_off
        state.off = True
        state.modes_off = state.modes_off or self._modes

    def __exit__(self, *exc: object) -> None:
        state.off, state.modes_off = self._before


# ---- handlers of a call ----


def overrides(value: Any) -> bool:
    """Whether the class of `value`, other than Tensor, has a `__torch_function__` that is not disabled."""
    kind = type(value)
    if kind is Tensor:
        return False
    found = getattr(kind, "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def taking_part(values: Iterable[Any]) -> list[Any]:
    """The first argument of each class that overrides, also one element deep in sequences; subclasses come before
    their bases, else as given."""
    found: list[Any] = []
    for value in _spread(values):
        if not overrides(value) or any(type(value) is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(type(value), type(other))), len(found))
        found.insert(at, value)
    return found


def _spread(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value


def answer(fn: Any, asked: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer of the innermost mode, or of the first class that has one, to a call of `fn`; or NotImplemented."""
    kinds = tuple(type(a) for a in asked)
    if state.modes and not state.modes_off:
        with _without_innermost() as mode:
            result = mode.__torch_function__(fn, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in asked:
        result = value.__torch_function__(fn, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def ask(fn: Any, asked: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of `answer`. Raises: TypeError if every handler returned NotImplemented."""
    result = answer(fn, asked, args, kwargs)
    if result is NotImplemented:
        refused = [f"mode object {m!r}" for m in state.modes[-1:]] + [f"tensor subclass {type(a)}" for a in asked]
        listed = "".join(f"\n\n  - {who}" for who in refused)
        raise TypeError(f"Multiple dispatch failed for '{name_of(fn)}'; all __torch_function__ handlers returned NotImplemented:{listed}")
    return result


def name_of(fn: Any) -> str:
    """How error texts name a function: `torch.add`, `torch.Tensor.shape.__get__`."""
    owner = getattr(fn, "__self__", None)
    if getattr(fn, "__name__", "") == "__get__" and owner is not None:
        of = getattr(owner, "__name__", None) or getattr(getattr(owner, "fget", None), "__name__", "?")
        return f"torch.Tensor.{of}.__get__"
    name = getattr(fn, "__name__", str(fn))
    return f"torch.Tensor.{name}" if name.startswith("__") else f"torch.{name}"


# ---- modes ----


def enter_mode(mode: Any) -> None:
    """Make `mode` the innermost one of this thread."""
    activate()
    state.modes.append(mode)
    thread_state.count_interceptors(1)


def leave_mode() -> Any:
    """Take the innermost mode off the stack, and return it."""
    mode = state.modes.pop()
    thread_state.count_interceptors(-1)
    return mode


class _without_innermost:  # noqa: N801 - used like a function
    """The innermost mode is off while it answers."""

    def __enter__(self) -> Any:
        self._mode = leave_mode()
        return self._mode

    def __exit__(self, *exc: object) -> None:
        enter_mode(self._mode)


# ---- what Tensor answers ----


def converted(result: Any, cls: type) -> Any:
    """Tensors of a result as `cls`, also in tuples and lists."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "_make"):
        return result._make(converted(r, cls) for r in result)
    if isinstance(result, (tuple, list)):
        return type(result)(converted(r, cls) for r in result)
    return result


NO_WRAP: set[Any] = set()  # attributes whose tensors are returned unchanged: filled below, after Tensor has them


def _default(cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
             kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """Compute as if the arguments were Tensors, and return tensors as `cls`. A class that overrides this decides what
    functions of its instances give; NotImplemented leaves the call to the next class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with subclasses_off():
        result = func(*args, **(kwargs or {}))
        return result if func in NO_WRAP else converted(result, cls)


def _init_subclass(cls: Any, /, **kwargs: Any) -> None:
    """A subclass takes part from its definition on, unless it says otherwise."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_function__ is not _disabled_torch_function_impl:
        activate()
        _intercept_attributes(cls)


Tensor.__torch_function__ = classmethod(_default)  # type: ignore[attr-defined]
Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment,arg-type]
NO_WRAP.update(getattr(Tensor, name).__get__ for name in ("grad", "_base"))


# ---- attributes and methods in C, which only subclasses have intercepted ----


def _asking(original: Any, fn: Any) -> Callable[..., Any]:
    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.off:
            return original(self, *args, **kwargs)
        return ask(fn, [self], (self, *args), kwargs)

    return get


def _intercept_attributes(cls: type) -> None:
    """Make the attributes and C methods that `cls` inherits from Tensor call the handler of `cls`."""
    for base in (Tensor, TensorBase):
        for name, raw in list(vars(base).items()):
            if name.startswith("_") or inspect.getattr_static(cls, name) is not raw:
                continue
            if isinstance(raw, types.MethodDescriptorType):
                setattr(cls, name, _asking(raw, raw))
            elif isinstance(raw, (property, types.GetSetDescriptorType)):
                get = raw.__get__
                setattr(cls, name, property(_asking(get, get), getattr(raw, "fset", None) or raw.__set__))


# ---- public functions ----

# Python's operators are calls of these methods, as in torch; the others are called by their own names.
_METHOD_OF: Final = {
    "add": "add", "radd": "add", "iadd": "add_", "sub": "sub", "isub": "sub_", "mul": "mul", "rmul": "mul", "imul": "mul_",
    "truediv": "div", "itruediv": "div_", "pow": "pow", "ipow": "pow_", "neg": "neg", "pos": "positive", "abs": "abs", "mod": "remainder",
    "imod": "remainder_", "matmul": "matmul", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne",
}  # fmt: skip
_SPECIAL: Final = frozenset(f"__{name}__" for name in (
    "getitem setitem len floordiv rfloordiv ifloordiv rsub rtruediv rpow rmod rmatmul invert and or xor rand ror rxor iand ior ixor "
    "lshift rshift rlshift rrshift ilshift irshift eq ne pos bool float int complex index contains repr format reversed "
    "deepcopy reduce_ex array").split()) | {f"__{name}__" for name in _METHOD_OF}  # fmt: skip
# Functions that take tensors and that torch does not intercept.
_NEVER: Final = frozenset(
    "is_tensor is_storage typename as_subclass compile save load set_printoptions manual_seed seed initial_seed get_rng_state "
    "set_rng_state set_default_dtype get_default_dtype set_default_device get_default_device promote_types can_cast attach "
    "no_grad enable_grad vmap register_hook backward_hook set_num_threads "
    "get_num_threads inference_mode is_grad_enabled set_grad_enabled gradcheck gradgradcheck".split()
)
_COMPUTES: Final = (engine._run,)  # a backward pass, which no handler intercepts
_lock = new_lock()
_active = False


_namespaces: Callable[[], Mapping[str, Mapping[str, Any]]] = dict


def set_namespaces(namespaces: Callable[[], Mapping[str, Mapping[str, Any]]]) -> None:
    """Register the public namespaces by name. `namespaces` is called once, when the first class takes part."""
    global _namespaces
    _namespaces = namespaces


def public_functions() -> Iterator[tuple[str, str, Any]]:
    """(namespace, name, function) of each public function that the active protocol intercepts; methods under `eager.Tensor`."""
    for namespace, functions in _namespaces().items():
        for name, fn in list(functions.items()):  # an import in another thread may add names
            if not name.startswith("_") and name not in _NEVER and isinstance(fn, (types.FunctionType, Op)):
                yield namespace, name, fn
    for name, fn in list(vars(Tensor).items()):
        wanted = name in _SPECIAL or not (name.startswith("_") or name in _NEVER)
        if wanted and isinstance(fn, (types.FunctionType, Op, type(vars(Tensor)["__mul__"]))):
            yield "eager.Tensor", name, fn


_interception: dict[Any, str] = {}  # by public function; "classes" where nothing is set


def set_interception(fn: Any, by: str) -> None:
    """Set how calls of a public function are intercepted.

    by: "classes" and modes; "modes" alone, where torch computes with subclasses as Tensors below its functions; "operands", as
    "classes", but with the operands of einsum passed one by one.
    """
    _interception[fn] = by


def activate() -> None:
    """Make the public functions call the handlers, from now on and in every thread."""
    global _active
    with _lock:
        if _active:
            return
        _active = True
        for namespace, name, fn in public_functions():
            if isinstance(fn, Op):
                continue  # all of them at once, below
            reported = _reported(namespace, name, fn)
            body = fn if isinstance(fn, types.FunctionType) else fn.__wrapped__
            if isinstance(body, types.FunctionType) and body.__code__.co_name != _ASKS:
                _replace_body(body, _MAKERS[_interception.get(body, "classes")], reported)
        for fn in _COMPUTES:
            _replace_body(fn, _quiet_handler, None)
        Op._call = _op_call(Op._call)  # type: ignore[method-assign]


def _reported(namespace: str, name: str, fn: Any) -> Any:
    """The function that a call of `fn` is reported as; it has the name that it is called by."""
    if namespace != "eager.Tensor":
        return fn
    if not name.startswith("__"):
        known = vars(Tensor).get(fn.__name__) is fn or getattr(sys.modules["eager"], fn.__name__, None) is fn
        if not known:
            fn.__name__ = fn.__qualname__ = name
        return fn
    method = vars(Tensor).get(_METHOD_OF.get(name.strip("_"), ""))
    if method is not None:
        return method
    fn.__name__ = fn.__qualname__ = name
    return fn


def _handler(original: Callable[..., Any], reported: Any) -> Handler:
    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        asked = [] if state.off else taking_part((*args, *kwargs.values()) if kwargs else args)
        if asked or (state.modes and not state.modes_off):
            return ask(reported, asked, args, kwargs)
        return original(*args, **kwargs)

    return handle


def _einsum_handler(original: Callable[..., Any], reported: Any) -> Handler:
    """Handlers receive the operands one by one, whether they were given one by one or as a sequence."""
    handle_spread = _handler(original, reported)

    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        lone = len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple))
        return handle_spread((args[0], *args[1]) if lone else args, kwargs)

    return handle


def _quiet_handler(original: Callable[..., Any], reported: Any) -> Handler:
    def handle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if reported is not None and state.modes and not state.modes_off:
            return ask(reported, [], args, kwargs)
        with subclasses_off():
            return original(*args, **kwargs)

    return handle


_MAKERS: Final = {"classes": _handler, "modes": _quiet_handler, "operands": _einsum_handler}


def _op_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def _call(self: Op, *args: Any, **kwargs: Any) -> Any:
        asked = [] if state.off else taking_part((*args, *kwargs.values()) if kwargs else args)
        if asked or (state.modes and not state.modes_off):
            return ask(self, asked, args, kwargs)
        return original(self, *args, **kwargs)

    return _call


_ASKS: Final = "asks_first"
_NO_LOCATION: Final = bytes((0x80 | 15 << 3,))  # of one code unit; CPython's Objects/locations.md


def _template(*args: Any, **kwargs: Any) -> Any:
    handle: Any = "the handler"
    return handle(args, kwargs)


def _replace_body(fn: Any, make_handler: Callable[[Callable[..., Any], Any], Handler], reported: Any) -> None:
    """Replace the body of a function in place: references to the function, and comparisons by identity, remain valid.

    A new function gets the old body, for the handler to call.
    """
    if not hasattr(fn, "__wrapped__"):
        fn.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    original = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    original.__kwdefaults__ = fn.__kwdefaults__
    handler = make_handler(original, reported)
    consts = tuple(handler if c == "the handler" else c for c in _template.__code__.co_consts)
    old = fn.__code__
    fn.__code__ = with_handler(_taking_cells(_template.__code__, old.co_freevars).replace(
        co_consts=consts, co_name=_ASKS, co_filename=old.co_filename, co_firstlineno=old.co_firstlineno))  # fmt: skip


def _taking_cells(code: types.CodeType, names: tuple[str, ...]) -> types.CodeType:
    """`code`, which has no free variables, with the given free variables.

    The interpreter assumes that a frame holds the cells of its free variables. If it does not, reading `f_locals` crashes, as
    debuggers and test runners do with a traceback. So the instruction that copies the cells comes first.
    """
    if not names:
        return code
    copy = bytes((dis.opmap["COPY_FREE_VARS"], len(names)))
    return code.replace(co_freevars=names, co_code=copy + code.co_code, co_linetable=_NO_LOCATION + code.co_linetable)


__all__ = ["activate", "answer", "ask", "converted", "enter_mode", "leave_mode", "name_of", "overrides", "public_functions", "state",
           "subclasses_off", "taking_part"]  # fmt: skip
