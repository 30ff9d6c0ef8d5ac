"""Files of the user's that have the names of our packages, other names of ours, and checkouts that are not built."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "eager" / "as_framejit"


def run(code: str, cwd: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in `cwd`, which is first on sys.path, and then `path`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path or (ROOT,)))}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=cwd, env=environment, capture_output=True, text=True,
                          check=False, timeout=120)  # fmt: skip


def output(code: str, cwd: Path, *path: Path) -> list[str]:
    done = run(code, cwd, *path)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["dynamo", "fxir", "inductor"])
def test_a_file_before_ours_is_named_at_the_start(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('the user file ran')\n")
    done = run("import eager", tmp_path)
    assert f"ImportError: framejit: {tmp_path / name}.py shadows {ROOT / name}, a package of framejit" in done.stderr
    assert f"Rename {name}.py" in done.stderr


def test_a_package_that_was_imported_before_is_named(tmp_path: Path) -> None:
    (tmp_path / "lib" / "inductor").mkdir(parents=True)
    (tmp_path / "lib" / "inductor" / "__init__.py").write_text("")
    done = run("import sys; sys.path.insert(0, 'lib'); import inductor; sys.path.pop(0); import eager", tmp_path)
    assert "shadows" in done.stderr and "lib/inductor/__init__.py" in done.stderr


def test_a_path_that_is_added_later_changes_nothing(tmp_path: Path) -> None:
    for name in ("dynamo", "eager", "fxir", "inductor"):
        (tmp_path / "lib" / name).mkdir(parents=True)
        (tmp_path / "lib" / name / "__init__.py").write_text("raise SystemExit('the user file ran')\n")
    program = """
        import eager as torch, os, sys, warnings
        sys.path.insert(0, os.path.abspath("lib"))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print(torch.compile(lambda x: (x * 2).sum(), fullgraph=True)(torch.ones(4)).item())
            import eager.fx, eager.export
        print(sorted(str(w.message).split(":")[0] for w in said if "package of framejit" in str(w.message)))
        print("lib/dynamo" in str(said[0].message))
    """
    assert output(program, tmp_path) == ["8.0", "['import dynamo', 'import fxir', 'import inductor']", "True"]


def test_data_folders_of_these_names_are_not_packages(tmp_path: Path) -> None:
    (tmp_path / "inductor" / "cpp").mkdir(parents=True)
    (tmp_path / "dynamo").mkdir()
    program = "import warnings; warnings.simplefilter('error'); import eager, dynamo, inductor; print(dynamo.__file__)"
    assert output(program, tmp_path) == [str(ROOT / "dynamo" / "__init__.py")]


def test_scripts_under_the_alias_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "dynamo.py").write_text("x = 1\n")
    (tmp_path / "script.py").write_text("import torch\n")
    done = subprocess.run([sys.executable, "-m", "eager.as_torch", str(tmp_path / "script.py")], cwd=ROOT, capture_output=True,
                          text=True, check=False, timeout=120)  # fmt: skip
    assert f"{tmp_path}/dynamo.py shadows" in done.stderr


def test_spawned_processes_import_ours(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(textwrap.dedent("""
        import multiprocessing, sys, os
        import eager as torch
        sys.path.insert(0, os.path.abspath("lib"))

        def work(n):
            return torch.compile(lambda x: x + n)(torch.ones(1)).item()

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
    """))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "readme.py").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                          timeout=120)  # fmt: skip
    assert done.stdout.splitlines() == ["[2.0, 3.0]"], done.stderr


def test_framejit_is_eager_and_has_its_modules(tmp_path: Path) -> None:
    program = """
        import framejit as torch
        import framejit.nn as nn, framejit.nn.functional as F, framejit._dynamo, framejit.fx.graph
        from framejit.utils.data import DataLoader
        from framejit import Tensor, fx
        import eager, fxir.ir.graph, dynamo, eager.utils.data
        print(torch is eager, nn is eager.nn, F is eager.nn.functional, DataLoader is eager.utils.data.DataLoader)
        print(Tensor is eager.Tensor, fx is fxir, framejit.fx.graph is fxir.ir.graph, framejit._dynamo is dynamo)
        print(eager.nn.__spec__.name, eager.__spec__.name)
        try:
            import framejit.nowhere
        except ModuleNotFoundError as error:
            print(error)
    """
    assert output(program, tmp_path, ROOT, ALIAS) == [
        "True True True True", "True True True True", "eager.nn eager", "No module named 'framejit.nowhere'"]  # fmt: skip


def test_framejit_says_which_eager_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text("raise SystemExit('the user file ran')\n")
    done = run("import framejit", tmp_path, ROOT, ALIAS)
    assert f"ImportError: framejit: {tmp_path}/eager.py shadows framejit's package 'eager'" in done.stderr


def test_names_of_torch_below_eager_are_the_attributes(tmp_path: Path) -> None:
    program = """
        import eager, importlib
        for name in ("fx", "_dynamo", "_inductor", "export", "functional", "_tensor", "_VF", "nn.functional", "func", "_ops"):
            module = importlib.import_module("eager." + name)
            found = eager
            for part in name.split("."):
                found = getattr(found, part)
            assert found is module, name
        from eager.fx.graph_module import GraphModule
        import fxir.ir.graph_module
        print(GraphModule is fxir.ir.graph_module.GraphModule)
    """
    assert output(program, tmp_path) == ["True"]


def test_the_build_has_a_package_framejit() -> None:
    built = apply_configuration(Distribution(), ROOT / "pyproject.toml")
    assert "framejit" in built.packages and built.package_dir["framejit"].endswith("eager/as_framejit/framejit")


def test_an_unbuilt_checkout_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "eager", tmp_path / "eager", ignore=shutil.ignore_patterns("*.so", "__pycache__", "native"))
    done = run("import eager", tmp_path, tmp_path)
    assert f"ImportError: framejit: the C extension of {tmp_path}/eager is not built for Python" in done.stderr
    assert "`make native`" in done.stderr and "another folder" in done.stderr
    (tmp_path / "eager" / "_native.cpython-39-x86_64-linux-gnu.so").write_text("")
    assert "_native.cpython-39" in run("import eager", tmp_path, tmp_path).stderr
