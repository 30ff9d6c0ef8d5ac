"""`python -m benchmarks models`: MiniLM and a GPT training step, compiled against eager, interleaved; beside torch's.

Owns the two comparisons and their limits. The models are the demo's own files, under torch as well (`models_peer`). Torch runs
before and after this process's rounds, so that a machine that slows down slows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import eager as torch
from benchmarks.demo import gpt, minilm, text
from benchmarks.harness import Figure, interleaved_ms

MODES = ("default", "reduce-overhead", "max-autotune")
MINILM_AT_LEAST = 1.5
GPT_AT_LEAST = 2.0
_GPT = "GPT training step,"
_ROOT: Final = Path(__file__).resolve().parent.parent
_PEER_S: Final = 900  # torch's autotuning takes minutes

_Tokens = tuple[NDArray[np.int64], NDArray[np.int64]]  # ids and mask, (texts, length)


def figures(*, rounds: int, torch_at: str | None, only: str | None) -> list[Figure]:
    """Measure both, or the named model. MiniLM is omitted, with a note, if its weights are missing.

    torch_at: an interpreter that has torch, or None to omit the column.
    """
    reason = minilm.missing()
    inputs = dict(_inputs()) if only != "gpt" and reason is None else {}
    with_gpt = only != "minilm"
    found = [Figure("MiniLM", float("nan"), "ms", note=reason)] if only != "gpt" and reason is not None else []
    with tempfile.TemporaryDirectory() as folder:
        peer = partial(_peer_ms, torch_at, Path(folder), inputs, rounds, with_gpt)
        before = peer()
        for name, (ids, mask) in inputs.items():
            found += _all_modes(name, minilm.load(), (torch.from_numpy(ids), torch.from_numpy(mask)), rounds)
        if with_gpt:
            found += _gpt(rounds)
        after = peer()
    return [replace(f, peer=mean((before[f.name], after[f.name]))) if f.name in before else f for f in found]


def _inputs() -> Iterator[tuple[str, _Tokens]]:
    paragraphs = [p.text for p in text.paragraphs(8)]
    # As long as the longest text, and the paragraphs as in the demo.
    for texts, padded in ((minilm.SENTENCES[1:2], None), (minilm.SENTENCES, None), (paragraphs, 128)):
        ids, mask = minilm.Tokenizer(128)(texts)
        length = padded or int(mask.sum(1).max())
        yield f"MiniLM, {len(ids)} x {length} tokens,", (ids[:, :length].copy(), mask[:, :length].copy())


def _peer_ms(
    python: str | None, folder: Path, inputs: dict[str, _Tokens], rounds: int, with_gpt: bool
) -> dict[str, float]:
    # torch's milliseconds by the names of the figures. Its compiled code is kept in the folder for the next run.
    if python is None:
        return {}
    config = str(minilm.folder() / "config.json") if inputs else None
    texts = {name: (ids.tolist(), mask.tolist()) for name, (ids, mask) in inputs.items()}
    task = {"minilm": texts, "config": config, "modes": MODES, "gpt": _GPT if with_gpt else None}
    (folder / "task.json").write_text(json.dumps(task))
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    command = [python, "-m", "benchmarks.models_peer", str(folder), str(rounds)]
    done = subprocess.run(
        command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=_PEER_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"models: {python} could not measure torch:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _ratios(name: str, times: dict[str, float], first_s: dict[str, float], at_least: float) -> list[Figure]:
    # A limit is an upper limit, so a speedup is stored as the share of eager's time that remains.
    found = [Figure(f"{name} eager", times["eager"], "ms")]
    for mode, value in times.items():
        if mode == "eager":
            continue
        left = times["eager"] / at_least
        speedup = f"{times['eager'] / value:.2f}x eager, first call {first_s[mode]:.2f} s"
        found.append(Figure(f"{name} {mode}", value, "ms", left, note=speedup))
    return found


def _all_modes(
    name: str, model: Callable[..., Any], inputs: tuple[torch.Tensor, torch.Tensor], rounds: int
) -> list[Figure]:
    variants: dict[str, Callable[[], Any]] = {"eager": lambda: model(*inputs)}
    first_s = {}
    with torch.no_grad():
        for mode in MODES:
            variants[mode] = partial(torch.compile(model, mode=mode, dynamic=False), *inputs)
            start = time.perf_counter()
            variants[mode]()
            first_s[mode] = time.perf_counter() - start
        times = interleaved_ms(variants, rounds=rounds)
    return _ratios(name, times, first_s, MINILM_AT_LEAST)


def _gpt(rounds: int) -> list[Figure]:
    config = gpt.Config()
    tokens = text.as_bytes()
    plain = gpt.Trainer(config, tokens, seed=1)
    compiled = gpt.Trainer(config, tokens, seed=1, compile=torch.compile)
    start = time.perf_counter()
    compiled.step()
    first_s = {"compiled": time.perf_counter() - start}
    plain.step()
    times = interleaved_ms({"eager": plain.step, "compiled": compiled.step}, rounds=rounds * 2)
    return _ratios(_GPT, times, first_s, GPT_AT_LEAST)
