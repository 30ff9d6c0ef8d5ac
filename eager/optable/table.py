"""The op table: one op per record, callable, and everything that any layer needs to know of it.

An op is its declaration (`declaration`) with behaviour: the call, which binds the arguments to the schema and dispatches
(`eager.dispatch.calls`); its metadata; its execution beneath autograd; gradients (`gradients`). The dtype and spec of a result follow from
the declaration and the specs of the arguments. Its elements come from a native kernel, a kernel over arrays, a view, or a
decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, cast

import numpy as np

from eager import _native
from eager.base import dtypes, float8
from eager.base.device import CPU
from eager.base.dtypes import Category, dtype, result_type, scalar_name
from eager.base.overlap import check_out
from eager.base.scalars import check_int
from eager.base.spec import (
    DataDependentError,
    TensorSpec,
    broadcast_shapes,
    common_device,
    elementwise_strides,
    fake,
    spec_of,
)
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch import calls
from eager.optable import gradients as _gradients
from eager.optable import loop_api, memory, signatures
from eager.optable.declaration import PUBLIC_NAMES, Declaration, Rules, is_number
from eager.optable.memory import array_module, cuda_backend, cuda_loop, empty, from_array
from eager.optable.out import write_out
from eager.optable.registry import CALLS, Kind
from eager.tape import hooks, inplace
from eager.tape.record import owned

# -- metadata, and execution beneath autograd -----------------------------------------------------------------------
# -- metadata -------------------------------------------------------------------------------------------------------
TensorBase = _native.TensorBase


def compute_dtype(op: Declaration, *args: Any) -> dtype:
    """The dtype that a pointwise op computes in, before the result's own rule."""
    if op.promotion == "raw":
        return args[0].dtype
    first = 1 if op.promotion == "select" else 0  # `where`: the condition does not count
    d = result_type(*[args[i] for i in op._tensor_at[first:]])
    if d.category not in op.accepts or (d.is_float8 and not op.float8):
        refuse_dtype(op, d)
    if op.promotion == "float" and d.is_integral:
        return dtypes.get_default_dtype()
    return d


def refuse_dtype(op: Declaration, d: dtype) -> NoReturn:
    """Raises NotImplementedError, with torch's text: the op is not defined on the dtype."""
    raise NotImplementedError(f"\"{op.name}\" not implemented for '{scalar_name(d)}'")


def result_dtype(op: Declaration, compute: dtype) -> dtype:
    """The dtype of a pointwise op's result, from the dtype that it computes in."""
    if op.promotion == "bool":
        return dtypes.bool_
    return compute.to_real() if op.promotion == "real" else compute


def infer(op: Declaration, *args: Any) -> Any:
    """The spec (or tuple of specs) of the result of `args`, for every kind of op."""
    if op.kind is Kind.VIEW:
        return view_spec(op, args)
    if op.meta is not None:
        return op.meta(*args)
    if op.kind is Kind.POINTWISE:
        return infer_pointwise(op, args)
    fakes = [fake(spec_of(a)) if isinstance(a, (TensorBase, TensorSpec)) else
             [None if t is None else fake(spec_of(t)) for t in a] if i in op._lists_at and a is not None else a
             for i, a in enumerate(args)]  # fmt: skip
    if op.decompose is None:
        raise NotImplementedError(f"{op.name}: no meta rule")
    with calls.modes_off():
        out = op.decompose(*fakes)
    return spec_of(out) if isinstance(out, TensorBase) else tuple(spec_of(t) for t in out)


def infer_pointwise(op: Declaration, args: tuple[Any, ...]) -> TensorSpec:
    """The spec that operands, a dtype rule and the law of elementwise strides give."""
    for a in args:
        if a.__class__ is int:
            check_int(a)
    operands = [args[i] for i in op._tensor_at if hasattr(args[i], "stride")]
    if len(operands) != len(op._tensor_at):
        _check_operands(op, args)
    number = any(args[i] is not None and not hasattr(args[i], "stride") for i in op._number_at)
    shape = tuple(operands[0].shape)
    for x in operands[1:]:
        other = tuple(x.shape)
        if len(other) != len(shape) or not other == shape:  # noqa: SIM201 - `!=` of symbolic sizes is another question
            shape = broadcast_shapes(*[x.shape for x in operands])
            break
    d = compute_dtype(op, *args)
    if op.promotion in ("bool", "real"):
        d = result_dtype(op, d)
    return TensorSpec(shape, d, elementwise_strides(shape, operands, number=number), common_device(op.name, operands))


def _check_operands(op: Declaration, args: tuple[Any, ...]) -> None:
    """Raise TypeError unless one operand is a tensor and the others are tensors or numbers. None passes for an optional operand."""
    wanted = next((i for i in op._tensor_at if not hasattr(args[i], "stride") and (
        not isinstance(args[i], (int, float, complex, np.number, np.bool_, SymInt, SymFloat))
        and (args[i] is not None or op.schema.params[i].type == "Tensor"))), None)  # fmt: skip
    if wanted is None and not any(hasattr(args[i], "stride") for i in op._tensor_at):
        wanted = op._tensor_at[0]
    if wanted is not None:
        name, kind = PUBLIC_NAMES.get(op.schema.params[wanted].name, op.schema.params[wanted].name), type(args[wanted])
        raise TypeError(f"{op.name}(): argument '{name}' (position {wanted + 1}) must be Tensor, not {kind.__name__}")


def view_spec(op: Declaration, args: tuple[Any, ...]) -> TensorSpec:
    """The spec of a VIEW op's result."""
    assert op.view is not None
    x = args[0]
    sizes, strides, _, *d = op.view(*args)
    return TensorSpec(tuple(sizes), d[0] if d else x.dtype, tuple(strides), x.device)


# -- execution ------------------------------------------------------------------------------------------------------
_uniform_floats = _native.uniform_float_tensor
_ON_CPU, _IS_FAKE, _WANTS_GRAD, _FLOAT8 = 1, 8, 16, 32  # of `_native.argument_traits`
_SMALL: Final = 4096  # elements of which a copy costs less than a call of numpy


def execute(op: Declaration, args: tuple[Any, ...]) -> Any:
    """The result of an op on real or fake tensors, without gradients and modes."""
    if not op.mutates and (op._native_kernel >= 0 or op._pointwise_loop >= 0):
        result = _native.run_kernel(op, args)
        if result is not None:
            return result
    if op._elementwise:
        first = _uniform_floats(args)
        if first is not None:
            return _execute_uniform(op, first, args)
    if op.mutates:
        return _execute_inplace(op, args)
    if op.kind is Kind.VIEW:
        return alias(op, *args)
    traits = _native.argument_traits(args)
    if traits & _FLOAT8:
        _check_float8(op, args)
    if traits & _IS_FAKE:
        return _execute_fake(op, args)
    where: Any = None
    if traits & ~(_ON_CPU | _WANTS_GRAD | _FLOAT8):
        for t in op.tensors(args):
            if where is None or where.type == "cpu":
                where = t.device
    elif not traits and op.kind in (Kind.CREATION, Kind.EFFECT):
        assert op.meta is not None
        where = op.meta(*args).device
    if where is not None and where.type == "meta":
        return _execute_fake(op, args)
    if op.kernel is None and op.kind is not Kind.POINTWISE:
        if op.decompose is None:
            raise NotImplementedError(f"{op.name}: no kernel")
        return owned(op.decompose(*args), op.tensors(args))
    return _execute_kernel(op, args, array_module(where))


def _execute_uniform(op: Declaration, first: Any, args: tuple[Any, ...]) -> Any:
    """Pointwise over row-major float operands alike in dtype, device and shape: the result is alike as well."""
    xp: Any = np
    if first.device.type == "cpu":
        out = _native.empty_like(first)
    else:
        xp, out = array_module(first.device), cuda_backend().empty_like(first)
    values = [a._array if isinstance(a, TensorBase) else a for a in args]
    with np.errstate(all="ignore"):
        if op.kernel is not None:
            op.kernel(xp, out._array, *values)
        elif op.ufunc is not None:
            getattr(xp, op.ufunc)(*values, out=out._array)
        else:
            assert op.scalar is not None
            xp.copyto(out._array, op.scalar(loop_api.NUMPY if xp is np else cuda_loop(), *values))
    return out


def alias(op: Declaration, x: Any, *args: Any) -> Any:
    """The view that a VIEW op makes, without history."""
    assert op.view is not None
    sizes, strides, offset, *d = op.view(x, *args)
    return _native.alias(x, sizes, strides, offset, d[0].code) if d else _native.alias(x, sizes, strides, offset)


def _execute_fake(op: Declaration, args: tuple[Any, ...]) -> Any:
    if any(hasattr(t, "_level") for t in op.tensors(args)):
        raise RuntimeError(f"{op.name}: a tensor of a function transform (vmap) was used after the transform had ended")
    if op.dynamic_output and any(t.device.type == "meta" for t in op.tensors(args)):
        raise NotImplementedError(f"{op.name}: the shape of the result depends on data, and a meta tensor has no data")
    if op.dynamic_output:
        raise DataDependentError(f"{op.name}: the shape of the result depends on data, and a fake tensor has no data")
    if op.meta is None and op.kind is not Kind.POINTWISE:
        if op.decompose is None:
            raise NotImplementedError(f"{op.name}: no meta rule")
        return owned(op.decompose(*args), op.tensors(args))
    specs = _infer_result(op, args)
    return fake(specs) if isinstance(specs, TensorSpec) else tuple(fake(s) for s in specs)


def _check_float8(op: Declaration, args: tuple[Any, ...]) -> None:
    """Refuse 8-bit floats if the op is not defined on them. An op without kernel and meta leaves the check to its parts."""
    if not op.float8 and (op.kernel is not None or op.meta is not None):
        refuse_dtype(op, next(t.dtype for t in op.tensors(args) if t.dtype.is_float8))


def _infer_result(op: Declaration, args: tuple[Any, ...]) -> Any:
    """`infer`, for results that the op can make."""
    specs = infer(op, *args)
    if isinstance(specs, TensorSpec) and specs.dtype.is_float8 and not op.float8:
        refuse_dtype(op, specs.dtype)
    return specs


def _execute_kernel(op: Declaration, args: tuple[Any, ...], xp: Any) -> Any:
    if op.dynamic_output:
        assert op.kernel is not None
        if xp is not np and _native.argument_traits(args) & _FLOAT8:
            where = next(t.device for t in op.tensors(args) if t.device.type != "cpu")
            made = _execute_kernel(op, _on_host(op, args), np)
            return tuple(memory.from_host(t, where) for t in made) if isinstance(made, tuple) else memory.from_host(made, where)
        result = op.kernel(xp, None, *arrays(op, args, xp))
        return tuple(from_array(a) for a in result) if isinstance(result, tuple) else from_array(result)
    specs = _infer_result(op, args)
    out = empty(specs) if isinstance(specs, TensorSpec) else tuple(empty(s) for s in specs)
    execute_into(op, out, args, xp)
    return out


def execute_into(op: Declaration, out: Any, args: tuple[Any, ...], xp: Any = np) -> None:
    """Run the op's own kernel into `out`: real tensors laid out as `infer` says, a tuple if it has several
    results. xp: numpy or cupy, where they all are. Only for ops with a kernel, or pointwise.

    CuPy has no kernels for 8-bit floats: the host computes them. Compiled code does not come here."""
    if xp is not np and (_native.argument_traits(args) | _native.argument_traits(out if isinstance(out, tuple) else (out,))) & _FLOAT8:
        _execute_into_by_host(op, out, args)
        return
    with np.errstate(all="ignore"):
        if op.kind is Kind.POINTWISE and not isinstance(out, tuple):
            _run_pointwise(op, xp, out._array, args)
            return
        assert op.kernel is not None
        op.kernel(xp, tuple(o._array for o in out) if isinstance(out, tuple) else out._array, *arrays(op, args, xp))


def _execute_into_by_host(op: Declaration, out: Any, args: tuple[Any, ...]) -> None:
    outs = out if isinstance(out, tuple) else (out,)
    made = tuple(empty(TensorSpec.contiguous(tuple(o.shape), o.dtype, CPU)) for o in outs)
    execute_into(op, made if isinstance(out, tuple) else made[0], _on_host(op, args))
    for o, values in zip(outs, made, strict=True):
        cuda_backend().copy_from_host(o, values, False)


def _on_host(op: Declaration, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with copies on the CPU in place of CUDA tensors."""
    def copy(a: Any) -> Any:
        return memory.on_host(a) if isinstance(a, TensorBase) and a.device.type != "cpu" else a

    return tuple([copy(t) for t in a] if i in op._lists_at and a is not None else copy(a) for i, a in enumerate(args))


def arrays(op: Declaration, args: tuple[Any, ...], xp: Any = np) -> list[Any]:
    """The arguments with arrays of `xp` in place of tensors."""
    read = _array_of if xp is np else _operand_on_cuda
    return [read(a) if isinstance(a, TensorBase) else
            [None if t is None else read(t) for t in a] if i in op._lists_at and a is not None else a
            for i, a in enumerate(args)]  # fmt: skip


def _array_of(t: Any) -> Any:
    return t._array


def _operand_on_cuda(t: Any) -> Any:
    """The array of a CUDA tensor, or the number in a CPU tensor without dims, which CUDA tensors may be combined with."""
    return t._array if t.device.type == "cuda" or t.ndim else t._array[()]


def _run_pointwise(op: Declaration, xp: Any, out: Any, args: tuple[Any, ...]) -> None:
    """Cast the inputs to the compute dtype (floats of less than 4 bytes compute in float32) and run the rule."""
    compute = compute_dtype(op, *args)
    half = compute.itemsize <= 2 and compute.category is Category.FLOAT
    d = np.dtype(np.float32) if half else compute.numpy
    values: list[Any] = list(args)
    as_given = op._tensor_at if op.promotion == "raw" else op._tensor_at[: op.promotion == "select"]
    for i in op._tensor_at:
        a = values[i]
        if isinstance(a, TensorBase):
            a = a._array if xp is np else _operand_on_cuda(a)
            if half and a.dtype != compute.numpy and i not in as_given and op.rounds_operand(i, a.ndim):
                a = float8.cast(a, compute.numpy)
            values[i] = a if a.dtype == d or i in as_given else a.astype(d)
        elif a is not None and op.rounds_numbers(compute):
            rounded = float8.cast(np.asarray(a), compute.numpy).astype(d)[()]
            values[i] = rounded.item() if op.takes_as_given(a, compute) else rounded
    same = out.dtype == d or op.promotion in ("bool", "raw")
    if op.kernel is not None and same:
        op.kernel(xp, out, *values)
    elif op.kernel is not None:
        temporary = xp.empty(out.shape, d)
        op.kernel(xp, temporary, *values)
        float8.store(xp, out, temporary)
    elif op.ufunc is not None and same and (xp is np or compute.category is not Category.COMPLEX):
        getattr(xp, op.ufunc)(*values, out=out)
    elif op.ufunc is not None and (xp is np or op.scalar is None):
        float8.store(xp, out, getattr(xp, op.ufunc)(*values))
    else:
        k = loop_api.NUMPY if xp is np else cuda_loop()
        assert op.scalar is not None
        float8.store(xp, out, op.scalar(k, *values))


def _execute_inplace(op: Declaration, args: tuple[Any, ...]) -> Any:
    assert op.base is not None
    target = args[0]
    if op.decompose is not None:
        return _execute_decomposed(op, op.decompose, args)
    if target.dtype.is_float8:
        _check_float8(op.base, args)
    if not any(t.is_fake for t in op.tensors(args)) and target.device.type != "meta":
        _write(op, array_module(target.device), target._array, args)
    elif not target.is_fake and target.device.type != "meta":
        raise RuntimeError(f"{op.name}: cannot write a fake tensor into a real one")
    target._bump_version()
    return target


def _execute_decomposed(op: Declaration, decompose: Callable[..., None], args: tuple[Any, ...]) -> Any:
    """Run an in-place op whose decomposition writes. The metadata of fakes does not change (`inplace.check_result`)."""
    if any(t.is_fake for t in op.tensors(args)):
        for t in op.written(args):
            t._bump_version()
    else:
        decompose(*args)
    return args[0]


def _write(op: Declaration, xp: Any, target: Any, args: tuple[Any, ...]) -> None:
    """Store the base op's result into its first input: directly, if no other operand overlaps it."""
    base = op.base
    assert base is not None
    if xp is not np and _native.argument_traits(args) & _FLOAT8:
        made = execute(base, args)
        memory.assign(args[0], made if made.dtype is args[0].dtype else CALLS["to_dtype"](made, args[0].dtype))
        return
    shared = 0 in target.strides  # an expanded tensor, whose elements are written where they lie
    if base._native_kernel >= 0 and not shared and target.size <= _SMALL and (made := _native.run_kernel(base, args)) is not None:
        float8.store(xp, target, made._array)
    elif base.kind is Kind.POINTWISE and (base.kernel is None or base.over_input):
        with np.errstate(all="ignore"):
            _run_pointwise(base, xp, target, args)  # numpy itself guards against operands that overlap
    elif base.over_input and (shared or target.flags.c_contiguous) and not any(
            xp.may_share_memory(target, t._array) for t in base.others(args)):  # fmt: skip
        assert base.kernel is not None
        base.kernel(xp, target, target, *arrays(base, args, xp)[1:])
    else:
        float8.store(xp, target, execute(base, args)._array)


# -- ops ------------------------------------------------------------------------------------------------------------
class Op(Declaration):
    """One op. Calling it binds the arguments to the schema and dispatches."""

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs every call that has no native fast path."""
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
            refuse_dtype(self, x.dtype)
        return calls.call(self, args)

    compute_dtype = compute_dtype
    result_dtype = result_dtype
    infer = infer
    infer_pointwise = infer_pointwise
    execute = execute
    execute_into = execute_into
    alias = alias
    saved_names = _gradients.saved_names
    apply_vjp = _gradients.apply_vjp
    _record_plan = _gradients.record_plan  # called by native recording
    _gradient_rules = _gradients.gradient_rules  # called by the native backward

    def __reduce__(self) -> tuple[Any, ...]:
        return (lookup, (self.name,))

    def __deepcopy__(self, memo: Any) -> Op:
        return self


OPS: Final = cast("dict[str, Op]", CALLS)


def lookup(name: str) -> Op:
    """The op called `name`. Raises KeyError."""
    return OPS[name]


def declare(schema: str, kind: Kind, *, inplace: bool = False, **rules: Any) -> Op:
    """Add an op to the table; with `inplace`, also the derived `name_` that writes its first input. rules: see `Rules`."""
    op = _added(schema, kind, Rules(**rules))
    if inplace:
        name, rest = schema.split("(", 1)
        _added(f"{name}_({rest}", Kind.INPLACE, Rules(base=op, samples=op.samples))
    return op


def _added(schema: str, kind: Kind, rules: Rules) -> Op:
    op = Op(schema, kind, rules)
    if op.name in OPS:
        raise ValueError(f"declare: op {op.name} is already in the table")
    OPS[op.name] = op
    return op


def by_kernel(op: Op, *args: Any) -> Any:
    """The result of the op's native kernel, an array, for arguments with numpy arrays among them; None if there is no such kernel."""
    given = tuple(from_array(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in args)
    result = _native.run_kernel(op, given)
    return None if result is None else result._array


inplace.set_ops(lambda: OPS["clone"], lambda: OPS["as_strided"])
hooks.set_factory(lambda spec, value: OPS["full"](tuple(spec.shape), value, spec.dtype, spec.device))
