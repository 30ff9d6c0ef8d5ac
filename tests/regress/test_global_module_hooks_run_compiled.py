"""Global module hooks, and the hooks of a compiled module itself, run in compiled code as in eager code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import eager as torch
from eager import nn
from eager.nn.modules import module as hooks

Log = list[Any]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.rest = nn.Sequential(nn.Tanh(), nn.Linear(3, 3))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.seen = torch.ones(1)
        return nn.Tanh()(self.rest(self.first(x)) + self.seen)


def _noted(log: Log, label: str, result: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
    def hook(module: Any, *args: Any) -> Any:
        log.append((label, type(module).__name__, len(args)))
        return result(*args)

    return hook


REGISTRATIONS: dict[str, Callable[[Log], Any]] = {
    "forward_pre": lambda log: hooks.register_module_forward_pre_hook(_noted(log, "pre", lambda args: (args[0] * 2,))),
    "forward": lambda log: hooks.register_module_forward_hook(_noted(log, "forward")),
    "forward_changes": lambda log: hooks.register_module_forward_hook(_noted(log, "forward", lambda _, out: out * 2)),
    "forward_kwargs": lambda log: hooks.register_module_forward_hook(_noted(log, "forward"), with_kwargs=True),
    "forward_always": lambda log: hooks.register_module_forward_hook(_noted(log, "forward"), always_call=True),
    "backward": lambda log: hooks.register_module_full_backward_hook(_noted(log, "backward")),
    "backward_changes": lambda log: hooks.register_module_full_backward_hook(_noted(log, "b", lambda g, _: tuple(t * 3 for t in g))),
    "backward_old": lambda log: hooks.register_module_backward_hook(_noted(log, "backward")),
    "backward_pre": lambda log: hooks.register_module_full_backward_pre_hook(_noted(log, "b", lambda g: tuple(t * 2 for t in g))),
    "buffer": lambda log: hooks.register_module_buffer_registration_hook(_noted(log, "buffer", lambda _, value: value + 1)),
    "parameter": lambda log: hooks.register_module_parameter_registration_hook(_noted(log, "parameter")),
    "module": lambda log: hooks.register_module_module_registration_hook(_noted(log, "module")),
}


@pytest.fixture(params=["eager", "aot_eager"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with torch._dynamo.config.patch(recompile_limit=64):
        yield request.param


def _run(fn: Any, net: Net, case: str) -> tuple[Log, Any, Any, Any]:
    log: Log = []
    net.zero_grad()
    x = torch.ones(2, 3, requires_grad=True)
    with ExitStack() as stack:
        if case != "none":
            stack.enter_context(REGISTRATIONS[case](log))
        y = fn(x)
        (y * y).sum().backward()
    return log, y.detach(), x.grad, net.first.weight.grad


def test_global_hooks_run_and_their_registration_is_noticed(backend: str) -> None:
    net = Net()
    compiled = torch.compile(net, backend=backend)
    cases = [name for case in REGISTRATIONS for name in ("none", case)]
    for case in [*cases, "none", *REGISTRATIONS]:  # the second time from variants compiled before
        log, *values = _run(net, net, case)
        got_log, *got = _run(compiled, net, case)
        assert got_log == log, case
        for a, b in zip(got, values, strict=True):
            torch.testing.assert_close(a, b, msg=case)


def test_global_hooks_run_in_modules_compiled_in_place() -> None:
    net, log = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), []
    net.compile(backend="eager")
    x = torch.ones(2, 3)
    plain = net(x)
    with hooks.register_module_forward_hook(_noted(log, "forward", lambda _, out: out + 1)):
        assert not torch.equal(net(x), plain)
    assert [name for _, name, _ in log] == ["Linear", "Tanh", "Sequential"]
    assert torch.equal(net(x), plain)


@pytest.mark.parametrize("kind", ["forward_pre_hook", "forward_hook", "full_backward_hook", "full_backward_pre_hook", "backward_hook"])
def test_hooks_of_a_compiled_module_itself_run(kind: str) -> None:
    net, log = nn.Linear(3, 3), []
    compiled = torch.compile(net, backend="eager")
    x = torch.ones(2, 3, requires_grad=True)
    compiled(x).sum().backward()
    handle = getattr(compiled, f"register_{kind}")(_noted(log, kind))
    compiled(x).sum().backward()
    assert [(label, name) for label, name, _ in log] == [(kind, "OptimizedModule")]
    handle.remove()
    compiled(x).sum().backward()
    assert len(log) == 1
