"""Exported programs in files."""

from __future__ import annotations

from typing import Any

from fxir.exported.program import ExportedProgram


def save(ep: ExportedProgram, f: Any, **options: Any) -> None:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.save: programs with their signature are not written to files yet; fxir.export.save writes "
                              "ep.graph_module")  # fmt: skip


def load(f: Any, **options: Any) -> ExportedProgram:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.load: programs with their signature are not in files yet; fxir.export.load reads a graph")
