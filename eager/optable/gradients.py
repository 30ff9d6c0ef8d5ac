"""The gradients of an op: which values its formulas need saved, and the run of the formulas.

Autograd's nodes (`eager.tape.node`) and native recording call these through methods of `table.Op`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.base.spec import TensorSpec, spec_of
from eager.optable.declaration import OUTPUT_NAMES, Declaration, cast_to, fit, zeros
from eager.optable.registry import CALLS, Kind
from eager.tape.node import op_node_class

TensorBase = _native.TensorBase
# The source of a formula's parameter: an argument, its spec, the cotangent, the output, lists of these, the needed inputs.
_ARGUMENT, _SPEC, _COTANGENT, _OUTPUT, _OUTPUTS, _COTANGENTS, _NEEDS = range(7)


def saved_names(op: Declaration, needs: tuple[bool, ...]) -> tuple[frozenset[str], frozenset[int]]:
    """Parameters that the formulas of the needed inputs name, and the outputs they name."""
    found = op._saved_names.get(needs)
    if found is None:
        wanted = {p.name for p, need in zip(op.schema.params, needs, strict=True) if need}
        names = {n for v in op.vjp.values() if wanted.intersection(v.inputs) for n in v.params}
        count = op.schema.num_returns
        outputs = {i for i in range(count) if names & {"ys", OUTPUT_NAMES[i]}}
        found = op._saved_names[needs] = (frozenset(names), frozenset(outputs))
    return found


def record_plan(op: Declaration, wanted: int) -> tuple[Any, ...]:
    """For native recording, with gradients for the parameters in the mask `wanted`: the node's class, the needed inputs, and
    masks: the arguments to save, the outputs to keep, the tensor parameters, the lists, the outputs without gradient."""
    needs = tuple(bool(wanted >> i & 1) for i in range(op._nparams))
    names, outputs = saved_names(op, needs)
    mask = sum(1 << i for i, p in enumerate(op.schema.params) if p.name in names)
    return (op_node_class(op), needs, mask, sum(1 << i for i in outputs), sum(1 << i for i in op._tensor_at),
            sum(1 << i for i in op._lists_at), sum(1 << i for i in op.nondifferentiable_outputs))  # fmt: skip


def apply_vjp(op: Declaration, grads: list[Any], args: Sequence[Any], outputs: tuple[Any, ...],
              output_specs: Sequence[TensorSpec], needed: Sequence[bool]) -> list[Any]:  # fmt: skip
    """Gradients of the inputs, flattened as the edges are. `Vjp` lists the names that formulas may use."""
    single = len(output_specs) == 1
    if single and not op._lists_at and grads[0] is not None and not output_specs[0].dtype.is_complex:
        return _native.apply_gradient_formulas(op, grads[0], args, outputs, needed)
    if all(g is None for g in grads):
        return [None] * len(needed)
    if not single:
        grads = [zeros(s) if g is None and i not in op.nondifferentiable_outputs else g
                 for i, (g, s) in enumerate(zip(grads, output_specs, strict=True))]  # fmt: skip
    conjugate = any(s.dtype.is_complex for s in output_specs)
    if conjugate:  # formulas are g * f'(x), cotangents of complex numbers g * conj(f'(x))
        grads = [_conjugated(g) for g in grads]
    spread = _spread(op, args, needed)
    values: dict[str, Any] = {"g": grads[0], "gs": grads, "ys": outputs, **dict(zip(OUTPUT_NAMES, outputs, strict=False))}
    for p, a in zip(op.schema.params, args, strict=True):
        values[p.name] = a
        if isinstance(a, (TensorBase, TensorSpec)):
            values[p.name + "_spec"] = spec_of(a)
        elif p.is_tensor_list and a is not None:
            values[p.name + "_spec"] = [None if t is None else spec_of(t) for t in a]
    results: dict[str, Any] = {}
    for rule in op.vjp.values():
        if not any(spread.get(name) for name in rule.inputs):
            continue
        values["needs"] = tuple(bool(spread.get(name)) for name in rule.inputs)
        out = rule.fn(*(values[n] for n in rule.params))
        results.update(zip(rule.inputs, out, strict=True) if rule.joint else ((rule.inputs[0], out),))
    flat = _flatten(op, results, args)
    return [_conjugated(g) for g in flat] if conjugate else flat


def gradient_rules(op: Declaration) -> tuple[bool, int, tuple[tuple[Any, ...], ...]]:
    """For `_native.apply_gradient_formulas`: whether gradients are fitted in shape, the number of tensor parameters, and one
    tuple per formula: the function, whether it is joint, the places of its inputs among the tensor parameters and among all
    parameters, and the sources of the parameters of the formula."""
    at = {p.name: i for i, p in enumerate(op.schema.params)}
    fixed = {"g": (_COTANGENT, 0), "gs": (_COTANGENTS, 0), "y": (_OUTPUT, 0), "ys": (_OUTPUTS, 0), "needs": (_NEEDS, 0)}
    fixed |= {f"{name}_spec": (_SPEC, i) for name, i in at.items()} | {name: (_ARGUMENT, i) for name, i in at.items()}
    rules = tuple((rule.fn, rule.joint, tuple(op._tensor_at.index(at[name]) for name in rule.inputs),
                   tuple(at[name] for name in rule.inputs), tuple(fixed[n] for n in rule.params))
                  for rule in op.vjp.values())  # fmt: skip
    return op.kind is Kind.POINTWISE, len(op._tensor_at), rules


def _spread(op: Declaration, args: Sequence[Any], needed: Sequence[bool]) -> dict[str, bool]:
    """Which parameters are needed, from the flat list of needed edges."""
    at, result = 0, {}
    for p, a in zip(op.schema.params, args, strict=True):
        if p.is_tensor_list and a is not None:
            result[p.name] = any(needed[at : at + len(a)])
            at += len(a)
        elif p.is_tensor:
            result[p.name] = needed[at]
            at += 1
    return result


def _flatten(op: Declaration, results: dict[str, Any], args: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for p, a in zip(op.schema.params, args, strict=True):
        if p.is_tensor_list and a is not None:
            given = results.get(p.name)
            flat.extend([None] * len(a) if given is None else given)
        elif p.is_tensor:
            g = results.get(p.name)
            if g is not None and isinstance(a, (TensorBase, TensorSpec)):
                g = fit(g, a) if op.kind is Kind.POINTWISE else cast_to(g, a.dtype)
            flat.append(g)
    return flat


def _conjugated(g: Any) -> Any:
    return CALLS["conj"](g) if g is not None and g.dtype.is_complex else g
