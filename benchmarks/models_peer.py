"""`python -m benchmarks.models_peer FOLDER ROUNDS`: the models of `benchmarks.models` under torch.

Runs in an interpreter that has torch and numpy, and imports only the demo's model files from this project, in which `eager`
then means torch. FOLDER/task.json names the measurements, with MiniLM's token ids and masks. The model keeps its initial
weights: they do not change the time. Prints one JSON object: name -> milliseconds.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any


def _torch_for_eager() -> Any:
    torch = importlib.import_module("torch")
    for name in ("", ".nn", ".nn.functional"):
        sys.modules["eager" + name] = importlib.import_module("torch" + name)
    return torch


def _interleaved_ms(variants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    # As in benchmarks.harness, which needs packages that torch's interpreter may lack.
    times: dict[str, list[float]] = {name: [] for name in variants}
    for measured in range(-3, rounds):
        for name, fn in variants.items():
            start = time.perf_counter()
            fn()
            if measured >= 0:
                times[name].append(time.perf_counter() - start)
    return {name: median(values) * 1e3 for name, values in times.items()}


def main(folder: Path, rounds: int) -> dict[str, float]:
    """Measure the models in the task."""
    torch = _torch_for_eager()
    task = json.loads((folder / "task.json").read_text())
    found: dict[str, float] = {}
    if task["minilm"]:
        demo = importlib.import_module("benchmarks.demo.minilm")
        model = demo.MiniLM(demo.Config.read(Path(task["config"]))).eval()
        for name, texts in task["minilm"].items():
            torch.compiler.reset()  # each size has separate code, as in framejit's column
            inputs = [torch.tensor(part) for part in texts]
            calls = {mode: torch.compile(model, mode=mode, dynamic=False) for mode in task["modes"]}
            with torch.no_grad():
                variants: dict[str, Callable[[], Any]] = {
                    mode: partial(call, *inputs) for mode, call in {"eager": model, **calls}.items()
                }
                found |= {f"{name} {mode}": ms for mode, ms in _interleaved_ms(variants, rounds).items()}
    if task["gpt"]:
        demo = importlib.import_module("benchmarks.demo.gpt")
        tokens = importlib.import_module("benchmarks.demo.text").as_bytes()
        plain = demo.Trainer(demo.Config(), tokens, seed=1)
        compiled = demo.Trainer(demo.Config(), tokens, seed=1, compile=torch.compile)
        times = _interleaved_ms({"eager": plain.step, "compiled": compiled.step}, rounds * 2)
        found |= {f"{task['gpt']} {mode}": ms for mode, ms in times.items()}
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
