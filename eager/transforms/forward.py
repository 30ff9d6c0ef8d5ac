"""The level of forward mode: tensors with a tangent, and the tangents of the results of ops.

No op states a forward rule. The rule follows from the op's record:
  1. linear op (views by kind, else `linear_in` and `bilinear_in` of the declaration): the op applied to the tangents;
  2. pointwise op: the Jacobian is diagonal, so the reverse formula, applied to a tangent, is the forward rule;
  3. op with a gradient formula: g -> J^T g is linear in g, and its reverse is t -> J t;
  4. composite op without a formula: its decomposition, op by op.
Rule 3 is correct for every op with a formula (rules 1 and 2 save work), so a new op of the table needs no entry here. Source of
rule 3: J. Townsend, "A new trick for calculating Jacobian vector products" (2017).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.autograd.function import run_with_ctx
from eager.base.spec import spec_of
from eager.dispatch.calls import active_level, without
from eager.optable.declaration import cast_to
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.tape import hooks
from eager.tape.inplace import check_result
from eager.transforms.level import Level, Wrapped
from eager.transforms.lifting import Lifting, require_setup_context

TensorBase = _native.TensorBase


class DualTensor(Wrapped):
    """A tensor of a forward-mode transform: `_value`, and `_tangent` or None for zero.

    A view stores no tangent: its tangent is the same view of its base's tangent.
    """

    _tangent: Any
    _base_dual: DualTensor | None
    _steps: tuple[tuple[Op, tuple[Any, ...]], ...]

    def _alias(self) -> Any:
        t = super()._alias()
        t._tangent, t._base_dual, t._steps = self._tangent, self._base_dual, self._steps
        return t

    @property
    def tangent(self) -> Any:
        """The tangent, or None where it is zero throughout."""
        if self._base_dual is None:
            return self._tangent
        t = self._base_dual._tangent
        return None if t is None else _replay(t, self._steps)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        t = self.tangent
        text = repr(self._value)
        return text if t is None else f"{text[:-1]}, tangent={t!r})"


def _replay(t: Any, steps: Sequence[tuple[Op, tuple[Any, ...]]]) -> Any:
    for op, args in steps:
        t = op(t, *args)
    return t


class Forward(Level):
    """Carries tangents through op calls."""

    wrapper = DualTensor

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth

    def dual(self, value: Any, tangent: Any) -> Any:
        """`value` with a tangent (None: zero) of its shape and dtype, brought into its layout: views may depend on it."""
        t = self.wrap(value)
        if tangent is not None and tangent.stride() != value.stride():
            tangent = OPS["copy"](value, tangent)
        t._tangent = tangent
        return t

    def wrap(self, value: Any) -> Any:
        t = super().wrap(value)
        t._tangent, t._base_dual, t._steps = None, None, ()
        return t

    def tangent(self, x: Any) -> Any:
        """The tangent of an argument, or None; lists item by item."""
        if isinstance(x, DualTensor) and x._level is self:
            return x.tangent
        if isinstance(x, (list, tuple)):
            found = [self.tangent(v) for v in x]
            return None if all(t is None for t in found) else found
        return None

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if not self.owns_any(op, args):
            return self.pass_on(op, args)
        self.refuse_captured(op, args)
        if op.mutates:
            return self._write(op, args)
        values, tangents = self.values(args), tuple(self.tangent(a) for a in args)
        if op.kind is Kind.VIEW:
            return self._view(op, args, values)
        if all(t is None for t in tangents):
            return self.wrap_results(op(*values))
        if _decomposes(op):
            assert op.decompose is not None
            with self:
                return op.decompose(*args)
        result, tangent = push_forward(op, values, tangents)
        if isinstance(result, tuple):
            return tuple(self.dual(y, t) for y, t in zip(result, tangent, strict=True))
        return self.dual(result, tangent)

    def _view(self, op: Op, args: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        y = self.wrap(op(*values))
        if not op.nondifferentiable:
            x = args[0]
            y._base_dual = x if x._base_dual is None else x._base_dual
            y._steps = (*x._steps, (op, args[1:]))
        return y

    def _write(self, op: Op, args: tuple[Any, ...]) -> Any:
        """In place: the value is written below, the tangent of the whole base is replaced."""
        base, target = op.base, args[0]
        assert base is not None
        check_result(op, target, args)
        values, tangents = self.values(args), tuple(self.tangent(a) for a in args)
        if all(t is None for t in tangents):
            op(*values)
            return target
        if base.nondifferentiable or not (base.vjp or base.decompose):
            new = None
        elif _decomposes(base):
            assert base.decompose is not None
            with self:
                functional = base.decompose(*args)
            new = self.tangent(functional)
        else:
            # on a copy: formulas save the old value, which the write must not change
            new = push_forward(base, (OPS["clone"](values[0], None), *values[1:]), tangents)[1]
        op(*values)
        self._set_tangent(target, new)
        return target

    def _set_tangent(self, target: Any, new: Any) -> None:
        if new is not None:
            new = cast_to(new, target._value.dtype)
        root = target._base_dual
        if root is None:
            target._tangent = new
            return
        if root._tangent is None and new is None:
            return
        whole = hooks.zeros(root._value) if root._tangent is None else root._tangent
        whole = OPS["clone"](whole, None)
        root._tangent = whole if new is None else rows_as(whole, new)
        part = _replay(root._tangent, target._steps)
        OPS["copy_"](part, hooks.zeros(part) if new is None else new)

    def custom_function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """A custom function runs below; its `jvp` gives the tangents of its outputs."""
        if not any(self.owns(a) for a in args):
            with without(self):
                return self.wrap_results(cls.apply(*args))
        values, tangents = self.values(args), [self.tangent(a) for a in args]
        with without(self):
            if active_level() is None:
                result, ctx = run_with_ctx(cls, values, None)
            else:
                require_setup_context(cls)
                result, ctx = cls.apply(*values), cls._backward_cls([], [])
                cls.setup_context(ctx, values, result)
            if ctx.materialize_grads:
                tangents = [hooks.zeros(v) if t is None and isinstance(v, TensorBase) and v.dtype.category >= 2 else t
                            for v, t in zip(values, tangents, strict=True)]  # fmt: skip
            found = ctx.forward_mode(tangents)
        if not isinstance(result, tuple):
            return self.dual(result, found)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(self.dual(y, t) if isinstance(y, TensorBase) else y for y, t in zip(result, found, strict=True))


def rows_as(t: Any, like: Any) -> Any:
    """`t`, as a row of the batches that `like` is a row of: so that `like` can be written into it."""
    if like._batches <= t._batches:
        return t
    return OPS["where"]((like == like).all(), t, t)  # an op that every level sees: no history is lost


# ---- tangents of results ----


def _decomposes(op: Op) -> bool:
    """Whether an op has no gradient formula and differentiates through its decomposition.

    A formula is preferred: it has a value at points where the parts of the decomposition have no derivative.
    """
    return op.decompose is not None and not op.vjp and not op.rules.linear_in and op.rules.bilinear_in is None


def push_forward(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """(result, tangent) of a functional op that is not a view; for several results two tuples."""
    if op.nondifferentiable:
        result = op(*values)
        return result, (None,) * len(result) if isinstance(result, tuple) else None
    if op.rules.linear_in and _only_linear(op, tangents):
        return op(*values), _linear(op, values, tangents)
    if op.rules.bilinear_in is not None:
        return op(*values), _bilinear(op, values, tangents)
    result = op(*values)
    single = not isinstance(result, tuple)
    if single and result.dtype.category < 2:
        return result, None
    tensors = [t for t in op.tensors(values) if isinstance(t, TensorBase)]
    is_real = not any(t.dtype.is_complex for t in [*tensors, *([result] if single else result)])
    if op.kind is Kind.POINTWISE and is_real and all(not v.joint for v in op.vjp.values()):
        return result, _diagonal(op, values, tangents, result)
    return result, _by_transposition(op, values, tangents, result)


def _only_linear(op: Op, tangents: tuple[Any, ...]) -> bool:
    """Whether the op is linear in every argument that has a tangent."""
    return all(t is None or p.name in op.rules.linear_in for p, t in zip(op.schema.params, tangents, strict=True))


def _zero_for(x: Any) -> Any:
    """Zeros in the layout of `x`, which ops on strides go by."""
    return OPS["fill"](OPS["detach"](x), 0) if isinstance(x, TensorBase) else 0


def _linear(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    args, zeroed = list(values), op.rules.zeroed
    for i, p in enumerate(op.schema.params):
        if p.name in zeroed:
            args[i] = zeroed[p.name]
        elif p.name in op.rules.linear_in:
            t = tangents[i]
            if p.is_tensor_list:
                given = [None] * len(values[i]) if t is None else t
                args[i] = [_zero_for(v) if s is None else s for v, s in zip(values[i], given, strict=True)]
            else:
                args[i] = _zero_for(values[i]) if t is None else t
    result = op(*args)
    return result if result.dtype.category >= 2 else None


def _bilinear(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    assert op.rules.bilinear_in is not None
    first, second, affine = op.rules.bilinear_in
    at = {p.name: i for i, p in enumerate(op.schema.params)}
    a, b = at[first], at[second]
    c = at[affine] if affine is not None else None
    total = None
    if tangents[a] is not None or (c is not None and tangents[c] is not None):
        args = list(values)
        args[a] = _zero_for(values[a]) if tangents[a] is None else tangents[a]
        if c is not None:
            args[c] = tangents[c]
        total = op(*args)
    if tangents[b] is not None:
        args = list(values)
        args[b] = tangents[b]
        if c is not None:
            args[c] = None
        part = op(*args)
        total = part if total is None else total + part
    return total


def _diagonal(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...], result: Any) -> Any:
    """Pointwise: every input's reverse formula at its tangent, summed."""
    env: dict[str, Any] = {"y": result, "ys": (result,), "needs": (True,)}
    for p, v in zip(op.schema.params, values, strict=True):
        env[p.name] = v
        if isinstance(v, TensorBase):
            env[p.name + "_spec"] = spec_of(v)
    shape, total = tuple(result.shape), None
    for p, t in zip(op.schema.params, tangents, strict=True):
        rule = op.vjp.get(p.name)
        if t is None or rule is None:
            continue
        g = cast_to(t, result.dtype)
        g = g if tuple(g.shape) == shape else OPS["expand"](g, shape)
        part = cast_to(rule.fn(*({**env, "g": g, "gs": (g,)}[n] for n in rule.params)), result.dtype)
        total = part if total is None else total + part
    return total


def _by_transposition(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...], result: Any) -> Any:
    """J t as the gradient, in g, of <J^T g, t>: see the top of this file."""
    single = not isinstance(result, tuple)
    results = (result,) if single else result
    if not op.vjp:
        raise NotImplementedError(f"{op.name}: forward mode is not implemented (the op has no gradient formula)")
    flat_tangents = _flat(op, values, tangents)
    needed = [t is not None for t in flat_tangents]
    tape = Lifting(0)
    differentiable = [i for i, y in enumerate(results) if y.dtype.category >= 2 and i not in op.nondifferentiable_outputs]
    before = _native.set_grad_enabled(True)
    try:
        with tape:
            cotangents: list[Any] = [None] * len(results)
            for i in differentiable:
                cotangents[i] = tape.input(hooks.ones(results[i]))  # any: the formula is linear, if not written so at 0
            inner = op.apply_vjp(cotangents, list(values), results, [spec_of(y) for y in results], needed)
        pairs = [(g, t) for g, t in zip(inner, flat_tangents, strict=True) if g is not None and t is not None]
        leaves = [cotangents[i] for i in differentiable]
        found = tape.gradients([g for g, _ in pairs], leaves, [t for _, t in pairs])
    finally:
        _native.set_grad_enabled(before)
    by_output: list[Any] = [None] * len(results)
    for i, t in zip(differentiable, found, strict=True):
        by_output[i] = t
    return by_output[0] if single else tuple(by_output)


def _flat(op: Op, values: tuple[Any, ...], tangents: tuple[Any, ...]) -> list[Any]:
    """Tangents in the order of the op's edges: tensor lists flattened in place."""
    found: list[Any] = []
    for p, v, t in zip(op.schema.params, values, tangents, strict=True):
        if p.is_tensor_list and v is not None:
            found += [None] * len(v) if t is None else list(t)
        elif p.is_tensor:
            found.append(t)
    return found
