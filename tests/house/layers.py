"""The layers of each package, from the ground up, and the imports that break their order.

A layer is a folder or a module at the package's root. A file imports from its own layer and from layers before it; imports for
type checkers and imports by name count like any other. The package's `__init__` comes last.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from .import_graph import PACKAGES, imports, imports_by_name, sources

LAYERS: dict[str, list[str]] = {
    "eager": (
        "startup base tape dispatch optable _tensor autograd random cuda public linalg functions fft _storage sparse compiler "
        "backends amp cpu overrides transforms nn func special optim serialization storage version __config__ _C "
        # layers above these, under torch's names
        "hub _utils utils _higher_order_ops _ops library _custom_ops _functorch _subclasses _tensor_str accelerator ao distributed "
        "distributions functional futures jit multiprocessing onnx profiler signal testing types as_framejit as_torch"
    ).split(),
    "fxir": "base expr symbols ir trace autodiff region export torchfx backends".split(),
    "dynamo": (
        "report bytecode guards policy values world recording python builtins frames emit compilation api "
        "config compiler_config exc testing utils backends functorch _trace_wrapped_higher_order_op"
    ).split(),
    "inductor": "config base ir loops lowering plan artifact runtime cpp triton driver cache".split(),
}

Edge = tuple[str, str]


@cache
def edges() -> tuple[Edge, ...]:
    """(importer, target) of every import between modules of one package, one for each import statement."""
    names, found = set(sources()), []
    for i in imports():
        target = i.target
        while target not in names and "." in target:
            target = target.rpartition(".")[0]
        if _package(target) == _package(i.importer) and target != i.importer and not i.target.endswith("._native"):
            found.append((i.importer, target))
    for importer, call in imports_by_name():
        argument = call.args[0]
        if isinstance(argument, ast.Constant) and argument.value in names and _package(argument.value) == _package(importer):
            found.append((importer, argument.value))
    return tuple(found)


def _package(module: str) -> str:
    return module.partition(".")[0]


def layer_of(module: str) -> str:
    """The layer that a module lies in: the first part of its name below the package; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def upward(package: str) -> list[Edge]:
    """Imports that go against the order of the layers, between layers that the list names."""
    order = {name: k for k, name in enumerate(LAYERS[package])} | {"": len(LAYERS[package])}
    found = set()
    for importer, target in edges():
        a, b = layer_of(importer), layer_of(target)
        if _package(importer) == package and a in order and b in order and order[b] > order[a]:
            found.add((importer, target))
    return sorted(found)


def unlisted(package: str) -> list[str]:
    """Folders and modules of the package that no layer names."""
    found = {layer_of(name) for name in sources() if _package(name) == package}
    return sorted(found - set(LAYERS[package]) - {""})


def circles(package: str) -> list[list[str]]:
    """Groups of modules that import each other in a circle (strongly connected components of more than one)."""
    graph: dict[str, set[str]] = defaultdict(set)
    for importer, target in edges():
        if _package(importer) == package:
            graph[importer].add(target)
    return sorted(sorted(group) for group in components(graph) if len(group) > 1)


def components(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components, by Tarjan's algorithm (SIAM J. Comput. 1, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in graph.get(name, ()):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            at = stack.index(name)
            found.append(stack[at:])
            del stack[at:]

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


if __name__ == "__main__":
    for package in PACKAGES:
        print(f"{package}: unlisted {' '.join(unlisted(package)) or '-'}")
        for importer, target in upward(package):
            print(f"  {layer_of(importer)} < {layer_of(target) or package}: {importer} imports {target}")
        for group in circles(package):
            print(f"  circle of {len(group)}: {' '.join(group)}")
