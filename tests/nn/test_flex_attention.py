"""flex_attention against an explicit attention, with gradients and compiled. tests/nn/behaviours.py compares with torch."""
from __future__ import annotations

import math
from typing import Any

import eager
from eager.nn.attention import bias
from eager.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention


def _inputs(*shapes: tuple[int, ...]) -> list[Any]:
    eager.manual_seed(3)
    return [eager.randn(s, dtype=eager.float64).requires_grad_() for s in shapes]


def _same(a: Any, b: Any) -> None:
    assert eager.allclose(a, b, rtol=1e-9, atol=1e-11), float((a - b).abs().max())


def test_score_and_mask_functions_determine_the_result() -> None:
    q, k, v = _inputs((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
    table = eager.randn(3, 5, 7, dtype=eager.float64).requires_grad_()
    mask = create_block_mask(lambda b, h, i, j: (j <= i + 2) | (b == 1), 2, None, 5, 7, BLOCK_SIZE=2)
    got, aux = flex_attention(q, k, v, lambda s, b, h, i, j: eager.tanh(s) * 2 + table[h, i, j], mask,
                              return_aux=AuxRequest(lse=True, max_scores=True))  # fmt: skip
    scores = eager.tanh(q @ k.transpose(-2, -1) / math.sqrt(4)) * 2 + table
    seen = eager.arange(7) <= eager.arange(5).unsqueeze(1) + 2
    scores = eager.where(eager.stack([seen, eager.ones_like(seen)]).unsqueeze(1), scores, -math.inf)
    want = scores.softmax(-1) @ v
    _same(got, want)
    _same(aux.lse, scores.logsumexp(-1))
    _same(aux.max_scores, scores.amax(-1))
    leaves = (q, k, v, table)
    for g, w in zip(eager.autograd.grad(got.square().sum(), leaves), eager.autograd.grad(want.square().sum(), leaves), strict=True):
        _same(g, w)


def test_fully_masked_rows_are_zero() -> None:
    q, k, v = _inputs((1, 1, 4, 2), (1, 1, 4, 2), (1, 1, 4, 2))
    y = flex_attention(q, k, v, block_mask=create_block_mask(lambda b, h, i, j: j < i, None, None, 4, 4, BLOCK_SIZE=2))
    assert not y[0, 0, 0].any() and bool(y.isfinite().all())
    assert all(bool(g.isfinite().all()) for g in eager.autograd.grad(y.sum(), (q, k, v)))


def test_compiled_gives_the_same() -> None:
    q, k, v = _inputs((1, 2, 6, 4), (1, 2, 6, 4), (1, 2, 6, 4))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 6, 6, BLOCK_SIZE=2)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: s - (h + 1) * 0.1 * (i - j), mask) * 2

    _same(eager.compile(attend)(q, k, v), attend(q, k, v))


def test_causal_biases_fit_attention() -> None:
    q, k, v = _inputs((2, 3, 4), (2, 5, 4), (2, 5, 4))
    for make, shift in ((bias.causal_upper_left, 0), (bias.causal_lower_right, 2)):
        mask = make(3, 5)
        assert mask.tolist() == [[j <= i + shift for j in range(5)] for i in range(3)]
        scores = eager.where(mask, q @ k.transpose(-2, -1) / 2, -math.inf)
        _same(eager.nn.functional.scaled_dot_product_attention(q, k, v, mask), scores.softmax(-1) @ v)
