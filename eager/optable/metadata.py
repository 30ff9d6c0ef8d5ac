"""The dtype and spec of an op's result, from its declaration and the specs of its arguments."""
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import dtype, result_type, scalar_name
from eager.base.fake import fake
from eager.base.scalars import check_int
from eager.base.spec import TensorSpec, broadcast_shapes, elementwise_strides, same_shape, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch import calls
from eager.optable.declaration import Declaration
from eager.optable.memory import common_device
from eager.optable.registry import Kind
from eager.optable.schema import PUBLIC_NAMES

TensorBase = _native.TensorBase


def compute_dtype(op: Declaration, *args: Any) -> dtype:
    """The dtype that a pointwise op computes in, before the result's own rule."""
    if op.promotion == "raw":
        return args[0].dtype
    first = 1 if op.promotion == "select" else 0  # `where`: the condition does not count
    d = result_type(*(args[i] for i in op._tensor_at[first:]))
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
    shape = tuple(operands[0].shape)
    if not all(same_shape(x.shape, shape) for x in operands[1:]):
        shape = broadcast_shapes(*(x.shape for x in operands))
    d = result_dtype(op, compute_dtype(op, *args))
    number = any(args[i] is not None and not hasattr(args[i], "stride") for i in op._number_at)
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
