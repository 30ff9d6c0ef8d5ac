"""Checkpoints, numpy, autocast, scalers, optimizers inside compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import eager as torch
from eager import nn
from eager.nn import functional as F
from eager.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.dynamo.recording.autograd.support import Compile, Programs, error, grads, leaf, same_memory

PROGRAMS = Programs()


@PROGRAMS.add(whole=True)
def checkpoint_inside(compile: Compile) -> Any:
    def f(x: Any, w: Any) -> Any:
        return checkpoint(lambda a, b: (a @ b).sin().exp(), x, w, use_reentrant=False).sum() * 2

    x, w = leaf(3, 3), leaf(3, 3)
    y = compile(f)(x, w)
    return y, grads(y, x, w)


@PROGRAMS.add(whole=True)
def checkpoint_with_dropout(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        return checkpoint(lambda a: F.dropout(a, 0.5) * a, x, use_reentrant=False)

    x = leaf(50)
    g = compile(f)
    y = g(x)
    z = torch.rand(1)
    return y, grads(y, x), z, torch.rand(1), grads(g(x), x)


@PROGRAMS.add(whole=True)
def checkpoint_reentrant(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        return checkpoint(lambda a: F.dropout(a.sin(), 0.5), x, use_reentrant=True).sum()

    x = leaf(20)
    y = compile(f)(x)
    y.backward()
    return y, x.grad


@PROGRAMS.add(whole=True)
def checkpointed_blocks(compile: Compile) -> Any:
    torch.manual_seed(0)
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)))

    def f(x: Any) -> Any:
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x

    y = compile(f)(torch.ones(2, 4))
    y.sum().backward()
    return y, [p.grad for p in blocks.parameters()]


@PROGRAMS.add()
def checkpoint_sequential_inside(compile: Compile) -> Any:
    torch.manual_seed(0)
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)))
    x = torch.ones(2, 4).requires_grad_()
    y = compile(lambda x: checkpoint_sequential(blocks, 2, x, use_reentrant=False))(x)
    y.sum().backward()
    return y, [p.grad for p in blocks.parameters()], x.grad


@PROGRAMS.add(whole=True)
def a_compiled_function_in_a_checkpoint(compile: Compile) -> Any:
    f = compile(lambda x: F.dropout(x.sin(), 0.5) * x)
    x = leaf(30)
    y = checkpoint(f, x, use_reentrant=False)
    return y, grads(y, x)


@PROGRAMS.add()
def numpy_and_back(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = (x * 2).numpy()
        return torch.from_numpy(np.sin(y) + 1) * x

    return compile(f)(leaf(3).detach())


@PROGRAMS.add()
def numpy_shares_memory(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        a = x.numpy()
        a[0] = 9
        t = torch.from_numpy(a)
        return a, t, t * 2

    x = leaf(3).detach()
    a, t, u = compile(f)(x)
    return a, t, u, x, same_memory(t, x)


@PROGRAMS.add()
def numpy_of_tensors_that_require_gradients(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        return (x * 2).numpy()

    return error(lambda: compile(f)(leaf(3))), compile(lambda x: (x * 2).detach().numpy())(leaf(3))


@PROGRAMS.add()
def numpy_arguments_and_results(compile: Compile) -> Any:
    def f(a: Any, b: Any) -> Any:
        return np.dot(a, b) + 1, a.T, a.shape

    return compile(f)(np.ones((2, 3)), np.ones((3, 2)))


@PROGRAMS.add()
def numpy_scalars(compile: Compile) -> Any:
    def f(x: Any, n: Any) -> Any:
        return x * n + np.float64(2.0) + np.pi, x.reshape(np.int64(1), -1)

    return compile(f)(leaf(3), np.float32(3.0))


@PROGRAMS.add()
def numpy_functions_of_tensors(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        return np.asarray(x).sum(), torch.as_tensor(np.arange(3)) * 2, torch.tensor(np.ones(2)) + 1

    return compile(f)(leaf(3).detach())


@PROGRAMS.add(whole=True)
def autocast_inside(compile: Compile) -> Any:
    net = _exact(nn.Linear(4, 4))

    def f(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            with torch.autocast("cpu", enabled=False):
                z = y.float() @ net.weight
        return y, z, x * 2

    x = torch.ones(2, 4).requires_grad_()
    y, z, u = compile(f)(x)
    (y.float().sum() + z.sum() + u.sum()).backward()
    return y.dtype, z, u, x.grad.dtype, x.grad, net.weight.grad.dtype


@PROGRAMS.add(whole=True)
def autocast_around(compile: Compile) -> Any:
    f = compile(lambda x, w: (x @ w).sum())
    x, w = leaf(3, 3, dtype=torch.float32), leaf(3, 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = f(x, w)
    y.backward()
    return y.dtype, x.grad.dtype, f(x, w)


@PROGRAMS.add()
def scaled_training(compile: Compile) -> Any:
    net = _exact(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.125)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    run = compile(net)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = run(torch.ones(3, 4)).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return scaler.get_scale(), [p.detach() for p in net.parameters()]


@PROGRAMS.add()
def scaled_step_inside(compile: Compile) -> Any:
    net = _exact(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.125)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    f = compile(step)
    return [f(torch.ones(3, 4)) for _ in range(2)], [p.detach() for p in net.parameters()]


def _exact(net: Any) -> Any:
    """Weights that bfloat16 represents exactly, as well as sums of a few of them: rounding does not depend on its
    place.
    """
    with torch.no_grad():
        for p in net.parameters():
            p.copy_((torch.arange(p.numel()) % 3 - 1).reshape(p.shape) * 0.5)
    return net


OPTIMIZERS: dict[str, Any] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {}, "Adadelta": {},
    "NAdam": {}, "RAdam": {}, "Adamax": {},
}  # fmt: skip


def _optimizer_step(name: str) -> None:
    def run(compile: Compile) -> Any:
        torch.manual_seed(0)
        net = nn.Linear(3, 2)
        optimizer = getattr(torch.optim, name)(net.parameters(), **OPTIMIZERS[name])

        @compile
        def step() -> None:
            optimizer.step()

        for k in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3) * k).pow(2).mean().backward()
            step()
        return [p.detach() for p in net.parameters()], len(optimizer.state)

    run.__name__ = f"compiled_step_of_{name}"
    PROGRAMS.add()(run)


for _name in OPTIMIZERS:
    _optimizer_step(_name)


@PROGRAMS.add()
def whole_step_with_a_schedule(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.item()

    f = compile(step)
    return [f(torch.ones(2, 3), torch.zeros(2, 1)) for _ in range(4)], [p.detach() for p in net.parameters()]
