"""Pointwise ops recorded and written in place by native code: the same graph, errors and memory as by the long way."""
from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import eager as torch
from eager import _native
from eager.base.spec import TensorSpec
from eager.optable.table import OPS
from eager.tape.node import SavedTensor

RNG = np.random.default_rng(8)
RECORDED = [op for op in OPS.values() if op._recorded and op._pointwise_loop >= 0 and not op.mutates and not op.underived]


def _leaf(*shape, dtype="f8"):
    return torch.from_numpy(RNG.uniform(0.3, 1.5, shape).astype(dtype)).requires_grad_()


def _arguments(op):
    tensors = [_leaf(3, 4), _leaf(4)][: len(op._tensor_at)]
    return tensors, (*tensors, *(0.7 for _ in op.schema.params[len(tensors) :]))


def _by_the_long_way(op, args):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return op(*args)


@pytest.mark.parametrize("op", RECORDED, ids=lambda op: op.name)
def test_the_graph_is_the_same(op):
    tensors, args = _arguments(op)
    short, long = op(*args), _by_the_long_way(op, args)
    mine, theirs = short.grad_fn, long.grad_fn
    assert type(mine) is type(theirs) and mine.needs == theirs.needs and mine.next_functions == theirs.next_functions
    assert mine.output_specs == theirs.output_specs and mine.sequence < theirs.sequence and mine.hooks is None
    assert [type(s) for s in mine.saved] == [type(s) for s in theirs.saved]
    for a, b in zip(mine.saved, theirs.saved, strict=True):
        assert a == b if isinstance(a, (TensorSpec, float)) else a.tensor is b.tensor and a.version == b.version
    assert [s is None for s in mine.kept_outputs] == [s is None for s in theirs.kept_outputs]
    weights = torch.from_numpy(RNG.standard_normal(tuple(short.shape)))
    found = [torch.autograd.grad((y * weights).sum(), tensors) for y in (short, long)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_hooks_anomaly_mode_views_and_inference_tensors_use_the_python_path():
    x, y = _leaf(3), _leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: ("packed", t), lambda p: p[1]):
        z = x * y
    assert z.grad_fn.saved[0].tensor[0] == "packed"
    with torch.autograd.set_detect_anomaly(True):
        assert (x * y).grad_fn.metadata["traceback_"]
    assert not (x * y).grad_fn.metadata
    base = _leaf(4) * 1
    view = base[1:]
    base.mul_(2)
    assert (view * 1).grad_fn.next_functions[0][0] is view.grad_fn
    with torch.inference_mode():
        inference = torch.ones(3)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * inference


def test_writes_to_saved_tensors_are_detected():
    x, y = _leaf(3), _leaf(3)
    z = x * 1
    w = z * y
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()
    e = (x * 1).exp()
    e.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        e.sum().backward()


def test_leaves_have_one_accumulator_while_it_lives():
    x = _leaf(2)
    a, b = x * 2, x * 3
    assert a.grad_fn.next_functions[0][0] is b.grad_fn.next_functions[0][0]
    assert a.grad_fn.next_functions[0][0].variable is x
    (a + b).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_leaf_keeps_a_gradient_without_other_owners():
    held = []
    x, y = _leaf(3, 4), torch.ones(3, 4, dtype=torch.float64)
    (x * y).sum().backward()
    first = x.grad
    x.grad = None
    x.register_hook(held.append)
    (x * y).sum().backward()
    assert x.grad is not held[0] and x.grad.data_ptr() != held[0].data_ptr()
    x.grad.add_(1)
    assert (held[0] == first).all()
    shared = _leaf(2)
    (shared + _leaf(2)).sum().backward()
    a, b = _leaf(5), _leaf(5)
    (a + b).backward(torch.ones(5, dtype=torch.float64))
    a.grad.zero_()
    assert b.grad.tolist() == [1] * 5
    given = torch.ones(5, dtype=torch.float64)
    a.grad = None
    (a * 1.0).backward(given)
    a.grad.zero_()
    assert given.tolist() == [1] * 5


def test_in_place():
    x = torch.arange(12.0).reshape(3, 4)
    version, pointer = x._version, x.data_ptr()
    assert x.add_(1) is x and x.mul_(torch.ones(4) * 2) is x and x.data_ptr() == pointer and x._version == version + 2
    np.testing.assert_array_equal(x.numpy(), (np.arange(12.0).reshape(3, 4) + 1) * 2)
    x += x
    np.testing.assert_array_equal(x.numpy(), (np.arange(12.0).reshape(3, 4) + 1) * 4)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        torch.ones(4).add_(torch.ones(3, 4))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        _leaf(3).mul_(2)
    p = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        p.sub_(torch.ones(3), alpha=0.5)
        p.mul_(2)
    assert p.tolist() == [1, 1, 1] and p.requires_grad
    with torch.inference_mode():
        inference = torch.ones(3)
    with pytest.raises(RuntimeError, match="inference tensor"):
        inference.mul_(2)
    y = _leaf(3) * 1
    y.mul_(torch.full((3,), 2.0, dtype=torch.float64))
    assert y.grad_fn.name() == "MulBackward0"


def test_spread_operands():
    g = torch.ones(()).expand(3, 4)
    x = torch.randn(3, 4)
    assert torch.equal(g * x, x) and (g * x).is_contiguous() and torch.equal(x - g, x - 1)
    assert torch.equal(g + g, torch.full((3, 4), 2.0))


def test_no_references_are_lost():
    x, y = _leaf(4), _leaf(4)
    z = torch.ones(4, dtype=torch.float64)

    def work():
        ((x * y).exp() + x).sum().backward()
        x.grad = y.grad = None
        z.add_(1).mul_(1.0)
        assert (x > y).dtype is torch.bool

    for _ in range(50):
        work()
    gc.collect()
    before = sys.getallocatedblocks(), sys.getrefcount(OPS["mul"]), sys.getrefcount(x), sys.getrefcount(TensorSpec)
    for _ in range(3000):
        work()
    gc.collect()
    after = sys.getallocatedblocks(), sys.getrefcount(OPS["mul"]), sys.getrefcount(x), sys.getrefcount(TensorSpec)
    assert after[0] - before[0] < 200 and after[1:] == before[1:]


def test_wrong_calls_of_the_native_functions():
    with pytest.raises(TypeError):
        _native.spec_of(3)
    with pytest.raises(TypeError):
        _native.is_sole_owner(torch.ones(2))
    with pytest.raises(TypeError, match="no slot"):
        _native.register_node_types(object, SavedTensor, TensorSpec, object, object, iter(()), 0, print, "")
    assert _native.edge_of(3) is None and _native.edge_of(torch.ones(2)) is None
