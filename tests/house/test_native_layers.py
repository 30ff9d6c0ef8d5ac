"""The layers of eager's native code: a file includes and uses only its own layer and the layers before it."""
from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "eager" / "native"
LAYERS = ("runtime", "tensor", "kernels", "tape", "calls", "autograd", "module")
FILES = sorted(p for p in NATIVE.rglob("*.[ch]"))
EXTENSIONS = ("eager", "dynamo", "inductor")
GENERATED = {"pointwise_loops.h", "integer_loops.h", "kernel_table.h"}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_PROTOTYPE = re.compile(r"^(?!static|typedef|#)[A-Za-z_][\w \*]*?\b(\w+)\([^;{}]*\);", re.M)
_DEFINITION = re.compile(r"^(?!static|typedef|#)[A-Za-z_][\w \*]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
_FUNCTION = re.compile(r"^[A-Za-z_][^\n;{}#]*?\b(\w+)\([^;{}]*\)\n\{\n.*?^\}", re.M | re.S)
# Sources of result memory. A kernel gets its memory from `Results` (kernels/results.h).
_ALLOCATORS = re.compile(r"\b(tensor_new|new_tensor|storage_alloc|storage_without_memory)\(")


def _layer(path: Path) -> int:
    inside = path.relative_to(NATIVE).parts
    return LAYERS.index(inside[0] if len(inside) == 2 else "module")


def _code(path: Path) -> str:
    return _COMMENT.sub("", path.read_text())


def _includes(path: Path) -> list[Path]:
    return [NATIVE / name for name in re.findall(r'#include "([^"]+)"', path.read_text())]


def test_every_file_lives_in_a_layer():
    assert {p.relative_to(NATIVE).parts[0] for p in FILES} == {*LAYERS[:-1], "module.c"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(NATIVE)))
def test_includes_point_downwards(path: Path):
    upwards = [str(i) for i in _includes(path) if not i.exists() or _layer(i) > _layer(path)]
    assert not upwards, f"{path.relative_to(NATIVE)} includes {upwards}"


def test_headers_form_no_circle():
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, [p.name for p in (*above, path)]
        if path not in done:
            for below in _includes(path):
                visit(below, (*above, path))
            done.add(path)

    for path in FILES:
        visit(path, ())


def test_a_header_declares_functions_in_the_same_layer():
    """With the includes held, this holds every use of a function of another file: C knows it by a header only."""
    defined = {name: _layer(p) for p in FILES if p.suffix == ".c" for name in _DEFINITION.findall(_code(p))}
    elsewhere = {f"{p.name}: {name}": LAYERS[defined[name]] for p in FILES if p.suffix == ".h" for name in _PROTOTYPE.findall(_code(p))
                 if name in defined and defined[name] != _layer(p)}  # fmt: skip
    assert not elsewhere


def test_sources_declare_no_function_in_other_files():
    found = {p.name: names for p in FILES if p.suffix == ".c" if (names := _PROTOTYPE.findall(_code(p)))}
    found |= {p.name: ["extern"] for p in FILES if p.suffix == ".c" and re.search(r"^\s*extern\b", _code(p), re.M)}
    assert not found


def test_kernels_allocate_no_results():
    found = {p.name for p in FILES if p.parent.name == "kernels" and _ALLOCATORS.search(_code(p))}
    assert found == {"results.c", "results.h"}


@pytest.mark.parametrize("extension", ["eager", "inductor"])
def test_version_conditions_live_in_one_header(extension: str):
    found = {p.name for p in (ROOT / extension / "native").rglob("*.[ch]") if "PY_VERSION_HEX" in p.read_text()}
    assert found <= {"python_compat.h"}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_the_build_lists_every_file(extension: str):
    modules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    listed = next(m for m in modules if m["name"] == f"{extension}._native")
    have = {str(p.relative_to(ROOT)) for p in (ROOT / extension / "native").rglob("*.[ch]")}
    assert {p for p in have if p.endswith(".c")} == set(listed["sources"])
    assert {p for p in have if p.endswith(".h")} == {p for p in listed["depends"] if p.startswith(f"{extension}/native/")}


def test_files_and_functions_are_short():
    written = [p for p in FILES if p.name not in GENERATED]
    long_files = {p.name for p in written if len(p.read_text().splitlines()) > 700}
    long_functions = {f"{p.name}: {found[1]}" for p in written for found in _FUNCTION.finditer(p.read_text()) if found[0].count("\n") > 60}
    assert not long_files and not long_functions
