"""The record of a compiled graph: its origin, its description, and saving it to one file.

Owns `Artifact` and the file format of `save`. It does not depend on the compiler.

A saved file is a zip of the cache entry (manifest, plan, library, sources) and the lifted tensors. It holds machine code for
one kind of CPU, and loading it runs that code: load only files from a trusted source.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import numpy as np

from eager import _native as eager_native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.records import dataclass
from inductor.artifact.cache import Entry, Key
from inductor.artifact.format import (
    PRELUDE_END,
    ArtifactPlan,
    BufferCopy,
    ExternCall,
    IntInput,
    KernelLaunch,
    MatrixProduct,
    NativeSegment,
    Size,
    Spec,
    Symbol,
    Upload,
)
from inductor.base.toolchain import cpu_id
from inductor.base.user_lines import Lines, with_lines
from inductor.runtime import loader
from inductor.runtime.loader import CompiledGraph

__all__ = ["Artifact", "ArtifactError", "explain_entry", "kernels", "load"]

FORMAT = 2
# Errors of zipfile for a damaged archive: a header may specify encryption, another method or an offset before the file.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class ArtifactError(RuntimeError):
    """A file is not a saved artifact, is damaged, or was made for another CPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """A compiled graph's record, in `compiled.artifact`.

    key: of its inputs. entry: its files. constants: the lifted tensors, by position. origin: "compiled" or "disk cache".
    elapsed_s: time of compilation, 0 if it came from the cache. lines: the user's line of each node.
    """

    key: Key
    entry: Entry
    constants: Mapping[str, Tensor]
    origin: str
    elapsed_s: float
    lines: Lines = field(default_factory=dict)

    def explain(self, sources: bool = False) -> str:
        """Its origin, its steps, memory and the compiler's notes, as text."""
        made = f", compiled in {self.elapsed_s * 1e3:.0f} ms" if self.elapsed_s else ""
        parts = "\n".join(f"  {name:<10} {value}" for name, value in self.key.parts)
        return f"artifact {self.key.digest} from {self.origin}{made}\n{parts}\n{explain_entry(self.entry, self.lines, sources)}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, replacing an existing file in one step. `load` makes it callable again."""
        target = Path(path)
        files = {"plan.json": self.entry.plan.to_json().encode()}
        if self.entry.library is not None:
            files["kernels.so"] = self.entry.library.read_bytes()
        files |= {f"sources/{name}": with_lines(text, self.lines).encode() for name, text in self.entry.sources().items()}
        files["lines.json"] = json.dumps(dict(self.lines)).encode()
        for constant in self.entry.plan.constants:
            files[f"constants/{constant.name}"] = _bytes_of(self.constants[constant.name])
        manifest = {
            "format": FORMAT,
            "cpu": cpu_id(),
            "key": [list(p) for p in self.key.parts],
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("manifest.json", json.dumps(manifest))
                for name, data in files.items():
                    archive.writestr(name, data)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> CompiledGraph:
    """Make a saved artifact callable. No compiler is needed.

    Raises: FileNotFoundError; ArtifactError for a damaged file, another format or another CPU.
    """
    content = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise ArtifactError(f"load: {path} has format {manifest['format']!r}; this version reads {FORMAT}")
            if manifest["cpu"] != cpu_id():
                raise ArtifactError(f"load: {path} holds code for another CPU; compile and save it again on this machine")
            files = {name: _checked(archive, name, digest, path) for name, digest in manifest["sha256"].items()}
        plan = ArtifactPlan.from_json(files["plan.json"].decode())
        lines = {int(node): line for node, line in json.loads(files["lines.json"]).items()}
    except ArtifactError:
        raise
    except (*_DAMAGE, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"load: {path} is damaged or not a saved artifact ({error})") from error
    constants = {c.name: _tensor_of(files[f"constants/{c.name}"], c.spec) for c in plan.constants}
    # The library stays mapped after its file is deleted.
    with tempfile.TemporaryDirectory(prefix="framejit-load-") as folder:
        library = Path(folder) / "kernels.so" if "kernels.so" in files else None
        if library is not None:
            library.write_bytes(files["kernels.so"])
        return loader.load(plan, library, constants, name=f"graph from {Path(path).name}", lines=lines)


def _checked(archive: zipfile.ZipFile, name: str, digest: str, path: str | os.PathLike[str]) -> bytes:
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ArtifactError(f"load: {name} in {path} is damaged")
    return data


def _bytes_of(t: Tensor) -> bytes:
    return np.ascontiguousarray(t._array).tobytes()


def _tensor_of(data: bytes, spec: Spec) -> Tensor:
    d = dtypes.by_name(spec.dtype)
    shape, strides = spec.fixed()
    t: Tensor = eager_native.empty(d.code, shape, strides)
    t._array[...] = np.frombuffer(data, d.numpy).reshape(shape)
    return t


# --------------------------------------------------------------------------- as text


def explain_entry(entry: Entry, lines_of: Lines, sources: bool = False) -> str:
    """The plan in words; with `sources`, the generated code after it. lines_of: the user's line of each node."""
    plan = entry.plan
    lines = [f"files in {entry.folder}"]
    lines += [f"{s.symbol}: {_source(s)}, {s.symbol.lo} to {s.symbol.hi}" for s in plan.symbols]
    lines += [f"input {i}: {_spec(s)}" for i, s in enumerate(plan.inputs)]
    for i, step in enumerate(plan.steps):
        if isinstance(step, NativeSegment):
            lines.append(f"step {i}: native {step.symbol}, about {_microseconds(step.cost_ns)} us")
        elif isinstance(step, ExternCall):
            lines.append(f"step {i}: eager {step.op}" + (f", called at {lines_of[step.node]}" if step.node in lines_of else ""))
        elif isinstance(step, KernelLaunch):
            lines.append(f"step {i}: {plan.kernels[step.kernel].name}, {step.grid} programs")
        elif isinstance(step, MatrixProduct):
            sizes = " x ".join(map(str, step.sizes))
            lines.append(f"step {i}: a product of {step.dtype} matrices by cuBLASLt, {sizes} (batch, rows, columns, depth)")
        elif isinstance(step, BufferCopy):
            lines.append(f"step {i}: a copy of {step.nbytes} bytes")
        elif isinstance(step, Upload):
            lines.append(f"step {i}: the values of input {', '.join(map(str, step.inputs))}, from the host to the device")
    lines += [f"packed: buffer {', '.join(map(str, p.sources))} once, {p.nbytes} bytes" for p in plan.packs]
    lines += [f"output {i}: {_output(o)}" for i, o in enumerate(plan.outputs)]
    new = sum(a.nbytes for a in plan.allocations)  # an expression if sizes are expressions
    lines.append(f"memory: {new} bytes of outputs, {plan.arena_bytes} of scratch")
    lines += entry.notes()
    if sources:
        lines += [f"// {name}\n{kernels(text, lines_of)}" for name, text in entry.sources().items()]
    return "\n".join(lines)


def kernels(text: str, lines_of: Lines) -> str:
    """The kernels of a unit, with the user's lines. The prelude of a unit is named, not shown."""
    head, mark, after = text.partition(PRELUDE_END)
    shown = f"// (after {head.count(chr(10))} lines of prelude, inductor/cpp/prelude.py)\n{after}" if mark else text
    return with_lines(shown, lines_of)


def _microseconds(cost_ns: Size) -> str:
    return f"{cost_ns / 1e3:.1f}" if isinstance(cost_ns, int) else f"({cost_ns}) / 1000"


def _source(s: Symbol) -> str:
    return f"input {s.input}" if s.kind == "int" else f"{s.kind} of input {s.input}" + f", dim {s.dim}" * (s.kind != "offset")


def _spec(s: Spec | IntInput) -> str:
    return "int" if isinstance(s, IntInput) else f"{s.dtype}{list(s.shape)} strides {list(s.strides)}"


def _output(output: object) -> str:
    spec = getattr(output, "spec", None)
    return type(output).__name__ + (f" {_spec(spec)}" if spec is not None else f" {output}")
