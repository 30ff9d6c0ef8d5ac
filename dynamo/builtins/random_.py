"""Numbers from Python's own generator: `random.random()` and related functions of the module. Every call draws again.

The draws are the first nodes of the graph, in program order. Their results are symbols, like other numbers that depend
on data. A draw from another generator breaks the graph; a function that picks or moves Python values also does. Part of
the builtin table.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from dynamo.builtins.registry import Args, Kwargs, Row
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.trees import host_arguments

_INSTANCE: Final = getattr(random.random, "__self__", None)  # Python's own generator
_INTS: Final = (random.Random.randint, random.Random.randrange)


def _drawn(method: Callable[..., Any], fn: Callable[..., Any]) -> Row:
    kind = int if method in _INTS else float

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        owner = getattr(cap.realize(args[0]), "real", None)
        if owner is not _INSTANCE:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() of another generator than the module's")
        try:
            given, named = host_arguments(cap, args[1:], kwargs)
        except NotConstant:
            raise Unsupported(causes.UNKNOWN_CALL, f"random.{fn.__name__}() of values that are not constant") from None
        cap.host(method, random.Random(0), *given, **named)  # raises the errors of the call
        return cap.data.draw(kind, fn, tuple(given), named)

    return row


def _random(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """random.random()"""
    cap.host(random.Random(0).random, *(None for _ in args), **dict.fromkeys(kwargs))
    return cap.data.draw(float, random.random, (), {})


ANSWERS[random.random] = _random
for _method, _fn in ((random.Random.uniform, random.uniform), (random.Random.randint, random.randint),
                     (random.Random.randrange, random.randrange)):  # fmt: skip
    ANSWERS[_method] = _drawn(_method, _fn)
