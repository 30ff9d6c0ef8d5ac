"""Library code with custom Functions and transforms: recomputation, quantisation, memory-saving activations, per-sample work."""

from __future__ import annotations

import functools
from typing import Any

import dynamo
import eager as torch
from eager import nn
from eager.autograd import Function
from eager.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from eager.nn import functional as F
from tests.dynamo.recording.autograd.support import Compile, Programs, error, grads, leaf

PROGRAMS = Programs()


class Recompute(Function):
    """A checkpoint as users implement it."""

    @staticmethod
    def forward(ctx: Any, fn: Any, x: Any) -> Any:
        ctx.fn = fn
        ctx.save_for_backward(x)
        with torch.no_grad():
            return fn(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            y = ctx.fn(x)
        return None, torch.autograd.grad(y, x, g)[0]


class Swish(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * (s * (1 + x * (1 - s)))


class Quantise(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, low: int, high: int) -> Any:
        q = x / scale
        ctx.inside = (q >= low) & (q <= high)
        ctx.save_for_backward(q.round().clamp(low, high))
        ctx.bounds = low, high
        return q.round().clamp(low, high) * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (q,) = ctx.saved_tensors
        gx = torch.where(ctx.inside, g, torch.zeros_like(g))
        return gx, (g * q).sum().reshape(1), None, None


class Attention(Function):
    """Two outputs, one for the backward only; missing gradients are not materialized."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: Any = None) -> Any:
        ctx.set_materialize_grads(False)
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        scores = q @ k.transpose(-1, -2) * scale
        lse = scores.logsumexp(-1)
        p = (scores - lse.unsqueeze(-1)).exp()
        ctx.scale = scale
        ctx.mark_non_differentiable(lse)
        ctx.save_for_backward(q, k, v, lse)
        return p @ v, lse

    @staticmethod
    def backward(ctx: Any, g: Any, unused: Any) -> Any:
        assert unused is None
        q, k, v, lse = ctx.saved_tensors
        p = (q @ k.transpose(-1, -2) * ctx.scale - lse.unsqueeze(-1)).exp()
        dp = g @ v.transpose(-1, -2)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ g, None


class Masked(Function):
    """Random numbers in forward."""

    @staticmethod
    def forward(ctx: Any, x: Any, p: float) -> Any:
        mask = (torch.rand(x.shape, dtype=x.dtype) > p).to(x.dtype)
        ctx.mask = mask
        return x * mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.mask * 2, None


def _three(compile: Compile, fn: Any, *args: Any) -> Any:
    f = compile(fn)
    seen = []
    for _ in range(2):
        out = f(*args)
        seen.append((out, grads(out, *(a for a in args if a.requires_grad))))
    return seen


@PROGRAMS.add(whole=True)
def recomputation(compile: Compile) -> Any:
    return _three(compile, lambda x: Recompute.apply(lambda t: (t * 2).sin().exp(), x) * x, leaf(4))


@PROGRAMS.add(whole=True)
def recomputation_of_a_module(compile: Compile) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).double().requires_grad_(False)
    return _three(compile, lambda x: Recompute.apply(net, x).sum(-1), leaf(2, 3))


@PROGRAMS.add(whole=True)
def memory_saving_activation_in_a_model(compile: Compile) -> Any:
    class Act(nn.Module):
        def forward(self, x: Any) -> Any:
            return Swish.apply(x)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), Act(), nn.Linear(4, 4), Act()).double()
    run = compile(net)
    run(leaf(2, 3)).sum().backward()
    return [p.grad for p in net.parameters()]


@PROGRAMS.add(whole=True)
def quantisation_with_a_learned_scale(compile: Compile) -> Any:
    scale = torch.tensor([0.25], dtype=torch.float64, requires_grad=True)
    return _three(compile, lambda x, s: Quantise.apply(x, s, -2, 3) * x, leaf(6, start=-1.0), scale)


@PROGRAMS.add(whole=True)
def attention_with_a_side_output(compile: Compile) -> Any:
    q, k, v = leaf(2, 3, 4), leaf(2, 3, 4, start=0.1), leaf(2, 3, 4, start=-0.5)
    f = compile(lambda q, k, v: Attention.apply(q * 0.1, k * 0.1, v))
    out, lse = f(q, k, v)
    return out, lse, lse.requires_grad, grads(out, q, k, v)


@PROGRAMS.add(whole=True)
def random_numbers_in_a_custom_forward(compile: Compile) -> Any:
    return _three(compile, lambda x: Masked.apply(x, 0.5) + 1, leaf(30)), torch.rand(2)


@PROGRAMS.add(whole=True)
def in_a_loop_and_in_a_checkpoint(compile: Compile) -> Any:
    from eager.utils.checkpoint import checkpoint

    def f(x: Any) -> Any:
        for _ in range(3):
            x = Swish.apply(x)
        return checkpoint(Swish.apply, x, use_reentrant=False)

    return _three(compile, f, leaf(4))


@PROGRAMS.add()
def a_break_in_forward(compile: Compile) -> Any:
    class Breaks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            dynamo.graph_break()
            return y + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    return _three(compile, lambda x: Breaks.apply(x.sin()) * x, leaf(4))


@PROGRAMS.add()
def a_break_in_backward(compile: Compile) -> Any:
    class Breaks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            dynamo.graph_break()
            return g * 3

    return _three(compile, lambda x: Breaks.apply(x.sin()) * x, leaf(4))


@PROGRAMS.add()
def an_error_in_forward_that_is_caught(compile: Compile) -> Any:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            raise ValueError("no")

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    def f(x: Any) -> Any:
        try:
            return Fails.apply(x)
        except ValueError:
            return x * 2

    return _three(compile, f, leaf(3))


@PROGRAMS.add(whole=True)
def output_written_afterwards(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y = Swish.apply(x)
        y.mul_(2)
        return y + x

    return _three(compile, f, leaf(4))


@PROGRAMS.add(whole=True)
def a_class_made_in_the_function_that_is_compiled_around(compile: Compile) -> Any:
    factor = 4.0

    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * factor * 10

    f = compile(lambda x: Scale.apply(x))
    x = leaf(3)
    seen = [f(x), grads(f(x), x)]
    factor = 5.0
    return [*seen, f(x), grads(f(x), x)]


@PROGRAMS.add(whole=True)
def unused_result(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        Swish.apply(x)
        return x * 2

    return _three(compile, f, leaf(3))


@PROGRAMS.add()
def precision_decorators(compile: Compile) -> Any:
    class Matmul(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b.t(), a.t() @ g

    f = compile(lambda a, b: Matmul.apply(a, b))
    a, b = leaf(2, 3, dtype=torch.float32), leaf(3, 2, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = f(a, b)
    return y, grads(y, a, b), f(a, b)


@PROGRAMS.add(whole=True)
def pullbacks_called_twice_and_mapped(compile: Compile) -> Any:
    def f(x: Any, v: Any) -> Any:
        y, pull = vjp(lambda t: (t**3, t.sin()), x)
        return y, pull((v, v * 2)), pull((v, v)), vmap(lambda row: pull((row, row)))(torch.stack([v, v * 3]))

    return compile(f)(leaf(3).detach(), leaf(3, start=1.0).detach())


@PROGRAMS.add()
def a_pullback_that_is_returned(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        y, pull = vjp(lambda t: t**3, x)
        return y, pull

    y, pull = compile(f)(leaf(3).detach())
    return y, pull(torch.ones_like(y))


@PROGRAMS.add(whole=True)
def jacobians_with_options(compile: Compile) -> Any:
    def g(a: Any, b: Any) -> Any:
        return (a * b).sin(), {"aux": a + 1}

    def f(a: Any, b: Any) -> Any:
        first = jacrev(g, argnums=(0, 1), has_aux=True)(a, b)
        second = jacfwd(lambda p, q: p * q, argnums=1)(a, b)
        return first, second, jacrev(lambda t: t**2, chunk_size=2)(a)

    return compile(f)(leaf(3).detach(), leaf(3).detach())


@PROGRAMS.add(whole=True)
def kinds_of_functions(compile: Compile) -> Any:
    class Scaler:
        def __init__(self) -> None:
            self.k = 3.0

        def cube(self, t: Any) -> Any:
            return (t**3 * self.k).sum()

    net = nn.Linear(3, 1).double()
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(0.5)
    s = Scaler()

    def f(x: Any) -> Any:
        found = [vmap(torch.sin)(x), vmap(net)(x), grad(s.cube)(x), grad(functools.partial(lambda a, t: (a * t).sum(), 2.0))(x)]
        return [*found, vmap(F.relu)(x), vmap(lambda r: {"a": r, "b": (r.sum(), [r * 2])})(x)]

    return compile(f)(leaf(2, 3).detach())


@PROGRAMS.add(whole=True)
def maps_with_options(compile: Compile) -> Any:
    def f(x: Any, d: Any) -> Any:
        one = vmap(lambda r, o, k=1: r * o["w"] * k, in_dims=(0, {"w": None}))(x, d, k=3)
        two = vmap(lambda r: (r.sum(), r * 2), in_dims=1, out_dims=(0, 1))(x)
        three = vmap(lambda r, n: r * n, in_dims=(0, None))(x, 2)
        four = vmap(vmap(lambda a, b: a * b), chunk_size=1)(x, x)
        return one, two, three, four

    return compile(f)(leaf(2, 3).detach(), {"w": leaf(3).detach()})


@PROGRAMS.add()
def errors_of_transforms(compile: Compile) -> Any:
    x = leaf(3).detach()
    return [
        error(lambda: compile(lambda x: grad(lambda t: t * 2)(x))(x)),
        error(lambda: compile(lambda x: vmap(lambda t: t, in_dims=5)(x))(x)),
        error(lambda: compile(lambda x: vmap(lambda a, b: a + b)(x, x[:2]))(x)),
        error(lambda: compile(lambda x: vmap(lambda r: r + torch.rand(()))(x))(x)),
        error(lambda: compile(lambda x: jvp(lambda t: t, (x,), (x[:1],)))(x)),
    ]


@PROGRAMS.add(whole=True)
def newton_step_of_a_model(compile: Compile) -> Any:
    net = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        net.weight.fill_(0.5)
    x, y = leaf(4, 2).detach(), leaf(4, 1, start=1.0).detach()

    def loss(w: Any) -> Any:
        return ((functional_call(net, {"weight": w}, (x,)) - y) ** 2).mean()

    def step(w: Any) -> Any:
        h = hessian(loss)(w).reshape(2, 2) + torch.eye(2, dtype=w.dtype)
        return w - torch.linalg.solve(h, grad(loss)(w).reshape(2, 1)).reshape(w.shape)

    return compile(step)(net.weight.detach().clone())


@PROGRAMS.add(whole=True)
def values_made_inside_a_transform_stay_inside(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        sizes = []

        def inner(t: Any) -> Any:
            sizes.append(tuple(t.shape))
            return (t * len(sizes)).sum()

        g = grad(inner)(x)
        return g, sizes

    return compile(f)(leaf(3).detach())


@PROGRAMS.add()
def values_that_leave_a_transform(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        kept = []

        def inner(t: Any) -> Any:
            kept.append(t * 2)
            return (t * 3).sum()

        g = grad(inner)(x)
        return g, len(kept)

    return compile(f)(leaf(3).detach())


@PROGRAMS.add(whole=True)
def gradients_through_a_transform(compile: Compile) -> Any:
    w = leaf(3)
    f = compile(lambda x, w: (grad(lambda t: (t**3 * w).sum())(x) * w).sum())
    x = leaf(3)
    y = f(x, w)
    g = torch.autograd.grad(y, (x, w), create_graph=True)
    return y, g, torch.autograd.grad(g[0].sum(), (x, w))
