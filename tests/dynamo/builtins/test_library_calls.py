"""Calls out of captured code, into the standard library and other packages: same results, same effects, same order."""

from __future__ import annotations

import bdb
import collections
import copy
import dataclasses
import io
import json
import logging
import math
import os
import pdb
import random
import re
import sys
import time
import typing
import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from rich.console import Console
from rich.progress import track

import dynamo
import eager as torch
from eager import nn
from tests.dynamo.support import observe, same_call

LOGGER = logging.getLogger("tests.third_party")
PROGRAMS: list = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


@program
def prints(log, x):
    print("one", x.shape)
    y = x + 1
    print("two", end="")
    return y * 2


@program
def logs(log, x):
    LOGGER.warning("about %s", x.dtype)
    y = x + 1
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("more")
    return y


@program
def warns(log, x):
    y = x * 2
    warnings.warn("careful", UserWarning, stacklevel=1)
    return y + 1


@program
def progress(log, x):
    for i in track(range(3), console=Console(file=io.StringIO())):
        x = x + i
        log.append(i)
    return x


class Bar:
    """Like tqdm: an iterator that draws on a stream."""

    def __init__(self, items, stream) -> None:
        self.items, self.stream = items, stream

    def __iter__(self):
        for i, item in enumerate(self.items):
            yield item
            self.stream.append(f"{i + 1}/{len(self.items)}")


@program
def bar(log, x):
    for i in Bar([1, 2, 3], log):
        x = x * i
    return x


@program
def clocks(log, x):
    start = time.time()
    y = x + 1
    log.append(time.perf_counter() >= 0 and time.time() >= start)
    return y


@program
def draws(log, x):
    random.seed(7)
    y = x * random.random()
    random.shuffle(order := [1, 2, 3])
    log.append(order)
    return y + random.choice([4, 5])


@program
def numpy_calls(log, x):
    a = np.arange(3, dtype=np.float32)
    b = np.sin(x.numpy()) + a
    log.append(float(b.sum()))
    return torch.from_numpy(b) * int(np.prod(x.shape))


@program
def texts(log, x):
    found = json.loads(json.dumps({"k": [1, 2.5]}))
    m = re.match(r"(\w+)-(\d+)", "layer-12")
    log.append(m.groups())
    return x * found["k"][1] + int(m.group(2))


@dataclasses.dataclass
class Point:
    a: int
    b: float = 2.0


@program
def data_classes(log, x):
    p = dataclasses.replace(Point(1), a=5)
    log.append(dataclasses.asdict(p))
    return x * p.a + p.b


@program
def abstract_classes(log, x):
    kinds = [isinstance(v, Mapping) for v in ({}, [], collections.OrderedDict())]
    log.append((kinds, isinstance(x, collections.abc.Sized), typing.get_origin(list[int]) is list))
    return x + sum(kinds)


@program
def containers(log, x):
    c = collections.Counter("abca")
    d = collections.defaultdict(list)
    d["k"].append(x + 1)
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    log.append((c.most_common(1), list(q)))
    return d["k"][0] * q[0]


@program
def copies(log, x):
    layer = nn.Linear(3, 3)
    other = copy.deepcopy(layer)
    log.append(other.weight is not layer.weight)
    kept = copy.deepcopy({"x": x, "n": [1]})
    x = x + 1
    with torch.no_grad():
        return (other(x) - layer(x)) + kept["x"] * kept["n"][0]


@program
def environment(log, x):
    log.append(os.environ.get("FRAMEJIT_NO_SUCH_NAME"))
    return x + (2 if "PATH" in os.environ else 1)


@program
def files(log, x):
    with open(os.devnull, "w") as f:
        log.append(f.write("abc"))
        return x * 2


# pytest rewrites the asserts of its modules, so these asserts are in a string.
ASSERTS = """
def asserts(log, x):
    assert x.shape[0] == 3, f"shape {x.shape}"
    y = x + 1
    log.append(y)
    assert y.dim() == 2, f"{y.dim()} dimensions, not 2"
    return y
"""
exec(compile(ASSERTS, "<asserts>", "exec"), namespace := {})
program(namespace["asserts"])


@program
def raises(log, x):
    with pytest.raises(ZeroDivisionError, match="division"):
        log.append(1 // (x.shape[0] - 3))
    return x + 1


def rearrange(x, pattern: str, **sizes):
    """Like einops: the operation is parsed from a text."""
    left, right = (side.split() for side in pattern.split("->"))
    known = dict(zip(left, x.shape, strict=True)) | sizes
    return x.reshape([known[n] for n in left]).permute([left.index(n) for n in right])


@program
def string_patterns(log, x):
    return rearrange(x.reshape(1, 3, 1), "a b c -> c a b") * math.prod(x.shape)


@program
def streams(log, x):
    sys.stderr.write("to stderr\n")
    y = x + 1
    sys.stdout.flush()
    return y


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_effects_and_results_agree_with_eager(fn, capsys, caplog) -> None:
    def seen(run):
        caplog.clear()
        random.seed(1)
        torch.manual_seed(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = observe(run, lambda: (torch.tensor([1.0, -2.0, 0.5]),))
        printed = capsys.readouterr()
        return result, (printed.out, printed.err, [r.getMessage() for r in caplog.records], [str(w.message) for w in caught])

    dynamo.reset()
    compiled = dynamo.compile(fn, backend="eager")
    for _ in range(2):
        (want, told), (got, retold) = seen(fn), seen(compiled)
        assert want.error is None or isinstance(want.error, AssertionError)
        same_call(want, got)
        assert told == retold


@pytest.mark.parametrize(("fn", "graphs"), [(data_classes, 1), (abstract_classes, 1), (containers, 2), (string_patterns, 1), (prints, 2)],
                         ids=lambda v: getattr(v, "__name__", str(v)))  # fmt: skip
def test_the_number_of_graphs_of_a_program(fn, graphs, capsys) -> None:
    assert dynamo.explain(fn, [], torch.tensor([1.0, -2.0, 0.5])).graph_count == graphs


@pytest.mark.parametrize("stop", [breakpoint, pdb.set_trace], ids=["breakpoint", "set_trace"])
def test_the_debugger_sees_the_users_frame(stop, monkeypatch) -> None:
    seen = []

    class Debugger(bdb.Bdb):
        def set_trace(self, frame=None) -> None:
            seen.append((frame.f_code.co_name, frame.f_locals["y"].tolist()))

    def stopped(*args, **kwargs) -> None:
        Debugger().set_trace(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", stopped)
    monkeypatch.setattr(pdb, "set_trace", stopped)

    def looked_at(x):
        y = x + 1
        if stop is breakpoint:
            breakpoint()  # noqa: T100
        else:
            pdb.set_trace()  # noqa: T100
        return y * 2

    assert dynamo.compile(looked_at, backend="eager")(torch.ones(2)).tolist() == [4.0, 4.0]
    assert seen == [("looked_at", [2.0, 2.0])]
