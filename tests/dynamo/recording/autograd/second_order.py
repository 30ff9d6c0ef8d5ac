"""Gradients of gradients through compiled regions."""

from __future__ import annotations

from typing import Any

import eager as torch
from eager import nn
from eager.nn import functional as F
from tests.dynamo.recording.autograd.support import Compile, Programs, error, grads, leaf

PROGRAMS = Programs()


@PROGRAMS.add(whole=True)
def second_derivative(compile: Compile) -> Any:
    f = compile(lambda x: (x.sin() * x).sum())
    x = leaf(4)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return g, gg


@PROGRAMS.add(whole=True, native=True)
def third_derivative(compile: Compile) -> Any:
    f = compile(lambda x, y: (x.exp() * y.sin()).sum())
    x, y = leaf(3), leaf(3, start=0.1)
    g = torch.autograd.grad(f(x, y), (x, y), create_graph=True)
    gg = torch.autograd.grad((g[0] * g[1]).sum(), (x, y), create_graph=True)
    return g, gg, torch.autograd.grad((gg[0] * y).sum(), (x, y))


@PROGRAMS.add(whole=True, native=True)
def gradient_penalty(compile: Compile) -> Any:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1)).double()
    run = compile(net)
    x = leaf(5, 4)
    (g,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).mean().backward()
    return g, [p.grad for p in net.parameters()], x.grad


@PROGRAMS.add(whole=True)
def gradient_penalty_with_relu_and_conv(compile: Compile) -> Any:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 1)).double()
    run = compile(net)
    x = leaf(2, 1, 6, 6)
    (g,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
    (g**2).sum().backward()
    return g, [p.grad for p in net.parameters()], x.grad


@PROGRAMS.add(whole=True)
def hessian_vector_product(compile: Compile) -> Any:
    f = compile(lambda x: F.softmax(x @ x.t(), -1).log().sum())
    x, v = leaf(3, 3), leaf(3, 3, start=1.0).detach()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return [t.contiguous() for t in torch.autograd.grad((g * v).sum(), x)]


@PROGRAMS.add(whole=True)
def hvp_in_the_output_gradient(compile: Compile) -> Any:
    f = compile(lambda x: x.sin() * 2)
    x, v = leaf(3), leaf(3, start=1.0)
    (g,) = torch.autograd.grad(f(x), x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), (x, v))


@PROGRAMS.add(whole=True)
def maml_inner_step(compile: Compile) -> Any:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((torch.tanh(x @ w) - y) ** 2).mean()

    f = compile(loss)
    w, x, y = leaf(3, 2), leaf(4, 3).detach(), leaf(4, 2).detach()
    inner = w
    for _ in range(2):
        (g,) = torch.autograd.grad(f(inner, x, y), inner, create_graph=True)
        inner = inner - 0.1 * g
    f(inner, x, y).backward()
    return inner, w.grad


@PROGRAMS.add(whole=True)
def create_graph_then_first_order_only(compile: Compile) -> Any:
    f = compile(lambda x: (x**3).sum())
    x = leaf(3)
    out = f(x)
    out.backward(create_graph=True)
    first = x.grad
    x.grad = None
    return first, first.requires_grad


@PROGRAMS.add(whole=True)
def linear_function_has_no_second_derivative(compile: Compile) -> Any:
    f = compile(lambda x: (x * 3).sum())
    x = leaf(3)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return g, g.requires_grad, error(lambda: torch.autograd.grad(g.sum(), x))


@PROGRAMS.add(whole=True)
def second_order_of_some_inputs(compile: Compile) -> Any:
    f = compile(lambda x, y, z: (x * y).sum() + (z**2).sum())
    x, y, z = leaf(3), leaf(3, start=2.0), leaf(3).detach()
    g = torch.autograd.grad(f(x, y, z), (x, y), create_graph=True)
    return g, torch.autograd.grad(g[0].sum() * 2, (x, y), allow_unused=True)


@PROGRAMS.add(whole=True)
def second_order_of_several_outputs(compile: Compile) -> Any:
    f = compile(lambda x: (x.sin(), x.cos().sum(), x * 2))
    x = leaf(4)
    a, b, c = f(x)
    (g,) = torch.autograd.grad((a * c).sum() + b**2, x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add(whole=True, native=True)
def second_order_with_an_unused_output(compile: Compile) -> Any:
    f = compile(lambda x: (x.sin(), x.exp()))
    x = leaf(4)
    a, _ = f(x)
    (g,) = torch.autograd.grad(a.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add(whole=True)
def second_order_twice_with_retain_graph(compile: Compile) -> Any:
    f = compile(lambda x: (x**4).sum())
    x = leaf(3)
    y = f(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    first = torch.autograd.grad(g.sum(), x, retain_graph=True)
    second = torch.autograd.grad((g**2).sum(), x)
    return first, second, error(lambda: torch.autograd.grad(g.sum(), x))


@PROGRAMS.add(whole=True, native=True)
def second_order_after_dropout(compile: Compile) -> Any:
    f = compile(lambda x: (F.dropout(x, 0.5) ** 3).sum())
    x = leaf(64)
    y = f(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return y, g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add(whole=True)
def second_order_over_a_write(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        y.mul_(x)
        return y.exp().sum()

    x = leaf(3)
    (g,) = torch.autograd.grad(compile(f)(x), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add(whole=True)
def second_order_of_an_output_that_is_a_view(compile: Compile) -> Any:
    f = compile(lambda x: (x.view(2, 2), (x**3).t()))
    x = leaf(2, 2)
    a, b = f(x)
    (g,) = torch.autograd.grad((a * b).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)[0].contiguous()


@PROGRAMS.add(whole=True)
def second_order_with_an_intermediate_input(compile: Compile) -> Any:
    f = compile(lambda h: (h**3).sum())
    x = leaf(3)
    h = x.sin()
    (g,) = torch.autograd.grad(f(h), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x), error(lambda: grads(f(x.sin()), x))


@PROGRAMS.add(whole=True)
def second_order_of_a_complex_function(compile: Compile) -> Any:
    f = compile(lambda x: torch.view_as_real(torch.complex(x, x * 2) ** 2).sum())
    x = leaf(3)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add()
def second_order_across_a_break(compile: Compile) -> Any:
    import dynamo

    def f(x: Any) -> Any:
        y = x.sin()
        dynamo.graph_break()
        return (y**2 * x).sum()

    x = leaf(3)
    (g,) = torch.autograd.grad(compile(f)(x), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add(whole=True)
def jacobian_and_hessian_of_a_compiled_function(compile: Compile) -> Any:
    f = compile(lambda x: (x**3).sum())
    g = compile(lambda x: x.sin() * x)
    x = leaf(3)
    return torch.autograd.functional.hessian(f, x), torch.autograd.functional.jacobian(g, x)


@PROGRAMS.add(whole=True)
def gradients_written_into_leaves_twice(compile: Compile) -> Any:
    f = compile(lambda x: (x**3).sum())
    x = leaf(3)
    f(x).backward(create_graph=True)
    (x.grad**2).sum().backward()
    return x.grad


@PROGRAMS.add(whole=True)
def second_order_with_a_saved_input_written(compile: Compile) -> Any:
    f = compile(lambda x, y: (x * y).exp().sum())
    x, y = leaf(3), leaf(3).detach()
    out = f(x, y)
    y.add_(1)
    return error(lambda: torch.autograd.grad(out, x, create_graph=True))
