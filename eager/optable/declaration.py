"""The declaration of an op: its whole record, as data.

A schema is the signature of an op, written as text in torch's notation and parsed once. A gradient formula is a function whose
parameter names say which values it needs (`Vjp`). `Rules` lists the facts that a family of ops states; `Declaration` holds them with
derived facts, such as the positions of tensor parameters. The behaviour of an op is written in `table` and `gradients`; `table.Op`
joins the parts.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import Category, dtype
from eager.base.records import dataclass
from eager.base.spec import SpecLike, TensorSpec, same_shape
from eager.optable import opmath
from eager.optable.precision import Precision
from eager.optable.registry import CALLS, Kind

# -- schemas --------------------------------------------------------------------------------------------------------
_MISSING = object()
# parameters that callers may also name as torch's public functions do
PUBLIC_NAMES = {"x": "input"}
_TYPES = {
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?", "float", "float?",
    "bool", "bool?", "str", "str?", "dtype", "dtype?", "device", "device?", "any",
}  # fmt: skip


def unexpected_keyword(function: str, name: str, known: Iterable[str]) -> str:
    """torch's text for a keyword that a function does not have, followed by the nearest keyword that it has."""
    return f"{function}() got an unexpected keyword argument '{name}'{nearest_keyword(name, known)}"


def nearest_keyword(name: str, known: Iterable[str]) -> str:
    """A hint in the form of CPython 3.13, or "" if no known keyword resembles `name`."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f". Did you mean '{near[0]}'?" if near else ""


class Param(NamedTuple):
    """One parameter: its name, type as written, default (or MISSING) and whether keyword-only."""

    name: str
    type: str
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is _MISSING

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")


class Schema(NamedTuple):
    """A parsed signature: `name(type param=default, *, ...) -> returns`."""

    name: str
    params: tuple[Param, ...]
    num_returns: int
    text: str

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], takes_out: Callable[[str], bool] | None = None) -> tuple[Any, ...]:
        """All arguments in order, defaults filled. Raises TypeError naming the op and the argument.

        takes_out: whether the caller accepts `out` for the op of this name, which the hint in an error then knows.
        """
        positional = sum(not p.keyword_only for p in self.params)
        if len(args) > positional:
            if len(args) == len(self.params) and not kwargs:
                return args  # already in canonical form
            raise TypeError(f"{self.name}() takes {positional} positional argument{'s' * (positional != 1)} but {len(args)} were given")
        result = list(args)
        left = dict(kwargs) if kwargs else {}
        for p in self.params[len(args) :]:
            if p.name in left:
                result.append(left.pop(p.name))
            elif p.name in PUBLIC_NAMES and PUBLIC_NAMES[p.name] in left:
                result.append(left.pop(PUBLIC_NAMES[p.name]))
            elif p.default is not _MISSING:
                result.append(p.default)
            else:
                raise TypeError(f"{self.name}() missing required argument: '{p.name}' ({self.text})")
        if left:
            name = next(iter(left))
            if any(p.name == name for p in self.params):
                raise TypeError(f"{self.name}() got multiple values for argument '{name}' ({self.text})")
            known = [PUBLIC_NAMES.get(p.name, p.name) for p in self.params]
            if takes_out is not None and not self.name.endswith("_") and takes_out(self.name):
                known.append("out")
            raise TypeError(unexpected_keyword(self.name, name, known))
        return tuple(result)

    def verify(self, args: tuple[Any, ...], takes_numbers: frozenset[str]) -> bool:
        """Raise TypeError, with torch's text, for the first full positional argument that is not of its parameter's type.

        takes_numbers: the tensor parameters that may be numbers. Returns whether the classes of the arguments decided, and not
        their values.
        """
        by_class = True
        for i, (p, value) in enumerate(zip(self.params, args, strict=True)):
            wanted = p.type.rstrip("?")
            if wanted not in _SAID_AS or (value is None and p.type.endswith("?")):
                continue
            if not _fits(wanted, value, p.name in takes_numbers):
                self.refuse_type(i, value)
            by_class &= wanted in ("Tensor", "Tensor[]") or not hasattr(value, "stride")
        return by_class

    def refuse_type(self, i: int, value: Any) -> NoReturn:
        """Raise TypeError, with torch's text: `value` is not of the type of parameter `i`."""
        p = self.params[i]
        raise TypeError(f"{self.name}(): argument '{PUBLIC_NAMES.get(p.name, p.name)}' (position {i + 1}) must be "
                        f"{_SAID_AS[p.type.rstrip('?')]}, not {type(value).__name__}")  # fmt: skip


# How torch's texts call the types that arguments are held against.
_SAID_AS = {"Tensor": "Tensor", "Tensor[]": "tuple of Tensors", "int": "int", "int[]": "tuple of ints", "float": "float", "bool": "bool",
            "Scalar": "Number", "dtype": "torch.dtype", "str": "str"}  # fmt: skip
_NO_INTS = frozenset((bool, float, complex, str))  # which kernels and meta rules would take for a whole number
_NUMBER_METHODS = ("__index__", "__float__", "__complex__")
_NO_NUMBER = (str, bytes, list, tuple, dict, set, slice, type, type(None), type(...))


def _fits(wanted: str, value: Any, numbers: bool) -> bool:
    """Whether `value` may stand for a parameter of this type; a tensor of one element may stand for a number."""
    if wanted == "Tensor":
        return hasattr(value, "stride") or (numbers and is_number(value))
    if wanted == "Tensor[]":
        return isinstance(value, (list, tuple)) and all(v is None or hasattr(v, "stride") for v in value)
    if wanted == "int[]":
        return isinstance(value, int) or (isinstance(value, (list, tuple)) and not any(isinstance(v, _NO_NUMBER) for v in value))
    if wanted == "str":
        return isinstance(value, str)
    if wanted == "bool":
        return isinstance(value, (bool, np.bool_))
    if wanted == "dtype":
        return hasattr(value, "is_floating_point") and not hasattr(value, "stride")
    return is_number(value) and not (wanted == "int" and value.__class__ in _NO_INTS)


def is_number(value: Any) -> bool:
    """Whether `value` may stand for a number: a tensor of one element may."""
    if isinstance(value, _NO_NUMBER) or not any(hasattr(value, method) for method in _NUMBER_METHODS):
        return False
    return not (hasattr(value, "stride") and value.numel() != 1)


def parse(text: str) -> Schema:
    """Parse `"add(Tensor x, Tensor other, *, Scalar alpha=1) -> Tensor"`.

    Returns are `Tensor`, `(Tensor, Tensor)`, or `Tensor[]` (counted as -1). Raises ValueError on bad text.
    """
    m = re.fullmatch(r"(\w+)\((.*)\) -> (.+)", text)
    if not m:
        raise ValueError(f"schema: cannot read {text!r}")
    name, inside, returns = m.groups()
    params: list[Param] = []
    keyword_only = False
    for part in re.split(r",\s*(?![^\[(]*[\])])", inside) if inside.strip() else []:
        if part.strip() == "*":
            keyword_only = True
            continue
        head, eq, default = part.strip().partition("=")
        type_, _, pname = head.rpartition(" ")
        if type_ not in _TYPES:
            raise ValueError(f"schema: unknown type {type_!r} in {text!r}")
        params.append(Param(pname, type_, ast.literal_eval(default) if eq else _MISSING, keyword_only))
    count = -1 if returns == "Tensor[]" else returns.count("Tensor") if returns.startswith("(") else 1
    return Schema(name, tuple(params), count, text)


# -- gradient formulas ----------------------------------------------------------------------------------------------
OUTPUT_NAMES: Final = ("y", *(f"y{i}" for i in range(1, 8)))


class Vjp:
    """A gradient formula for one or several inputs. Its parameter names say which values are saved for it.

    They name parameters of the op (`x`, or `x_spec` for the shape alone), outputs (`y` the first, `y1` the second, `ys` all),
    cotangents (`g`, `gs`) and `needs`. A named tensor must not be written to before the backward.
    """

    __slots__ = ("inputs", "fn", "params", "joint")

    def __init__(self, key: str, fn: Callable[..., Any], tensors: Sequence[str], in_opmath: bool) -> None:
        self.inputs = tuple(key.replace(" ", "").split(","))
        self.joint = len(self.inputs) > 1
        self.params = _parameter_names(fn)
        cotangent = next((i for i, p in enumerate(self.params) if p in ("g", "gs")), None)
        alone = not {*tensors, *OUTPUT_NAMES, "ys"}.intersection(self.params)  # a formula of the cotangent alone rounds once at most
        self.fn = fn if cotangent is None or alone or not in_opmath else opmath.gradient(fn, cotangent, cast_to)


def _parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    if type(fn) is types.FunctionType and not vars(fn):  # a hundred times as fast as a signature
        code = fn.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(fn).parameters)


def no_derivative(what: str, name: str) -> Callable[..., Any]:
    """Gradient formula in the parameter `name` of an op without a derivative: raises when called, or when a captured graph runs."""

    def refuse(gs: Sequence[Any], spec: TensorSpec) -> Any:
        message, given = f"the derivative for '{what}' is not implemented", [g for g in gs if g is not None]
        if not given[0].is_fake:
            raise NotImplementedError(message)
        return CALLS["no_gradient"](given, tuple(spec.shape), message)

    refuse.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("gs", f"{name}_spec")])  # fmt: skip
    return refuse


def cast_to(g: Any, d: dtype) -> Any:
    """`g` in dtype `d`. The real part of a complex gradient of a real input is a view, as in torch."""
    if g.dtype is d:
        return g
    if g.dtype.is_complex and not d.is_complex:
        return cast_to(CALLS["real"](g), d)
    return CALLS["to_dtype"](g, d)


def sum_to(g: Any, shape: Sequence[int]) -> Any:
    """Sum `g` over the dims along which `shape` was broadcast to it."""
    shape = tuple(shape)
    if same_shape(g.shape, shape):
        return g
    lead = g.ndim - len(shape)
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    if len(dims) == lead:
        return CALLS["sum"](g, dims, False, None)
    if dims:
        g = CALLS["sum"](g, dims, True, None)
    return CALLS["view"](g, shape) if lead else g


def zeros(spec: SpecLike) -> Any:
    """A tensor of zeros, through dispatch."""
    return CALLS["full"](tuple(spec.shape), 0, spec.dtype, spec.device)


def fit(g: Any, x: Any) -> Any:
    """A cotangent in the shape and dtype of the input that it belongs to."""
    return cast_to(sum_to(g, x.shape), x.dtype)


_native.register_gradient_helpers(None, fit, cast_to, None)
composition: Final = opmath.composition(cast_to)


# -- declarations ---------------------------------------------------------------------------------------------------
TensorBase = _native.TensorBase
_WANTS_GRAD = 16  # of `_native.argument_traits`
_ARITHMETIC = (Kind.POINTWISE, Kind.REDUCTION, Kind.COMPOSITE)  # their gradient formulas may round several times


@dataclass(slots=True, eq=False)
class Rules:
    """The facts of an op beside its schema and kind: the keywords of `declare`."""

    # the result
    meta: Callable[..., Any] | None = None  # arguments -> spec of the result, or a tuple of specs
    view: Callable[..., Any] | None = None  # VIEW: arguments -> (sizes, strides, offset[, dtype])
    promotion: str = "default"  # POINTWISE: how dtypes of operands combine: default, float, real, bool, raw or select
    casts_result: bool = False
    dynamic_output: Callable[..., Any] | None = None  # sizes depend on data: (fresh, *args) -> specs, where fresh(most) is a size 0..most
    # the computation
    scalar: Callable[..., Any] | None = None  # POINTWISE: the rule per element, over `loop_api`
    ufunc: str | None = None  # POINTWISE: numpy's function of the same values
    kernel: Callable[..., Any] | None = None  # (array module, result, *arrays)
    decompose: Callable[..., Any] | None = None  # the op as other ops
    reduce: str | None = None  # REDUCTION: the combining operation
    over_input: bool = False  # the kernel may write its result over its first input
    fallible: bool = False  # whether it raises may depend on data: the compiler keeps such an op although no caller reads the result
    # the arguments
    accepts: str = "bifc"  # categories of dtypes: bool, integer, floating, complex
    float8: bool = False  # 8-bit floats are accepted too
    numbers: str = ""  # tensor parameters that may be numbers; "all": all at once, and the first then becomes a tensor
    numbers_as_given: bool = False  # the scalar rule treats a number differently from a tensor of that value
    by_one_number: bool = False  # a number, or a second operand without dims, is not rounded to a dtype of 16 bits
    scalars: Sequence[str] = ()  # tensor parameters whose numbers do not count as 0-d operands
    # gradients and function transforms
    vjp: Mapping[str, Callable[..., Any]] | None = None  # gradient formulas by parameter, or by parameters joined with commas
    underived: bool = False  # results require grad, as torch's do, and the backward raises: there is no formula
    nondifferentiable: bool = False
    nondifferentiable_outputs: Sequence[int] = ()
    in_opmath: bool | None = None  # halves compute in float32: False no formula, None gradient formulas, True the decomposition too
    linear_in: Sequence[str] = ()  # parameters in which, taken together, the op is linear: its tangent is the op of the tangents
    bilinear_in: tuple[str, str, str | None] | None = None  # two parameters of a product, and its affine term if there is one
    zeroed: Mapping[str, Any] = field(default_factory=dict)  # arguments that a linear op gets when it is applied to tangents
    batch: str = ""  # the rule of vmap (`eager.transforms.rules`); by default the kind's
    # autocast, counts, tests
    precision: Precision | None = None  # in which autocast runs it; None: unchanged
    flops: Callable[..., int] | None = None  # (arguments, with shapes for tensors, out_shape=) -> floating-point operations
    samples: Callable[..., Iterator[tuple[Any, ...]]] | None = None  # arguments for the generated tests
    doc: str | None = None
    base: Any = None  # INPLACE: the op whose result is written into the first argument
    # COMPOSITE: whether the parts of a call follow from its arguments without the state of a trace, so that a backend may expand it later
    expandable: Callable[..., bool] | None = None
    writes: Sequence[str] = ()  # INPLACE: the parameters written, if not the first alone: the results of `base`, by `decompose`


class Declaration(_native.OpBase):
    """One op as data. Arguments are full positional tuples in schema order throughout."""

    is_custom = False  # made by a user through `eager.library`: its maker answers for its samples and gradients

    def __init__(self, schema: str, kind: Kind, rules: Rules) -> None:
        self.schema: Schema = parse(schema)
        self.name = self.__name__ = self.__qualname__ = self.schema.name
        self.kind, self.rules, self.base = kind, rules, rules.base
        self.__doc__ = rules.doc or (rules.decompose.__doc__ if rules.decompose else None) or f"{self.schema.text}"
        self._set_computation(rules)
        self._set_gradients(rules)
        self._set_arguments(rules)

    def _set_computation(self, rules: Rules) -> None:
        kind = self.kind
        self.meta, self.view, self.promotion, self.dynamic_output = rules.meta, rules.view, rules.promotion, rules.dynamic_output
        self.casts_result, self.reduce, self.samples, self.precision = rules.casts_result, rules.reduce, rules.samples, rules.precision
        self.scalar, self.ufunc, self.kernel, self.over_input = rules.scalar, rules.ufunc, rules.kernel, rules.over_input
        self.decompose = opmath.decomposition(rules.decompose, cast_to) if rules.in_opmath and rules.decompose else rules.decompose
        self.fallible: bool = rules.fallible or (self.base is not None and self.base.fallible)
        self.accepts = frozenset(Category("bifc".index(c)) for c in rules.accepts)
        self.float8 = rules.float8 or kind is Kind.VIEW
        self.mutates = self._inplace = kind is Kind.INPLACE
        self.is_view = kind is Kind.VIEW and not rules.nondifferentiable
        self._elementwise = (kind is Kind.POINTWISE and rules.meta is None and rules.promotion in ("default", "float", "real")
                             and "f" in rules.accepts)  # fmt: skip
        self._restricted = len(self.accepts) < 4 and kind is not Kind.POINTWISE  # a pointwise op checks the common dtype of its inputs

    def _set_gradients(self, rules: Rules) -> None:
        formulas = rules.vjp or {}
        if rules.underived:
            formulas = {p.name: no_derivative(self.name, p.name) for p in self.schema.params if p.is_tensor}
        in_opmath = rules.in_opmath
        if in_opmath is None:
            in_opmath = self.kind in _ARITHMETIC and rules.promotion not in ("raw", "select")
        tensors = [p.name for p in self.schema.params if p.is_tensor or p.is_tensor_list]
        self.vjp = {key: Vjp(key, fn, tensors, in_opmath) for key, fn in formulas.items()}
        self.underived, self.nondifferentiable = rules.underived, rules.nondifferentiable
        self.nondifferentiable_outputs = frozenset(rules.nondifferentiable_outputs)
        self._recorded = bool(self.vjp)
        self._plans: dict[int, tuple[Any, ...]] = {}
        self._saved_names: dict[tuple[bool, ...], tuple[frozenset[str], frozenset[int]]] = {}

    def _set_arguments(self, rules: Rules) -> None:
        params = self.schema.params
        self.takes_numbers = frozenset(p.name for p in params if rules.numbers == "all" or p.name in rules.numbers.split())
        self.of_numbers = rules.numbers == "all"
        if self.base is not None:
            self.takes_numbers = self.base.takes_numbers - {params[0].name}
        self._numbers_as_given = rules.numbers_as_given
        self._by_one_number = rules.by_one_number
        # Where a number counts as a 0-d tensor among the operands.
        self._number_at = tuple(i for i, p in enumerate(params) if p.is_tensor and p.name not in rules.scalars)
        self._nparams = len(params)
        self._tensor_at = tuple(i for i, p in enumerate(params) if p.is_tensor)
        self._lists_at = tuple(i for i, p in enumerate(params) if p.is_tensor_list)
        self._written_at = tuple(i for i, p in enumerate(params) if p.name in rules.writes)
        self._flags_at = tuple(i for i, p in enumerate(params) if p.type in ("bool", "bool?"))
        self._bool_params = sum(1 << i for i in self._flags_at)
        self._tensor_only_params = sum(1 << i for i in self._tensor_at if params[i].name not in self.takes_numbers)
        self._has_simple_vjp = self._recorded and not self._lists_at
        self._check = _native.ArgumentCheck(self._verify)
        _native.bind_native_kernels(self, self.base.name if self.base is not None else self.name)

    def _verify(self, args: tuple[Any, ...], kwargs: None) -> bool | tuple[Any, ...]:
        """For `_native.ArgumentCheck`, with full positional arguments."""
        if self.takes_numbers and not any(hasattr(args[i], "stride") for i in self._tensor_at):
            if self.of_numbers and all(map(is_number, args)):
                return CALLS["full"]((), args[0], dtypes.of_scalar(args[0]), None), *args[1:]
            self.schema.refuse_type(self._tensor_at[0], args[self._tensor_at[0]])
        return self.schema.verify(args, self.takes_numbers)

    def __repr__(self) -> str:
        return f"<op {self.schema.text}>"

    def rounds_numbers(self, compute: dtype) -> bool:
        """Whether a Python number is rounded to the dtype of the operands, as in torch: a half is compared with a half."""
        is_half = compute.itemsize <= 2 and compute.category is Category.FLOAT
        return compute.category is Category.INT or (is_half and not self._by_one_number)

    def rounds_operand(self, i: int, ndim: int) -> bool:
        """Whether a tensor of a wider dtype, parameter `i`, is rounded to the dtype of the result before the scalar rule gets it."""
        return not (self._by_one_number and ndim == 0 and i == self._tensor_at[-1])

    def takes_as_given(self, number: Any, compute: dtype) -> bool:
        """Whether the scalar rule gets a Python number. In float16 it gets a number of that dtype, as torch's does."""
        return self._numbers_as_given and isinstance(number, int | float) and compute.is_floating_point and compute is not dtypes.float16

    def tensors(self, args: tuple[Any, ...]) -> Iterator[Any]:
        """The tensors among full positional arguments, lists included."""
        for i in self._tensor_at:
            if isinstance(args[i], TensorBase):
                yield args[i]
        for i in self._lists_at:
            for t in args[i] or ():
                if isinstance(t, TensorBase):
                    yield t

    def written(self, args: tuple[Any, ...]) -> Iterator[Any]:
        """The tensors that an in-place op writes, in the order of the results of its base."""
        at = self._written_at
        return self.tensors(tuple(a if i in at else None for i, a in enumerate(args))) if at else iter(args[:1])

    def others(self, args: tuple[Any, ...]) -> Iterator[Any]:
        """The tensors beside the first argument."""
        return self.tensors((None, *args[1:]))

    def wants_grad(self, args: tuple[Any, ...]) -> bool:
        """Whether a tensor among the arguments requires grad."""
        return bool(_native.argument_traits(args) & _WANTS_GRAD)
