"""Runs the tests of one module of CPython's `test` package in this process, eager or captured, one line for each test.

`python -m tests.dynamo.cpython.runner MODULE [captured]` prints JSON lines: {"start": id}, then {"id", "outcome", "text"}.
"""

from __future__ import annotations

import doctest
import faulthandler
import json
import signal
import sys
import traceback
import types
import unittest
import warnings
from collections.abc import Iterator
from typing import Any

import dynamo
from eager.base import settings
from tests.dynamo.cpython.modules import EXCLUDED

TEST_S = 20.0


class TimeUp(BaseException):
    """A test ran for too long."""


def _tests(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def _capture(test: unittest.TestCase) -> None:
    """Let the instance run a compiled form of its test function."""
    name = test._testMethodName
    function = getattr(type(test), name)
    if isinstance(function, types.FunctionType):
        compiled = dynamo.compile(function, backend="eager")
        setattr(test, name, types.MethodType(compiled, test))


def _is_excluded(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:n]) in EXCLUDED for n in range(1, len(parts) + 1))


def _ring(number: int, frame: Any) -> None:
    raise TimeUp


def _run_one(test: unittest.TestCase) -> tuple[str, str]:
    result = unittest.TestResult()
    signal.signal(signal.SIGVTALRM, _ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, TEST_S)
    try:
        test.run(result)
    except TimeUp:
        return "time", f"more than {TEST_S} s"
    except BaseException:  # noqa: BLE001 - a test may raise anything
        return "error", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    bad = [*result.errors, *result.failures]
    if bad:
        return "failed", bad[0][1]
    return ("skipped", "") if result.skipped else ("passed", "")


def main() -> int:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    module, captured = sys.argv[1], len(sys.argv) > 2
    out = sys.stdout
    sys.unraisablehook = lambda unraisable: None
    imported = __import__(f"test.{module}", fromlist=["*"])
    suite = unittest.TestLoader().loadTestsFromModule(imported)
    with settings.scope(capture_suppress_errors=False, capture_unroll_limit=2000):
        for test in _tests(suite):
            if isinstance(test, doctest.DocTestCase) or type(test).__module__ != imported.__name__:
                continue
            name = test.id().removeprefix("test.")
            if _is_excluded(name):
                print(json.dumps({"id": name, "outcome": "excluded", "text": ""}), file=out, flush=True)
                continue
            print(json.dumps({"start": name}), file=out, flush=True)
            if captured:
                dynamo.reset()
                _capture(test)
            outcome, text = _run_one(test)
            print(json.dumps({"id": name, "outcome": outcome, "text": text}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
