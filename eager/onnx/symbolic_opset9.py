"""torch.onnx.symbolic_opset9"""
from __future__ import annotations

from eager.onnx._absent import absent

__getattr__ = absent("symbolic_opset9")
