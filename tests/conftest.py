"""Fixtures of every test: a cache folder of this run, no log settings from outside, a clean log."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports `eager`, which reads the environment once: a test must not depend on the
# developer's artifacts or switches, and must not leave artifacts behind. Child processes inherit both.
_CACHE = Path(tempfile.mkdtemp(prefix="framejit-tests-"))
os.environ["FRAMEJIT_CACHE_DIR"] = str(_CACHE)
os.environ["FRAMEJIT_VERIFY"] = "1"
for _name in [n for n in os.environ if n.startswith(("TORCH_LOGS", "TORCH_COMPILE", "TORCHDYNAMO_"))]:
    del os.environ[_name]
os.environ["TORCHDYNAMO_SUPPRESS_ERRORS"] = "0"  # a bug of the compiler fails the test that finds it

from hypothesis import settings as hypothesis_settings  # noqa: E402

from eager import random  # noqa: E402
from eager.base import logs  # noqa: E402

# A slow machine must not fail a test. A run that gates a merge draws the same examples each time; other runs draw new examples.
hypothesis_settings.register_profile("search", deadline=None, print_blob=True)
hypothesis_settings.register_profile("gate", deadline=None, derandomize=True)
hypothesis_settings.load_profile("gate" if os.environ.get("CI") else "search")


def pytest_unconfigure() -> None:
    shutil.rmtree(_CACHE, ignore_errors=True)


@pytest.fixture(autouse=True, scope="module")
def _short_collections() -> None:
    """The garbage collector visits only objects that this file makes: the hundreds of thousands of pytest's are frozen."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _seed() -> None:
    """A file draws the same numbers in every run, regardless of the files that its process ran before."""
    random.manual_seed(0)


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Each test starts with default log settings, and no warning counts as already shown."""
    logs.set_logs()
    logs.forget_warnings()
    yield
    logs.set_logs()


@pytest.fixture
def cache_dir() -> Path:
    """The cache folder of this run."""
    return _CACHE


@pytest.fixture
def switches_often() -> Iterator[None]:
    """Threads take turns after a microsecond each, so that races between them become likely."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
