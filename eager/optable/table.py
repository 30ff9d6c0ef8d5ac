"""The op table: one record per op, holding everything that any layer needs to know of it.

A record states the op's schema, its meta rule (shape, dtype and strides of the result), its kernel,
its gradient formulas, its scalar rule or decomposition, and sample inputs for the generated tests.
Execution without gradients stands here too; what surrounds it is `eager.dispatch.calls`.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NoReturn

import numpy as np

from eager import _native
from eager.base import dtypes, float8, thread_state
from eager.base.device import device
from eager.base.dtypes import Category, dtype, scalar_name
from eager.base.fake import DataDependentError, fake
from eager.base.overlap import check_out
from eager.base.promotion import result_type
from eager.base.scalars import check_int
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    broadcast_shapes,
    contiguous_strides,
    elementwise_strides,
    same_shape,
    spec_of,
)
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.base.warn import warn
from eager.dispatch import calls
from eager.optable import loop_api, opmath, signatures
from eager.optable.precision import Precision
from eager.optable.schema import PUBLIC_NAMES, Schema, is_number, parse
from eager.tape import hooks, inplace
from eager.tape.node import op_node_class
from eager.tape.record import owned

TensorBase = _native.TensorBase
_uniform_floats = _native.uniform_float_tensor


class Kind(Enum):
    """What sort of computation an op is; the compiler lowers by it."""

    POINTWISE = "pointwise"  # scalar rule over broadcast inputs
    REDUCTION = "reduction"  # combines along dims
    VIEW = "view"  # other geometry over the same storage
    INDEXED = "indexed"  # moves elements: cat, gather, pad, scatter
    COMPOSITE = "composite"  # defined by its decomposition
    OPAQUE = "opaque"  # own kernel: matmul, sort, convolution
    CREATION = "creation"  # from numbers alone
    RANDOM = "random"  # from a generator state
    EFFECT = "effect"  # does something beside its result; order matters
    INPLACE = "inplace"  # writes its first argument; see Op.base


OPS: dict[str, Op] = {}
_ARITHMETIC: Final = (Kind.POINTWISE, Kind.REDUCTION, Kind.COMPOSITE)  # their gradient formulas may round several times


# Where a formula's parameter comes from: an argument, its spec, the cotangent, the output, lists of them, who needs one.
_ARGUMENT, _SPEC, _COTANGENT, _OUTPUT, _OUTPUTS, _COTANGENTS, _NEEDS = range(7)
_ON_CPU, _IS_FAKE, _WANTS_GRAD, _FLOAT8 = 1, 8, 16, 32  # of `_native.argument_traits`
_SMALL: Final = 4096  # elements of which a copy costs less than a call of numpy
_OUTPUT_NAMES: Final = ("y", *(f"y{i}" for i in range(1, 8)))


class Vjp:
    """A gradient formula for one or several inputs; its parameter names say what it needs kept.

    They name parameters of the op (`x`, or `x_spec` for the shape alone), outputs (`y` the first, `y1` the second, `ys` all:
    what is named must not be written to before the backward), cotangents (`g`, `gs`) and `needs`.
    """

    __slots__ = ("inputs", "fn", "params", "joint")

    def __init__(self, key: str, fn: Callable[..., Any], tensors: Sequence[str], in_opmath: bool) -> None:
        self.inputs = tuple(key.replace(" ", "").split(","))
        self.joint = len(self.inputs) > 1
        self.params = tuple(inspect.signature(fn).parameters)
        cotangent = next((i for i, p in enumerate(self.params) if p in ("g", "gs")), None)
        alone = not {*tensors, *_OUTPUT_NAMES, "ys"}.intersection(self.params)  # a formula of the cotangent alone rounds once at most
        self.fn = fn if cotangent is None or alone or not in_opmath else opmath.gradient(fn, cotangent, cast_to)


def no_derivative(what: str, name: str) -> Callable[..., Any]:
    """The gradient formula in the parameter `name` of what nobody has derived: it raises, in a graph when that is run."""

    def refuse(gs: Sequence[Any], spec: TensorSpec) -> Any:
        message, given = f"the derivative for '{what}' is not implemented", [g for g in gs if g is not None]
        if not given[0].is_fake:
            raise NotImplementedError(message)
        return OPS["no_gradient"](given, tuple(spec.shape), message)

    refuse.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("gs", f"{name}_spec")])  # fmt: skip
    return refuse


class Op(_native.OpBase):
    """One op. Calling it binds the arguments to the schema and dispatches."""

    is_custom = False  # made by a user through `eager.library`: its samples and its gradient are its maker's affair

    def __init__(self, schema: str, kind: Kind, *, promotion: str = "default",
                 scalar: Callable[..., Any] | None = None, ufunc: str | None = None,
                 kernel: Callable[..., Any] | None = None, meta: Callable[..., Any] | None = None,
                 vjp: dict[str, Callable[..., Any]] | None = None, decompose: Callable[..., Any] | None = None,
                 reduce: str | None = None, view: Callable[..., Any] | None = None, base: Op | None = None,
                 samples: Callable[..., Iterator[tuple[Any, ...]]] | None = None,
                 nondifferentiable: bool = False, nondifferentiable_outputs: Sequence[int] = (), underived: bool = False,
                 casts_result: bool = False, dynamic_output: Callable[..., Any] | None = None,
                 over_input: bool = False, accepts: str = "bifc", float8: bool = False, numbers: str = "",
                 numbers_as_given: bool = False, scalars: Sequence[str] = (), fallible: bool = False, doc: str | None = None,
                 in_opmath: bool | None = None, precision: Precision | None = None) -> None:  # fmt: skip
        if in_opmath is None and (kind not in _ARITHMETIC or promotion in ("raw", "select")):
            in_opmath = False  # else None: the gradient formulas alone compute halves in float32; True: the decomposition too
        self.schema: Schema = parse(schema)
        self.name = self.__name__ = self.__qualname__ = self.schema.name
        self.kind = kind
        self.promotion = promotion
        self.scalar = scalar
        self.ufunc = ufunc
        self.kernel = kernel
        self.meta = meta
        if underived:
            vjp = {p.name: no_derivative(self.name, p.name) for p in self.schema.params if p.is_tensor}
        self.underived = underived  # results want gradients, as torch's do, and backward says that nobody has derived it
        tensors = [p.name for p in self.schema.params if p.is_tensor or p.is_tensor_list]
        self.vjp = {key: Vjp(key, fn, tensors, in_opmath is not False) for key, fn in (vjp or {}).items()}
        self.decompose = opmath.decomposition(decompose, cast_to) if in_opmath and decompose else decompose
        self.reduce = reduce
        self.view = view
        self.base = base
        self.samples = samples
        self.nondifferentiable = nondifferentiable
        self.nondifferentiable_outputs = frozenset(nondifferentiable_outputs)
        self.casts_result = casts_result
        # Sizes of results depend on data: the specs, given what makes such a size (`fresh(most)`: 0..most) and the arguments.
        self.dynamic_output = dynamic_output
        # categories that an op is defined on: bool, integer, floating, complex
        self.accepts = frozenset(Category("bifc".index(c)) for c in accepts)
        self._restricted = len(self.accepts) < 4 and kind is not Kind.POINTWISE  # those look at the dtype of all inputs together
        self.float8 = float8 or kind is Kind.VIEW  # defined on the 8-bit floats
        # Tensor parameters that may be numbers. "all": all of them at once, and the first then becomes a tensor.
        self.takes_numbers = frozenset(p.name for p in self.schema.params if numbers == "all" or p.name in numbers.split())
        self.of_numbers = numbers == "all"
        if base is not None:
            self.takes_numbers = base.takes_numbers - {self.schema.params[0].name}
        self._numbers_as_given = numbers_as_given  # the scalar rule treats a number differently from a tensor of that value
        # Where a number counts as a 0-d tensor among the operands: in all tensor parameters but `scalars`.
        self._number_at = tuple(i for i, p in enumerate(self.schema.params) if p.is_tensor and p.name not in scalars)
        # Whether it raises may depend on data: then a compiler keeps it although nobody reads the result.
        self.fallible: bool = fallible or (base is not None and base.fallible)
        self.precision = precision  # in which autocast runs it; None: as it is
        self.over_input = over_input  # the kernel may be handed its first input as its result as well
        self.__doc__ = doc or (decompose.__doc__ if decompose else None) or f"{self.schema.text}"
        self.mutates = kind is Kind.INPLACE
        self.is_view = kind is Kind.VIEW and not nondifferentiable
        self._elementwise = kind is Kind.POINTWISE and meta is None and promotion in ("default", "float", "real") and "f" in accepts
        self._nparams = len(self.schema.params)
        self._tensor_at = tuple(i for i, p in enumerate(self.schema.params) if p.is_tensor)
        self._lists_at = tuple(i for i, p in enumerate(self.schema.params) if p.is_tensor_list)
        self._flags_at = tuple(i for i, p in enumerate(self.schema.params) if p.type in ("bool", "bool?"))
        self._bool_params = sum(1 << i for i in self._flags_at)
        self._tensor_only_params = sum(1 << i for i in self._tensor_at if self.schema.params[i].name not in self.takes_numbers)
        self._check = _native.ArgumentCheck(self._verify)
        self._inplace = kind is Kind.INPLACE
        _native.bind_native_kernels(self, base.name if base is not None else self.name)
        self._recorded = bool(self.vjp)
        self._has_simple_vjp = bool(self.vjp) and not self._lists_at
        self._plans: dict[int, tuple[Any, ...]] = {}
        self._saved_names: dict[tuple[bool, ...], tuple[frozenset[str], frozenset[int]]] = {}

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Every call that the native loop does not answer."""
        if kwargs or len(args) != self._nparams:
            if "out" in kwargs:
                if self.mutates or not signatures.takes_out(self.name):
                    raise TypeError(f"{self.name}() got an unexpected keyword argument 'out'")
                out = kwargs.pop("out")
                if self.kind is Kind.POINTWISE:
                    check_out(out, (*args, *kwargs.values()))
                return write_out(out, self(*args, **kwargs), differentiable=not self.nondifferentiable)
            if is_number(kwargs.get("input")) and not self.of_numbers and not hasattr(kwargs["input"], "stride"):
                raise TypeError(f"{self.name}(): argument 'input' must be Tensor, not {type(kwargs['input']).__name__}")
            args = self.schema.bind(args, kwargs, signatures.takes_out)
        replaced = self._check(args)
        if replaced is not None:
            return self(*replaced)
        if self._restricted and (x := args[self._tensor_at[0]]).ndim and x.dtype.category not in self.accepts:
            self._refuse(x.dtype)
        return calls.call(self, args)

    def _verify(self, args: tuple[Any, ...], kwargs: None) -> bool | tuple[Any, ...]:
        """For `_native.ArgumentCheck`, with full positional arguments."""
        if self.takes_numbers and not any(hasattr(args[i], "stride") for i in self._tensor_at):
            if self.of_numbers and all(map(is_number, args)):
                return OPS["full"]((), args[0], dtypes.of_scalar(args[0]), None), *args[1:]
            self.schema.refuse_type(self._tensor_at[0], args[self._tensor_at[0]])
        return self.schema.verify(args, self.takes_numbers)

    def __repr__(self) -> str:
        return f"<op {self.schema.text}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (lookup, (self.name,))

    def __deepcopy__(self, memo: Any) -> Op:
        return self

    def takes_as_given(self, number: Any, compute: dtype) -> bool:
        """Whether the scalar rule gets the Python number itself. In float16 it gets the number's value, as torch's does."""
        return self._numbers_as_given and isinstance(number, int | float) and compute.is_floating_point and compute is not dtypes.float16

    # ---- what dispatch and autograd ask ----

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
        return bool(_native.argument_traits(args) & _WANTS_GRAD)

    def saved_names(self, needs: tuple[bool, ...]) -> tuple[frozenset[str], frozenset[int]]:
        """Parameters that the formulas of the needed inputs name, and the outputs they name."""
        found = self._saved_names.get(needs)
        if found is None:
            wanted = {p.name for p, need in zip(self.schema.params, needs, strict=True) if need}
            names = {n for v in self.vjp.values() if wanted.intersection(v.inputs) for n in v.params}
            count = self.schema.num_returns
            outputs = {i for i in range(count) if names & {"ys", _OUTPUT_NAMES[i]}}
            found = self._saved_names[needs] = (frozenset(names), frozenset(outputs))
        return found

    def _record_plan(self, wanted: int) -> tuple[Any, ...]:
        """For native recording, with gradients for the parameters in the mask `wanted`: the node's class, who needs one, and
        masks: the arguments to save, the outputs to keep, the tensor parameters, the lists, the outputs without gradient."""
        needs = tuple(bool(wanted >> i & 1) for i in range(self._nparams))
        names, outputs = self.saved_names(needs)
        mask = sum(1 << i for i, p in enumerate(self.schema.params) if p.name in names)
        return (op_node_class(self), needs, mask, sum(1 << i for i in outputs), sum(1 << i for i in self._tensor_at),
                sum(1 << i for i in self._lists_at), sum(1 << i for i in self.nondifferentiable_outputs))  # fmt: skip

    def apply_vjp(self, grads: list[Any], args: Sequence[Any], outputs: tuple[Any, ...],
                  output_specs: Sequence[TensorSpec], needed: Sequence[bool]) -> list[Any]:  # fmt: skip
        """Gradients of the inputs, flattened as the edges are. See `Vjp` for what formulas may name."""
        single = len(output_specs) == 1
        if single and not self._lists_at and grads[0] is not None and not output_specs[0].dtype.is_complex:
            return _native.apply_gradient_formulas(self, grads[0], args, outputs, needed)
        if all(g is None for g in grads):
            return [None] * len(needed)
        if not single:
            grads = [zeros(s) if g is None and i not in self.nondifferentiable_outputs else g
                     for i, (g, s) in enumerate(zip(grads, output_specs, strict=True))]  # fmt: skip
        conjugate = any(s.dtype.is_complex for s in output_specs)
        if conjugate:  # formulas are g * f'(x), cotangents of complex numbers g * conj(f'(x))
            grads = [_conjugated(g) for g in grads]
        spread = self._spread(args, needed)
        values: dict[str, Any] = {"g": grads[0], "gs": grads, "ys": outputs, **dict(zip(_OUTPUT_NAMES, outputs, strict=False))}
        for p, a in zip(self.schema.params, args, strict=True):
            values[p.name] = a
            if isinstance(a, (TensorBase, TensorSpec)):
                values[p.name + "_spec"] = spec_of(a)
            elif p.is_tensor_list and a is not None:
                values[p.name + "_spec"] = [None if t is None else spec_of(t) for t in a]
        results: dict[str, Any] = {}
        for rule in self.vjp.values():
            if not any(spread.get(name) for name in rule.inputs):
                continue
            values["needs"] = tuple(bool(spread.get(name)) for name in rule.inputs)
            out = rule.fn(*(values[n] for n in rule.params))
            results.update(zip(rule.inputs, out, strict=True) if rule.joint else ((rule.inputs[0], out),))
        flat = self._flatten(results, args)
        return [_conjugated(g) for g in flat] if conjugate else flat

    def _gradient_rules(self) -> tuple[bool, int, tuple[tuple[Any, ...], ...]]:
        """For `_native.apply_gradient_formulas`: whether gradients are fitted in shape, the number of tensor parameters, and one
        tuple per formula: the function, whether it is joint, the places of its inputs among the tensor parameters and among all
        parameters, and the sources of its own parameters."""
        at = {p.name: i for i, p in enumerate(self.schema.params)}
        fixed = {"g": (_COTANGENT, 0), "gs": (_COTANGENTS, 0), "y": (_OUTPUT, 0), "ys": (_OUTPUTS, 0), "needs": (_NEEDS, 0)}
        fixed |= {f"{name}_spec": (_SPEC, i) for name, i in at.items()} | {name: (_ARGUMENT, i) for name, i in at.items()}
        rules = tuple((rule.fn, rule.joint, tuple(self._tensor_at.index(at[name]) for name in rule.inputs),
                       tuple(at[name] for name in rule.inputs), tuple(fixed[n] for n in rule.params))
                      for rule in self.vjp.values())  # fmt: skip
        return self.kind is Kind.POINTWISE, len(self._tensor_at), rules

    def _spread(self, args: Sequence[Any], needed: Sequence[bool]) -> dict[str, bool]:
        """Which parameters are needed, from the flat list of needed edges."""
        at, result = 0, {}
        for p, a in zip(self.schema.params, args, strict=True):
            if p.is_tensor_list and a is not None:
                result[p.name] = any(needed[at : at + len(a)])
                at += len(a)
            elif p.is_tensor:
                result[p.name] = needed[at]
                at += 1
        return result

    def _flatten(self, results: dict[str, Any], args: Sequence[Any]) -> list[Any]:
        flat: list[Any] = []
        for p, a in zip(self.schema.params, args, strict=True):
            if p.is_tensor_list and a is not None:
                given = results.get(p.name)
                flat.extend([None] * len(a) if given is None else given)
            elif p.is_tensor:
                g = results.get(p.name)
                if g is not None and isinstance(a, (TensorBase, TensorSpec)):
                    g = fit(g, a) if self.kind is Kind.POINTWISE else cast_to(g, a.dtype)
                flat.append(g)
        return flat

    # ---- metadata ----

    def compute_dtype(self, *args: Any) -> dtype:
        """The dtype that a pointwise op computes in, before the result's own rule."""
        if self.promotion == "raw":
            return args[0].dtype
        first = 1 if self.promotion == "select" else 0  # `where`: the condition has no say
        d = result_type(*(args[i] for i in self._tensor_at[first:]))
        if d.category not in self.accepts or (d.is_float8 and not self.float8):
            self._refuse(d)
        if self.promotion == "float" and d.is_integral:
            return dtypes.get_default_dtype()
        return d

    def _refuse(self, d: dtype) -> NoReturn:
        raise NotImplementedError(f"\"{self.name}\" not implemented for '{scalar_name(d)}'")

    def result_dtype(self, compute: dtype) -> dtype:
        if self.promotion == "bool":
            return dtypes.bool_
        return compute.to_real() if self.promotion == "real" else compute

    def infer(self, *args: Any) -> Any:
        """The spec (or tuple of specs) of the result of `args`, whatever the kind of op."""
        if self.kind is Kind.VIEW:
            return self._view_spec(args)
        if self.meta is not None:
            return self.meta(*args)
        if self.kind is Kind.POINTWISE:
            return self.infer_pointwise(args)
        fakes = [fake(spec_of(a)) if isinstance(a, (TensorBase, TensorSpec)) else
                 [None if t is None else fake(spec_of(t)) for t in a] if i in self._lists_at and a is not None else a
                 for i, a in enumerate(args)]  # fmt: skip
        if self.decompose is None:
            raise NotImplementedError(f"{self.name}: no meta rule")
        with calls.modes_off():
            out = self.decompose(*fakes)
        return spec_of(out) if isinstance(out, TensorBase) else tuple(spec_of(t) for t in out)

    def infer_pointwise(self, args: tuple[Any, ...]) -> TensorSpec:
        """The spec that operands, a dtype rule and the law of elementwise strides give."""
        for a in args:
            if a.__class__ is int:
                check_int(a)
        operands = [args[i] for i in self._tensor_at if hasattr(args[i], "stride")]
        if len(operands) != len(self._tensor_at):
            self._check_operands(args)
        shape = tuple(operands[0].shape)
        if not all(same_shape(x.shape, shape) for x in operands[1:]):
            shape = broadcast_shapes(*(x.shape for x in operands))
        d = self.result_dtype(self.compute_dtype(*args))
        number = any(args[i] is not None and not hasattr(args[i], "stride") for i in self._number_at)
        return TensorSpec(shape, d, elementwise_strides(shape, operands, number=number), common_device(self.name, operands))

    def _check_operands(self, args: tuple[Any, ...]) -> None:
        """Raise TypeError unless one operand is a tensor and those that are none are numbers, or left out where they may be."""
        wanted = next((i for i in self._tensor_at if not hasattr(args[i], "stride") and (
            not isinstance(args[i], (int, float, complex, np.number, np.bool_, SymInt, SymFloat))
            and (args[i] is not None or self.schema.params[i].type == "Tensor"))), None)  # fmt: skip
        if wanted is None and not any(hasattr(args[i], "stride") for i in self._tensor_at):
            wanted = self._tensor_at[0]
        if wanted is not None:
            name, kind = PUBLIC_NAMES.get(self.schema.params[wanted].name, self.schema.params[wanted].name), type(args[wanted])
            raise TypeError(f"{self.name}(): argument '{name}' (position {wanted + 1}) must be Tensor, not {kind.__name__}")

    def _view_spec(self, args: tuple[Any, ...]) -> TensorSpec:
        assert self.view is not None
        x = args[0]
        sizes, strides, _, *d = self.view(*args)
        return TensorSpec(tuple(sizes), d[0] if d else x.dtype, tuple(strides), x.device)

    # ---- execution beneath autograd ----

    def execute(self, args: tuple[Any, ...]) -> Any:
        """Run on real or fake tensors, with no regard to gradients or modes."""
        if not self.mutates and (self._native_kernel >= 0 or self._pointwise_loop >= 0):
            result = _native.run_kernel(self, args)
            if result is not None:
                return result
        if self._elementwise:
            first = _uniform_floats(args)
            if first is not None:
                return self._execute_uniform(first, args)
        if self.mutates:
            return self._execute_inplace(args)
        if self.kind is Kind.VIEW:
            return self.alias(*args)
        traits = _native.argument_traits(args)
        if traits & _FLOAT8:
            self._check_float8(args)
        if traits & _IS_FAKE:
            return self._execute_fake(args)
        where: Any = None
        if traits & ~(_ON_CPU | _WANTS_GRAD | _FLOAT8):
            for t in self.tensors(args):
                if where is None or where.type == "cpu":
                    where = t.device
        elif not traits and self.kind in (Kind.CREATION, Kind.EFFECT):
            where = self.meta(*args).device  # type: ignore[misc]
        if where is not None and where.type == "meta":
            return self._execute_fake(args)
        if self.kernel is None and self.kind is not Kind.POINTWISE:
            if self.decompose is None:
                raise NotImplementedError(f"{self.name}: no kernel")
            return owned(self.decompose(*args), self.tensors(args))
        return self._execute_kernel(args, array_module(where))

    def _execute_uniform(self, first: Any, args: tuple[Any, ...]) -> Any:
        """Pointwise over row-major float operands alike in dtype and shape: the result is alike as well."""
        out = _native.empty_like(first)
        values = [a._array if isinstance(a, TensorBase) else a for a in args]
        with np.errstate(all="ignore"):
            if self.kernel is not None:
                self.kernel(np, out._array, *values)
            elif self.ufunc is not None:
                getattr(np, self.ufunc)(*values, out=out._array)
            else:
                np.copyto(out._array, self.scalar(loop_api.NUMPY, *values))  # type: ignore[misc]
        return out

    def alias(self, x: Any, *args: Any) -> Any:
        """The view that a VIEW op makes, without history."""
        assert self.view is not None
        sizes, strides, offset, *d = self.view(x, *args)
        return _native.alias(x, sizes, strides, offset, d[0].code) if d else _native.alias(x, sizes, strides, offset)

    def _execute_fake(self, args: tuple[Any, ...]) -> Any:
        if any(hasattr(t, "_level") for t in self.tensors(args)):
            raise RuntimeError(f"{self.name}: a tensor of a function transform (vmap) was used after the transform had ended")
        if self.dynamic_output and any(t.device.type == "meta" for t in self.tensors(args)):
            raise NotImplementedError(f"{self.name}: the shape of the result depends on data, and a meta tensor has none")
        if self.dynamic_output:
            raise DataDependentError(f"{self.name}: the shape of the result depends on data, and a fake tensor has none")
        if self.meta is None and self.kind is not Kind.POINTWISE:
            if self.decompose is None:
                raise NotImplementedError(f"{self.name}: no meta rule")
            return owned(self.decompose(*args), self.tensors(args))
        specs = self._infer_result(args)
        return fake(specs) if isinstance(specs, TensorSpec) else tuple(fake(s) for s in specs)

    def _check_float8(self, args: tuple[Any, ...]) -> None:
        """Refuse 8-bit floats where the op is not defined on them. One without kernel and meta leaves that to its parts."""
        if not self.float8 and (self.kernel is not None or self.meta is not None):
            self._refuse(next(t.dtype for t in self.tensors(args) if t.dtype.is_float8))

    def _infer_result(self, args: tuple[Any, ...]) -> Any:
        """`infer`, for results that the op can make."""
        specs = self.infer(*args)
        if isinstance(specs, TensorSpec) and specs.dtype.is_float8 and not self.float8:
            self._refuse(specs.dtype)
        return specs

    def _execute_kernel(self, args: tuple[Any, ...], xp: Any) -> Any:
        if self.dynamic_output:
            result = self.kernel(xp, None, *self._arrays(args))  # type: ignore[misc]
            return tuple(from_array(a) for a in result) if isinstance(result, tuple) else from_array(result)
        specs = self._infer_result(args)
        out = empty(specs) if isinstance(specs, TensorSpec) else tuple(empty(s) for s in specs)
        self.execute_into(out, args, xp)
        return out

    def execute_into(self, out: Any, args: tuple[Any, ...], xp: Any = np) -> None:
        """Run the op's own kernel into `out`: real tensors laid out as `infer` says, a tuple if it has several
        results. xp: numpy or cupy, where they all are. Only for ops with a kernel, or pointwise."""
        with np.errstate(all="ignore"):
            if isinstance(out, tuple):
                self.kernel(xp, tuple(o._array for o in out), *self._arrays(args))  # type: ignore[misc]
            elif self.kind is Kind.POINTWISE:
                self._run_pointwise(xp, out._array, args)
            else:
                self.kernel(xp, out._array, *self._arrays(args))  # type: ignore[misc]

    def _arrays(self, args: tuple[Any, ...]) -> list[Any]:
        return [a._array if isinstance(a, TensorBase) else
                [None if t is None else t._array for t in a] if i in self._lists_at and a is not None else a
                for i, a in enumerate(args)]  # fmt: skip

    def _run_pointwise(self, xp: Any, out: Any, args: tuple[Any, ...]) -> None:
        """Cast the inputs to the compute dtype (floats of less than 4 bytes compute in float32) and run the rule."""
        compute = self.compute_dtype(*args)
        half = compute.itemsize <= 2 and compute.category is Category.FLOAT
        d = np.dtype(np.float32) if half else compute.numpy
        values: list[Any] = list(args)
        as_given = self._tensor_at if self.promotion == "raw" else self._tensor_at[: self.promotion == "select"]
        for i in self._tensor_at:
            a = values[i]
            if isinstance(a, TensorBase):
                a = a._array
                if half and a.dtype != compute.numpy and i not in as_given:
                    a = float8.cast(a, compute.numpy)  # what is wider counts with the precision of the result
                values[i] = a if a.dtype == d or i in as_given else a.astype(d)
            elif a is not None and (compute.category is Category.INT or (half and self.promotion == "bool")
                                    or (self._numbers_as_given and compute is dtypes.float16)):  # fmt: skip
                values[i] = float8.cast(np.asarray(a), compute.numpy).astype(d)[()]
        same = out.dtype == d or self.promotion in ("bool", "raw")
        if self.kernel is not None and same:
            self.kernel(xp, out, *values)
        elif self.kernel is not None:
            temporary = xp.empty(out.shape, d)
            self.kernel(xp, temporary, *values)
            float8.store(xp, out, temporary)
        elif self.ufunc is not None and same:
            getattr(xp, self.ufunc)(*values, out=out)
        elif self.ufunc is not None:
            float8.store(xp, out, getattr(xp, self.ufunc)(*values))
        else:
            k = loop_api.NUMPY if xp is np else _cuda_backend().loop
            float8.store(xp, out, self.scalar(k, *values))  # type: ignore[misc]

    def _execute_inplace(self, args: tuple[Any, ...]) -> Any:
        assert self.base is not None
        target = args[0]
        if target.dtype.is_float8:
            self.base._check_float8(args)
        if not any(t.is_fake for t in self.tensors(args)) and target.device.type != "meta":
            self._write(array_module(target.device), target._array, args)
        elif not target.is_fake and target.device.type != "meta":
            raise RuntimeError(f"{self.name}: cannot write a fake tensor into a real one")
        target._bump_version()
        return target

    def _write(self, xp: Any, target: Any, args: tuple[Any, ...]) -> None:
        """Store the base op's result into its first input: at once where no other operand can be hurt by that."""
        base = self.base
        assert base is not None
        shared = 0 in target.strides  # an expanded tensor, whose elements are written where they lie
        if base._native_kernel >= 0 and not shared and target.size <= _SMALL and (made := _native.run_kernel(base, args)) is not None:
            float8.store(xp, target, made._array)
        elif base.kind is Kind.POINTWISE and (base.kernel is None or base.over_input):
            with np.errstate(all="ignore"):
                base._run_pointwise(xp, target, args)  # numpy itself guards against operands that overlap
        elif base.over_input and (shared or target.flags.c_contiguous) and not any(
                xp.may_share_memory(target, t._array) for t in base.others(args)):  # fmt: skip
            base.kernel(xp, target, target, *base._arrays(args)[1:])  # type: ignore[misc]
        else:
            float8.store(xp, target, base.execute(args)._array)


def lookup(name: str) -> Op:
    """The op called `name`. Raises KeyError."""
    return OPS[name]


def declare(schema: str, kind: Kind, *, inplace: bool = False, **rules: Any) -> Op:
    """Add an op to the table; with `inplace`, also the derived `name_` that writes its first input."""
    op = Op(schema, kind, **rules)
    if op.name in OPS:
        raise ValueError(f"declare: op {op.name} is already in the table")
    OPS[op.name] = op
    if inplace:
        name, rest = schema.split("(", 1)
        derived = Op(f"{name}_({rest}", Kind.INPLACE, base=op, samples=op.samples)
        OPS[derived.name] = derived
    return op


# ---- what several rules need ----


def common_device(who: str, operands: Sequence[Any]) -> device:
    """The device of a result: that of the inputs, among which 0-d CPU tensors do not count."""
    result = operands[0].device
    for x in operands[1:]:
        d = x.device
        if d is result:
            continue
        if result.type == "cpu" and all(o.ndim == 0 for o in operands if o.device is result):
            result = d
        elif not (d.type == "cpu" and x.ndim == 0):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {result} and {d}! "
                f"(when calling {who})"
            )
    return result


def _no_cuda() -> Any:
    raise RuntimeError("CUDA is not available: eager.cuda is not imported")


_cuda_backend: Callable[[], Any] = _no_cuda


def set_cuda_backend(backend: Callable[[], Any]) -> None:
    """Registered by `eager.cuda`: gives `.xp`, `.loop`, `.empty(spec)`, `.from_array(a)`, or raises RuntimeError."""
    global _cuda_backend
    _cuda_backend = backend


def array_module(where: device | None) -> Any:
    """numpy, or CuPy for a CUDA device. Raises RuntimeError where there is no GPU."""
    return np if where is None or where.type == "cpu" else _cuda_backend().xp


def empty(spec: TensorSpec) -> Any:
    """A tensor of `spec` with undefined contents (a fake one on the meta device)."""
    if spec.device.type == "cpu":
        return _native.empty(spec.dtype.code, spec.shape, spec.strides)
    if spec.device.type == "meta":
        return fake(spec)
    return _cuda_backend().empty(spec)


def from_array(a: Any) -> Any:
    """A tensor over an array's own memory (copied if its strides are negative or not whole elements)."""
    made = _native.tensor_from_array(a)
    if made is not None:
        return made
    if not isinstance(a, np.ndarray):
        return _cuda_backend().from_array(a)
    d = dtypes.from_numpy(a.dtype)
    if a.dtype.byteorder not in "=|" or any(s < 0 or s % a.itemsize for s in a.strides) or not a.flags.writeable:
        a = np.array(a, d.numpy, order="C")
    span = 0 if a.size == 0 else a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
    storage = _native.storage_from_memory(a.ctypes.data, span, a)
    # numpy gives an array of no elements any strides at all
    strides = tuple(s // a.itemsize for s in a.strides) if a.size else contiguous_strides(a.shape)
    return _native.new_tensor(None, storage, d.code, a.shape, strides)


def by_kernel(op: Op, *args: Any) -> Any:
    """What the op's native kernel makes of numpy arrays, which are laid out for it, among its arguments: an array, or None."""
    given = tuple(from_array(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in args)
    result = _native.run_kernel(op, given)
    return None if result is None else result._array


def zeros(spec: SpecLike) -> Any:
    """A tensor of zeros, through dispatch."""
    return OPS["full"](tuple(spec.shape), 0, spec.dtype, spec.device)


inplace.set_ops(lambda: OPS["clone"], lambda: OPS["as_strided"])
hooks.set_factory(lambda spec, value: OPS["full"](tuple(spec.shape), value, spec.dtype, spec.device))


def _conjugated(g: Any) -> Any:
    return OPS["conj"](g) if g is not None and g.dtype.is_complex else g


def cast_to(g: Any, d: dtype) -> Any:
    """`g` in dtype `d`. The real part of a complex gradient of a real input is a view, as torch has it."""
    if g.dtype is d:
        return g
    if g.dtype.is_complex and not d.is_complex:
        return cast_to(OPS["real"](g), d)
    return OPS["to_dtype"](g, d)


def sum_to(g: Any, shape: Sequence[int]) -> Any:
    """Sum `g` over the dims along which `shape` was broadcast to it."""
    shape = tuple(shape)
    if same_shape(g.shape, shape):
        return g
    lead = g.ndim - len(shape)
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    if dims:
        g = OPS["sum"](g, dims, True, None)
    return OPS["view"](g, shape) if lead else g


def fit(g: Any, x: Any) -> Any:
    """A cotangent in the shape and dtype of the input that it belongs to."""
    return cast_to(sum_to(g, x.shape), x.dtype)


_native.register_gradient_helpers(None, fit, cast_to)
composition: Final = opmath.composition(cast_to)


def become(t: Any, other: Any) -> None:
    """Give `t` the geometry and the memory of `other`, in place.

    Raises: NotImplementedError while calls are recorded: a graph of functions knows no tensor whose shape changes.
    """
    if t.is_fake and _native.mode_depth() & thread_state.MODES:
        raise NotImplementedError(f"a tensor of shape {list(t.shape)} takes the shape {list(other.shape)} in place while it is traced")
    t._set_impl(other)


def reshape_storage(t: Any, spec: TensorSpec) -> bool:
    """Lay `t` out as `spec` over the memory that it stands on; False, with `t` as it was, where that does not suffice."""
    room = t.untyped_storage().nbytes() // t.element_size() - t.storage_offset()
    span = 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True)) if spec.numel() else 0
    if span > room:
        return False
    become(t, _native.alias(t, spec.shape, spec.strides, t.storage_offset()))
    return True


def resize_out(out: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Give an `out=` tensor the shape of its result, over its own memory where it suffices, so that other views see the
    result too; one with elements is resized with torch's warning.
    """
    if out.numel():
        warn(f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match "
             f"the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release "
             "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
             "resizing it, inplace, to zero elements with t.resize_(0).")  # fmt: skip
    spec = TensorSpec(shape, out.dtype, strides, out.device)
    if not reshape_storage(out, spec):
        become(out, empty(spec))


def refuse_gradients_through_out(name: str, *values: Any) -> None:
    """Raise RuntimeError, in torch's words, if autograd records and one of the values, numbers or tensors, requires grad."""
    if _native.grad_enabled() and any(isinstance(v, TensorBase) and v.requires_grad for v in values):
        raise RuntimeError(f"{name + '(): ' if name else ''}functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")  # fmt: skip


def write_out(out: Any, result: Any, exact: bool = False, differentiable: bool = True) -> Any:
    """Store a result into `out=`, as torch does: resized if empty, cast if the category allows and `exact` does not forbid it.

    Raises RuntimeError where the function is `differentiable` and a gradient is wanted through it: `out=` has none.
    """
    if isinstance(result, (tuple, list)):
        if isinstance(out, TensorBase):
            raise TypeError("argument 'out' must be tuple of Tensors, not Tensor")
        written = [write_out(o, r, exact, differentiable) for o, r in zip(out, result, strict=True)]
        return result._make(written) if hasattr(result, "_make") else type(result)(written)
    if not isinstance(out, TensorBase):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if differentiable:
        refuse_gradients_through_out("", result, out)
    if exact and out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype.name}, but got {out.dtype.name} instead")
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"result type {scalar_name(result.dtype)} can't be cast to the desired output type {scalar_name(out.dtype)}")
    if tuple(out.shape) != tuple(result.shape):
        resize_out(out, tuple(result.shape), tuple(result.stride()))
    return OPS["copy_"](out, result)
