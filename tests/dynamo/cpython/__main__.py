"""`python -m tests.dynamo.cpython [MODULE ...]`: the modules captured against eager; all of `modules.FULL` by default."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

from tests.dynamo.cpython.modules import EXCLUDED, FULL

MODULE_S = 900


@dataclass
class Outcomes:
    """Of one run of one module. crashed: the test during which the process died."""

    found: dict[str, tuple[str, str]] = field(default_factory=dict)
    crashed: str = ""

    def count(self, outcome: str) -> int:
        return sum(o == outcome for o, _ in self.found.values())


def run(module: str, captured: bool) -> Outcomes:
    """Run a module in a process of its own."""
    command = [sys.executable, "-m", "tests.dynamo.cpython.runner", module, *(["captured"] if captured else [])]
    outcomes, last, output = Outcomes(), "", ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MODULE_S, errors="replace")
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, code = (late.stdout or b"").decode(errors="replace"), -1
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        record = json.loads(line)
        last = record.get("start", "")
        if "id" in record:
            outcomes.found[record["id"]] = record["outcome"], record["text"]
    if code:
        outcomes.crashed = last or f"(exit {code}) {done.stderr[-2000:] if code != -1 else 'time'}"
    return outcomes


def check(module: str) -> tuple[str, list[str]]:
    """(one line about a module, reports of the tests that pass eager and do not pass captured)."""
    eager, captured = run(module, False), run(module, True)
    reports = []
    for name, (outcome, text) in captured.found.items():
        before = eager.found.get(name, ("missing", ""))[0]
        if outcome not in ("passed", "skipped", "excluded") and before == "passed":
            reports.append(f"{name}: {outcome}\n{text}")
    for what, outcomes in (("eager", eager), ("captured", captured)):
        if outcomes.crashed:
            reports.append(f"{module}: {what}, died in {outcomes.crashed}")
    line = (f"{module}: {captured.count('passed')} pass captured of {eager.count('passed')} that pass eager, "
            f"{captured.count('excluded')} excluded, {len(reports)} differ")  # fmt: skip
    return line, reports


def main() -> int:
    failed = False
    for module in sys.argv[1:] or FULL:
        line, reports = check(module)
        failed |= bool(reports)
        for report in reports:
            print(report, flush=True)
        print(line, flush=True)
    print(f"{len(EXCLUDED)} exclusions")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
