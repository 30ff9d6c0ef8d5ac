"""Objects that are made at their first use: a thread that comes second gets the object of the first, and never half of an object."""
from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager import _ops
from eager.cuda.cudnn_convolutions import Convolutions
from eager.library import custom_op
from fxir import backends
from inductor.driver.stored_winners import StoredWinners

_numbers = itertools.count()
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("made", ["_OpNamespace", "OpOverloadPacket", "OpOverload"])
def test_an_operator_has_one_object(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another use, as of another thread, comes in the middle of the first use."""
    name = f"first_use_{next(_numbers)}"

    @custom_op(f"{name}::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    torch.ops.__dict__.pop(name, None)
    others: list[Any] = []

    def use() -> list[Any]:
        namespace = getattr(torch.ops, name)
        return [namespace, namespace.twice, namespace.twice.default]

    class Interrupted(getattr(_ops, made)):  # type: ignore[misc]
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            if not others:
                others.append(None)
                others[:] = use()

    monkeypatch.setattr(_ops, made, Interrupted)
    found = use()
    assert [x is y for x, y in zip(found, others, strict=True)] == [True] * 3
    assert list(getattr(torch.ops, name)) == ["twice"]


def test_a_backend_is_found_when_its_registration_is_complete() -> None:
    seen: list[bool] = []

    class Watched:
        def __call__(self, *args: Any) -> Any:
            raise NotImplementedError

        def __setattr__(self, name: str, value: object) -> None:
            seen.append("watched" in backends._registry)
            super().__setattr__(name, value)

    backends.register_backend("watched", Watched(), lambda options: None, writes_at_end=True)
    backends._registry.pop("watched")
    backends._checks.pop("watched")
    assert seen == [False]


def test_the_compiler_is_found_when_its_module_is_complete() -> None:
    code = """
import sys
from fxir import backends

register, there = backends.register_backend, []

def watched(name, *args, **kwargs):
    there.append(set(vars(sys.modules["inductor.driver.backend"])))
    return register(name, *args, **kwargs)

backends.register_backend = watched
backends.lookup("inductor")
assert set(vars(sys.modules["inductor.driver.backend"])) == there[0], set(vars(sys.modules["inductor.driver.backend"])) - there[0]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_winner_that_is_measured_during_its_look_up_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    winners: StoredWinners[str] = StoredWinners(tmp_path)
    read = winners._read

    def measured_meanwhile(key: str, *args: Any) -> str | None:
        found = read(key, *args)
        winners.remember(key, "fast", {"name": "fast"})
        return found

    monkeypatch.setattr(winners, "_read", measured_meanwhile)
    assert winners.find("key", lambda record: str(record["name"])) == "fast"
    assert winners.find("key", lambda record: str(record["name"])) == "fast"


def test_a_convolution_is_built_again_if_another_thread_drops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dropping(dict[Any, Any]):
        def __contains__(self, key: object) -> bool:
            return self.pop(key, None) is not None  # it was there

    convolutions = Convolutions(None, None)
    convolutions._graphs = Dropping(key="built before")
    monkeypatch.setattr(Convolutions, "_built", lambda self, key: "built again")
    key: Any = "key"
    assert [convolutions._graph(key) for _ in range(2)] == ["built again"] * 2
