"""torch.onnx.symbolic_opset9: importable, without a name in it; framejit writes no ONNX."""
