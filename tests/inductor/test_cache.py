"""The disk cache: a lookup returns the stored entry, and a damaged entry is not used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eager.base import logs, settings
from inductor.artifact import cache
from inductor.artifact.cache import Cache, Key
from inductor.artifact.format import ArtifactPlan
from inductor.base import toolchain
from inductor.base.toolchain import build
from tests.inductor.helpers_runtime import affine_plan, affine_source

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1 << 30


def key(**parts: str) -> Key:
    return Key.of({"graph": "g1", "inputs": "float32[8]", "cpu": "c1", **parts})


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "built.so"
    build([affine_source(8)], path, toolchain.toolchain())
    return path


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", LIMIT)


def keep(store: Cache, library: Path | None, k: Key | None = None, n: int = 8) -> Path:
    return store.store(k or key(), affine_plan(n), library, [affine_source(n)]).folder


def test_entry_is_found_again_as_it_was_stored(store: Cache, library: Path) -> None:
    keep(store, library)
    entry = store.lookup(key())
    assert entry is not None and entry.plan == affine_plan(8)
    assert entry.library is not None and entry.library.read_bytes() == library.read_bytes()
    assert "segment" in entry.sources()["affine.cpp"]


def test_plan_without_native_code_has_no_library(store: Cache) -> None:
    store.store(key(), ArtifactPlan((), ()), None, [])
    entry = store.lookup(key())
    assert entry is not None and entry.library is None


@pytest.mark.parametrize("part", ["graph", "inputs", "cpu"])
def test_any_part_of_the_key_that_differs_misses_and_is_named(store: Cache, library: Path, part: str) -> None:
    keep(store, library)
    keep(store, library, key(graph="far", inputs="far", cpu="far"))
    with logs.capture("cache") as records:
        assert store.lookup(key(**{part: "other"})) is None
    (message,) = [r.message for r in records]
    was = {"graph": "g1", "inputs": "float32[8]", "cpu": "c1"}[part]
    assert f"{part} is other, there {was}" in message
    assert message.count(", there ") == 1  # only that part, of the nearest entry


def test_first_miss_says_that_the_cache_is_empty(store: Cache) -> None:
    with logs.capture("cache") as records:
        assert store.lookup(key()) is None
    assert "no entry" in records[0].message


def _file(folder: Path, name: str) -> Path:
    return next(folder.glob("*.so")) if name == "kernels.so" else folder / name


def _truncate(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = _file(folder, name).read_bytes()
        _file(folder, name).write_bytes(data[: len(data) // 2])

    return damage


def _flip(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = bytearray(_file(folder, name).read_bytes())
        data[len(data) // 2] ^= 1
        _file(folder, name).write_bytes(bytes(data))

    return damage


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: _file(folder, name).unlink()


def _rewrite_plan(folder: Path) -> None:
    """Change the plan's allocations, as an attacker would to write out of bounds."""
    path = folder / "plan.json"
    text = path.read_text()
    assert '"nbytes":32' in text
    path.write_text(text.replace('"nbytes":32', '"nbytes":16'))


def _foreign_format(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 999}))


def _foreign_key(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["key"][0][1] = "of another graph"
    path.write_text(json.dumps(manifest))


DAMAGES = {
    "truncated library": _truncate("kernels.so"),
    "truncated plan": _truncate("plan.json"),
    "truncated manifest": _truncate("manifest.json"),
    "one bit of the library": _flip("kernels.so"),
    "tampered plan": _rewrite_plan,
    "library missing": _remove("kernels.so"),
    "plan missing": _remove("plan.json"),
    "another format": _foreign_format,
    "another key": _foreign_key,
    "manifest is a list": lambda folder: (folder / "manifest.json").write_text("[]") and None,
    "manifest is binary": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\x00") and None,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_entry_is_logged_ignored_and_can_be_made_again(
    store: Cache, library: Path, damage: Callable[[Path], None]
) -> None:
    damage(keep(store, library))
    with logs.capture("cache") as records:
        assert store.lookup(key()) is None
    assert "not used" in records[0].message
    keep(store, library)
    assert store.lookup(key()) is not None


def test_entry_damaged_by_a_crash_is_replaced_by_store_alone(store: Cache, library: Path) -> None:
    folder = keep(store, library)
    next(folder.glob("*.so")).write_bytes(b"")
    keep(store, library)
    assert store.lookup(key()) is not None


def test_second_store_of_the_same_key_uses_the_entry_that_is_there(store: Cache, library: Path) -> None:
    folder = keep(store, library)
    inode = next(folder.glob("*.so")).stat().st_ino
    with logs.capture("cache") as records:
        assert keep(store, library) == folder
    assert next(folder.glob("*.so")).stat().st_ino == inode
    assert any("another process" in r.message for r in records)


def test_no_temporary_folder_is_left_behind(store: Cache, library: Path) -> None:
    keep(store, library)
    keep(store, library)
    assert [p.name for p in store.entries.iterdir()] == [key().digest]


RACER = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from tests.inductor.helpers_runtime import affine_plan, affine_source
from inductor.artifact.cache import Cache, Key
folder, library, start = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
store = Cache(folder, 1 << 30)
time.sleep(max(0.0, start - time.time()))
for i in range(40):
    k = Key.of({{"graph": str(i % 5)}})
    entry = store.lookup(k) or store.store(k, affine_plan(8), library, [affine_source(8)])
    assert entry.plan == affine_plan(8)
    assert entry.library.read_bytes() == library.read_bytes()
"""


def test_racing_processes_all_get_whole_entries(tmp_path: Path, library: Path) -> None:
    code = RACER.format(path=[str(ROOT)])
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), str(library), str(time.time() + 1.5)]
    racers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for racer in racers:
        _, errors = racer.communicate(timeout=120)
        assert racer.returncode == 0, errors
    entries = tmp_path / "cache" / "entries"
    assert len([p for p in entries.iterdir() if not p.name.startswith(".")]) == 5
    assert not list(entries.glob(".*"))


def test_entries_used_longest_ago_are_removed_at_the_limit(tmp_path: Path, library: Path) -> None:
    one = 4000 + library.stat().st_size
    store = Cache(tmp_path / "cache", 4 * one)
    keys = [key(graph=f"g{i}") for i in range(8)]
    for i, k in enumerate(keys):
        folder = keep(store, library, k)
        os.utime(folder / "manifest.json", (1000 + i, 1000 + i))
        if i == 3:
            assert store.lookup(keys[0]) is not None  # used now, so it is not the oldest
    assert store.size_bytes() <= 4 * one
    assert store.lookup(keys[0]) is not None and store.lookup(keys[7]) is not None
    assert store.lookup(keys[1]) is None


def test_artifact_larger_than_the_limit_is_still_usable(tmp_path: Path, library: Path) -> None:
    store = Cache(tmp_path / "cache", 100)
    keep(store, library)
    assert store.lookup(key()) is not None


def test_remains_of_dead_processes_are_removed(store: Cache, library: Path) -> None:
    dead = store.entries / ".new-dead"
    dead.mkdir(parents=True)
    (dead / "kernels.so").write_bytes(b"x" * 100)
    os.utime(dead, (1000, 1000))
    fresh = store.entries / ".new-fresh"
    fresh.mkdir()
    keep(store, library)
    assert not dead.exists() and fresh.exists()


def test_unwritable_folder_gives_one_warning_and_a_temporary_cache(tmp_path: Path, library: Path) -> None:
    blocker = tmp_path / "a-file"
    blocker.write_text("in the way")
    with settings.scope(cache_dir=blocker / "cache"), logs.capture() as records:
        stores = [cache.current(), cache.current()]
        keep(stores[0], library)
        assert stores[1].lookup(key()) is not None
    warnings = [r.message for r in records if r.level >= 30]
    assert len(warnings) == 1 and str(blocker) in warnings[0] and "FRAMEJIT_CACHE_DIR" in warnings[0]
    assert blocker.read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes through permission bits")
def test_read_only_folder_is_recognised_by_permission(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    (folder / "entries").mkdir(parents=True)
    (folder / "entries").chmod(0o500)
    assert cache._unwritable(folder) is not None


def test_read_only_folder_is_still_read(tmp_path: Path, library: Path) -> None:
    full = Cache(tmp_path / "full", LIMIT)
    keep(full, library)
    front = Cache(tmp_path / "front", LIMIT, behind=full.dir)
    assert front.lookup(key()) is not None
    keep(front, library, key(graph="new"))
    assert front.lookup(key(graph="new")) is not None and full.lookup(key(graph="new")) is None


def test_disabled_cache_writes_nothing_to_its_folder(tmp_path: Path, library: Path) -> None:
    with settings.scope(cache_dir=tmp_path / "cache", cache_enabled=False):
        keep(cache.current(), library)
    assert not (tmp_path / "cache").exists()


def test_temporary_cache_is_removed_when_the_process_ends_but_not_by_a_forked_child(tmp_path: Path) -> None:
    code = """
import os, sys
from eager.base import settings as _settings
from inductor.artifact import cache
with _settings.scope(cache_enabled=False):
    folder = cache.current().dir
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    assert folder.is_dir(), "the child removed its parent's folder"
    print(folder)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not Path(done.stdout.strip()).exists()


def test_source_digest_covers_compiler_and_ops_and_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(path: str, *args: Any, **kwargs: Any) -> Any:
        read.append(Path(path).relative_to(ROOT).as_posix())
        return open(path, *args, **kwargs)

    monkeypatch.setattr(cache, "open", note, raising=False)
    first = cache.source_digest.__wrapped__()
    assert {"inductor/artifact/format.py", "fxir/ir/graph.py", "eager/optable/pointwise.py", "eager/base/dtypes.py",
            "eager/base/spec.py"} <= set(read)  # fmt: skip
    assert cache.source_digest.__wrapped__() == first
