"""A GraphModule as a folder: a package whose class runs the printed source, with files of the values it carries."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from typing import Any, Final

import eager
from eager import nn
from eager.nn import Module
from fxir.ir.printer import PythonCode

# Modules whose repr is a call of their constructor.
_BY_REPR: Final = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def write_folder(module: Module, code: PythonCode, root: dict[str, Any] | None, folder: Path, class_name: str) -> None:
    """Write `module`, whose source is `code`, as the package `folder` with a class of that name.

    root: the values that the source reads by key; None if the source reads attributes of the module.
    Raises: NotImplementedError if the source reads values that cannot be imported.
    """
    if code.globals:
        raise NotImplementedError(f"to_folder: the source reads {', '.join(sorted(code.globals))}, which cannot be imported; "
                                  "define such functions at the top of a module")  # fmt: skip
    folder.mkdir(exist_ok=True)
    header, _, body = code.source.rpartition("def forward(")
    lines = ["super().__init__()"]
    pickled: list[str] = []
    if root is None:
        lines += _parts(module, folder, pickled)
        eager.save(module.state_dict(), folder / "state_dict.pt")
        lines.append(f"self.load_state_dict(torch.load({str(folder / 'state_dict.pt')!r}))")
    else:
        eager.save(root, folder / "root.pt")
        lines.append(f"self.__dict__['root'] = torch.load({str(folder / 'root.pt')!r}, weights_only=False)")
    text = (f"import eager as torch\nfrom eager import device\nfrom eager.nn import *\n{header}\nclass {class_name}(torch.nn.Module):\n"
            + textwrap.indent("def __init__(self):\n" + textwrap.indent("\n".join(lines), "    ") + f"\n\ndef forward({body}", "    "))
    (folder / "module.py").write_text(text)
    (folder / "__init__.py").write_text("from .module import *\n")
    if pickled:
        warnings.warn("Was not able to save the following children modules as reprs -"
                      f"saved as pickled files instead: {pickled}", stacklevel=3)  # fmt: skip


def _parts(module: Module, folder: Path, pickled: list[str]) -> list[str]:
    """Statements that create the module's submodules, buffers and parameters. The names of pickled parts are added to `pickled`."""
    lines = []
    for name, child in module.named_children():
        if type(child) in _BY_REPR:
            made = repr(child)
        else:
            eager.save(child, folder / f"{name}.pt")
            pickled.append(name)
            made = f"torch.load({str(folder / f'{name}.pt')!r}, weights_only=False)"
        lines.append(f"setattr(self, {name!r}, {made})")
    for name, buffer in module._buffers.items():
        if buffer is not None:
            lines.append(f"self.register_buffer({name!r}, torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))")
    for name, parameter in module._parameters.items():
        if parameter is not None:
            lines.append(f"setattr(self, {name!r}, torch.nn.Parameter(torch.empty({list(parameter.shape)}, dtype={parameter.dtype})))")
    return lines
