"""The one wrapper of a public function: check the arguments, run the steps that the call needs, run the body.

Owns the building of wrappers from records (`eager.public.record`) and of whole namespaces; the check of arguments by annotations and
names; and the steps: autocast, `out=`, former order of arguments, numpy's names, halves in float32, the copy of a view.
A wrapper is one Python function, so that it pickles, has a signature and can be compared by identity. There are three kinds of wrapper,
and each function gets the least: `_checked` calls the body after the check; `_with_rare_steps` runs the steps if the call needs one;
`_with_steps` belongs to functions of which every call needs the last step.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from eager import _native
from eager._tensor import torch_function
from eager._tensor.tensor import Tensor
from eager.base import dtypes, thread_state
from eager.base.device import device
from eager.base.dtypes import scalar_name
from eager.base.memory_format import layout, memory_format
from eager.base.overlap import check_out
from eager.base.scalars import TOO_BIG
from eager.base.warn import warn
from eager.cuda.memory import OutOfMemoryError
from eager.optable import autocast, opmath, signatures
from eager.optable.declaration import cast_to, is_number, unexpected_keyword
from eager.optable.out import write_out
from eager.optable.table import OPS
from eager.public import matching
from eager.public.record import Orders, Out, Public, Variant, record_of

# -- the steps between the check of arguments and the body, in their order ------------------------------------------
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


# -- the types of arguments -----------------------------------------------------------------------------------------
# The error for a value that is not a tensor: torch's body, in Python, fails with an AttributeError.
_NoTensorError: Final = type("TypeError", (TypeError, AttributeError), {"__module__": "builtins"})


def _named(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


# The type of a parameter by its name, where its annotation is `Any`.
_BY_NAME: Final = {
    **_named("Tensor", "input self x y v A B L tensor mat1 mat2 vec vec1 vec2 batch1 batch2 mask index tensor1 tensor2 mat prob "
             "LU_data LU_pivots x1 x2 weight count src source the_template window fweights aweights offsets tau"),
    **_named("Tensor or tuple of Tensors", "out"),
    **_named("tuple of ints", "dim dims s kernel_size dilation output_size size sizes shape order repeats split_sizes normalized_shape "
             "stride padding pad shifts"),
    **_named("torch.dtype", "dtype"), **_named("torch.memory_format", "memory_format"), **_named("torch.layout", "layout"),
    **_named("torch.device", "device"),
    **_named("tuple of Tensors", "tensors operands"),
    **_named("Number", "alpha beta other min max value exponent lambd negative_slope margin threshold min_val max_val"),
}
_BY_ANNOTATION: Final = {"int": "int", "bool": "bool", "float": "float", "str": "str", "Tensor": "Tensor"}
# Flags of which torch's Python code only tests the truth, and parameters that it never reads.
_LENIENT: Final = frozenset("inplace return_indices hard need_weights average_attn_weights add_zero_attn _stacklevel size_average "
                            "reduce".split())  # fmt: skip
_OPTIONAL: Final = frozenset(("pin_memory", "stable"))  # flags that may be None
_ANY_VALUE: Final = frozenset(("reduction",))  # the body reports a value of another type as it reports an unknown word


def _is_tensor(value: Any) -> bool:
    """Whether a value counts as a tensor: tensors, sparse tensors, specs, and users' tensor-like classes."""
    return (hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))) or hasattr(value, "__torch_function__")


def _is_int(value: Any) -> bool:
    return is_number(value) and not isinstance(value, (bool, float, complex, np.floating, np.bool_))


def _is_ints(value: Any) -> bool:
    return all(_is_int(v) for v in value) if isinstance(value, (list, tuple)) else _is_int(value)


def _is_tensors(value: Any) -> bool:
    return _is_tensor(value) or isinstance(value, (list, tuple))  # the body reports an element that is not a tensor


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "Tensor": _is_tensor,
    "tuple of Tensors": _is_tensors,
    "Tensor or tuple of Tensors": _is_tensors,
    "int": _is_int,
    "tuple of ints": _is_ints,
    "float": lambda value: is_number(value) and not isinstance(value, complex),
    "Number": lambda value: _is_tensor(value) or is_number(value),
    "bool": lambda value: isinstance(value, (bool, np.bool_)) or type(value).__name__ == "SymBool",
    "str": lambda value: isinstance(value, str),
    "torch.dtype": lambda value: isinstance(dtypes.meant(value), dtypes.dtype),
    "torch.memory_format": lambda value: isinstance(value, memory_format),
    "torch.layout": lambda value: isinstance(value, layout),
    "torch.device": lambda value: isinstance(value, (device, str)) or _is_int(value),
}


@functools.cache
def _wanted(fn: Callable[..., Any], record: Public) -> dict[str, tuple[str, bool]]:
    """The type of each parameter of `fn` and whether it may be None, for parameters whose type is known."""
    found = {}
    for p in inspect.signature(fn).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            continue
        stated = record.kinds.get(p.name)
        annotated, *others = str(p.annotation).split(" | ")
        kind = stated or _BY_ANNOTATION.get(annotated) or (_BY_NAME.get(p.name) if stated is None else stated)
        if annotated == "str" and p.name in _ANY_VALUE:
            kind = None
        if kind and not fn.__name__.startswith("_foreach_"):
            found[p.name] = kind, "None" in others or p.name in _OPTIONAL
    return found


def said(parameter: str) -> str:
    """A parameter's name in torch's messages."""
    return "size" if parameter == "sizes" else parameter


def refuse(name: str, fn: Callable[..., Any], record: Public, args: tuple[Any, ...], kwargs: Mapping[str, Any],
           is_method: bool = False) -> bool:  # fmt: skip
    """Check a call against the types of a body's parameters. Returns whether the classes of the arguments alone decided.

    A parameter's default passes. If the arguments do not bind, Python's own error follows in the body.
    Raises: TypeError, with torch's text, for the first argument of a wrong type, and for an unknown keyword, with the nearest name.
    """
    try:
        signature, wanted = inspect.signature(fn), _wanted(fn, record)
    except (TypeError, ValueError):  # an op under another name, which has no signature
        return False
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        unknown = next((key for key in kwargs if key not in signature.parameters), None)
        if unknown is None or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            return False
        raise TypeError(unexpected_keyword(name, unknown, signature.parameters)) from None
    position, by_class = -1 if is_method else 0, True
    for parameter in signature.parameters.values():
        kind, optional = wanted.get(parameter.name, (None, False))
        if parameter.name in _LENIENT or parameter.name in record.lenient:
            kind = None
        several = parameter.kind is parameter.VAR_POSITIONAL
        value = given.get(parameter.name, () if several else parameter.default)
        for item in value if several else (value,):
            position += 1
            if kind is None or item is parameter.default or (optional and item is None):
                continue
            takes_tensors = kind.startswith(("Tensor", "tuple of Tensor", "Number"))
            by_class &= not isinstance(item, type) and (takes_tensors or not isinstance(item, Tensor))
            if not _FITS[kind](item):
                wrong = _NoTensorError if kind == "Tensor" else TypeError
                raise wrong(f"{name}(): argument '{said(parameter.name)}' (position {position}) must be {kind}, not "
                                f"{type(item).__name__}")  # fmt: skip
    missing = [p.name for p in signature.parameters.values()
               if p.default is p.empty and p.name not in given and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    if missing:  # torch's plurals
        names, plural = ", ".join(f'"{n}"' for n in missing), "s" if len(missing) == 1 else ""
        raise TypeError(f"{name}() missing {len(missing)} required positional argument{plural}: {names}")
    return by_class


# -- wrappers -------------------------------------------------------------------------------------------------------
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
            by_class = refuse(said, body, record, args, kwargs, is_method)
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
