"""The parts of each op's declaration agree: samples, meta rule, decomposition, scalar rule, in-place form, layouts."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import eager
from eager.base.dtypes import can_cast
from eager.base.spec import DataDependentError, TensorSpec, fake_like, is_dense, spec_of
from eager.optable import loop_api
from eager.optable.indexing import flat_positions
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from tests.ops.conftest import array, assert_same, cases, flat, map_tensors, non_contiguous, public_ops, sample, specs

UNDEFINED = {"empty"}  # the contents of the result are undefined

OWN = [(name, OPS[name]) for name in public_ops()]


def test_every_op_has_samples() -> None:
    without = [name for name in public_ops() if OPS[name].samples is None or not list(samples_of(name))]
    assert not without, f"ops with no samples: {without}"


def test_every_op_has_a_gradient_rule_or_is_declared_nondifferentiable() -> None:
    silent = [name for name, op in OWN if not (
        op.vjp or op.decompose or op.nondifferentiable or op.mutates or op.kind in (Kind.CREATION, Kind.RANDOM, Kind.EFFECT))]
    assert not silent, f"ops with neither a vjp, a decomposition, nor nondifferentiable=True: {silent}"


def test_every_formula_names_an_input() -> None:
    wrong = [(name, v.inputs) for name, op in OWN for v in op.vjp.values()
             if not set(v.inputs) <= {p.name for p in op.schema.params if p.is_tensor or p.is_tensor_list}]  # fmt: skip
    assert not wrong, f"formulas for a parameter that is not a tensor: {wrong}"


def test_every_parameter_of_a_formula_is_known() -> None:
    wrong = []
    for name, op in OWN:
        given = {p.name for p in op.schema.params}
        known = {"g", "gs", "y", "y1", "y2", "ys", "needs"} | given | {name + "_spec" for name in given}
        wrong += [(name, p) for v in op.vjp.values() for p in v.params if p not in known]
    assert not wrong, f"formula parameters that name neither a parameter of the op nor a cotangent or result: {wrong}"


def test_no_parameter_of_an_op_has_a_name_reserved_for_formulas() -> None:
    wrong = [(name, p.name) for name, op in OWN if op.vjp for p in op.schema.params
             if p.name in ("g", "gs", "y", "ys", "needs")]  # fmt: skip
    assert not wrong, f"parameters with a name that formulas use for cotangents and results: {wrong}"


def test_a_new_tensor_on_cuda_has_a_device_with_an_index() -> None:
    made = [op for _, op in OWN if any(p.type.startswith("device") for p in op.schema.params)]
    assert len(made) >= 5
    for op in made:
        for args in samples_of(op.name):
            named = (eager.device("cuda") if p.type.startswith("device") else a for p, a in zip(op.schema.params, args, strict=True))
            assert op.infer(*named).device is eager.device("cuda", 0), op.name


@pytest.mark.parametrize("name", public_ops())
def test_unpickling_an_op_returns_the_same_object(name: str) -> None:
    assert pickle.loads(pickle.dumps(OPS[name])) is OPS[name]


@pytest.mark.parametrize(("name", "number"), cases(public_ops()))
def test_meta_agrees_with_eager(name: str, number: int) -> None:
    op = OPS[name]
    if op.dynamic_output:
        with pytest.raises(DataDependentError):
            op(*map_tensors(fake_like, sample(name, number)))
        return
    args = sample(name, number)
    if op.mutates and not _may_write(op, args):
        pytest.skip("an in-place form refuses this sample; see test_in_place_form_agrees_with_functional")
    actual = specs(op(*args))
    expected = specs(op.infer(*sample(name, number))) if not op.mutates else [spec_of(args[0])]
    faked = specs(op(*map_tensors(fake_like, sample(name, number))))
    assert actual == expected
    if any(isinstance(a, eager.Tensor) for a in _flatten(args)):
        assert faked == expected


def _may_write(op: Any, args: Any) -> bool:
    """Whether the results of an in-place op fit into the operands that it writes."""
    if not isinstance(args[0], eager.Tensor):
        return False
    return all(tuple(spec.shape) == tuple(t.shape) and (op.base.casts_result or can_cast(spec.dtype, t.dtype))
               for t, spec in zip(op.written(args), specs(op.base.infer(*args)), strict=True))  # fmt: skip


def _flatten(args: Any) -> list[Any]:
    return [leaf for a in args for leaf in (_flatten(a) if isinstance(a, (list, tuple)) else [a])]


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if OPS[n].decompose and OPS[n].kernel]))
def test_decomposition_agrees_with_kernel(name: str, number: int) -> None:
    op = OPS[name]
    args = sample(name, number)
    whole, parts = flat(op(*args)), flat(op.decompose(*args))  # type: ignore[misc]
    assert len(whole) == len(parts)
    for i, (a, b) in enumerate(zip(whole, parts, strict=True)):
        assert_same(b, a, f"{name} output {i}")


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if OPS[n].scalar and not OPS[n].mutates]))
def test_scalar_rule_agrees_with_kernel(name: str, number: int) -> None:
    op = OPS[name]
    args = sample(name, number)
    actual = op(*args)
    compute = op.compute_dtype(*args)
    half = compute.itemsize == 2 and compute.is_floating_point
    d = np.dtype(np.float32) if half else compute.numpy
    raw = op.promotion == "raw"
    keep = {0} if op.promotion == "select" else set()
    values = [a._array.astype(a._array.dtype if raw or i in keep else d) if isinstance(a, eager.Tensor) else a
              for i, a in enumerate(args)]  # fmt: skip
    with np.errstate(all="ignore"):
        by_rule = op.scalar(loop_api.NUMPY, *values)  # type: ignore[misc]
    expected = np.broadcast_to(np.asarray(by_rule), tuple(actual.shape)).astype(actual._array.dtype)
    np.testing.assert_allclose(array(actual), np.asarray(expected, array(actual).dtype), rtol=2e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if OPS[n].mutates]))
def test_in_place_form_agrees_with_functional(name: str, number: int) -> None:
    op = OPS[name]
    base = op.base
    assert base is not None
    args = sample(name, number)
    if not isinstance(args[0], eager.Tensor):
        pytest.skip("the first operand of this sample is a number: nothing to write to")
    expected = flat(base(*sample(name, number)))
    written = list(op.written(args))
    before = [t._version for t in written]
    if not _may_write(op, args):
        same = tuple(base.infer(*args).shape) == tuple(args[0].shape)
        with pytest.raises(RuntimeError, match="can't be cast" if same else "doesn't match the broadcast shape"):
            op(*args)
        return
    result = op(*args)
    assert result is args[0]
    assert len(written) == len(expected)
    for t, value, version in zip(written, expected, before, strict=True):
        assert t._version == version + 1 or (op.decompose and t._version > version)  # each part of an op may write
        assert_same(t, value.to(t.dtype), name)


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if not OPS[n].mutates and n not in UNDEFINED
                                                    and OPS[n].kind not in (Kind.EFFECT, Kind.CREATION)
                                                    and not OPS[n].name.startswith("as_strided")]))  # fmt: skip
def test_layout_of_inputs_does_not_change_values(name: str, number: int) -> None:
    op = OPS[name]
    if op.name in ("view", "view_as_complex"):
        pytest.skip("a view of a non-contiguous tensor need not exist")
    plain = flat(op(*map_tensors(lambda t: t.contiguous(), sample(name, number))))
    spread = flat(op(*map_tensors(non_contiguous, sample(name, number))))
    for i, (a, b) in enumerate(zip(plain, spread, strict=True)):
        assert_same(b, a, f"{name} output {i}")


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if not OPS[n].dynamic_output]))
def test_results_are_dense_or_views(name: str, number: int) -> None:
    op = OPS[name]
    if op.kind is Kind.VIEW or op.mutates:
        return
    for spec in specs(op.infer(*sample(name, number))):
        assert isinstance(spec, TensorSpec)
        assert is_dense(spec.shape, spec.strides) or 0 in spec.shape, f"{name}: strides {spec.strides} for {spec.shape}"


@pytest.mark.parametrize("name", [n for n in public_ops() if not OPS[n].mutates and OPS[n].kind is not Kind.VIEW
                                  and OPS[n].kind is not Kind.EFFECT])  # fmt: skip
def test_functional_ops_do_not_change_their_inputs(name: str) -> None:
    for args in samples_of(name):
        tensors = [a for a in _flatten(args) if isinstance(a, eager.Tensor)]
        before = [t._array.copy() for t in tensors]
        OPS[name](*args)
        for t, kept in zip(tensors, before, strict=True):
            np.testing.assert_array_equal(t._array, kept)
            assert t._version == 0


@pytest.mark.parametrize(("name", "number"), cases([n for n in public_ops() if OPS[n].dynamic_output]))
def test_dynamic_output_rules_agree_with_the_kernel(name: str, number: int) -> None:
    """Dtypes, shapes and strides agree, given the size that depends on data. Sizes stay within the declared maximum."""
    op = OPS[name]
    args = sample(name, number)
    results = op(*args)
    results = results if isinstance(results, tuple) else (results,)
    maxima: list[Any] = []

    def fresh(most: int | None) -> int:
        maxima.append(most)
        return next(n for r, s in zip(results, _specs(op, args), strict=True) for n, m in zip(r.shape, s.shape, strict=True) if m == -7)

    stated = op.dynamic_output(fresh, *args)
    for r, s in zip(results, stated if isinstance(stated, tuple) else (stated,), strict=True):
        assert (tuple(r.shape), r.dtype) == (s.shape, s.dtype)
        assert r.numel() < 2 or r.stride() == s.strides
        assert all(most is None or n <= most for most in maxima for n in r.shape[:1])


def _specs(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    found = op.dynamic_output(lambda most: -7, *args)
    return found if isinstance(found, tuple) else (found,)


def test_flat_positions_beyond_32_bits_are_64_bit_integers() -> None:
    at = [np.array([49_999, 1], np.int32), np.array([2, 42_999], np.int32)]
    found = flat_positions(at, (50_000, 43_000))
    assert found.tolist() == [49_999 * 43_000 + 2, 43_000 + 42_999]
