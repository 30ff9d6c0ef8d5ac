"""Generated from the op table: gradcheck in reverse and forward mode, and vmap, of every op.

tests/ops/test_gradients.py compares second derivatives in reverse mode with finite differences.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import eager
from eager.autograd import gradcheck
from eager.func import vmap
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from eager.transforms import batching
from eager.transforms.batching import rule_for
from tests.autograd.transforms import double_samples, flat, is_differentiable, tensors, with_tensors

DIFFERENTIABLE = sorted(name for name, op in OPS.items() if is_differentiable(op))
MAPPED = sorted(name for name, op in OPS.items() if op.samples is not None and not op.mutates and not op.dynamic_output
                and op.kind not in (Kind.CREATION, Kind.EFFECT, Kind.RANDOM))  # fmt: skip
ROW_BY_ROW = {  # no batching rule: run once per row, with a warning
    "as_strided_backward": "its strides describe the memory of one row",
    "as_strided_scatter": "its strides describe the memory of one row",
}  # fmt: skip
WRITTEN = {"optimizer_update": "its parts write the parameter and its state in place: vmap may refuse to map only some of them"}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_finite_differences_in_both_modes(name: str) -> None:
    for fn, leaves in double_samples(name):
        assert gradcheck(fn, leaves, check_forward_ad=True, check_undefined_grad=False, fast_mode=True, atol=1e-5, rtol=1e-4)


def _rows(t: Any, name: str) -> list[Any]:
    """Two tensors to stack for `t`: a copy and its mirror image, or two copies if the op restricts the values."""
    if t.dtype.category < 2 or t.ndim == 0 or name in ("cholesky", "cholesky_status", "eigh"):
        return [t.clone(), t.clone()]
    mirrored = eager.flip(t.float() if t.dtype.is_float8 else t, (t.ndim - 1,))
    return [t.clone(), mirrored.to(t.dtype)]


def _masks(count: int) -> list[tuple[bool, ...]]:
    """Which of `count` tensors are mapped over: all of them, and each of them alone."""
    alone = [tuple(i == j for j in range(count)) for i in range(count)] if count > 1 else []
    return [(True,) * count, *alone]


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_agrees_with_a_loop(name: str) -> None:
    op = OPS[name]
    for args in samples_of(name):
        given = tensors(args)
        states = [a for p, a in zip(op.schema.params, args, strict=True) if p.name == "state"]  # one draw for both rows
        for every in _masks(len(given)) if given else []:
            mask = tuple(m and not any(t is s for s in states) for m, t in zip(every, given, strict=True))
            if not any(mask):
                continue
            rows = [_rows(t, name) if m else [t, t] for t, m in zip(given, mask, strict=True)]
            try:
                expected = [flat(op(*with_tensors(args, iter([r[i] for r in rows])))) for i in range(2)]
            except RuntimeError:
                continue  # a mirrored input that the op refuses
            mapped = iter([eager.stack(r) if m else r[0] for r, m in zip(rows, mask, strict=True)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = vmap(lambda *xs, args=args: tuple(flat(op(*with_tensors(args, iter(xs))))),
                           in_dims=tuple(0 if m else None for m in mask), randomness="same")  # fmt: skip
                try:
                    actual = run(*mapped)
                except RuntimeError as error:
                    assert name in WRITTEN and not all(mask) and "vmap: inplace" in str(error), (name, mask)
                    continue
            if name in ROW_BY_ROW:
                continue  # the result depends on the strides of the input, which stacking changes
            for k, y in enumerate(actual):
                for i in range(2):
                    _assert_close(y[i], expected[i][k], f"{name}, output {k}, mapped {mask}")


def _assert_close(actual: Any, expected: Any, what: str) -> None:
    assert actual.dtype is expected.dtype, what
    assert tuple(actual.shape) == tuple(expected.shape), what
    a, b = (t.detach().float() if t.dtype is eager.bfloat16 else t.detach() for t in (actual, expected))
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-5, err_msg=what)


def test_an_op_without_a_rule_runs_row_by_row_and_warns_once() -> None:
    missing = {n for n in MAPPED if rule_for(OPS[n]) is None and OPS[n].decompose is None}
    assert set(ROW_BY_ROW) <= missing
    x = eager.randn(3, 4)
    histc = OPS["histc"]
    assert "histc" in missing

    from_loop = eager.stack([histc(row, 4, -1, 1) for row in x])
    batching._warned.discard("histc")
    with pytest.warns(UserWarning, match="performance drop because we have not yet implemented the batching rule for aten::histc"):
        mapped = vmap(lambda row: histc(row, 4, -1, 1))(x)
    assert mapped.tolist() == from_loop.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda row: histc(row, 4, -1, 1))(x)


@pytest.mark.parametrize("name", ["add", "mul", "softmax", "mm", "linear", "index", "sum", "convolution", "native_layer_norm",
                                  "gather", "embedding", "cumsum", "sort", "max_pool", "where"])  # fmt: skip
def test_gradients_through_vmap_agree_with_finite_differences(name: str) -> None:
    for args in list(samples_of(name, eager.float64))[:2]:
        given = tensors(args)
        leaves = [eager.stack([t, t * 0.5]) for t in given if t.dtype is eager.float64]
        if not leaves or any(not t.numel() for t in leaves):
            continue

        def mapped(*xs: Any, args: Any = args, given: Any = given) -> Any:
            it = iter(xs)
            new = [next(it) if t.dtype is eager.float64 else t for t in given]
            dims = tuple(0 if t.dtype is eager.float64 else None for t in given)
            ys = vmap(lambda *rows: tuple(flat(OPS[name](*with_tensors(args, iter(rows))))), in_dims=dims)(*new)
            return tuple(y for i, y in enumerate(ys) if y.dtype is eager.float64 and i not in OPS[name].nondifferentiable_outputs)

        assert gradcheck(mapped, [t.requires_grad_() for t in leaves], check_undefined_grad=False, fast_mode=True)
