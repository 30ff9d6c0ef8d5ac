"""The environment that the project builds: without torch, and with every file that the package needs."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_no_torch_is_in_the_environment() -> None:
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions() if d.metadata["Name"]}
    assert "numpy" in installed
    assert not installed & {"torch", "torchvision", "sentence-transformers", "sympy", "functorch"}


def test_importing_everything_brings_in_no_torch_and_no_optional_package() -> None:
    code = (
        "import sys, eager, eager.nn, eager.optim, fxir.region.aot, dynamo.api.compile, inductor.driver.backend; "
        "print(*{m.partition('.')[0] for m in sys.modules} & {'torch', 'sympy', 'cupy', 'triton', 'pytest', 'rich'})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_extensions_name_every_source_and_header() -> None:
    """A file that pyproject.toml forgets is a file that `pip install .` does not compile."""
    for extension in PROJECT["tool"]["setuptools"]["ext-modules"]:
        folder = ROOT / Path(extension["sources"][0]).parts[0] / "native"
        on_disk = {str(p.relative_to(ROOT)) for p in folder.rglob("*") if p.suffix in (".c", ".cpp", ".cc")}
        assert on_disk == set(extension["sources"]), extension["name"]
        assert all((ROOT / path).exists() for path in extension.get("depends", [])), extension["name"]
        assert "-Wall" in extension["extra-compile-args"] and "-Wextra" in extension["extra-compile-args"]


def test_the_source_distribution_has_sources_and_headers(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="74.1")
    code = "from setuptools import setup; setup()"
    command = [sys.executable, "-c", code, "-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = [
        str(path.relative_to(ROOT))
        for package in ("eager", "fxir", "dynamo", "inductor")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".c", ".h", ".hpp", ".cpp") and "__pycache__" not in path.parts
    ]
    assert not [name for name in wanted if name not in names]
    assert {"pyproject.toml", "Makefile", "README.md", "TORCH_LOGS.md"} <= names


def test_run_time_dependencies_are_the_four_that_the_design_allows() -> None:
    names = {re.split(r"[><=~! ]", requirement)[0] for requirement in PROJECT["project"]["dependencies"]}
    assert names == {"numpy", "ml_dtypes", "bytecode", "rich"}


def test_no_extra_names_a_package_that_brings_torch() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"demo", "test", "gpu", "bench"} <= set(extras)
    named = " ".join(requirement for extra in extras.values() for requirement in extra)
    assert "torch" not in named and "sentence" not in named and "gt-all" not in named
