"""`python -m inductor.cache`: every command reports, and changes, the cache that it is given."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from inductor.artifact.cache import Cache, Key
from inductor.cache import main
from tests.inductor.test_cache_readers import plan

ROOT = Path(__file__).resolve().parents[2]


def run(store: Cache, *arguments: str) -> tuple[int, str]:
    out = Console(file=io.StringIO(), width=200)
    status = main(["--dir", str(store.dir), *arguments], out)
    assert isinstance(out.file, io.StringIO)
    return status, out.file.getvalue()


def key(**parts: str) -> Key:
    return Key.of({"graph": "g", "inputs": "float32[8]", "kind": "inference", "mode": "default", **parts})


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache", 1 << 30)
    for i, k in enumerate((key(), key(inputs="float32[16]"))):
        folder = made.store(k, plan(i), None, []).folder
        os.utime(folder / "manifest.json", (1000 + i, 1000 + i))
    return made


def test_list_shows_every_entry_the_last_used_first(store: Cache) -> None:
    status, text = run(store, "list")
    assert status == 0 and "2 entries" in text
    assert text.index("float32[16]") < text.index("float32[8]")


def test_explain_names_the_part_of_the_key_that_missed(store: Cache) -> None:
    status, text = run(store, "explain", key(inputs="float32[16]").digest[:8])
    assert status == 0
    (row,) = [line for line in text.splitlines() if "float32[16]" in line and "float32[8]" in line]
    assert "inputs" in row and key().digest[:12] in text
    assert run(store, "explain", "zzz")[0] == 1


def test_explain_of_the_first_entry_says_that_the_cache_was_empty(store: Cache) -> None:
    assert "no earlier entry" in run(store, "explain", key().digest)[1]


def test_verify_finds_damage_and_removes_it_on_request(store: Cache) -> None:
    assert run(store, "verify") == (0, "every file has its checksum\n")
    (store.entries / key().digest / "plan.json").write_text("{}")
    store.objects.mkdir()
    (store.objects / "a.o").write_bytes(b"object")
    (store.dir / "toolchains").mkdir()
    (store.dir / "toolchains" / "b.json").write_text("{}")
    status, text = run(store, "verify")
    assert status == 1 and "3 damaged" in text and "a.o" in text and "b.json" in text
    assert run(store, "verify", "--remove")[0] == 0
    assert run(store, "verify") == (0, "every file has its checksum\n")
    assert "1 entries" in run(store, "list")[1]


def test_trim_removes_the_entry_used_longest_ago(store: Cache) -> None:
    one = store.size_bytes() // 2 + 10
    assert "removed 1;" in run(store, "trim", "--to", str(one))[1]
    assert store.lookup(key()) is None and store.lookup(key(inputs="float32[16]")) is not None
    assert "removed 0;" in run(store, "trim")[1]


def test_clear_removes_everything_that_is_not_in_use(store: Cache) -> None:
    entry = store.lookup(key())
    assert entry is not None
    assert "1 in use" in run(store, "clear")[1]
    assert entry.folder.exists()
    del entry
    assert "removed 1;" in run(store, "clear")[1]
    assert "0 entries" in run(store, "list")[1]


def test_a_cache_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert "is empty" in run(Cache(tmp_path / "none", 1), "list")[1]
    assert not (tmp_path / "none").exists()


def test_sizes_are_read_with_units_and_nonsense_is_refused(store: Cache) -> None:
    assert "removed 0" in run(store, "trim", "--to", "1G")[1]
    with pytest.raises(SystemExit):
        run(store, "trim", "--to", "much")


def test_the_module_is_a_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "inductor.cache", "list"], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "FRAMEJIT_CACHE_DIR": str(tmp_path / "cache")}, check=False)  # fmt: skip
    assert done.returncode == 0 and "is empty" in done.stdout
