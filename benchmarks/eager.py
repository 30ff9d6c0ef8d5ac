"""`python -m benchmarks eager`: the cost of eager calls, framejit's beside torch's.

Owns the dispatch of small calls, with and without gradients, and the kernels in which models spend their time. The same worker
code runs under both libraries, in separate processes that take turns; a figure is the median of the rounds' best times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

from benchmarks.harness import Figure

# (name, set-up, statement, unit). Set-up and statement see `torch` and `F`; `leaf` makes a leaf that requires grad.
_SMALL = "x, y = torch.ones(8), torch.ones(8)"
_MATRIX = "x, y = torch.randn(8, 8), torch.randn(8, 8)"
CASES: tuple[tuple[str, str, str, str], ...] = (
    ("x + y, 8 elements", _SMALL, "x + y", "us"),
    ("x + y, 8 elements, with gradient", "x, y = leaf(8), leaf(8)", "x + y", "us"),
    ("x * 2.0, 8 elements, with gradient", "x = leaf(8)", "x * 2.0", "us"),
    ("exp, 8 elements", _SMALL, "torch.exp(x)", "us"),
    ("relu, 8 elements, with gradient", "x = leaf(8)", "F.relu(x)", "us"),
    ("x > y, 8 elements", _SMALL, "x > y", "us"),
    ("sum, 8 elements", _SMALL, "x.sum()", "us"),
    ("view, 8 x 8", _MATRIX, "x.view(64)", "us"),
    ("transpose, 8 x 8, with gradient", "x = leaf(8, 8)", "x.transpose(0, 1)", "us"),
    ("x[1], 8 x 8", _MATRIX, "x[1]", "us"),
    ("x[:, 1:3], 8 x 8", _MATRIX, "x[:, 1:3]", "us"),
    ("cat of two, 8 x 8", _MATRIX, "torch.cat([x, y])", "us"),
    ("x @ y, 8 x 8", _MATRIX, "x @ y", "us"),
    ("linear, 8 x 8, with gradient", "x, w, b = leaf(8, 8), leaf(8, 8), leaf(8)", "F.linear(x, w, b)", "us"),
    ("softmax, 8 x 8", _MATRIX, "torch.softmax(x, -1)", "us"),
    ("forward and backward of (x * y).sum(), 8", "x, y = leaf(8), leaf(8)", "(x * y).sum().backward()", "us"),
    ("view, 8 x 8, with gradient", "x = leaf(8, 8)", "x.view(64)", "us"),
    ("cat of two, 8 x 8, with gradient", "x, y = leaf(8, 8), leaf(8, 8)", "torch.cat([x, y])", "us"),
    ("layer_norm, 8 x 8", "x, w, b = torch.randn(8, 8), torch.ones(8), torch.ones(8)", "F.layer_norm(x, (8,), w, b)", "us"),
    ("embedding, 4 of 8 x 8", "i, w = torch.randint(0, 8, (4,)), torch.randn(8, 8)", "F.embedding(i, w)", "us"),
    ("cross_entropy, 4 x 8, forward and backward", "x, y = leaf(4, 8), torch.randint(0, 8, (4,))",
     "F.cross_entropy(x, y).backward()", "us"),
    ("perceptron 8-16-4, forward and backward",
     "m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))\nx = torch.randn(4, 8)",
     "m(x).sum().backward()", "us"),
    ("x + y, 1M elements", "x, y = torch.randn(1 << 20), torch.randn(1 << 20)", "x + y", "ms"),
    ("sum, 4M elements", "x = torch.randn(1 << 22)", "x.sum()", "ms"),
    ("mean of rows, 1024 x 1024", "x = torch.randn(1024, 1024)", "x.mean(1)", "ms"),
    ("transposing copy, 2048 x 1024", "x = torch.randn(2048, 1024)", "x.t().contiguous()", "ms"),
    ("exp, 1M elements", "x = torch.randn(1 << 20)", "torch.exp(x)", "ms"),
    ("gelu, 1024 x 3072", "x = torch.randn(1024, 3072)", "F.gelu(x)", "ms"),
    ("softmax, 4096 x 1024", "x = torch.randn(4096, 1024)", "torch.softmax(x, -1)", "ms"),
    ("layer_norm, 4096 x 768", "x, w, b = torch.randn(4096, 768), torch.ones(768), torch.ones(768)",
     "F.layer_norm(x, (768,), w, b)", "ms"),
    ("layer_norm, forward and backward", "x, w, b = leaf(4096, 768), leaf(768), leaf(768)",
     "F.layer_norm(x, (768,), w, b).sum().backward()", "ms"),
    ("cross_entropy, 1024 x 8192, forward and backward", "x, y = leaf(1024, 8192), torch.randint(0, 8192, (1024,))",
     "F.cross_entropy(x, y).backward()", "ms"),
    ("attention, 8 x 12 x 128 x 64", "q, k, v = (torch.randn(8, 12, 128, 64) for _ in range(3))",
     "F.scaled_dot_product_attention(q, k, v)", "ms"),
    ("attention, causal, forward and backward", "q, k, v = (leaf(4, 12, 256, 64) for _ in range(3))",
     "F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()", "ms"),
    ("linear, 1024 x 768 -> 3072", "x, w, b = torch.randn(1024, 768), torch.randn(3072, 768), torch.randn(3072)",
     "F.linear(x, w, b)", "ms"),
    ("conv2d 3 x 3, 8 x 64 x 56 x 56", "x, w = torch.randn(8, 64, 56, 56), torch.randn(64, 64, 3, 3)",
     "F.conv2d(x, w, padding=1)", "ms"),
    ("conv2d, forward and backward", "x, w = leaf(8, 64, 28, 28), leaf(64, 64, 3, 3)",
     "F.conv2d(x, w, padding=1).sum().backward()", "ms"),
    ("conv2d 3 x 3, depthwise, 8 x 64 x 56 x 56", "x, w = torch.randn(8, 64, 56, 56), torch.randn(64, 1, 3, 3)",
     "F.conv2d(x, w, padding=1, groups=64)", "ms"),
    ("conv2d 7 x 7, stride 2, 8 x 3 x 224 x 224", "x, w = torch.randn(8, 3, 224, 224), torch.randn(64, 3, 7, 7)",
     "F.conv2d(x, w, stride=2, padding=3)", "ms"),
    ("batch_norm, 8 x 64 x 56 x 56, training", "x, m = torch.randn(8, 64, 56, 56), torch.nn.BatchNorm2d(64)", "m(x)", "ms"),
    ("max_pool2d, 8 x 64 x 56 x 56", "x = torch.randn(8, 64, 56, 56)", "F.max_pool2d(x, 2)", "ms"),
    ("max_pool2d, forward and backward", "x = leaf(8, 64, 56, 56)", "F.max_pool2d(x, 3, 2, 1).sum().backward()", "ms"),
    ("avg_pool2d, 8 x 64 x 56 x 56", "x = torch.randn(8, 64, 56, 56)", "F.avg_pool2d(x, 2)", "ms"),
    ("embedding, 8192 of 32000 x 512", "i, w = torch.randint(0, 32000, (8192,)), torch.randn(32000, 512)", "F.embedding(i, w)", "ms"),
    ("AdamW step, 4M parameters", "ps = [leaf(1024, 1024) for _ in range(4)]\nfor p in ps: p.grad = torch.randn(1024, 1024)\n"
     "o = torch.optim.AdamW(ps)", "o.step()", "ms"),
    ("randn, 1M elements", "", "torch.randn(1 << 20)", "ms"),
)  # fmt: skip

# Runs as `python -c WORKER library`, cases on stdin; prints one JSON object, name -> seconds of one call.
_WORKER = r"""
import sys, time, json, importlib
torch = importlib.import_module(sys.argv[1])
F = importlib.import_module(sys.argv[1] + ".nn.functional")
def leaf(*shape):
    return torch.randn(*shape).requires_grad_()
def best(run):
    run(3)
    t0 = time.perf_counter(); run(1); once = time.perf_counter() - t0
    number = max(1, min(5000, int(0.01 / max(once, 1e-7))))
    times = []
    for _ in range(7):
        t0 = time.perf_counter(); run(number); times.append((time.perf_counter() - t0) / number)
    return min(times)
found = {}
for name, setup, statement, unit in json.load(sys.stdin):
    scope = {"torch": torch, "F": F, "leaf": leaf}
    exec(setup, scope)
    exec("def run(number):\n for _ in range(number): " + statement, scope)
    found[name] = best(scope["run"])
print(json.dumps(found))
"""


def _measure(python: str, library: str, cases: tuple[tuple[str, str, str, str], ...]) -> dict[str, float]:
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([python, "-c", _WORKER, library], input=json.dumps(cases), env=kept, capture_output=True,
                          text=True, timeout=600, check=False)  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"eager: {python} could not measure {library}:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def figures(*, rounds: int, torch_at: str | None, only: str | None) -> list[Figure]:
    """Measure every case, or the cases whose name contains `only`. torch_at: an interpreter that has torch, or None.

    If torch is measured, a dispatch figure (in us) has a limit: torch's.
    """
    cases = tuple(c for c in CASES if only is None or only in c[0])
    own: list[dict[str, float]] = []
    peer: list[dict[str, float]] = []
    for _ in range(rounds):
        own.append(_measure(sys.executable, "eager", cases))
        if torch_at is not None:
            peer.append(_measure(torch_at, "torch", cases))
    found = []
    for name, _, _, unit in cases:
        scale = {"us": 1e6, "ms": 1e3}[unit]
        theirs = median(r[name] for r in peer) * scale if peer else None
        found.append(Figure(name, median(r[name] for r in own) * scale, unit, theirs if unit == "us" else None, theirs))
    return found
