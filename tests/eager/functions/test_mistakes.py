"""Ordinary mistakes raise torch's class with torch's message, eager and compiled. Tracebacks have only the user's frames."""
from __future__ import annotations

import copy
import json
import re
import textwrap
import traceback

import pytest

import eager as torch
from tests import mistakes

WANTED: dict[str, list[str]] = json.loads(mistakes.DATA.read_text())
# Where the messages differ, and why.
DIFFERENT = {
    # torch lists devices that are not here
    "unknown device": ("RuntimeError", "Expected one of cpu, cuda, meta device type at start of device string: gpu"),
}
NAMES = {"torch": torch, "F": torch.nn.functional}


def run(source: str) -> BaseException:
    try:
        exec(compile(source, "<mistake>", "exec"), dict(NAMES))  # noqa: S102 - our own lines
    except Exception as error:  # noqa: BLE001 - the caller checks the class
        return error
    raise AssertionError(f"no error: {source}")


def check(name: str, error: BaseException) -> None:
    kind, text = WANTED[name]
    assert (type(error).__name__, str(error)) == DIFFERENT.get(name, (kind, text))
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert files[:2] == [__file__, "<mistake>"] and set(files) <= {__file__, "<mistake>", copy.__file__}, files


@pytest.mark.parametrize("name", WANTED)
def test_eager(name: str) -> None:
    check(name, run(mistakes.program(name)))


def in_a_compiled_function(name: str, backend: str) -> str:
    """The mistake inside a compiled function: an ALONE program becomes the function's body."""
    source = mistakes.program(name)
    if name in mistakes.IN_FUNCTIONS:
        return f"@torch.compile(backend={backend!r})\n{source}"
    source = source.replace("; ", "\n").replace("with torch.inference_mode(): x", "with torch.inference_mode():\n    x")
    return f"@torch.compile(backend={backend!r})\ndef f():\n{textwrap.indent(source, '    ')}\nf()"


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", WANTED)
def test_compiled(name: str, backend: str) -> None:
    with torch._dynamo.config.patch(suppress_errors=True):  # as programs have it
        check(name, run(in_a_compiled_function(name, backend)))


def test_the_table_is_of_the_programs() -> None:
    assert list(WANTED) == [*mistakes.IN_FUNCTIONS, *mistakes.ALONE] and len(WANTED) > 80


def test_the_check_detects_a_wrong_message() -> None:
    with pytest.raises(AssertionError):
        check("matmul", run(re.sub("4, 5", "5, 5", mistakes.program("matmul"))))


