"""torch.onnx.symbolic_opset11: importable and empty; framejit writes no ONNX."""
