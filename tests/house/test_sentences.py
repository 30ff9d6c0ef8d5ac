"""No docstring, comment, message or test name uses a turn of phrase of `phrases.PHRASES`."""

from __future__ import annotations

import pytest

from .phrases import PHRASES
from .sentences import AREAS, forbidden, texts

# Forbidden turns of phrase that remain. These numbers only go down; `python -m tests.house.sentences AREA` lists them.
REMAINING = {"eager": 0, "fxir": 0, "dynamo": 0, "inductor": 0, "benchmarks": 0, "tests": 0}


@pytest.mark.parametrize("area", AREAS)
def test_no_text_uses_a_forbidden_phrase(area: str) -> None:
    found = forbidden(area)
    limit = REMAINING[area]
    assert len(found) <= limit, "\n".join(
        [f"{len(found)} forbidden phrases in {area}; allowed: {limit}", *map(str, found[-30:])]
    )


def test_comments_docstrings_messages_and_names_are_read() -> None:
    found = {t.content for t in texts("tests") if t.file == "tests/house/test_sentences.py"}
    assert "comments docstrings messages and names are read" in found or not found
    assert any("is erased but still linked" in t.content for t in texts("fxir"))
    assert any(t.file.endswith(".c") for t in texts("dynamo"))


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("What keeps of a frame that no entry shows what ends aloud", "aloud"),
        ("the program made is no view of what nobody has", "is no view"),
        ("a view comes to be only where the item leaves the graph", "comes to be"),
        ("which fails or not as the indices are", "whether ... or not"),
        ("the gradient formula of what nobody has derived", "nobody"),
        ("where the arguments are none that it works on; its own file tells", "tell"),
    ],
)
def test_a_forbidden_phrase_is_found(sentence: str, name: str) -> None:
    assert name in {n for n, pattern, _ in PHRASES if pattern.search(sentence)}


@pytest.mark.parametrize(
    "sentence",
    [
        "Skips frames that hold an object with a visible finalizer.",
        "An intermediate cannot alias an input that does not exist.",
        "Whether this raises depends on the index values.",
        "A symbol stands for a size that is no longer static.",
    ],
)
def test_plain_sentences_pass(sentence: str) -> None:
    assert not [n for n, pattern, _ in PHRASES if pattern.search(sentence)]


def test_every_phrase_has_one_name() -> None:
    names = [name for name, _, _ in PHRASES]
    assert len(names) == len(set(names))
