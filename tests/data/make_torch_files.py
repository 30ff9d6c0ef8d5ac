"""Write torch_files.json: files of torch.save as text, and the objects that torch loads from them.

    python tests/data/make_torch_files.py        # in an environment with torch (made with 2.13.0, CPU)
"""
from __future__ import annotations

import base64
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "serialization"))

import objects  # noqa: E402


def encoded(obj: Any, **options: Any) -> str:
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    return base64.b64encode(buffer.getvalue()).decode()


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    models = objects.models(torch)
    files = {
        "values": encoded(objects.values(torch)),
        "legacy": encoded(objects.values(torch, legacy=True), _use_new_zipfile_serialization=False),
        "models": encoded({name: model for name, (model, _) in models.items()}),
    }
    trained = {kind: objects.training(torch, kind) for kind in objects.KINDS}
    files["training"] = encoded(trained)
    files["states"] = encoded({kind: [part.state_dict() for part in parts] for kind, parts in trained.items()})
    torch.serialization.set_crc32_options(False)
    files["without_checksums"] = encoded(torch.arange(5.0))
    read = {
        "values": objects.describe(torch, objects.values(torch)),
        "legacy": objects.describe(torch, objects.values(torch, legacy=True)),
        "models": {name: objects.outputs(torch, model, shape) for name, (model, shape) in models.items()},
        "training": {kind: objects.after(torch, parts) for kind, parts in trained.items()},
    }
    (HERE / "torch_files.json").write_text(json.dumps({"files": files, "read": read}, indent=0) + "\n")
    print({name: len(text) for name, text in files.items()})


if __name__ == "__main__":
    main()
