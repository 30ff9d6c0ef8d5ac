"""Hooks, retained gradients and autograd.grad at a result of a compiled function that other results of it are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager as torch
from tests.dynamo.recording.autograd.support import Compile, Programs, error, leaf

F = torch.nn.functional
PROGRAMS = Programs()


def _layer() -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 4).double()


def _two(layer: Any, x: Any) -> Any:
    h = layer(x)
    return h, (h * 2).sin()


def _drawn(layer: Any, x: Any) -> Any:
    h = F.dropout(layer(x), 0.5, True)
    return h, F.dropout(h * 2, 0.5, True)


def _three(layer: Any, x: Any) -> Any:
    a = layer(x) * 2
    b = a.exp()
    return a * b, a, b


def _views(layer: Any, x: Any) -> Any:
    h = layer(x)
    return h.t(), (h * h).sum(), h[0]


def _over_all(see: Callable[[Any, Any, list[Any]], Any]) -> Callable[[Compile], Any]:
    """The results of `see(results, x, seen)` for each of these functions, then all gradients of a loss of all results.
    """

    def run(compile: Compile) -> Any:
        found = []
        for fn in (_two, _drawn, _three, _views):
            layer, x, seen = _layer(), leaf(2, 4), []
            torch.manual_seed(3)
            results = compile(lambda x, fn=fn, layer=layer: fn(layer, x))(x)
            given = see(results, x, seen)
            loss = sum((t * (i + 1)).sum() for i, t in enumerate(results))
            loss.backward()
            found.append((given, [t.detach() for t in results], seen, x.grad, layer.weight.grad, torch.rand(1)))
        return found

    run.__name__ = see.__name__
    return run


@PROGRAMS.add(native=True)
@_over_all
def hooks_see_the_whole_gradient(results: Any, x: Any, seen: list[Any]) -> None:
    results[0].register_hook(lambda g: seen.append(g.clone()))


@PROGRAMS.add(native=True)
@_over_all
def hooks_change_the_whole_gradient(results: Any, x: Any, seen: list[Any]) -> None:
    results[0].register_hook(lambda g: g.clamp(-0.3, 0.3))
    results[1].register_hook(lambda g: g * 2)


@PROGRAMS.add()
@_over_all
def retained_gradients_are_whole(results: Any, x: Any, seen: list[Any]) -> None:
    for t in results:
        t.retain_grad()
        t.register_hook(lambda g, t=t: seen.append(t.grad is None))
    seen.append(results)


@PROGRAMS.add()
@_over_all
def one_result_is_differentiated_by_another(results: Any, x: Any, seen: list[Any]) -> Any:
    def slopes() -> Any:
        return torch.autograd.grad(results[1].sum(), [results[0], x], retain_graph=True, allow_unused=True)

    return error(slopes)


@PROGRAMS.add()
@_over_all
def slopes_of_one_by_another_are_differentiated(results: Any, x: Any, seen: list[Any]) -> Any:
    def slopes() -> Any:
        (g,) = torch.autograd.grad(results[-1].pow(3).sum(), results[0], create_graph=True)
        return g, torch.autograd.grad(g.pow(2).sum(), x, retain_graph=True)

    return error(slopes)


@PROGRAMS.add()
@_over_all
def backward_into_a_result(results: Any, x: Any, seen: list[Any]) -> Any:
    def backward() -> Any:
        torch.autograd.backward([results[1].sum()], retain_graph=True, inputs=[results[0]])
        return results[0].grad

    return error(backward)


@PROGRAMS.add()
def a_hook_behind_a_break(compile: Compile) -> Any:
    layer = _layer()

    def f(x: Any) -> Any:
        h = layer(x)
        z = h * 2
        torch._dynamo.graph_break()
        h.register_hook(lambda g: g.clamp(-1, 1))
        return z + h, h

    x = leaf(3, 4)
    z, h = compile(f)(x)
    (z * 0.3 + h * 0.5).sum().backward()
    return x.grad, layer.weight.grad


@PROGRAMS.add()
def differentiated_by_an_intermediate_and_an_input_behind_a_break(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        h = x * 2
        with torch.no_grad():
            torch._dynamo.graph_break()
        h = h.sin()
        g, of_x = torch.autograd.grad((h**2).sum(), (h, x), create_graph=True)
        return h * 0.5 + g.tanh() + of_x

    x = leaf(3)
    y = compile(f)(x)
    y.sum().backward()
    return y, x.grad


@PROGRAMS.add()
def one_tensor_given_twice(compile: Compile) -> Any:
    def f(x: Any, y: Any) -> Any:
        h = x * y
        return h, h.exp() * y

    x = leaf(4)
    h, z = compile(f)(x, x)
    h.register_hook(lambda g: g.clamp(-1, 1))
    z.sum().backward()
    return x.grad


@PROGRAMS.add()
def called_under_autocast(compile: Compile) -> Any:
    layer, x = _layer().float(), leaf(2, 4, dtype=torch.float32)
    f = compile(lambda x: _two(layer, x))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h, z = f(x)
    h.retain_grad()
    z.float().sum().backward()
    return h.dtype, h.grad.dtype, x.grad.dtype, (h.grad.float() * 8).round(), (layer.weight.grad * 4).round()


@PROGRAMS.add()
def begun_without_grad_mode(compile: Compile) -> Any:
    layer, x = _layer(), leaf(2, 4)

    def f(x: Any) -> Any:
        still = x * 3
        with torch.enable_grad():
            h = layer(x) * still
            return h, h.exp(), still

    with torch.no_grad():
        h, z, still = compile(f)(x)
    h.register_hook(lambda g: g.clamp(-1, 1))
    z.sum().backward()
    return x.grad, layer.weight.grad, still.requires_grad


@PROGRAMS.add()
def hooks_of_the_node_are_run_as_well(compile: Compile) -> Any:
    """Counts the runs: a compiled function has one node, which receives gradients of the whole function."""
    x, seen = leaf(3), []
    h, z = compile(_of_one)(x)
    h.register_hook(lambda g: g * 2)
    z.grad_fn.register_prehook(lambda gs: seen.append("before"))
    z.grad_fn.register_hook(lambda found, gs: seen.append("after"))
    z.sum().backward()
    return x.grad, seen


def _of_one(x: Any) -> Any:
    h = x * 2
    return h, h.exp()


@PROGRAMS.add()
def a_freed_graph_is_refused(compile: Compile) -> Any:
    layer, x = _layer(), leaf(2, 4)
    h, z = compile(lambda x: _two(layer, x))(x)
    h.register_hook(lambda g: g * 2)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    return x.grad, error(lambda: z.sum().backward())[0]


@PROGRAMS.add()
def an_argument_written_to_since_is_refused(compile: Compile) -> Any:
    w = leaf(4)

    def f(x: Any) -> Any:
        h = x * w
        return h, h.exp() * w

    h, z = compile(f)(leaf(4))
    h.register_hook(lambda g: g * 2)
    with torch.no_grad():
        w.mul_(2)
    return error(lambda: z.sum().backward())[0]


@PROGRAMS.add()
def the_region_writes_to_its_inputs(compile: Compile) -> Any:
    """Running statistics, a counter that the value depends on, and a weight written to through `.data`."""
    norm, w, n = torch.nn.BatchNorm1d(4).double(), leaf(4), torch.zeros((), dtype=torch.float64)

    def f(x: Any) -> Any:
        n.add_(1)
        w.data.mul_(1.5)
        h = norm(x * w) * n
        return h, h.exp() * w

    f = compile(f)
    found = []
    for _ in range(2):
        x = leaf(3, 4)
        h, z = f(x)
        h.register_hook(lambda g: g.clamp(-0.2, 0.2))
        (z.sum() * 0.3 + h.sum()).backward()
        found.append((h.detach(), z.detach(), x.grad, w.grad.clone(), norm.weight.grad.clone(), norm.running_var.clone(), n.clone()))
    return found
