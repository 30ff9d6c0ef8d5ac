"""Argument checks of public functions: torch's TypeError, which names the argument, before the body runs.

What each parameter must be comes from torch's signature of the function (eager/optable/signatures.py). For functions that torch writes in
Python it comes from our annotations and, where these say `Any`, from the parameter's name: torch's names mean the same throughout.
A check that passed is not repeated for arguments of the same classes (eager/native/calls/argument_check.c). A Python type that stands for a
dtype (`dtype=float`) is replaced.
"""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.memory_format import layout, memory_format
from eager.base.scalars import TOO_BIG
from eager.cuda.memory import OutOfMemoryError
from eager.optable import signatures
from eager.optable.schema import is_number, unexpected_keyword

# For something else where a tensor belongs, in a function that torch writes in Python: torch's body fails over an attribute.
_NoTensorError: Final = type("TypeError", (TypeError, AttributeError), {"__module__": "builtins"})
_OF_NUMBERS = frozenset(("full", "scalar_tensor", "arange", "range", "linspace"))  # their ints are numbers, not sizes


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
    **{(f"adaptive_{how}_pool{n}d", "output_size"): "" for how in ("avg", "max") for n in (1, 2, 3)},  # of None among the numbers
    ("multilabel_soft_margin_loss", "target"): "Number", ("multilabel_soft_margin_loss", "weight"): "Number",
    ("gaussian_nll_loss", "target"): "Number",
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
# Flags that torch's own Python only asks for their truth, and what it never reads.
_LENIENT: Final = frozenset("inplace return_indices hard need_weights average_attn_weights add_zero_attn _stacklevel size_average "
                            "reduce".split())  # fmt: skip
_LENIENT_IN: Final = frozenset([
    ("gaussian_nll_loss", "full"), ("embedding", "norm_type"), ("embedding_bag", "norm_type"), ("embedding_bag", "include_last_offset"),
    ("gumbel_softmax", "eps"), ("interpolate", "recompute_scale_factor"), ("triplet_margin_with_distance_loss", "swap"),
    ("multi_head_attention_forward", "training"), ("lobpcg", "largest"), ("lobpcg", "niter"), ("lu", "get_infos"),
    ("pca_lowrank", "center"), ("stft", "center"),
    *((f"{how}_lowrank", name) for how in ("pca", "svd") for name in ("q", "niter")),
])  # fmt: skip
_OPTIONAL: Final = frozenset(("pin_memory", "stable"))  # flags that may be None
_ANY_VALUE: Final = frozenset(("reduction",))  # words for which the body refuses a value of another type as it does another word


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
        kind = _EXCEPT.get((fn.__name__, p.name), "") or _BY_ANNOTATION.get(annotated) or of_name
        if annotated == "str" and p.name in _ANY_VALUE:
            kind = None
        if kind and not fn.__name__.startswith("_foreach_"):
            found[p.name] = kind, "None" in others or p.name in _OPTIONAL
    return found


def said(parameter: str) -> str:
    """A parameter's name in torch's messages."""
    return "size" if parameter == "sizes" else parameter


def refuse(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
           is_method: bool = False) -> bool:  # fmt: skip
    """Raise TypeError, with torch's text, for the first argument that is not what its parameter must be.

    A default passes. A keyword that no parameter has is refused with the nearest parameter's name; other arguments that do not bind
    are left to Python's own error. Returns whether the classes of the arguments decided, and not their values.
    """
    try:
        signature, wanted = inspect.signature(fn), _wanted(fn)
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
        if parameter.name in _LENIENT or (fn.__name__, parameter.name) in _LENIENT_IN:
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


def out_of_memory(name: str, error: MemoryError) -> RuntimeError:
    """What torch raises for a MemoryError: of the GPU's allocator (CuPy's), or of the CPU."""
    if type(error).__module__.partition(".")[0] == "cupy":
        return OutOfMemoryError(f"CUDA out of memory. {name}: {error}")
    return RuntimeError(f"{name}: out of CPU memory: {error}")


def _verifier(fn: types.FunctionType, operator: str, spreads: bool,
              is_method: bool) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    """For `_native.ArgumentCheck`: holds a call of `fn` against the signatures of torch's operator, or against its own."""

    def verify(args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> Any:
        kwargs = kwargs or {}
        overloads = signatures.signatures(operator)
        if overloads and not signatures.is_former_order(operator, args):
            by_class = signatures.check(operator, overloads, args, kwargs, spreads, is_method)
        else:
            by_class = refuse(operator or fn.__name__, fn, args, kwargs, is_method)
        if by_class or not any(isinstance(value, type) for value in (*args, *kwargs.values())):
            return by_class
        return tuple(map(dtypes.meant, args)), {name: dtypes.meant(value) for name, value in kwargs.items()}

    return verify


@functools.cache
def refusing(fn: types.FunctionType, operator: str, public: str | None = None, spreads: bool = True,
             is_method: bool = False) -> Callable[..., Any]:  # fmt: skip
    """`fn`, with its arguments checked before it runs.

    operator: its name in torch's schemas. public: the module that users find it in under its name, which is how it pickles.
    spreads: whether a list of whole numbers may be given one by one. is_method: torch's texts do not count the first argument.
    """
    parsed = public != "eager.nn.functional" or operator in signatures.IN_FUNCTIONAL
    check = _native.ArgumentCheck(_verifier(fn, operator if parsed else "", spreads, is_method))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        replaced = check(args, kwargs)
        if replaced is not None:
            args, kwargs = replaced
        try:
            return fn(*args, **kwargs)
        except OverflowError as error:
            if str(error) == TOO_BIG and (fn.__name__ in _OF_NUMBERS or any(isinstance(a, Tensor) for a in (*args, *kwargs.values()))):
                raise
            raise ValueError("Overflow when unpacking long long") from None
        except MemoryError as error:
            raise out_of_memory(fn.__name__, error) from None

    if public is not None:
        call.__module__ = public
    return call


def all_refusing(functions: Mapping[str, Any], public: str | None = None, prefix: str = "", are_methods: bool = False) -> dict[str, Any]:
    """A namespace with its plain functions `refusing`. Ops among the values check their arguments themselves.

    An alias is checked under the name of its function, one without a name (a lambda) under its key.
    """
    return {name: refusing(fn, prefix + (fn.__name__ if fn.__name__ in functions else name), public, is_method=are_methods)
            if isinstance(fn, types.FunctionType) else fn for name, fn in functions.items()}  # fmt: skip


def make_refusing(module: dict[str, Any], prefix: str) -> None:
    """Replace the public functions that a module defines; for the end of the module. prefix: of the operators' names in torch."""
    own = {name: fn for name, fn in module.items() if not name.startswith("_") and getattr(fn, "__module__", "") == module["__name__"]}
    module.update(all_refusing(own, prefix=prefix))
