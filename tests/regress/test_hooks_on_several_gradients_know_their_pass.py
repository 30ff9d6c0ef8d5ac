"""Hooks on several gradients distinguish the backward passes of several threads, and a pass that failed from the next pass."""
from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

import eager as torch
from eager.autograd.graph import register_multi_grad_hook


def _leaves() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)


def test_a_pass_after_a_pass_that_failed_drops_its_gradients() -> None:
    x, y = _leaves()
    seen: list[Any] = []
    gradients: list[weakref.ref[Any]] = []

    def fail(_: Any) -> None:
        raise ValueError("a hook of the program")

    x.register_hook(lambda g: gradients.append(weakref.ref(g)))
    y.register_hook(fail)
    register_multi_grad_hook([x, y], lambda gs: seen.append([None if g is None else g.item() for g in gs]))
    with pytest.raises(ValueError, match="a hook of the program"):
        (y * 7 + x * 7).backward()  # the gradient of x comes first
    x.grad = None
    (x * 5).backward()
    assert seen == [[5.0, None]] and gradients[0]() is None


@pytest.mark.parametrize("mode", ["any", "all"])
def test_a_pass_in_another_thread_meanwhile(mode: Any) -> None:
    x, y = _leaves()
    seen: list[Any] = []
    others: list[threading.Thread] = []

    def run_another(_: Any) -> None:
        if not others:
            others.append(threading.Thread(target=lambda: (x * 5 + y * 6).backward()))
            others[0].start()
            others[0].join()

    register_multi_grad_hook([x, y], lambda g: seen.append(g.item() if mode == "any" else [one.item() for one in g]), mode=mode)
    x.register_hook(run_another)  # between the first and the second gradient of this pass
    y.register_hook(run_another)
    (x * 7 + y * 8).backward()
    assert len(seen) == 2
    if mode == "all":
        assert seen == [[5.0, 6.0], [7.0, 8.0]]
