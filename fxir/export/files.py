"""Exported programs in files."""

from __future__ import annotations

from typing import Any

from fxir.export.program import ExportedProgram


def save(ep: ExportedProgram, f: Any, **options: Any) -> None:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.save: programs with their signature are not written to files yet; "
                              "fxir.ir.graph_file.save writes ep.graph_module")  # fmt: skip


def load(f: Any, **options: Any) -> ExportedProgram:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.load: programs with their signature are not read from files yet; "
                              "fxir.ir.graph_file.load reads a graph")  # fmt: skip
