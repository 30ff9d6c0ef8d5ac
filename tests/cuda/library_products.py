"""Products of matrices by the device's library, as the emulated device computes them: `python -m tests.cuda.library_products NAME`."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import eager as torch
from eager.nn import functional as F
from eager.optable.table import OPS
from fxir.trace.trace import trace
from inductor.artifact.format import ArtifactPlan, MatrixProduct
from inductor.base.target import SM_90, Target
from inductor.driver import cuda_machine
from inductor.driver.cuda_artifact import compile_for_cuda
from inductor.driver.gpu_candidates import Candidate, default_candidate, library_candidate
from inductor.loops.tree import Kernel
from inductor.plan.library_products import LibraryCall, library_products
from inductor.runtime import emulated, loader
from inductor.triton.kernel import Options
from tests.triton_kernels.graphs import on_cuda

ALGORITHM = bytes(range(64))
T = torch.Tensor
Form = tuple[str, Callable[..., Any], Callable[[], tuple[T, ...]], int]


def whole(*shape: int, dtype: torch.dtype = torch.float32) -> T:
    """Small whole numbers: their sums are exact in any order."""
    return torch.randint(-4, 5, shape).to(dtype)


def half(*shape: int) -> T:
    return whole(*shape, dtype=torch.bfloat16)


# name, function, inputs, kernels beside the product in the first way to compute it
FORMS: tuple[Form, ...] = (
    ("float32", lambda a, b: (a @ b,), lambda: (whole(5, 7), whole(7, 6)), 0),
    ("float64", lambda a, b: (a @ b,), lambda: (whole(5, 7).double(), whole(7, 6).double()), 0),
    ("bfloat16", lambda a, b: (a @ b,), lambda: (half(5, 7), half(7, 6)), 0),
    ("float16", lambda a, b: (a @ b,), lambda: (whole(5, 7).half(), whole(7, 6).half()), 0),
    ("transposed operands", lambda a, b: (a.t() @ b.t(),), lambda: (half(7, 5), half(6, 7)), 0),
    ("batch", lambda a, b: (torch.bmm(a, b),), lambda: (half(3, 5, 7), half(3, 7, 6)), 0),
    ("batch with one right side", lambda a, b: (torch.bmm(a, b.expand(3, 7, 6)),), lambda: (whole(3, 5, 7), whole(7, 6)), 0),
    ("batch of transposed", lambda a, b: (a.mT @ b.mT,), lambda: (whole(3, 7, 5), whole(3, 6, 7)), 0),
    ("heads", lambda q, k: (q.transpose(1, 2) @ k.permute(0, 2, 3, 1),), lambda: (half(2, 5, 3, 8), half(2, 6, 3, 8)), 1),
    ("parts of larger matrices", lambda a, b: (a[1:, 2:9] @ b[:, 3:],), lambda: (half(6, 9), half(7, 9)), 0),
    ("linear", lambda x, w: (F.linear(x, w),), lambda: (half(2, 5, 8), half(6, 8)), 0),
    ("linear with a bias", lambda x, w, b: (F.linear(x, w, b),), lambda: (half(5, 8), half(6, 8), half(6)), 0),
    ("bias of float32", lambda x, w, b: (F.linear(x, w, b),), lambda: (whole(5, 8), whole(6, 8), whole(6)), 0),
    ("part of a bias", lambda x, w, b: (F.linear(x, w, b[3:9]),), lambda: (half(5, 8), half(6, 8), half(12)), 0),
    ("a bias of each row", lambda x, w, b: (x @ w + b[:, None],), lambda: (whole(5, 8), whole(8, 6), whole(5)), 1),
    ("bias and relu", lambda x, w, b: (F.relu(F.linear(x, w, b)),), lambda: (half(5, 8), half(6, 8), half(6)), 1),
    ("stored as float32", lambda a, b: (torch.relu((a @ b).float() + 1),), lambda: (half(5, 7), half(7, 6)), 1),
    ("residual", lambda a, b, r: (a @ b + r,), lambda: (half(5, 7), half(7, 6), half(5, 6)), 1),
    ("read twice", lambda a, b: ((y := a @ b), y * 2), lambda: (whole(5, 7), whole(7, 6)), 1),
    ("transposed result", lambda a, b: ((a @ b).t().contiguous(),), lambda: (whole(5, 7), whole(7, 6)), 0),
    ("one row", lambda a, b: (a @ b,), lambda: (half(1, 7), half(7, 6)), 0),
    ("one row, added to itself", lambda a, b: ((y := a @ b) + y,), lambda: (half(1, 7), half(7, 6)), 1),
    ("one row of a batch, added to itself", lambda a, b: ((y := torch.bmm(a, b)) + y,), lambda: (whole(1, 1, 7), whole(1, 7, 6)), 1),
    ("batches beside each other", lambda a, b: (torch.bmm(a, b).transpose(0, 1).contiguous(),), lambda: (half(3, 5, 7), half(3, 7, 6)), 0),
    ("one column", lambda a, b: (a @ b,), lambda: (half(5, 7), half(7, 1)), 0),
    ("depth one", lambda a, b: (a @ b,), lambda: (whole(5, 1), whole(1, 6)), 0),
    ("filter of one pixel", lambda x, w: (F.conv2d(x, w),), lambda: (whole(1, 3, 4, 5), whole(6, 3, 1, 1)), 1),
    ("two products", lambda a, b, c: (torch.relu(a @ b) @ c,), lambda: (half(5, 7), half(7, 6), half(6, 4)), 1),
)  # fmt: skip


def chooser(way: int, workspace_bytes: int = 0) -> Callable[[Kernel, Target, Options], Candidate]:
    """Chooses the library for every product that has such a way, and the default for other kernels."""

    def choose(loops: Kernel, target: Target, options: Options) -> Candidate:
        ways = library_products(loops)
        if way >= len(ways):
            return default_candidate(loops, target, options)
        call = LibraryCall(ways[way], way, 0, ALGORITHM, workspace_bytes, 1, options.precision == "tf32")
        return library_candidate(loops, target, call)

    return choose


def plan_of(fn: Callable[..., Any], inputs: tuple[T, ...], way: int, workspace_bytes: int = 0) -> ArtifactPlan:
    """The artifact of a function for CUDA tensors like `inputs`, for the emulated device."""
    graph = trace(fn, [on_cuda(x) for x in inputs])
    choose = chooser(way, workspace_bytes)
    made = compile_for_cuda(graph, torch.device("cuda:0"), SM_90, choose=choose, is_emulated=True)
    return ArtifactPlan.from_json(made.compiled.plan.to_json())


def products_of(plan: ArtifactPlan) -> list[MatrixProduct]:
    return [s for s in plan.steps if isinstance(s, MatrixProduct)]


def _ways(fn: Callable[..., Any], inputs: tuple[T, ...]) -> Iterator[ArtifactPlan]:
    """The plan of each way that has a product."""
    for way in range(3):
        plan = plan_of(fn, inputs, way, workspace_bytes=64 * way)
        if not products_of(plan):
            return
        yield plan


def check(plan: ArtifactPlan, inputs: tuple[T, ...], wanted: Any, tolerance: float = 0) -> None:
    found = loader.load(plan, None, {}, name="g")(*(x.cuda() for x in inputs))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype is b.dtype and a.stride() == b.stride()
        np.testing.assert_allclose(a.cpu().double().numpy(), b.double().numpy(), rtol=tolerance, atol=tolerance)


def every_form_gives_the_values_of_eager() -> None:
    for name, fn, make, kernels in FORMS:
        inputs = make()
        plans = list(_ways(fn, inputs))
        assert plans, name
        assert len(plans[0].kernels) == kernels, (name, len(plans[0].kernels))
        for plan in plans:
            check(plan, inputs, fn(*inputs))


def products_of_the_op_table_give_the_values_of_eager() -> None:
    """Every op whose sample has a product that the library can compute."""
    seen = set()
    for name in ("mm", "bmm", "convolution", "conv_weight"):
        for args in OPS[name].samples(whole):
            tensors = tuple(x for x in args if isinstance(x, T))
            places = [i for i, x in enumerate(args) if isinstance(x, T)]
            if any(t.dtype is not torch.float32 for t in tensors):
                continue

            def fn(*given: T, args: Any = args, places: Any = places, name: str = name) -> Any:
                full = list(args)
                for i, x in zip(places, given, strict=True):
                    full[i] = x
                return (OPS[name](*full),)

            for plan in _ways(fn, tensors):
                check(plan, tensors, fn(*tensors), 1e-5)
                seen.add(name)
    assert {"mm", "bmm"} <= seen, seen


def a_compiled_function_calls_the_library_in_every_mode() -> None:
    """The chooser stands for winners that a GPU measured. The caller gives this process a separate cache."""
    x, w, bias = half(5, 8), half(6, 8), half(6)

    def fn(x: T, w: T, bias: T) -> T:
        return F.linear(x, w, bias).softmax(-1)

    with patch.object(cuda_machine.CudaMachine, "_choose", lambda *_: chooser(0)):
        for mode in ("default", "reduce-overhead", "max-autotune"):
            compiled = torch.compile(fn, mode=mode, fullgraph=True)
            with patch.object(emulated, "_multiply", wraps=emulated._multiply) as multiply:
                found = [compiled(x.cuda(), w.cuda(), bias.cuda()).cpu() for _ in range(3)]
            assert multiply.call_count == 3
            for y in found:
                torch.testing.assert_close(y, fn(x, w, bias), rtol=2e-2, atol=2e-2)


SCENARIOS = (every_form_gives_the_values_of_eager, products_of_the_op_table_give_the_values_of_eager,
             a_compiled_function_calls_the_library_in_every_mode)

if __name__ == "__main__":
    torch.manual_seed(0)
    {s.__name__: s for s in SCENARIOS}[sys.argv[1]]()
