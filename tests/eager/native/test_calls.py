"""Calls that run in C without Python: views, kernels over full arguments, the engine. The Python rules are the reference."""
from __future__ import annotations

import gc
import math
import sys
import threading

import numpy as np
import pytest

import eager as torch
from eager import _native
from eager.base.spec import TensorSpec, spec_of
from eager.optable import attention, conv, pool, views
from eager.optable.memory import empty, from_array
from eager.optable.samples import Make
from eager.optable.table import OPS, arrays

F = torch.nn.functional
RNG = np.random.default_rng(21)


def _tensor(*shape, dtype="f4"):
    return torch.from_numpy(np.asarray(RNG.standard_normal(shape), dtype))


# ---- views ----

VIEWS = [op for op in OPS.values() if op._native_view >= 0]
BASES = ((2, 3, 4), (1, 6), (5,), (), (0, 3), (2, 1, 3, 1))


def _bases():
    for shape in BASES:
        x = _tensor(*shape)
        yield x
        if x.ndim > 1:
            yield x.transpose(0, 1)
        if x.ndim:
            yield OPS["slice"](x, 0, 1, None, 2)
            yield OPS["expand"](OPS["unsqueeze"](x, 0), (3, *shape))


def _arguments(name, x):
    """Arguments after x, right ones and wrong ones."""
    n, numel, dims = x.ndim, x.numel(), range(-x.ndim - 1, x.ndim + 1)
    sizes = [(numel,), (-1,), (1, numel), tuple(x.shape), (2, -1), (numel + 1,), (-1, -1), (-2,), (0,), (-1, 0)]
    if name == "view":
        return [(s,) for s in [*sizes, (*x.shape[:1], 1, *x.shape[1:]), (math.prod(x.shape[:2]), *x.shape[2:])]]
    if name == "expand":
        return [(s,) for s in (tuple(x.shape), (3, *x.shape), (-1,) * n, (2, *(-1 for _ in x.shape)), (-1, *x.shape), (7,) * n)]
    if name == "permute":
        return [(tuple(reversed(range(n))),), (tuple(range(-n, 0)),), ((0,) * n,), ((n,) * n,), ((0,),)]
    if name == "slice":
        bounds = ((None, None), (1, None), (-2, None), (5, 2), (0, 100), (-100, -1))
        return [(d, a, b, step) for d in dims for a, b in bounds for step in (1, 2, 0)]
    if name == "select":
        return [(d, i) for d in dims for i in (0, 1, -1, -3, 7)]
    if name == "squeeze":
        return [(None,), *(((d,),) for d in dims), ((0, -1),)]
    return [(d,) for d in (*dims, n + 1, True, "0")] if name == "unsqueeze" else [()]


def _outcome(fn):
    try:
        return fn()
    except Exception as e:
        return type(e), str(e)


@pytest.mark.parametrize("op", VIEWS, ids=lambda op: op.name)
def test_geometry_equals_the_rules(op):
    for x in _bases():
        for args in _arguments(op.name, x):
            want = _outcome(lambda: tuple(op.view(x, *args)))  # noqa: B023
            got = _outcome(lambda: (lambda y: (tuple(y.shape), y.stride(), y.storage_offset()))(op(x, *args)))  # noqa: B023
            if want[0] is TypeError:  # the op says which argument it was
                want, got = want[:1], got[:1]
            assert got == want, (op.name, x.shape, x.stride(), args)


METHODS = (
    ("view", [(4, 6), ((2, 12),), ([24],), (-1,), (5,), (torch.int32,)]), ("reshape", [(4, 6), (-1, 3), ((24,),), (7,)]),
    ("expand", [(5, 2, 3, 4), (-1, 3, 4), (3, 3, 4)]), ("permute", [(2, 0, 1), ((0, 2, 1),), (0, 0, 1)]),
    ("flatten", [(), (1,), (0, 1), (2, 1), (-2, -1)]), ("transpose", [(0, 2), (-1, 0), (0, 5)]), ("swapaxes", [(0, 1)]), ("t", [()]),
    ("unsqueeze", [(0,), (-1,), (9,)]), ("squeeze", [(), (0,), (-3,), (4,), ((0, 1),)]), ("select", [(0, 1), (1, -1), (0, 9)]),
    ("__getitem__", [(0,), (-1,), (5,), (slice(1, None),), ((slice(None), 1),), ((..., 0),), ((None, 0),), ((0, 1, 2),), ((0, 1, 2, 3),),
                     (slice(None, None, -1),), (slice(None, None, 2),), (True,), (None,), (...,), (((0, 1),),), ((slice(0, 1.5),),),
                     ((..., ...),), (torch.tensor(1),)]),
)  # fmt: skip


@pytest.mark.parametrize("name, calls", METHODS, ids=[m[0] for m in METHODS])
def test_methods_are_their_functions(name, calls):
    method = getattr(torch.Tensor, name)
    assert method.__name__ and method.__wrapped__.__doc__ == method.__doc__
    for x in (_tensor(2, 3, 4), _tensor(4, 3, 2).permute(2, 1, 0), _tensor(2, 3, 4).requires_grad_(), _tensor(1, 1)):
        for args in calls:

            def seen(fn):
                def run():
                    y = fn(x, *args)  # noqa: B023
                    return spec_of(y), y._base is x, y.grad_fn.name() if y.grad_fn else None, y.requires_grad  # noqa: B023

                return _outcome(run)

            assert seen(method) == seen(method.__wrapped__), (name, args)


def test_views_know_their_base_and_history():
    base = _tensor(4, 6).requires_grad_() * 1
    view = base[1:, None].transpose(0, 1)[0].view(-1, 3)
    assert view._base is base and [op.name for op, _ in view._autograd.replay] == ["slice", "unsqueeze", "permute", "select", "view"]
    view.mul_(3)
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    with torch.no_grad():
        leaf_view = torch.ones(3).requires_grad_()[1:]
        other = base[0]
    with pytest.raises(RuntimeError, match="no_grad mode"):
        other.mul_(2)
    assert leaf_view.is_leaf and other._base is not None
    written = torch.ones(4).requires_grad_() * 1
    part = written[:2]
    written.mul_(2)
    assert part.view(1, 2).grad_fn.next_functions[0][0] is part.grad_fn  # the write renewed the history of the view


def test_views_of_integers_and_of_inference_tensors():
    x = torch.arange(6).view(2, 3)
    assert x.grad_fn is None and x[1].tolist() == [3, 4, 5] and x.t().shape == (3, 2)
    with torch.inference_mode():
        y = torch.ones(4)
        assert y.view(2, 2).is_inference() and not x[0].is_inference()
    assert y[1:].is_inference()


# ---- kernels ----

# of integers and bools alone: the samples of floats reach none of them
WHOLE = "floor_divide div_floor remainder logical_and logical_or logical_xor".split()
DIRECT = [op for op in OPS.values() if op._native_kernel >= 0 and op.name not in ("full", "empty", "rng_state", *WHOLE)]


def _close(a, b):
    np.testing.assert_allclose(np.asarray(a.detach()._array, "f8"), np.asarray(b.detach()._array, "f8"), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", DIRECT, ids=lambda op: op.name)
def test_kernels_agree_with_their_op(op, dtype):
    """Metadata by the meta rule, values by the kernel over numpy, for every sample that the native kernel takes."""
    taken = 0
    for args in op.samples(Make(3, getattr(torch, dtype))):
        got = _native.run_kernel(op, args)
        if got is None:
            continue
        taken += 1
        if op.dynamic_output:
            want = from_array(op.kernel(np, None, *arrays(op, args)))
            assert spec_of(got) == spec_of(want), op.name
            _close(got, want)
            continue
        specs = op.infer(*args)
        pairs = [(specs, got)] if isinstance(specs, TensorSpec) else list(zip(specs, got, strict=True))
        if op.kernel is None and op.decompose is not None:
            outs = (op.decompose(*args),)
        else:
            outs = tuple(empty(s) for s, _ in pairs)
            op.execute_into(outs[0] if isinstance(specs, TensorSpec) else outs, args)
        for (spec, y), want in zip(pairs, outs, strict=True):
            assert (tuple(y.shape), y.dtype, y.stride()) == (spec.shape, spec.dtype, spec.strides), op.name
            _close(y, want)
    assert taken, f"{op.name}: no sample reaches the native kernel"


def test_empty_and_tables():
    cpu = torch.device("cpu")
    for size, dtype in (((2, 3), torch.float16), ((0, 4), torch.complex64), ((), torch.bool)):
        got = _native.run_kernel(OPS["empty"], (size, dtype, cpu))
        assert spec_of(got) == OPS["empty"].infer(size, dtype, cpu)
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(2, -1)
    assert OPS["int_table"]((3, -1), cpu).tolist() == [3, -1] and OPS["float_table"]((1, 0.1), torch.float64, cpu).tolist() == [1.0, 0.1]
    with pytest.raises((OverflowError, ValueError)):
        OPS["int_table"]((1, 2**63), cpu)


def test_full():
    for value, dtype in ((1.5, torch.float32), (0, torch.float64), (-0.0, torch.float32), (2, torch.int64), (0, torch.int64)):
        for size in ((), (3, 2), (0, 4)):
            got = _native.run_kernel(OPS["full"], (size, value, dtype, torch.device("cpu")))
            want = np.full(size, value, dtype.numpy)
            assert np.array_equal(got.numpy(), want) and np.array_equal(np.signbit(got.numpy()), np.signbit(want)) and got.dtype is dtype
    refused = [(1.5, torch.int64, None), (1j, torch.float32, None), (1e300, torch.float32, None), (1, None, None)]
    refused.append((1, torch.float32, torch.device("meta")))
    for args in (*(((2,), *r) for r in refused), ((-1,), 1, torch.int64, None)):
        assert _native.run_kernel(OPS["full"], args) is None


def _convolutions(count):
    for i in range(count):
        n = int(RNG.integers(1, 4))
        groups, per, outs = (int(v) for v in (RNG.choice([1, 1, 2, 4]), RNG.integers(1, 5), RNG.integers(1, 5)))
        if i % 7 == 0:
            per, outs = 40, 48
        k, stride, dilation = (tuple(int(v) for v in RNG.integers(1, 4, n)) for _ in range(3))
        padding = tuple(int(v) for v in RNG.integers(0, 3, n))
        size = tuple(int(v) for v in RNG.integers(1, 13 if n < 3 else 7, n))
        yield groups, per, outs, size, k, stride, padding, dilation, bool(i % 2)


def test_convolutions_against_sums_over_taps():
    for groups, per, outs, size, k, stride, padding, dilation, transposed in _convolutions(60):
        dtype, tolerance = ("f4", 2e-5) if groups % 2 else ("f8", 1e-12)
        x = _tensor(3, groups * (outs if transposed else per), *size, dtype=dtype)
        w = _tensor(groups * outs, per, *k, dtype=dtype)
        b = _tensor(groups * (per if transposed else outs), dtype=dtype)
        args = (x, w, b, stride, padding, dilation, transposed, (0,) * len(k), groups)
        try:
            shape = conv._meta(*args).shape
        except RuntimeError:
            assert _native.run_kernel(OPS["convolution"], args) is None
            continue
        if math.prod(shape) == 0:
            continue
        got = _native.run_kernel(OPS["convolution"], args).numpy()
        x8, w8 = x.numpy().astype("f8"), w.numpy().astype("f8")
        if transposed:
            want = conv._backward_input(np, x8, w8, stride, padding, dilation, groups, shape[2:])
        else:
            want = conv._forward(np, x8, w8, stride, padding, dilation, groups)
            g = _tensor(*shape, dtype=dtype)
            gw = _native.run_kernel(OPS["conv_weight"], (x, g, k, stride, padding, dilation, groups)).numpy()
            exact = conv._backward_weight(np, x8, g.numpy().astype("f8"), k, stride, padding, dilation, groups)
            np.testing.assert_allclose(gw, exact, rtol=tolerance, atol=tolerance * (1 + np.abs(exact).max()))
        want = want + b.numpy().astype("f8").reshape(1, -1, *(1,) * len(k))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * (1 + np.abs(want).max()))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_convolutions_on_several_threads(threads):
    before = torch.get_num_threads()
    x, w = _tensor(3, 24, 17, 19), _tensor(64, 24, 3, 3)
    want = conv._forward(np, x.numpy().astype("f8"), w.numpy().astype("f8"), (2, 1), (1, 1), (1, 1), 1)
    try:
        torch.set_num_threads(threads)
        np.testing.assert_allclose(F.conv2d(x, w, stride=(2, 1), padding=1).numpy(), want, rtol=1e-4, atol=1e-4)
        large = _tensor(1, 8, 128, 128), _tensor(128, 8, 1, 1)
        plain = np.einsum("nchw,oc->nohw", large[0].numpy(), large[1].numpy()[:, :, 0, 0])
        np.testing.assert_allclose(F.conv2d(*large).numpy(), plain, rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", ["half", "channels_last", "strided"])
def test_convolutions_of_other_layouts_and_dtypes(kind):
    x, w, b = _tensor(2, 6, 9, 8), _tensor(4, 3, 3, 3), _tensor(4)
    want = F.conv2d(x, w, b, padding=1, groups=2)
    if kind == "half":
        got = F.conv2d(x.half(), w.half(), b.half(), padding=1, groups=2)
        assert got.dtype is torch.float16
        np.testing.assert_allclose(got.float().numpy(), want.numpy(), rtol=2e-2, atol=5e-2)
        return
    x = x.to(memory_format=torch.channels_last) if kind == "channels_last" else x.transpose(2, 3).contiguous().transpose(2, 3)
    got = F.conv2d(x, w, b, padding=1, groups=2)
    assert got.is_contiguous(memory_format=torch.channels_last if kind == "channels_last" else torch.contiguous_format)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_pools_against_running_extremes_and_sums():
    for i in range(80):
        n = int(RNG.integers(1, 4))
        x = RNG.standard_normal((2, 3, *(int(v) for v in RNG.integers(1, 20 if n < 3 else 7, n)))).astype("f4" if i % 2 else "f8")
        if i % 3 == 0:
            x[RNG.random(x.shape) < 0.5] = (math.nan, -math.inf)[i % 2]
        k, stride, dilation = (tuple(int(v) for v in RNG.integers(1, 4, n)) for _ in range(3))
        padding, ceil = tuple(int(RNG.integers(0, m // 2 + 1)) for m in k), bool(i % 5 == 0)
        given = torch.from_numpy(x)
        args = (given, k, stride, padding, dilation, ceil)
        try:
            values, index = (np.empty(s.shape, s.dtype.numpy) for s in pool._max_meta(*args))
        except RuntimeError:
            assert _native.run_kernel(OPS["max_pool"], args) is None
        else:
            pool._max_pool(np, (values, index), x, *args[1:])
            got = _native.run_kernel(OPS["max_pool"], args)
            np.testing.assert_array_equal(got[0].numpy(), values)
            np.testing.assert_array_equal(got[1].numpy(), index)
        args = (given, k, stride, padding, ceil, bool(i % 2), None if i % 7 else 3)
        try:
            spec = pool._avg_meta(*args)
        except RuntimeError:
            assert _native.run_kernel(OPS["avg_pool"], args) is None
            continue
        want = np.empty(spec.shape, x.dtype)
        pool._avg_pool(np, want, x, *args[1:])
        np.testing.assert_allclose(_native.run_kernel(OPS["avg_pool"], args).numpy(), want, rtol=1e-4, atol=1e-5)
        g, want = RNG.standard_normal(spec.shape).astype(x.dtype), np.empty_like(x)
        back = (torch.from_numpy(g), x.shape, k, stride, padding, args[5], args[6])
        pool._avg_backward(np, want, g, *back[1:])
        np.testing.assert_allclose(_native.run_kernel(OPS["avg_pool_backward"], back).numpy(), want, rtol=1e-4, atol=1e-5)


def test_windows_over_a_whole_image_and_larger_than_it():
    x = _tensor(1, 2, 9, 9)
    assert F.max_pool2d(x, 9).shape == (1, 2, 1, 1) and torch.equal(F.max_pool2d(x, 9).flatten(), x.amax((2, 3)).flatten())
    with pytest.raises(RuntimeError, match="too small"):
        F.max_pool2d(x, 10)
    np.testing.assert_allclose(F.conv2d(x, x).item(), float((x.numpy().astype("f8") ** 2).sum()), rtol=1e-5)
    with pytest.raises(RuntimeError, match="greater than actual input size"):
        F.conv2d(x, _tensor(1, 2, 10, 9))


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "added", "blind"])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_attention_in_blocks_of_rows(mask, p):
    state = np.array([-7, (1 << 32) - 1000])  # counters whose upper half changes within the draw
    for dtype, tolerance in (("f4", 2e-5), ("f8", 1e-11)):
        q, k, v = (RNG.standard_normal((2, 3, n, d)).astype(dtype) for n, d in ((150, 7), (300, 7), (300, 5)))
        q = np.moveaxis(np.ascontiguousarray(np.moveaxis(q, 1, 2)), 2, 1)  # heads inside, as projections leave them
        m = {"bool": RNG.random((150, 300)) < 0.6, "added": RNG.standard_normal((1, 3, 1, 300)).astype(dtype),
             "blind": np.zeros((2, 1, 150, 300), bool)}.get(mask)  # fmt: skip
        args = [torch.from_numpy(a) if a is not None else None for a in (q, k, v, m)]
        dropout = (torch.from_numpy(state), p) if p else (None, 0.0)
        y, lse = _native.run_kernel(OPS["attention"], (*args, mask == "causal", 0.4, *dropout))
        wide = [a if a is None or a.dtype == bool else a.astype("f8") for a in (q, k, v, m)]
        exact_dropout = (state, p) if p else (None, 0.0)
        want, want_lse = np.empty(y.shape), np.empty(lse.shape)
        attention._kernel(np, (want, want_lse), *wide, mask == "causal", 0.4, *exact_dropout)
        np.testing.assert_allclose(y.numpy(), want, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(lse.numpy(), want_lse, rtol=tolerance, atol=tolerance)
        g = RNG.standard_normal(y.shape).astype(dtype)
        got = _native.run_kernel(OPS["attention_backward"], (torch.from_numpy(g), *args, y, lse, mask == "causal", 0.4, *dropout))
        exact = [np.empty(a.shape) for a in (q, k, v)]
        attention._backward_kernel(np, exact, g.astype("f8"), *wide, want, want_lse, mask == "causal", 0.4, *exact_dropout)
        for a, b in zip(got, exact, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=20 * tolerance, atol=20 * tolerance)


def test_reductions_over_any_dims():
    x = _tensor(3, 4, 5, 6)
    wide = x.numpy().astype("f8")
    for dims in ((0,), (1,), (3,), (0, 1), (1, 2), (0, 2, 3), (0, 2), (1, 3), (0, 1, 2, 3)):
        permuted = x.permute(3, 1, 0, 2), wide.transpose(3, 1, 0, 2)
        for given, array in ((x, wide), permuted, (x[:, :1].expand(3, 4, 5, 6), np.repeat(wide[:, :1], 4, 1))):
            np.testing.assert_allclose(given.sum(dims).numpy(), array.sum(dims), rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(given.mean(dims, keepdim=True).numpy(), array.mean(dims, keepdims=True), rtol=1e-5, atol=1e-5)
            assert np.array_equal(given.amax(dims).numpy(), array.max(dims).astype("f4"))
    assert x[:0].sum().item() == 0 and torch.ones(1, 1).sum((0, 1), keepdim=True).shape == (1, 1) and torch.isnan(x[:0].mean())


def test_products_of_spread_and_strided_operands():
    a, b = _tensor(4, 1).expand(4, 6), _tensor(12, 5)[::2]
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-5)
    np.testing.assert_allclose(torch.bmm(a.expand(3, 4, 6), b.expand(3, 6, 5)).numpy(), np.stack([a.numpy() @ b.numpy()] * 3), rtol=1e-5)
    x = _tensor(2, 3, 6)
    np.testing.assert_allclose(F.linear(x, b.t(), None).numpy(), x.numpy() @ b.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call, error", [
    (lambda: F.embedding(torch.tensor([5]), torch.ones(5, 2)), IndexError),
    (lambda: F.embedding(torch.tensor([-1]), torch.ones(5, 2)), IndexError),
    (lambda: torch.index_select(torch.ones(3), 0, torch.tensor([3])), IndexError),
    (lambda: torch.cat([torch.ones(2), torch.ones(2, 2)]), RuntimeError),
    (lambda: torch.cat([torch.ones(2, 2), torch.ones(3, 3)]), RuntimeError),
    (lambda: torch.gather(torch.ones(2, 2), 1, torch.tensor([[2]])), RuntimeError),
    (lambda: torch.full((-1,), 0.0), RuntimeError),
    (lambda: torch.ones(2, 3) @ torch.ones(2, 3), RuntimeError),
    (lambda: torch.ones(2, 3).view(7), RuntimeError),
])
def test_wrong_arguments_are_refused_by_the_rules(call, error):
    with pytest.raises(error):
        call()


def test_lists_of_tensors_are_recorded():
    a, b, c = _tensor(2, 3).requires_grad_(), _tensor(1, 3), _tensor(2, 3).requires_grad_()
    y = torch.cat([a, b, c])
    leaf = "torch::autograd::AccumulateGrad"
    assert [node and node.name() for node, _ in y.grad_fn.next_functions] == [leaf, None, leaf]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = torch.cat([a, b, c])
    assert z.grad_fn.saved == y.grad_fn.saved and z.grad_fn.needs == y.grad_fn.needs and z.grad_fn.output_specs == y.grad_fn.output_specs
    w = _tensor(5, 3)
    assert all(torch.equal(p, q) for p, q in zip(torch.autograd.grad(y, [a, c], w), (w[:2], w[3:]), strict=True))


# ---- the engine ----


def test_two_leaves_do_not_share_a_gradient():
    x, y = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    (x + y).backward(torch.ones(3))
    assert x.grad.data_ptr() != y.grad.data_ptr()
    g = torch.ones(3)
    x.grad = None
    (x * 1).backward(g)
    x.backward(g)
    assert g.tolist() == [1, 1, 1] and x.grad.tolist() == [2, 2, 2]


def test_gradients_held_elsewhere_are_copied():
    held = []
    x = torch.ones(3).requires_grad_()
    y = x * 2
    y.register_hook(held.append)
    (y * 3).sum().backward()
    z = torch.ones(3).requires_grad_()
    z.register_hook(held.append)
    (z * 3).sum().backward()
    before = [h.tolist() for h in held]
    for leaf in (x, z):
        leaf.grad.zero_()
    assert [h.tolist() for h in held] == before


def test_errors_in_formulas_leave_the_engine_usable():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("in backward")

    x = torch.ones(3).requires_grad_()
    before = gc.collect(), sys.getallocatedblocks()
    for _ in range(50):
        with pytest.raises(ZeroDivisionError):
            (Bad.apply(x * 2) * 3).sum().backward()
    gc.collect()
    assert sys.getallocatedblocks() - before[1] < 500 and torch.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_many_leaves_and_threads():
    def run(found):
        leaves = [torch.full((2,), float(i)).requires_grad_() for i in range(300)]
        total = leaves[0] * leaves[1]
        for leaf in leaves:
            total = total + leaf * leaf
        total.sum().backward()
        found.append([leaf.grad[0].item() for leaf in leaves])

    found: list[list[float]] = []
    threads = [threading.Thread(target=run, args=(found,)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = [2.0 * i for i in range(300)]
    want[0], want[1] = 1.0, 2.0
    assert found == [want] * 3


def test_wrong_calls_of_the_engine():
    with pytest.raises(TypeError):
        _native.run_backward([(3, 0, torch.ones(1))], False, None, None, print)
    with pytest.raises(TypeError):
        _native.run_backward((), False, None, None, print)
    node = (torch.ones(1).requires_grad_() * 1).grad_fn
    with pytest.raises(IndexError):
        _native.run_backward([(node, 3, torch.ones(1))], False, None, None, print)
    with pytest.raises(TypeError):
        _native.apply_gradient_formulas(3)
    with pytest.raises(TypeError):
        _native.run_kernel(3, ())
    with pytest.raises(ValueError, match="none for"):
        _native.native_method("nothing", print)


# ---- gradients of parts ----


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_slices_accumulate_into_one_buffer(dtype, monkeypatch):
    """The values equal backward with `create_graph`, whose formulas make a full gradient for each slice. This path makes none."""
    scale = _tensor(5, 4, 3).to(dtype)

    def loss(x):
        y = x * scale
        rows = sum((y[i] ** 2).sum() * i for i in range(-2, 3))
        parts = (x[0, 1] * x[0, 1:]).sum() + y[3:3].sum()
        return rows + parts + (y[1:5:2] ** 3).sum() + (y[:, -1] * y[:, 0]).sum() + y[..., 2].exp().sum()

    start = _tensor(5, 3, 3).to(dtype)[:, :1].expand(5, 4, 3).contiguous()
    by_formula = torch.autograd.grad(loss(x := start.clone().requires_grad_()), x, create_graph=True)[0]
    made = []
    zeros = views._zeros_of
    with monkeypatch.context() as patch:
        patch.setattr(views, "_zeros_of", lambda spec, g: made.append(spec) or zeros(spec, g))
        loss(x := start.clone().requires_grad_()).backward()
    torch.testing.assert_close(x.grad, by_formula.detach())
    assert len(made) <= 1  # the gradient of the empty slice


def test_a_gradient_with_other_references_is_not_accumulated_in_place():
    seen = []
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(seen.append)
    given = torch.tensor([1.0, 1.0, 1.0])
    torch.autograd.backward([y, y[0], y[1]], [given, torch.tensor(1.0), torch.tensor(5.0)])
    assert given.tolist() == [1.0, 1.0, 1.0] and seen[0].tolist() == [2.0, 6.0, 1.0] and x.grad.tolist() == [4.0, 12.0, 2.0]
    part = (z := x * 1)[0]
    part.retain_grad()
    (part * 3 + z.sum()).backward(retain_graph=True)
    (part * 3 + z.sum()).backward()
    assert part.grad.item() == 6.0 and x.grad.tolist() == [12.0, 14.0, 4.0]
