"""CONTRIBUTING.md: its worked examples apply to the current code, and their tests pass; its commands exist."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("eager", "fxir", "dynamo", "inductor", "tests")
# Generated tests that include the examples without a change.
GENERATED = ("tests/ops/test_table.py", "tests/ops/test_gradients.py", "tests/fxir/test_passes.py")


@dataclass(frozen=True)
class Block:
    """One code block of a worked example. path: the file that its first line names."""

    path: str
    append: bool
    diff: bool
    body: str

    def apply(self, root: Path) -> None:
        """Edit the file below `root`. A diff must match exactly one place."""
        file = root / self.path
        if self.diff:
            lines = self.body.splitlines()
            old, new = ("".join(f"{line[1:]}\n" for line in lines if line[:1] != skipped) for skipped in "+-")
            text = file.read_text()
            assert text.count(old) == 1, f"{self.path} has no such lines, or has them twice:\n{old}"
            file.write_text(text.replace(old, new))
        elif self.append:
            file.write_text(f"{file.read_text()}\n\n{self.body}")
        else:
            assert not file.exists(), f"{self.path} exists: mark the block with (append)"
            file.write_text(self.body)


def blocks() -> list[Block]:
    """The blocks of the worked examples, in the order of the document."""
    examples = TEXT.partition("\n## Worked examples\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```(python|diff)\n# (\S+\.py)( \(append\))?\n(.*?)^```$", examples, re.M | re.S)
    assert len(found) == examples.count("```") // 2, "a block does not name its file"
    return [Block(path, bool(append), kind == "diff", body) for kind, path, append, body in found]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, built extensions included, with every block applied."""
    root = tmp_path_factory.mktemp("checkout")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("native"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for block in blocks():
        block.apply(root)
    return root


def test_every_example_passes_its_tests_and_the_generated_ones(checkout: Path) -> None:
    own = [b.path for b in blocks() if b.path.startswith("tests/")]
    ops = [name for b in blocks() for name in re.findall(r'^\w+ = unary\(\s*"(\w+)"', b.body, re.M)]
    passes = [Path(b.path).stem for b in blocks() if b.path.startswith("fxir/ir/passes/") and not b.diff]
    assert own and ops and passes
    wanted = " or ".join([*(Path(path).stem for path in own), *ops, *passes])
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", wanted, *own, *GENERATED], cwd=checkout,
                          env={**os.environ, "PYTHONPATH": str(checkout)}, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 20, done.stdout


def test_every_example_is_formatted_as_the_code_is(checkout: Path) -> None:
    pytest.importorskip("ruff")
    files = sorted({b.path for b in blocks()})
    done = subprocess.run([sys.executable, "-m", "ruff", "check", *files], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_file_and_target_that_is_named_exists() -> None:
    outside = re.sub(r"^```(?:python|diff)\n.*?^```$", "", TEXT, flags=re.M | re.S)
    made = {b.path for b in blocks()}
    named = set(re.findall(r"\b(?:eager|fxir|dynamo|inductor|tests)/[\w/]+(?:\.py)?", outside)) - made
    assert len(named) > 5 and not [path for path in named if not (ROOT / path).exists()]
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", TEXT, re.M))
    assert targets and all(re.search(rf"^{a or b}:", makefile, re.M) for a, b in targets)


def test_the_named_single_test_exists() -> None:
    file, name = re.search(r"pytest (\S+\.py) -k (\w+)", TEXT).groups()  # type: ignore[union-attr]
    assert re.search(rf"def test_{name}\b", (ROOT / file).read_text())
