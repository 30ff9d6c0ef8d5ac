"""Progress of a download or a loop on the terminal, with the interface of tqdm, which is not a dependency."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Self

__all__ = ["tqdm"]


class tqdm:  # noqa: N801 - code that imports torch's progress bar expects this name
    """Counts items, out of `total` if it is known, in one line of stderr; writes only to a terminal.

    iterable: iteration yields its items and counts them. disable: write nothing.
    Other arguments of tqdm (unit, unit_scale, ...) are accepted and ignored.
    """

    def __init__(self, iterable: Iterable[Any] | None = None, desc: str | None = None, total: float | None = None,
                 *args: Any, disable: bool | None = None, **kwargs: Any) -> None:  # fmt: skip
        del args, kwargs
        self.iterable, self.desc = iterable, desc or ""
        self.total = len(iterable) if total is None and isinstance(iterable, Sized) else total
        self.disable = disable if disable is not None else not sys.stderr.isatty()
        self.n: float = 0

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self.iterable or ():
                yield item
                self.update()

    def update(self, n: float = 1) -> None:
        """Count `n` more items."""
        self.n += n
        if not self.disable:
            of = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.0f}"
            sys.stderr.write(f"\r{self.desc}{': ' if self.desc else ''}{of}")
            sys.stderr.flush()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """Set the text before the count; with `refresh`, write the line again."""
        self.desc = desc or ""
        if refresh:
            self.update(0)

    def close(self) -> None:
        """End the line. A second call does nothing."""
        if not self.disable:
            sys.stderr.write("\n")
        self.disable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
