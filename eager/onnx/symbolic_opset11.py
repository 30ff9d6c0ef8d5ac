"""torch.onnx.symbolic_opset11"""
from __future__ import annotations

from eager.onnx._absent import absent

__getattr__ = absent("symbolic_opset11")
