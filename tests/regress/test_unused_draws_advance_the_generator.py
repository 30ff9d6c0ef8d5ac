"""A random draw whose result is unread advances the generator in compiled code too: the schedule dropped the call."""

from __future__ import annotations

import pytest

import eager
from fxir.backends import lookup
from fxir.base.options import CompileOptions
from tests.fxir.helpers import array, capture, fakes_of


def draws(x):
    eager.rand(5)
    return x * eager.rand(3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_generator_ends_where_eager_leaves_it(backend):
    x = eager.ones(3)
    compiled = lookup(backend)(capture(draws, 1), fakes_of([x]), CompileOptions())
    results = []
    for fn in (draws, compiled):
        eager.manual_seed(9)
        results.append((array(fn(x)).tolist(), eager.rand(2).tolist()))
    assert results[0] == results[1]
