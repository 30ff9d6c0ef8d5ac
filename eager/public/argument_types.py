"""The check of a call's arguments by annotations and names, for functions that no schema of torch describes.

torch writes these functions in Python. The type of a parameter comes from the record (`kinds`), else from our annotation, else
from the parameter's name: a name has one meaning throughout torch. `eager.public.matching` checks the other functions.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.memory_format import layout, memory_format
from eager.optable.schema import is_number, unexpected_keyword
from eager.public.record import Public

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
