"""Compiled convolutions against eager in float64: values, gradients and strides over random shapes."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

import eager as torch
from eager import nn
from eager.base.logs import capture
from eager.nn import functional as F


class Case(NamedTuple):
    dims: int
    batch: int
    size: tuple[int, ...]
    groups: int
    inputs: int  # channels of one group
    outputs: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    bias: bool
    last: bool  # channels-last input
    dtype: Any


def _case(seed: int) -> Case:
    pick = random.Random(seed)
    dims = pick.choice((1, 2, 2, 2))
    kernel = tuple(pick.choice((1, 2, 3, 3, 5)) for _ in range(dims))
    dilation = tuple(pick.choice((1, 1, 2)) for _ in range(dims))
    size = tuple(d * (k - 1) + pick.randint(1, 17) for k, d in zip(kernel, dilation, strict=True))
    padding = tuple(pick.randint(0, min(k, d * (k - 1))) for k, d in zip(kernel, dilation, strict=True))
    groups = pick.choice((1, 1, 1, 2, 4))
    depthwise = pick.random() < 0.2
    inputs, outputs = (1, 1) if depthwise else (pick.choice((1, 3, 8, 17)), pick.choice((1, 5, 16, 35)))
    return Case(dims, pick.choice((1, 2, 3)), size, 24 if depthwise else groups, inputs, outputs, kernel,
                tuple(pick.choice((1, 1, 2, 3)) for _ in range(dims)), padding, dilation, pick.random() < 0.35, pick.random() < 0.5,
                pick.random() < 0.5, pick.choice((torch.float32, torch.float32, torch.float64)))  # fmt: skip


def _operands(c: Case) -> tuple[Any, Any, Any]:
    torch.manual_seed(len(str(c)))
    x = torch.randn(c.batch, c.groups * c.inputs, *c.size, dtype=c.dtype)
    if c.last and c.dims == 2:
        x = x.contiguous(memory_format=torch.channels_last)
    ends = (c.groups * c.inputs, c.outputs) if c.transposed else (c.groups * c.outputs, c.inputs)
    bias = torch.randn(c.groups * c.outputs, dtype=c.dtype) if c.bias else None
    return x, torch.randn(*ends, *c.kernel, dtype=c.dtype), bias


def _function(c: Case) -> Any:
    if c.transposed:
        of = F.conv_transpose1d if c.dims == 1 else F.conv_transpose2d
        return lambda x, w, b: of(x, w, b, c.stride, c.padding, 0, c.groups, c.dilation).relu()
    of = F.conv1d if c.dims == 1 else F.conv2d
    return lambda x, w, b: of(x, w, b, c.stride, c.padding, c.dilation, c.groups).relu()


def _agrees(found: Any, expected: Any, exact: Any) -> None:
    """As near to float64 as a sum of products in the dtype may be, and laid out as eager's."""
    assert found.dtype is expected.dtype
    if 1 not in expected.shape:
        assert found.stride() == expected.stride()
    bound = 4 * max(float((expected.double() - exact).abs().max()), 2 * torch.finfo(found.dtype).eps * float(exact.abs().max()))
    assert float((found.double() - exact).abs().max()) <= bound


def _is_valid(c: Case) -> bool:
    if not c.transposed:
        return True
    return all((n - 1) * s - 2 * p + d * (k - 1) + 1 > 0 for n, s, p, d, k in
               zip(c.size, c.stride, c.padding, c.dilation, c.kernel, strict=True))  # fmt: skip


CASES = [c for c in map(_case, range(60)) if _is_valid(c)]
# Windows that do not overlap, and transformed tiles.
_PLAIN: Any = {"dims": 2, "batch": 2, "padding": (0, 0), "dilation": (1, 1), "bias": True, "dtype": torch.float32}
OTHERS = [
    *(Case(size=(7, 5), groups=1, inputs=12, outputs=outputs, kernel=apart, stride=apart, transposed=True, last=last, **_PLAIN)
      for apart, outputs, last in (((2, 2), 8, True), ((2, 2), 19, False), ((3, 2), 16, False), ((1, 3), 5, True))),
    *(Case(size=(15, 22), groups=groups, inputs=32, outputs=40, kernel=(3, 3), stride=(1, 1), transposed=transposed, last=last, **_PLAIN)
      for groups, transposed, last in ((1, False, True), (2, False, False), (1, True, False))),
]  # fmt: skip


@pytest.mark.parametrize("case", [*CASES[:30], *OTHERS], ids=str)
def test_values_agree_with_eager(case: Case) -> None:
    x, w, b = _operands(case)
    f = _function(case)
    with torch.no_grad():
        found = torch.compile(f, dynamic=False)(x, w, b)
    _agrees(found, f(x, w, b), f(x.double(), w.double(), None if b is None else b.double()))


@pytest.mark.parametrize("case", [*CASES[30:48], *OTHERS], ids=str)
def test_gradients_agree_with_eager(case: Case) -> None:
    f = _function(case)

    def gradients(of: Any, to: Any) -> list[Any]:
        torch.manual_seed(7)
        leaves = [t.to(to).requires_grad_() for t in _operands(case) if t is not None]
        y = of(*leaves, *([None] if len(leaves) == 2 else []))
        return list(torch.autograd.grad(y, leaves, torch.randn(*y.shape, dtype=torch.float64).to(to)))

    found, expected = gradients(torch.compile(f, dynamic=False), case.dtype), gradients(f, case.dtype)
    for a, b, exact in zip(found, expected, gradients(f, torch.float64), strict=True):
        _agrees(a, b, exact)


def test_a_symbolic_batch_gives_the_values_of_eager() -> None:
    conv = nn.Conv2d(3, 8, 3, padding=1)
    call = torch.compile(conv, dynamic=True)
    with torch.no_grad():
        for n in (2, 5, 3):
            x = torch.randn(n, 3, 9, 7)
            assert torch.allclose(call(x), conv(x), atol=1e-5)


def _network() -> nn.Sequential:
    first = nn.Conv2d(3, 24, 3, padding=1, bias=False)
    model = nn.Sequential(first, nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 8, 3, stride=2), nn.BatchNorm2d(8))
    for norm in (model[1], model[4]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
        norm.weight.data.normal_()
    return model.eval()


def test_a_folded_batch_norm_follows_its_tensors() -> None:
    """Values of weights are kept between calls, and computed again after each of their tensors has changed."""
    model, x = _network(), torch.randn(2, 3, 12, 10)
    call = torch.compile(model, dynamic=False)
    with torch.no_grad():
        for t in (None, model[0].weight, model[1].running_var, model[1].running_mean, model[1].weight, model[1].bias, model[4].running_var):
            if t is not None:
                t.mul_(1.5)
            for _ in range(3):  # computed, computed and kept, kept
                assert torch.allclose(call(x), model(x), atol=1e-4)


@pytest.mark.parametrize("option", ["packing", "fold_batch_norm", "channels_last"])
def test_each_switch_alone_gives_the_same_values(option: str) -> None:
    model, x = _network(), torch.randn(2, 3, 12, 10)
    with torch.no_grad():
        assert torch.allclose(torch.compile(model, dynamic=False, options={option: False})(x), model(x), atol=1e-4)


@pytest.mark.parametrize("last", [False, True])
def test_the_loops_after_a_convolution_run_on_its_blocks(last: bool) -> None:
    model, x = _network(), torch.randn(2, 3, 12, 10)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad(), capture("schedule") as records:
        found = torch.compile(model[:3], dynamic=False)(x)
    assert found.stride() == model[:3](x).stride()
    steps = [r.message.split(": ")[1] for r in records if "follow(" in r.message]
    assert len(steps) == 1, "bias and relu are in the body of the contraction"


@pytest.mark.parametrize("last", [False, True])
def test_a_transposed_convolution_without_overlaps_is_one_contraction(last: bool) -> None:
    layer, x = nn.ConvTranspose2d(24, 16, 2, 2), torch.randn(2, 24, 9, 16)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad(), capture("schedule") as records:
        torch.compile(layer, dynamic=False)(x)
    steps = [r.message.split(": ")[1] for r in records if "contraction" in r.message or "follow(" in r.message]
    assert len(steps) == 2 and not any("expand(" in s for s in steps), "bias is added in the body of one product by a core"
