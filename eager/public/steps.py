"""The steps of a public function's wrapper between the check of arguments and the body, in their order.

autocast, `out=`, former order of arguments, numpy's names, halves in float32, the copy of a view. A wrapper comes here only
for calls that need one of them.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from eager import _native
from eager.base import dtypes, thread_state
from eager.base.dtypes import scalar_name
from eager.base.overlap import check_out
from eager.base.warn import warn
from eager.optable import autocast, opmath
from eager.optable.formulas import cast_to
from eager.optable.out import write_out
from eager.optable.table import OPS
from eager.public.record import Orders, Out, Public

TensorBase = _native.TensorBase
Body = Callable[..., Any]
Args = tuple[Any, ...]
Keywords = dict[str, Any]
_NUMPY_NAMES: Final = {"axis": "dim", "keepdims": "keepdim"}
_mode_depth, _AUTOCAST = _native.mode_depth, thread_state.AUTOCAST


class Steps:
    """The steps of one wrapper: the function from arguments to result that runs when a call needs more than the body."""

    __slots__ = ("name", "body", "record", "out", "renames")

    def __init__(self, name: str, body: Body, record: Public, out: Out | None) -> None:
        self.name, self.body, self.record, self.out = name, body, record, out
        self.renames = numpy_names(body) if record.axis else {}

    def __call__(self, args: Args, kwargs: Keywords) -> Any:
        precision = self.record.autocast
        if precision is not None and _mode_depth() & _AUTOCAST:
            return autocast.call_listed(precision, self._write, args, kwargs)
        return self._write(args, kwargs)

    def last_step(self) -> Callable[[Args, Keywords], Any]:
        """The function from arguments to result for calls without autocast, `out=` and other names or orders of arguments."""
        if self.record.composed:
            return functools.partial(opmath.in_float32, self.body, cast_to)
        return self._compute

    def _write(self, args: Args, kwargs: Keywords) -> Any:
        if self.out is None:
            return self._compute(args, kwargs)
        target = kwargs.pop("out", None)
        if target is None:
            return self._compute(args, kwargs)
        return write_into(target, self.out, self._compute, args, kwargs)

    def _compute(self, args: Args, kwargs: Keywords) -> Any:
        record = self.record
        if record.former:
            args, kwargs = in_todays_order(self.name, record.former, args, kwargs)
        if kwargs and self.renames:
            kwargs = renamed(self.name, self.renames, kwargs)
        if record.ints_apart and len(args) > 2:
            args = (args[0], args[1:])
        result = opmath.in_float32(self.body, cast_to, args, kwargs) if record.composed else self.body(*args, **kwargs)
        return _copied(result) if record.copied else result


# ---- out= ----


def write_into(target: Any, out: Out, compute: Callable[[Args, Keywords], Any], args: Args, kwargs: Keywords) -> Any:
    """The result of a function, written into `out=`. Raises what `Out` and `write_out` name."""
    if out.not_over_inputs or out.not_over_itself:
        check_out(target, args if out.not_over_inputs else (), out.not_over_itself)
    result = compute(args, kwargs)
    if out.joins and isinstance(target, TensorBase) and not dtypes.can_cast(result.dtype, target.dtype):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {scalar_name(target.dtype)}")
    return write_out(target, result, out.exact, out.differentiable)


# ---- former orders of arguments ----

_warned: list[str] = []  # the function that was warned about: torch warns once


def _pattern(args: Args) -> str:
    """The key of a call in a record's former orders."""
    return "".join("t" if isinstance(a, TensorBase) else "n" for a in args)


def is_former_order(former: Orders, args: Args) -> bool:
    """Whether the arguments of a call are in a former order."""
    return bool(former) and _pattern(args) in former


def in_todays_order(name: str, former: Orders, args: Args, kwargs: Keywords) -> tuple[Args, Keywords]:
    """The arguments of a call, with numbers of a former order as keywords. Warns about the first such call."""
    keywords = former.get(_pattern(args))
    if keywords is None or not kwargs.keys().isdisjoint(keywords):
        return args, kwargs
    if not _warned:
        _warned.append(name)
        warn(f"This overload of {name} is deprecated: a number before a tensor. Give it by keyword: {', '.join(keywords)}.")
    numbers = [a for a in args if not isinstance(a, TensorBase)]
    tensors = tuple(a for a in args if isinstance(a, TensorBase))
    return tensors, dict(zip(keywords, numbers, strict=True)) | kwargs


# ---- numpy's names ----


def numpy_names(body: Body) -> dict[str, str]:
    """numpy's names for parameters of a body, and the names in torch. A parameter with numpy's name is left alone."""
    code = body.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {theirs: ours for theirs, ours in _NUMPY_NAMES.items() if ours in names and theirs not in names}


def renamed(name: str, renames: dict[str, str], kwargs: Keywords) -> Keywords:
    """Keywords with torch's names for numpy's. Raises: TypeError if one argument has both names."""
    for theirs, ours in renames.items():
        if theirs in kwargs and ours in kwargs:
            raise TypeError(f"{name}() got both '{theirs}' and '{ours}', which name one argument")
    return {renames.get(k, k): v for k, v in kwargs.items()}


# ---- copies of views ----


def _copied(view: Any) -> Any:
    return OPS["clone"](view, "contiguous") if isinstance(view, TensorBase) else tuple(_copied(v) for v in view)
