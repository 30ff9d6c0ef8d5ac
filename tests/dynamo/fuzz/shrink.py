"""Makes a failing program short: drops statements, unwraps blocks, and replaces expressions, while it still fails."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list", "args", "targets", "items", "keywords", "elts")
_BLOCKS = ("body", "orelse", "finalbody")
_PLAIN = tuple(ast.parse(text, mode="eval").body for text in ("x", "1", "'a'", "True"))


@dataclass(frozen=True)
class _Step:
    """One way to make a program shorter. node: its number in `ast.walk`.

    field and at: the item to drop from a list of the node. block: replace the dropped statement by this block of it.
    part: replace the expression by this child expression, or by a plain expression.
    """

    node: int
    field: str = ""
    at: int = 0
    block: str = ""
    part: int = -1


def _steps(tree: ast.Module) -> Iterator[_Step]:
    nodes = list(ast.walk(tree))
    for i, node in enumerate(nodes):
        for field in _BODIES:
            held = getattr(node, field, None)
            for k in reversed(range(len(held) if isinstance(held, list) else 0)):
                yield _Step(i, field, k)
                for block in _BLOCKS:
                    if isinstance(held[k], ast.stmt) and getattr(held[k], block, None):
                        yield _Step(i, field, k, block)
    for i, node in enumerate(nodes):
        stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Name) and not stored:
            yield from (_Step(i, part=p) for p in range(len(_parts(node)) + len(_PLAIN)))


def _parts(node: ast.AST) -> list[ast.expr]:
    return [c for c in ast.walk(node) if isinstance(c, ast.expr) and c is not node][:6]


def _apply(tree: ast.Module, step: _Step) -> ast.Module:
    new = copy.deepcopy(tree)
    nodes = list(ast.walk(new))
    node = nodes[step.node]
    if step.part < 0:
        held = getattr(node, step.field)
        gone = held.pop(step.at)
        if step.block:
            held[step.at : step.at] = getattr(gone, step.block)
        if not held and step.field == "body":
            held.append(ast.Pass())
        return new
    parts = [*_parts(node), *_PLAIN]
    for parent in nodes:
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, copy.deepcopy(parts[step.part]))
            elif isinstance(value, list) and any(v is node for v in value):
                value[[v is node for v in value].index(True)] = copy.deepcopy(parts[step.part])
    return new


def shrink(source: str, fails: Callable[[str], bool], attempts: int = 3000) -> str:
    """The shortest program for which `fails` holds, found within this number of attempts."""
    best = ast.unparse(ast.parse(source))
    if not fails(best):
        return source
    progress = True
    while progress and attempts > 0:
        progress, at = False, 0
        while attempts > 0:
            tree = ast.parse(best)
            step = next((s for k, s in enumerate(_steps(tree)) if k == at), None)
            if step is None:
                break
            at += 1
            attempts -= 1
            try:
                text = ast.unparse(ast.fix_missing_locations(_apply(tree, step)))
                compile(text, "<shrunk>", "exec")
            except (SyntaxError, ValueError, AttributeError, IndexError):
                continue
            if len(text) < len(best) and fails(text):
                best, progress, at = text, True, at - 1
    return best
