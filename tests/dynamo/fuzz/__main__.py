"""`python -m tests.dynamo.fuzz`: write programs, run them eager and captured, report differences."""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from dynamo.api import compile as api
from tests.dynamo.fuzz import observe
from tests.dynamo.fuzz.programs import write
from tests.dynamo.fuzz.shrink import shrink


def check(seed: int, mode: str, do_shrink: bool) -> str | None:
    """A report of the difference that the program of `seed` shows, or None. Raises: observe.TimeUp."""
    source = write(seed)
    found = observe.compare(source, mode)
    if found is None:
        return None
    if not do_shrink:
        return f"seed {seed}, mode {mode}: {found}"

    def fails(text: str) -> bool:
        try:
            again = observe.compare(text, mode)
        except (Exception, observe.TimeUp):  # noqa: BLE001 - not a program any more
            return False
        return again is not None and again.signature == found.signature

    short = shrink(source, fails)
    return f"seed {seed}, mode {mode}:\n{short}\n{observe.compare(short, mode)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dynamo.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--mode", choices=[*observe.MODES, "all"], default="all")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--stop-after", type=int, default=5, help="differences to report before stopping")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None  # generators that are dropped half-way may raise
    modes = list(observe.MODES) if options.mode == "all" else [options.mode]
    started = time.monotonic()
    done = skipped = graphs = breaks = 0
    failures: list[int] = []
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() - started > options.seconds:
            break
        mode = modes[seed % len(modes)]
        try:
            report = check(seed, mode, not options.no_shrink)
        except observe.TimeUp:
            skipped += 1
            continue
        done += 1
        statistics = api.statistics()
        graphs += statistics.graph_count
        breaks += statistics.graph_break_count
        if report is not None:
            failures.append(seed)
            print(report, "\n", flush=True)
            if len(failures) >= options.stop_after:
                break
    api.reset()
    elapsed = time.monotonic() - started
    print(f"{done} programs in {elapsed:.0f} s, {skipped} skipped for time; {graphs} graphs, {breaks} breaks; "
          f"{len(failures)} differences {failures or ''}; next seed {options.seed + done + skipped}")  # fmt: skip
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
