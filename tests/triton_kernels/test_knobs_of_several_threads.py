"""Compilations by Triton in several threads: each keeps its machine code in the folder of the artifacts, and Triton's own setting
returns."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from eager.base import settings
from inductor.triton import compile as compile_


def test_threads_compile_in_the_folder_of_the_artifacts(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = SimpleNamespace(dir="the user's")

    @contextmanager
    def scope() -> Any:
        before = cache.dir
        yield
        cache.dir = before

    cache.scope = scope
    folders: list[str] = []
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def compiled(source: str, target: Any, options: Any) -> Any:
        if source == "first":
            first_is_in.set()
            second_is_in.wait(timeout=0.5)  # the second thread is in its block, or waits for the end of this block
        else:
            second_is_in.set()
            other.join(timeout=0.5)
        folders.append(cache.dir)
        return SimpleNamespace(asm={"cubin": b"", "ptx": ""}, metadata=SimpleNamespace(shared=0, global_scratch_size=0))

    triton = SimpleNamespace(knobs=SimpleNamespace(cache=cache), compile=compiled)
    monkeypatch.setattr(compile_, "load_triton", lambda: triton)

    def compile_source(source: str) -> None:
        compile_._compiled("kernel", source, SimpleNamespace(arch=90), {"num_warps": 4})

    other = threading.Thread(target=compile_source, args=("first",))
    other.start()
    first_is_in.wait(60)
    compile_source("second")
    other.join()
    assert set(folders) == {str(settings.current().cache.dir / "triton")} and cache.dir == "the user's"
