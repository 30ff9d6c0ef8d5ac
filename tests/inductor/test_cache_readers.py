"""Entries that a process uses: no process removes them, in any order of uses, removals and deaths."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inductor.artifact import inventory
from inductor.artifact.cache import Cache, Key, Untrusted, read_entry
from inductor.artifact.format import ArtifactPlan, Literal
from inductor.artifact.readers import Readers

ROOT = Path(__file__).resolve().parents[2]

READER = """
import sys, time
from inductor.artifact.cache import Cache, Key
from pathlib import Path
entry = Cache(Path(sys.argv[1]), 1 << 30).lookup(Key.of({"graph": "g"}))
print(entry is not None, flush=True)
sys.stdin.readline()
del entry
print("released", flush=True)
sys.stdin.readline()
"""


def plan(i: int) -> ArtifactPlan:
    return ArtifactPlan((), (Literal(i),))


def key(name: object) -> Key:
    return Key.of({"graph": str(name)})


def reader(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", READER, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(process: subprocess.Popen[str]) -> str:
    """Let the reader go on; its next line."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_an_entry_stays_while_another_process_uses_it_and_goes_when_it_does_not(tmp_path: Path) -> None:
    store = Cache(tmp_path, 1 << 30)
    store.store(key("g"), plan(0), None, [])
    store.store(key("other"), plan(1), None, [])
    with reader(tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline().strip() == "True"
        removed = inventory.clear(store)
        assert (removed.count, removed.in_use) == (1, 1)
        assert [e.processes for e in inventory.listing(store)] == [1]
        assert say(process) == "released"
        assert inventory.clear(store).count == 1
        process.kill()


def test_a_process_that_dies_protects_nothing(tmp_path: Path) -> None:
    store = Cache(tmp_path, 1 << 30)
    store.store(key("g"), plan(0), None, [])
    with reader(tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline().strip() == "True"
        assert store.trim(0).in_use == 1
        process.kill()
    assert store.trim(0).count == 1
    assert [p.name for p in store.readers._folder.iterdir() if not p.name.startswith(f"{os.getpid()}-")] == ["lock"]


def test_a_forked_child_leaves_the_uses_of_its_parent(tmp_path: Path) -> None:
    store = Cache(tmp_path, 1 << 30)
    entry = store.store(key("g"), plan(0), None, [])
    child = os.fork()
    if child == 0:
        del entry
        gc.collect()
        os._exit(0 if store.lookup(key("g")) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.trim(0).in_use == 1
    assert store.lookup(key("g")) is not None


RACER = """
import random, sys, time
from pathlib import Path
from inductor.artifact.cache import Cache, Key, read_entry
from inductor.artifact.format import ArtifactPlan, Literal
store, rng = Cache(Path(sys.argv[1]), 1 << 30), random.Random(int(sys.argv[2]))
until = time.time() + 2.0
held = {}
while time.time() < until:
    i = rng.randrange(6)
    key = Key.of({"graph": str(i)})
    entry = store.lookup(key) or store.store(key, ArtifactPlan((), (Literal(i),)), None, [])
    assert entry.plan.outputs == (Literal(i),)
    held[i] = entry
    for k, e in held.items():
        assert read_entry(e.folder, None).plan.outputs == (Literal(k),)  # not removed while in use
    if rng.random() < 0.3:
        held.clear()
    if rng.random() < 0.2:
        store.trim(0)
"""


def test_racing_readers_and_removers_never_lose_an_entry_in_use(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, str(tmp_path), str(i)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for i in range(3)
    ]
    for racer in racers:
        _, errors = racer.communicate(timeout=120)
        assert racer.returncode == 0, errors


def test_a_folder_that_cannot_be_locked_still_gives_entries(tmp_path: Path) -> None:
    store = Cache(tmp_path, 1 << 30)
    store.store(key("g"), plan(0), None, [])
    store.readers = Readers(tmp_path / "entries" / key("g").digest / "plan.json")  # a file: no folder can be made there
    assert store.lookup(key("g")) is not None
    assert store.trim(0).count == 1


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["store", "lookup", "release", "truncate", "overwrite", "foreign"]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["trim", "clear"]), st.just(0)),
    ),
    max_size=25,
)


def _damage(store: Cache, i: int, how: str) -> bool:
    """Change the entry's plan or manifest; whether there was one."""
    folder = store.entries / key(i).digest
    path = folder / ("manifest.json" if how == "foreign" else "plan.json")
    if not path.exists():
        return False
    data = path.read_bytes()
    if how == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif how == "overwrite":
        path.write_bytes(data[:-1] + b"#")
    else:
        path.write_text(json.dumps({**json.loads(data), "format": -1}))
    return True


@given(_STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_of_a_cache_gives_whole_entries_or_none(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    """A lookup gives the entry as stored, or a miss; a held entry without damage stays."""
    store = Cache(tmp_path / str(time.monotonic_ns()), 1 << 30)
    held: dict[int, object] = {}
    stored: set[int] = set()
    for step, i in steps:
        if step == "store":
            held[i] = store.store(key(i), plan(i), None, [])
            stored.add(i)
        elif step == "lookup":
            found = store.lookup(key(i))
            assert (found is not None) == (i in stored)
            if found is not None:
                assert found.plan == plan(i)
                held[i] = found
        elif step == "release":
            held.pop(i, None)
        elif step in ("trim", "clear"):
            removed = store.trim(0) if step == "trim" else inventory.clear(store)
            kept = {k for k in range(4) if (store.entries / key(k).digest).exists()}
            assert set(held) & stored <= kept and removed.in_use == len(kept)
            stored &= kept
        elif _damage(store, i, step):
            stored.discard(i)
            assert len(list(inventory.verify(store))) >= 1
    for i in range(4):
        with pytest.raises((Untrusted, FileNotFoundError)) if i not in stored else _nothing():
            assert read_entry(store.entries / key(i).digest, key(i)).plan == plan(i)


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...
