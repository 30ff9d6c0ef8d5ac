"""Native kernels over arrays against numpy in double precision: values, layouts that they refuse, several threads."""
from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager import _native
from eager.optable.random import draw_words, philox, place_of
from eager.optable.table import OPS

RNG = np.random.default_rng(11)
DTYPES = (("f4", 3e-6), ("f8", 1e-12))
ROWS = ((1, 1), (3, 5), (7, 16), (4, 33), (300, 257), (2, 5000))


def _softmax(x, log):
    shifted = x - x.max(-1, keepdims=True)
    total = np.exp(shifted).sum(-1, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", ROWS)
def test_softmax(shape, log):
    for dtype, tolerance in DTYPES:
        x, g = (RNG.standard_normal(shape).astype(dtype) * 5 for _ in range(2))
        out = np.empty_like(x)
        assert _native.softmax(out, x, log)
        want = _softmax(x.astype("f8"), log)
        np.testing.assert_allclose(out, want, rtol=10 * tolerance, atol=10 * tolerance)
        back = np.empty_like(x)
        assert _native.softmax_backward(back, g, out, log)
        g8 = g.astype("f8")
        exact = g8 - np.exp(want) * g8.sum(-1, keepdims=True) if log else want * (g8 - (g8 * want).sum(-1, keepdims=True))
        np.testing.assert_allclose(back, exact, rtol=1e-4 if dtype == "f4" else 1e-10, atol=1e-4 if dtype == "f4" else 1e-10)


def test_softmax_of_infinities():
    x = torch.tensor([[-math.inf, 0.0, -math.inf], [math.inf, 0.0, 1.0], [-math.inf] * 3, [math.nan, 0.0, 0.0]])
    y = torch.softmax(x, 1)
    assert y[0].tolist() == [0, 1, 0] and torch.isnan(y[1:]).all()


@pytest.mark.parametrize("weight, bias", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("shape", ROWS[1:])
def test_layer_norm(shape, weight, bias):
    for dtype, tolerance in DTYPES:
        x, g = (RNG.standard_normal(shape).astype(dtype) + 3 for _ in range(2))
        w = RNG.standard_normal(shape[1]).astype(dtype) if weight else None
        b = RNG.standard_normal(shape[1]).astype(dtype) if bias else None
        out, mean, rstd = np.empty_like(x), np.empty(shape[0], dtype), np.empty(shape[0], dtype)
        assert _native.layer_norm(out, mean, rstd, x, w, b, 1e-5)
        x8, g8 = x.astype("f8"), g.astype("f8")
        m = x8.mean(-1, keepdims=True)
        r = 1 / np.sqrt(x8.var(-1, keepdims=True) + 1e-5)
        hat = (x8 - m) * r
        np.testing.assert_allclose(out, hat * (1 if w is None else w) + (0 if b is None else b), rtol=100 * tolerance, atol=100 * tolerance)
        np.testing.assert_allclose(mean, m[:, 0], rtol=tolerance)
        np.testing.assert_allclose(rstd, r[:, 0], rtol=10 * tolerance)
        back, back_weight = np.empty_like(x), np.empty(shape[1], dtype)
        assert _native.layer_norm_backward(back, g, x, mean, rstd, w)
        assert _native.layer_norm_backward_weight(back_weight, g, x, mean, rstd)
        gw = g8 if w is None else g8 * w
        exact = r * (gw - gw.mean(-1, keepdims=True) - hat * (gw * hat).mean(-1, keepdims=True))
        np.testing.assert_allclose(back, exact, rtol=1e-3 if dtype == "f4" else 1e-9, atol=2e-4 if dtype == "f4" else 1e-10)
        loose = 2e-3 if dtype == "f4" else 1e-9
        np.testing.assert_allclose(back_weight, (g8 * hat).sum(0), rtol=loose, atol=loose)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_reductions(dtype, tolerance):
    for shape, dims in (((5,), (0,)), ((3, 4), (1,)), ((3, 4), (0,)), ((70, 600), (0,)), ((70, 600), (1,)), ((300, 500), (0, 1)),
                        ((2, 3, 40), (1, 2)), ((20, 3, 40), (0, 1)), ((3, 40, 2), (1,)), ((100, 1), (0,)), ((1, 100), (0,))):  # fmt: skip
        x = RNG.standard_normal(shape).astype(dtype)
        t = torch.from_numpy(x)
        x8 = x.astype("f8")
        for keepdim in (False, True):
            for name, exact in (("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("amin", np.min)):
                got = getattr(torch, name)(t, dims, keepdim=keepdim).numpy()
                np.testing.assert_allclose(got, exact(x8, axis=dims, keepdims=keepdim), rtol=tolerance, atol=40 * tolerance)


def test_long_sums_stay_exact():
    x = np.full(3_000_001, 0.1, "f4")
    assert abs(float(torch.from_numpy(x).sum()) - 3_000_001 * float(np.float32(0.1))) < 0.1
    assert abs(float(torch.from_numpy(x[:3_000_000].reshape(-1, 3)).sum(0)[1]) - 100000) < 0.2


def test_extremes_carry_nan():
    x = torch.tensor([[1.0, math.nan, 2.0], [3.0, 4.0, 5.0]])
    assert torch.isnan(x.amax(1)).tolist() == [True, False] and torch.isnan(x.amin(0)).tolist() == [False, True, False]
    wide = torch.zeros(100)
    wide[57] = math.nan
    assert torch.isnan(wide.amax(0)) and torch.isnan(wide.amin(0))


def _place(i, words):
    """(counter, first word) of an element, counted out: 16 counters give rows of 16 elements."""
    counter, word = 0, 0
    while i >= 16:
        i, word = i - 16, word + words
        if word == 4:
            counter, word = counter + 16, 0
    return counter + i, word


def _drawn(seed, offset, n, words):
    """The words of each element of a draw, from the blocks of the generator."""
    blocks = philox(np, seed, offset, n + 16)
    places = [_place(i, words) for i in range(n)]
    return [np.array([blocks[word + k, counter] for counter, word in places], "u4") for k in range(words)]


@pytest.mark.parametrize("words", [1, 2])
def test_each_word_of_a_draw_has_its_place(words):
    for seed, offset, n in ((0, 0, 1), (12345, 7, 200), (2**63 + 5, 2**32 - 20, 131)):
        expected = _drawn(seed, offset, n, words)
        np.testing.assert_array_equal(draw_words(np, seed, offset, n, words), expected)
        assert [place_of(i, words) for i in range(n)] == [_place(i, words) for i in range(n)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_draws_equal_the_references(dtype):
    for seed, offset, n in ((0, 0, 1), (3, 16, 16), (3, 16, 33), (12345, 7, 1000), (2**63 + 5, 2**32 - 100, 300), (1, 2**40, 9000)):
        words = _drawn(seed, offset, n + 32, 1 if dtype == "f4" else 2)
        unit = (words[0] >> 8) * 2.0**-24 if dtype == "f4" else ((words[0] >> 5) * 2.0**26 + (words[1] >> 6)) * 2.0**-53
        out = np.empty(n, dtype)
        assert _native.philox_fill(out, seed, offset, False)
        np.testing.assert_array_equal(out, unit[:n].astype(dtype))
        assert _native.philox_fill(out, seed, offset, True)
        i = np.arange(n)
        radius, angle = np.sqrt(-2 * np.log1p(-unit[i & ~16])), 2 * np.pi * unit[i | 16]
        exact = radius * np.where(i & 16, np.sin(angle), np.cos(angle))
        np.testing.assert_allclose(out, exact, rtol=1e-5 if dtype == "f4" else 1e-12, atol=3e-6 if dtype == "f4" else 1e-13)


def test_parts_of_a_draw_on_several_threads_are_one_draw():
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            for dtype in ("f4", "f8"):
                out = np.empty(100_003, dtype)
                assert _native.philox_fill(out, 5, 2**32 - 100, False)
                words = draw_words(np, 5, 2**32 - 100, out.size, 1 if dtype == "f4" else 2)
                unit = (words[0] >> 8) * 2.0**-24 if dtype == "f4" else ((words[0] >> 5) * 2.0**26 + (words[1] >> 6)) * 2.0**-53
                np.testing.assert_array_equal(out, unit.astype(dtype))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("first", [1, 15, 16, 17, 64, 65])
@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_draws_share_no_number(first, draw, dtype):
    torch.manual_seed(0)
    drawn = torch.cat([draw(first, dtype=dtype), draw(100, dtype=dtype)])
    assert drawn.unique().numel() == first + 100


@pytest.mark.parametrize("decoupled, decay", [(True, 0.1), (False, 0.1), (True, 0.0)])
def test_adam(decoupled, decay):
    for dtype, tolerance in DTYPES:
        p, m, g = (RNG.standard_normal(1000).astype(dtype) for _ in range(3))
        v = RNG.random(1000).astype(dtype)
        p8, m8, v8, g8 = (a.astype("f8") for a in (p, m, v, g))
        assert _native.adam_step(p, m, v, g, 1e-2, 0.9, 0.99, 1e-8, decay, decoupled, 3)
        grad = g8 if decoupled else g8 + decay * p8
        m8, v8 = 0.9 * m8 + 0.1 * grad, 0.99 * v8 + 0.01 * grad * grad
        p8 = p8 * (1 - 1e-2 * decay) if decoupled else p8
        p8 -= 1e-2 * (m8 / (1 - 0.9**3)) / (np.sqrt(v8 / (1 - 0.99**3)) + 1e-8)
        for got, want in ((p, p8), (m, m8), (v, v8)):
            np.testing.assert_allclose(got, want, rtol=10 * tolerance, atol=10 * tolerance)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.randoms(use_true_random=False),
       st.sampled_from(["u1", "f2", "f4", "f8"]), st.integers(1, 2))  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_copies_between_any_orders(shape, random, dtype, step):
    """Source and target with permuted dims, gaps and broadcasts."""
    def laid_out():
        order = list(range(len(shape)))
        random.shuffle(order)
        memory = np.zeros([shape[d] * step for d in order], dtype)
        view = memory[tuple(slice(None, None, step) for _ in order)]
        return view.transpose([order.index(d) for d in range(len(shape))])

    source, target = laid_out(), laid_out()
    source[...] = RNG.integers(0, 255, source.shape)
    if random.random() < 0.3:
        source = np.broadcast_to(source[:1], source.shape)
    assert _native.copy_array(target, source)
    np.testing.assert_array_equal(target, source)


def test_transposing_clones_of_every_dtype():
    for name in ("bool", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        x = (torch.arange(70 * 130).reshape(70, 130) % 100).to(getattr(torch, name))
        y = x.t().contiguous()
        assert y.is_contiguous() and torch.equal(y, x.t()) and torch.equal(y.t().contiguous(), x)


def test_layouts_that_kernels_refuse():
    x = RNG.standard_normal((6, 8)).astype("f4")
    out = np.empty((6, 8), "f4")
    assert not _native.softmax(out, np.asfortranarray(x), False)
    assert not _native.softmax(out.astype("f8"), x, False)
    assert not _native.softmax(out, x[:5].copy(), False)
    assert not _native.layer_norm(out, np.empty(6, "f4"), np.empty(6, "f4"), x, np.ones(7, "f4"), None, 1e-5)
    assert not _native.reduce_array(np.empty(5, "f4"), x, 0, False, 1.0)
    assert not _native.copy_array(out, x[:5])
    assert not _native.copy_array(out[::-1], x)
    assert not _native.adam_step(x, x, x, x[:5].copy(), 1e-2, 0.9, 0.99, 1e-8, 0.0, True, 3)
    with pytest.raises(TypeError):
        _native.softmax(out)
    with pytest.raises(ValueError, match="kind"):
        _native.reduce_array(out, x, 7, False, 1.0)


def test_kernels_of_ops_agree_with_their_decompositions():
    x = torch.randn(40, 50, dtype=torch.float64)
    for op, args in (("softmax", (x, 1)), ("log_softmax", (x, -1)), ("softmax", (x, 0))):
        assert torch.allclose(OPS[op](*args), OPS[op].decompose(*args))
