"""Settings and keywords that used to be accepted without an effect: they act or are refused."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[3]


def test_an_unknown_variable_is_warned_of_with_the_nearest_name() -> None:
    environment = {**os.environ, "FRAMEJIT_CACHE_DRI": "/tmp", "FRAMEJIT_TEST_VARIABLE": "1"}
    done = subprocess.run([sys.executable, "-c", "import eager"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "FRAMEJIT_CACHE_DRI is not a setting of framejit; did you mean FRAMEJIT_CACHE_DIR?" in done.stderr
    assert "FRAMEJIT_TEST_VARIABLE" not in done.stderr


def test_an_empty_list_of_attention_backends_is_refused() -> None:
    with pytest.raises(RuntimeError, match="No available kernel"), sdpa_kernel([]):
        pass
    with sdpa_kernel([SDPBackend.MATH]):
        pass


@pytest.mark.parametrize("call", [torch.hub.list, lambda repo, **kw: torch.hub.help(repo, "m", **kw),
                                  lambda repo, **kw: torch.hub.load(repo, "m", **kw)])  # fmt: skip
def test_trust_of_a_repository_is_checked(call: Any) -> None:
    with pytest.raises(ValueError, match="trust_repo='maybe'; allowed"):
        call("owner/name", trust_repo="maybe")
    with pytest.raises(NotImplementedError, match="trust_repo=False"):
        call("owner/name", trust_repo=False)
