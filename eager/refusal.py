"""Wrong types of arguments: torch's TypeError, which names the argument.

Flags and whole numbers, and every argument passed by keyword, are checked before the body runs: a body would take 'a' for
true and True for 1. Other positional arguments are checked only after the body failed, so that a correct call pays nothing
for them. The type of a parameter is read from the function's annotations and, where these say `Any`, from its name: torch's
names mean the same throughout. A Python type that stands for a dtype (`dtype=float`) is replaced, and the call repeated.
"""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from eager import dtypes
from eager.cuda.memory import OutOfMemoryError
from eager.device import device
from eager.memory_format import layout, memory_format
from eager.optable.schema import is_number
from eager.optable.table import TOO_BIG
from eager.tensor import Tensor


def _named(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


# What an argument of that name must be, where its annotation leaves it open.
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
# Where a name means something else than elsewhere.
_EXCEPT: Final = {
    ("lerp", "weight"): "Number", ("lerp_", "weight"): "Number", ("scatter", "src"): "Number", ("scatter_", "src"): "Number",
    ("scalar_tensor", "s"): "Number", ("vector_norm", "ord"): "Number", ("_powsum", "ord"): "Number",
    ("lstsq", "b"): "Tensor", ("tensorsolve", "other"): "Tensor",
    # one argument for several overloads: of any type
    ("type_", "dtype"): "", ("view", "sizes"): "", ("repeat_interleave", "repeats"): "", ("tensordot", "dims"): "",
    **{(f, "input"): "Number" for f in "searchsorted bucketize float_power add sub div pow where".split()},
    **{(f, "dim"): "" for f in "var std var_mean std_mean max min".split()},
    **{(f, "source"): "tuple of ints" for f in ("movedim", "moveaxis")},
    **{(f, "padding"): "" for f in "conv1d conv2d conv3d".split()},  # which may be a word
    **{(f, "other"): "Tensor"
       for f in "kron inner equal cross isclose allclose is_same_size type_as is_set_to dist expand_as view_as reshape_as".split()},
}  # fmt: skip
_BY_ANNOTATION: Final = {"int": "int", "bool": "bool", "float": "float", "str": "str", "Tensor": "Tensor"}
_EXACT: Final = {"bool": bool, "int": int}
# Flags that torch's own Python only asks for their truth, and what it never reads.
_LENIENT: Final = frozenset("inplace return_indices hard need_weights average_attn_weights add_zero_attn _stacklevel size_average "
                            "reduce".split())  # fmt: skip
_LENIENT_IN: Final = frozenset([("gaussian_nll_loss", "full")])
_OPTIONAL: Final = frozenset(("pin_memory", "stable"))  # flags that may be None
_ANY_VALUE: Final = frozenset(("reduction",))  # words for which the body refuses a value of another type as it does another word
_FAILURES: Final = (AttributeError, TypeError, ValueError, LookupError, RuntimeError, AssertionError, ArithmeticError)


def _is_tensor(value: Any) -> bool:
    """Tensors, sparse ones, specs, and what users made to be taken for one."""
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
def _wanted(fn: Callable[..., Any]) -> dict[str, tuple[str, bool]]:
    """What each parameter of `fn` must be and whether it may be None, for those of which anything is known."""
    found = {}
    for p in inspect.signature(fn).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            continue
        of_name = _EXCEPT.get((fn.__name__, p.name), _BY_NAME.get(p.name))
        annotated, *others = str(p.annotation).split(" | ")
        kind = None if annotated == "str" and p.name in _ANY_VALUE else _BY_ANNOTATION.get(annotated) or of_name
        if kind and not fn.__name__.startswith("_foreach_"):
            found[p.name] = kind, "None" in others or p.name in _OPTIONAL
    return found


def said(parameter: str) -> str:
    """A parameter's name in torch's messages."""
    return "size" if parameter == "sizes" else parameter


def refuse(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError, with torch's text, for the first argument that is not what its parameter must be.

    A default passes, and what does not bind to the parameters at all is left to Python's own error.
    """
    try:
        signature, wanted = inspect.signature(fn), _wanted(fn)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # it does not bind, or is an op under another name, which has no signature
        return
    position = 0
    for parameter in signature.parameters.values():
        kind, optional = wanted.get(parameter.name, (None, False))
        several = parameter.kind is parameter.VAR_POSITIONAL
        value = given.get(parameter.name, () if several else parameter.default)
        if kind is not None and several and not value and not kwargs:
            raise TypeError(f'{name}() missing 1 required positional arguments: "{said(parameter.name)}"') from None
        for item in value if several else (value,):
            position += 1
            if kind is None or item is parameter.default or (optional and item is None):
                continue
            if not _FITS[kind](item):
                raise TypeError(f"{name}(): argument '{said(parameter.name)}' (position {position}) must be {kind}, not "
                                f"{type(item).__name__}") from None  # fmt: skip
    missing = [p.name for p in signature.parameters.values()
               if p.default is p.empty and p.name not in given and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    if missing:  # torch's plurals
        names, plural = ", ".join(f'"{n}"' for n in missing), "s" if len(missing) == 1 else ""
        raise TypeError(f"{name}() missing {len(missing)} required positional argument{plural}: {names}") from None


def _with_dtypes(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments | None:
    """The arguments with dtypes for the Python types among them that stand for one, or None if there are none.

    A body fails over such a type before it writes anything. Those that draw take it for themselves, to draw once.
    """
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    given = bound.arguments.get("dtype")
    if dtypes.meant(given) is given or _wanted(fn).get("dtype", ("",))[0] != "torch.dtype":
        return None
    bound.arguments["dtype"] = dtypes.meant(given)
    return bound


# The classes that each kind has in most calls: an argument of one of these is looked at no further.
_USUAL: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,), "int": (int,), "str": (str,), "float": (float, int), "Number": (float, int, Tensor), "Tensor": (Tensor,),
    "tuple of ints": (int,), "tuple of Tensors": (), "Tensor or tuple of Tensors": (Tensor,), "torch.dtype": (dtypes.dtype,),
    "torch.memory_format": (memory_format,),
    "torch.layout": (layout,), "torch.device": (device, str),
}  # fmt: skip


def _usual(fn: types.FunctionType) -> dict[str, tuple[type, ...]]:
    """For each parameter whose kind is known, the classes of arguments that are taken without a further look."""
    found: dict[str, tuple[type, ...]] = {}
    try:
        wanted, parameters = _wanted(fn), inspect.signature(fn).parameters
    except ValueError:  # an op under another name: it refuses by its schema
        return found
    for name, (kind, optional) in wanted.items():
        if name not in _LENIENT and (fn.__name__, name) not in _LENIENT_IN:
            default = parameters[name].default
            found[name] = (*_USUAL[kind], type(None)) if optional or default is None else _USUAL[kind]
    return found


def out_of_memory(name: str, error: MemoryError) -> RuntimeError:
    """What torch raises for a MemoryError: of the GPU's allocator (CuPy's), or of the CPU."""
    if type(error).__module__.partition(".")[0] == "cupy":
        return OutOfMemoryError(f"CUDA out of memory. {name}: {error}")
    return RuntimeError(f"{name}: out of CPU memory: {error}")


def _exact(fn: types.FunctionType) -> tuple[tuple[int, str, type], ...]:
    """Positional parameters that are flags or whole numbers: position, name and class."""
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    found = ((at, name, _EXACT.get(fn.__annotations__.get(name, ""))) for at, name in enumerate(names))
    return tuple((at, name, kind) for at, name, kind in found
                 if kind and name not in _LENIENT and (fn.__name__, name) not in _LENIENT_IN)  # fmt: skip


@functools.cache
def refusing(fn: types.FunctionType, public: str | None = None) -> Callable[..., Any]:
    """`fn`, whose failures over an argument of a wrong type are TypeErrors that name the argument.

    public: the module that users find it in under its name, which is how it pickles.
    """

    exact = _exact(fn)
    usual: dict[str, tuple[type, ...]] | None = None

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal usual
        count = len(args)
        for at, _, kind in exact:  # a body would take these for what they are not: 'a' is true, True is 1
            if at >= count:
                break
            value = args[at]
            if value.__class__ is not kind and value is not None and not _FITS[kind.__name__](value):
                refuse(fn.__name__, fn, args, kwargs)
        if kwargs:
            if usual is None:  # made at the first call: reading all signatures would slow the import
                usual = _usual(fn)
            for parameter, value in kwargs.items():
                if parameter in usual and value.__class__ not in usual[parameter]:
                    refuse(fn.__name__, fn, args, kwargs)
                    break
        try:
            return fn(*args, **kwargs)
        except _FAILURES as error:
            if (meant := _with_dtypes(fn, args, kwargs)) is not None:
                return fn(*meant.args, **meant.kwargs)
            refuse(fn.__name__, fn, args, kwargs)
            is_operand = str(error) == TOO_BIG and any(isinstance(a, Tensor) for a in (*args, *kwargs.values()))
            if isinstance(error, OverflowError) and not is_operand:
                raise ValueError("Overflow when unpacking long long") from None
            raise
        except MemoryError as error:
            raise out_of_memory(fn.__name__, error) from None

    if public is not None:
        call.__module__ = public
    return call


def all_refusing(functions: Mapping[str, Any], public: str | None = None) -> dict[str, Any]:
    """A namespace with its plain functions `refusing`. Ops among the values refuse by their schema."""
    return {name: refusing(fn, public) if isinstance(fn, types.FunctionType) else fn for name, fn in functions.items()}


def make_refusing(module: dict[str, Any]) -> None:
    """Replace the public functions that a module defines; for the end of the module."""
    own = {name: fn for name, fn in module.items() if not name.startswith("_") and getattr(fn, "__module__", "") == module["__name__"]}
    module.update(all_refusing(own))
