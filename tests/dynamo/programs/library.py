"""What models take from the standard library and numpy for their own bookkeeping, captured without a break."""

from __future__ import annotations

import collections
import math
import operator
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


@PROGRAMS.program(lambda: (x23(),))
def products(log, x):
    log.append((math.prod(x.shape), math.prod([2, 3.0]), math.prod([], start=4), math.fsum([0.1, 0.2]), math.dist([0, 0], [3, 4])))
    return math.prod([x, x]), x.reshape(math.prod(list(x.shape)))
