"""The libraries behind the ops, as `torch.backends` reports them. Every flag has the documented effect.

This library computes with numpy (with the BLAS in its wheel), its own compiled loops, CuPy, cuDNN and Triton. torch's
other libraries (MPS, oneDNN, MKL, opt_einsum) report `is_available()` False; portable code may set and
read their flags, which have no effect.
"""
from __future__ import annotations

from eager.backends import cpu, cuda, cudnn, mha, mkldnn, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
