"""Runs the capture tests on every supported CPython found: `python tests/pythons.py [pytest arguments]`.

Looks on PATH and under a pyenv root ($PYENV_ROOT, or ~/.pyenv). One interpreter for each minor version: the
newest found. Each gets an environment .venv-X.Y in the checkout, with the project in editable form and its
extensions built for that version; the interpreter that runs this script is used unchanged. Prints one line for
each version, and the whole output of a version that fails. Exit status 1 if one fails or none is found.
"""
from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ((3, 11), (3, 12), (3, 13))
SUITES = ("tests/dynamo", "tests/regress")
SHARED_OUT = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile")  # as in the Makefile
BUILD = "from setuptools import setup; setup()"
PROBE = """
import sys, sysconfig, os, venv, ensurepip
assert sys.implementation.name == "cpython" and not getattr(sys.flags, "nogil", 0)
assert not sysconfig.get_config_var("Py_GIL_DISABLED") and not sysconfig.get_config_var("Py_DEBUG")
assert os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")), "no Python.h"
print(*sys.version_info[:3], os.path.realpath(sys.executable))
"""
# A pyenv shim answers for whichever version is selected; a virtual environment must not leak into another.
CLEAN_ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


@dataclass(frozen=True)
class Interpreter:
    version: tuple[int, int, int]
    path: Path

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def minor(self) -> tuple[int, int]:
        return self.version[:2]


class SetupFailed(Exception):
    """An environment could not be made; the argument is the output of the failed command."""


def candidates() -> Iterator[Path]:
    """Paths that may be interpreters, the running one first."""
    yield Path(sys.executable)
    names = [f"python{a}.{b}" for a, b in SUPPORTED]
    for folder in CLEAN_ENVIRONMENT.get("PATH", "").split(os.pathsep):
        yield from (Path(folder) / name for name in [*names, "python3"])
    pyenv = CLEAN_ENVIRONMENT.get("PYENV_ROOT")
    for version in sorted(((Path(pyenv) if pyenv else Path.home() / ".pyenv") / "versions").glob("3.*")):
        yield version / "bin" / "python"


def probe(path: Path) -> Interpreter | None:
    """The interpreter at a path; None if this project does not support it or cannot be built for it."""
    if not os.access(path, os.X_OK):
        return None
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, env=CLEAN_ENVIRONMENT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    a, b, c, _ = done.stdout.split(maxsplit=3)
    found = Interpreter((int(a), int(b), int(c)), path)
    return found if found.minor in SUPPORTED else None


def find() -> list[Interpreter]:
    """One interpreter for each supported minor version: the running one, or the newest found."""
    best: dict[tuple[int, int], Interpreter] = {}
    running = probe(Path(sys.executable))
    for path in candidates():
        found = probe(path)
        if found and (found.minor not in best or found.version > best[found.minor].version):
            best[found.minor] = found
    if running:
        best[running.minor] = running
    return [best[minor] for minor in sorted(best)]


def call(*command: str | Path) -> None:
    """Run a step of a set-up; its output is shown only if it fails."""
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=CLEAN_ENVIRONMENT)
    if done.returncode:
        raise SetupFailed(f"$ {' '.join(map(str, command))}\n{done.stdout}")


def prepare(interpreter: Interpreter) -> Path:
    """The Python of an environment in which the project is installed and built for this version."""
    if interpreter.path == Path(sys.executable):
        call(sys.executable, "-c", BUILD, "-q", "build_ext", "--inplace")
        return Path(sys.executable)
    folder = ROOT / f".venv-{interpreter.minor[0]}.{interpreter.minor[1]}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    settings = (ROOT / "pyproject.toml").stat().st_mtime
    if not stamp.exists() or stamp.stat().st_mtime < settings or stamp.read_text() != interpreter.name:
        call(interpreter.path, "-m", "venv", "--clear", folder)
        call(python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "setuptools>=74.1", "-e", ".[test]")
        stamp.write_text(interpreter.name)
    call(python, "-c", BUILD, "-q", "build_ext", "--inplace")
    return python


def run(interpreter: Interpreter, arguments: list[str]) -> tuple[bool, str]:
    """Whether the suites pass on an interpreter, and the line that says so."""
    try:
        with (ROOT / "build.lock").open("w") as lock:   # builds of one checkout take turns, as in the Makefile
            fcntl.flock(lock, fcntl.LOCK_EX)
            python = prepare(interpreter)
    except SetupFailed as failure:
        print(failure, flush=True)
        return False, "could not be set up (see above)"
    suites = [s for s in SUITES if (ROOT / s).is_dir()]
    command: list[str | Path] = [python, "-m", "pytest", "--color=no", *SHARED_OUT, *suites, *arguments]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=CLEAN_ENVIRONMENT)
    lines = done.stdout.rstrip().splitlines() or ["no output"]
    if done.returncode:
        print("\n".join(lines[:-1]), flush=True)
    line = re.sub(r"^=+ | =+$", "", lines[-1])
    return done.returncode == 0, line if done.returncode >= 0 else f"killed by signal {-done.returncode}"


def main() -> int:
    interpreters = find()
    if not interpreters:
        print(f"no supported CPython found: looked for {', '.join(f'{a}.{b}' for a, b in SUPPORTED)} on PATH and under pyenv")
        return 1
    failed = False
    for interpreter in interpreters:
        ok, line = run(interpreter, sys.argv[1:])
        failed |= not ok
        print(f"CPython {interpreter.name}: {line}", flush=True)
    for a, b in sorted(set(SUPPORTED) - {i.minor for i in interpreters}):
        print(f"CPython {a}.{b}: not found", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
