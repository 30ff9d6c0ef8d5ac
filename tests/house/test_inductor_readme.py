"""inductor/README.md: its worked examples apply to the current code, and their tests pass; the rooms that it names exist."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.house.test_contributing import ROOT, blocks_of, copy_with, run

TEXT = (ROOT / "inductor" / "README.md").read_text()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with every block applied."""
    return copy_with(TEXT, tmp_path_factory.mktemp("checkout"))


def test_every_example_passes_its_tests(checkout: Path) -> None:
    own = [b.path for b in blocks_of(TEXT) if b.path.startswith("tests/")]
    assert len(own) == 2
    output = run(checkout, sys.executable, "-m", "pytest", "-p", "no:xdist", *own)
    assert re.search(r"\b4 passed", output), output


def test_every_example_follows_the_rules_of_ruff(checkout: Path) -> None:
    pytest.importorskip("ruff")
    run(checkout, sys.executable, "-m", "ruff", "check", *sorted({b.path for b in blocks_of(TEXT)}))


def test_every_room_that_is_named_exists() -> None:
    rooms = re.search(r"^```\n(.*?)^```", TEXT, re.M | re.S)[1]  # type: ignore[index]
    named = [name.strip() for line in rooms.splitlines()[1:] for name in re.split(r"\s{2,}", line.strip())[1].split(",")]
    assert len(named) >= 9 and all((ROOT / "inductor" / name).is_dir() for name in named), named
