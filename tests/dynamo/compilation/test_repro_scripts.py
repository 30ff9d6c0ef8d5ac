"""Scripts that `torch._dynamo.config.repro_after` writes: they rebuild the graph and its inputs, and fail like the
program.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.base import settings
from fxir.region.repro_run import Inputs, copied

ROOT = Path(__file__).parents[3]
BACKENDS = '''
def raising(gm, inputs):
    raise RuntimeError("no such op")

def failing_at_a_call(gm, inputs):
    def run(*args):
        raise IndexError("bad kernel")
    return run

def wrong(gm, inputs):
    return lambda *args: tuple(y + 1 for y in gm.forward(*args))
'''


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear: Any = torch.nn.Linear(3, 4)
        self.scale: Any
        self.register_buffer("scale", torch.arange(4.0))

    def forward(self, x: Any, n: int) -> Any:
        x.t()[0].add_(n)
        return torch.nn.functional.relu(self.linear(x)) * self.scale + torch.tensor([1.0, 2.0, 3.0, 4.0]).max()


@pytest.fixture
def backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "repro_backends.py").write_text(BACKENDS)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("repro_backends")


def scripts(folder: Path) -> list[Path]:
    return sorted(folder.glob("run_*/minifier/repro.py"))


def run(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, env=env, cwd="/")


def train(backend: Any, folder: Path, **flags: Any) -> tuple[Any, list[Path]]:
    """Results of eager and compiled code, and the scripts written."""
    torch.manual_seed(0)
    model, x = Model(), torch.randn(3, 2).t()
    wanted = model(x.clone(), 2)
    with settings.scope(debug_dir=folder), torch._dynamo.config.patch(suppress_errors=True, **flags):
        found = torch.compile(model, backend=backend)(x.clone(), 2)
        found.sum().backward()
    assert torch.allclose(found, wanted)
    return found, scripts(folder)


@pytest.mark.parametrize(("name", "flags", "message"), [
    ("raising", {}, "RuntimeError: no such op"),
    ("failing_at_a_call", {"repro_level": 1}, "IndexError: bad kernel"),
    ("wrong", {"repro_level": 4}, "AccuracyError: Bad accuracy detected: output 0 differs"),
])  # fmt: skip
def test_a_repro_script_repeats_the_failure_of_a_backend(name: str, flags: Any, message: str, backends: Any, tmp_path: Path) -> None:
    _, written = train(getattr(backends, name), tmp_path, repro_after="dynamo", **flags)
    (script,) = written
    done = run(script)
    assert done.returncode == 1
    assert any(message in line for line in done.stderr.splitlines() if not line.startswith(" ")), done.stderr
    if name != "wrong":
        return
    done = run(script, "--backend", "aot_eager", "--accuracy")
    assert done.returncode == 0, done.stderr
    assert "agrees with eager code within 0.001" in done.stdout


def test_no_script_is_written_for_a_backend_that_works(tmp_path: Path) -> None:
    for after, level in (("dynamo", 2), ("dynamo", 4), ("aot", 2), ("aot", 4)):
        assert train("aot_eager", tmp_path, repro_after=after, repro_level=level)[1] == []
    assert train("aot_eager", tmp_path)[1] == []


def test_level_3_writes_each_graph_and_its_values(tmp_path: Path) -> None:
    _, written = train("aot_eager", tmp_path, repro_after="aot", repro_level=3)
    assert len(written) == 2
    assert all((script.parent / "inputs.pt").exists() for script in written)
    for script in written:  # forward and backward
        done = run(script, "--accuracy")
        assert done.returncode == 0, done.stderr


def test_a_graph_that_inductor_cannot_compile_gets_a_script(tmp_path: Path) -> None:
    with settings.scope(cpu_cxx="/bin/false", cache_enabled=False):
        _, written = train("inductor", tmp_path, repro_after="aot")
    done = run(written[0], FRAMEJIT_CXX="/bin/false", FRAMEJIT_CACHE="0")
    assert done.returncode == 1
    assert "the compiler failed" in done.stderr
    assert run(written[0]).returncode == 0


def test_the_error_names_the_script(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(BACKENDS)
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import eager as torch, failing
        f = torch.compile(lambda x: x.sin(), backend=failing.raising, dynamic=True)
        print(f(torch.zeros(3)))
    """))
    env = os.environ | {"TORCHDYNAMO_REPRO_AFTER": "dynamo", "TORCHDYNAMO_SUPPRESS_ERRORS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, env=env, cwd=tmp_path)
    (script,) = scripts(tmp_path / "torch_compile_debug")
    assert f"the compiled captured graph raised RuntimeError; to repeat it, run: python {script}" in done.stderr
    assert done.stdout == "tensor([0., 0., 0.])\n"
    (script.parent / "inputs.pt").unlink()
    assert "no such op" in run(script).stderr


def test_inputs_keep_strides_shared_memory_and_history() -> None:
    base = torch.randn(3, 4)
    weight = torch.nn.Parameter(torch.ones(2))
    args = copied([base.t(), base[1:], weight, weight.detach().requires_grad_() * 2, 3])
    assert args[0].stride() == (1, 4)
    args[0].fill_(5)
    assert args[1].eq(5).all()
    assert not base.eq(5).any()
    assert isinstance(args[2], torch.nn.Parameter)
    assert not args[3].is_leaf
    assert args[4] == 3
    inputs = Inputs()
    inputs.tensor(inputs.storage(48), (4, 3), (1, 4), torch.float32, requires_grad=True)
    inputs.tensor(inputs.storage(8), (8,), (1,), torch.bool)
    assert inputs.args[0].stride() == (1, 4)
    assert inputs.args[0].is_leaf
    assert inputs.args[0].std() > 0


def test_values_of_the_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="repro_after='inductor': allowed: None or 'dynamo' or 'aot'"):
        torch._dynamo.config.repro_after = "inductor"
    assert torch._dynamo.config.repro_after is None
    with torch._dynamo.config.patch(repro_after="aot", repro_tolerance=1):
        assert torch._dynamo.config.repro_tolerance == 1
