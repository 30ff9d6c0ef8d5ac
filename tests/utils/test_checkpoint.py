"""Properties of checkpoints that the comparison with torch does not cover.

These are random numbers, memory, modes around the call, selective checkpoints and compilation.
"""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager import optable as ops
from eager.nn import functional as F
from eager.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("use_reentrant", [False, True])


def weights() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(6, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)


@BOTH
def test_the_second_run_draws_the_same_numbers(use_reentrant: bool) -> None:
    x, w = weights()

    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x @ w, 0.5) * torch.rand(8)

    def run(call: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        torch.manual_seed(3)
        y = call(x)
        after = torch.rand(2)  # backward's second run must not change the generator
        torch.rand(5)
        grads = torch.autograd.grad(y.sum(), (x, w)) if not use_reentrant else _backward(y, x, w)
        return [y.detach(), after, *grads, torch.rand(3)]

    kept, again = run(fn), run(lambda x: checkpoint(fn, x, use_reentrant=use_reentrant))
    for a, b in zip(kept, again, strict=True):
        assert torch.equal(a, b)


def _backward(y: torch.Tensor, *leaves: torch.Tensor) -> list[torch.Tensor]:
    for t in leaves:
        t.grad = None
    y.sum().backward()
    return [t.grad.clone() for t in leaves if t.grad is not None]


@BOTH
def test_without_the_random_state_the_second_run_draws_others(use_reentrant: bool) -> None:
    x, _ = weights()
    seen: list[list[float]] = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.rand(3).tolist())
        return x.sin()

    checkpoint(fn, x, use_reentrant=use_reentrant, preserve_rng_state=False).sum().backward()
    assert len(seen) == 2 and seen[0] != seen[1]


@BOTH
def test_the_second_run_restores_the_autocast_and_default_device_of_the_first(use_reentrant: bool) -> None:
    x, w = weights()
    seen: list[tuple[str, bool]] = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x @ w
        seen.append((y.dtype.name, torch.is_autocast_enabled("cpu")))
        return y @ w.T

    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = checkpoint(fn, x, use_reentrant=use_reentrant)
    y.float().sum().backward()
    assert seen == [("bfloat16", True)] * 2
    assert not torch.is_autocast_enabled("cpu")


def test_intermediates_of_a_checkpoint_are_freed_after_forward() -> None:
    x, w = weights()
    alive: list[weakref.ref[Any]] = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        h = (x @ w).exp()
        alive.append(weakref.ref(h.untyped_storage()))
        return h.sin().sum()

    y = checkpoint(fn, x, use_reentrant=False)
    gc.collect()
    assert alive[0]() is None
    y.backward()
    gc.collect()
    assert alive[1]() is None
    kept = fn(x)
    assert alive[2]() is not None, kept


def test_a_deleted_graph_frees_its_tensors() -> None:
    x, w = weights()
    y = checkpoint(lambda x: (x @ w).exp().sin(), x, use_reentrant=False)
    inputs = weakref.ref(x.untyped_storage())
    del x, y
    assert inputs() is None


def test_early_stop_ends_the_second_run_at_the_last_saved_tensor() -> None:
    x, _ = weights()
    ends: list[int] = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().exp()
        z = y + 1
        ends.append(1)
        return z

    checkpoint(fn, x, use_reentrant=False).sum().backward()
    assert len(ends) == 1
    checkpoint(fn, x, use_reentrant=False, early_stop=False).sum().backward()
    assert len(ends) == 3
    with set_checkpoint_early_stop(False):
        y = checkpoint(fn, x, use_reentrant=False)
    y.sum().backward()
    assert len(ends) == 5


def test_the_functions_own_error_handling_does_not_stop_the_early_stop() -> None:
    x, _ = weights()

    def fn(x: torch.Tensor) -> torch.Tensor:
        try:
            return x.sin().exp()
        except Exception:  # a user's handler must not catch the early stop
            return x

    y = checkpoint(fn, x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(g, x.sin().exp() * x.cos())


def test_debug_lists_the_ops_of_both_runs() -> None:
    x, _ = weights()
    turns = iter([lambda t: t.sin().exp(), lambda t: t.cos()])
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(lambda t: next(turns)(t), x, use_reentrant=False)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    forward, again = str(caught.value).split("Operations executed during recomputation:")
    assert "  sin(float32[6, 8])" in forward and "  exp(float32[6, 8])" in forward
    assert "  cos(float32[6, 8])" in again and "exp" not in again


def test_an_error_of_the_function_is_the_users_in_both_runs() -> None:
    x, _ = weights()
    turns = iter([lambda t: t.sin(), lambda t: t[9, 9, 9]])
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda t: 1 / 0, x, use_reentrant=False)
    y = checkpoint(lambda t: next(turns)(t), x, use_reentrant=False)
    with pytest.raises(IndexError):
        y.sum().backward()
    assert x.exp().grad_fn is not None and torch.is_grad_enabled()  # nothing stays switched
    assert x.exp().sum().grad_fn.saved_tensors is not None


@pytest.mark.parametrize("by", ["list", "function"])
def test_a_selective_checkpoint_keeps_what_the_policy_names(by: str) -> None:
    x, w = weights()
    calls: list[str] = []

    def policy(ctx: Any, op: Any, *args: Any) -> CheckpointPolicy:
        if ctx.is_recompute:
            calls.append(op.name)
        return CheckpointPolicy.MUST_SAVE if op.name == "mm" else CheckpointPolicy.PREFER_RECOMPUTE

    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w) @ w

    chosen = [ops.table.OPS["mm"]] if by == "list" else policy
    kept = fn(x)
    y = checkpoint(fn, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(chosen))
    for a, b in zip(torch.autograd.grad(y.sum(), (x, w), retain_graph=True), torch.autograd.grad(kept.sum(), (x, w)), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_invalid_selective_policies_are_refused() -> None:
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected op"):
        create_selective_checkpoint_contexts([torch.nn.functional.gelu, abs])


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.drop = torch.nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.b(F.gelu(self.a(x))))


@BOTH
@pytest.mark.parametrize("compiled", ["block", "whole"])
def test_checkpoints_and_compiled_functions_go_together(use_reentrant: bool, compiled: str) -> None:
    torch.manual_seed(1)
    block, head = Block().eval(), torch.nn.Linear(8, 1)
    inner = torch.compile(block) if compiled == "block" else block

    def model(x: torch.Tensor) -> torch.Tensor:
        h = checkpoint(inner, x.sin(), use_reentrant=use_reentrant)
        return head(checkpoint(inner, h, use_reentrant=use_reentrant)).pow(2).sum()

    def plain(x: torch.Tensor) -> torch.Tensor:
        return head(block(block(x.sin()))).pow(2).sum()

    def run(fn: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        x = torch.linspace(-1, 1, 40).reshape(5, 8).requires_grad_()
        block.zero_grad()
        y = fn(x)
        y.backward()
        return [y.detach(), x.grad, block.a.weight.grad, block.b.bias.grad]  # type: ignore[list-item]

    fn = torch.compile(model) if compiled == "whole" else model
    for _ in range(2):
        for a, b in zip(run(fn), run(plain), strict=True):
            assert torch.allclose(a, b, atol=1e-5, rtol=1e-4)


def test_a_sequential_in_parts_trains_like_the_whole() -> None:
    torch.manual_seed(2)
    model = torch.nn.Sequential(*(Block() for _ in range(5)))

    def losses(parts: int) -> list[float]:
        state = {k: v.clone() for k, v in model.state_dict().items()}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        torch.manual_seed(4)
        found = []
        for _ in range(3):
            x = torch.randn(4, 8)
            y = checkpoint_sequential(model, parts, x, use_reentrant=False) if parts else model(x)
            loss = y.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        model.load_state_dict(state)
        return found

    assert losses(2) == losses(5) == losses(0)
