"""torch.func inside compiled functions, and over them."""

from __future__ import annotations

from typing import Any

import eager as torch
from eager import nn
from eager.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from tests.dynamo.recording.autograd.support import Compile, Programs, grads, leaf

PROGRAMS = Programs()


@PROGRAMS.add(whole=True, native=True)
def grad_inside(compile: Compile) -> Any:
    f = compile(lambda x: grad(lambda y: (y.sin() * y).sum())(x) * 2)
    x = leaf(3)
    y = f(x)
    return y, grads(y, x), f(x.detach())


@PROGRAMS.add(whole=True)
def grad_and_value_with_aux(compile: Compile) -> Any:
    def loss(w: Any, x: Any) -> Any:
        y = x @ w
        return (y**2).mean(), y

    return compile(lambda w, x: grad_and_value(loss, has_aux=True)(w, x))(leaf(3, 2).detach(), leaf(4, 3).detach())


@PROGRAMS.add(whole=True)
def grad_of_several_arguments(compile: Compile) -> Any:
    f = compile(lambda a, b: grad(lambda p, q: (p["w"] * q).sum(), argnums=(0, 1))({"w": a}, b))
    return f(leaf(3).detach(), leaf(3).detach())


@PROGRAMS.add(whole=True)
def vmap_inside(compile: Compile) -> Any:
    f = compile(lambda x, w: vmap(lambda row: (row * w).sum() + row)(x))
    x, w = leaf(4, 3), leaf(3)
    y = f(x, w)
    return y, grads(y, x, w)


@PROGRAMS.add(whole=True)
def vmap_with_dims(compile: Compile) -> Any:
    f = compile(lambda x, y: vmap(torch.matmul, in_dims=(1, None), out_dims=1)(x, y))
    return f(leaf(3, 4).detach(), leaf(3, 2).detach())


@PROGRAMS.add(whole=True, native=True)
def per_sample_gradients(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((functional_call(net, p, (x.unsqueeze(0),)) - y) ** 2).sum()

    f = compile(lambda x, y: vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y))
    return f(torch.ones(5, 3), torch.arange(5.0))


@PROGRAMS.add(whole=True)
def vjp_inside(compile: Compile) -> Any:
    def f(x: Any, v: Any) -> Any:
        y, pull = vjp(lambda t: t.sin() * 2, x)
        return y, pull(v)[0]

    return compile(f)(leaf(3).detach(), leaf(3, start=1.0).detach())


@PROGRAMS.add(whole=True)
def jvp_inside(compile: Compile) -> Any:
    f = compile(lambda x, v: jvp(lambda t: t.exp() * t, (x,), (v,)))
    return f(leaf(3).detach(), leaf(3, start=1.0).detach())


@PROGRAMS.add()
def linearize_inside(compile: Compile) -> Any:
    def f(x: Any, v: Any) -> Any:
        y, push = linearize(lambda t: t.sin(), x)
        return y, push(v)

    return compile(f)(leaf(3).detach(), leaf(3, start=1.0).detach())


@PROGRAMS.add(whole=True)
def jacobians_and_hessian_inside(compile: Compile) -> Any:
    f = compile(lambda x: (jacrev(lambda t: t**2)(x), jacfwd(lambda t: t.sin())(x), hessian(lambda t: (t**3).sum())(x)))
    return f(leaf(3).detach())


@PROGRAMS.add(whole=True)
def nested_transforms(compile: Compile) -> Any:
    f = compile(lambda x: vmap(grad(grad(lambda t: t**4)))(x))
    return f(leaf(3).detach())


@PROGRAMS.add(whole=True)
def transform_made_outside(compile: Compile) -> Any:
    derivative = grad(lambda y: (y**3).sum())
    f = compile(lambda x: derivative(x) + 1)
    g = compile(derivative)
    return f(leaf(3).detach()), g(leaf(3).detach())


@PROGRAMS.add(whole=True)
def ensembles(compile: Compile) -> Any:
    torch.manual_seed(0)
    nets = [nn.Linear(3, 2) for _ in range(3)]
    params, buffers = stack_module_state(nets)

    def one(p: Any, b: Any, x: Any) -> Any:
        return functional_call(nets[0], (p, b), (x,))

    f = compile(lambda x: vmap(one, in_dims=(0, 0, None))(params, buffers, x))
    y = f(torch.ones(4, 3))
    y.sum().backward()
    return y, {k: p.grad for k, p in params.items()}


@PROGRAMS.add(whole=True)
def closure_over_a_graph_value(compile: Compile) -> Any:
    def f(x: Any, w: Any) -> Any:
        h = w * 2
        return grad(lambda t: (t * h).sum())(x), vmap(lambda row: row + h)(x.unsqueeze(0))

    x, w = leaf(3), leaf(3)
    a, b = compile(f)(x, w)
    return a, b, grads(a, w), grads(b, x, w)


@PROGRAMS.add()
def transforms_over_a_compiled_function(compile: Compile) -> Any:
    f = compile(lambda x: (x.sin() * x).sum())
    x = leaf(3).detach()
    with torch._dynamo.config.patch(recompile_limit=16):  # each op ends a graph, and each continuation has three variants
        return grad(f)(x), vmap(f)(leaf(2, 3).detach()), jvp(f, (x,), (torch.ones_like(x),))


@PROGRAMS.add()
def forward_mode_over_a_compiled_function(compile: Compile) -> Any:
    import eager.autograd.forward_ad as fwAD

    f = compile(lambda x: x.sin() * x)
    x = leaf(3).detach()
    with fwAD.dual_level():
        y = f(fwAD.make_dual(x, torch.ones_like(x)))
        return tuple(fwAD.unpack_dual(y))


@PROGRAMS.add()
def effects_inside_a_transformed_function(compile: Compile) -> Any:
    def f(x: Any, log: Any) -> Any:
        def inner(t: Any) -> Any:
            log.append(tuple(t.shape))
            return (t * 2).sum()

        return grad(inner)(x)

    log: list[Any] = []
    g = compile(f)
    return g(leaf(3).detach(), log), g(leaf(3).detach(), log), log


@PROGRAMS.add()
def a_branch_on_data_inside_a_transformed_function(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        return grad(lambda t: (t * 2).sum() if float(x.sum()) > 0 else (t * 3).sum())(x)

    return compile(f)(leaf(3).detach())


@PROGRAMS.add()
def randomness_in_vmap(compile: Compile) -> Any:
    f = compile(lambda x: vmap(lambda r: r + torch.rand(2, dtype=torch.float64), randomness="different")(x))
    return f(leaf(3, 2).detach())
