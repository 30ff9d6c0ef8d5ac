"""What is said where several processes would be needed."""
from __future__ import annotations

from typing import NoReturn


def missing(what: str) -> NoReturn:
    raise NotImplementedError(f"distributed.{what}: framejit runs in one process; ask distributed.is_available() first, it is False")
