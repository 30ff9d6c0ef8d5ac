"""Law D of the house: composition instead of inheritance. A capture has parts, and values use it through one small protocol."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dynamo.frames.capture import Capture
from dynamo.values import protocols

from .import_graph import PACKAGES, sources

MOST_MEMBERS = 25
MOST_METHODS = 40


def members(protocol: type) -> set[str]:
    """Names of the methods, properties and attributes that a protocol has."""
    return {n for n in {*vars(protocol), *protocol.__annotations__} if not n.startswith("_")}


def test_the_machine_is_small() -> None:
    assert len(members(protocols.Machine)) <= MOST_MEMBERS


def test_a_capture_inherits_nothing() -> None:
    assert Capture.__bases__ == (object,)


def classes(package: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for name, (_, tree) in sources().items():
        if name.partition(".")[0] == package:
            yield from ((name, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_no_class_of_dynamo_joins_two_classes_of_dynamo() -> None:
    own = {node.name for _, node in classes("dynamo")}
    joined = [
        f"{module}.{node.name}" for module, node in classes("dynamo")
        if sum(ast.unparse(base).rpartition(".")[2] in own for base in node.bases) > 1
    ]  # fmt: skip
    assert joined == []


def test_no_class_of_dynamo_exceeds_the_limit_of_methods() -> None:
    long = [
        f"{module}.{node.name}" for module, node in classes("dynamo")
        if sum(isinstance(part, ast.FunctionDef) for part in node.body) > MOST_METHODS
    ]  # fmt: skip
    assert long == []


def test_the_packages_are_read() -> None:
    assert "dynamo" in PACKAGES
    assert any(node.name == "Capture" for _, node in classes("dynamo"))
