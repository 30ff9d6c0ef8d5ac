"""Tensors without data, under torch's private name for them."""
