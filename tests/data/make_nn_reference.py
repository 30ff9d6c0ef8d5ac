"""Write nn_reference.json: the cases of tests/nn/reference_cases.py, run with torch.

    python tests/data/make_nn_reference.py        # in an environment with torch (made with 2.13.0, CPU)
"""
from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.utils.parametrizations

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "nn"))

import reference_cases  # noqa: E402


def rounded(v: Any) -> Any:
    """Nine significant digits: what the comparison needs, and short in the file."""
    if isinstance(v, list):
        return [rounded(x) for x in v]
    return float(f"{v:.9g}") if isinstance(v, float) else v


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    results = {name: {k: rounded(v) for k, v in reference_cases.run(torch, name).items()} for name in reference_cases.CASES}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in results.items())
    (HERE / "nn_reference.json").write_text("{\n" + lines + "\n}\n")
    print(f"{len(results)} cases with torch {torch.__version__}")


if __name__ == "__main__":
    main()
