"""A graph in one file, which loads and runs without the source of its program.

The file is a zip of `graph.json` (nodes, specs, signature) and the raw bytes of the carried tensors, each with its SHA-256. It
holds data only. Call targets are stored by name; only ops of the table and functions of the modules in `_MODULES` are looked
up, so that loading a file runs no code from it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, spec_of
from eager.optable.memory import empty
from eager.optable.table import OPS, Op
from fxir.base.origin import Origin
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node, NodeInfo
from fxir.ir.printer import dotted_name
from fxir.ir.verifier import verify

FORMAT: Final = 1
_MODULES: Final = ("operator", "eager")
_GRAPH: Final = "graph.json"


class ExportError(RuntimeError):
    """A graph cannot be written to a file, or a file is not a graph that this version can read."""


def save(gm: GraphModule, path: str | os.PathLike[str]) -> None:
    """Write `gm` to `path`, replacing an existing file in one step.

    Raises: ExportError for a call target or argument that has no name outside this process.
    """
    tensors: list[tuple[str, bytes]] = []
    carried = {key: _carried(key, value, tensors) for key, value in gm.root.items()}
    numbers = {node: i for i, node in enumerate(gm.graph.nodes)}
    document = {
        "format": FORMAT,
        "name": gm.name,
        "root": carried,
        "nodes": [_node(node, numbers) for node in numbers],
        "signature": None if gm.graph.signature is None else dataclasses.asdict(gm.graph.signature),
    }
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr(_GRAPH, json.dumps(document, indent=1))
            for name, data in tensors:
                archive.writestr(name, data)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> GraphModule:
    """Read a graph that `save` wrote.

    Raises: FileNotFoundError; ExportError for a damaged file, another format, or an op that this version does not have.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read(_GRAPH))
            if document.get("format") != FORMAT:
                raise ExportError(f"load: {path} has format {document.get('format')!r}; this version reads {FORMAT}")
            root = {key: _read_carried(key, value, archive) for key, value in document["root"].items()}
    except (zipfile.BadZipFile, json.JSONDecodeError, KeyError) as e:
        raise ExportError(f"load: {path} is damaged or not a saved graph ({e})") from e
    graph = Graph(root)
    nodes: list[Node] = []
    for entry in document["nodes"]:
        nodes.append(_read_node(graph, entry, nodes))
    if document["signature"] is not None:
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document["signature"].items()}
        graph.signature = GraphSignature(**fields)
    return GraphModule(root, verify(graph), document["name"])


# -- carried values ----------------------------------------------------------------------------------------------
def _carried(key: str, value: Any, tensors: list[tuple[str, bytes]]) -> dict[str, Any]:
    if not isinstance(value, Tensor):
        return {"value": _value(value, {}, key)}
    data = np.ascontiguousarray(value.detach().cpu()._array).tobytes()
    name = f"tensors/{len(tensors)}"
    tensors.append((name, data))
    return {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "spec": _spec(spec_of(value))}


def _read_carried(key: str, entry: dict[str, Any], archive: zipfile.ZipFile) -> Any:
    if "value" in entry:
        return _read_value(entry["value"], [])
    data = archive.read(entry["file"])
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ExportError(f"load: the bytes of the carried tensor {key!r} are damaged")
    spec = _read_spec(entry["spec"])
    t: Tensor = empty(TensorSpec(spec.shape, spec.dtype, spec.strides))
    t._array[...] = np.frombuffer(data, spec.dtype.numpy).reshape(spec.shape)
    return t.to(spec.device)


# -- nodes -------------------------------------------------------------------------------------------------------
def _node(node: Node, numbers: dict[Node, int]) -> dict[str, Any]:
    origin = node.info.origin
    return {
        "name": node.name,
        "op": node.op,
        "target": node.target if isinstance(node.target, str) else _target(node),
        "args": _value(node.args, numbers, node.name),
        "kwargs": _value(node.kwargs, numbers, node.name),
        "spec": _spec(node.info.spec),
        "origin": None if origin is None else [origin.file, origin.line, origin.source_line, origin.function],
    }


def _read_node(graph: Graph, entry: dict[str, Any], nodes: list[Node]) -> Node:
    origin = None if entry["origin"] is None else Origin(*entry["origin"])
    target = _read_target(entry["target"], entry["name"]) if entry["op"] == "call_function" else entry["target"]
    info = NodeInfo(_read_spec(entry["spec"]), origin)
    args, kwargs = _read_value(entry["args"], nodes), _read_value(entry["kwargs"], nodes)
    return graph.create_node(entry["op"], target, args, kwargs, entry["name"], info=info)


def _target(node: Node) -> dict[str, str]:
    target = node.target
    if isinstance(target, Op):
        return {"op": target.name, "schema": target.schema.text}
    where = dotted_name(target)
    if where is None or where[0].split(".")[0] not in _MODULES:
        raise ExportError(
            f"save: node {node.name} calls {target!r}; allowed: ops and functions of {', '.join(_MODULES)}. "
            "Trace the graph to ops first (fxir.trace.trace)."
        )
    return {"module": where[0], "name": where[1]}


def _read_target(entry: dict[str, str], node: str) -> Any:
    if "op" in entry:
        op = OPS.get(entry["op"])
        if op is None or op.schema.text != entry["schema"]:
            have = "this version has no such op" if op is None else f"here it is {op.schema.text}"
            raise ExportError(f"load: node {node} calls the op {entry['schema']}; {have}")
        return op
    if entry["module"].split(".")[0] not in _MODULES:
        raise ExportError(f"load: node {node} calls {entry['module']}.{entry['name']}; allowed: {', '.join(_MODULES)}")
    found: Any = importlib.import_module(entry["module"])
    for part in entry["name"].split("."):
        found = getattr(found, part)
    return found


# -- values ------------------------------------------------------------------------------------------------------
def _spec(s: Any) -> Any:
    if s is None:
        return None
    if isinstance(s, tuple):
        return [_spec(x) for x in s]
    return {"shape": list(s.shape), "dtype": s.dtype.name, "strides": list(s.strides), "device": str(s.device)}


def _read_spec(entry: Any) -> Any:
    if entry is None:
        return None
    if isinstance(entry, list):
        return tuple(_read_spec(x) for x in entry)
    d: dtype = getattr(dtypes, entry["dtype"] if entry["dtype"] != "bool" else "bool_")
    return TensorSpec(tuple(entry["shape"]), d, tuple(entry["strides"]), device(entry["device"]))


def _value(x: Any, numbers: dict[Node, int], who: str) -> Any:
    """JSON for an argument: plain scalars unchanged, every other value as {kind: ...}."""
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, Node):
        return {"node": numbers[x]}
    if isinstance(x, float):
        return {"float": x.hex()}
    if isinstance(x, complex):
        return {"complex": [x.real.hex(), x.imag.hex()]}
    if isinstance(x, tuple | list):
        return {type(x).__name__ if type(x) in (tuple, list) else "tuple": [_value(v, numbers, who) for v in x]}
    if isinstance(x, dict):
        return {"dict": [[_value(k, numbers, who), _value(v, numbers, who)] for k, v in x.items()]}
    if isinstance(x, slice):
        return {"slice": [_value(v, numbers, who) for v in (x.start, x.stop, x.step)]}
    if isinstance(x, dtype):
        return {"dtype": x.name}
    if isinstance(x, device):
        return {"device": str(x)}
    if x is Ellipsis:
        return {"ellipsis": True}
    raise ExportError(f"save: {who} holds a {type(x).__name__}, which a file cannot carry")


def _read_value(x: Any, nodes: list[Node]) -> Any:
    if not isinstance(x, dict):
        return x
    ((kind, body),) = x.items()
    return _READERS[kind](body, nodes)


_READERS: Final[dict[str, Any]] = {
    "node": lambda b, nodes: nodes[b],
    "float": lambda b, nodes: float.fromhex(b),
    "complex": lambda b, nodes: complex(float.fromhex(b[0]), float.fromhex(b[1])),
    "tuple": lambda b, nodes: tuple(_read_value(v, nodes) for v in b),
    "list": lambda b, nodes: [_read_value(v, nodes) for v in b],
    "dict": lambda b, nodes: {_read_value(k, nodes): _read_value(v, nodes) for k, v in b},
    "slice": lambda b, nodes: slice(*(_read_value(v, nodes) for v in b)),
    "dtype": lambda b, nodes: getattr(dtypes, b if b != "bool" else "bool_"),
    "device": lambda b, nodes: device(b),
    "ellipsis": lambda b, nodes: ...,
}
