"""`torch.export`: a Module as one functional graph of ops, with the sizes for which it is valid.

The program runs once on fakes (bytecode is not analysed): the branches that it takes are fixed, and it cannot branch on data.
`dims` describes the open sizes, `build` traces, `program` is the result.
"""

from __future__ import annotations

from eager.utils._pytree import register_dataclass
from fxir.export import dims as dynamic_shapes  # noqa: F401 - before the function `dims` takes the module's name
from fxir.export import program as exported_program  # noqa: F401
from fxir.export import signature as graph_signature  # noqa: F401
from fxir.export.build import export
from fxir.export.dims import Dim, dims
from fxir.export.files import load, save
from fxir.export.program import ExportedProgram
from fxir.export.signature import ExportGraphSignature

__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "dims", "export", "load", "register_dataclass", "save"]


def export_for_training(*args: object, **kwargs: object) -> None:
    """torch removed it in favour of `export`. Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.export_for_training: use torch.export.export")


def draft_export(*args: object, **kwargs: object) -> None:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.draft_export: programs that cannot be exported soundly are not; see what export() raises")


def unflatten(*args: object, **kwargs: object) -> None:
    """Raises: NotImplementedError."""
    raise NotImplementedError("torch.export.unflatten: the graph does not keep the hierarchy of modules; use ExportedProgram.module()")
