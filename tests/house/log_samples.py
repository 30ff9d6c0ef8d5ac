"""The programs whose logs TORCH_LOGS.md shows, and a command that rewrites that document's samples.

    python -m tests.house.log_samples          # runs them and rewrites the samples in place

Every artifact has one program. A sample is the program's real output, shortened in the middle.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from dynamo.report.causes import CAUSES
from eager.base import logs as _logging

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "TORCH_LOGS.md"
CAUSES_HEADING = "## Causes of graph breaks\n"
MAX_LINES, MAX_CHARS = 14, 118

BREAK = '''\
import eager as torch

@torch.compile
def f(x, w):
    y = torch.relu(x @ w) * 2
    print("half way")
    return y.sum(dim=1)

f(torch.ones(4, 8), torch.ones(8, 3))
f(torch.ones(6, 8), torch.ones(8, 3))
'''
TRAIN = '''\
import eager as torch

@torch.compile
def loss(x, w):
    return torch.softmax(x * w, dim=1).square().sum()

w = torch.ones(4, 8, requires_grad=True)
loss(torch.ones(4, 8), w).backward()
'''
TUNE = '''\
import eager as torch

@torch.compile(mode="max-autotune")
def linear(x, w, b):
    return torch.relu(x @ w + b), torch.sin(x)

linear(torch.ones(64, 256), torch.ones(256, 128), torch.ones(128))
'''
REPLAY = '''\
import eager as torch

@torch.compile(mode="reduce-overhead")
def f(x):
    return x * 2 + 1

f(torch.ones(8))
'''
HINT = '''\
import eager as torch

@torch.compile
def top(x):
    values, places = torch.sort(x * 2, dim=1)
    return values[:, :3] + 1

top(torch.randn(4, 8))
'''
IMAGES = '''\
import eager as torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)).eval()
with torch.no_grad():
    torch.compile(model)(torch.ones(1, 3, 6, 6))
'''
PROGRAMS = {"images.py": IMAGES, "break.py": BREAK, "train.py": TRAIN, "tune.py": TUNE, "replay.py": REPLAY, "hint.py": HINT}

PROGRAM_OF = {
    "dynamo": "break.py",
    "aot": "train.py",
    "inductor": "break.py",
    "dynamic": "break.py",
    "graph_breaks": "break.py",
    "recompiles": "break.py",
    "recompiles_verbose": "break.py",
    "guards": "break.py",
    "bytecode": "break.py",
    "graph": "break.py",
    "graph_code": "break.py",
    "graph_sizes": "break.py",
    "trace_source": "break.py",
    "trace_bytecode": "break.py",
    "aot_graphs": "train.py",
    "aot_joint_graph": "train.py",
    "graph_passes": "images.py",
    "output_code": "train.py",
    "kernel_code": "train.py",
    "schedule": "train.py",
    "loops": "train.py",
    "fusion": "train.py",
    "perf_hints": "hint.py",
    "cudagraphs": "replay.py",
    "autotuning": "tune.py",
    "kernel_times": "replay.py",
    "cache": "break.py",
    "compile_time": "break.py",
}


@cache
def printed(program: str, logs: str) -> tuple[str, ...]:
    """The log lines of one program under TORCH_LOGS=logs, in a separate process with an empty disk cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / program).write_text(PROGRAMS[program])
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "FRAMEJIT"))}
        environment |= {"TORCH_LOGS": logs, "FRAMEJIT_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} under TORCH_LOGS={logs}:\n{done.stderr}")
        text = done.stderr.replace(str(folder), "~").replace(os.path.realpath(folder), "~").replace(str(ROOT), ".")
        return tuple(line for line in text.splitlines() if re.match(r"[VIWE]\d{4} ", line))


def lines_of(name: str) -> list[str]:
    """The lines that the artifact or component `name` logs in its program.

    Lines of an artifact contain its name, so that one run with all artifacts of a program serves them all. Lines of a component
    contain no name: each component has a separate run.
    """
    program, components = PROGRAM_OF[name], {c.name for c in _logging.components()}
    if name in components:
        return [line for line in printed(program, f"+{name}") if "[__" not in line]
    together = ",".join(n for n, p in PROGRAM_OF.items() if p == program and n not in components)
    return [line for line in printed(program, together) if f"[__{name}]" in line]


def sections() -> dict[str, tuple[str, str]]:
    """The document's sections: name -> (text before the sample, the sample)."""
    found = {}
    for name, body in re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", DOCUMENT.read_text(), re.M | re.S):
        text, _, rest = body.partition("```\n")
        found[name] = (text, rest.rpartition("```")[0])
    return found


def shape(line: str) -> str:
    """A line without the parts that differ from run to run: time, numbers, hashes."""
    words = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(\.\d+)?", "#", line)
    return re.sub(r"\s+", " ", words)


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 3], "...", *lines[-2:]]
    lines = [line.rstrip() for line in lines]
    return [line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 3] + "..." for line in lines]


def causes_text() -> str:
    """The section on the causes of graph breaks, from the catalogue; each has the anchor that its message names."""
    entries = [f"#### {c.id}\n{_sentence(c.title)}. What to do: {c.hint}.\n" for c in CAUSES.values()]
    return CAUSES_HEADING + "\n" + "\n".join(entries)


def _sentence(title: str) -> str:
    """The title with a capital letter, unless it begins with a name of code."""
    is_code = "." in title.partition(" ")[0] or "(" in title.partition(" ")[0]
    return title if is_code else title[0].upper() + title[1:]


def programs_text() -> str:
    """The programs, as the document shows them."""
    return "".join(f"`{name}`\n```python\n{source}```\n\n" for name, source in PROGRAMS.items())


def rewrite() -> None:
    """Write new samples into the document."""
    text = DOCUMENT.read_text().partition("\n" + CAUSES_HEADING)[0] + "\n" + causes_text()
    text = re.sub(r"(?<=shortened \(`\.\.\.`\):\n\n).*?(?=^## Components)", lambda _: programs_text(), text, flags=re.M | re.S)
    for name in PROGRAM_OF:
        lines = lines_of(name)
        if not lines:
            print(f"{name}: {PROGRAM_OF[name]} printed nothing for it", file=sys.stderr)
            continue
        sample = "".join(f"{line}\n" for line in _shortened(lines))
        pattern = rf"(^### {name}\n(?:(?!#|```)[^\n]*\n)*```\n)(.*?)(^```$)"
        text, done = re.subn(pattern, lambda m, s=sample: m[1] + s + m[3], text, flags=re.M | re.S)
        if done != 1:
            raise RuntimeError(f"{DOCUMENT.name}: no sample block under '### {name}'")
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    rewrite()
