"""The texts that come from the table of guard kinds: a C header, and a part of the stub of `dynamo._native`.

`python -m dynamo.guards.kind_files` writes both files; `tests/dynamo/test_guard_kinds.py` holds them against the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dynamo.guards.kinds import KINDS, STEPS, Phase

_DYNAMO: Final = Path(__file__).parents[1]
HEADER: Final = _DYNAMO / "native" / "guard_kinds.h"
STUB: Final = _DYNAMO / "_native.pyi"
_KINDS: Final = tuple(KINDS.values())
_NOTICE: Final = "Written by `python -m dynamo.guards.kind_files` from the table in dynamo/guards/kinds.py; do not edit."


def _filled(items: Iterable[str], width: int) -> Iterator[str]:
    """The items in lines of at most `width` characters, with a comma behind each item."""
    line = ""
    for item in items:
        if line and len(line) + len(item) + 2 > width:
            yield line
            line = ""
        line += f"{' ' * bool(line)}{item},"
    yield line


def _enum(names: Iterable[str], tag: str) -> list[str]:
    return [f"typedef enum {{  /* {tag} */", *(f"    {line}" for line in _filled(names, 120)), f"}} {tag};"]


def header() -> str:
    """The text of `dynamo/native/guard_kinds.h`."""
    relations = [kind.c_name for kind in _KINDS if kind.phase is Phase.RELATION]
    ends = [step.c_name for step in STEPS if not step.gives]
    lines = [
        f"/* {_NOTICE} */",
        "#ifndef FRAMEJIT_GUARD_KINDS_H",
        "#define FRAMEJIT_GUARD_KINDS_H",
        "",
        *_enum((*dict.fromkeys(kind.c_name for kind in _KINDS), "G_BLOCK_END"), "GuardOp"),
        f"enum {{ FIRST_RELATION = {relations[0]}, LAST_RELATION = {relations[-1]} }};",
        "",
        "/* Name, operation, operands by letter (see guard_build.c), number of operands. */",
        "#define GUARD_KINDS \\",
        *(f'    {{"{kind.name}", {kind.c_name}, "{kind.letters}", {len(kind.operands)}}}, \\' for kind in _KINDS),
        "",
        *_enum((step.c_name for step in STEPS), "ShapeStep"),
        f"enum {{ FIRST_END = {ends[0]}, N_STEPS = {len(STEPS)} }};",
        "",
        "/* Name, operands in the program, values popped, values pushed. */",
        "#define SHAPE_STEPS \\",
        *(f'    {{"{s.name}", {len(s.parameters)}, {s.takes}, {s.gives}}}, \\' for s in STEPS),
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _stub_lines() -> Iterator[str]:
    for phase in Phase:
        yield f"{phase.value}::"
        yield ""
        for kind in _KINDS:
            if kind.phase is phase:
                form = ", ".join([f'("{kind.name}"', *(o.name for o in kind.operands)]) + ")"
                yield f"    {form:<36}  {kind.meaning}"
        yield ""
    yield "Steps of a shape check; k numbers the sources::"
    yield ""
    for meaning, steps in itertools.groupby(STEPS, lambda step: step.meaning):
        group = list(steps)
        form = ", ".join([" ".join(f'"{s.name}"' for s in group), *group[0].parameters])
        yield f"    {form:<36}  {meaning}"


_STUB_BEGIN: Final = f"    .. {_NOTICE}\n\n"
_STUB_END: Final = "    .. End of the list.\n"


def stub(text: str) -> str:
    """The text of `dynamo/_native.pyi` with the list of instructions replaced."""
    before, _, rest = text.partition(_STUB_BEGIN)
    _, _, after = rest.partition(_STUB_END)
    lines = "".join(f"    {line}".rstrip() + "\n" for line in _stub_lines())
    return f"{before}{_STUB_BEGIN}{lines}\n{_STUB_END}{after}"


if __name__ == "__main__":
    HEADER.write_text(header())
    STUB.write_text(stub(STUB.read_text()))
