"""`python -m benchmarks.onnx_export ROW FOLDER`: a row's model as FOLDER/model.onnx, its inputs as input_I.npy.

Runs in an interpreter that has torch, in a separate process: the engines are measured without torch in memory.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worker import alias


def main(name: str, folder: Path) -> None:
    """Export one row of `benchmarks.model_rows`."""
    alias("torch")
    torch: Any = importlib.import_module("torch")
    rows = importlib.import_module("benchmarks.model_rows").ROWS
    case = next(r for r in rows if r.name == name).make()
    torch.onnx.export(case.fn, case.inputs, str(folder / "model.onnx"), dynamo=True, external_data=False, verbose=False)
    for i, x in enumerate(case.inputs):
        np.save(folder / f"input_{i}.npy", x.numpy())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
