"""Any state that a function reads may change between calls: after each change, the compiled function agrees with eager.
"""

from __future__ import annotations

import random

import pytest

import dynamo
import eager as torch
from tests.dynamo.guards.states import STATES
from tests.dynamo.support import Seen, same_call


def _observe(fn, x: torch.Tensor) -> Seen:
    python = random.getstate()
    generator = torch.get_rng_state()
    seen = Seen(log=[], args=())
    try:
        seen.result = fn(x)
    except Exception as error:
        seen.error = error
    random.setstate(python)
    torch.set_rng_state(generator)
    return seen


def _itself(fn):
    return fn


def _through_a_global(fn):
    """A function that calls `fn` as a global: its state is reached from an object that the compiled entry holds, not
    from the call.
    """
    namespace = {"fn": fn}
    exec("def call(x): return fn(x)", namespace)
    return namespace["call"]


@pytest.mark.parametrize("reach", [_itself, _through_a_global])
@pytest.mark.parametrize("name", STATES)
def test_changed_state_is_seen(name: str, reach) -> None:
    made = STATES[name]()
    compiled = dynamo.compile(reach(made.read), backend="eager")
    order = random.Random(name)
    x = torch.tensor([0.5, -1.5])
    try:
        for _ in range(3):
            for change in (lambda: None, *order.sample(made.changes, len(made.changes))):
                change()
                for _ in range(2):
                    same_call(_observe(made.read, x), _observe(compiled, x))
    finally:
        made.close()
