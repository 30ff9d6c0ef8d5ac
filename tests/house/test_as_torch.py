"""The alias: `import torch` is this project, in every form that code written for torch uses."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from eager import as_torch
from eager.as_torch.coverage import Row, read_census, reason_to_exclude

as_torch.uninstall()  # importing it installs the alias, so that each test runs a separate program: see `run`

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=cwd or ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def output(code: str) -> list[str]:
    """Lines that a program prints under the alias."""
    done = run("-c", "import eager.as_torch\n" + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_modules_are_the_same_objects() -> None:
    assert output("""
        import torch, eager, fxir, dynamo, inductor
        import torch.nn.functional as F
        import torch.nn as nn
        from torch.optim import lr_scheduler
        from torch import Tensor, fx
        import torch.fx, torch._dynamo, torch._inductor, torch.fx.graph
        import eager.nn.functional, eager.optim.lr_scheduler, fxir.ir.graph
        print(torch is eager, F is eager.nn.functional, nn is eager.nn, lr_scheduler is eager.optim.lr_scheduler)
        print(Tensor is eager.Tensor, fx is fxir, torch._dynamo is dynamo, torch._inductor is inductor)
        print(torch.fx.graph is fxir.ir.graph, isinstance(eager.ones(2), torch.Tensor), nn.Module is eager.nn.Module)
        print(eager.nn.__spec__.name, eager.nn.functional.__spec__.name, eager.__spec__.name)
    """) == ["True True True True", "True True True True", "True True True", "eager.nn eager.nn.functional eager"]


def test_functorch_has_the_transforms_of_torch_func() -> None:
    assert output("""
        import functorch, torch
        from functorch import vmap, grad
        print(functorch.grad is torch.func.grad, vmap(lambda x: x * 2)(torch.ones(2)).tolist())
        from functorch import make_functional
        print(make_functional(torch.nn.Linear(2, 1))[0].param_names)
    """) == ["True [2.0, 2.0]", "('weight', 'bias')"]


def test_missing_names_are_listed() -> None:
    lines = output("""
        import torch
        for name in ("torch.nowhere", "torch.nn.nowhere", "torch.tensor", "torch.nowhere.deeper"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name, "|", error)
        try:
            from torch import nowhere
        except ImportError as error:
            print(error)
        try:
            torch.nowhere
        except AttributeError as error:
            print(error)
        print(callable(torch.tensor))
    """)
    assert lines[0].startswith("torch.nowhere | No module named 'torch.nowhere'") and "framejit" in lines[0]
    assert lines[1].startswith("torch.nn.nowhere | No module named 'torch.nn.nowhere'")
    assert lines[2].startswith("torch.tensor | No module named 'torch.tensor'")
    assert lines[3].startswith("torch.nowhere | ")
    assert "nowhere" in lines[4] and "nowhere" in lines[5]
    assert lines[6] == "True"


def test_a_torch_that_was_imported_first_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '1.0'\n")
    done = run("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport torch\nimport eager.as_torch")
    assert done.returncode != 0
    assert "ImportError: eager.as_torch: torch is already imported, from" in done.stderr
    assert str(tmp_path / "torch.py") in done.stderr


def test_the_alias_can_be_taken_back_and_put_back() -> None:
    assert output("""
        import sys, eager.as_torch as alias, torch.nn
        alias.install()
        print(alias.is_installed(), len([f for f in sys.meta_path if type(f).__name__ == "TorchFinder"]))
        alias.uninstall()
        print(alias.is_installed(), [m for m in sys.modules if m.split(".")[0] == "torch"])
        try:
            import torch
        except ModuleNotFoundError as error:
            print(error)
        alias.install()
        import torch.nn
        print(alias.is_installed())
    """) == ["True 1", "False []", "No module named 'torch'", "True"]


def test_libraries_get_torchs_version() -> None:
    pytest.importorskip("packaging")
    assert output("""
        import importlib.metadata, importlib.util, torch
        from packaging.version import Version, parse
        found = importlib.metadata.version("torch")
        print(found == torch.__version__, importlib.util.find_spec("torch") is not None)
        print(parse(torch.__version__) >= parse("2.0"), parse(torch.__version__).release[:2], torch.__version__ >= Version("2.1"))
        print(torch.version.framejit, torch.version.cuda, torch.version.hip)
    """) == ["True True", "True (2, 13) True", "0.1.0 None None"]


SCRIPT = """
import sys
import torch
from helper import double

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
    def forward(self, x):
        return double(x * self.w)

if __name__ == "__main__":
    import pickle
    net = pickle.loads(pickle.dumps(Net()))
    print(sys.argv[1:], __name__, net(torch.ones(3)).tolist(), type(net).__module__)
"""


def test_a_script_runs_as_its_own_main_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("import torch\ndef double(x):\n    assert isinstance(x, torch.Tensor)\n    return 2 * x\n")
    done = run("-m", "eager.as_torch", str(tmp_path / "train.py"), "--lr", "0.1", "-m", "x")
    assert done.stdout.splitlines() == ["['--lr', '0.1', '-m', 'x'] __main__ [2.0, 2.0, 2.0] __main__"], done.stderr
    done = run("-m", "eager.as_torch", "-m", "train", "--lr", "0.1", cwd=tmp_path)
    assert done.stdout.splitlines() == ["['--lr', '0.1'] __main__ [2.0, 2.0, 2.0] __main__"], done.stderr


def test_a_script_that_fails_shows_its_own_line_and_status(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import torch\nimport sys\nif sys.argv[1:]:\n    sys.exit(3)\ntorch.ones(2) + torch.ones(3)\n")
    done = run("-m", "eager.as_torch", str(tmp_path / "fails.py"))
    assert done.returncode == 1 and "fails.py\", line 5" in done.stderr and "RuntimeError" in done.stderr
    assert run("-m", "eager.as_torch", str(tmp_path / "fails.py"), "x").returncode == 3
    done = run("-m", "eager.as_torch", str(tmp_path / "absent.py"))
    assert done.returncode != 0 and "absent.py" in done.stderr
    assert run("-m", "eager.as_torch").returncode == 2


def test_spawned_workers_find_the_alias(tmp_path: Path) -> None:
    (tmp_path / "spawns.py").write_text(textwrap.dedent("""
        import multiprocessing
        import torch

        def work(x):
            return torch.nn.functional.relu(x).tolist()

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(work, (torch.tensor([-1.0, 2.0]),)))
    """))
    done = run("-m", "eager.as_torch", str(tmp_path / "spawns.py"))
    assert done.stdout.splitlines() == ["[0.0, 2.0]"], done.stderr


def test_coverage_counts_resolved_missing_and_excluded_by_weight(tmp_path: Path) -> None:
    census = tmp_path / "census.tsv"
    rows = [("torch.nn.Linear", 6), ("torch.nn.functional", 1), (".backward", 2), ("torch.no_such_function", 1), (".no_such_method", 2),
            ("torch.quantization.quantize", 50), ("torch.cuda.is_available", 9)]  # fmt: skip
    census.write_text("api\tkind\trepos\tfiles\tcalls\n" + "".join(f"{api}\tfunction\t{n}\t1\t1\n" for api, n in rows))
    done = run("-m", "eager.as_torch", "--coverage", str(census))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "85.7% of the census resolves, weighted by projects: 18 of 21 (4 of 6 names)"
    assert "  quantization is not part of this project; weights can be kept in float16, bfloat16 or the 8-bit floats: 1, 50" in lines
    assert lines[lines.index("missing, by weight:") + 1 :] == ["     2  .no_such_method", "     1  torch.no_such_function"]


def test_a_census_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tsv"
    path.write_text("name\tcount\nx\t1\n")
    with pytest.raises(ValueError, match="needed are 'api' and 'repos'"):
        read_census(path)
    path.write_text("api\trepos\nx\t1\n")
    assert read_census(path) == [Row("x", 1)]


@pytest.mark.parametrize(
    ("api", "reason"),
    [("torch.cuda.nvtx.mark", "CUDA goes through CuPy"), ("torch.cudart", None), ("torch.jit.interface", "TorchScript is not"),
     (".record_stream", "CUDA goes through CuPy"), ("torch._inductor.nowhere", "names with an underscore"),
     ("torch.nn.Nowhere", None), ("torch.qint8", "quantization is not part")],
)  # fmt: skip
def test_exclusions_go_by_whole_names(api: str, reason: str | None) -> None:
    found = reason_to_exclude(api)
    assert found == reason if reason is None else (found or "").startswith(reason)
