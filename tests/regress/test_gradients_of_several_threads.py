"""Backward passes in several threads at once, over a leaf that they share: the leaf gets the sum of all their gradients, as in torch."""
from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.tape import node

THREADS = 4
PASSES = 200

pytestmark = pytest.mark.usefixtures("switches_often")


@pytest.mark.parametrize("size", [3, 400_000])  # additions of many elements release the lock of the interpreter
def test_no_gradient_is_lost(size: int) -> None:
    w, g = torch.ones(size, requires_grad=True), torch.ones(size)
    w.grad = torch.zeros(size)

    def work(_: int) -> None:
        for _ in range(PASSES):
            w.backward(g)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert w.grad.unique().tolist() == [THREADS * PASSES]


@pytest.mark.parametrize("is_copied", [False, True])  # whether the second gradient, too, is stored as a copy
def test_a_first_gradient_is_not_lost_while_another_first_gradient_is_copied(is_copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    w, g = torch.ones(3, requires_grad=True), torch.ones(3)
    first_gradient, others = node.first_gradient, []

    def another() -> None:
        w.backward(g) if is_copied else (w * 1).backward(g)

    def copied_meanwhile(*args: Any) -> Any:
        made = first_gradient(*args)
        if not others:
            others.append(threading.Thread(target=another))
            others[0].start()
            others[0].join(timeout=0.3)  # it waits for this pass, or has run
        return made

    monkeypatch.setattr(node, "first_gradient", copied_meanwhile)
    w.backward(g)
    others[0].join()
    assert w.grad.tolist() == [2.0] * 3 and g.tolist() == [1.0] * 3


def test_a_node_that_is_released_during_its_step() -> None:
    """A formula of the step runs Python code, as do the threads that share the graph; here that code runs the graph and releases it."""
    code = """
import eager as torch
from eager.optable.table import Op

rules, inside = Op._gradient_rules, []
x = torch.full((3,), 0.5, requires_grad=True)
y = x.erfinv()

def released_meanwhile(op):
    if op.name == "erfinv" and not inside:
        inside.append(op)
        y.backward(torch.ones(3))
        others = [(None,) * n for n in range(1, 8) for _ in range(50)]  # in the memory that was freed
    return rules(op)

Op._gradient_rules = released_meanwhile
y.backward(torch.ones(3))
assert inside
torch.testing.assert_close(x.grad, 2 * torch.full((3,), 0.5).erfinv().square().exp() * torch.pi ** 0.5 / 2)
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
