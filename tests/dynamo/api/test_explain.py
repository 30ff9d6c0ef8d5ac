"""Output of explain() and explain_guards(): the user's lines first; lines of modules and of the library are folded."""

from __future__ import annotations

from typing import Any

import eager as torch
from eager import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)])

    def forward(self, x: Any) -> Any:
        x = self.layers(x)
        if x.sum() > 1e9:
            x = x + 1
        torch._dynamo.graph_break()
        return x * 2


def test_reports_show_the_users_frames_and_fold_the_guards_of_modules() -> None:
    found = torch._dynamo.explain(Net())(torch.ones(2, 4))
    text = str(found)
    assert "dynamo/compilation/module.py" not in text and "call_module" not in text
    assert "torch._dynamo.graph_break() was called" in text
    lines = [line for line in text.splitlines() if line.startswith("Guard:")]
    assert len(lines) < 30 and "Guard: modules, their parameters" in lines[-2] and "Guard: the library's own" in lines[-1]
    assert len(found.report(verbose=True).splitlines()) > len(text.splitlines()) + 100
    for reason in found.break_reasons:
        assert [frame.name for frame in reason.user_stack] == ["Net.forward"]


def test_guards_are_explained_in_few_lines() -> None:
    compiled, x = torch.compile(Net(), backend="eager"), torch.ones(2, 4)
    compiled(x)
    found = torch._dynamo.explain_guards(compiled, x)
    assert len(str(found).splitlines()) < 16 < 100 < len(found.report(verbose=True).splitlines())
    assert "module.py" not in str(found)
    assert all(g.cost_ns is not None for g in found.folded)


def test_a_stack_through_the_library_names_the_users_frames() -> None:
    class Breaks(nn.Module):
        def forward(self, x: Any) -> Any:
            return self.helper(x) + 1

        def helper(self, x: Any) -> Any:
            return x * float(x.sum())

    found = torch._dynamo.explain(nn.Sequential(nn.Identity(), Breaks()))(torch.ones(3))
    (stack,) = [[frame.name.rpartition(".")[2] for frame in reason.user_stack] for reason in found.break_reasons]
    assert stack == ["forward", "helper"]
