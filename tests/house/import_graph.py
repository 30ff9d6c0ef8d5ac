"""Reads every import of the product with `ast`: importer and target, at module level or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("eager", "fxir", "dynamo", "inductor")


@dataclass(frozen=True, slots=True)
class Import:
    """`importer` (a module) imports `target` (dotted) at `line`; lazy: inside a function; typing: for checkers only."""

    importer: str
    target: str
    line: int
    lazy: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sources() -> dict[str, tuple[Path, ast.Module]]:
    """Every module of the product: dotted name -> (file, tree)."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {module_name(path): (path, ast.parse(path.read_text(), str(path))) for path in files}


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the product, relative ones resolved; `from m import n` is m.n where that is a module."""
    return tuple(i for name, (path, tree) in sources().items() for i in _module_imports(name, path, tree))


@cache
def imports_by_name() -> tuple[tuple[str, ast.Call], ...]:
    """(module, call) of every call of `import_module` or `__import__` in the product."""
    return tuple((name, node) for name, (_, tree) in sources().items() for node in ast.walk(tree)
                 if isinstance(node, ast.Call) and _called(node.func) in ("import_module", "_import_module", "__import__"))  # fmt: skip


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def imports_of(path: Path) -> list[Import]:
    """The imports of one file outside the product (benchmarks, tools)."""
    return list(_module_imports(module_name(path), path, ast.parse(path.read_text(), str(path))))


def _module_imports(name: str, path: Path, tree: ast.Module) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    pending: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while pending:
        node, lazy, typing = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy = True
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += [(child, lazy, True) for child in node.body]
            pending += [(child, lazy, typing) for child in node.orelse]
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, lazy, typing)
        elif isinstance(node, ast.ImportFrom):
            for target in _from_targets(node, package):
                yield Import(name, target, node.lineno, lazy, typing)
        else:
            pending += [(child, lazy, typing) for child in ast.iter_child_nodes(node)]


def _from_targets(node: ast.ImportFrom, package: str) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*anchor, *filter(None, [node.module])])
    for alias in node.names:
        full = f"{base}.{alias.name}"
        path = ROOT / full.replace(".", "/")
        is_module = path.with_suffix(".py").exists() or path.is_dir() or alias.name == "_native"
        yield full if is_module else base
