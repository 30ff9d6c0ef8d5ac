"""What stands behind the ops, as `torch.backends` reports it. A flag that exists means what it says here.

What this library computes with is numpy (with the BLAS in its wheel), its own compiled loops, CuPy and Triton. Libraries
of torch's that play no part (cuDNN, MPS, oneDNN, MKL, opt_einsum) answer `is_available()` with False; their flags can be
set and read, as portable code does without asking, and concern nothing.
"""
from __future__ import annotations

from eager.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
