"""The graph layer: nodes, passes, joint forward+backward graphs and an integer-expression language.

Under the alias this package is `torch.fx`: the classes that torch has under that name are found here on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {"Graph": "graph", "GraphModule": "graph_module", "Interpreter": "interpreter", "Node": "node", "wrap": "leaves"}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fxir' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fxir.{_PUBLIC[name]}"), name)
