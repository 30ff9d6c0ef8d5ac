"""Entries of the cache as one bytes object, to be loaded into the cache of another machine or container.

Owns the format, and `save_cache_artifacts` and `load_cache_artifacts` of torch.compiler. A bundle has the entries that this
process has found or made, the probes of their compilers (so that a hit needs no compiler), and the measured winners. Entries for
another CPU, compiler or version have other keys: they are stored and never found.

A bundle holds machine code, and a hit runs it: load only bundles from a trusted source. The checksums find damage, not intent.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from eager.base import logs
from eager.base.records import dataclass
from inductor.artifact import cache
from inductor.artifact.cache import Cache, Key, Untrusted
from inductor.base import records, toolchain

__all__ = ["CacheInfo", "load_cache_artifacts", "save_cache_artifacts"]

_COMPONENT = logs.component("inductor")
_FORMAT: Final = 1
_ENTRY: Final = re.compile(r"entries/([0-9a-f]{40})/([\w.-]*\w)")
_RECORD: Final = re.compile(r"(toolchains|autotune|autotune/cpu|autotune/cuda)/(?:product-|kernel-)?[0-9a-f]{32,40}\.json")
# Errors of zipfile for a damaged archive: a header may specify encryption, another method or an offset before the file.
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, KeyError, TypeError)


@dataclass
class CacheInfo:
    """The names of the artifacts in a bundle, by kind: "inductor" (compiled graphs), "autotune", "toolchain"."""

    artifacts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def inductor_artifacts(self) -> list[str]:
        """Digests of the keys of compiled graphs."""
        return self.artifacts.get("inductor", [])

    @property
    def autotune_artifacts(self) -> list[str]:
        """Measured winners."""
        return self.artifacts.get("autotune", [])

    @property
    def aot_autograd_artifacts(self) -> list[str]:
        """Empty: joint graphs are not stored."""
        return []

    @property
    def pgo_artifacts(self) -> list[str]:
        """Empty: sizes seen by earlier processes are not stored."""
        return []

    @property
    def precompile_artifacts(self) -> list[str]:
        """Empty: captured frames are not stored."""
        return []

    def empty(self) -> bool:
        """Whether the bundle has no artifacts."""
        return not self.artifacts

    def _add(self, kind: str, name: str) -> None:
        self.artifacts.setdefault(kind, []).append(name)


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """The artifacts that this process has compiled or found in the cache, as bytes; None without artifacts."""
    store = cache.current()
    info, stream, tools = CacheInfo(), io.BytesIO(), set()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("format", str(_FORMAT))
        for key in cache.used_keys(store.dir):
            for name, data in _entry_files(store, key):
                archive.writestr(f"entries/{key.digest}/{name}", data)
            info._add("inductor", key.digest)
            tools.add(dict(key.parts).get("toolchain"))
        if info.empty():
            return None
        for path in _records(store, tools):
            name = path.relative_to(store.dir).as_posix()
            archive.writestr(name, path.read_bytes())
            info._add("toolchain" if name.startswith("toolchains/") else "autotune", path.stem)
    return stream.getvalue(), info


def _entry_files(store: Cache, key: Key) -> Iterator[tuple[str, bytes]]:
    entry = store.lookup(key)
    if entry is None:
        raise OSError(f"save_cache_artifacts: the entry {key.digest} is damaged or was removed; compile again")
    for path in sorted(entry.folder.iterdir()):
        yield path.name, path.read_bytes()


def _records(store: Cache, tools: set[str | None]) -> Iterator[Path]:
    yield from (path for path, found in toolchain.probes(store.dir / "toolchains") if found.key() in tools)
    yield from (path for path in sorted((store.dir / "autotune").rglob("*.json")) if records.read_any(path) is not None)


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Store the artifacts of a bundle in the current cache; None, with a warning, if the bytes are not a bundle.

    A damaged artifact in a bundle is omitted with a warning. Raises: OSError if the cache cannot be written.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(serialized_artifacts)) as archive:
            if archive.read("format").decode() != str(_FORMAT):
                raise ValueError(f"it has format {archive.read('format')!r}; this version reads {_FORMAT}")
            files = {name: archive.read(name) for name in archive.namelist()}
    except _DAMAGE as error:
        _COMPONENT.warning(f"load_cache_artifacts: the bytes are not a bundle of this version or are damaged ({error}); nothing is loaded")
        return None
    return _stored(cache.current(), files)


def _stored(store: Cache, files: dict[str, bytes]) -> CacheInfo:
    info = CacheInfo()
    entries: dict[str, dict[str, bytes]] = {}
    for name, data in files.items():
        entry = _ENTRY.fullmatch(name)
        if entry is not None:
            entries.setdefault(entry[1], {})[entry[2]] = data
        elif (record := _RECORD.fullmatch(name)) is not None:
            _store_record(store.dir / name, data)
            info._add("toolchain" if record[1] == "toolchains" else "autotune", Path(name).stem)
    for digest, content in entries.items():
        try:
            store.adopt(_key_of(digest, content), content)
        except Untrusted as error:
            _COMPONENT.warning(f"load_cache_artifacts: {digest} is omitted: {error}")
            continue
        info._add("inductor", digest)
    return info


def _key_of(digest: str, content: dict[str, bytes]) -> Key:
    try:
        key = Key(tuple((str(name), str(value)) for name, value in json.loads(content["manifest.json"])["key"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Untrusted(f"its manifest cannot be read ({type(error).__name__}: {error})") from None
    if key.digest != digest:
        raise Untrusted("its manifest is for another key")
    return key


def _store_record(path: Path, data: bytes) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        records.replace_file(path, data)
