"""save_cache_artifacts and load_cache_artifacts: an empty cache then gives hits; damaged bytes give nothing."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import eager as torch
from eager.base import logs, settings
from inductor.artifact import bundle, cache, inventory
from inductor.base import records
from tests.inductor.test_cache_readers import key, plan

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
import eager as torch
from eager.base import logs
if len(sys.argv) > 1:
    info = torch.compiler.load_cache_artifacts(open(sys.argv[1], "rb").read())
    print(len(info.inductor_artifacts))
with logs.capture("cache") as records:
    print(torch.compile(lambda x: x * 2 + 1)(torch.ones(5)).tolist())
print(sum(r.message.startswith("hit") for r in records), "inductor.driver.compile" in sys.modules)
if len(sys.argv) == 1:
    data, info = torch.compiler.save_cache_artifacts()
    open("bundle", "wb").write(data)
    print(len(info.inductor_artifacts))
"""


def run(folder: Path, *arguments: str, path: str = os.environ["PATH"]) -> list[str]:
    environment = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), "FRAMEJIT_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_a_bundle_gives_hits_in_an_empty_cache_of_a_machine_without_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    result, found, saved, _ = run(tmp_path / "first")
    assert result == "[3.0, 3.0, 3.0, 3.0, 3.0]" and found == "0 True" and saved == "1"
    loaded, again, found, _ = run(tmp_path / "second", str(tmp_path / "first" / "bundle"), path="/nonexistent")
    assert loaded == "1" and again == result and found == "1 False"


def test_a_bundle_holds_winners_of_the_cpu_and_of_cuda(tmp_path: Path) -> None:
    product, kernel = f"{cache.PRODUCT_WINNER}{'1' * 40}.json", f"{cache.KERNEL_WINNER}{'2' * 40}.json"
    names = [f"autotune/{'0' * 40}.json", f"{cache.CUDA_WINNERS}/{product}", f"{cache.CUDA_WINNERS}/{kernel}",
             f"{cache.CPU_WINNERS}/{kernel}"]  # fmt: skip
    with settings.scope(cache_dir=tmp_path / "made"):
        torch.compile(lambda x: x * 3 + 7)(torch.ones(5))
        for name in names:
            records.write(tmp_path / "made" / name, name, {"us": 1.0})
        saved = bundle.save_cache_artifacts()
    assert saved is not None and len(saved[1].autotune_artifacts) == 4
    with settings.scope(cache_dir=tmp_path / "other"):
        info = bundle.load_cache_artifacts(saved[0])
        assert info is not None and len(info.autotune_artifacts) == 4
        assert [records.read(tmp_path / "other" / name, name) for name in names] == [{"us": 1.0}] * 4
        inventory.clear(cache.current())
        assert not any((tmp_path / "other" / name).exists() for name in names)


@pytest.fixture
def made(tmp_path: Path) -> bytes:
    """A bundle of two entries."""
    with settings.scope(cache_dir=tmp_path / "made"):
        for i in range(2):
            cache.current().store(key(i), plan(i), None, [])
        saved = bundle.save_cache_artifacts()
    assert saved is not None and saved[1].inductor_artifacts == [key(0).digest, key(1).digest]
    return saved[0]


def test_a_process_that_compiled_nothing_saves_nothing(tmp_path: Path) -> None:
    with settings.scope(cache_dir=tmp_path / "unused"):
        assert torch.compiler.save_cache_artifacts() is None


def test_loading_twice_leaves_the_entries_of_the_first_time(tmp_path: Path, made: bytes) -> None:
    with settings.scope(cache_dir=tmp_path / "new"):
        for _ in range(2):
            info = torch.compiler.load_cache_artifacts(made)
            assert info is not None and len(info.inductor_artifacts) == 2 and not info.empty()
        entry = cache.current().lookup(key(1))
        assert entry is not None and entry.plan == plan(1)


@pytest.mark.parametrize("data", [b"", b"PK", b"\x00" * 100], ids=["empty", "short", "zeros"])
def test_bytes_that_are_not_a_bundle_give_none_and_a_warning(tmp_path: Path, data: bytes) -> None:
    with settings.scope(cache_dir=tmp_path / "new"), logs.capture() as records:
        assert torch.compiler.load_cache_artifacts(data) is None
    assert any(r.level >= 30 and "nothing is loaded" in r.message for r in records)


def test_any_flipped_byte_leaves_whole_entries_or_none(tmp_path: Path, made: bytes) -> None:
    for place in range(0, len(made), 97):
        damaged = made[:place] + bytes([made[place] ^ 0x55]) + made[place + 1 :]
        with settings.scope(cache_dir=tmp_path / str(place)), logs.capture():
            torch.compiler.load_cache_artifacts(damaged)
            for i in range(2):
                entry = cache.current().lookup(key(i))
                assert entry is None or entry.plan == plan(i)


def _changed(made: bytes, name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as old, zipfile.ZipFile(out, "w") as new:
        for each in old.namelist():
            if each != name:
                new.writestr(each, old.read(each))
        new.writestr(name, data)
    return out.getvalue()


def test_a_changed_plan_is_omitted_and_the_others_are_loaded(tmp_path: Path, made: bytes) -> None:
    damaged = _changed(made, f"entries/{key(0).digest}/plan.json", b"{}")
    with settings.scope(cache_dir=tmp_path / "new"), logs.capture() as records:
        info = torch.compiler.load_cache_artifacts(damaged)
        assert cache.current().lookup(key(0)) is None and cache.current().lookup(key(1)) is not None
    assert info is not None and info.inductor_artifacts == [key(1).digest]
    assert any("is omitted" in r.message for r in records)


OUTSIDE = ("../outside", "entries/../../outside", "/outside", "toolchains/../../outside.json", "entries/x/plan.json")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_outside_the_folders_of_a_cache_is_not_written(tmp_path: Path, made: bytes, name: str) -> None:
    folder = tmp_path / "deep" / "cache"
    with settings.scope(cache_dir=folder):
        torch.compiler.load_cache_artifacts(_changed(made, name, b"data"))
    assert not list(tmp_path.rglob("outside*"))
    assert not (folder / "entries" / "x").exists()
