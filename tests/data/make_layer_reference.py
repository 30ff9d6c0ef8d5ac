"""Write layer_reference.json.xz: the layers of tests/nn/layer_cases.py, run with torch.

    python tests/data/make_layer_reference.py        # in an environment with torch (made with 2.13.0, CPU)
"""
from __future__ import annotations

import json
import lzma
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "nn"))

import layer_cases  # noqa: E402


def rounded(v: Any) -> Any:
    """Six significant digits: what the comparison needs, and short in the file."""
    if isinstance(v, dict):
        return {k: rounded(x) for k, x in v.items()}
    if isinstance(v, list):
        return [rounded(x) for x in v]
    return float(f"{v:.6g}") if isinstance(v, float) else v


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    result = {}
    for name in layer_cases.LAYERS:
        try:
            result[name] = rounded(layer_cases.run(torch, name))
            result[name]["bfloat16"] = [[d, [float(f"{x:.4g}") for x in v]] for d, v in layer_cases.run_low(torch, name) or ()] or None
        except Exception as error:
            raise RuntimeError(name) from error
    text = json.dumps(result, separators=(",", ":"))
    (HERE / "layer_reference.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{len(result)} layers with torch {torch.__version__}, {len(text)} characters")


if __name__ == "__main__":
    main()
