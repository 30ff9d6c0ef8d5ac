"""A file, a function and a class each hold one idea: at most 700 lines, 60 lines and 40 methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .import_graph import PACKAGES, sources

FILE_LINES, FUNCTION_LINES, METHODS = 700, 60, 40
EXEMPT = {"eager._tensor.tensor.Tensor"}  # torch's methods


def larger(package: str) -> list[str]:
    """The files, functions and classes of a package that are larger than the limits."""
    return [found for name, (path, tree) in sources().items() if name.partition(".")[0] == package
            for found in _larger(name, len(path.read_text().splitlines()), tree)]  # fmt: skip


def _larger(module: str, lines: int, tree: ast.Module) -> Iterator[str]:
    if lines > FILE_LINES:
        yield f"{module}: {lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{module}.{node.name}: {length} lines"
        elif isinstance(node, ast.ClassDef) and f"{module}.{node.name}" not in EXEMPT:
            methods = sum(isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef) for x in node.body)
            if methods > METHODS:
                yield f"{module}.{node.name}: {methods} methods"


@pytest.mark.parametrize("package", PACKAGES)
def test_files_functions_and_classes_are_small(package: str) -> None:
    found = larger(package)
    assert not found, "\n".join(found)


def test_a_large_function_file_and_class_are_found() -> None:
    source = "def f():\n" + "    x = 1\n" * FUNCTION_LINES + "class C:\n" + "    def m(self): ...\n" * (METHODS + 1)
    assert list(_larger("m", FILE_LINES + 1, ast.parse(source))) == ["m: 701 lines", "m.f: 61 lines", "m.C: 41 methods"]
