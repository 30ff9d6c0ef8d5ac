"""How far a download or a loop is, on the terminal: under the name and with the calls of tqdm, which is no dependency."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Self

__all__ = ["tqdm"]


class tqdm:  # noqa: N801 - code that shows progress with what torch shows it with expects this name
    """Count what is done, of `total` if that is known, in one line of stderr that is written only on a terminal.

    iterable: what `iter()` passes through, counting one for each item. disable: show nothing.
    Other arguments of tqdm (unit, unit_scale, ...) are taken and change nothing.
    """

    def __init__(self, iterable: Iterable[Any] | None = None, desc: str | None = None, total: float | None = None,
                 *args: Any, disable: bool | None = None, **kwargs: Any) -> None:  # fmt: skip
        del args, kwargs
        self.iterable, self.desc = iterable, desc or ""
        self.total = total if total is not None or not hasattr(iterable, "__len__") else len(iterable)  # type: ignore[arg-type]
        self.disable = disable if disable is not None else not sys.stderr.isatty()
        self.n: float = 0

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self.iterable or ():
                yield item
                self.update()

    def update(self, n: float = 1) -> None:
        """`n` more are done."""
        self.n += n
        if not self.disable:
            of = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.0f}"
            sys.stderr.write(f"\r{self.desc}{': ' if self.desc else ''}{of}")
            sys.stderr.flush()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        self.desc = desc or ""
        if refresh:
            self.update(0)

    def close(self) -> None:
        """End the line. Closing again does nothing."""
        if not self.disable:
            sys.stderr.write("\n")
        self.disable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
