"""Code for all sizes is as small as code for one size: index arithmetic of a change of layout and its inverse cancels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager import nn
from eager.base import settings
from inductor.base import toolchain
from tests.dynamic.support import assert_same


class Mixer(nn.Module):
    """A block of ConvNeXt: moves the channels last for its linear layers, and then first again."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(d, d, 7, padding=3, groups=d)
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.down(nn.functional.gelu(self.up(y))).permute(0, 3, 1, 2)


class Trimmed(nn.Module):
    """Part of an attention over frames without the last frame, so that their number is a sum: t - 1."""

    def __init__(self, d: int, depth: int) -> None:
        super().__init__()
        self.frames = nn.Conv1d(1, d, 4, stride=4)
        self.mixers = nn.ModuleList(nn.Linear(d, d) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        y = self.frames(x)[:, :, :-1].transpose(1, 2)
        b, t, d = y.shape
        for mixer in self.mixers:
            heads = mixer(y.reshape(b * t, d)).view(b, t, 2, d // 2).transpose(1, 2)
            y = y + heads.softmax(2).transpose(1, 2).reshape(b, t, d)
        return y


def _images(n: int) -> Any:
    return torch.randn(2, 3, n, n)


def _waves(n: int) -> Any:
    return torch.randn(n // 8, 1, n)


MODELS = {
    "channels to the back": (lambda: nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), Mixer(8)), _images),
    "a size that is a sum": (lambda: Trimmed(8, 4), _waves),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_change_of_layout_leaves_no_divisions(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sources: list[str] = []
    compile_one = toolchain.run_compiler

    def run(command: Sequence[str], source: Path | None, timeout_s: float | None = None) -> str:
        if source is not None:
            sources.append(source.read_text())
        return compile_one(command, source, timeout_s)

    monkeypatch.setattr(toolchain, "run_compiler", run)
    make, inputs = MODELS[name]
    model = make()
    made = torch.compile(model, dynamic=True)
    with settings.scope(cache_dir=tmp_path):
        for n in (32, 40, 24):
            x = inputs(n).requires_grad_()
            y = x.detach().clone().requires_grad_()
            made(x).square().sum().backward()
            model(y).square().sum().backward()
            assert_same(x.grad, y.grad)
    assert sources
    longest = max(len(line) for text in sources for line in text.splitlines())
    assert longest < 2000, f"a line of {longest} characters: index arithmetic did not cancel"
