"""CONTRIBUTING.md: its worked examples apply to the current code, and their tests pass; its commands exist."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("eager", "fxir", "dynamo", "inductor", "tests")
# Tests that are generated from the tables to which the examples add.
GENERATED = (
    "tests/ops/test_table.py", "tests/ops/test_gradients.py", "tests/fxir/test_passes.py", "tests/dynamo/guards/test_guard_kinds.py",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """One code block of a worked example.

    path: the file that its first line names. mark: "append", "unchanged", or "" for a new file or a diff.
    """

    path: str
    mark: str
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
        elif self.mark == "append":
            file.write_text(f"{file.read_text()}\n\n{self.body}")
        elif self.mark == "unchanged":
            assert self.body in file.read_text(), f"{self.path} no longer has these lines:\n{self.body}"
        else:
            assert not file.exists(), f"{self.path} exists: mark the block with (append)"
            file.write_text(self.body)


def blocks_of(text: str) -> list[Block]:
    """The blocks of a document's worked examples, in their order."""
    examples = text.partition("\n## Worked examples\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```(python|diff)\n# (\S+\.(?:py|c))(?: \((append|unchanged)\))?\n(.*?)^```$", examples, re.M | re.S)
    assert len(found) == examples.count("```") // 2, "a block does not name its file"
    return [Block(path, mark, kind == "diff", body) for kind, path, mark, body in found]


def blocks() -> list[Block]:
    """The blocks of CONTRIBUTING.md."""
    return blocks_of(TEXT)


def copy_with(text: str, root: Path) -> Path:
    """Copy the checkout to `root`, built extensions included, with every block of the document applied."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package)
    shutil.copy(ROOT / "pyproject.toml", root)
    for block in blocks_of(text):
        block.apply(root)
    return root


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with every block applied and the guard kinds built."""
    root = copy_with(TEXT, tmp_path_factory.mktemp("checkout"))
    run(root, sys.executable, "-m", "dynamo.guards.kind_files")
    build(root)
    return root


def run(root: Path, *command: str) -> str:
    """The output of a command in the copy; fails with the output if the command fails."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(root: Path) -> None:
    """Build `dynamo._native` as `make native` does, without optimisation, which would take most of the time."""
    modules = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    module = next(m for m in modules if m["name"] == "dynamo._native")
    flags = [flag for flag in module["extra-compile-args"] if not flag.startswith("-O")]
    folders = [f"-I{folder}" for folder in (*module["include-dirs"], sysconfig.get_paths()["include"])]
    target = root / f"dynamo/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    target.unlink()  # it may be linked to the checkout's own
    run(root, *sysconfig.get_config_var("CC").split(), "-shared", "-fPIC", "-O0", *flags, *folders, *module["sources"], "-o", str(target))


def test_every_example_passes_its_tests_and_the_generated_ones(checkout: Path) -> None:
    own = [b.path for b in blocks() if b.path.startswith("tests/")]
    rows = [name for b in blocks() for name in re.findall(r'^(?:\w+ = unary|\+ +_check)\(\s*"(\w+)"', b.body, re.M)]
    passes = [Path(b.path).stem for b in blocks() if b.path.startswith("fxir/ir/passes/") and not b.diff]
    assert len(own) >= 4 and len(rows) == 2 and passes
    wanted = " or ".join([*(Path(path).stem for path in own), *rows, *passes, "header", "native_code", "every_kind"])
    output = run(checkout, sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", wanted, *own, *GENERATED)
    passed = re.search(r"(\d+) passed", output)
    assert passed and int(passed[1]) > 100, output


def test_every_example_follows_the_rules_of_ruff(checkout: Path) -> None:
    pytest.importorskip("ruff")
    run(checkout, sys.executable, "-m", "ruff", "check", *sorted({b.path for b in blocks() if b.path.endswith(".py")}))


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
