"""The metadata of an installed framejit: license, supported Pythons, types."""
from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

from tests import pythons

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_license_is_named_and_included() -> None:
    assert PROJECT["license"] == "BSD-3-Clause"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License")


def test_the_installed_metadata_equal_the_projects() -> None:
    installed = metadata("framejit")
    assert installed["License-Expression"] == PROJECT["license"]
    assert installed["Summary"] == PROJECT["description"]


def test_the_supported_pythons_are_the_tested_ones() -> None:
    tested = [f"{major}.{minor}" for major, minor in pythons.SUPPORTED]
    classifiers = [m[1] for c in PROJECT["classifiers"] if (m := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c))]
    assert classifiers == tested
    last = pythons.SUPPORTED[-1][1]
    assert PROJECT["requires-python"] == f">={tested[0]},<3.{last + 1}"


def test_every_package_says_that_it_is_typed() -> None:
    packages = [ROOT / name for name in ("eager", "fxir", "dynamo", "inductor", "eager/as_framejit/framejit")]
    assert not [str(p) for p in packages if not (p / "py.typed").exists()]


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()
