"""Seven well-known networks in torch style, with the sizes of their papers.

Owns the modules. `eager` is torch in a peer's process. Parameter counts match the published ones: ResNet-50 25.6 M, BERT-base 109 M
(here without its pooler), ViT-B/16 86.6 M, GPT-2 124 M, MLP-Mixer S/16 18.5 M.
"""

from __future__ import annotations

from typing import Any

import eager as torch
from eager import nn
from eager.nn import functional as F

__all__ = ["GPT2", "Bert", "LSTMModel", "Loss", "Mixer", "ResNet50", "UNet", "ViT"]


class Loss(nn.Module):
    """Mean cross-entropy of a model's result, classes last. (inputs, targets) -> ()."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        y = self.model(x)
        return F.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))


# --------------------------------------------------------------------------- convolution


class _Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions and a shortcut (He et al., arXiv:1512.03385; stride in the 3x3)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.reduce, self.norm1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.spread, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.expand, self.norm3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        plain = stride == 1 and channels == out
        self.shortcut = (
            nn.Identity() if plain else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.reduce(x)))
        y = F.relu(self.norm2(self.spread(y)))
        return F.relu(self.norm3(self.expand(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    """(b, 3, h, w) -> (b, 1000)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        channels = 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for i in range(count):
                blocks.append(_Bottleneck(channels, 64 << stage, 2 if stage and not i else 1))
                channels = 256 << stage
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(2048, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def _double(channels: int, out: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for i in range(2):
        parts += [nn.Conv2d(out if i else channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*parts)


class UNet(nn.Module):
    """Four levels, half the width of the paper (Ronneberger et al., arXiv:1505.04597). (b, 3, h, w) -> (b, h, w, 2)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [width << i for i in range(5)]
        self.down = nn.ModuleList([_double(3 if i == 0 else widths[i - 1], w) for i, w in enumerate(widths)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1])])
        self.join = nn.ModuleList([_double(2 * w, w) for w in reversed(widths[:-1])])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped: list[torch.Tensor] = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skipped.append(x)
        skipped.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([skipped.pop(), up(x)], 1))
        return self.head(x).permute(0, 2, 3, 1)


# --------------------------------------------------------------------------- attention


class _Attention(nn.Module):
    """Multi-head self-attention. (b, t, d) -> (b, t, d)."""

    def __init__(self, width: int, heads: int, causal: bool, joint: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.joint = heads, causal, joint
        self.projections = nn.ModuleList([nn.Linear(width, 3 * width)] if joint else [nn.Linear(width, width) for _ in range(3)])
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        parts = self.projections[0](x).split(d, dim=2) if self.joint else [p(x) for p in self.projections]
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class _Block(nn.Module):
    """A transformer layer, normalised before (`pre`) or after its two parts. (b, t, d) -> (b, t, d)."""

    def __init__(self, width: int, heads: int, *, pre: bool, causal: bool = False, joint: bool = True, gelu: str = "none") -> None:
        super().__init__()
        self.pre, self.gelu = pre, gelu
        self.norm1, self.attention = nn.LayerNorm(width), _Attention(width, heads, causal, joint)
        self.norm2, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def _mlp(self, x: torch.Tensor) -> torch.Tensor:
        return self.narrow(F.gelu(self.wide(x), approximate=self.gelu))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.pre:
            x = x + self.attention(self.norm1(x))
            return x + self._mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self._mlp(x))


class Bert(nn.Module):
    """BERT-base (arXiv:1810.04805). tokens (b, t) -> (b, t, 768), with `words` (b, t, 30522)."""

    def __init__(self, words: bool = False) -> None:
        super().__init__()
        self.tokens, self.positions, self.norm = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.LayerNorm(768)
        self.segment = nn.Parameter(torch.zeros(768))
        self.blocks = nn.Sequential(*(_Block(768, 12, pre=False, joint=False) for _ in range(12)))
        self.words = words

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device)) + self.segment
        x = self.blocks(self.norm(x))
        return F.linear(x, self.tokens.weight) if self.words else x


class GPT2(nn.Module):
    """GPT-2 of 124 M parameters; the head shares the embedding. tokens (b, t) -> (b, t, 50257)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.Sequential(*(_Block(768, 12, pre=True, causal=True, gelu="tanh") for _ in range(12)))
        self.norm = nn.LayerNorm(768)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class ViT(nn.Module):
    """ViT-B/16 (arXiv:2010.11929). (b, 3, 224, 224) -> (b, 1000)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, 768))
        self.positions = nn.Parameter(torch.zeros(1, 197, 768))
        self.blocks = nn.Sequential(*(_Block(768, 12, pre=True) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


# --------------------------------------------------------------------------- others


class _Mix(nn.Module):
    """Mixes tokens, then channels. (b, t, d) -> (b, t, d)."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, width // 2), nn.GELU(), nn.Linear(width // 2, tokens))
        self.along = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


class Mixer(nn.Module):
    """MLP-Mixer S/16 (arXiv:2105.01601). (b, 3, 224, 224) -> (b, 1000)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 512, 16, 16)
        self.blocks = nn.Sequential(*(_Mix(196, 512) for _ in range(8)))
        self.norm, self.head = nn.LayerNorm(512), nn.Linear(512, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class LSTMModel(nn.Module):
    """A language model of two LSTM layers. tokens (b, t) -> (b, t, 10000)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.recurrent, self.head = nn.Embedding(10000, 256), nn.LSTM(256, 512, 2, batch_first=True), nn.Linear(512, 10000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: tuple[torch.Tensor, Any] = self.recurrent(self.tokens(tokens))
        return self.head(hidden[0])
