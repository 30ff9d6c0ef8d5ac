"""Programs with checkpoints for both packages; see `data_cases.py`."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[fn.__name__] = fn
    return fn


def numbers(t: Any) -> Any:
    return None if t is None else [round(float(v), 9) for v in t.detach().flatten()]


def message(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fn(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "nothing raised"


def layers(torch: Any) -> tuple[Any, Any, Any]:
    """Input (4, 3), weights (3, 5) and (5, 3), the same in both packages."""
    def made(*shape: int) -> Any:
        n = torch.arange(shape[0] * shape[1], dtype=torch.float64)
        return torch.sin(n * 0.7).reshape(shape).requires_grad_()

    return made(4, 3), made(3, 5), made(5, 3)


class Counted:
    """A two-layer function that counts its calls."""

    def __init__(self, torch: Any, *weights: Any) -> None:
        self.torch, self.weights, self.calls = torch, weights, 0

    def __call__(self, x: Any, scale: Any = 1.0) -> Any:
        self.calls += 1
        w1, w2 = self.weights
        return self.torch.tanh(self.torch.relu(x @ w1) @ w2) * scale


@case
def gradients(torch: Any) -> Any:
    cp = torch.utils.checkpoint
    found = []
    for options in ({"use_reentrant": False}, {"use_reentrant": True}, {"use_reentrant": False, "early_stop": False},
                    {"use_reentrant": False, "preserve_rng_state": False}, {"use_reentrant": False, "debug": True}):  # fmt: skip
        x, w1, w2 = layers(torch)
        fn = Counted(torch, w1, w2)
        y = cp.checkpoint(fn, x, 2.0, **options)
        y.sin().sum().backward()
        found.append([numbers(y), *(numbers(t.grad) for t in (x, w1, w2)), fn.calls])
    return found


@case
def keywords_structures_and_inputs_without_gradients(torch: Any) -> Any:
    x, w1, w2 = layers(torch)

    def fn(pair: Any, *, by: Any, more: Any) -> Any:
        return {"a": [torch.exp(pair[0] * by) @ more["w"], 3], "b": pair[1] * 2}

    plain = torch.ones(4, 3, dtype=torch.float64)
    out = torch.utils.checkpoint.checkpoint(fn, (plain, x), by=x, more={"w": w1}, use_reentrant=False)
    (out["a"][0].sum() + out["b"].pow(2).sum()).backward()
    return [out["a"][1], numbers(out["a"][0]), numbers(x.grad), numbers(w1.grad), plain.grad, w2.grad]


@case
def gradients_by_grad_and_of_gradients(torch: Any) -> Any:
    cp = torch.utils.checkpoint
    x, w1, w2 = layers(torch)
    fn = Counted(torch, w1, w2)
    y = cp.checkpoint(fn, x, use_reentrant=False).sum()
    gx, gw = torch.autograd.grad(y, (x, w2), create_graph=True)
    (gg,) = torch.autograd.grad(gx.pow(2).sum(), w1)
    x2, v1, v2 = layers(torch)
    z = cp.checkpoint(Counted(torch, v1, v2), x2, use_reentrant=True).sum()
    return [numbers(gx), numbers(gw), numbers(gg), message(torch.autograd.grad, z, x2), message(z.backward, inputs=[x2])]


@case
def backward_twice(torch: Any) -> Any:
    x, w1, w2 = layers(torch)
    fn = Counted(torch, w1, w2)
    y = torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [numbers(x.grad), numbers(w1.grad), fn.calls]


@case
def nested(torch: Any) -> Any:
    cp = torch.utils.checkpoint.checkpoint
    found = []
    for inner, outer in ((False, False), (True, False), (False, True)):
        x, w1, w2 = layers(torch)
        fn = Counted(torch, w1, w2)

        def both(x: Any, fn: Any = fn, inner: bool = inner) -> Any:
            return cp(fn, cp(fn, x.cos(), use_reentrant=inner).sin(), use_reentrant=inner)

        y = cp(both, x, use_reentrant=outer)
        y.sum().backward()
        found.append([numbers(y), numbers(x.grad), numbers(w1.grad), numbers(w2.grad)])
    return found


@case
def without_gradients(torch: Any) -> Any:
    x, w1, w2 = layers(torch)
    fn = Counted(torch, w1, w2)
    with torch.no_grad():
        y = torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=False)
        z = torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=True)
    return [y.requires_grad, z.requires_grad, numbers(y), fn.calls]


@case
def sequential(torch: Any) -> Any:
    found = []
    for count, segments in ((5, 2), (4, 4), (3, 1), (1, 1)):
        x, w1, w2 = layers(torch)
        steps = [Counted(torch, w1, w2) for _ in range(count)]
        y = torch.utils.checkpoint.checkpoint_sequential(steps, segments, x, use_reentrant=False)
        y.sum().backward()
        found.append([numbers(y), numbers(x.grad), [s.calls for s in steps]])
    modules = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Tanh())
    x, _, _ = layers(torch)
    y = torch.utils.checkpoint.checkpoint_sequential(modules, 2, x, use_reentrant=True)
    y.sum().backward()
    return [found, numbers(y), numbers(x.grad)]


@case
def runs_that_differ(torch: Any) -> Any:
    cp = torch.utils.checkpoint

    def run(second: Callable[[Any], Any], **options: Any) -> str:
        x, _, _ = layers(torch)
        turns = iter([lambda t: t.sin().exp(), second])
        y = cp.checkpoint(lambda t: next(turns)(t), x, use_reentrant=False, **options).sum()
        return message(y.backward)

    fewer, more = (lambda t: t.sin()), (lambda t: t.sin().exp().cos())
    other = lambda t: t[:2].sin().exp()  # noqa: E731
    return [run(fewer), run(more), run(more, early_stop=False), run(other), run(other, determinism_check="none")]


@case
def refused(torch: Any) -> Any:
    cp = torch.utils.checkpoint
    x, w1, w2 = layers(torch)
    fn = Counted(torch, w1, w2)

    def contexts() -> Any:
        return contextlib.nullcontext(), contextlib.nullcontext()

    plain = torch.ones(4, 3, dtype=torch.float64)
    return [
        message(cp.checkpoint, fn, x, use_reentrant=True, scale=2), message(cp.checkpoint, fn, x, use_reentrant=True, debug=True),
        message(cp.checkpoint, fn, x, use_reentrant=True, context_fn=contexts),
        message(cp.checkpoint, fn, x, use_reentrant=False, context_fn=contexts, debug=True),
        message(cp.checkpoint, fn, x, use_reentrant=False, determinism_check="some"),
        message(cp.checkpoint, fn, plain, use_reentrant=True), message(cp.detach_variable, [x]),
        message(cp.checkpoint_sequential, [fn], 1, x, use_reentrant=True, scale=1),
        message(cp.checkpoint, fn, x).split("passed")[0], message(cp.checkpoint_sequential, [fn], 1, x).split("passed")[0],
    ]  # fmt: skip


@case
def contexts_of_both_runs(torch: Any) -> Any:
    log: list[str] = []

    @contextlib.contextmanager
    def noting(name: str) -> Any:
        log.append(f"enter {name}")
        yield
        log.append(f"leave {name}")

    x, w1, w2 = layers(torch)
    fn = Counted(torch, w1, w2)
    y = torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=False, context_fn=lambda: (noting("first"), noting("second")))
    log.append("backward")
    y.sum().backward()
    return [numbers(x.grad), [line for line in log if line != "leave second"]]


@case
def gradient_within_the_function(torch: Any) -> Any:
    def fn(x: Any, w: Any) -> Any:
        h = (x @ w).sin()
        (g,) = torch.autograd.grad(h.sum(), x, create_graph=True)
        return h.sum() + g.pow(2).sum()

    found = []
    for early_stop in (True, False):
        x, w1, _ = layers(torch)
        y = torch.utils.checkpoint.checkpoint(fn, x, w1, use_reentrant=False, early_stop=early_stop)
        y.backward()
        found.append([numbers(y), numbers(x.grad), numbers(w1.grad)])
    return found


@case
def in_place_and_views_inside(torch: Any) -> Any:
    def fn(x: Any, w: Any) -> Any:
        h = x @ w
        h[:, 0] = h[:, 1] * 2
        h.mul_(h.detach().cos())
        return h.T[1:].exp()

    x, w1, _ = layers(torch)
    y = torch.utils.checkpoint.checkpoint(fn, x, w1, use_reentrant=False)
    y.sum().backward()
    return [numbers(y), numbers(x.grad), numbers(w1.grad)]
