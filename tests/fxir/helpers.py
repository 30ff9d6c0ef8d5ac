"""Helpers of this folder's tests: capturing a function as one call, fakes, and comparing eager with compiled results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager import Tensor
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile, interpret
from fxir.trace.trace import fakes_like


def capture(fn: Callable[..., Any], n: int, root: dict[str, Any] | None = None) -> GraphModule:
    """A graph of one call, as if `fn` had been captured: placeholders, fn(*placeholders, *root values), output."""
    graph = Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(n)]
    carried = [graph.get_attr(key) for key in root or {}]
    graph.output(graph.call_function(fn, (*inputs, *carried)))
    return GraphModule(root or {}, graph)


fakes_of = fakes_like


def compile_like(
    fn: Callable[..., Any],
    tensors: Sequence[Tensor],
    compile_graph: Any = interpret,
    root: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """`fn` through aot for tensors like these."""
    return aot_compile(capture(fn, len(tensors), root), fakes_of(tensors), compile_graph)


def as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple | list) else [x]


def array(t: Tensor) -> Any:
    return np.array(t.detach().tolist())


def assert_same_tensors(got: Sequence[Any], want: Sequence[Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Equal values, dtypes, sizes, strides and requires_grad, one by one."""
    assert len(got) == len(want)
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if not isinstance(b, Tensor):
            assert a == b or (a is None and b is None), f"output {k}"
            continue
        assert a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape), f"output {k}: {a.shape} {b.shape}"
        assert tuple(a.stride()) == tuple(b.stride()), f"output {k}: strides {a.stride()} for {b.stride()}"
        assert a.requires_grad == b.requires_grad, f"output {k}: requires_grad {a.requires_grad} for {b.requires_grad}"
        np.testing.assert_allclose(array(a), array(b), rtol=rtol, atol=atol, err_msg=f"output {k}")


def aliasing(tensors: Sequence[Any]) -> list[tuple[int, int]]:
    """For each tensor, the first tensor that shares its storage and the first that is the same object."""
    result = []
    for t in tensors:
        if not isinstance(t, Tensor):
            result.append((-1, -1))
            continue
        storage = next(i for i, u in enumerate(tensors) if isinstance(u, Tensor) and shares(u, t))
        same = next(i for i, u in enumerate(tensors) if u is t)
        result.append((storage, same))
    return result


def shares(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.untyped_storage().root is b.untyped_storage().root and a.numel() > 0 and b.numel() > 0)
