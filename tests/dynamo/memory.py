"""`python -m tests.dynamo.memory [CYCLES [CALLS]]`: does memory grow over compile-reset cycles, or over warm calls?

Prints the resident size and the number of objects before and after each half of either loop; the second half must not
add memory that grows with the count. Exit status 1 if it does.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dynamo
import eager as torch

SLACK_BYTES, SLACK_OBJECTS = 3 << 20, 200  # the usage of allocators and caches of the interpreter varies


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.inner(x)) + 1


def cycle() -> None:
    """Compile functions with inlining, a caught exception, a generator, breaks and a module; call them; reset."""

    def rows(x):
        try:
            yield from x
        finally:
            dynamo.graph_break()

    def f(x, n):
        total = x
        for row in rows(x):
            total = total + row * n
        try:
            raise ValueError(n)
        except ValueError as error:
            kept = error
        dynamo.graph_break()
        return total, kept.args, list(range(n))

    for fn, args in ((f, (torch.ones(2, 4), 3)), (Block(), (torch.ones(2, 4),))):
        compiled = dynamo.compile(fn, backend="eager")
        compiled(*args)
        compiled(*args)
    gradients(dynamo.compile(Twice.apply, backend="aot_eager"))
    dynamo.reset()


class Twice(torch.autograd.Function):
    """A function whose backward is captured into a separate graph."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * 2


def gradients(compiled: Callable[..., Any]) -> None:
    """A gradient of a gradient through a compiled function."""
    x = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    g.sum().backward()


def warm_call() -> Callable[[], object]:
    def f(x, items, options):
        y = x * options["scale"] + items[0]
        dynamo.graph_break()
        return y.sum()

    compiled = dynamo.compile(f, backend="eager")
    x, items, options = torch.ones(2, 4), [torch.ones(4)], {"scale": 2}
    return lambda: compiled(x, items, options)


def warm_gradients() -> Callable[[], object]:
    compiled = dynamo.compile(Twice.apply, backend="aot_eager")
    return lambda: gradients(compiled)


def growth(step: Callable[[], object], count: int) -> tuple[int, int]:
    """The growth over the second half of `count` steps: (bytes, objects)."""
    for _ in range(max(count // 10, 5)):
        step()
    readings = []
    for _ in range(2):
        for _ in range(count // 2):
            step()
        gc.collect()
        readings.append((resident_bytes(), len(gc.get_objects())))
    return readings[1][0] - readings[0][0], readings[1][1] - readings[0][1]


def main() -> int:
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    grew = False
    for what, step, count in (("compile-reset cycles", cycle, cycles), ("warm calls", warm_call(), calls),
                              ("warm gradients of gradients", warm_gradients(), calls // 50)):  # fmt: skip
        more, objects = growth(step, count)
        grew |= more > SLACK_BYTES or objects > SLACK_OBJECTS
        print(f"{count} {what}: the second half leaves {more / 2**20:.2f} MiB and {objects} objects", flush=True)
    return int(grew)


if __name__ == "__main__":
    sys.exit(main())
