"""Run code written for torch, unchanged: after `import eager.as_torch`, `import torch` is this project.

    import eager.as_torch            # or eager.as_torch.install()
    import torch                     # eager itself, and so are torch.nn, torch.utils.data, ...

    python -m eager.as_torch script.py args...        a script that knows nothing of this
    python -m eager.as_torch -m package.module args...
    python -m eager.as_torch --coverage usage.tsv     how much of a list of torch names resolves

`torch.fx` is fxir, `torch._dynamo` dynamo, `torch._inductor` inductor. A submodule that is missing raises
ModuleNotFoundError, any other name AttributeError, both naming it. Worker processes find the alias too: forked
ones inherit it, spawned ones through a folder on `sys.path` which the script runner adds.
"""
from __future__ import annotations

import sys

from eager.as_torch.finder import TorchFinder, torch_modules

__all__ = ["install", "is_installed", "uninstall"]


def is_installed() -> bool:
    """Whether `import torch` gives this project."""
    return sys.modules.get("torch") is sys.modules["eager"]


def install() -> None:
    """Make `import torch` and its submodules resolve to this project, for this process. Idempotent.

    Raises: ImportError if another torch was imported before, whose objects would not be ours.
    """
    if is_installed():
        return
    if "torch" in sys.modules:
        other = getattr(sys.modules["torch"], "__file__", "unknown file")
        raise ImportError(
            f"eager.as_torch: torch is already imported, from {other}; install the alias before anything imports torch"
        )
    sys.modules["torch"] = sys.modules["eager"]
    sys.meta_path.insert(0, TorchFinder())


def uninstall() -> None:
    """Take the alias back: later imports of torch find whatever is installed under that name."""
    if not is_installed():
        return
    for name in list(torch_modules()):
        del sys.modules[name]
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, TorchFinder)]


install()
