"""The entries that running processes use, so that no process removes an entry under a reader.

Owns the folder `readers` of a cache: the file `lock`, and one file a process with the names that it uses.

    lock         flock: shared while an entry is looked up, exclusive while entries are removed
    PID-NUMBER   flock: exclusive while the process lives; lines "+NAME" and "-NAME" as uses begin and end

A process registers a name before it reads the entry, under the shared lock. A process that removes entries holds the exclusive
lock, so it sees every use. The kernel releases the lock of a process that dies; its file then counts for nothing and is removed.
On a file system without flock every function works, without protection.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eager.base import logs
from eager.base.locks import new_lock

__all__ = ["Readers"]

_LOG = logs.artifact("cache")


class Readers:
    """The uses of entries of one cache. folder: `<cache>/readers`, created on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """In the block no process removes entries. Blocks of several readers run at the same time."""
        with self._lock(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[Counter[str]]:
        """In the block no process begins to use an entry. Yields the names in use, with the number of processes."""
        with self._lock(fcntl.LOCK_EX):
            yield self._used()

    def hold(self, user: Any, name: str) -> None:
        """Register `name` as in use until `user` is collected. Call it in a `sharing` block."""
        try:
            mine = _registration(self._folder)
            mine.write(f"+{name}\n")
        except OSError as error:
            _LOG.log(f"the use of {name} is not registered ({error}); another process may remove it")
            return
        weakref.finalize(user, mine.release, name).atexit = False  # the end of the process releases everything

    def _used(self) -> Counter[str]:
        found: Counter[str] = Counter()
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name != "lock":
                    found.update(_names_in(path))
        return found

    @contextmanager
    def _lock(self, how: int) -> Iterator[None]:
        fd = -1
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(fd, how)
        except OSError as error:
            _LOG.log(f"{self._folder} cannot be locked ({error}); entries in use are not protected")
        try:
            yield
        finally:
            if fd >= 0:
                os.close(fd)


def _names_in(path: Path) -> set[str]:
    """The names that the process of this file uses; none if it has died, and then its file is removed."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return set()
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            uses: Counter[str] = Counter()
            for line in path.read_text().splitlines():
                uses[line[1:]] += 1 if line[0] == "+" else -1
            return {name for name, count in uses.items() if count > 0}
        path.unlink(missing_ok=True)
        return set()
    except OSError:
        return set()
    finally:
        os.close(fd)


class _Registration:
    """The file of this process in one folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}-{time.monotonic_ns()}"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, line: str) -> None:
        """Append a line in one write."""
        os.write(self._fd, line.encode())

    def release(self, name: str) -> None:
        """End a use. Runs when its user is collected."""
        with suppress(OSError):
            self.write(f"-{name}\n")

    def leave_to_parent(self) -> None:
        """In a forked child: the file is the parent's, and stays locked as long as the parent lives."""
        os.close(self._fd)
        self._fd = -1


_registrations: dict[Path, _Registration] = {}
_registering = new_lock()


def _registration(folder: Path) -> _Registration:
    with _registering:
        found = _registrations.get(folder)
        if found is None:
            found = _registrations[folder] = _Registration(folder)
        return found


def _after_fork() -> None:
    for mine in _registrations.values():
        mine.leave_to_parent()
    _registrations.clear()


os.register_at_fork(after_in_child=_after_fork)
