"""Calls of the standard library and numpy in models' bookkeeping, captured without a break."""

from __future__ import annotations

import collections
import math
import operator
import re
import sys
import types

import numpy as np

import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()
_ENDS = operator.itemgetter(0, -1)


@PROGRAMS.program(lambda: (x23(), collections.deque([1, 2], maxlen=3)), lambda: (x23(), collections.deque([4, 5, 6])))
def deque_as_an_argument(log, x, window):
    window.append(x + 1)
    window.rotate(1)
    log.append((window.maxlen, len(window), window[0].shape, 2 in list(window)[1:]))
    window[0] = x * 2
    window.extendleft([7, 8])
    return window.pop(), window


@PROGRAMS.program(lambda: (x23(), collections.deque([1, 2], maxlen=2)))
def refusals_of_a_deque(log, x, window):
    try:
        window.insert(1, 7)
    except IndexError as error:
        log.append(str(error))
    try:
        window[0:1] = [1]
    except TypeError as error:
        log.append(str(error))
    try:
        window[9] = 1
    except IndexError as error:
        log.append(str(error))
    try:
        window.remove(99)
    except ValueError as error:
        log.append(str(error))
    return x + 1


@PROGRAMS.program(lambda: (x23(), types.SimpleNamespace(width=2, drop=0.5)), lambda: (x23(), types.SimpleNamespace(width=3, drop=0.5)))
def namespace_as_configuration(log, x, config):
    config.seen = x.shape
    del config.drop
    vars(config)["deep"] = True
    log.append((hasattr(config, "drop"), sorted(vars(config)), getattr(config, "depth", 4)))
    return x * config.width, config


class Settings(types.SimpleNamespace):
    def __init__(self, scale, **rest):
        super().__init__(**rest)
        self.scale = scale


@PROGRAMS.program(lambda: (x23(),))
def namespaces_made(log, x):
    made = types.SimpleNamespace(a=x, b=2)
    made.b += 1
    settings = Settings(2.0, bias=x)
    return made, x * settings.scale + settings.bias, settings


@PROGRAMS.program(lambda: (x23(), operator.itemgetter(1)))
def getters(log, x, second):
    pairs = [(2, "b"), (1, "a")]
    log.append((_ENDS([1, 2, 3]), sorted(pairs, key=second), max(pairs, key=operator.itemgetter(0)), second({1: "one"})))
    total = operator.methodcaller("sum", 0, keepdim=True)(x)
    return total, operator.attrgetter("shape", "dtype")(x), operator.itemgetter(0)


@PROGRAMS.program(lambda: (x23(), None), lambda: (x23(), 3), lambda: (x23(), "name"))
def unions_of_types(log, x, value):
    log.append((isinstance(value, int | str), isinstance(value, int | None), isinstance(x, torch.Tensor | float)))
    return x + 1 if isinstance(value, str | None) else x * value


@PROGRAMS.program(lambda: (x23(), np.float64(0.5), np.int64(3)), lambda: (x23(), np.float64(2.0), np.int64(4)))
def numbers_of_numpy(log, x, rate, count):
    size = int(np.prod(x.shape))
    log.append((rate * count, type(rate * 2).__name__, np.sqrt(rate), np.maximum(2, count), np.mean([1, 2.5]), count.item()))
    return x.reshape(size) * rate + count, x / np.sqrt(x.shape[-1]), x.long() * np.float32(1.5), np.log(np.float64(3))


def _with_iterator():
    window = collections.deque(range(4))
    return x23(), window, iter(window)


@PROGRAMS.program(_with_iterator)
def items_of_a_deque_replaced_under_its_iterator(log, x, window, iterator):
    for i in range(len(window)):
        window[i] = i * 2
    log.append(window.index(4))
    return x + 1


@PROGRAMS.program(lambda: (x23(),))
def deques_extended_by_themselves(log, x):
    for most in (None, 6, 3):
        right, left = (collections.deque("abcd"[: most or 4], most) for _ in range(2))
        right.extend(right)
        left.extendleft(left)
        log.append((list(right), list(left)))
    return x + 1


class Clearing:
    """A comparison with it empties its container."""

    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        self.held.clear()
        return NotImplemented


@PROGRAMS.program(lambda: (x23(), collections.deque), lambda: (x23(), list))
def sequences_changed_by_a_comparison(log, x, kind):
    for ask in ("__contains__", "count", "index"):
        held = kind()
        held += [Clearing(held), Clearing(held)]
        try:
            log.append(getattr(held, ask)(3))
        except (RuntimeError, ValueError) as error:
            log.append((type(error).__name__, str(error).replace("list.index(x): x not in list", "3 is not in list")))
    return x


@PROGRAMS.program(lambda: (x23(),))
def methods_of_texts_as_functions(log, x):
    left, right = map(str.strip, " a -> b".split("->"))
    log.append((left, right, str.upper(left), sys.intern(right), bytes.fromhex("ff"), re.findall("[ab]", "cab", re.IGNORECASE)))
    return x + len(left)


@PROGRAMS.program(lambda: (x23(),))
def products(log, x):
    log.append((math.prod(x.shape), math.prod([2, 3.0]), math.prod([], start=4), math.fsum([0.1, 0.2]), math.dist([0, 0], [3, 4])))
    return math.prod([x, x]), x.reshape(math.prod(list(x.shape)))


@PROGRAMS.program(lambda: (x23(),))
def sorted_pairs(log, x):
    table = {"b": x, "a": x + 1, "c": [1]}
    pairs = [(2, x), (1, x * 2), (3, [x])]
    pairs.sort(reverse=True)
    try:
        sorted([(1, x), ("a", x)])
    except TypeError as error:
        log.append(str(error))
    log.append((sorted([[3, x], [1]], key=lambda t: (len(t), t))[0], [k for k, _ in pairs]))
    return sorted(table.items()), pairs[0][1]
