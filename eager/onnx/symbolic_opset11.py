"""torch.onnx.symbolic_opset11: importable, without a name in it; framejit writes no ONNX."""
