"""itemgetter, attrgetter and methodcaller of operator, made in captured code or outside."""

from __future__ import annotations

import operator
from typing import Final

from dynamo.guards.sources import Source
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.writer import Writer

GETTERS: Final = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


class GetterValue(Value):
    """kind(*args, **kwargs), kind one of GETTERS."""

    def __init__(self, kind: type, args: list[Value], kwargs: dict[str, Value], source: Source | None = None) -> None:
        self.kind = kind
        self.args = args
        self.kwargs = kwargs
        self.source = source

    def python_type(self) -> type:
        return self.kind

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            return cap.raise_(TypeError, f"{self.kind.__name__} expected 1 argument, got {len(args)}")
        if self.kind is operator.methodcaller:
            method = cap.attributes.read(args[0], cap.realize(self.args[0]).as_constant())
            return cap.call(method, self.args[1:], self.kwargs)
        found = [self._look_up(cap, args[0], key) for key in self.args]
        return found[0] if len(found) == 1 else TupleValue(found)

    def _look_up(self, cap: Machine, owner: Value, key: Value) -> Value:
        if self.kind is operator.itemgetter:
            return cap.operators.getitem(owner, key)
        for name in cap.realize(key).as_constant().split("."):
            owner = cap.attributes.read(owner, name)
        return owner

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        parts = [cg.value(a) for a in self.args]
        parts += [f"**{{{', '.join(f'{k!r}: {cg.value(v)}' for k, v in self.kwargs.items())}}}"] if self.kwargs else []
        return f"{cg.bind(self.kind, self.kind.__name__)}({', '.join(parts)})"
