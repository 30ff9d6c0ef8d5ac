"""torch's private package for tensors without data (fake tensors)."""
from eager._subclasses.fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
