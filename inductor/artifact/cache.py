"""Compiled artifacts on disk, found by the key of their inputs.

Owns the key, the folder layout, integrity and the size limit. It does not depend on the meaning of a plan or on a compiler
stage, so that a hit imports neither.

    <dir>/entries/<digest>/manifest.json   key parts, sizes and SHA-256 of the files below
                           plan.json       the ArtifactPlan
                           <digest>.so     its code (absent if the plan has no code)
                           *.cpp           its sources, for reading
                           notes.txt       the compiler's remarks
    <dir>/objects/                         object files of reusable units (inductor.base.toolchain)
    <dir>/readers/                         which processes use which entries (inductor.artifact.readers)
    <dir>/toolchains/, autotune/           compiler probes, measured winners (inductor.base.records), of kernels in autotune/cpu/, cuda/

An entry is written under a temporary name and renamed, so that it is complete or absent. If two processes make the same entry
at once, the second drops its own. An entry that fails a check (truncated, modified, of another version) counts as absent: it is
removed, logged and made again.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from eager.base import logs
from eager.base import settings as _settings
from eager.base.locks import new_lock
from eager.base.records import dataclass
from eager.startup.places import ROOT
from inductor.artifact.format import ABI_VERSION, ArtifactPlan, SourceUnit
from inductor.artifact.readers import Readers

__all__ = [
    "CPU_WINNERS", "CUDA_WINNERS", "KERNEL_WINNER", "PRODUCT_WINNER", "Cache", "Entry", "Key", "Removed", "Untrusted", "current",
    "folder_bytes", "nearest", "read_entry", "source_digest", "used_keys",
]  # fmt: skip

_LOG = logs.artifact("cache")
FORMAT = 5
CUDA_WINNERS = "autotune/cuda"  # the folder of the measured schedules of CUDA kernels
CPU_WINNERS = "autotune/cpu"  # the folder of the measured schedules of CPU kernels
PRODUCT_WINNER = "product-"  # the names of the files of products begin with this
KERNEL_WINNER = "kernel-"  # the names of the files of other kernels
_MANIFEST, _PLAN, _NOTES = "manifest.json", "plan.json", "notes.txt"
_LIBRARIES = (".so", ".cubins")  # of the CPU; of a CUDA device
_STALE_S = 3600.0  # a temporary folder older than this belongs to a process that died
_COMPARED = 64  # number of entries that a miss is compared with
_RULES = ("dtypes", "float8", "memory_format", "scalars", "spec")  # of `eager.base`: rules of the op table
_SHRINK_TO = 0.8  # fraction of the limit: removing one by one at the limit would rescan at each store


# --------------------------------------------------------------------------- keys


@dataclass(frozen=True, slots=True)
class Key:
    """The inputs of an artifact, by part: ("graph", digest), ("inputs", "float32[8]"), ...

    Values are digests or short readable text; a miss names the parts in which the nearest entry differs.
    """

    parts: tuple[tuple[str, str], ...]

    @staticmethod
    def of(parts: Mapping[str, str]) -> Key:
        """A key of these parts and of the artifact format itself."""
        return Key((*parts.items(), ("abi", f"{ABI_VERSION}.{FORMAT}")))

    @property
    def digest(self) -> str:
        """The entry's folder name."""
        return hashlib.sha256(json.dumps(self.parts).encode()).hexdigest()[:40]

    def differing(self, other: Iterable[Sequence[str]]) -> list[tuple[str, str, str]]:
        """(part, ours, theirs) wherever the two differ."""
        theirs = {part[0]: part[1] for part in other}
        return [(name, value, theirs.get(name, "absent")) for name, value in self.parts if theirs.get(name) != value]


@lru_cache(maxsize=1)
def source_digest() -> str:
    """A digest of the source files that decide the generated code, so that a changed compiler misses.

    The files are the compiler, the passes, the op table, the rules of optimizers, and the modules of `eager` that decide dtypes, layouts
    and casts.
    """
    names = [name for folder in ("inductor", "fxir", "eager/optable", "eager/optim") for name in _python_files(folder)]
    total = hashlib.sha256()
    for name in (*names, *(f"eager/base/{name}.py" for name in _RULES)):
        total.update(name.encode())
        with open(os.path.join(ROOT, name), "rb", buffering=0) as file:
            total.update(file.read())
    return total.hexdigest()[:32]


def _python_files(folder: str) -> Iterator[str]:
    """The .py files below a folder, both as paths from ROOT, in a fixed order. Not by pathlib, which takes twice the time."""
    inside: list[str] = []
    with os.scandir(os.path.join(ROOT, folder)) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                yield f"{folder}/{entry.name}"
            elif entry.name != "__pycache__" and entry.is_dir():
                inside.append(entry.name)
    for name in inside:
        yield from _python_files(f"{folder}/{name}")


# --------------------------------------------------------------------------- entries


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Entry:
    """A complete artifact on disk. library: None if the plan has no native code.

    No process removes the folder of an entry while an `Entry` of it lives.
    """

    folder: Path
    plan: ArtifactPlan
    library: Path | None

    def sources(self) -> dict[str, str]:
        """File name -> text of the generated sources."""
        found = sorted(path for path in self.folder.iterdir() if path.suffix in (".cpp", ".py"))
        return {path.name: path.read_text(errors="replace") for path in found}

    def notes(self) -> list[str]:
        """The compiler's remarks, one a line."""
        path = self.folder / _NOTES
        return path.read_text(errors="replace").splitlines() if path.exists() else []


class Untrusted(Exception):
    """The reason why an entry is not used."""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_entry(folder: Path, key: Key | None) -> Entry:
    """Read and check an entry. Raises: FileNotFoundError if it does not exist, Untrusted if a check fails."""
    raw = (folder / _MANIFEST).read_bytes()
    try:
        manifest = json.loads(raw)
        if manifest["format"] != FORMAT:
            raise Untrusted(f"it has format {manifest['format']!r}, this version writes {FORMAT}")
        parts = tuple((name, value) for name, value in manifest["key"])
        files = {name: (size, digest) for name, size, digest in manifest["files"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Untrusted(f"its manifest cannot be read ({type(error).__name__}: {error})") from None
    if key is not None and parts != key.parts:
        raise Untrusted("its manifest is for another key")
    if _PLAN not in files:
        raise Untrusted("it has no plan")
    content = {}
    for name, (size, digest) in files.items():
        try:
            data = (folder / name).read_bytes()
        except FileNotFoundError:
            raise Untrusted(f"{name} is missing") from None
        if len(data) != size:
            raise Untrusted(f"{name} has {len(data)} bytes instead of {size}")
        if _digest(data) != digest:
            raise Untrusted(f"{name} does not have the checksum of its manifest")
        content[name] = data
    try:
        plan = ArtifactPlan.from_json(content[_PLAN].decode())
    except (ValueError, TypeError, KeyError) as error:
        raise Untrusted(f"its plan cannot be read ({error})") from None
    library = next((folder / name for name in files if name.endswith(_LIBRARIES)), None)
    return Entry(folder, plan, library)


def _write_entry(
    folder: Path,
    key: Key,
    plan: ArtifactPlan,
    library: Path | None,
    units: Sequence[SourceUnit],
    notes: Sequence[str],
) -> None:
    content = {_PLAN: plan.to_json().encode()}
    if library is not None:
        code = library.read_bytes()
        # The loader treats a library with the same path as the same library, even if the file was replaced.
        content[_digest(code)[:16] + library.suffix] = code
    files = [[name, len(data), _digest(data)] for name, data in content.items()]
    manifest = {"format": FORMAT, "key": [list(p) for p in key.parts], "files": files, "made": time.time()}
    content[_MANIFEST] = json.dumps(manifest).encode()
    content.update({unit.name + unit.suffix: unit.text.encode() for unit in units})
    content[_NOTES] = "\n".join(notes).encode()
    for name, data in content.items():
        (folder / name).write_bytes(data)


# --------------------------------------------------------------------------- the cache

_used: dict[tuple[Path, str], Key] = {}  # entries that this process has found or made, by cache folder and digest


def used_keys(folder: Path) -> list[Key]:
    """The keys of the entries in `folder` that this process has found or made, in the order of their first use."""
    return [key for (place, _), key in list(_used.items()) if place == folder]


def nearest(key: Key, folders: Iterable[Path]) -> tuple[str, list[tuple[str, str, str]]] | None:
    """The entry whose key differs from `key` in the fewest parts: its name, and (part, ours, theirs). None without entries."""
    best: tuple[str, list[tuple[str, str, str]]] | None = None
    for folder in folders:
        try:
            differing = key.differing(json.loads((folder / _MANIFEST).read_bytes())["key"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if best is None or len(differing) < len(best[1]):
            best = folder.name, differing
    return best


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of removing entries: how many, how many stayed because they are in use, and the bytes that are left."""

    count: int
    in_use: int
    left_bytes: int


class Cache:
    """A folder of artifacts. Safe for any number of threads and processes at once.

    dir: created on first use. limit_bytes: beyond it, the least recently used entries are removed.
    behind: a read-only folder, searched for entries that `dir` does not have.
    """

    def __init__(self, dir: Path, limit_bytes: int, behind: Path | None = None) -> None:
        self.dir = dir
        self.limit_bytes = limit_bytes
        self.behind = behind
        self.readers = Readers(dir / "readers")
        self._lock = new_lock()
        self._size_bytes: int | None = None  # estimate; None: not measured yet

    @property
    def entries(self) -> Path:
        return self.dir / "entries"

    @property
    def objects(self) -> Path:
        return self.dir / "objects"

    def lookup(self, key: Key) -> Entry | None:
        """The entry of that key, checked, or None. Raises nothing for damaged files."""
        folder = self.entries / key.digest
        if self.behind is not None and not folder.exists():
            folder = self.behind / "entries" / key.digest
        try:
            entry = self._read(folder, key)
        except FileNotFoundError:
            if _LOG.enabled:
                _LOG.log(f"miss {key.digest}: {self._explain_miss(key)}")
            return None
        except (Untrusted, OSError) as error:
            _LOG.log(f"miss {key.digest}: the entry is not used: {error}; compiling again")
            self._discard(folder)
            return None
        _LOG.log(f"hit {key.digest} in {folder}")
        try:
            os.utime(folder / _MANIFEST)  # the limit removes the least recently used entries, so the time of use is recorded
        except OSError as error:
            _LOG.log(f"the time of use of {folder} cannot be recorded: {error}")
        return entry

    def _read(self, folder: Path, key: Key) -> Entry:
        """Read an entry and hold it against removal. Raises: as `read_entry`."""
        if folder.parent != self.entries:
            return read_entry(folder, key)
        if not folder.exists():  # the usual miss, which needs no lock
            raise FileNotFoundError(folder)
        with self.readers.sharing():
            return self._held(folder, key)

    def _held(self, folder: Path, key: Key) -> Entry:
        entry = read_entry(folder, key)
        self.readers.hold(entry, key.digest)
        _used[self.dir, key.digest] = key
        return entry

    def store(
        self,
        key: Key,
        plan: ArtifactPlan,
        library: Path | None,
        units: Sequence[SourceUnit],
        notes: Sequence[str] = (),
    ) -> Entry:
        """Store an artifact and return it as read back from disk. Raises: OSError if it cannot be written."""
        folder = self.entries / key.digest
        self.entries.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.entries))
        try:
            _write_entry(fresh, key, plan, library, units, notes)
            with self.readers.sharing():  # a process that removes entries sees this use with the entry
                self._publish(fresh, folder, key)
                entry = self._held(folder, key)  # the entry on disk: another process may have stored it first
        except Untrusted as error:
            raise OSError(f"the entry {folder} that was just stored cannot be read: {error}") from None
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        if _LOG.enabled:
            _LOG.log(f"stored {key.digest} in {folder}")
        self._keep_limit(folder)
        return entry

    def adopt(self, key: Key, files: Mapping[str, bytes]) -> None:
        """Store the files of an entry that another cache has made, unless this cache has the entry.

        Raises: Untrusted if a check fails, OSError if the entry cannot be written.
        """
        folder = self.entries / key.digest
        self.entries.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.entries))
        try:
            for name, data in files.items():
                (fresh / name).write_bytes(data)
            read_entry(fresh, key)
            self._publish(fresh, folder, key)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        self._keep_limit(folder)

    def _publish(self, fresh: Path, folder: Path, key: Key) -> None:
        """Rename `fresh` to its final name, unless another process has stored a valid entry there."""
        for _ in range(8):
            try:
                os.rename(fresh, folder)
                return
            except OSError:
                if not folder.exists():
                    raise
            try:
                read_entry(folder, key)
            except (Untrusted, OSError):
                self._discard(folder)
                continue
            shutil.rmtree(fresh, ignore_errors=True)
            _LOG.log(f"{key.digest} was stored by another process meanwhile; its entry is used")
            return
        raise OSError(f"{folder} cannot be replaced")

    def discard(self, key: Key) -> None:
        """Remove the entry of that key, for instance because its library cannot be loaded."""
        self._discard(self.entries / key.digest)

    def remove(self, path: Path) -> None:
        """Remove a folder or file of the cache that is damaged."""
        if path.is_dir():
            self._discard(path)
        else:
            path.unlink(missing_ok=True)

    def _discard(self, folder: Path) -> None:
        grave = self._bury(folder)
        if grave is not None:
            shutil.rmtree(grave, ignore_errors=True)

    def _bury(self, folder: Path) -> Path | None:
        """Rename a folder before its removal, so that no process sees a partly removed entry; its new name, or None."""
        grave = folder.with_name(f".old-{folder.name}-{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.rename(folder, grave)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                _LOG.log(f"{folder} cannot be removed: {error}")
            return None
        return grave

    # -- misses ------------------------------------------------------------------------

    def _explain_miss(self, key: Key) -> str:
        found = nearest(key, (folder for folder, _ in self.by_use()[-_COMPARED:]))
        if found is None:
            return "the cache holds no entry"
        name, differing = found
        changes = "; ".join(f"{part} is {ours}, there {theirs}" for part, ours, theirs in differing)
        return f"the nearest entry, {name}, differs in {changes}"

    def by_use(self) -> list[tuple[Path, float]]:
        """Entries with the time of their last use, the latest last."""
        found = []
        for folder in self._folders():
            try:
                found.append((folder, (folder / _MANIFEST).stat().st_mtime))
            except OSError:
                continue  # being made or removed by another process
        return sorted(found, key=lambda item: item[1])

    def _folders(self) -> Iterator[Path]:
        try:
            names = os.listdir(self.entries)
        except OSError:
            return
        yield from (self.entries / name for name in names if not name.startswith("."))

    # -- the limit ---------------------------------------------------------------------

    def size_bytes(self) -> int:
        """Bytes in all files of the cache."""
        return sum(folder_bytes(top) for top in (self.entries, self.objects))

    def _keep_limit(self, new: Path) -> None:
        with self._lock:
            if self._size_bytes is None:
                self._remove_stale()
                self._size_bytes = self.size_bytes()
            else:
                self._size_bytes += folder_bytes(new)
            if self._size_bytes <= self.limit_bytes:
                return
            self._size_bytes = self.size_bytes()  # the estimate does not include other processes
            if self._size_bytes > self.limit_bytes:
                self._evict(new)

    def _evict(self, new: Path) -> None:
        removed = self.trim(int(self.limit_bytes * _SHRINK_TO), keep=new)
        self._size_bytes = removed.left_bytes
        _LOG.log(f"removed {removed.count} least recently used entries to stay under {self.limit_bytes} bytes")

    def trim(self, limit_bytes: int, keep: Path | None = None) -> Removed:
        """Remove entries and object files, those used longest ago first, until at most `limit_bytes` are left.

        Entries that a process uses stay, as does the folder `keep`: an artifact larger than the limit is still in use.
        """
        left, count, in_use = self.size_bytes(), 0, 0
        graves = []
        with self.readers.alone() as used:
            for path, _ in sorted([*self.by_use(), *self.objects_by_use()], key=lambda item: item[1]):
                if left <= limit_bytes:
                    break
                if path == keep or path.name in used:
                    in_use += 1
                    continue
                left -= folder_bytes(path) if path.is_dir() else _object_bytes(path)
                count += 1
                if path.is_dir():
                    graves.append(self._bury(path))
                else:
                    path.with_suffix(".sha256").unlink(missing_ok=True)
                    path.unlink(missing_ok=True)
        for grave in graves:
            if grave is not None:
                shutil.rmtree(grave, ignore_errors=True)
        return Removed(count, in_use, left)

    def objects_by_use(self) -> list[tuple[Path, float]]:
        """Object files with the time of their last use. The checksum beside an object file is not listed."""
        found = []
        for path in self.objects.glob("*.*"):
            if path.suffix == ".sha256" and path.with_suffix(".o").exists():
                continue
            try:
                found.append((path, path.stat().st_mtime))
            except OSError:
                continue
        return found

    def _remove_stale(self) -> None:
        """Temporary folders of processes that died while writing."""
        now = time.time()
        for path in self.entries.glob(".*"):
            try:
                if now - path.stat().st_mtime > _STALE_S:
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                continue


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _object_bytes(path: Path) -> int:
    return _file_bytes(path) + (_file_bytes(path.with_suffix(".sha256")) if path.suffix == ".o" else 0)


def folder_bytes(folder: Path) -> int:
    """Bytes in all files below a folder; files that disappear meanwhile count as 0."""
    total = 0
    for parent, _, names in os.walk(folder):
        total += sum(_file_bytes(Path(parent, name)) for name in names)
    return total


# --------------------------------------------------------------------------- the one in use

_temporary: Path | None = None
_temporary_lock = new_lock()


def current() -> Cache:
    """The cache of the current settings; if its folder cannot be written, a temporary cache, with one warning."""
    settings = _settings.current().cache
    if not settings.enabled:
        return Cache(_temporary_folder(), settings.limit_bytes)
    return _cache_in(settings.dir, settings.limit_bytes)


def keep(
    store: Cache, key: Key, plan: ArtifactPlan, library: Path | None, units: Sequence[SourceUnit], notes: Sequence[str]
) -> Entry:
    """`store.store`; if the disk does not accept it, a store in the temporary cache, with one warning.

    Raises: OSError if that cannot be written either.
    """
    try:
        return store.store(key, plan, library, units, notes)
    except OSError as error:
        _warn_temporary(store.dir, error.strerror or str(error))
        return Cache(_temporary_folder(), store.limit_bytes).store(key, plan, library, units, notes)


def _warn_temporary(folder: Path, problem: str) -> None:
    logs.warn_once(
        f"cache folder {folder}",
        f"the cache folder {folder} cannot be written ({problem}): compiled code is kept until this process ends, "
        "in a temporary folder; set FRAMEJIT_CACHE_DIR to a folder that can be written",
        component="inductor",
    )


@lru_cache(maxsize=8)
def _cache_in(folder: Path, limit_bytes: int) -> Cache:
    problem = _unwritable(folder)
    if problem is None:
        return Cache(folder, limit_bytes)
    _warn_temporary(folder, problem)
    return Cache(_temporary_folder(), limit_bytes, behind=folder)


def _unwritable(folder: Path) -> str | None:
    """The reason why no file can be created in `folder`, or None. Found by creating a file: permission bits do not show
    everything (root, read-only mounts, quotas).
    """
    try:
        (folder / "entries").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder / "entries"):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _temporary_folder() -> Path:
    global _temporary
    with _temporary_lock:
        if _temporary is None or not _temporary.is_dir():
            _temporary = Path(tempfile.mkdtemp(prefix="framejit-cache-"))
            atexit.register(_remove_temporary, _temporary, os.getpid())
        return _temporary


def _remove_temporary(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child that exits must not remove its parent's folder
        shutil.rmtree(folder, ignore_errors=True)
