"""The table of states, complete once this package is imported."""

from tests.dynamo.states import classes, containers, held, modules, names, objects, surroundings
from tests.dynamo.states.table import STATES, State

__all__ = ["STATES", "State", "classes", "containers", "held", "modules", "names", "objects", "surroundings"]
