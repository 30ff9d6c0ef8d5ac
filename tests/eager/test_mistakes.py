"""Ordinary mistakes raise torch's class with torch's message, eager and compiled, and show the user's frames only."""
from __future__ import annotations

import copy
import json
import re
import traceback

import pytest

import eager as torch
from tests import mistakes

WANTED: dict[str, list[str]] = json.loads(mistakes.DATA.read_text())
# Where the messages differ, and why: how ours begins.
DIFFERENT = {
    "unknown device": ("RuntimeError", "Expected one of cpu, cuda, meta device type"),  # torch lists devices that are not here
}
NAMES = {"torch": torch, "F": torch.nn.functional}


def run(source: str) -> BaseException:
    try:
        exec(compile(source, "<mistake>", "exec"), dict(NAMES))  # noqa: S102 - our own lines
    except Exception as error:  # noqa: BLE001 - what is tested
        return error
    raise AssertionError(f"no error: {source}")


def check(name: str, error: BaseException) -> None:
    kind, text = WANTED[name]
    if name in DIFFERENT:
        kind, text = DIFFERENT[name]
        assert type(error).__name__ == kind and str(error).startswith(text)
    else:
        assert (type(error).__name__, str(error)) == (kind, text)
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert files[:2] == [__file__, "<mistake>"] and set(files) <= {__file__, "<mistake>", copy.__file__}, files


@pytest.mark.parametrize("name", WANTED)
def test_eager(name: str) -> None:
    check(name, run(mistakes.program(name)))


# Programs that a compiled function runs like an eager one: single statements that need no file, no class and no compiler.
COMPILED = [name for name in mistakes.ALONE if name not in ("no super().__init__", "no forward", "no file", "backend", "graph")]


@pytest.mark.parametrize("name", COMPILED)
def test_programs_in_a_compiled_function(name: str) -> None:
    body = "\n    ".join(mistakes.program(name).replace("; ", "\n").splitlines())
    source = f"@torch.compile(backend='aot_eager')\ndef f():\n    {body}\nf()"
    kind, text = DIFFERENT.get(name, WANTED[name])
    with torch._dynamo.config.patch(suppress_errors=True):  # as programs have it
        error = run(source.replace("with torch.inference_mode(): x", "with torch.inference_mode():\n        x"))
    assert type(error).__name__ == kind
    assert str(error).startswith(text)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", mistakes.IN_FUNCTIONS)
def test_compiled(name: str, backend: str) -> None:
    source = mistakes.program(name)
    check(name, run(f"@torch.compile(backend={backend!r})\n{source}"))


def test_the_table_is_of_the_programs() -> None:
    assert list(WANTED) == [*mistakes.IN_FUNCTIONS, *mistakes.ALONE] and len(WANTED) > 80


def test_the_check_can_fail() -> None:
    with pytest.raises(AssertionError):
        check("matmul", run(re.sub("4, 5", "5, 5", mistakes.program("matmul"))))


