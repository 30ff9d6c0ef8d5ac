"""The compiler: found, probed, run; its failures are typed and say what to do."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eager.base import settings
from inductor import _native
from inductor.artifact.format import SourceUnit
from inductor.base import toolchain
from inductor.base.toolchain import CompileError, build
from tests.inductor.helpers_runtime import PRELUDE, affine_source

BROKEN = SourceUnit("broken", "int f( { return 1; }")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a failed build keeps its sources there
    with settings.scope(cache_dir=tmp_path / "cache"):
        yield


def _script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_probe_names_the_compiler_and_its_instruction_set() -> None:
    found = toolchain.toolchain()
    assert os.path.isabs(found.cxx) and found.version
    assert found.simd_bits in (128, 256, 512)
    assert f"-march={found.march}" in found.flags
    if sys.platform == "linux" and "glibc" in found.libc and os.uname().machine == "x86_64":
        assert "_ZGVdN8v_expf" in found.vector_functions
        assert not any("fmodf" in f for f in found.vector_functions)


def test_probe_is_read_from_disk_in_a_later_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = toolchain.toolchain()
    toolchain._toolchain.cache_clear()
    started: list[Any] = []
    monkeypatch.setattr(toolchain.subprocess, "run", lambda command, **_: started.append(command))
    second = toolchain.toolchain()
    assert second == first and second is not first and not started


@pytest.mark.parametrize("damage", [b"", b"{", b'{"identity": 1}', b"\xff\xfe"])
def test_damaged_probe_on_disk_is_probed_again(damage: bytes) -> None:
    first = toolchain.toolchain()
    (path,) = (settings.current().cache.dir / "toolchains").iterdir()
    path.write_bytes(damage)
    toolchain._toolchain.cache_clear()
    assert toolchain.toolchain() == first


def test_key_changes_with_march() -> None:
    native = toolchain.toolchain()
    with settings.scope(cpu_march="x86-64-v2" if os.uname().machine == "x86_64" else "armv8-a"):
        other = toolchain.toolchain()
    assert other.key() != native.key()
    assert toolchain.toolchain().key() == native.key()


def test_missing_named_compiler_is_a_compile_error_that_names_the_setting() -> None:
    with (
        settings.scope(cpu_cxx="no-such-compiler"),
        pytest.raises(CompileError, match=r"no-such-compiler.*FRAMEJIT_CXX"),
    ):
        toolchain.toolchain()


def test_no_compiler_on_path_is_a_compile_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = r"g\+\+, c\+\+, clang\+\+.*apt install"
    with settings.scope(cpu_cxx="", cache_dir=tmp_path / "empty"), pytest.raises(CompileError, match=message):
        toolchain.toolchain()


def test_without_a_compiler_the_one_used_last_gives_the_key_and_compiles_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with settings.scope(cpu_cxx="", cache_dir=tmp_path / "cache"):
        before = toolchain.toolchain()
        monkeypatch.setenv("PATH", str(tmp_path))
        after = toolchain.toolchain()
        assert after == replace(before, present=False) and after.key() == before.key()
        with pytest.raises(CompileError, match="no C\\+\\+ compiler was found"):
            build([affine_source(8)], tmp_path / "a.so", after)
        with settings.scope(cpu_march="x86-64-v2"), pytest.raises(CompileError):
            toolchain.toolchain()  # no compiler was used for it


def test_launcher_and_flags_in_cxx_are_left_out() -> None:
    plain = toolchain.toolchain().cxx
    with settings.scope(cpu_cxx=f"ccache {plain} -m64"):
        assert toolchain.toolchain().cxx == plain


def test_compiler_that_cannot_compile_is_a_compile_error(tmp_path: Path) -> None:
    bad = _script(tmp_path / "bad-cxx", "echo 'fatal: out of order' >&2; exit 3")
    with settings.scope(cpu_cxx=str(bad)), pytest.raises(CompileError, match="out of order"):
        toolchain.toolchain()


def test_compiler_that_says_nothing_is_a_compile_error(tmp_path: Path) -> None:
    mute = _script(tmp_path / "mute-cxx", "exit 0")
    with settings.scope(cpu_cxx=str(mute)), pytest.raises(CompileError, match="does not report its version"):
        toolchain.toolchain()


def test_one_unit_becomes_a_library_that_can_be_loaded(tmp_path: Path) -> None:
    target = tmp_path / "k.so"
    elapsed_s = build([affine_source(8)], target, toolchain.toolchain())
    assert _native.Library(target).address("segment") > 0
    assert 0 < elapsed_s < 60


def test_several_units_are_linked_into_one_library(tmp_path: Path) -> None:
    callee = SourceUnit("callee", 'extern "C" __attribute__((visibility("hidden"))) int answer() { return 42; }')
    caller = SourceUnit("caller", PRELUDE + 'extern "C" int answer(); EXPORT int query() { return answer(); }')
    target = tmp_path / "k.so"
    build([callee, caller], target, toolchain.toolchain())
    library = _native.Library(target)
    assert library.address("query")
    with pytest.raises(LookupError, match="answer"):  # hidden: graphs cannot see each other's functions
        library.address("answer")


def test_rejected_source_is_kept_and_named_with_command_and_first_errors(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        build([affine_source(8), BROKEN], tmp_path / "k.so", toolchain.toolchain())
    error = caught.value
    assert error.source is not None and error.source.read_text() == BROKEN.text
    assert "broken.cpp:1" in error.errors and "error" in error.errors
    assert str(error.source) in str(error) and error.command[0] in str(error)
    assert not (tmp_path / "k.so").exists()


def test_undefined_function_is_found_when_linking_not_when_loading(tmp_path: Path) -> None:
    unit = SourceUnit("unit", 'extern "C" float no_such(float); float f(float x) { return no_such(x); }')
    with pytest.raises(CompileError, match="no_such"):
        build([unit], tmp_path / "k.so", toolchain.toolchain())


def test_slow_compiler_is_given_up_after_the_timeout(tmp_path: Path) -> None:
    good = toolchain.toolchain()
    slow = _script(tmp_path / "slow-cxx", "exec sleep 60")
    stuck = toolchain.Toolchain(str(slow), *(getattr(good, f) for f in list(good.__dataclass_fields__)[1:]))
    with settings.scope(cpu_compile_timeout_s=1), pytest.raises(CompileError, match="FRAMEJIT_COMPILE_TIMEOUT_S"):
        build([affine_source(8)], tmp_path / "k.so", stuck)


def test_killed_compiler_is_reported_with_its_signal(tmp_path: Path) -> None:
    good = toolchain.toolchain()
    killed = _script(tmp_path / "killed-cxx", "kill -9 $$")
    stuck = toolchain.Toolchain(str(killed), *(getattr(good, f) for f in list(good.__dataclass_fields__)[1:]))
    with pytest.raises(CompileError, match="SIGKILL"):
        build([affine_source(8)], tmp_path / "k.so", stuck)


def test_reusable_unit_is_compiled_once(tmp_path: Path) -> None:
    tools, objects = toolchain.toolchain(), tmp_path / "objects"
    unit = SourceUnit("core", affine_source(8).text, reusable=True)
    build([unit], tmp_path / "a.so", tools, objects)
    (kept,) = objects.glob("*.o")
    made = kept.stat().st_ino
    os.utime(kept, (1000, 1000))
    build([unit], tmp_path / "b.so", tools, objects)
    assert kept.stat().st_ino == made
    assert kept.stat().st_mtime > 1000  # the limit removes the object files used longest ago, so a use is recorded
    assert _native.Library(tmp_path / "b.so").address("segment")


def test_truncated_object_file_is_compiled_again(tmp_path: Path) -> None:
    tools, objects = toolchain.toolchain(), tmp_path / "objects"
    unit = SourceUnit("core", affine_source(8).text, reusable=True)
    build([unit], tmp_path / "a.so", tools, objects)
    (kept,) = objects.glob("*.o")
    kept.write_bytes(kept.read_bytes()[:100])
    build([unit], tmp_path / "b.so", tools, objects)
    assert _native.Library(tmp_path / "b.so").address("segment")


def test_flags_of_an_ordinary_kernel_keep_its_compilation_short(tmp_path: Path) -> None:
    """The promise is 50 ms; the bound here leaves room for a loaded machine, not for an #include of the STL.

    The time of the compiler on a CPU: other processes do not count.
    """
    tools, times_s = toolchain.toolchain(), []
    for i in range(3):
        before = os.times()
        build([affine_source(8)], tmp_path / f"{i}.so", tools)
        after = os.times()
        times_s.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert 0 < min(times_s) < 0.4


def test_unit_may_prefer_narrower_vectors() -> None:
    tools = toolchain.toolchain()
    if tools.simd_bits < 512:
        pytest.skip("this CPU has one vector width")
    assert "-mprefer-vector-width=256" in tools.flags_for(256)
    assert "-mprefer-vector-width=512" in tools.flags
