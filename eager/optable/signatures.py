"""What torch's own parser of arguments takes: the signatures of its operators, and the check of a call against them.

Owns the reading of aten_schemas.txt, and the rules by which torch 2.13 derives the signatures of its Python functions from the
schemas there and matches arguments (torch/csrc/utils/python_arg_parser.cpp). Knows nothing of what the functions compute.
A schema is read when a function is first called with arguments of new classes, so the import pays nothing for it.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import device
from eager.base.memory_format import layout, memory_format
from eager.optable.schema import is_number, nearest_keyword, unexpected_keyword
from eager.startup.places import EAGER_DIR

TensorBase = _native.TensorBase
_SCHEMAS: Final = Path(EAGER_DIR) / "_ops" / "aten_schemas.txt"

# Functions of torch that are written in Python, or whose arguments are read by hand: the schemas do not describe them.
_NOT_PARSED: Final = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum meshgrid norm split stft "
    "istft tensordot unique_consecutive backward index resize resize_as unflatten type size stride item numpy contiguous "
    "tensor as_tensor normal polygamma nonzero requires_grad_ data_ptr is_contiguous range record_stream set_ new "
    "log_softmax softmax dropout alpha_dropout feature_alpha_dropout feature_dropout".split()
)  # fmt: skip
# Signatures of Tensor's methods that torch writes by hand.
_TORCHSCRIPT: Final = re.compile(r"(?!_foreach_)\w+\.\w+\((Tensor|t)\[\]\(a!\) self")  # its methods of lists
_TO: Final = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor"
_BY_HAND: Final = {
    "copy_": ("copy_(Tensor self, Tensor other, bool non_blocking=False) -> Tensor",),
    "to": (f"to(Tensor self, Device? device=None, ScalarType? dtype=None, {_TO}", f"to(Tensor self, ScalarType dtype, {_TO}",
           f"to(Tensor self, Tensor tensor, {_TO}"),
}  # fmt: skip
# Functions of nn.functional that are operators; torch writes the others in Python.
IN_FUNCTIONAL: Final = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_ linear native_channel_shuffle "
    "one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ scaled_dot_product_attention selu_ softplus "
    "softshrink threshold_".split()
)  # fmt: skip
# Operators for whose tensors torch takes numbers.
NUMBERS_AS_TENSORS: Final = frozenset(
    name + suffix
    for name in "add div divide mul multiply sub subtract true_divide floor_divide copy".split() for suffix in ("", "_")
)  # fmt: skip
# Names of numpy for parameters, which torch takes as well.
_OTHER_NAMES: Final = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("self", "x", "a", "x1"), "other": ("x2",)}
# Orders of arguments that torch had before its factors became keywords: t a tensor, n a number, and the keywords of the numbers.
_ALPHA: Final = {"tnt": ("alpha",)}
_VALUE: Final = {"tntt": ("value",)}
_BETA: Final = {"nttt": ("beta",), "ntntt": ("beta", "alpha"), "tntt": ("beta",), "tnntt": ("beta", "alpha")}
FORMER_ORDERS: Final[dict[str, Mapping[str, tuple[str, ...]]]] = {
    **dict.fromkeys(("add", "add_", "sub", "sub_"), _ALPHA),
    **dict.fromkeys(("addcmul", "addcmul_", "addcdiv", "addcdiv_"), _VALUE),
    **{name + suffix: _BETA for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm") for suffix in ("", "_")},
}
_PARAMETER: Final = re.compile(r"(?P<kind>\w+)(?:\([^)]*\))?\??(?P<list>\[\d*\])?(?:\([^)]*\))?\?? (?P<name>\w+)(?P<default>=.*)?")
_TEXT: Final = {"SymInt": "int", "Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout", "Device": "torch.device",
                "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator", "double": "float"}  # fmt: skip


def pattern_of(args: tuple[Any, ...]) -> str:
    """The key of a call in FORMER_ORDERS."""
    return "".join("t" if isinstance(a, TensorBase) else "n" for a in args)


def is_former_order(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a call of this function has its former order of arguments."""
    return name in FORMER_ORDERS and pattern_of(args) in FORMER_ORDERS[name]


@dataclass(frozen=True, slots=True)
class Parameter:
    """kind: of the value or of the elements. length: of a list that one number may stand for; 0 for any other list."""

    name: str
    kind: str
    is_list: bool
    length: int
    takes_none: bool
    required: bool
    keyword_only: bool

    @property
    def wanted(self) -> str:
        """The type in torch's messages."""
        kind = _TEXT.get(self.kind, self.kind)
        return f"tuple of {kind}s" if self.is_list else kind


@dataclass(slots=True)
class Match:
    """How far a call fits a signature: what is wrong, or None; and whether a value, not only the classes, decided."""

    wrong: str | None = None
    by_value: bool = False


@functools.cache
def schema_lines() -> Mapping[str, tuple[str, ...]]:
    """The lines of aten_schemas.txt (`schema ; tags`) by operator."""
    found: dict[str, list[str]] = {}
    for line in _SCHEMAS.read_text().splitlines():
        if not line.startswith("#"):
            found.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def _parameters(schema: str) -> list[Parameter]:
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    found, keyword_only = [], False
    for part in re.split(r", (?![^\[(]*[\])])", inside) if inside else []:
        if part == "*":
            keyword_only = True
            continue
        m = _PARAMETER.fullmatch(part)
        if m is None:
            raise ValueError(f"schema: cannot read {part!r} in {schema!r}")
        listed, default = m["list"], m["default"]
        takes_none = "?" in part[: m.start("name")] or default in ("=None", "=[]")
        name = "input" if m["name"] == "self" and m["kind"] == "Tensor" else m["name"]
        found.append(Parameter(name, m["kind"], bool(listed), int((listed or "[]")[1:-1] or 0),
                               takes_none, default is None, keyword_only))  # fmt: skip
    return found


@functools.cache
def signatures(operator: str) -> tuple[tuple[Parameter, ...], ...]:
    """The overloads of torch's Python function for an operator; none where the schemas do not say.

    An overload that writes to `out` is one signature with its base, and a factory takes requires_grad.
    """
    if operator in _NOT_PARSED:
        return ()
    plain: list[list[Parameter]] = []
    written: list[list[Parameter]] = []
    for line in _BY_HAND.get(operator) or schema_lines().get(operator, ()):
        schema, _, tags = line.partition(" ; ")
        if ("generated" in tags and "view_copy" not in tags) or "Dimname" in schema or ".prim_" in schema or _TORCHSCRIPT.match(schema):
            continue
        parameters = _parameters(schema)
        outs = len(re.findall(r"\(\w!\)", schema[schema.index("*") : schema.rindex(") ->")])) if "out" in tags.split() else 0
        if outs:
            kept = parameters[:-outs]
            written.append([*kept, Parameter("out", "Tensor", outs > 1 or "[] out" in schema, 0, True, False, True)])
        else:
            if any(p.name == "pin_memory" for p in parameters):
                parameters.append(Parameter("requires_grad", "bool", False, 0, False, False, True))
            plain.append(parameters)
    for base in plain:
        own = [p for p in base if p.kind not in ("Layout", "Device") and p.name not in ("pin_memory", "requires_grad")]
        if len(own) < len(base):  # a factory, which takes both out= and dtype=
            own = [p for p in own if p.name != "dtype"]
        match = next((w for w in written if w[:-1] == own), None)
        if match is not None:
            base.append(match[-1])
            written.remove(match)
    return tuple(map(tuple, plain + written))


# ---- what fits a parameter ----


def _is_tensor(value: Any, match: Match) -> bool:
    return isinstance(value, TensorBase) or (
        hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))) or hasattr(value, "__torch_function__")


def _is_int(value: Any, match: Match) -> bool:
    if isinstance(value, TensorBase):
        match.by_value = True
        return value.numel() == 1 and value.dtype.is_integral
    return is_number(value) and not isinstance(value, (bool, float, complex, np.floating, np.bool_))


def _is_scalar(value: Any, match: Match) -> bool:
    if isinstance(value, TensorBase):
        match.by_value = True
        return value.ndim == 0 and not value.requires_grad
    return is_number(value)


def _is_dtype(value: Any, match: Match) -> bool:
    if isinstance(value, type):
        match.by_value = True
    return isinstance(dtypes.meant(value), dtypes.dtype)


_FITS: Final[dict[str, Callable[[Any, Match], bool]]] = {
    "Tensor": _is_tensor,
    "int": _is_int,
    "SymInt": _is_int,
    "float": lambda value, match: _is_scalar(value, match) and not isinstance(value, complex),
    "Scalar": _is_scalar,
    "complex": _is_scalar,
    "bool": lambda value, match: isinstance(value, (bool, np.bool_)) or type(value).__name__ == "SymBool",
    "str": lambda value, match: isinstance(value, str),
    "ScalarType": _is_dtype,
    "MemoryFormat": lambda value, match: isinstance(value, memory_format),
    "Layout": lambda value, match: isinstance(value, layout),
    "Device": lambda value, match: isinstance(value, (device, str)) or _is_int(value, match),
    "Generator": lambda value, match: hasattr(value, "manual_seed"),
}


def _fits(p: Parameter, value: Any, match: Match, numbers_as_tensors: bool) -> bool:
    if value is None:
        return p.takes_none
    fits = _FITS.get(p.kind)
    if fits is None:
        return True
    if not p.is_list:
        return fits(value, match) or (numbers_as_tensors and p.kind == "Tensor" and is_number(value))
    if isinstance(value, (list, tuple)):
        later = p.kind in ("int", "SymInt")  # torch looks at the kind of the first whole number alone
        return all(fits(v, match) or (v is None and p.kind == "Tensor") or (later and i > 0 and isinstance(v, bool))
                   for i, v in enumerate(value))  # fmt: skip
    return p.length > 0 and p.kind in ("int", "SymInt", "float") and fits(value, match)


def _is_of_ints(p: Parameter) -> bool:
    return p.is_list and p.kind in ("int", "SymInt")


def _match(name: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any], may_spread: bool,
           first: int) -> Match:  # fmt: skip
    """Hold a call against one signature, in the order in which torch's parser does. first: the position of args[0] in messages."""
    match, left = Match(), dict(kwargs)
    positional = sum(not p.keyword_only for p in parameters)
    first_list = 1 if parameters and parameters[0].name == "input" else 0
    spreads = may_spread and positional == first_list + 1 and _is_of_ints(parameters[first_list])
    if len(args) > positional and not spreads:
        taken_count, given_count = positional + first - 1, len(args) + first - 1
        were = "was" if given_count == 1 else "were"
        match.wrong = f"{name}() takes {taken_count} positional argument{'s' * (taken_count != 1)} but {given_count} {were} given"
        return match
    missing: list[str] = []
    for at, p in enumerate(parameters):
        place = f" (position {at + first})"
        if at < len(args) and not p.keyword_only:
            value = args[at]
            if spreads and at == first_list and not isinstance(value, (list, tuple)) and _is_int(value, match):
                value = args[at:]
        else:
            key = next((k for k in (p.name, *_OTHER_NAMES.get(p.name, ())) if k in left), None)
            if key is None:
                if p.required:
                    missing.append(f'"{p.name}"')
                continue
            value, place = left.pop(key), ""
        if not _fits(p, value, match, name in NUMBERS_AS_TENSORS):
            match.wrong = f"{name}(): argument '{p.name}'{place} must be {p.wanted}, not {type(value).__name__}"
            return match
    if missing:
        plural = "s" if len(missing) == 1 else ""  # torch's plurals
        match.wrong = f"{name}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    elif left:
        unknown = next(iter(left))
        if any(p.name == unknown for p in parameters[: len(args)]):
            match.wrong = f"{name}() got multiple values for argument '{unknown}'"
        else:
            match.wrong = unexpected_keyword(name, unknown, [p.name for p in parameters])
    return match


def _class_name(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        return f"{type(value).__name__} of {type(value[0]).__name__}"
    return type(value).__name__


def check(name: str, overloads: tuple[tuple[Parameter, ...], ...], args: tuple[Any, ...], kwargs: Mapping[str, Any],
          may_spread: bool = True, is_method: bool = False) -> bool:  # fmt: skip
    """Raise TypeError, with torch's text, for a call that fits no overload. Returns whether the classes of the arguments decided.

    may_spread: whether the whole numbers of a list may be arguments of their own, as in `x.permute(1, 0)`. is_method: args[0] is the
    tensor whose method is called, which torch's texts do not count.
    """
    found = []
    for parameters in overloads:
        match = _match(name, parameters, args, kwargs, may_spread, 0 if is_method else 1)
        if match.wrong is None:
            return not match.by_value  # other calls of these classes fit this overload too, whatever those before it say
        found.append(match.wrong)
    given_count = len(args) + len(kwargs)
    plausible = [wrong for wrong, parameters in zip(found, overloads, strict=True)
                 if sum(p.required for p in parameters) <= given_count <= len(parameters)]
    if len(found) == 1 or len(plausible) == 1:
        raise TypeError((plausible or found)[0])
    given = ", ".join((*map(_class_name, args[is_method:]), *(f"{k}={_class_name(v)}" for k, v in kwargs.items())))
    known = {key for parameters in overloads for p in parameters for key in (p.name, *_OTHER_NAMES.get(p.name, ()))}
    unknown = next((key for key in kwargs if key not in known), None)
    hint = "" if unknown is None else f"\nkeyword '{unknown}' is unknown{nearest_keyword(unknown, sorted(known))}"
    raise TypeError(f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:\n"
                    + "\n".join(f" * ({_described(parameters[is_method:])})" for parameters in overloads) + hint)  # fmt: skip


def _described(parameters: tuple[Parameter, ...]) -> str:
    parts, starred = [], False
    for p in parameters:
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{p.wanted} {p.name}{'' if p.required else ' = ...'}")
    return ", ".join(parts)


@functools.cache
def takes_out(operator: str) -> bool:
    """Whether torch's function of this name has an `out=`; yes where the schemas do not say."""
    overloads = signatures(operator)
    return not overloads or any(p.name == "out" for parameters in overloads for p in parameters)
