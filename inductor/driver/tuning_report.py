"""The progress bar and the tables of autotuning.

Owns their look. It does not depend on the measured variants.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["Bar", "table"]

_WIDTH = 120
_TITLE = 50  # most characters of a step's text


class Bar:
    """A progress bar on standard error while the block runs, if that is a terminal. total: steps."""

    def __init__(self, title: str, total: int) -> None:
        self._bar: Progress | None = None
        if total and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            with suppress(Exception):  # another rich display of the program is live
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, text: str) -> None:
        """Begin a step."""
        if self._bar is not None:
            self._bar.update(self._task, description=f"autotuning {text if len(text) <= _TITLE else text[: _TITLE - 3] + '...'}")

    def done(self) -> None:
        """End a step."""
        if self._bar is not None:
            self._bar.advance(self._task)


def table(title: str, seconds: Mapping[str, float], described: Mapping[str, str], chosen: str, flops: float = 0.0) -> str:
    """The variants as text, the fastest first. described: variant -> words; flops: of one run, 0 for no rate."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("", "us", *(["GFLOP/s"] if flops else []), "variant"):
        made.add_column(heading, justify="right" if heading in ("us", "GFLOP/s") else "left", no_wrap=True)
    for name in sorted(seconds, key=seconds.__getitem__):
        rate = [f"{flops / seconds[name] / 1e9:.1f}"] if flops else []
        made.add_row("*" if name == chosen else "", f"{seconds[name] * 1e6:.1f}", *rate, described[name])
    out = Console(file=io.StringIO(), width=_WIDTH)
    out.print(made)
    assert isinstance(out.file, io.StringIO)
    return "\n".join([title, *_lines(out.file.getvalue())])


def _lines(text: str) -> Sequence[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
