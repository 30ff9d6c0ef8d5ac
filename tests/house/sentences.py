"""The texts of the project that people read: docstrings, comments, messages and test names, with their places.

    python -m tests.house.sentences [package ...]          # print every forbidden turn of phrase, and counts
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .import_graph import PACKAGES, ROOT
from .phrases import PHRASES, VERBATIM

AREAS = (*PACKAGES, "benchmarks", "tests")
_C_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*(.*?)\*/|//([^\n]*)', re.S)
# These files hold the forbidden phrases themselves.
_EXEMPT = ("test_sentences.py", "phrases.py")
_PROSE = re.compile(r"[a-z]+ [a-z]+ [a-z]+", re.I)  # a literal with three words in a row is a message


@dataclass(frozen=True, slots=True)
class Text:
    """`content` is one docstring, comment block, message or test name; it begins at `line` of `file`."""

    file: str
    line: int
    content: str


@cache
def texts(area: str) -> tuple[Text, ...]:
    """Every text of one package or folder."""
    found: list[Text] = []
    for path in sorted((ROOT / area).rglob("*")):
        if "__pycache__" in path.parts or path.name in _EXEMPT:
            continue
        if path.suffix == ".py":
            found += _python_texts(path)
        elif path.suffix in (".c", ".h"):
            found += _c_texts(path)
    return tuple(found)




def _python_texts(path: Path) -> Iterator[Text]:
    source, file = path.read_text(), str(path.relative_to(ROOT))
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                docstrings.add(first.value)
                yield Text(file, first.lineno, _joined(first.value.value))
            if not isinstance(node, ast.Module) and node.name.startswith("test_"):
                yield Text(file, node.lineno, node.name.removeprefix("test_").replace("_", " "))
    yield from _messages(tree, file, docstrings)
    yield from _comments(source, file)


def _messages(tree: ast.Module, file: str, docstrings: set[ast.Constant]) -> Iterator[Text]:
    inside_f_strings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "X" for p in node.values]
            inside_f_strings.update(p for p in node.values if isinstance(p, ast.Constant))
            content = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings | inside_f_strings:
            content = node.value
        else:
            continue
        if "/*" in content:  # generated C code
            yield from (Text(file, node.lineno, _joined(m[1] or m[2])) for m in _C_COMMENT.finditer(content) if m[1] or m[2])
        elif _PROSE.search(content):
            yield Text(file, node.lineno, _joined(content))


def _comments(source: str, file: str) -> Iterator[Text]:
    """Comments; whole-line comments on consecutive lines are one text."""
    lines: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, whole_line = token.start[0], not token.line[: token.start[1]].strip()
        if lines and not (whole_line and line == last + 1):
            yield Text(file, start, _joined(" ".join(lines)))
            lines = []
        if not lines:
            start = line
        lines.append(token.string.lstrip("#").strip())
        last = line if whole_line else 0
    if lines:
        yield Text(file, start, _joined(" ".join(lines)))


def _c_texts(path: Path) -> Iterator[Text]:
    source, file = path.read_text(), str(path.relative_to(ROOT))
    for match in _C_COMMENT.finditer(source):
        content = match[1] or match[2]
        if content:
            yield Text(file, source.count("\n", 0, match.start()) + 1, _joined(content.replace("\n *", "\n")))


def _joined(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Finding:
    """A forbidden turn of phrase in a text. excerpt: the words around it. phrase: its name. instead: the replacement."""

    text: Text
    excerpt: str
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.text.file}:{self.text.line}: [{self.phrase}] ... {self.excerpt} ...\n    write: {self.instead}"


def forbidden(area: str) -> list[Finding]:
    """Every forbidden turn of phrase in the texts of one area."""
    own = [t for t in texts(area) if not any(message in t.content for message in VERBATIM)]
    return [
        Finding(t, t.content[max(0, m.start() - 60) : m.end() + 60], name, instead)
        for t in own
        for name, pattern, instead in PHRASES
        for m in pattern.finditer(t.content)
    ]


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for area in sys.argv[1:] or AREAS:
        folder, _, prefix = area.partition("/")  # an area, or a folder in it: "dynamo/guards"
        found = [f for f in forbidden(folder) if f.text.file.startswith(f"{folder}/{prefix}")]
        print(*found, f"{area}: {len(found)}", sep="\n")
        total.update(f.phrase for f in found)
    print(*(f"{count} {phrase}" for phrase, count in total.most_common()), sep="\n")
