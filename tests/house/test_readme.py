"""README.md against the repository: commands, links, variables and code are real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks_main
from eager.base import logs, settings

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
VARIABLES = {variable for d in settings.describe() for variable in d.env}


def test_every_make_target_exists() -> None:
    named = set(re.findall(r"make ([a-z-]+)", TEXT + (ROOT / ".ci" / "run").read_text()))
    assert {"demo", "test"} <= named
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    assert phony is not None and named <= set(phony[1].split())
    for target in phony[1].split():
        assert re.search(rf"^{target}:", MAKEFILE, re.M), target


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_variable_is_a_setting() -> None:
    named = set(re.findall(r"\b((?:FRAMEJIT|TORCH)_[A-Z_]*[A-Z])\b", TEXT.replace("TORCH_LOGS.md", "")))
    assert named and named <= VARIABLES


def test_every_log_name_is_known() -> None:
    for spec in re.findall(r"TORCH_LOGS=(\S+)", TEXT):
        if spec != "help":  # which prints
            logs.apply(spec)
    logs.apply("")


@pytest.mark.parametrize("source", re.findall(r"```python\n(.*?)```", TEXT, re.S))
def test_the_code_runs(source: str) -> None:
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8, 3" in done.stdout


def test_every_benchmark_exists() -> None:
    for name in re.findall(r"python -m benchmarks (\w+)", TEXT + MAKEFILE):
        assert benchmarks_main._parser().parse_args([name]).name == name


def test_the_figures_are_there() -> None:
    figures = TEXT.partition("## Figures")[2].partition("\n## ")[0]
    assert figures.count("|") > 20 and re.search(r"\d\.\d", figures)
