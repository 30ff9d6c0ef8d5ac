"""Measured winners on disk: one file for each key.

Owns the names of the files, and the check of an entry. It does not depend on the keys or the kinds of winners.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from eager.base import logs
from inductor.base import records

__all__ = ["StoredWinners"]

T = TypeVar("T")
_COMPONENT = logs.component("inductor")


class StoredWinners(Generic[T]):
    """The winners in a folder, each read from disk at its first lookup. A winner that is not a candidate of this version is ignored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, T | None] = {}

    def find(self, key: str, candidate: Callable[[Mapping[str, Any]], T | None], prefix: str = "") -> T | None:
        """The winner for a key; None if none is stored.

        candidate: finds the candidate that a stored record describes. prefix: of the file's name.
        """
        if key not in self._known:
            self._known.setdefault(key, self._read(key, candidate, prefix))  # another thread may have stored a winner meanwhile
        return self._known[key]

    def remember(self, key: str, winner: T, record: Mapping[str, Any], prefix: str = "") -> None:
        """Store a winner, in this process and on disk. record: describes it."""
        self._known[key] = winner
        records.write(self._path(key, prefix), key, record)

    def _path(self, key: str, prefix: str) -> Path:
        return self.folder / f"{prefix}{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"

    def _read(self, key: str, candidate: Callable[[Mapping[str, Any]], T | None], prefix: str) -> T | None:
        path = self._path(key, prefix)
        found = records.read(path, key)
        if found is None:
            return None
        winner = candidate(found)
        if winner is None:
            _COMPONENT.log(f"{path}: {found} is not a candidate of this version; it is measured again")
        return winner
