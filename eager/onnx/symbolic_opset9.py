"""torch.onnx.symbolic_opset9: none of its functions is here, which is said when one is taken."""
from __future__ import annotations

from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(f"onnx.symbolic_opset9.{name}: framejit writes no ONNX")
