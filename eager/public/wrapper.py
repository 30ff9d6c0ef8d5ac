"""The one wrapper of a public function: check the arguments, run the steps that the call needs, run the body.

Owns the building of wrappers from records (`eager.public.record`) and of whole namespaces. A wrapper is one Python function, so
that it pickles, has a signature and can be compared by identity. There are three kinds of wrapper, and each function gets the
least: `_checked` calls the body after the check; `_with_rare_steps` runs the steps if the call needs one; `_with_steps` belongs
to functions of which every call needs the last step.
"""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from eager import _native
from eager._tensor import torch_function
from eager._tensor.tensor import Tensor
from eager.base import dtypes, thread_state
from eager.base.scalars import TOO_BIG
from eager.cuda.memory import OutOfMemoryError
from eager.optable import signatures
from eager.public import argument_types, matching
from eager.public.record import Public, Variant, record_of
from eager.public.steps import Steps, is_former_order, numpy_names, renamed

_OUTSIDE_SCHEMAS = "eager.nn.functional"  # most functions of this namespace are Python in torch, and no schema describes them
_NEVER = 1 << 30


def publish(functions: Mapping[str, Any], namespace: str | None = None, prefix: str = "", are_methods: bool = False) -> dict[str, Any]:
    """A namespace's table with each plain function wrapped. Ops and other values stay: ops check their arguments themselves.

    namespace: the module in which users find the functions, which is how they pickle. prefix: of the operators' names in torch.
    are_methods: error texts do not count the tensor among the arguments, and no `out=` is taken.
    """
    found = {}
    for key, value in functions.items():
        body, record = value if isinstance(value, Variant) else (value, None)
        if isinstance(body, types.FunctionType):
            own = record.name if record is not None and record.name else body.__name__
            name = own if own in functions else key
            value = wrap(body, prefix + name, namespace, is_method=are_methods, record=record)
        found[key] = value
    return found


def publish_module(module: dict[str, Any], prefix: str) -> None:
    """Wrap the public functions that a module defines, in place: the last statement of the module."""
    own = {name: fn for name, fn in module.items() if not name.startswith("_") and getattr(fn, "__module__", "") == module["__name__"]}
    module.update(publish(own, prefix=prefix))


@functools.cache
def wrap(body: types.FunctionType, operator: str, namespace: str | None = None, is_method: bool = False,
         record: Public | None = None, name: str = "") -> types.FunctionType:  # fmt: skip
    """The wrapper of one public function; the same object for the same arguments.

    operator: its name in torch's schemas. namespace: the module in which users find it. record: in place of the body's own.
    name: the public name, by default that in the record or the body's.
    """
    record = record_of(body) if record is None else record
    call: Any
    if record.composed:
        body = inspect.unwrap(body)
    name = name or record.name or body.__name__
    out = None if is_method else record.out
    check = _native.ArgumentCheck(_verifier(body, record, operator, namespace, is_method))
    reports = _error_of(name, record)
    if record.composed or record.copied or (record.ints_apart and is_method):
        call = _with_steps(check, Steps(name, body, record, out), reports)
    elif out is not None or record.axis or record.former or record.autocast is not None:
        call = _with_rare_steps(check, body, Steps(name, body, record, out), reports)
    else:
        call = _checked(check, body, reports)
    functools.update_wrapper(call, body)
    call.__name__ = call.__qualname__ = name
    if record.doc:
        call.__doc__ = record.doc
    if record.interception != "classes":
        torch_function.set_interception(call, record.interception)
    if namespace is not None:
        call.__module__ = namespace
    return call


# ---- the kinds of wrapper ----

_Reports = Callable[[Exception, tuple[Any, ...], Mapping[str, Any]], Exception]


def _checked(check: _native.ArgumentCheck, body: Callable[..., Any], reports: _Reports) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        replaced = check(args, kwargs)
        if replaced is not None:
            args, kwargs = replaced
        try:
            return body(*args, **kwargs)
        except (OverflowError, MemoryError) as error:
            raise reports(error, args, kwargs) from None

    return call


def _with_rare_steps(check: _native.ArgumentCheck, body: Callable[..., Any], steps: Steps, reports: _Reports) -> Callable[..., Any]:
    keywords, most, listed = _signs_of_steps(steps)
    mode_depth, autocast_on = _native.mode_depth, thread_state.AUTOCAST

    def call(*args: Any, **kwargs: Any) -> Any:
        replaced = check(args, kwargs)
        if replaced is not None:
            args, kwargs = replaced
        try:
            if (kwargs and not keywords.isdisjoint(kwargs)) or (listed and mode_depth() & autocast_on) or len(args) > most:
                return steps(args, kwargs)
            return body(*args, **kwargs)
        except (OverflowError, MemoryError) as error:
            raise reports(error, args, kwargs) from None

    return call


def _with_steps(check: _native.ArgumentCheck, steps: Steps, reports: _Reports) -> Callable[..., Any]:
    keywords, most, listed = _signs_of_steps(steps)
    mode_depth, autocast_on = _native.mode_depth, thread_state.AUTOCAST
    compute = steps.last_step()

    def call(*args: Any, **kwargs: Any) -> Any:
        replaced = check(args, kwargs)
        if replaced is not None:
            args, kwargs = replaced
        try:
            if (kwargs and not keywords.isdisjoint(kwargs)) or (listed and mode_depth() & autocast_on) or len(args) > most:
                return steps(args, kwargs)
            return compute(args, kwargs)
        except (OverflowError, MemoryError) as error:
            raise reports(error, args, kwargs) from None

    return call


def _signs_of_steps(steps: Steps) -> tuple[frozenset[str], int, bool]:
    """The signs that a call needs a step: keywords, a number of positional arguments, whether an autocast block matters."""
    keywords = frozenset((*steps.renames, *(("out",) if steps.out is not None else ())))
    most = min(map(len, steps.record.former), default=_NEVER) - 1
    return keywords, most, steps.record.autocast is not None


# ---- the check of arguments ----


def _verifier(body: types.FunctionType, record: Public, operator: str, namespace: str | None,
              is_method: bool) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:  # fmt: skip
    """For `_native.ArgumentCheck`: holds a call against the signatures of torch's operator, or else against the body's own."""
    parsed = namespace != _OUTSIDE_SCHEMAS if record.parsed is None else record.parsed
    said = operator if parsed or namespace != _OUTSIDE_SCHEMAS else body.__name__
    spreads = is_method or not record.lists_only

    def verify(args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> Any:
        kwargs = kwargs or {}
        overloads = signatures.signatures(operator, record.schemas) if parsed else ()
        if overloads and not is_former_order(record.former, args):
            by_class = matching.check(operator, overloads, args, kwargs, spreads, is_method, record.numbers_as_tensors)
        else:
            if record.axis:
                kwargs = renamed(said, numpy_names(body), dict(kwargs))
            by_class = argument_types.refuse(said, body, record, args, kwargs, is_method)
        if by_class or not any(isinstance(value, type) for value in (*args, *kwargs.values())):
            return by_class
        return tuple(map(dtypes.meant, args)), {name: dtypes.meant(value) for name, value in kwargs.items()}

    return verify


# ---- errors of the body ----


def _error_of(name: str, record: Public) -> _Reports:
    def reports(error: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception:
        if isinstance(error, MemoryError):
            return out_of_memory(name, error)
        if str(error) == TOO_BIG and (record.ints_are_numbers or any(isinstance(a, Tensor) for a in (*args, *kwargs.values()))):
            return error
        return ValueError("Overflow when unpacking long long")

    return reports


def out_of_memory(name: str, error: MemoryError) -> RuntimeError:
    """torch's error for a MemoryError: OutOfMemoryError from the GPU's allocator (CuPy's), RuntimeError on the CPU."""
    if type(error).__module__.partition(".")[0] == "cupy":
        return OutOfMemoryError(f"CUDA out of memory. {name}: {error}")
    return RuntimeError(f"{name}: out of CPU memory: {error}")
