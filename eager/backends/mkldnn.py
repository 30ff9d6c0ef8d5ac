"""oneDNN plays no part: CPU kernels are numpy's and our own."""
from __future__ import annotations


def is_available() -> bool:
    return False


enabled = True
deterministic = False
allow_tf32 = True
