"""`python -m tests.dynamo.cpython [MODULE ...]`: compares modules captured with eager; all of `modules.FULL` by default."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

from tests.dynamo.cpython.modules import EXCLUDED, FULL

MODULE_S = 900


@dataclass
class Outcomes:
    """The outcomes of one run of one module. crashed: the test during which the process died."""

    found: dict[str, tuple[str, str]] = field(default_factory=dict)
    crashed: str = ""

    def count(self, outcome: str) -> int:
        return sum(o == outcome for o, _ in self.found.values())


def run(module: str, captured: bool) -> Outcomes:
    """Run a module in a separate process."""
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
    """Returns (one line about a module, reports of the tests that pass eager and fail captured).

    The eager run takes as long as the captured run, so it is made only if a test fails captured.
    """
    captured, reports = run(module, True), []
    failed = {name: o for name, o in captured.found.items() if o[0] not in ("passed", "skipped", "excluded")}
    if failed:
        eager = run(module, False)
        for name, (outcome, text) in failed.items():
            if eager.found.get(name, ("missing", ""))[0] == "passed":
                reports.append(f"{name}: {outcome}\n{text}")
        if eager.crashed:
            reports.append(f"{module}: eager, died in {eager.crashed}")
    if captured.crashed:
        reports.append(f"{module}: captured, died in {captured.crashed}")
    line = (f"{module}: {captured.count('passed')} pass captured, {captured.count('excluded')} excluded, {len(failed)} fail, "
            f"of which {len(reports)} pass eager or end the process")  # fmt: skip
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
