"""The functions of a graph's unit, each text once: layers of a model that repeat share their kernels.

Functions reach memory through an array of pointers that the caller fills, so that two kernels that differ only in their
buffers' places have the same text. This module does not depend on the computation in a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

NAME: Final = "@NAME@"  # placeholder for the function's own name in a text that is added
SIZES_IN: Final = "FJ_SIZES_IN"  # placeholder for a given `bufs`: the places are known only when all buffers are
SIZES: Final = "FJ_SIZES"  # the values of the graph's symbols, then of other expressions; defined in the scope of `bufs`
_TITLES: Final = 4  # most results of one function that its comment names
_BUFFER: Final = re.compile(r"(?<=_)(?:buf|in|const)\d+")
_SYMBOL: Final = re.compile(r"\bn(\d+)\b")  # names as in `inductor.lowering`; generated code has no other names of this form
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


class Functions:
    """Function texts in the order in which they were first added."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._titles: dict[str, list[str]] = {}

    def add(self, prefix: str, text: str, title: str) -> str:
        """The name under which `text` is defined. title: the results that it computes for this caller, for a comment."""
        same = _renamed(text)
        name = self._names.get(same)
        if name is None:
            name = self._names[same] = f"{prefix}{len(self._names)}"
            self._texts[name] = text.replace(NAME, name)
        self._titles.setdefault(name, []).append(comment(title))
        return name

    @property
    def texts(self) -> Sequence[str]:
        """Each function after a comment that names its callers' results."""
        return [f"/* {_callers(self._titles[name])} */\n{text}" for name, text in self._texts.items()]


def _callers(titles: Sequence[str]) -> str:
    more = len(titles) - _TITLES
    return "\n   ".join([*titles[:_TITLES], *([f"and {more} more, named where they are called"] if more > 0 else [])])


def comment(text: str) -> str:
    """`text` in a form that is valid inside a C comment."""
    return text.replace("*/", "* /")


def arguments(pointers: Sequence[str]) -> str:
    """The statement that makes `args`: first `bufs` itself, then the pointers."""
    return f"char* args[] = {{{', '.join(['(char*)bufs', *pointers])}}};"


def declared(lines: Iterable[str]) -> list[str]:
    """Declarations of the graph's symbols that `lines` name. They read `SIZES`, which needs `bufs`."""
    numbers = {int(k) for line in lines for k in _SYMBOL.findall(_COMMENT.sub("", line))}
    return [f"const i64 n{k} = {SIZES}[{k}];" for k in sorted(numbers)]


def _renamed(text: str) -> str:
    """The text with buffers named by order of appearance."""
    seen: dict[str, str] = {}
    return _BUFFER.sub(lambda m: seen.setdefault(m.group(), f"x{len(seen)}"), text)
