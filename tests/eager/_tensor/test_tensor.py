"""Tensor: construction, geometry, aliasing, in-place rules, reading, printing, memory."""
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager import _native
from eager.base import machine
from eager.base import settings as _settings
from eager.base.spec import elementwise_strides, is_dense


def test_dtypes_of_python_data():
    assert torch.tensor([1, 2]).dtype is torch.int64
    assert torch.tensor([1.0, 2]).dtype is torch.float32
    assert torch.tensor([True]).dtype is torch.bool
    assert torch.tensor(np.ones(2)).dtype is torch.float64
    assert torch.tensor([]).dtype is torch.float32


def test_from_numpy_shares_memory_and_numpy_gives_it_back():
    a = np.arange(6.0).reshape(2, 3)
    t = torch.from_numpy(a)
    t.add_(1)
    assert a[0, 0] == 1.0 and t.numpy()[1, 2] == 6.0 and np.shares_memory(t.numpy(), a)
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(a[::-1])


def test_views_share_storage_and_version():
    x = torch.zeros(2, 3)
    v = x.t().view(6) if x.t().is_contiguous() else x.view(6)
    v.add_(1)
    assert x.sum().item() == 6.0 and x._version == v._version == 1
    assert x.untyped_storage() is v.untyped_storage() and v._base is x


def test_view_that_needs_a_copy_raises_and_reshape_copies():
    x = torch.arange(6).reshape(2, 3).t()
    with pytest.raises(RuntimeError, match=r"Use \.reshape"):
        x.view(6)
    assert x.reshape(6).tolist() == [0, 3, 1, 4, 2, 5]


@settings(max_examples=150, deadline=None)
@given(st.permutations(range(3)), st.lists(st.integers(1, 4), min_size=3, max_size=3), st.data())
def test_view_strides_agree_with_numpy(order, shape, data):
    x = torch.arange(int(np.prod(shape))).reshape(*shape).permute(*order)
    n = x.numel()
    cuts = [d for d in range(1, n + 1) if n % d == 0]
    first = data.draw(st.sampled_from(cuts))
    a = x.numpy().reshape(first, n // first)
    assert x.reshape(first, n // first).tolist() == a.tolist()
    shares = np.shares_memory(a, x.numpy())
    try:
        x.view(first, n // first)
        assert shares
    except RuntimeError:
        assert not shares


@settings(max_examples=150, deadline=None)
@given(st.permutations(range(3)), st.permutations(range(3)), st.tuples(*[st.integers(1, 3)] * 3))
def test_elementwise_results_are_dense_and_exact(order_a, order_b, shape):
    def made(order):
        t = torch.randn(*[shape[d] for d in order])
        return t.permute(*[list(order).index(d) for d in range(3)])

    a, b = made(order_a), made(order_b)
    c = a + b
    assert is_dense(c.shape, c.stride())
    assert np.array_equal(c.numpy(), a.numpy() + b.numpy())
    assert c.stride() == elementwise_strides(tuple(c.shape), [a, b])


@pytest.mark.parametrize("shape, strides, expected", [
    (((2, 3), (2, 3)), ((1, 2), (1, 2)), (1, 2)),
    (((2, 3), (2, 3)), ((3, 1), (1, 2)), (3, 1)),
    (((2, 3), (3,)), ((1, 2), (1,)), (1, 2)),
])  # fmt: skip
def test_stride_law_follows_the_inputs(shape, strides, expected):
    xs = [torch.empty_strided(s, t) for s, t in zip(shape, strides, strict=True)]
    assert (xs[0] + xs[1]).stride() == expected


def test_an_in_place_result_must_fit_its_tensor():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int64).add_(0.5)
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.ones(1).expand(3).add_(1)


def test_shape_mismatch_names_the_sizes():
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\)"):
        torch.ones(3) + torch.ones(4)
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"):
        torch.ones(2, 3) @ torch.ones(4, 5)


def test_promotion_ranks_dims_before_scalars():
    i, f = torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.float16)
    assert (i + 1.5).dtype is torch.float32
    assert (f + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float16
    assert (i + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float64
    assert (i / i).dtype is torch.float32 and (i == i).dtype is torch.bool
    assert (torch.ones(2, dtype=torch.uint8) + torch.ones(2, dtype=torch.int8)).dtype is torch.int16


def test_out_receives_the_result():
    out = torch.empty(0)
    result = torch.add(torch.ones(3), 1, out=out)
    assert result is out and out.tolist() == [2.0] * 3


def test_scalar_conversions():
    assert torch.tensor(2.5).item() == 2.5 and int(torch.tensor(3)) == 3 and bool(torch.tensor([1]))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()
    assert [10, 20, 30][torch.tensor(1)] == 20


def test_pickle_and_deepcopy_keep_values_and_flags():
    x = torch.randn(2, 3, requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.tolist() == x.tolist() and y.requires_grad and y.data_ptr() != x.data_ptr()


def test_printing():
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(torch.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(torch.tensor([1.5, float("nan")])) == "tensor([1.5000,    nan])"
    assert repr(torch.tensor(3)) == "tensor(3)"
    assert repr(torch.zeros(0)) == "tensor([])"
    assert repr(torch.zeros(2, 0)) == "tensor([], size=(2, 0))"
    assert repr(torch.tensor([1e-10, 1.0])) == "tensor([1.0000e-10, 1.0000e+00])"
    assert repr(torch.ones(2, dtype=torch.float64)) == "tensor([1., 1.], dtype=torch.float64)"
    assert "..." in repr(torch.arange(2000))


def test_pool_hands_the_same_block_out_again():
    a = torch.empty(1000)
    address = a.data_ptr()
    assert address % 64 == 0
    del a
    assert torch.empty(1000).data_ptr() == address


def test_pool_counts_and_empties():
    before = _native.memory_stats()["allocated_bytes"]
    t = torch.empty(1 << 20)
    assert _native.memory_stats()["allocated_bytes"] >= before + (4 << 20)
    del t
    assert _native.memory_stats()["allocated_bytes"] == before
    _native.empty_cache()
    assert _native.memory_stats()["cached_bytes"] == 0


def test_the_setting_limits_what_the_allocator_keeps() -> None:
    with _settings.scope(cpu_allocator_limit_bytes=1 << 20):
        machine.configure()
        assert _native.memory_stats()["limit_bytes"] == 1 << 20
        t = torch.empty(1 << 20)
        del t
        assert _native.memory_stats()["cached_bytes"] <= 1 << 20
    machine.configure()
    assert _native.memory_stats()["limit_bytes"] == 2 << 30


def test_view_outside_its_storage_is_refused():
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.ones(4).as_strided((3, 3), (2, 1), 0)


def test_fakes_carry_metadata_and_no_data():
    from eager.base.spec import DataDependentError, fake_like

    f = fake_like(torch.randn(3, 4, requires_grad=True))
    y = (f.t() @ f).relu().sum(0)
    assert y.is_fake and y.shape == (4,) and y.requires_grad
    with pytest.raises(DataDependentError):
        y.sum().item()
    with pytest.raises(RuntimeError, match="must match the size"):
        f + torch.ones(5)


def test_meta_device_runs_shapes_only():
    x = torch.empty(1 << 20, 1 << 10, device="meta")
    assert (x @ x.t()).shape == (1 << 20, 1 << 20)


def test_same_seed_same_numbers_and_uniformity():
    torch.manual_seed(3)
    a = torch.rand(10000)
    torch.manual_seed(3)
    assert torch.equal(a, torch.rand(10000)) and not torch.equal(a, torch.rand(10000))
    assert a.min().item() >= 0.0 and a.max().item() < 1.0 and abs(a.mean().item() - 0.5) < 0.01
    z = torch.randn(20000)
    assert abs(z.mean().item()) < 0.03 and abs(z.std().item() - 1) < 0.03


def test_philox_matches_the_published_vectors():
    from eager.optable.random import philox

    words = philox(np, 0, 0, 1)[:, 0]
    assert [f"{w:08x}" for w in words.tolist()] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_cuda_without_a_gpu_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        torch.zeros(2, device="cuda")
