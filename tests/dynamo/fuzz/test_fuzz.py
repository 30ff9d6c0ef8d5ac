"""Random programs agree with eager, and so do programs that once differed. `python -m tests.dynamo.fuzz` runs more programs."""

from __future__ import annotations

import ast

import pytest

from tests.dynamo.fuzz import found, observe
from tests.dynamo.fuzz.programs import write
from tests.dynamo.fuzz.shrink import shrink


@pytest.mark.parametrize("name", found.PROGRAMS)
def test_a_program_found_before_agrees_with_eager(name: str) -> None:
    difference = observe.compare(found.source(name), found.PROGRAMS[name][0])
    assert difference is None, difference


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", observe.MODES)
def test_random_programs_agree_with_eager(mode: str) -> None:
    for seed in range(20):
        difference = observe.compare(write(seed), mode)
        assert difference is None, f"python -m tests.dynamo.fuzz --mode {mode} --seed {seed} --programs 1\n{difference}"


def test_a_difference_is_reported() -> None:
    source = found.source("a call reads no attribute of an object").replace("return x *", "return BACKEND() + x *")
    counts = iter(range(100))
    original, observe._MODULES["BACKEND"] = observe._MODULES.get("BACKEND"), lambda: next(counts)  # type: ignore[index]
    try:
        difference = observe.compare(source, "default")
    finally:
        del observe._MODULES["BACKEND"]  # type: ignore[attr-defined]
    assert original is None and difference is not None and difference.what == "result"


def test_shrinking_keeps_the_failing_part_only() -> None:
    source = "a = 1\nif a:\n    b = [2, len('keep')]\n    c = 3\nd = 4\n"
    short = shrink(source, lambda text: "len('keep')" in ast.unparse(ast.parse(text)))
    assert short == "len('keep')" or short == "b = len('keep')"
