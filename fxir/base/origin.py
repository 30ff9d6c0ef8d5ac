"""The place in the user's program that a node, a decision or an error comes from."""

from __future__ import annotations

from eager.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """One line of the user's program. `stack`: outer frames first, as (file, line, function)."""

    file: str
    line: int
    source_line: str = ""
    function: str = ""
    stack: tuple[tuple[str, int, str], ...] = ()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        return f"{where} in {self.function}" if self.function else where
