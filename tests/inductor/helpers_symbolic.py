"""Graphs of symbolic sizes, made without a capture: a function traced on fakes whose sizes are symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import eager
from eager.base import dtypes
from eager.base.spec import TensorSpec, fake, spec_of
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.symbols.shapes import MOST, ShapeEnv
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph

Shape = Sequence["int | str"]


def symbolic_graph(
    fn: Callable[..., Any], *inputs: Shape | tuple[Shape, str], most: int = MOST, hints: dict[str, int] | None = None
) -> Graph:
    """The graph of `fn` on inputs of these shapes; a str is a symbol. (shape, dtype name) for another dtype than float32."""
    env = ShapeEnv()
    known: dict[str, Any] = {}

    def size(n: int | str) -> Any:
        if isinstance(n, int):
            return n
        if n not in known:
            known[n] = env.create((hints or {}).get(n, 5 + 2 * len(known)), None, hi=most)
        return known[n]

    fakes = []
    for entry in inputs:
        shape, dtype = entry if len(entry) == 2 and isinstance(entry[1], str) and not isinstance(entry[0], str | int) else (
            entry, "float32")  # fmt: skip
        fakes.append(fake(TensorSpec.contiguous([size(n) for n in shape], dtypes.by_name(dtype))))
    return trace(fn, fakes)


def with_symbols(tensors: Sequence[Any], where: Any) -> list[Any]:
    """Fake tensors like `tensors` on the device `where`; each size from 2 of a contiguous tensor is a symbol."""
    env = ShapeEnv()
    symbols = {n: env.create(n, None) for n in sorted({n for t in tensors for n in t.shape if n > 1})}

    def spec(t: Any) -> TensorSpec:
        if not t.is_contiguous():
            return replace(spec_of(t), device=where)
        return TensorSpec.contiguous([symbols.get(n, n) for n in t.shape], t.dtype, where)

    return [fake(spec(t)) for t in tensors]


def compiled(fn: Callable[..., Any], *inputs: Any, mode: str = "default", **options: Any) -> Any:
    """The native callable of `fn` over symbolic inputs: from tensors to a tuple."""
    return compile_graph(symbolic_graph(fn, *inputs, **options), GraphKind.INFERENCE, CompileOptions(mode=mode))


def tensor(rng: np.random.Generator, *shape: int, dtype: str = "float32", high: int = 9) -> Any:
    """Random values of a shape."""
    d = dtypes.by_name(dtype)
    if d.is_floating_point:
        return eager.tensor(rng.standard_normal(shape).astype("float32")).to(d)
    return eager.tensor(rng.integers(0, high, shape)).to(d)


def agree(got: Any, want: Any, tolerance: float = 2e-5) -> None:
    """Same shape, strides, dtype and (nearly) values."""
    assert tuple(got.shape) == tuple(want.shape) and got.dtype is want.dtype
    if 0 not in want.shape:
        assert got.stride() == want.stride()
    np.testing.assert_allclose(got.detach().float().numpy(), want.detach().float().numpy(), tolerance, tolerance)
