"""Small results on disk: a read returns the answer written for that question, or None."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inductor.base import records

ANSWER = {"kernel": "template", "rows": 14, "functions": ["expf", "logf"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "folder" / "answer.json"
    records.write(target, "which kernel?", ANSWER)
    return target


def test_answer_is_read_for_its_question_only(path: Path) -> None:
    assert records.read(path, "which kernel?") == ANSWER
    assert records.read(path, "which colour?") is None
    assert records.read(path.with_name("none.json"), "which kernel?") is None


def test_every_flipped_bit_and_every_truncation_is_found(path: Path) -> None:
    data = path.read_bytes()
    for i in range(len(data)):
        for damaged in (data[:i], data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :]):
            path.write_bytes(damaged)
            assert records.read(path, "which kernel?") in (None, ANSWER)  # white space may change
    path.write_bytes(data.replace(b"14", b"94"))
    assert records.read(path, "which kernel?") is None


@pytest.mark.parametrize("text", ["[]", "1", "null", '{"question": "which kernel?"}', "[" * 100_000])
def test_other_json_is_not_an_answer(path: Path, text: str) -> None:
    path.write_text(text)
    assert records.read(path, "which kernel?") is None


def test_write_that_fails_leaves_the_old_answer_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    records.write(path, "which kernel?", {"rows": 1})  # a record only saves time, so a failed write is not an error
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert records.read(path, "which kernel?") == ANSWER


def test_answer_in_a_folder_that_cannot_be_made_is_not_kept(path: Path) -> None:
    records.write(path / "below a file" / "x.json", "which kernel?", ANSWER)
    assert records.read(path / "below a file" / "x.json", "which kernel?") is None
