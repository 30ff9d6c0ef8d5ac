"""The memory layout of the result of attention: of the query, in eager calls, by native and other kernels, and in graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from eager.optable.table import OPS
from fxir.trace.trace import trace
from inductor.driver.backend import KEPT

DTYPES = [torch.float32, torch.float64, torch.bfloat16]
# The order of dims in memory, from the outermost; None: a tensor of 4 dims in which dim 0 is expanded.
ORDERS = [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3), (2, 1, 0, 3), (1, 2, 0, 3), (0, 1, 3, 2), None]


@st.composite
def _queries(draw):
    """A (b, h, t, d) with memory in some order of dims, and gaps after some of them."""
    shape = [draw(st.integers(1, n)) for n in (3, 3, 7, 4)]
    order = draw(st.sampled_from(ORDERS))
    if order is None:
        return torch.rand(1, *shape[1:]).expand(*shape)
    gaps = [draw(st.integers(0, 2)) for _ in shape]
    whole = torch.rand(*(shape[d] + gaps[d] for d in order)).permute(*(order.index(d) for d in range(4)))
    return whole[tuple(slice(n) for n in shape)]


@given(_queries(), st.sampled_from(DTYPES), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_result_has_the_layout_of_the_query(q, dtype, rows_of_one) -> None:
    q = q if dtype is torch.float32 else torch.empty_strided(q.shape, [max(s, 1) for s in q.stride()], dtype=dtype).copy_(q)
    k = torch.rand(*q.shape[:2], 5, q.shape[3], dtype=dtype)
    k = k[..., ::2].repeat_interleave(2, -1)[..., : q.shape[3]] if rows_of_one else k
    y = F.scaled_dot_product_attention(q, k, k)
    wanted = torch.empty_like(q).stride() if q.stride(-1) == k.stride(-1) == 1 else torch.empty(q.shape).stride()
    assert y.stride() == wanted
    plain = F.scaled_dot_product_attention(q.contiguous(), k, k)
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 1e-2}[dtype]
    np.testing.assert_allclose(y.double().numpy(), plain.double().numpy(), rtol=tolerance, atol=tolerance)


@given(_queries())
@settings(max_examples=50, deadline=None)
def test_gradients_do_not_depend_on_the_layout_of_the_result(q) -> None:
    found = []
    for x in (q, q.contiguous()):
        leaf = x.detach().double().requires_grad_()
        y = F.scaled_dot_product_attention(leaf, leaf, leaf, is_causal=True)
        (y * torch.arange(y.numel()).view(y.shape)).sum().backward()
        found.append(leaf.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_merging_the_heads_copies_nothing(dtype) -> None:
    def heads(x):
        q, k, v = (p.view(2, 6, 3, 4).transpose(1, 2) for p in x.split(12, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 6, 12)

    x = torch.rand(2, 6, 36, dtype=dtype)
    ops = [n.target.name for n in trace(heads, [fake_like(x)], KEPT).nodes if n.op == "call_function" and n.target in OPS.values()]
    assert "attention" in ops and not {"copy", "clone"} & set(ops)
    y = torch.compile(heads)(x)
    assert y.stride() == (72, 12, 1)
    np.testing.assert_allclose(y.double().numpy(), heads(x).double().numpy(), rtol=1e-2, atol=1e-2)


def test_dropout_and_gradients_of_masks_give_row_major_results() -> None:
    q = torch.rand(2, 6, 3, 4).transpose(1, 2)
    mask = torch.zeros(6, 6, requires_grad=True)
    assert F.scaled_dot_product_attention(q, q, q, mask).is_contiguous()
    assert F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).is_contiguous()
    assert F.scaled_dot_product_attention(q, q, q, mask.detach()).stride() == q.stride()
