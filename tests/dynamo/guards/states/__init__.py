"""The table of states, complete once this package is imported."""

from tests.dynamo.guards.states import classes, containers, held, modules, names, objects, surroundings
from tests.dynamo.guards.states.table import STATES, State

__all__ = ["STATES", "State", "classes", "containers", "held", "modules", "names", "objects", "surroundings"]
