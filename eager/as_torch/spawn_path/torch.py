"""What a spawned worker process imports as torch: installs the alias, which puts eager in this module's place.

A worker begins with a bare interpreter and its parent's `sys.path`; a forked one inherits the alias itself.
"""
from __future__ import annotations

import sys

if __name__ == "torch":
    del sys.modules["torch"]  # this file's own entry; the import statement returns what install() puts there
    import eager.as_torch

    eager.as_torch.install()
