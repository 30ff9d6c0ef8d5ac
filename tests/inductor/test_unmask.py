"""Loops with a version without masks: windows over images whose channels are innermost, and loops where the step does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
from eager.base import dtypes, logs
from eager.nn import functional as F
from inductor.cpp.loops import cost_of
from inductor.ir import definitions as ir
from inductor.loops.apply import Refusal, apply
from inductor.loops.build import build
from inductor.loops.steps import Unmask
from inductor.loops.tree import Guard, Kernel, Loop, Store


def _image(*shape: int) -> torch.Tensor:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(shape).astype("float32"))
    return x.to(memory_format=torch.channels_last)


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"),
                         [(9, 3, 1, 1, 1), (12, 5, 2, 2, 1), (11, 3, 1, 2, 2), (3, 3, 1, 2, 1), (1, 3, 1, 1, 1)])  # fmt: skip
def test_depthwise_convolutions(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    x, w = _image(2, 16, size, size + 1), torch.randn(16, 1, kernel, kernel)

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, stride=stride, padding=padding, dilation=dilation, groups=16)

    torch.testing.assert_close(torch.compile(fn, fullgraph=True, dynamic=False)(x, w), fn(x, w))


def test_the_weight_of_a_depthwise_convolution_is_read_along_channels() -> None:
    """One small copy before the loops, where the loops would read each of its elements thousands of times, nine elements apart."""
    with logs.capture("schedule") as records:
        torch.compile(lambda x, w: F.conv2d(x, w, padding=1, groups=16))(_image(2, 16, 24, 24), torch.randn(16, 1, 3, 3))
    text = "\n".join(r.message for r in records)
    assert "float32[3, 3, 16] = in1[" in text and "unmask(" in text


def _kernel(condition: ir.Value) -> Kernel:
    """b[i0, i1] = a[i0, i1] where the condition holds, else 0; 6 x 8 elements."""
    at = ir.axis(0, 6) * 8 + ir.axis(1, 8)
    value = ir.load("a", at, dtypes.float32, condition)
    return build([ir.Buffer("b", ir.row_major((6, 8), dtypes.float32), ir.Pointwise((6, 8), value))], {"a": dtypes.float32})


def _below(axis: int, size: int, at: int) -> ir.Value:
    return ir.make_op("lt", (ir.index(ir.axis(axis, size)), ir.const(at, dtypes.int64)), dtypes.bool_)


def test_the_first_version_has_no_mask() -> None:
    kernel = _kernel(_below(0, 6, 4))
    made = apply(kernel, (Unmask("b_i1"),))
    assert isinstance(made, Kernel)
    (rows,) = made.body
    assert isinstance(rows, Loop)
    inside, outside = rows.body
    assert isinstance(inside, Guard) and isinstance(outside, Guard)
    for guard, masked in ((inside, False), (outside, True)):
        (loop,) = guard.body
        assert isinstance(loop, Loop) and isinstance(loop.body[0], Store)
        assert [x.mask is not None for x in loop.body[0].value.loads] == [masked]


def test_a_mask_that_changes_in_the_loop_stays() -> None:
    made = apply(_kernel(_below(1, 8, 4)), (Unmask("b_i1"),))
    assert isinstance(made, Refusal) and "no mask is the same in each iteration" in str(made)


def test_only_the_version_without_masks_counts_in_the_estimated_time() -> None:
    kernel = _kernel(_below(0, 6, 4))
    made = apply(kernel, (Unmask("b_i1"),))
    assert isinstance(made, Kernel)
    (_, before), (_, after) = cost_of(kernel.body[0]), cost_of(made.body[0])
    assert 0 < after.ns < before.ns  # the version without masks
