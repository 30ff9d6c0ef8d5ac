"""Hooks, retained gradients, backward() and autograd.grad() inside compiled functions."""

from __future__ import annotations

from typing import Any

import eager as torch
from eager import nn
from tests.dynamo.recording.autograd.support import Compile, Programs, error, leaf

PROGRAMS = Programs()


@PROGRAMS.add(whole=True)
def hooks_on_inputs_and_outputs_from_outside(compile: Compile) -> Any:
    f = compile(lambda x: x.sin() * x)
    x, log = leaf(3), []
    handle = x.register_hook(lambda g: log.append(g.clone()))
    y = f(x)
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.sum().backward()
    handle.remove()
    f(x).sum().backward()
    return log, x.grad, y.grad


@PROGRAMS.add(whole=True)
def post_accumulate_hooks_from_outside(compile: Compile) -> Any:
    net = nn.Linear(2, 2)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.ones(p.shape))
    log = []

    def step(p: Any) -> None:
        with torch.no_grad():
            p.sub_(p.grad, alpha=0.1)
        log.append(p.grad.clone())
        p.grad = None

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(step)
    run = compile(net)
    run(torch.ones(1, 2)).sum().backward()
    return sorted(g.numel() for g in log), [p.detach() for p in net.parameters()], [p.grad for p in net.parameters()]


@PROGRAMS.add()
def hook_registered_on_an_intermediate(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = x.sin()
        y.register_hook(lambda g: g * 10)
        return (y * x).sum()

    x = leaf(3)
    g = compile(f)
    g(x).backward()
    first = x.grad.clone()
    g(x).backward()
    return first, x.grad


@PROGRAMS.add()
def hook_with_an_effect_on_an_intermediate(compile: Compile) -> Any:
    log: list[Any] = []

    def f(x: Any) -> Any:
        y = x.sin()
        y.register_hook(lambda g: log.append(g.clone()))
        return (y * x).sum()

    x = leaf(3)
    g = compile(f)
    g(x).backward()
    g(x).backward()
    return x.grad, log


@PROGRAMS.add()
def hook_registered_on_an_input(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        handle = x.register_hook(lambda g: g * 10)
        return (x * 2).sum(), handle

    x = leaf(3)
    y, handle = compile(f)(x)
    y.backward()
    first = x.grad.clone()
    handle.remove()
    (x * 2).sum().backward()
    return first, x.grad


@PROGRAMS.add()
def hook_removed_inside(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = x * 3
        handle = y.register_hook(lambda g: g * 10)
        handle.remove()
        return y.sum()

    x = leaf(3)
    compile(f)(x).backward()
    return x.grad


@PROGRAMS.add()
def retain_grad_inside(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = x.sin()
        y.retain_grad()
        return y, (y * x).sum()

    x = leaf(3)
    y, z = compile(f)(x)
    z.backward()
    return x.grad, y.grad, y.retains_grad


@PROGRAMS.add()
def post_accumulate_hook_inside(compile: Compile) -> Any:
    def f(x: Any, log: Any) -> Any:
        x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.sum()))
        return (x * 2).sum()

    x, log = leaf(3), []
    compile(f)(x, log).backward()
    return x.grad, log


@PROGRAMS.add()
def hooks_on_a_leaf_that_requires_no_grad(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        x.register_hook(lambda g: g)
        return x

    return error(lambda: compile(f)(leaf(3).detach()))


@PROGRAMS.add()
def module_hooks(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    log: list[Any] = []
    net[0].register_forward_hook(lambda m, a, y: y * 2)
    net[0].register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    net[2].register_full_backward_hook(lambda m, gi, go: log.append([g.clone() for g in go]))
    net[0].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    run = compile(net)
    seen = []
    for _ in range(2):
        run(torch.ones(2, 3)).sum().backward()
        seen.append([p.grad.clone() for p in net.parameters()])
    return seen, log


@PROGRAMS.add()
def backward_inside(compile: Compile) -> Any:
    def step(x: Any, w: Any) -> Any:
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        return loss.detach()

    f = compile(step)
    x, w = leaf(4, 3).detach(), leaf(3, 2)
    return [f(x, w) for _ in range(3)], w, w.grad


@PROGRAMS.add()
def backward_inside_with_a_gradient_and_inputs(compile: Compile) -> Any:
    def f(x: Any, y: Any, g: Any) -> Any:
        z = x * y
        z.backward(g, inputs=[x])
        return z.detach()

    x, y, g = leaf(3), leaf(3), leaf(3).detach()
    z = compile(f)(x, y, g)
    return z, x.grad, y.grad


@PROGRAMS.add()
def gradients_cleared_inside(compile: Compile) -> Any:
    def step(net: Any, x: Any) -> Any:
        for p in net.parameters():
            p.grad = None
        loss = net(x).pow(2).mean()
        loss.backward()
        return [p.grad.norm() for p in net.parameters()]

    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    f = compile(step)
    return [f(net, torch.ones(1, 3) * k) for k in (1, 2)]


@PROGRAMS.add(whole=True)
def autograd_grad_inside(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x)
        return y, g * 2

    x = leaf(3)
    y, g = compile(f)(x)
    return y, g, g.requires_grad


@PROGRAMS.add(whole=True, native=True)
def autograd_grad_with_create_graph_inside(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g**2).sum()

    x = leaf(3)
    z = compile(f)(x)
    z.backward()
    return z, x.grad


@PROGRAMS.add(whole=True, native=True)
def autograd_grad_of_a_new_leaf(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        with torch.enable_grad():
            y = x.detach().requires_grad_(True)
            energy = (y.sin() * y).sum()
            (force,) = torch.autograd.grad(energy, y)
        return energy.detach(), -force

    seen = [compile(f)(leaf(3))]
    with torch.no_grad():
        seen.append(compile(f)(leaf(3).detach()))
    return seen


@PROGRAMS.add(whole=True)
def autograd_grad_of_an_intermediate(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        h = x.sin()
        y = (h**2).sum()
        (g,) = torch.autograd.grad(y, [h], retain_graph=True)
        return y, g, torch.autograd.grad(y, x, grad_outputs=torch.tensor(2.0, dtype=torch.float64))[0]

    return compile(f)(leaf(3))


@PROGRAMS.add(whole=True)
def autograd_grad_of_an_intermediate_of_a_tensor_with_a_history(compile: Compile) -> Any:
    """The differentiated tensor does not depend on the history of the input; hooks in that history do not run."""
    seen = []

    def f(x: Any) -> Any:
        h = x.sin()
        (g,) = torch.autograd.grad((h**2).sum(), h, create_graph=True)
        return h * 0.5 + g.tanh()

    start = leaf(3)
    x = start * 2
    x.register_hook(lambda g: seen.append(g.clone()))
    y = compile(f)(x)
    first = len(seen)
    y.sum().backward()
    return y, start.grad, first, seen


@PROGRAMS.add()
def autograd_grad_behind_a_break(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        h = x * 2
        with torch.no_grad():
            torch._dynamo.graph_break()
        h = h.sin()
        (g,) = torch.autograd.grad((h**2).sum(), h, create_graph=True)
        return h * 0.5 + g.tanh()

    x = leaf(3)
    y = compile(f)(x)
    y.sum().backward()
    return y, x.grad


@PROGRAMS.add(whole=True)
def autograd_grad_with_unused_inputs(compile: Compile) -> Any:
    def f(x: Any, y: Any) -> Any:
        found = torch.autograd.grad((x**2).sum(), (x, y), allow_unused=True)
        return found[0], found[1] is None

    return compile(f)(leaf(3), leaf(3))


@PROGRAMS.add(whole=True)
def autograd_grad_of_parameters(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def f(x: Any) -> Any:
        loss = net(x).pow(2).mean()
        return torch.autograd.grad(loss, list(net.parameters()))

    return compile(f)(torch.ones(2, 3)), [p.grad for p in net.parameters()]


@PROGRAMS.add(whole=True)
def forces_of_an_energy_model(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1)).double()

    def f(x: Any) -> Any:
        x.requires_grad_(True)
        energy = net(x).sum()
        (g,) = torch.autograd.grad(energy, x, create_graph=True)
        return energy, -g

    x = leaf(4, 3).detach()
    energy, force = compile(f)(x.requires_grad_())
    (energy + force.pow(2).sum()).backward()
    return energy, force, [p.grad for p in net.parameters()]


@PROGRAMS.add()
def autograd_grad_errors(compile: Compile) -> Any:
    def unused(x: Any, y: Any) -> Any:
        return torch.autograd.grad((x**2).sum(), (x, y))

    def no_scalar(x: Any, y: Any) -> Any:
        return torch.autograd.grad(x * y, x)

    def no_history(x: Any, y: Any) -> Any:
        return torch.autograd.grad((x.detach() * 2).sum(), x)

    return [error(lambda fn=fn: compile(fn)(leaf(3), leaf(3))) for fn in (unused, no_scalar, no_history)]


@PROGRAMS.add()
def grad_attribute_read_and_written(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        if x.grad is None:
            x.grad = torch.ones_like(x)
        else:
            x.grad = x.grad + 1
        x.grad.mul_(2)
        return x.grad.sum()

    x = leaf(3)
    g = compile(f)
    return g(x), g(x), x.grad


@PROGRAMS.add()
def clip_grad_norm_inside(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Linear(3, 3)

    def step(x: Any) -> Any:
        net(x).pow(2).sum().backward()
        return nn.utils.clip_grad_norm_(net.parameters(), 0.5)

    f = compile(step)
    return f(torch.ones(2, 3)), [p.grad for p in net.parameters()]
