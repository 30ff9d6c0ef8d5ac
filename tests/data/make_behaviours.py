"""Write nn_behaviours.json: the outcomes of tests/nn/behaviours.py with torch.

    python tests/data/make_behaviours.py        # in an environment with torch (made with 2.13.0, CPU)
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.nn.utils.parametrizations
import torch.nn.utils.prune

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "nn"))

import behaviours  # noqa: E402


def main() -> None:
    torch.manual_seed(0)
    result = {group: behaviours.outcomes(torch, group) for group in behaviours.GROUPS}
    lines = ",\n".join(f"{json.dumps(g)}: [\n" + ",\n".join(json.dumps(o) for o in found) + "\n]" for g, found in result.items())
    (HERE / "nn_behaviours.json").write_text("{\n" + lines + "\n}\n")
    print(f"{sum(map(len, result.values()))} outcomes with torch {torch.__version__}")


if __name__ == "__main__":
    main()
