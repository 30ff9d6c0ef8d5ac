"""Run code written for torch, unchanged: after `import eager.as_torch`, `import torch` imports this project.

    import eager.as_torch            # or eager.as_torch.install()
    import torch                     # eager itself, and so are torch.nn, torch.utils.data, ...

    python -m eager.as_torch script.py args...        run an unmodified script
    python -m eager.as_torch -m package.module args...
    python -m eager.as_torch --coverage usage.tsv     the resolved share of a list of torch names

`torch.fx` is fxir, `torch._dynamo` dynamo, `torch._inductor` inductor. A missing submodule raises
ModuleNotFoundError, any other missing name AttributeError; both name it. Worker processes find the alias too: forked
ones inherit it, spawned ones find it in a folder that the script runner adds to `sys.path`.
"""
from __future__ import annotations

import sys

from eager.as_torch.finder import TorchFinder, torch_modules

__all__ = ["install", "is_installed", "uninstall"]


def is_installed() -> bool:
    """Whether `import torch` imports this project."""
    return sys.modules.get("torch") is sys.modules["eager"]


def install() -> None:
    """Make `import torch` and its submodules resolve to this project in this process. Idempotent.

    Raises: ImportError if a real torch is already imported, whose objects would not be compatible.
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
    """Remove the alias: later imports of torch find an installed torch."""
    if not is_installed():
        return
    for name in list(torch_modules()):
        del sys.modules[name]
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, TorchFinder)]


install()
