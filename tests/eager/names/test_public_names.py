"""The public namespaces hold no helper of eager's under a name that looks public.

tests/data/torch_dirs.json.gz holds the names in torch 2.13's modules: `dir(torch.linalg)` without names that start with an underscore.
"""
from __future__ import annotations

import gzip
import importlib
import json
import types
from pathlib import Path
from typing import Final

import pytest

THEIRS: Final = json.loads(gzip.decompress((Path(__file__).parents[2] / "data" / "torch_dirs.json.gz").read_bytes()))
# names beyond torch's that stay, with the reason
EXTRA: Final[dict[str, str]] = {
    "nn.functional.TOP_LEVEL": "the functions that `eager` offers too",
    "nn.NonDynamicallyQuantizableLinear": "the class of MultiheadAttention.out_proj, which torch has in nn.modules.linear",
}


@pytest.mark.parametrize("namespace", THEIRS)
def test_a_namespace_holds_no_function_or_class_that_torch_lacks(namespace: str) -> None:
    module = importlib.import_module(f"eager.{namespace}")
    found = [name for name, value in vars(module).items()
             if not name.startswith("_") and name not in THEIRS[namespace] and f"{namespace}.{name}" not in EXTRA
             and isinstance(value, (types.FunctionType, type)) and value.__module__.startswith("eager")]  # fmt: skip
    assert found == []
