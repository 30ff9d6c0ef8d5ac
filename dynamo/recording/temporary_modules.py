"""Modules that captured code makes: `nn.Softmax(dim=-1)(x)`, `layers[1:]`.

A module of this library without parameters, or of a user's class without `__init__`, is made once, at capture, and the
compiled entry holds it: within the call, the program cannot distinguish it from a new module. If the module leaves the
call, the graph breaks before the module is made.
"""

from __future__ import annotations

from typing import Any, Final

from dynamo.guards.sources import ConstSource, type_attribute
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.functions import FunctionValue
from dynamo.values.mappings import DICT_TYPES
from dynamo.values.objects import ClassValue, UserObject
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.trees import PLAIN, to_host
from dynamo.values.writer import Writer
from eager.nn import Module
from eager.nn._base import REGISTRATION_HOOKS
from eager.random import default_generator

_MADE_PLAINLY: Final = (type_attribute(Module, "__new__"), Module.__init__)


class HeldModule(UserObject):
    """A module made at capture."""

    def reconstruct(self, cg: Writer) -> str:
        cg.impossible(self, f"a {self.cls.__name__} made in the compiled function outlives it")


def make_module(cap: Machine, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """cls(*args, **kwargs) of a Module class."""
    if not value.cls.__module__.startswith("eager.nn.modules.") and not _is_bare(cap, value.cls):
        raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}()")
    if any(cap.attributes.has_hooks(registry) for registry in REGISTRATION_HOOKS):
        raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() runs registration hooks of all modules")
    given: list[Module] = []
    arguments = [_module_argument(cap, a, given) for a in args]
    named = {k: _module_argument(cap, a, given) for k, a in kwargs.items()}
    before = default_generator.get_state()
    made = cap.host(value.cls, *arguments, **named)
    known = {id(p) for module in given for p in (*module.parameters(), *module.buffers())}
    if any(id(p) not in known for p in (*made.parameters(), *made.buffers())):
        default_generator.set_state(before)
        raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() (it makes parameters)")
    held = HeldModule(value.cls, made, ConstSource(made, value.cls.__name__), born=cap.steps)
    cap.world.by_id[id(made)] = held
    cap.world.keep.append(made)
    return held


def _is_bare(cap: Machine, cls: type) -> bool:
    """Whether a user's class makes instances without user code, like an activation that defines only a forward."""
    made = (cap.classes.lookup(cls, "__new__"), cap.classes.lookup(cls, "__init__"))
    return type(cls) is type and made == _MADE_PLAINLY and cap.classes.lookup(cls, "__setattr__") is Module.__setattr__


def _module_argument(cap: Machine, value: Value, given: list[Module]) -> Any:
    """The host object for an argument. Modules among the arguments are added to `given`."""

    def leaf(value: Value) -> Any:
        if isinstance(value, UserObject) and isinstance(value.real, Module):
            given.append(value.real)
            return value.real
        if isinstance(value, FunctionValue) and value.real is not None:
            return value.real
        try:
            return value.as_constant()
        except NotConstant:
            raise Unsupported(causes.UNKNOWN_CALL, f"a module made with {value.describe()}") from None

    return to_host(cap, value, PLAIN | DICT_TYPES, leaf)
