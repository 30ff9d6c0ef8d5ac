"""The declaration of an op: its whole record, as data.

`Rules` lists the facts that a family of ops states; `Declaration` holds them with derived facts, such as the positions of
tensor parameters. The behaviour of an op is written in `metadata`, `execute` and `gradients`; `table.Op` joins the parts.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import Category, dtype
from eager.optable import opmath
from eager.optable.formulas import Vjp, cast_to, no_derivative
from eager.optable.precision import Precision
from eager.optable.registry import CALLS, Kind
from eager.optable.schema import Schema, is_number, parse

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
        # Where a number counts as a 0-d tensor among the operands.
        self._number_at = tuple(i for i, p in enumerate(params) if p.is_tensor and p.name not in rules.scalars)
        self._nparams = len(params)
        self._tensor_at = tuple(i for i, p in enumerate(params) if p.is_tensor)
        self._lists_at = tuple(i for i, p in enumerate(params) if p.is_tensor_list)
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

    def takes_as_given(self, number: Any, compute: dtype) -> bool:
        """Whether the scalar rule gets the Python number unrounded. In float16 it gets the rounded number, as torch's does."""
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

    def others(self, args: tuple[Any, ...]) -> Iterator[Any]:
        """The tensors beside the first argument."""
        return self.tensors((None, *args[1:]))

    def wants_grad(self, args: tuple[Any, ...]) -> bool:
        """Whether a tensor among the arguments requires grad."""
        return bool(_native.argument_traits(args) & _WANTS_GRAD)
