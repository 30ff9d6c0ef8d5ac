"""Compiled programs over 0-d tensors on the CPU beside tensors on CUDA, each against eager: `python -m tests.cuda.host_operands NAME`.

Each scenario prints nothing, or raises. The CPU's results stand for both: eager on CUDA is compared in `operands_of_every_dtype`.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import eager as torch
from dynamo.api import compile as api
from eager import nn
from eager.base import settings
from eager.nn import functional as F

MODES = ("default", "reduce-overhead")


def equal(found: Any, wanted: Any, device: str) -> None:
    assert found.device.type == device and found.dtype is wanted.dtype and found.shape == wanted.shape
    assert torch.allclose(found.cpu(), wanted, rtol=1e-4, atol=1e-5), (found, wanted)


def each_call_sees_its_own_numbers() -> None:
    x = torch.randn(7)
    for mode in MODES:
        f = torch.compile(lambda x, s, n: (x * s + n, s * n, s), mode=mode, fullgraph=True)
        given = x.cuda()
        for k in range(4):
            s, n = torch.tensor(k + 0.5), torch.tensor(k)
            product, on_host, same = f(given, s, n)
            equal(product, x * s + n, "cuda")
            equal(on_host, s * n, "cpu")
            assert same is s


def a_number_made_inside_is_an_operand() -> None:
    x = torch.randn(7)
    for mode in MODES:
        equal(torch.compile(lambda x: x * torch.tensor(2.0), mode=mode, fullgraph=True)(x.cuda()), x * 2, "cuda")


def operands_of_every_dtype() -> None:
    def f(x: Any, s: Any) -> Any:
        return x * s, torch.where(x > 2, x, s), x + s.view(1).sum()

    types = [getattr(torch, name) for name in "bool uint8 int8 int64 bfloat16 float16 float64 complex64 complex128".split()]
    for base in (torch.float32, torch.bfloat16, torch.int32):
        x = torch.arange(6).to(base)
        for d in types:
            s, compiled = torch.tensor(3).to(d), torch.compile(f, fullgraph=True)
            for found, on_device, wanted in zip(compiled(x.cuda(), s), f(x.cuda(), s), f(x, s), strict=True):
                equal(found, wanted, "cuda")
                equal(on_device, wanted, "cuda")


def an_overwritten_number_is_read_before() -> None:
    """The device part reads the value from before the write, and the written tensor stays the caller's."""

    def f(x: Any, s: Any) -> Any:
        y = x * s
        s.add_(1)
        return y + s, s.view(()), s * 3

    for mode in MODES:
        compiled = torch.compile(f, mode=mode, fullgraph=True)
        x, s, t = torch.randn(5), torch.tensor(3.0), torch.tensor(3.0)
        for _ in range(3):
            wanted, (total, view, triple) = f(x, s), compiled(x.cuda(), t)
            equal(total, wanted[0], "cuda")
            equal(triple, wanted[2], "cpu")
            assert torch.equal(s, t) and s._version == t._version and view.data_ptr() == t.data_ptr()


def the_host_part_may_compute_on_larger_tensors() -> None:
    x, y = torch.randn(4), torch.randn(3)
    scaled, on_host = torch.compile(lambda x, y: (x * y.sum(), y.sum() * y), fullgraph=True)(x.cuda(), y)
    equal(scaled, x * y.sum(), "cuda")
    equal(on_host, y.sum() * y, "cpu")


def sizes_may_vary() -> None:
    f = torch.compile(lambda x, s: (x * s * x.shape[0], s * x.shape[0]), dynamic=True, fullgraph=True)
    for n in (3, 5, 9):
        x, s = torch.randn(n), torch.tensor(n + 0.5)
        scaled, on_host = f(x.cuda(), s)
        equal(scaled, x * s * n, "cuda")
        equal(on_host, s * n, "cpu")


def a_float_that_changes_becomes_an_input() -> None:
    x = torch.randn(5)
    f = torch.compile(lambda x, rate: x * rate, fullgraph=True)
    for rate in (0.5, 0.25, 0.125, 0.75):
        equal(f(x.cuda(), rate), x * rate, "cuda")
    assert len(api.statistics().graphs) == 2


def gradients_pass_an_operand() -> None:
    def f(w: Any, x: Any, s: Any) -> Any:
        return torch.tanh(x @ w) * s.exp(), s + 1

    w, x, s = torch.randn(4, 3), torch.randn(5, 4), torch.tensor(0.5)
    wanted = w.clone().requires_grad_()
    f(wanted, x, s)[0].sum().backward()
    for mode in MODES:
        compiled = torch.compile(f, mode=mode, fullgraph=True)
        for _ in range(3):
            given = w.cuda().requires_grad_()
            y, following = compiled(given, x.cuda(), s)
            y.sum().backward()
            equal(given.grad, wanted.grad, "cuda")
            equal(following, s + 1, "cpu")


def adamw(p: Any, g: Any, state: dict[str, Any], rate: float = 0.01) -> None:
    """AdamW in torch's order of operations for capturable=False; the step is a 0-d tensor on the CPU."""
    mean, square, step = state["mean"], state["square"], state["step"]
    step.add_(1)
    p.mul_(1 - rate * 0.01)
    mean.lerp_(g, 0.1)
    square.mul_(0.999).addcmul_(g, g, value=0.001)
    correction = 1 - 0.999**step
    p.addcdiv_(mean, ((square.sqrt() / correction.sqrt()) + 1e-8) * (-(1 - 0.9**step) / rate))


def an_optimizer_counts_on_the_cpu() -> None:
    """Training whose updates are compiled: parameters, state, versions and the count of steps as on the CPU."""

    def update(params: Any, grads: Any, states: Any) -> Any:
        for p, g, state in zip(params, grads, states, strict=True):
            adamw(p, g, state)
        return states[0]["step"] * 2

    def train(where: str, step: Any) -> Any:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        x, y = torch.randn(9, 6), torch.randint(0, 3, (9,))
        net, x, y = net.to(where), x.to(where), y.to(where)
        params = list(net.parameters())
        states = [{"mean": torch.zeros_like(p), "square": torch.zeros_like(p), "step": torch.tensor(0.0)} for p in params]
        losses = []
        for k in range(4):
            loss = F.cross_entropy(net(x), y)
            grads = torch.autograd.grad(loss, params)
            with torch.no_grad():
                doubled = step([p.detach() for p in params], grads, states)
            losses.append(loss.detach())
            equal(doubled, torch.tensor(2.0 * (k + 1)), "cpu")
        for state in states:
            equal(state["step"], torch.tensor(4.0), "cpu")
        return [*losses, *params, *(s["mean"] for s in states), *(s["square"] for s in states)]

    wanted = train("cpu", update)
    for mode in MODES:
        for found, right in zip(train("cuda", torch.compile(update, mode=mode, fullgraph=True)), wanted, strict=True):
            equal(found.detach(), right.detach(), "cuda")


def a_compiled_step_of_an_optimizer_trains_as_on_the_cpu() -> None:
    """One graph for each rate, the second of which takes any; the count of steps stays on the CPU, or on the device if capturable."""

    def train(where: str, mode: str | None, capturable: bool = False) -> Any:
        torch.manual_seed(0)
        net, x = nn.Linear(6, 3).to(where), torch.randn(9, 6).to(where)
        optimizer = torch.optim.AdamW(net.parameters(), 0.01, capturable=capturable)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step = torch.compile(optimizer.step, mode=mode, fullgraph=True) if mode else optimizer.step
        before = len(api.statistics().graphs)
        for _ in range(4):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            step()
            scheduler.step()
        assert not mode or len(api.statistics().graphs) == before + 2
        counts = [state["step"] for state in optimizer.state.values()]
        assert all(n.device.type == (where if capturable else "cpu") and float(n) == 4 for n in counts)
        return [p.detach() for p in net.parameters()]

    wanted = train("cpu", None)
    for mode, capturable in ((None, True), ("default", False), ("max-autotune", True), *(("reduce-overhead", c) for c in (False, True))):
        for found, right in zip(train("cuda", mode, capturable), wanted, strict=True):
            equal(found, right, "cuda")


def the_gradient_of_an_operand_is_on_the_cpu() -> None:
    """Of a leaf, of a result, of a gradient, and after a compiled forward; eager too."""
    def f(x: Any, s: Any) -> Any:
        return (x * s.exp() + s).sin().sum() * s

    x, s = torch.randn(7), torch.tensor(0.5)
    wanted = x.clone().requires_grad_(), s.clone().requires_grad_()
    f(*wanted).backward()
    (first,) = torch.autograd.grad(f(*wanted), wanted[1:], create_graph=True)
    first.backward()
    for fn in (f, *(torch.compile(f, mode=mode) for mode in MODES)):
        given = x.cuda().requires_grad_(), s.clone().requires_grad_()
        fn(*given).backward()
        (first,) = torch.autograd.grad(f(*given), given[1:], create_graph=True)
        first.backward()
        equal(given[0].grad, wanted[0].grad, "cuda")
        equal(given[1].grad, wanted[1].grad, "cpu")
    torch.optim.SGD([given[1]], lr=0.1).step()
    equal(given[1].detach(), s - 0.1 * wanted[1].grad, "cpu")


SCENARIOS: tuple[Callable[[], None], ...] = (
    each_call_sees_its_own_numbers, a_number_made_inside_is_an_operand, operands_of_every_dtype, an_overwritten_number_is_read_before,
    the_host_part_may_compute_on_larger_tensors, sizes_may_vary, a_float_that_changes_becomes_an_input, gradients_pass_an_operand,
    the_gradient_of_an_operand_is_on_the_cpu, an_optimizer_counts_on_the_cpu, a_compiled_step_of_an_optimizer_trains_as_on_the_cpu,
)  # fmt: skip

if __name__ == "__main__":
    with settings.scope(capture_suppress_errors=False):
        {s.__name__: s for s in SCENARIOS}[sys.argv[1]]()
