"""The kernels for groups of few channels, against the same sums made of numpy's operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.optable import conv
from eager.optable.table import OPS


@st.composite
def grouped(draw: Any) -> dict[str, Any]:
    dims = draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(dims))

    kernel, stride, dilation, padding, extra = each(1, 4), each(1, 4), each(1, 3), each(0, 4), each(0, 9)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = tuple(max(1, r - 2 * p) + e for r, p, e in zip(reach, padding, extra, strict=True))
    groups, ins, outs = draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rng, dtype = np.random.default_rng(draw(st.integers(0, 9))), draw(st.sampled_from(["f4", "f8"]))
    return {
        "x": rng.standard_normal((draw(st.integers(1, 3)), groups * ins, *size)).astype(dtype),
        "weight": rng.standard_normal((groups * outs, ins, *kernel)).astype(dtype),
        "bias": rng.standard_normal(groups * outs).astype(dtype) if draw(st.booleans()) else None,
        "steps": (stride, padding, dilation), "groups": groups, "rng": rng,
    }  # fmt: skip


def close(got: torch.Tensor, expected: np.ndarray) -> None:
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-10
    assert got.numpy().shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(grouped())
def test_convolution_and_both_adjoints(case: dict[str, Any]) -> None:
    x, weight, bias, (stride, padding, dilation), groups = (case[k] for k in ("x", "weight", "bias", "steps", "groups"))
    tx, tw, none = torch.from_numpy(x), torch.from_numpy(weight), (0,) * len(stride)
    expected = conv._forward(np, x, weight, stride, padding, dilation, groups)
    if bias is not None:
        expected = expected + bias.reshape(1, -1, *(1,) * len(stride))
    tb = None if bias is None else torch.from_numpy(bias)
    close(OPS["convolution"](tx, tw, tb, stride, padding, dilation, False, none, groups), expected)

    g = case["rng"].standard_normal(expected.shape).astype(x.dtype)
    tg = torch.from_numpy(g)
    close(OPS["conv_weight"](tx, tg, weight.shape[2:], stride, padding, dilation, groups),
          conv._backward_weight(np, x, g, weight.shape[2:], stride, padding, dilation, groups))  # fmt: skip
    plain = conv.transposed_size(g.shape[2:], weight.shape[2:], stride, padding, dilation, none)
    rest = tuple(a - b for a, b in zip(x.shape[2:], plain, strict=True))
    if all(r < max(s, d) for r, s, d in zip(rest, stride, dilation, strict=True)):
        close(OPS["convolution"](tg, tw, None, stride, padding, dilation, True, rest, groups),
              conv._backward_input(np, g, weight, stride, padding, dilation, groups, x.shape[2:]))  # fmt: skip
