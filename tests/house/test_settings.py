"""The settings module: documented, typed, restored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eager.base import settings

ROOT = Path(__file__).resolve().parents[2]
PRINT = "from eager.base import settings as _settings; s = _settings.current(); print({})"


def _child(expression: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PRINT.format(expression)]
    environment = {**os.environ, **env}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)


def test_every_setting_has_a_variable_and_a_sentence_of_help() -> None:
    described = settings.describe()
    assert len(described) > 15
    assert len({d.name for d in described}) == len(described)
    variables = [v for d in described for v in d.env]
    assert len(set(variables)) == len(variables)
    for d in described:
        assert d.env and d.help.endswith("."), d.name
        assert getattr(getattr(settings.current(), d.group), d.field) is not None


def test_scope_overrides_and_restores_even_after_an_error() -> None:
    before = settings.current()
    with pytest.raises(KeyError), settings.scope(capture_recompile_limit=3, cache_dir="/somewhere"):
        assert settings.current().capture.recompile_limit == 3
        with settings.scope(capture_recompile_limit=2):
            assert settings.current().capture.recompile_limit == 2
            assert settings.current().cache.dir == Path("/somewhere")
        assert settings.current().capture.recompile_limit == 3
        raise KeyError
    assert settings.current() is before


@pytest.mark.parametrize("wrong", [{"nonsense": 1}, {"cpu_threads": "two"}, {"cpu_threads": True}])
def test_scope_refuses_unknown_names_and_wrong_types(wrong: dict[str, object]) -> None:
    before = settings.current()
    with pytest.raises(TypeError, match=f"settings.scope: .*{next(iter(wrong))}"), settings.scope(**wrong):
        raise AssertionError("not reached")
    assert settings.current() is before


@pytest.mark.parametrize(
    ("expression", "variable", "given", "read"),
    [
        ("s.capture.recompile_limit", "FRAMEJIT_RECOMPILE_LIMIT", "3", "3"),
        ("s.capture.disable", "TORCH_COMPILE_DISABLE", "1", "True"),
        ("s.cache.limit_bytes", "FRAMEJIT_CACHE_LIMIT", "1.5G", str(3 << 29)),
        ("s.cache.limit_bytes", "FRAMEJIT_CACHE_LIMIT", "512MiB", str(512 << 20)),
        ("s.cache.dir", "FRAMEJIT_CACHE_DIR", "/x/y", "/x/y"),
        ("s.cpu.threads", "OMP_NUM_THREADS", "2", "2"),
        ("s.cpu.threads", "OMP_NUM_THREADS", "4,2", "0"),  # a list of nesting levels, not ours to refuse
        ("s.cpu.threads", "FRAMEJIT_THREADS", "", "0"),
    ],
)
def test_the_environment_is_read(expression: str, variable: str, given: str, read: str) -> None:
    environment = {"OMP_NUM_THREADS": "", variable: given}
    assert _child(expression, **environment).stdout.strip() == read


def test_a_malformed_variable_raises_and_lists_allowed_values() -> None:
    done = _child("1", FRAMEJIT_RECOMPILE_LIMIT="many")
    assert done.returncode != 0
    assert "FRAMEJIT_RECOMPILE_LIMIT='many' is not understood; allowed: a whole number, 0 or more" in done.stderr
