"""The cores of convolutions alone: every vector width and element type, packed or not, and a run without scratch memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.base import machine as host
from eager.base import settings
from inductor.artifact.format import Allocation, ArtifactPlan, NativeSegment, NewOutput, Pack, SourceUnit, Spec
from inductor.base import toolchain
from inductor.base.toolchain import build
from inductor.cpp import conv
from inductor.cpp.gemm_problem import REAL, pack_function
from inductor.cpp.windows import Convolution
from inductor.runtime import loader
from tests.inductor.helpers_cores import SCARCE, text_of
from tests.inductor.helpers_runtime import PRELUDE

WIDTHS = [bits for bits in (128, 256, 512) if bits <= toolchain.toolchain().simd_bits]


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    with settings.scope(cpu_threads=3):
        host.configure()
        yield
    host.configure()


def _convolution(dtype: str, images: int, groups: int, channels: int, columns: int, size: int, kernel: int, stride: int,
                 pad: int = 1) -> Convolution:  # fmt: skip
    """NHWC images and OIHW weights."""
    out = (size + 2 * pad - kernel) // stride + 1
    c, o = groups * channels, groups * columns
    taps = kernel * kernel
    return Convolution(dtype, {
        "images": images, "groups": groups, "channels": channels, "columns": columns, "ih": size, "iw": size, "oh": out, "ow": out,
        "kh": kernel, "kw": kernel, "sh": stride, "sw": stride, "ph": pad, "pw": pad, "dh": 1, "dw": 1,
        "x_n": size * size * c, "x_h": size * c, "x_w": c, "x_c": 1, "x_g": channels,
        "w_g": columns * channels * taps, "w_column": channels * taps, "w_c": taps, "w_h": kernel, "w_w": 1,
        "y_n": out * out * o, "y_h": out * o, "y_w": o, "y_g": columns,
    }, (0, 0, 0))  # fmt: skip


COUNT = """
static int seen[1 << 20];
static void finish(char **bufs, void *, long g, long i0, long i1, long j0, long j1) {{
  for (long i = i0; i < i1; i++) for (long j = j0; j < j1; j++) {{
    long at = i * {row} + g * {group} + j; (({real} *)bufs[2])[at] += ++seen[at]; }} }}
"""


def _run(folder: Path, v: Convolution, bits: int, packed: bool, scratch: str = "", core: str = "conv",
         image: Any = None) -> tuple[Any, Any]:  # fmt: skip
    """The results of a core, whose epilogue adds how often it saw an element, and of eager, both (n, c, h, w).

    image: (n, c, h, w); None: random numbers. scratch: "sometimes" or "never", if memory is scarce.
    """
    tools = replace(toolchain.toolchain(), simd_bits=bits)
    code, real = conv.emit(v, packed, tools), REAL[v.dtype]
    assert f"fj_{core}_" in code.unit.name
    epilogue = COUNT.format(real=real, row=v["y_w"], group=v["y_g"])
    source = f"""{PRELUDE}{SCARCE if scratch else ""}{epilogue}{text_of(code, "finish")}
{pack_function("pack", "core", "bufs[1]", 3) if packed else ""}
EXPORT void segment(char **bufs, const Runtime *rt) {{
  {f"Runtime poor = scarce(rt, {scratch}); rt = &poor;" if scratch else ""}
  core::run((const {real} *)bufs[0], (const {real} *)bufs[{3 if packed else 1}], ({real} *)bufs[2], bufs, rt); }}"""
    build([SourceUnit("unit", source), code.unit], folder / "core.so", tools, folder / "objects")
    of = getattr(torch, v.dtype)
    n, c, o = v["images"], v["groups"] * v["channels"], v["groups"] * v["columns"]
    x = torch.randn(n, c, v["ih"], v["iw"], dtype=of) if image is None else image
    x = x.contiguous(memory_format=torch.channels_last)
    w = torch.randn(o, v["channels"], v["kh"], v["kw"], dtype=of)
    expected = torch.nn.functional.conv2d(x, w, stride=v["sh"], padding=1, groups=v["groups"]) + 1
    out = Spec(tuple(expected.shape), expected.stride(), v.dtype)
    item = torch.finfo(of).bits // 8
    plan = ArtifactPlan(
        (Spec(tuple(x.shape), x.stride(), v.dtype), Spec(tuple(w.shape), w.stride(), v.dtype)), (NewOutput(0, out),),
        (Allocation(expected.numel() * item),), packs=(Pack("pack", (1,), code.packed_bytes),) if packed else (),
        steps=(NativeSegment("segment", 10**6),),
    )  # fmt: skip
    return loader.load(plan, folder / "core.so", {}, name="conv", single=True)(x, w), expected


def _gradient(folder: Path, v: Convolution, bits: int, core: str, scratch: str = "", image: Any = None) -> tuple[Any, Any]:
    """The gradients of a weight by a core and by eager, both (o, c, h, w). The other arguments are as in `_run`."""
    tools, fields = replace(toolchain.toolchain(), simd_bits=bits), dict(v.fields)
    for name in ("n", "h", "w", "g"):
        fields[f"g_{name}"] = fields.pop(f"y_{name}")
    for name in ("column", "c", "h", "w", "g"):  # in the order of a task
        fields[f"w_{name}"] = fields.pop(f"w_{name}")
    code, real = conv.emit_weight_gradient(Convolution(v.dtype, fields, (0, 0, 0)), tools), REAL[v.dtype]
    assert f"fj_{core}_" in code.unit.name
    source = f"""{PRELUDE}{SCARCE if scratch else ""}{text_of(code)}
EXPORT void segment(char **bufs, const Runtime *rt) {{
  {f"Runtime poor = scarce(rt, {scratch}); rt = &poor;" if scratch else ""}
  core::run((const {real} *)bufs[0], (const {real} *)bufs[1], ({real} *)bufs[2], bufs, rt); }}"""
    build([SourceUnit("unit", source), code.unit], folder / "core.so", tools, folder / "objects")
    of = getattr(torch, v.dtype)
    n, c, o = v["images"], v["groups"] * v["channels"], v["groups"] * v["columns"]
    x = torch.randn(n, c, v["ih"], v["iw"], dtype=of) if image is None else image
    x = x.contiguous(memory_format=torch.channels_last)
    w = torch.zeros(o, v["channels"], v["kh"], v["kw"], dtype=of, requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, stride=v["sh"], padding=v["ph"], groups=v["groups"])
    g = torch.randn(*y.shape, dtype=of).contiguous(memory_format=torch.channels_last)
    (expected,) = torch.autograd.grad(y, w, g)
    out = Spec(tuple(w.shape), w.stride(), v.dtype)
    plan = ArtifactPlan(
        (Spec(tuple(x.shape), x.stride(), v.dtype), Spec(tuple(g.shape), g.stride(), v.dtype)), (NewOutput(0, out),),
        (Allocation(w.numel() * torch.finfo(of).bits // 8),), steps=(NativeSegment("segment", 10**6),),
    )  # fmt: skip
    return loader.load(plan, folder / "core.so", {}, name="conv", single=True)(x, g), expected


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("dtype", "size", "kernel", "pad"), [("float32", 11, 3, 1), ("float64", 9, 3, 2), ("float32", 9, 3, 0), ("float32", 11, 1, 1)]
)
def test_a_gradient_of_a_weight_agrees_with_eager(tmp_path: Path, dtype: str, bits: int, size: int, kernel: int, pad: int) -> None:
    """Odd sizes, edges of panels and of vectors, and parts of fewer channels than a vector."""
    v = _convolution(dtype, 3, 2, 61, 77, size, kernel, 1, pad)
    found, expected = _gradient(tmp_path, v, bits, "winograd_weight" if kernel == 3 else "conv_weight")
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("scratch", ["sometimes", "never"])
def test_a_gradient_without_scratch_memory(tmp_path: Path, scratch: str) -> None:
    found, expected = _gradient(tmp_path, _convolution("float32", 2, 1, 60, 70, 10, 3, 1), WIDTHS[-1], "winograd_weight", scratch)
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_a_gradient_that_is_not_finite_is_computed_from_windows(tmp_path: Path) -> None:
    x = torch.randn(2, 60, 12, 12)
    x[0, 3, 0, 0], x[1, 7, 11, 11], x[1, 30, 5, 2] = float("inf"), float("-inf"), float("nan")  # a corner meets four taps
    v = _convolution("float32", 2, 1, 60, 70, 12, 3, 1)
    found, expected = _gradient(tmp_path, v, WIDTHS[-1], "winograd_weight", "", x)
    assert torch.isinf(expected).sum() > 0 and torch.isfinite(expected[:, 3]).sum() > 0
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3, equal_nan=True)


def test_a_gradient_from_many_images_stays_accurate() -> None:
    """Blocks of positions are added, so that the error does not grow with their number as the error of one sum does."""
    x, layer = torch.randn(24, 64, 28, 28), torch.nn.Conv2d(64, 64, 3, bias=False)
    errors = []
    for fn in (torch.compile(layer), layer):
        (g,) = torch.autograd.grad(fn(x).square().sum(), layer.weight)
        errors.append(g)
    (exact,) = torch.autograd.grad(layer.double()(x.double()).square().sum(), layer.weight)
    compiled, eager = (((g - exact) ** 2).mean().sqrt() / exact.abs().max() for g in errors)
    assert compiled < 2 * eager


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(("dtype", "packed", "stride"), list(itertools.product(REAL, (False, True), (1, 2))))
def test_a_core_agrees_with_eager(tmp_path: Path, dtype: str, bits: int, packed: bool, stride: int) -> None:
    v = _convolution(dtype, 3, 2, 5, 37, 11, 3, stride)
    found, expected = _run(tmp_path, v, bits, packed)
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("packed", "scratch"), list(itertools.product((False, True), ("sometimes", "never"))))
def test_a_task_without_scratch_memory_computes_one_element_after_another(tmp_path: Path, packed: bool, scratch: str) -> None:
    found, expected = _run(tmp_path, _convolution("float32", 2, 2, 3, 20, 6, 3, 1), WIDTHS[-1], packed, scratch)
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(("dtype", "packed", "stride"), list(itertools.product(REAL, (False, True), (1, 2))))
def test_a_core_with_transformed_tiles_agrees_with_eager(tmp_path: Path, dtype: str, bits: int, packed: bool, stride: int) -> None:
    v = _convolution(dtype, 3, 2, 61, 77, 12 * stride, 3, stride)
    found, expected = _run(tmp_path, v, bits, packed, core=f"winograd{stride}")
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("packed", "scratch"), list(itertools.product((False, True), ("sometimes", "never"))))
def test_transformed_tiles_without_scratch_memory(tmp_path: Path, packed: bool, scratch: str) -> None:
    found, expected = _run(tmp_path, _convolution("float32", 3, 2, 48, 40, 8, 3, 1), WIDTHS[-1], packed, scratch, "winograd1")
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("packed", "stride"), list(itertools.product((False, True), (1, 2))))
def test_results_that_are_not_finite_are_computed_from_windows(tmp_path: Path, packed: bool, stride: int) -> None:
    x = torch.randn(4, 60, 19, 19)
    x[0, 3, 4, 4], x[1, 7, 0, 8], x[1, 30, 8, 2], x[0, 5, 1, 1] = float("inf"), float("-inf"), float("nan"), 3e38
    v = _convolution("float32", 4, 1, 60, 70, 19, 3, stride)
    found, expected = _run(tmp_path, v, WIDTHS[-1], packed, "", f"winograd{stride}", x)
    assert torch.isinf(expected).sum() > 0 and torch.isfinite(expected).sum() > 0
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3, equal_nan=True)


def test_transformed_tiles_round_less_than_windows() -> None:
    x, layer = torch.randn(1, 128, 32, 32), torch.nn.Conv2d(128, 64, 3, bias=False)
    with torch.no_grad():
        exact = torch.nn.functional.conv2d(x.double(), layer.weight.double())
        compiled, eager = (((fn(x) - exact) ** 2).mean() for fn in (torch.compile(layer), layer))
    assert compiled < eager


def test_many_channels_are_added_in_several_passes(tmp_path: Path) -> None:
    found, expected = _run(tmp_path, _convolution("float32", 1, 1, 700, 70, 5, 3, 2), WIDTHS[-1], True)
    assert torch.allclose(found, expected, atol=1e-2)
