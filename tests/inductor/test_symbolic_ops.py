"""Every op of the table, compiled for symbolic sizes, gives what its eager kernel gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

import eager as torch
from benchmarks.plans import tensors_in, with_tensors
from eager.base.spec import DataDependentError
from eager.nn import functional as F
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.symbols.shapes import NeedsStatic
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from tests.inductor.helpers_symbolic import with_symbols

_UNTRACED = (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError, DataDependentError)
NAMES = [n for n, op in OPS.items()
         if not (op.is_custom or op.mutates or op.samples is None or op.kind in (Kind.EFFECT, Kind.RANDOM) or n == "empty")]  # fmt: skip

BY_DATA = {"repeat_indices", "masked_select", "nonzero", "unique", "unique_consecutive", "bincount"}  # data gives the size of the result


def _calls(name: str) -> Iterator[tuple[tuple[Any, ...], Graph]]:
    """Samples of an op that can be traced, each with its graph of symbolic sizes."""
    op = OPS[name]
    for args in islice(samples_of(name, torch.float32), 2):
        try:
            op(*args)
            yield args, trace(lambda *xs, a=args: op(*with_tensors(a, iter(xs))), with_symbols(list(tensors_in(args)), torch.device("cpu")))
        except _UNTRACED:
            continue


@pytest.mark.parametrize("name", NAMES)
def test_an_op_compiled_for_symbolic_sizes_gives_what_its_eager_kernel_gives(name: str) -> None:
    n_traced = 0
    for args, graph in _calls(name):
        n_traced += 1
        try:
            compiled = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
        except NeedsStatic:  # the caller compiles for the sizes of its call
            continue
        expected = OPS[name](*args)
        expected = [t for t in (expected if isinstance(expected, tuple | list) else [expected]) if isinstance(t, torch.Tensor)]
        found = [t for t in compiled(*tensors_in(args)) if isinstance(t, torch.Tensor)]
        for a, e in zip(found[-len(expected) :], expected, strict=True):
            assert a.dtype is e.dtype and a.shape == e.shape
            np.testing.assert_allclose(a.detach()._array, e.detach()._array, 1e-4, 1e-5)
    assert (n_traced == 0) == (name in BY_DATA)


def _filter_gradient(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    w = w.detach().requires_grad_()
    (found,) = torch.autograd.grad(F.conv2d(x, w, padding=1).square().sum(), [w])
    return found


def test_sizes_that_a_stage_needs_are_compiled_in() -> None:
    """Each new size is one more compilation; a failed one would run uncompiled, with a warning."""
    pool = torch.compile(lambda x: F.adaptive_avg_pool2d(x * 2, (2, 2)).relu(), dynamic=True, fullgraph=True)
    gradient = torch.compile(_filter_gradient, fullgraph=True)
    with torch._dynamo.config.patch(suppress_errors=False):
        for n in (8, 12, 16):
            x = torch.randn(2, 3, n, n)
            torch.testing.assert_close(pool(x), F.adaptive_avg_pool2d(x * 2, (2, 2)).relu())
        for n in (3, 5, 7):
            x, w = torch.randn(2, n, 9, 9), torch.randn(n + 4, n, 3, 3)
            torch.testing.assert_close(gradient(x, w), _filter_gradient(x, w), rtol=1e-4, atol=1e-4)


def test_a_size_that_guards_bound_may_divide_by_a_quotient() -> None:
    """6 // (6 // n): an estimate of this size with a large n would divide by 0."""
    args = (torch.randn(2, 3, 3), (2, 3, 6))
    graph = trace(lambda g: OPS["adaptive_avg_pool"](OPS["adaptive_avg_pool_backward"](g, args[1]), (g.shape[2],)),
                  with_symbols([args[0]], torch.device("cpu")))  # fmt: skip
    compiled = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    torch.testing.assert_close(compiled(args[0])[0], args[0] / 2)
