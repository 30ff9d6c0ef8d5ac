"""Makes tests/data/zoo_reference.npz: torch's results for the zoo, eight numbers for each tensor.

    python -m venv ref && ref/bin/pip install torch==2.13.0 numpy
    ref/bin/python -m tests.zoo.make_reference
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import torch

from tests.zoo import runner
from tests.zoo.summary import summarize

TARGET = Path(__file__).parents[1] / "data" / "zoo_reference.npz"


def main() -> None:
    warnings.simplefilter("ignore")
    names, arrays = {}, {}
    for name, case in runner.cases().items():
        if case.draws:
            continue
        found = runner.run(name, case)
        names[name] = list(found)
        arrays[name] = np.stack([summarize(a) for a in found.values()]).astype(np.float32)
        assert not np.isnan(arrays[name]).any(), name
    text = json.dumps({"torch": torch.__version__, "names": names})
    np.savez_compressed(TARGET, index=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
    print(f"{TARGET}: {len(names)} models, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
