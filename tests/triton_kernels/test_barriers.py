"""Accesses of one program to the same memory: the threads of a program run in no order, except for barriers. No GPU is needed."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.loops.tree import Kernel, Loop, Place, Store
from inductor.triton.loops import print_kernel
from tests.triton_kernels.graphs import plan_of
from tests.triton_kernels.test_cuda_updates import adam, plan_of_update

F32 = dtypes.float32
BARRIER = "tl.debug_barrier()"


def with_number(x: Any, s: Any) -> Any:
    """The threads that load 8 elements each, for 16-bit results, store 4 float32 each: other elements than they load."""
    y = (x * s).half()
    x.copy_(s.expand(x.shape))
    return y


def with_product(x: Any, s: Any) -> Any:
    y = (x * s).half()
    x.mul_(s)
    return y


def with_integer_zero(x: Any, s: Any) -> Any:
    y = (x * s).half()
    x.mul_(0).add_(s)
    return y


def integers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


@pytest.mark.parametrize(("fn", "make", "has_barrier"), [
    (with_number, torch.zeros, True), (with_integer_zero, integers, True), (with_product, torch.zeros, False)])  # fmt: skip
def test_a_value_that_is_not_computed_from_an_element_is_stored_after_all_threads_have_read_it(
    fn: Callable[..., Any], make: Callable[..., torch.Tensor], has_barrier: bool
) -> None:
    (kernel,) = plan_of_update(fn, make(64, 1024), make(1, 1)).kernels
    load = re.search(r"tl\.load\((p\d+) \+ \(x0 \+", kernel.source)
    assert load is not None
    store = kernel.source.index(f"tl.store({load[1]} + ")
    assert (load.start() < kernel.source.find(BARRIER) < store) == has_barrier


def test_an_update_from_its_own_elements_has_no_barrier() -> None:
    (kernel,) = plan_of_update(adam, *(torch.zeros(6, 50) for _ in range(4))).kernels
    assert kernel.source.count("tl.store") == 3 and BARRIER not in kernel.source


def test_two_stores_to_one_element_have_a_barrier_between() -> None:
    (kernel,) = plan_of(lambda x, w, b: (x @ w + b,), (torch.zeros(4096, 64), torch.zeros(64, 3), torch.zeros(3))).kernels
    stores = [m.start() for m in re.finditer(r"tl\.store\(", kernel.source)]
    assert len(stores) == 1 or stores[0] < kernel.source.index(BARRIER) < stores[1]


@pytest.mark.parametrize(("least", "has_barrier"), [(0, True), (1, False)])
def test_a_loop_that_may_have_no_iterations_replaces_no_barrier(least: int, has_barrier: bool) -> None:
    """a[i] = 0; for k < n: b[0] = 0, then c[k] = b[1]; d[j] = a[15 - j]."""
    n = E.sym("n", least, 100)
    i, k, j = (ir.counter(name, size) for name, size in (("i", 16), ("k", n), ("j", 16)))

    def stored(name: str, at: E.IntLike, v: ir.Value | None = None) -> Store:
        return Store(Place(name, E.as_expr(at)), ir.const(0, F32) if v is None else v)

    body = (
        Loop(i, 16, "lanes", (stored("a", i),)),
        Loop(k, n, "serial", (stored("b", 0), stored("c", k, ir.load("b", 1, F32)))),
        Loop(j, 16, "lanes", (stored("d", j, ir.load("a", 15 - j, F32)),)),
    )
    kernel = Kernel((Loop(ir.counter("g", 2), 2, "grid", body),), dict.fromkeys("abcd", F32), frozenset())
    (printed,) = print_kernel(kernel, "kernel").kernels
    inside, after = re.split(r"\n(?=    \w)", printed.body[printed.body.index("for ") :], maxsplit=1)
    assert BARRIER in inside and "tl.load" in after and (BARRIER in after) == has_barrier, printed.body
