"""The signatures of torch's operators, read from aten_schemas.txt.

Owns the reading of that file, and the rules by which torch 2.13 derives the signatures of its Python functions from schemas
(torch/csrc/utils/python_arg_parser.cpp). `eager.public.matching` checks calls against the signatures. A schema is read when a
function is first called with arguments of new classes, so that importing costs nothing.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from eager.startup.places import EAGER_DIR

_SCHEMAS: Final = Path(EAGER_DIR) / "_ops" / "aten_schemas.txt"

# Regular expressions, compiled at first use. Torch's methods of lists, for TorchScript, and a parameter.
_TORCHSCRIPT: Final = r"(?!_foreach_)\w+\.\w+\((Tensor|t)\[\]\(a!\) self"
_PARAMETER: Final = r"(?P<kind>\w+)(?:\([^)]*\))?\??(?P<list>\[\d*\])?(?:\([^)]*\))?\?? (?P<name>\w+)(?P<default>=.*)?"
_TEXT: Final = {"SymInt": "int", "Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout", "Device": "torch.device",
                "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator", "double": "float"}  # fmt: skip


class Parameter(NamedTuple):
    """kind: of the value or of the elements. length: of a list that one number may stand for; 0 for any other list."""

    name: str
    kind: str
    is_list: bool
    length: int
    takes_none: bool
    required: bool
    keyword_only: bool

    @property
    def wanted(self) -> str:
        """The type in torch's messages."""
        kind = _TEXT.get(self.kind, self.kind)
        return f"tuple of {kind}s" if self.is_list else kind


@functools.cache
def schema_lines() -> Mapping[str, tuple[str, ...]]:
    """The lines of aten_schemas.txt (`schema ; tags`) by operator."""
    found: dict[str, list[str]] = {}
    for line in _SCHEMAS.read_text().splitlines():
        if not line.startswith("#"):
            found.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def _parameters(schema: str) -> list[Parameter]:
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    found, keyword_only = [], False
    for part in re.split(r", (?![^\[(]*[\])])", inside) if inside else []:
        if part == "*":
            keyword_only = True
            continue
        m = re.fullmatch(_PARAMETER, part)
        if m is None:
            raise ValueError(f"schema: cannot read {part!r} in {schema!r}")
        listed, default = m["list"], m["default"]
        takes_none = "?" in part[: m.start("name")] or default in ("=None", "=[]")
        name = "input" if m["name"] == "self" and m["kind"] == "Tensor" else m["name"]
        found.append(Parameter(name, m["kind"], bool(listed), int((listed or "[]")[1:-1] or 0),
                               takes_none, default is None, keyword_only))  # fmt: skip
    return found


@functools.cache
def signatures(operator: str, schemas: tuple[str, ...] = ()) -> tuple[tuple[Parameter, ...], ...]:
    """The overloads of torch's Python function for an operator; none if no schema describes it.

    An overload that writes to `out` is one signature with its base, and a factory takes requires_grad.
    schemas: in place of the operator's, for functions whose arguments torch parses by hand.
    """
    plain: list[list[Parameter]] = []
    written: list[list[Parameter]] = []
    for line in schemas or schema_lines().get(operator, ()):
        schema, _, tags = line.partition(" ; ")
        if ("generated" in tags and "view_copy" not in tags) or "Dimname" in schema or ".prim_" in schema or re.match(_TORCHSCRIPT, schema):
            continue
        parameters = _parameters(schema)
        outs = len(re.findall(r"\(\w!\)", schema[schema.index("*") : schema.rindex(") ->")])) if "out" in tags.split() else 0
        if outs:
            kept = parameters[:-outs]
            written.append([*kept, Parameter("out", "Tensor", outs > 1 or "[] out" in schema, 0, True, False, True)])
        else:
            if any(p.name == "pin_memory" for p in parameters):
                parameters.append(Parameter("requires_grad", "bool", False, 0, False, False, True))
            plain.append(parameters)
    for base in plain:
        own = [p for p in base if p.kind not in ("Layout", "Device") and p.name not in ("pin_memory", "requires_grad")]
        if len(own) < len(base):  # a factory, which takes both out= and dtype=
            own = [p for p in own if p.name != "dtype"]
        match = next((w for w in written if w[:-1] == own), None)
        if match is not None:
            base.append(match[-1])
            written.remove(match)
    return tuple(map(tuple, plain + written))


@functools.cache
def takes_out(operator: str) -> bool:
    """Whether torch's function of this name has an `out=`. True if no schema describes the function."""
    overloads = signatures(operator)
    return not overloads or any(p.name == "out" for parameters in overloads for p in parameters)
