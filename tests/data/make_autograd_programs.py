"""Random programs of views, in-place writes and no_grad blocks, and their values, flags and gradients.

`python tests/data/make_autograd_programs.py`, run with torch, writes autograd_programs.json.
tests/autograd/test_programs.py compares eager with that file.
"""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

COUNT = 250
FILE = Path(__file__).parent / "autograd_programs.json"
STEPS = ("mul exp sin view slice select transpose add_ mul_ copy_ sin_ setitem detach no_grad expand clone stack fill_ unbind "
         "data").split()  # fmt: skip


def _step(torch: Any, r: random.Random, kind: str, tensors: list[Any]) -> None:
    """Run one step on tensors drawn from the list and append its result to the list."""
    a, b = tensors[r.randrange(len(tensors))], tensors[r.randrange(len(tensors))]
    coin = r.random() < 0.5
    if kind == "no_grad":
        with torch.no_grad():
            tensors.append(a.view(-1) if coin else a * 2)
        return
    made = {
        "mul": lambda: a.reshape(-1)[:2] * b.reshape(-1)[:2], "exp": lambda: (a * 0.3).exp(), "sin": lambda: a.sin(),
        "view": lambda: a.view(-1) if coin else a.view(2, -1), "slice": lambda: a[int(coin):], "select": lambda: a[0],
        "transpose": lambda: a.t() if a.ndim == 2 else a.unsqueeze(0), "add_": lambda: a.add_(b.sum() * 0.1),
        "mul_": lambda: a.mul_(b.mean()), "copy_": lambda: a.copy_(b.sum() * 2), "sin_": lambda: a.sin_(),
        "setitem": lambda: a.__setitem__((..., 0), b.sum()), "detach": lambda: a.detach(),
        "expand": lambda: a.unsqueeze(0).expand(2, *a.shape), "clone": lambda: a.clone(),
        "stack": lambda: torch.stack([a, a], 0).sum(0), "fill_": lambda: a.zero_() if coin else a.fill_(0.5),
        "unbind": lambda: a.unbind(0)[0], "data": lambda: a.data,
    }[kind]()  # fmt: skip
    if made is not None and not kind.endswith("_"):
        tensors.append(made)


def _rounded(values: Any) -> Any:
    if isinstance(values, list):
        return [_rounded(v) for v in values]
    return float(f"{values:.10g}")


def run(torch: Any, seed: int) -> dict[str, Any]:
    """Outcome of a program: the name or the error of each step, then flags, values and gradients of its tensors."""
    r = random.Random(seed)
    leaves = [torch.tensor([r.randint(1, 5) / 4 for _ in range(6)], dtype=torch.float64).requires_grad_() for _ in range(2)]
    tensors = [leaves[0] * 1.5, leaves[1] * 1.5, torch.ones(6, dtype=torch.float64), leaves[0]]
    steps = []
    for _ in range(r.randint(3, 9)):
        kind = r.choice(STEPS)
        try:
            _step(torch, r, kind, tensors)
            steps.append(kind)
        except (RuntimeError, IndexError) as e:
            steps.append(f"{kind}: {type(e).__name__}: {str(e).split('.')[0][:60]}")
    found: dict[str, Any] = {"steps": steps}
    try:
        total = sum((t * (i + 1)).sum() for i, t in enumerate(tensors))
    except RuntimeError as e:
        return found | {"unreadable": str(e).split(".")[0][:60]}
    found["flags"] = [f"{int(t.requires_grad)}{int(t.is_leaf)}{int(t._is_view())}{t._version}" for t in tensors]
    found["values"] = [_rounded(t.detach().reshape(-1).tolist()) for t in tensors]
    try:
        first = torch.autograd.grad(total, leaves, allow_unused=True, create_graph=True)
    except RuntimeError as e:
        return found | {"error": str(e).split(":")[0][:80]}
    found["first"] = [_rounded([0.0] * 6 if g is None else g.tolist()) for g in first]
    squares = sum((g * g).sum() for g in first if g is not None)
    second: Any = torch.autograd.grad(squares, leaves, allow_unused=True) if squares.requires_grad else [None, None]
    return found | {"second": [_rounded([0.0] * 6 if g is None else g.tolist()) for g in second]}


def main() -> None:
    import torch

    FILE.write_text("[\n" + ",\n".join(json.dumps(run(torch, seed)) for seed in range(COUNT)) + "\n]\n")


if __name__ == "__main__":
    main()
