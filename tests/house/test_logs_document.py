"""TORCH_LOGS.md against the code: every artifact and component, its question, and a sample that still comes out."""

from __future__ import annotations

import pytest

from eager.base import logs

from . import log_samples

NAMES = [log.name for log in (*logs.components(), *logs.artifacts())]
HELP = {log.name: log.help for log in (*logs.components(), *logs.artifacts())}


def test_the_document_lists_exactly_what_exists() -> None:
    assert list(log_samples.sections()) == NAMES
    assert set(log_samples.PROGRAM_OF) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_section_has_the_question_of_its_artifact(name: str) -> None:
    text, _ = log_samples.sections()[name]
    assert HELP[name] in " ".join(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_the_program_still_prints_the_sample(name: str) -> None:
    """The program still prints the first and the last line of the sample, except for times and numbers."""
    _, sample = log_samples.sections()[name]
    lines = [line for line in sample.splitlines() if line != "..."]
    assert lines, "the sample is empty: run python -m tests.house.log_samples"
    shapes = {log_samples.shape(line) for line in log_samples.lines_of(name)}
    for line in (lines[0], lines[-1]):
        whole = line[:-3].rpartition(" ")[0] if line.endswith("...") else line  # cut off, perhaps within a number
        head = log_samples.shape(whole)
        assert any(s.startswith(head.rstrip()) for s in shapes), f"no longer printed: {line}"


def test_the_document_shows_the_programs_that_run() -> None:
    text = log_samples.DOCUMENT.read_text()
    for name, source in log_samples.PROGRAMS.items():
        assert f"`{name}`" in text and source in text


def test_every_cause_of_a_graph_break_has_its_anchor() -> None:
    assert log_samples.CAUSES
    assert log_samples.causes_text().rstrip() in log_samples.DOCUMENT.read_text()
    for cause in log_samples.CAUSES.values():
        document, _, anchor = cause.docs.partition("#")
        assert document == log_samples.DOCUMENT.name and f"\n#### {anchor}\n" in log_samples.DOCUMENT.read_text()
