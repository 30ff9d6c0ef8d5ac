"""The record types of TensorBoard's event files, from `tensorboard` or `tensorboardX`, whichever is installed."""
from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "tensorboard": ("tensorboard.compat.proto", "tensorboard.summary.writer.event_file_writer",
                    "tensorboard.plugins.hparams.plugin_data_pb2", "tensorboard.plugins.hparams.api_pb2"),
    "tensorboardX": ("tensorboardX.proto", "tensorboardX.event_file_writer", "tensorboardX.proto.plugin_hparams_pb2",
                     "tensorboardX.proto.api_pb2"),
}  # fmt: skip


def _find() -> tuple[str, str, str, str]:
    for package, home in _HOMES.items():
        try:
            importlib.import_module(package)
        except ImportError:
            continue
        return home
    raise ImportError("utils.tensorboard needs the package tensorboard (or tensorboardX), and neither is installed: "
                      "pip install tensorboard")  # fmt: skip


_protos, _writer, _hparams_data, _hparams_api = _find()


def _of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


Event = _of(f"{_protos}.event_pb2", "Event")
SessionLog = _of(f"{_protos}.event_pb2", "SessionLog")
Summary = _of(f"{_protos}.summary_pb2", "Summary")
SummaryMetadata = _of(f"{_protos}.summary_pb2", "SummaryMetadata")
HistogramProto = _of(f"{_protos}.summary_pb2", "HistogramProto")
TensorProto = _of(f"{_protos}.tensor_pb2", "TensorProto")
TensorShapeProto = _of(f"{_protos}.tensor_shape_pb2", "TensorShapeProto")
EventFileWriter = _of(_writer, "EventFileWriter")


def hparams_types() -> tuple[Any, Any]:
    """The hparams plugin's modules of data types and of protocol types."""
    return importlib.import_module(_hparams_data), importlib.import_module(_hparams_api)
