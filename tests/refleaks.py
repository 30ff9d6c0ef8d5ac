"""Reference leaks of the native modules: tests run again and again under a debug interpreter, which counts all references.

    python3.11-dbg -m venv v && v/bin/pip install --no-binary numpy -e .[test] && v/bin/python -m tests.refleaks [pytest arguments]

Each test function runs a few times to fill caches, then a few times more. After each call, compiled code is reset and all garbage
is collected. A test leaks if every later call leaves more references than before. Without arguments: the tests of the native
modules. Exit status 1 if a test leaks, 2 if the interpreter or numpy does not count references: a numpy that was built for another
interpreter, as in wheels, releases references without the counts of the debug build. The tests of matrix products need an
OpenBLAS beside numpy, as wheels have in numpy.libs.
"""

from __future__ import annotations

import gc
import inspect
import sys
from typing import Any

import numpy as np
import pytest

import dynamo

SUITES = ("tests/eager/native/test_calls.py", "tests/eager/native/test_writes.py", "tests/dynamo/native")
WARM_UPS, CALLS = 4, 4
# numpy's own types: np.zeros and similar functions keep a reference to them in every call (numpy 2.4.6; the types are immortal).
_DTYPES = [np.dtype(c) for c in np.typecodes["All"]]


def _references() -> int:
    dynamo.reset()
    gc.collect()
    gc.collect()  # garbage of finalizers
    ours = sys.gettotalrefcount() - sum(sys.getrefcount(d) for d in _DTYPES)  # type: ignore[attr-defined]
    return int(ours)


def _numpy_counts() -> bool:
    array = np.ones(3)
    for _ in range(100):
        array + array
    before = _references()
    for _ in range(100):
        array + array
    return _references() - before < 50


class Counting:
    """A pytest plugin that counts references after each call of a test. leaks: (test, references left after each of the last calls)."""

    def __init__(self) -> None:
        self.leaks: list[tuple[str, list[int]]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool:
        fn = pyfuncitem.obj
        given = {
            name: pyfuncitem.funcargs[name] for name in inspect.signature(fn).parameters if name in pyfuncitem.funcargs
        }
        left = [0] * (WARM_UPS + CALLS)  # made before, so that it does not count
        before = _references()
        for i in range(len(left)):
            fn(**given)
            after = _references()
            left[i], before = after - before, after
        if min(left[WARM_UPS:]) > 0:
            self.leaks.append((pyfuncitem.nodeid, left[WARM_UPS:]))
        return True


def main(arguments: list[str]) -> int:
    if not hasattr(sys, "gettotalrefcount"):
        print("this interpreter does not count references: a debug build of CPython does (python3-dbg)")
        return 2
    if not _numpy_counts():
        print("this numpy does not count references: build it for this interpreter (pip install --no-binary numpy)")
        return 2
    counting = Counting()
    status = pytest.main(["-q", "-p", "no:hypothesispytest", *(arguments or SUITES)], plugins=[counting])
    for name, left in counting.leaks:
        print(f"leaks {left} references: {name}")
    print(f"{len(counting.leaks)} tests leak")
    return int(status) or int(bool(counting.leaks))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
