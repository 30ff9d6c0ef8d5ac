"""What every test gets: a cache folder of this run's own, no log settings from outside, a clean log."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports `eager`, which reads the environment once: a test must not depend on the
# developer's artifacts or switches, nor leave artifacts behind. Child processes inherit both.
_CACHE = Path(tempfile.mkdtemp(prefix="framejit-tests-"))
os.environ["FRAMEJIT_CACHE_DIR"] = str(_CACHE)
os.environ["FRAMEJIT_VERIFY"] = "1"
for _name in [n for n in os.environ if n.startswith(("TORCH_LOGS", "TORCH_COMPILE", "TORCHDYNAMO_"))]:
    del os.environ[_name]
os.environ["TORCHDYNAMO_SUPPRESS_ERRORS"] = "0"  # a bug of the compiler fails the test that finds it

from hypothesis import settings as hypothesis_settings  # noqa: E402

from eager import random  # noqa: E402
from eager.base import logs  # noqa: E402

# A loaded machine is no failure; and a run that gates a merge must be the same run every time. Others go on searching.
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
    """A file draws the same numbers in every run, whichever files its process has run before."""
    random.manual_seed(0)


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Every test starts with the log at its defaults and with no warning said already."""
    logs.set_logs()
    logs.forget_warnings()
    yield
    logs.set_logs()


@pytest.fixture
def cache_dir() -> Path:
    """The cache folder of this run."""
    return _CACHE
