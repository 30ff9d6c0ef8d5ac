"""Tensors without data, under torch's private name for them."""
from eager._subclasses.fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
