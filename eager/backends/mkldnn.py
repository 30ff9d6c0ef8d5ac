"""oneDNN is not used: CPU kernels are numpy's and this library's."""
from __future__ import annotations


def is_available() -> bool:
    """Whether oneDNN is used: always False."""
    return False


enabled = True
deterministic = False
allow_tf32 = True
