"""The layers of dynamo's native code: a file includes headers only of its layer and of the layers before it.

One header contains all conditions on the version of CPython. A file declares its exported functions in its header, so that
every use of another file needs an include.
"""

from __future__ import annotations

import re
from pathlib import Path

from eager.startup.places import ROOT

FOLDER = Path(ROOT) / "dynamo" / "native"
# From the ground up; names of one entry are one layer.
LAYERS = (
    "state", "ptrmap frame_compat", "code_state", "guard_kinds guards guard_build guard_program shape_guard dictwatch iterators",
    "entries binder", "tail", "dispatcher", "region", "frame_fill", "hook", "resume compiled_function", "module",
)  # fmt: skip
RANK = {name: k for k, names in enumerate(LAYERS) for name in names.split()}
FILES = sorted(FOLDER.glob("*.[ch]"))


def _includes(path: Path) -> list[str]:
    found = re.findall(r'#include "([^"/]+)\.h"', path.read_text())
    return [name for name in found if (FOLDER / f"{name}.h").exists()]


def test_every_native_file_has_a_layer() -> None:
    assert {path.stem for path in FILES} == set(RANK)


def test_native_files_include_headers_of_their_layer_and_of_layers_before_it() -> None:
    upward = [f"{path.name} includes {name}.h" for path in FILES for name in _includes(path) if RANK[name] > RANK[path.stem]]
    assert upward == []


def test_one_header_knows_versions_of_cpython() -> None:
    assert [path.name for path in FILES if "PY_VERSION_HEX" in path.read_text()] == ["frame_compat.h"]
