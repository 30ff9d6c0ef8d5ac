"""The lines of the user in code, messages and hints: every line that a kernel comes from, of the program that runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eager as torch
from eager._tensor.tensor import Tensor
from eager.base import logs
from inductor.base.user_lines import with_lines
from inductor.ir.definitions import Source

FUSED = """
def f(x):
    a = x * 2
    b = a + 1
    return b.exp()
"""
LOOKUP = """
def f(x, i):
    y = x * 3
    return torch.linalg.solve(y, i)
"""


def program(source: str, path: Path, before: int = 0) -> Callable[..., Any]:
    """The function `f` of a source text in the file `path`, after some empty lines."""
    text = "\n" * before + source
    path.write_text(text)
    names: dict[str, Any] = {"torch": torch}
    exec(compile(text, str(path), "exec"), names)
    return torch.compile(names["f"], fullgraph=True)  # type: ignore[no-any-return]


def headers(f: Callable[..., Any], *args: Tensor) -> list[str]:
    """The comments over the kernels that a first call compiles or finds."""
    with logs.capture("output_code") as records:
        f(*args)
    text = "\n".join(r.message for r in records if r.name == "output_code")
    return re.findall(r"^/\* (buf.*?) \*/", text, re.M | re.S)


def test_a_header_names_the_line_of_each_op(tmp_path: Path) -> None:
    path = tmp_path / "fused.py"
    assert headers(program(FUSED, path), torch.randn(17)) == [f"buf2: mul ({path}:3), add ({path}:4), exp ({path}:5)"]


def test_a_program_served_from_the_cache_reads_its_own_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    assert f"({one}:3)" in headers(program(FUSED, one), torch.randn(18))[0]
    (header,) = headers(program(FUSED, two, before=7), torch.randn(18))
    assert header == f"buf2: mul ({two}:10), add ({two}:11), exp ({two}:12)"


def test_a_cached_plan_names_the_calls_of_the_program_that_runs(tmp_path: Path) -> None:
    for name, before in (("one.py", 0), ("two.py", 5)):
        with logs.capture("output_code") as records:
            program(LOOKUP, tmp_path / name, before)(torch.eye(3), torch.ones(3))
        steps = re.findall(r"called at (.*)", "\n".join(r.message for r in records))
        assert steps == [f"{tmp_path / name}:{before + 4}"]


def test_a_function_of_several_results_names_all_of_them(tmp_path: Path) -> None:
    source = "\ndef f(x, y):\n    a = (x + 1).sum(0)\n    b = (y + 1).sum(0)\n    return a, b\n"
    path = tmp_path / "twice.py"
    (header,) = headers(program(source, path), torch.randn(40, 64), torch.randn(40, 64))
    assert f"({path}:3)" in header and f"({path}:4)" in header


def test_hints_name_the_calls_of_the_user_once(tmp_path: Path) -> None:
    source = (
        "\ndef f(x, w):\n    y = torch.nn.functional.dropout(torch.conv3d(x, w), 0.5)\n    return torch.sort(y, dim=-1)[0] + 1\n"
    )
    path = tmp_path / "hints.py"
    args = torch.randn(1, 3, 9, 9, 9), torch.randn(3, 3, 3, 3, 3)
    with logs.capture("perf_hints") as records:
        for _ in range(2):
            program(source, path)(*args)
    hints = [r.message for r in records if r.name == "perf_hints"]
    assert [h.partition(" runs as")[0] for h in hints] == [f"convolution ({path}:3)", f"sort ({path}:4)"]
    assert not any("thread" in h or "rng_state" in h for h in hints)


def test_titles_and_their_lines() -> None:
    text = f"/* buf3: {Source(('mul', 'add', 'sum'), (4, 5, 9)).title} */ t1 = x % 5;"
    assert text == "/* buf3: mul#4, add#5, sum#9 */ t1 = x % 5;"
    assert with_lines(text, {4: "f.py:1", 5: "f.py:1", 9: "f.py:3"}) == "/* buf3: mul, add (f.py:1), sum (f.py:3) */ t1 = x % 5;"
    assert with_lines(text, {5: "f.py:1"}) == "/* buf3: mul, add (f.py:1), sum */ t1 = x % 5;"
