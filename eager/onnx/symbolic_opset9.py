"""torch.onnx.symbolic_opset9: importable and empty; framejit writes no ONNX."""
