"""Every check of every op on the CUDA device at hand, failures listed: `python -m tests.cuda.report [--seconds N] [--shard i/n]`.

Prints a line for each failing (op, sample, check), with the last line of its exception, and a summary. Never stops at a
failure; ends when the time is over, with the ops that are left in the summary.
"""
from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from collections.abc import Iterator
from typing import TextIO

import eager
from eager.base import settings
from tests.cuda.checks import Check, checks_of, ordered_ops


def failures(names: list[str], until: float, done: list[str], half: bool) -> Iterator[tuple[Check, BaseException | None]]:
    """Each check with its exception, or None, until the clock `time.monotonic` passes `until`. Adds finished ops to `done`."""
    for name in names:
        for check in checks_of(name, half):
            if time.monotonic() > until:
                return
            try:
                check.run()
                eager.cuda.synchronize()
                yield check, None
            except Exception as error:  # noqa: BLE001 - the report lists every error
                yield check, error
        done.append(name)


def last_line(error: BaseException) -> str:
    """`Type: message` on one line, at most 200 characters, with the place in the project that raised."""
    place, frame = "", error.__traceback__
    while frame is not None:
        path = frame.tb_frame.f_code.co_filename
        if "/eager/" in path or "/tests/" in path:
            place = f"{path.rsplit('/', 1)[1]}:{frame.tb_lineno}"
        frame = frame.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]} [{place}]"


def report(out: TextIO, seconds: float, shard: tuple[int, int], only: list[str], half: bool) -> int:
    """Write the report. Returns the number of failing checks."""
    start = time.monotonic()
    names = [n for n in ordered_ops() if not only or n in only][shard[0] :: shard[1]]
    passed, failed = 0, 0
    done: list[str] = []
    bad: set[str] = set()
    for check, error in failures(names, start + seconds, done, half):
        passed += error is None
        if error is not None:
            failed += 1
            bad.add(check.op)
            print(f"{check.op}-{check.sample} {check.name}: {last_line(error)}", file=out, flush=True)
    seconds = time.monotonic() - start
    print(f"# shard {shard[0]}/{shard[1]} on {eager.cuda.get_device_name()}: {passed} checks pass, {failed} fail; "
          f"{len(done)} of {len(names)} ops done, {len(bad)} with a failure; {seconds:.1f} s", file=out, flush=True)  # fmt: skip
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="time limit of the run")
    parser.add_argument("--out", default="", help="a file for the report; standard output by default")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th op, from the i-th")
    parser.add_argument("--no-half", action="store_true", help="skip bfloat16 and float16")
    parser.add_argument("ops", nargs="*", help="names of ops; all by default")
    options = parser.parse_args()
    faulthandler.enable()
    settings.assign(debug_full_traceback=True)
    if not eager.cuda.is_available():
        print(f"no CUDA device: {eager.cuda.why_not_available()}", file=sys.stderr)
        return 2
    i, n = (int(part) for part in options.shard.split("/"))
    out = open(options.out, "w") if options.out else sys.stdout  # noqa: SIM115 - standard output is not closed
    failed = report(out, options.seconds, (i, n), options.ops, not options.no_half)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
