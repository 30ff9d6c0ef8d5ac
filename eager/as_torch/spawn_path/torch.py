"""The module that a spawned worker imports as torch: installs the alias, which replaces this module by eager.

A spawned worker starts with a new interpreter and its parent's `sys.path`; a forked one inherits the alias.
"""
from __future__ import annotations

import sys

if __name__ == "torch":
    del sys.modules["torch"]  # remove this file's entry; the import statement returns the entry that install() adds
    import eager.as_torch

    eager.as_torch.install()
