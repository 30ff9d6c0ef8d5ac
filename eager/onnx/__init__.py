"""torch.onnx, as far as libraries query it: nothing is exported, and `export` raises.

Contains the query for a running export (always False), the format's enumerations, and the registration of symbolics.
"""
from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "export", "is_in_onnx_export",
    "register_custom_op_symbolic", "unregister_custom_op_symbolic",
]  # fmt: skip


class OnnxExporterError(RuntimeError):
    """The error of an exporter."""


class TrainingMode(enum.IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """How ops without a symbolic are exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


# Element types in the order of the format's `TensorProto.DataType`, which starts at 0
TensorProtoDataType = enum.IntEnum(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 BFLOAT16 "
    "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
)


def is_in_onnx_export() -> bool:
    """Whether this code runs inside an export: always False."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: framejit writes no ONNX."""
    raise NotImplementedError("onnx.export: framejit writes no ONNX; fxir.ir.graph_file saves a graph that framejit can load and run")


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Warn that nothing will be exported; libraries call this when they are imported.

    Raises: ValueError for a name that is not of the form "namespace::name".
    """
    _check_name(symbolic_name)
    warnings.warn(f"onnx.register_custom_op_symbolic: framejit writes no ONNX; the symbolic function of {symbolic_name!r} is not used",
                  stacklevel=2)  # fmt: skip


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Does nothing. Raises: ValueError for a name that is not of the form "namespace::name"."""
    _check_name(symbolic_name)


def _check_name(name: str) -> None:
    if len([part for part in name.split("::") if part]) != 2:
        raise ValueError(f"onnx: invalid symbolic name {name!r}; 'namespace::name' is allowed")
