"""Random programs over sizes: chains of steps that map a matrix to a matrix and read the matrix's shape."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import eager as torch
from eager.nn import functional as F

Step = Callable[[Any], Any]


def _halves(x: Any) -> Any:
    n = x.shape[0] // 2 * 2
    return x[:n].view(n // 2, 2, -1).sum(1) if n else x


def _shifted(x: Any) -> Any:
    y = x.new_zeros(x.shape[0] + 1, x.shape[1])
    y[1:] = x
    y[:-1] += x
    return y


def _looped(x: Any) -> Any:
    total = x
    for i in range(min(x.shape[0] // 2, 3)):
        total = total + x[i] * (i + 1)
    return total


def _branched(x: Any) -> Any:
    if x.shape[0] > 5:
        return x * 2
    return x.t() if x.shape[0] == x.shape[1] else x - 1


def _heads(x: Any) -> Any:
    n, m = x.shape
    heads = 2 if m % 2 == 0 else 1
    q = x.view(n, heads, m // heads).transpose(0, 1)
    return F.scaled_dot_product_attention(q, q, q).transpose(0, 1).reshape(n, m)


def _convolved(x: Any) -> Any:
    weight = torch.ones(2, x.shape[0], 3) / 3
    return F.conv1d(x.unsqueeze(0), weight, padding=x.shape[0] % 3)[0]


def _split(x: Any) -> Any:
    parts = x.split(max(x.shape[0] // 2, 1))
    return torch.cat(parts[::-1]) + len(parts)


STEPS: dict[str, Step] = {
    "halves": _halves,
    "shifted": _shifted,
    "looped": _looped,
    "branched": _branched,
    "heads": _heads,
    "convolved": _convolved,
    "split": _split,
    "turned": lambda x: x.reshape(-1, x.shape[0]),
    "flat and back": lambda x: x.t().reshape(-1).view(x.shape[1], -1),
    "t": lambda x: x.t(),
    "twice": lambda x: torch.cat([x, x[: (x.shape[0] + 1) // 2]]),
    "first half": lambda x: x[: max(x.shape[0] // 2, 1)],
    "rest": lambda x: x[x.shape[0] // 3 :],
    "every other": lambda x: x[::2],
    "from the end": lambda x: x[-min(x.shape[0], 3) :],
    "columns": lambda x: x[:, x.shape[1] // 2 :],
    "padded": lambda x: F.pad(x, (0, x.shape[1] % 3, 1, 0)),
    "gram": lambda x: x @ x.t() / x.shape[1],
    "covariance": lambda x: (x.t() @ x) / (x.shape[0] + 1),
    "scaled": lambda x: x * float(x.shape[1]) ** -0.5,
    "rooted": lambda x: x / math.sqrt(x.shape[0] + 1),
    "positions": lambda x: x + torch.arange(x.shape[0])[:, None] * 0.1,
    "backwards": lambda x: x + torch.arange(x.shape[1] - 1, -1, -1) / x.shape[1],
    "linspace": lambda x: x * torch.linspace(0, 1, x.shape[1]),
    "softmax": lambda x: x.softmax(-1) * x.shape[1],
    "centred": lambda x: x - x.mean(0, keepdim=True),
    "normed": lambda x: F.layer_norm(x, x.shape[-1:]),
    "running": lambda x: x.cumsum(0) / x.shape[0],
    "flipped": lambda x: x.flip(0),
    "rolled": lambda x: x.roll(x.shape[0] // 2, 0),
    "repeated": lambda x: x.repeat(2, 1) if x.shape[0] < 6 else x.repeat(1, 2),
    "lower": lambda x: x.tril(x.shape[0] % 2),
    "gathered": lambda x: x.index_select(0, torch.arange(0, x.shape[0], 2)),
    "picked": lambda x: x[torch.arange(x.shape[0]) % max(x.shape[0] - 1, 1)],
    "filled": lambda x: x.masked_fill(torch.arange(x.shape[1]) < x.shape[1] // 2, 0.5),
    "outer": lambda x: x[:, :1] * x[-1:, :],
    "widened": lambda x: x[:, :1].expand(-1, x.shape[1] + 1).contiguous() + x.shape[0],
    "maxima": lambda x: x.unfold(0, min(2, x.shape[0]), 1).amax(-1),
    "sorted": lambda x: x.sort(-1).values,
    "top": lambda x: x.topk(min(2, x.shape[1]), dim=1).values,
    "diagonal": lambda x: x + torch.eye(x.shape[0], x.shape[1]),
    "pooled": lambda x: F.avg_pool1d(x.unsqueeze(0), 2, 1, int(x.shape[1] == 1))[0],
    "bent": lambda x: torch.where(x > 0, x, x * (x.shape[0] % 4)),
    "stacked": lambda x: torch.stack([x, x * 2], 1).view(-1, x.shape[1]),
    "written": lambda x: x.clone().index_fill_(0, torch.tensor([0]), float(x.shape[0])),
    "interpolated": lambda x: F.interpolate(x[None], size=x.shape[1] + 1)[0],
}


class Program:
    """A chain of steps chosen by `seed`. Returns the last matrix, a number computed from its shape, and a mean.

    Each step's result is cut to 12 x 12.
    """

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)
        self.seed = seed
        self.names = [pick.choice(list(STEPS)) for _ in range(pick.randint(2, 6))]
        self.dynamic = pick.choice([None, None, True])
        sizes = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)
        a, b = pick.choice(sizes[3:]), pick.choice(sizes[3:])
        self.shapes = [(a, b), *((pick.choice(sizes) if pick.random() < 0.8 else a, pick.choice(sizes) if pick.random() < 0.5 else b)
                                 for _ in range(6))]  # fmt: skip

    def __repr__(self) -> str:
        return f"Program({self.seed}): {' > '.join(self.names)}, dynamic={self.dynamic}, {self.shapes}"

    def __call__(self, x: Any) -> Any:
        for name in self.names:
            x = STEPS[name](x)[:12, :12]
        return x, x.shape[0] * 2 + x.shape[1], x.sum() / x.numel()

    def inputs(self, k: int) -> Any:
        """The matrix of call k."""
        n, m = self.shapes[k]
        return (torch.arange(float(n * m)).view(n, m) * 0.37 + self.seed).cos().requires_grad_()

    def run(self, fn: Any, k: int) -> Any:
        """(results, gradient) of call k, or the class of the exception that it raises."""
        x = self.inputs(k)
        try:
            y, number, mean = fn(x)
        except Exception as error:  # noqa: BLE001 - compiled code must raise eager's error
            return type(error).__name__
        ((y * y).mean() + mean).backward()
        return y.detach(), number, mean.detach(), x.grad
