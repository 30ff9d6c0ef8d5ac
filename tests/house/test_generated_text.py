"""Generated text is written once: no printer replaces parts of a text or searches it. The calls of library functions are data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor.cpp import vector_math
from inductor.cpp.prelude import prelude
from inductor.triton import helpers

ROOT = Path(__file__).parents[2]
FOLDERS = ("inductor/cpp", "inductor/triton", "inductor/driver")
ALLOWED = {
    ("inductor/cpp/units.py", "replace"): "a title, which is not generated, must not end the comment that it is written in",
    ("inductor/triton/compile.py", "re"): "reads the output of Triton's compiler and of a disassembler",
}
METHODS = frozenset({"replace", "translate", "maketrans"})


def edits(source: str) -> Iterator[str]:
    """The ways to edit or search text in a module: methods of str, and the module re."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in METHODS:
                if not (isinstance(owner, ast.Name) and owner.id == "dataclasses"):
                    yield name
            case ast.Import(names=names) if any(n.name == "re" for n in names):
                yield "re"
            case ast.ImportFrom(module="re"):
                yield "re"


@pytest.mark.parametrize("source", ["text.replace(a, b)", "import re", "from re import sub", "f'{a}'.translate(table)"])
def test_an_edit_of_text_is_found(source: str) -> None:
    assert [*edits(source)] and not [*edits("dataclasses.replace(x, a=1); replace(x, a=1); x._replace(a=1)")]


def test_no_printer_edits_or_searches_text() -> None:
    found = {(str(path.relative_to(ROOT)), edit) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
             for edit in edits(path.read_text())}  # fmt: skip
    assert found == set(ALLOWED)


def _calls(source: str, definition: str) -> dict[str, set[str]]:
    """Function -> the library functions that it calls; overloads count together."""
    found: dict[str, set[str]] = {}
    starts = [*re.finditer(definition, source, re.MULTILINE)]
    for here, after in zip(starts, [*starts[1:], None], strict=True):
        called = re.findall(r"\bfj_(\w+)\(", source[here.end() : after.start() if after else len(source)])
        found.setdefault(here[1], set()).update(called)
    return found


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    found, left = set[str](), {name}
    while left:
        found |= left
        left = set[str]().union(*(calls.get(n, set()) for n in left)) - found
    return found - {name}


def test_the_table_names_the_vector_functions_that_the_prelude_calls() -> None:
    calls = _calls(prelude(), r"^(?:template <.*> )?FI \w+ fj_(\w+)\(")
    functions = {*vector_math.LIBM, *vector_math.LIBM_BINARY}
    found = {name: _reached(name, calls) & functions for name in calls if name != "floormod"}  # only of integers
    assert {name: called for name, called in found.items() if called} == {n: {*c} for n, c in vector_math._CALLS.items()}


def test_the_table_names_the_triton_functions_that_others_call() -> None:
    calls = {name: called - {name} for name, called in _calls(helpers._SOURCES, r"^def fj_(\w+)\(").items()}
    assert {*calls} == {*helpers._FUNCTIONS}
    assert {name: called for name, called in calls.items() if called} == {n: {*c} for n, c in helpers._CALLS.items()}
    made = helpers.Helpers()
    assert made["floordiv"] == "fj_floordiv" and {*made} == {"floordiv", "truncdiv", "fmod"}
    assert made.sources().index("def fj_fmod(") < made.sources().index("def fj_floordiv(")
