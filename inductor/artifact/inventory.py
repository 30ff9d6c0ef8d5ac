"""The content of a cache for people: its entries, their state and their relation.

Owns the listing, the comparison of an entry with earlier ones, the verification of all files and the removal of everything that
no process uses. `inductor.cache` prints the results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from eager.base.records import dataclass
from inductor.artifact.cache import Cache, Key, Removed, Untrusted, folder_bytes, nearest, read_entry
from inductor.base import records

__all__ = ["Damage", "Listed", "Miss", "clear", "explain", "listing", "verify"]


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry. made, used: seconds since the epoch. processes: how many use it now. key: None if the manifest is damaged."""

    folder: Path
    size_bytes: int
    made: float
    used: float
    processes: int
    key: Key | None

    def part(self, name: str) -> str:
        """One part of the key; "" for a part that the key lacks."""
        return "" if self.key is None else dict(self.key.parts).get(name, "")


@dataclass(frozen=True, slots=True)
class Miss:
    """Why an entry was compiled: the entry that was nearest at that time (None: the cache was empty), and where its key differs.

    differing: (part, value in this entry, value in the nearest).
    """

    entry: Listed
    nearest: str | None
    differing: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Damage:
    """A file or folder of the cache that is not used, and the reason."""

    path: Path
    reason: str


def listing(store: Cache) -> list[Listed]:
    """Every entry, the one used last first."""
    with store.readers.alone() as used:
        return [_listed(folder, when, used[folder.name]) for folder, when in reversed(store.by_use())]


def _listed(folder: Path, used: float, processes: int) -> Listed:
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        key = Key(tuple((str(name), str(value)) for name, value in manifest["key"]))
        made = float(manifest["made"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        key, made = None, used
    return Listed(folder, folder_bytes(folder), made, used, processes, key)


def explain(store: Cache, digest: str) -> list[Miss]:
    """Why each entry whose name begins with `digest` was compiled and not found: a comparison with the entries made before it.

    Entries that were removed since then do not take part.
    """
    everything = listing(store)
    found = []
    for entry in everything:
        if entry.key is None or not entry.folder.name.startswith(digest):
            continue
        earlier = (e.folder for e in everything if e.made < entry.made)
        closest = nearest(entry.key, earlier)
        found.append(Miss(entry, None) if closest is None else Miss(entry, closest[0], tuple(closest[1])))
    return found


def verify(store: Cache) -> Iterator[Damage]:
    """Check the checksums of every entry, object file, probe and winner; the damaged ones."""
    for entry in listing(store):
        if entry.key is None:
            yield Damage(entry.folder, "its manifest cannot be read")
            continue
        try:
            read_entry(entry.folder, entry.key)
            if entry.key.digest != entry.folder.name:
                yield Damage(entry.folder, "its name is not the digest of its key")
        except Untrusted as error:
            yield Damage(entry.folder, str(error))
        except OSError as error:
            yield Damage(entry.folder, error.strerror or str(error))
    for path in sorted(store.objects.glob("*.o")):
        seal = path.with_suffix(".sha256")
        if not seal.exists() or seal.read_bytes() != hashlib.sha256(path.read_bytes()).hexdigest().encode():
            yield Damage(path, "its content does not have the checksum beside it")
    for path in _record_files(store):
        if records.read_any(path) is None:
            yield Damage(path, "it cannot be read, or its checksum does not match")


def _record_files(store: Cache) -> list[Path]:
    return sorted(path for folder in ("autotune", "toolchains") for path in (store.dir / folder).rglob("*.json"))


def clear(store: Cache) -> Removed:
    """Remove all entries that no process uses, all object files, probes and winners."""
    removed = store.trim(0)
    paths = _record_files(store)
    for path in paths:
        path.unlink(missing_ok=True)
    return Removed(removed.count + len(paths), removed.in_use, store.size_bytes())
