"""Run calls under the torch of this interpreter: `python tests/data/run_calls.py CALLS.json OUT.jsonl START`.

Writes an outcome a line, from call number START on. A call that kills the process leaves its line out: compare_calls.py
then starts again behind it.
"""
from __future__ import annotations

import json
import resource
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.data.calls import outcome  # noqa: E402

_MOST_BYTES = 8 << 30


def _stop(*_: Any) -> None:
    raise TimeoutError("the call ran for 10 seconds")


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    calls, out, start = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), int(sys.argv[3])
    with out.open("a") as file:
        for call in calls[start:]:
            signal.alarm(10)
            torch.manual_seed(0)
            file.write(json.dumps(outcome(torch, call)) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
