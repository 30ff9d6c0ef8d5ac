"""The number of this project's files that the first call of a compiled softmax passes through.

The test counts calls of Python functions whose code lies in eager, fxir, dynamo or inductor, on the thread of the call,
from the call of the compiled function to its result. Generators and comprehensions count as functions, C functions do
not. A file is passed through if a function of it is called; a switch is a pair of consecutive calls in two different
files. Before the count, another call has loaded the compiler; the artifact cache is empty, and the function is new.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

from eager.startup.places import ROOT

# Few files are enough to read for one call to be understood. The numbers only go down.
FILES = 80
SWITCHES = 1_500

PROGRAM = """
import sys
import eager as torch

def warm(x):
    return torch.softmax(x + 1, -1)

def softmax(x):
    return torch.softmax(x, dim=-1)

calls = []

def note(frame, event, arg):
    if event == "call":
        calls.append(frame.f_code.co_filename)

x = torch.randn(7, 11)
torch.compile(warm)(torch.randn(3, 5))
compiled = torch.compile(softmax)
sys.setprofile(note)
compiled(x)
sys.setprofile(None)
print("\\n".join(calls))
"""
PACKAGES = tuple(f"{ROOT}/{package}/" for package in ("eager", "fxir", "dynamo", "inductor"))


def _calls(folder: Path) -> list[str]:
    """The files of this project, in the order of the calls."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "FRAMEJIT_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    return [line[len(ROOT) + 1 :] for line in done.stdout.splitlines() if line.startswith(PACKAGES)]


def test_the_first_call_of_a_softmax_stays_in_few_files(tmp_path: Path) -> None:
    calls = _calls(tmp_path)
    switches = Counter((a, b) for a, b in itertools.pairwise(calls) if a != b)
    files, total = len(set(calls)), sum(switches.values())
    by_package = Counter(b.partition("/")[0] for _, b in switches.elements())
    report = [f"{files} files, {total} switches in {len(calls)} calls; into {dict(by_package)}"]
    report += [f"{n:5}  {a} -> {b}" for (a, b), n in switches.most_common(20)]
    print("\n".join(report))
    assert any(file.startswith("inductor/cpp/") for file in calls), "the call compiled no kernel"
    assert files <= FILES and total <= SWITCHES, "\n".join(report)
