"""Attention in blocks of a few queries and keys: programs, their inputs, and the kernels of their results."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import eager as torch
from eager.nn import functional as F
from eager.optable.table import OPS
from fxir.trace.trace import trace
from inductor.base.target import SM_90
from inductor.driver.backend import KEPT
from inductor.ir import definitions as ir
from inductor.loops.tree import Kernel
from inductor.lowering import lower
from inductor.plan.gpu_attention import Tiling, Tilings, schedule_attention
from inductor.plan.schedule import Single, schedule
from tests.triton_kernels.graphs import on_cuda


class Case(NamedTuple):
    """heads: of queries, and of keys. sizes: queries, keys, depth, width. mask: "", "bool" or "float". batch: 0 for two slices at least.

    dropout_p: with dropout from a random state, the last input, unless 0.
    """

    heads: tuple[int, int]
    sizes: tuple[int, int, int, int]
    is_causal: bool = False
    mask: str = ""
    blocks: tuple[int, int] = (16, 16)
    batch: int = 0
    dropout_p: float = 0.0


CASES: Final = {
    "one block": Case((1, 1), (16, 16, 16, 16)),
    "blocks that are not whole": Case((2, 2), (21, 37, 16, 32)),
    "causal": Case((2, 2), (40, 40, 16, 16), True),
    "causal, more queries than keys": Case((1, 1), (40, 19, 16, 16), True),
    "causal, more keys than queries": Case((1, 1), (19, 40, 16, 16), True, "", (32, 16)),
    "causal, whole blocks": Case((1, 1), (64, 64, 16, 16), True, "", (16, 32)),
    "fewer heads of keys": Case((4, 2), (20, 20, 16, 16), True),
    "columns that are not a power of two": Case((1, 1), (20, 20, 24, 17)),
    "bool mask": Case((2, 2), (20, 35, 16, 16), False, "bool"),
    "one program and fewer columns than a product takes": Case((1, 1), (16, 12, 6, 4), True, batch=1),
    "float mask": Case((1, 1), (20, 35, 16, 16), False, "float"),
    "dropout": Case((2, 2), (21, 37, 16, 16), True, dropout_p=0.3),
    "dropout and a mask": Case((1, 1), (32, 16, 16, 16), False, "bool", dropout_p=0.5),
}


def inputs_of(case: Case, of: Any, with_cotangent: bool) -> list[torch.Tensor]:
    rng = np.random.default_rng(3)

    def draw(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to(of)

    (heads, of_keys), (queries, keys, depth, width) = case.heads, case.sizes
    batch = case.batch or (2 if heads == 1 else 1)
    made = [draw(batch, heads, queries, depth), draw(batch, of_keys, keys, depth), draw(batch, of_keys, keys, width)]
    made += [draw(batch, heads, queries, width)] if with_cotangent else []
    if case.mask == "bool":
        shown = rng.random((queries, keys)) < 0.7
        shown[3] = False  # a query that sees nothing
        made.append(torch.from_numpy(shown))
    if case.mask == "float":
        made.append(draw(queries, keys))
    return [*made, torch.tensor([11, (1 << 32) - 300])] if case.dropout_p else made


def function_of(case: Case, with_cotangent: bool) -> Callable[..., tuple[Any, ...]]:
    """Attention of the inputs, or its gradients."""

    def attend(q: Any, k: Any, v: Any, *more: Any) -> Any:
        if case.dropout_p:
            return OPS["attention"](q, k, v, more[0] if case.mask else None, case.is_causal, 0.25, more[-1], case.dropout_p)[0]
        return F.scaled_dot_product_attention(q, k, v, *more, is_causal=case.is_causal, enable_gqa=case.heads[0] != case.heads[1])

    def gradients(q: Any, k: Any, v: Any, g: Any, *more: Any) -> tuple[Any, ...]:
        given = [x.detach().requires_grad_() for x in (q, k, v)]
        y = attend(*given, *more)
        return (y.detach(), *torch.autograd.grad(y, given, g))

    return gradients if with_cotangent else lambda *xs: (attend(*xs),)


def tilings_of(case: Case) -> Tilings:
    """The tilings of a case, in which every kernel has several blocks."""
    return Tilings(*(Tiling(*case.blocks, 4, 2),) * 3)


def kernels_of(case: Case, inputs: list[torch.Tensor], with_cotangent: bool) -> list[tuple[Kernel, dict[str, int]]]:
    """The kernels of every call of attention, in blocks of the case, and the elements of the buffers of each."""
    program = schedule(lower(trace(function_of(case, with_cotangent), [on_cuda(t) for t in inputs], KEPT)))
    buffers = program.program.buffers
    types = {n: b.layout.dtype for n, b in buffers.items()}
    made = [
        kernel
        for step in program.steps
        if isinstance(step, Single) and isinstance(step.member.definition, ir.Attention)
        for kernel, _ in schedule_attention(step.members, types, SM_90, tilings_of(case))
    ]
    return [(k, {n: int(buffers[n].layout.nbytes) // types[n].itemsize for n in k.dtypes}) for k in made]
