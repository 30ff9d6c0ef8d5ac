"""The op table: one op per record, callable, and everything that any layer needs to know of it.

An op is its declaration (`declaration`) with behaviour: the call, which binds the arguments to the schema and dispatches
(`eager.dispatch.calls`); metadata and execution beneath autograd (`execute`); gradients (`gradients`).
"""
from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from eager import _native
from eager.base.overlap import check_out
from eager.dispatch import calls
from eager.optable import execute as _execute
from eager.optable import gradients as _gradients
from eager.optable import signatures
from eager.optable.declaration import Declaration, Rules, is_number
from eager.optable.memory import from_array
from eager.optable.out import write_out
from eager.optable.registry import CALLS, Kind
from eager.tape import hooks, inplace


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
            _execute.refuse_dtype(self, x.dtype)
        return calls.call(self, args)

    compute_dtype = _execute.compute_dtype
    result_dtype = _execute.result_dtype
    infer = _execute.infer
    infer_pointwise = _execute.infer_pointwise
    execute = _execute.execute
    execute_into = _execute.execute_into
    alias = _execute.alias
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
