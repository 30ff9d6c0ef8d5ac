"""Steps of optimizers in several threads at once: no step reads the scratch memory of another thread."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import eager as torch

THREADS = 4
STEPS = 60
SIZE = 40_000  # elements: numpy releases the lock of the interpreter in each operation

pytestmark = pytest.mark.usefixtures("switches_often")


def _train(k: int) -> torch.Tensor:
    p = torch.nn.Parameter(torch.full((SIZE,), float(k + 1)))
    optimizer = torch.optim.SGD([p], lr=0.01, momentum=0.9, weight_decay=0.1, nesterov=True)
    for _ in range(STEPS):
        p.grad = torch.full((SIZE,), float(k))
        optimizer.step()
    return p.detach()


def test_optimizers_in_several_threads_do_not_share_scratch_memory() -> None:
    wanted = [_train(k) for k in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(_train, range(THREADS)))
    assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))
