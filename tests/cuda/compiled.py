"""Compiled programs on the CUDA device at hand, each against the CPU: `python -m tests.cuda.compiled NAME`.

Run by `test_compiled.py` where CUDA is emulated; on a machine with a GPU the same scenarios run on it. Each prints nothing, or raises.
"""
from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import eager as torch
from eager import nn
from eager.base import logs, settings
from eager.cuda import backend as cuda
from eager.nn import functional as F
from eager.optable import array_functions
from fxir.trace.trace import trace
from inductor.base.target import SM_90
from inductor.driver.comparison import difference, written_by
from inductor.driver.cuda import lower_to_cuda
from inductor.driver.gpu_autotune import jobs_of, memory_of
from inductor.driver.gpu_candidates import Candidate, candidates
from inductor.driver.gpu_timing import EventTimer, Variant
from inductor.driver.gpu_winners import Winners
from inductor.triton.compile import compile_kernel
from tests.triton_kernels.graphs import GRAPHS, on_cuda

MODES = ("default", "reduce-overhead", "max-autotune")


def close(found: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    assert found.device.type == "cuda" and found.dtype is wanted.dtype and found.stride() == wanted.stride()
    np.testing.assert_allclose(found.detach().cpu().double().numpy(), wanted.detach().double().numpy(), rtol=tolerance, atol=tolerance)


def small_graphs() -> None:
    """Kinds of kernels; `tests.triton_kernels.interpreted` runs the plans of all graphs."""
    for name in ("half precision", "softmax", "sum of everything", "gather", "added by index", "halves added by index", "linear and gelu",
                 "8-bit product"):  # fmt: skip
        fn, make, _ = GRAPHS[name]
        given = make()
        found = torch.compile(fn, fullgraph=True)(*(x.cuda() for x in given))
        for a, b in zip(found, fn(*given), strict=True):
            close(a, b, 2e-2 if b.dtype.itemsize == 2 else 1e-4)


def gradients_in_every_mode() -> None:
    def f(x: Any, w: Any) -> Any:
        return F.gelu(F.layer_norm(x, (24,)) @ w).softmax(-1)

    x, w, g = torch.randn(6, 24), torch.randn(24, 10), torch.randn(6, 10)
    wanted = [t.clone().requires_grad_() for t in (x, w)]
    y = f(*wanted)
    y.backward(g)
    for mode in MODES:
        given = [t.cuda().requires_grad_() for t in (x, w)]
        compiled = torch.compile(f, mode=mode, fullgraph=True)
        for _ in range(3 if mode == "reduce-overhead" else 1):  # on a GPU the third call replays a recording
            for t in given:
                t.grad = None
            found = compiled(*given)
            found.backward(g.cuda())
        close(found, y)
        for a, b in zip(given, wanted, strict=True):
            close(a.grad, b.grad)


def kernels_are_timed_by_events() -> None:
    """Each kind of kernel, with the generated inputs of a timing, on which a second run gives the same results."""
    is_emulated = cuda.backend().is_emulated
    timer = EventTimer(torch.device("cuda"), SM_90._replace(caches=(1 << 10,)))
    with TemporaryDirectory() as folder:
        for fn, inputs in (
            (lambda x, w: (torch.relu(x @ w),), (torch.randn(32, 64), torch.randn(64, 32))),
            (lambda x, i: (x[i].sum(-1), x.sum()), (torch.randn(7, 40), torch.tensor([6, 2]))),
            (lambda x: (x.bfloat16() * 2,), (torch.randn(3000),)),
        ):
            plan, jobs = jobs_of(trace(fn, [on_cuda(t) for t in inputs]), SM_90, Winners(Path(folder), "test"))
            assert jobs
            for job in jobs:
                kernels = job.found[0][1].kernels
                cubins = None if is_emulated else tuple(compile_kernel(k) for k in kernels)
                memory, written = memory_of(*job.found[0], plan.program), written_by([job.loops])
                variant = Variant(kernels, cubins, memory, len(plan.program.checks), None, written)
                first = timer.results(variant)
                assert first.keys() == written.results and 0 < timer.seconds(variant) < 10
                assert difference(first, timer.results(variant)) == ""
    timer.release()
    torch.cuda.synchronize()  # no index of a generated input is out of range


def candidates_are_compared_on_the_device() -> None:
    """Every candidate of a product and of its update of a buffer gives the default's results; a changed kernel gives others."""
    is_emulated, target = cuda.backend().is_emulated, SM_90._replace(cores=2)
    timer = EventTimer(torch.device("cuda"), SM_90._replace(caches=(1 << 10,)))

    def update(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        y += x @ w
        return (y,)

    with TemporaryDirectory() as folder:
        graph = trace(update, [on_cuda(torch.zeros(shape)) for shape in ((96, 40), (40, 64), (96, 64))])
        plan, (job, *_) = jobs_of(graph, target, Winners(Path(folder), "test"))
        written = written_by([job.loops])
        assert written.updated == written.results != frozenset()

        def variant(candidate: Candidate, change: tuple[str, str] = ("", "")) -> Variant:
            launches = candidate.printed("kernel")
            kernels = tuple(replace(k, body=k.body.replace(*change)) if change[0] else k for k in launches.kernels)
            cubins = None if is_emulated else tuple(compile_kernel(k) for k in kernels)
            return Variant(kernels, cubins, memory_of(candidate, launches, plan.program), 0, None, written)

        default, *others = candidates(job.loops, target)
        wanted = timer.results(variant(default))
        assert any(c.choice.resident for c in others)
        for c in others[:: 1 if is_emulated else 4]:
            assert difference(wanted, timer.results(variant(c))) == "", str(c)
        assert difference(wanted, timer.results(variant(default, ("tl.dot(", "2 * tl.dot(")))) in written.results
    timer.release()


def an_emulated_device_measures_nothing() -> None:
    """A mode that tunes logs why, and uses default schedules."""
    if not cuda.backend().is_emulated:
        return
    with logs.capture("autotuning") as records:
        compiled = torch.compile(lambda x: torch.relu(x * 3), mode="max-autotune-no-cudagraphs", fullgraph=True)
        close(compiled(torch.ones(40).cuda()), torch.full((40,), 3.0))
    assert [r.message for r in records] == ["an emulated device has no times to measure: every kernel keeps the default"]


def attention_and_convolution() -> None:
    q, k, v = (torch.randn(1, 2, 40, 16) for _ in range(3))
    x, w = torch.randn(2, 4, 9, 9), torch.randn(8, 4, 3, 3)
    attend = torch.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    close(attend(q.cuda(), k.cuda(), v.cuda()), F.scaled_dot_product_attention(q, k, v, is_causal=True))
    given = [x.cuda().requires_grad_() for x in (q, k, v)]
    found = []
    for f in (F.scaled_dot_product_attention, torch.compile(F.scaled_dot_product_attention)):
        torch.manual_seed(1)
        y = f(*given, dropout_p=0.3)
        found.append((y.detach(), *torch.autograd.grad(y.sin().sum(), given), torch.rand(2, device="cuda")))
    for a, b in zip(*found, strict=True):
        close(a, b.cpu())
    convolve = torch.compile(lambda x, w: F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2))
    close(convolve(x.cuda(), w.cuda()), F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2))


def training_gives_the_losses_of_the_cpu() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
    x, y = torch.randn(12, 16), torch.randint(0, 5, (12,))

    def losses(where: str, mode: str | None) -> list[float]:
        net, given, classes = copy.deepcopy(model).to(where), x.to(where), y.to(where)
        loss = lambda: F.cross_entropy(net(given), classes)  # noqa: E731 - compiled below
        step = torch.compile(loss, mode=mode) if mode else loss
        optimizer = torch.optim.AdamW(net.parameters(), 0.01)
        found = []
        for _ in range(3):
            value = step()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            found.append(float(value))
        return found

    wanted = losses("cpu", None)
    for mode in (None, "reduce-overhead"):
        np.testing.assert_allclose(losses("cuda", mode), wanted, rtol=1e-4)


def one_graph_serves_every_size() -> None:
    f = torch.compile(lambda x: torch.softmax(x * 2, -1).cumsum(0), dynamic=True)
    for n in (4, 9, 30):
        x = torch.randn(n, 12)
        close(f(x.cuda()), torch.softmax(x * 2, -1).cumsum(0))


def a_size_that_a_stage_needs_becomes_static() -> None:
    """The gradient of a slice depends on whether the slice is empty."""
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x[9:]
        return y * y.roll(3, 0)

    compiled = torch.compile(fn, dynamic=True, fullgraph=True)
    for n in (17, 20):
        x = torch.randn(n, 4, requires_grad=True)
        given = x.detach().cuda().requires_grad_()
        y, found = fn(x), compiled(given)
        y.sin().sum().backward()
        found.sin().sum().backward()
        close(found, y)
        close(given.grad, x.grad)


def a_position_outside_is_an_error_at_the_next_synchronisation() -> None:
    f = torch.compile(lambda w, i: w[i] * 2)
    w = torch.randn(5, 3).cuda()
    f(w, torch.tensor([0, 4]).cuda())
    torch.cuda.synchronize()
    f(w, torch.tensor([0, 9]).cuda())
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 5"):
        torch.cuda.synchronize()
    torch.cuda.synchronize()
    with pytest.raises(IndexError, match="index -6 is out of bounds"):
        f(w, torch.tensor([-6]).cuda()).cpu()


def writes_reach_the_inputs() -> None:
    f = torch.compile(lambda p, g: p.add_(g, alpha=-0.5).mul_(2))
    p, g = torch.randn(30), torch.randn(30)
    wanted = (p - 0.5 * g) * 2
    memory = torch.zeros(40).cuda()
    for start in (0, 3):  # a kernel reads 16 bytes at once: memory that begins elsewhere is copied
        target = memory[start : start + 30]
        target.copy_(p)
        f(target, g.cuda())
        close(target, wanted)


def tensors_are_made_on_the_device() -> None:
    """Where it is named without an index, and where it is the default."""
    x = torch.randn(4)
    for name in ("device", "default"):
        where = "cuda" if name == "device" else None
        torch.set_default_device("cuda" if name == "default" else None)
        f = torch.compile(lambda x, where=where: torch.zeros(4, device=where) + torch.arange(4, device=where) * x, fullgraph=True)
        found = f(x.cuda())
        torch.set_default_device(None)
        close(found, torch.arange(4) * x)


def updates_are_read_in_order() -> None:
    """Updates in the memory of inputs and copied updates, in every mode; each call continues from the last call's values."""

    def both(p: Any, g: Any) -> Any:
        p.mul_(0.5)
        g.add_(p)
        return p - g

    def swap(p: Any, g: Any) -> Any:
        kept = p.clone()
        p.copy_(g)
        g.copy_(kept)

    def some(p: Any) -> Any:
        return torch.tensor([1, 1, 0], device=p.device)

    programs = (
        both, swap, lambda p, g: p.copy_(p.t() + g), lambda p, g: p.copy_(torch.softmax(p, -1) + p), lambda p, g: p.add_(g @ p),
        lambda p, g: (p.sum(-1), p.add_(g))[0], lambda p, g: (p.add_(g), p.sum(), p.cumsum(0))[1:], lambda p, g: p[1:].add_(g[:-1]),
        lambda p, g: (torch.sort(p)[0], p.add_(1), torch.sort(g)[0]), lambda p, g: p[torch.tensor([1, 0], device=p.device)].add_(p[:2]),
        lambda p, g: p.index_add_(0, some(p), g[:3]), lambda p, g: p.mul_(2).index_add_(0, some(p), g[:3]),
        lambda p, g: p.index_add_(0, some(p), g[:3]).index_add_(0, some(p), g[1:4]), lambda p, g: p.index_add_(0, some(p), g[:3]).mul_(2),
        lambda p, g: p.index_put_((some(p)[1:],), g[:2]), lambda p, g: p.index_add_(0, some(p), p[:3] * 2),
        lambda p, g: p.lerp_(g, 0.3).clamp_(-1, 1).mul_(p),
    )  # fmt: skip
    for fn in programs:
        given = [torch.randn(5, 5), torch.randn(5, 5)]
        for mode in MODES[:2]:
            on_device, on_host = [t.cuda() for t in given], [t.clone() for t in given]
            compiled = torch.compile(fn, mode=mode, fullgraph=True)
            for call in range(3):
                fn(*on_host)
                compiled(*on_device)
                for found, wanted in zip(on_device, on_host, strict=True):
                    close(found, wanted)
                    assert found._version == (call + 1) * (wanted._version > 0)


def a_move_to_the_device_ends_a_graph() -> None:
    x, w = torch.randn(4, 5), torch.randn(5).cuda()
    f = torch.compile(lambda x: ((x * 2).to("cuda") + w).cpu() * 3)
    assert torch.allclose(f(x), (x * 2 + w.cpu()) * 3)
    with pytest.raises(Exception, match="the tensors of a graph are on one device"):
        torch.compile(lambda x: x.cuda() + 1, fullgraph=True)(x)


def a_tensor_on_the_cpu_stays_there() -> None:
    """A new tensor, and a number that is an input of the program."""
    x, number = torch.randn(4), torch.tensor(0.5)
    for f in (lambda x: (x * 2 + 1, torch.zeros(3)), lambda x: (x * 2 + torch.arange(4).to(x.device),), lambda x: (x * 2 + number,)):
        with logs.capture("graph_code") as records:
            found = torch.compile(f)(x.cuda())
        for a, b in zip(found, f(x), strict=True):
            np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-6)
        assert any("f32[4]@cuda:0" in r.message for r in records)


def operands_on_two_devices_raise_the_error_of_eager_code() -> None:
    with pytest.raises(RuntimeError, match="on the same device, but found at least two devices, cuda:0 and cpu!"):
        torch.compile(lambda x, y: x * 2 + y)(torch.randn(3).cuda(), torch.randn(3))


def floats_are_added_in_order_if_results_must_be_the_same() -> None:
    """Eager and compiled, forward and backward; the setting is guarded."""
    def f(x: Any, i: Any, w: Any) -> Any:
        return x.index_add(0, i, w[i]) * 2

    x, i, w = torch.zeros(5, 3), torch.tensor([0, 1, 1, 4, 1]), torch.randn(5, 3)
    compiled = torch.compile(f, fullgraph=True)
    try:
        for is_on, rounds in ((False, 0), (True, 5), (False, 0)):  # eager and compiled, forward and backward; a weighted count
            torch.use_deterministic_algorithms(is_on)
            wanted = [w.clone().requires_grad_(), w.cuda().requires_grad_(), w.cuda().requires_grad_()]
            with patch.object(array_functions, "_combine_in_rounds", wraps=array_functions._combine_in_rounds) as spy:
                found = f(x, i, wanted[0]), f(x.cuda(), i.cuda(), wanted[1]), compiled(x.cuda(), i.cuda(), wanted[2])
                for y in found:
                    y.square().sum().backward()
                count = torch.bincount(i.cuda(), w[:, 0].cuda())
                torch.cuda.synchronize()
            close(count, torch.bincount(i, w[:, 0]))
            assert spy.call_count == rounds, spy.call_count
            for k in (1, 2):
                close(found[k], found[0])
                close(wanted[k].grad, wanted[0].grad)
    finally:
        torch.use_deterministic_algorithms(False)
    plan = lower_to_cuda(trace(lambda *args: (f(*args),), [on_cuda(t) for t in (x, i, w)]), is_deterministic=True)
    assert not any("atomic" in k.source for k in plan.kernels)


def the_precision_of_products_is_guarded() -> None:
    x = torch.randn(4, 4, device="cuda")
    compiled = torch.compile(lambda x: x @ x, fullgraph=True)
    try:
        made = []
        for precision in ("highest", "high", "high", "highest"):
            torch.set_float32_matmul_precision("".join(precision))
            before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            close(compiled(x), x.cpu() @ x.cpu(), 1e-2)
            made.append(torch._dynamo.utils.counters["stats"]["unique_graphs"] - before)
        assert made == [1, 1, 0, 0], made
    finally:
        torch.set_float32_matmul_precision("highest")


SCENARIOS: tuple[Callable[[], None], ...] = (
    small_graphs, gradients_in_every_mode, attention_and_convolution, training_gives_the_losses_of_the_cpu,
    one_graph_serves_every_size, a_size_that_a_stage_needs_becomes_static,
    a_position_outside_is_an_error_at_the_next_synchronisation, writes_reach_the_inputs,
    updates_are_read_in_order, tensors_are_made_on_the_device, a_move_to_the_device_ends_a_graph,
    a_tensor_on_the_cpu_stays_there, operands_on_two_devices_raise_the_error_of_eager_code, kernels_are_timed_by_events,
    candidates_are_compared_on_the_device, an_emulated_device_measures_nothing, floats_are_added_in_order_if_results_must_be_the_same,
    the_precision_of_products_is_guarded,
)  # fmt: skip

if __name__ == "__main__":
    with settings.scope(capture_suppress_errors=False):
        {s.__name__: s for s in SCENARIOS}[sys.argv[1]]()
