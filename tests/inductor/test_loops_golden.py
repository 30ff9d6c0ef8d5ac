"""The loops of twelve typical graphs, as TORCH_LOGS=loops prints them.

    python -m tests.inductor.test_loops_golden          # rewrites the file after a change of the heuristics

The difference between two versions of the file shows the effect of a change of the heuristics on typical kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.trace.trace import trace
from inductor.loops.steps import to_text
from inductor.lowering import lower
from inductor.plan.heuristics import schedule_step
from inductor.plan.schedule import Nest, in_memory, loop_nest, row_local, schedule

FILE: Final = Path(__file__).with_name("golden_loops.txt")
X, Y, B = torch.zeros(48, 80), torch.zeros(48, 80), torch.zeros(80)
IMAGE = torch.zeros(2, 6, 9, 10)

GRAPHS: Final[dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]]] = {
    "pointwise": (lambda x, y: (torch.relu(x * 2 + y),), (X, Y)),
    "bias and gelu": (lambda x, b: (F.gelu(x + b),), (X, B)),
    "transposed operand": (lambda x, z: (x + z.t(),), (torch.zeros(64, 80), torch.zeros(80, 64))),
    "softmax": (lambda x: (torch.softmax(x, -1),), (X,)),
    "layer norm": (lambda x, b: (F.layer_norm(x, (80,), b, b),), (X, B)),
    "sum of rows": (lambda x: (x.sum(1),), (X,)),
    "sum of columns": (lambda x: (x.sum(0),), (X,)),
    "sum of everything": (lambda x: (x.square().sum(),), (torch.zeros(300, 100),)),
    "batch statistics": (lambda x: (x.mean((0, 2, 3)), x.var((0, 2, 3))), (IMAGE,)),
    "cat": (lambda x, y: (torch.cat([x, y], 1) * 2,), (X, Y)),
    "first greatest element": (lambda x: (x.argmax(1),), (X,)),
    "gather": (lambda x, i: (x[i] + 1,), (X, torch.zeros(7, dtype=torch.int64))),
}


def loops_of(name: str) -> str:
    """The schedule and the loops of each kernel of a graph."""
    fn, inputs = GRAPHS[name]
    made = schedule(lower(trace(fn, [fake_like(t) for t in inputs])))
    nests = {i: loop_nest(s) for i, s in enumerate(made.steps) if isinstance(s, Nest)}
    memory = in_memory(made, nests)
    local = row_local(made, nests, memory)
    lines = [f"== {name}"]
    for i, step in enumerate(made.steps):
        assert isinstance(step, Nest)
        dtypes = {n: b.layout.dtype for n, b in made.program.buffers.items()}
        kernel, steps = schedule_step(step, dtypes, memory - local[i].keys())
        lines += [f"-- {to_text(steps)}", str(kernel)]
    return "\n".join(lines)


def _wanted() -> dict[str, str]:
    texts = ["== " + part.rstrip("\n") for part in FILE.read_text().split("== ")[1:]]
    return {t.partition("\n")[0].removeprefix("== "): t for t in texts}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_loops_of_a_typical_graph(name: str) -> None:
    assert loops_of(name) == _wanted()[name]


if __name__ == "__main__":
    FILE.write_text("\n\n".join(map(loops_of, GRAPHS)) + "\n")

