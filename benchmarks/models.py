"""`python -m benchmarks models`: MiniLM and a GPT training step, compiled against eager, interleaved.

Owns: the two comparisons and their limits. The models are the demo's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import eager as torch
from benchmarks.demo import gpt, minilm, text
from benchmarks.harness import Figure, interleaved_ms

MODES = ("default", "reduce-overhead", "max-autotune")
MINILM_AT_LEAST = 1.5
GPT_AT_LEAST = 2.0


def figures(*, rounds: int, only: str | None) -> list[Figure]:
    """Measure both, or the one named. MiniLM is left out, with a note, where its weights are missing."""
    found: list[Figure] = []
    if only in (None, "minilm"):
        found += _minilm(rounds)
    if only in (None, "gpt"):
        found += _gpt(rounds)
    return found


def _ratios(name: str, times: dict[str, float], first_s: dict[str, float], at_least: float) -> list[Figure]:
    # A figure's limit is an upper one, so a speedup is judged as the share of eager's time that is left.
    found = [Figure(f"{name} eager", times["eager"], "ms")]
    for mode, value in times.items():
        if mode == "eager":
            continue
        left = times["eager"] / at_least
        speedup = f"{times['eager'] / value:.2f}x eager, first call {first_s[mode]:.2f} s"
        found.append(Figure(f"{name} {mode}", value, "ms", left, note=speedup))
    return found


def _minilm(rounds: int) -> list[Figure]:
    reason = minilm.missing()
    if reason is not None:
        return [Figure("MiniLM", float("nan"), "ms", note=reason)]
    model = minilm.load()
    found: list[Figure] = []
    paragraphs = [p.text for p in text.paragraphs(8)]
    # As long as the longest text, and the paragraphs as the demo has them.
    for texts, padded in ((minilm.SENTENCES[1:2], None), (minilm.SENTENCES, None), (paragraphs, 128)):
        ids, mask = minilm.Tokenizer(128)(texts)
        length = padded or int(mask.sum(1).max())
        inputs = torch.from_numpy(ids[:, :length].copy()), torch.from_numpy(mask[:, :length].copy())
        found += _all_modes(f"MiniLM, {len(ids)} x {length} tokens,", model, inputs, rounds)
    return found


def _all_modes(name: str, model: Callable[..., Any], inputs: tuple[torch.Tensor, torch.Tensor], rounds: int) -> list[Figure]:
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
    return _ratios("GPT training step,", times, first_s, GPT_AT_LEAST)
