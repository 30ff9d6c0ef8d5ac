"""Numbers and sizes that depend on data: `item()`, `nonzero()`, masks.

With `config.capture_scalar_outputs` (or `fullgraph`) and `config.capture_dynamic_output_shape_ops` they become unbacked
symbols (`fxir.symbols.shapes`) and the graph continues; otherwise it breaks. The capture assumes that such a size is
at least 2, like the sizes of inputs: a call with a smaller size runs uncompiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue
from dynamo.values.symbolic import SymFloatValue, SymIntValue, host_value
from dynamo.values.tensor import TensorValue
from dynamo.values.writer import Writer
from eager import Tensor
from eager.base import settings
from eager.base.dtypes import Category
from eager.base.records import dataclass
from eager.base.symint import SymInt
from fxir.expr.rules import Sym, as_expr
from fxir.ir.node import Node, NodeInfo
from fxir.region.data_dependent import DataCalls, SymbolPlace
from fxir.symbols.shapes import MOST, Relation, ShapeEnv, plain

_SIZE: Final = 11  # the assumed size for decisions that affect only speed
_LIST: Final = 64  # the most numbers of one tolist()
_OPERATORS: Final = {operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}
_SWAPPED: Final = {">": "<", ">=": "<="}


@dataclass(eq=False)
class DataDependence:
    """Owns the calls whose results are sizes or numbers that depend on data (`calls`), and draws from Python's
    generator (`draws`).

    scalar_outputs: numbers that depend on data may be symbols.
    """

    cap: Machine
    scalar_outputs: bool
    calls: DataCalls = field(default_factory=DataCalls)
    draws: list[Node] = field(default_factory=list)

    def _allows_call(self) -> bool:
        """Whether the graph may have a data-dependent call here.

        An assumption after the call may fail, and then the program runs again: the graph must not have written to an
        input before.
        """
        return self.cap.symbols.dynamic.data and not (self.cap.graphs.levels or self.cap.recorder.transforming or self.cap.recorder.written)

    # -- sizes -------------------------------------------------------------------------------------------------
    def fresh_size(self) -> Callable[[Any], Any] | None:
        """A function that makes a data-dependent size; None if the graph breaks instead."""
        if not (settings.current().capture.dynamic_outputs and self._allows_call()):
            return None
        return lambda most: self.cap.symbols.shapes.create_unbacked(_SIZE, 2, most if type(most) is int and most > 2 else MOST)

    def note_call(self, node: Node) -> None:
        """Record that `node` computes sizes or numbers from data: it runs even if no node reads them."""
        self.calls.nodes.add(node)
        self.cap.recorder.effect_nodes.add(node)

    def place_symbols(self, node: Node, result: Tensor) -> None:
        """Record which symbols are known from the result of a data-dependent call."""
        self.calls.fakes[node] = result
        known, places = self.cap.symbols.shapes.unbacked.symbols, self.calls.places
        for dim, n in enumerate(result.shape):
            e = plain(n)
            if isinstance(e, Sym) and e in known:
                places.setdefault(e, SymbolPlace(node, dim))
        for n in (*result.shape, *result.stride()):
            lost = [s for s in getattr(plain(n), "symbols", ()) if s in known and s not in places]
            if lost:
                raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"a size that is {plain(n)}, which no result of the call has")

    # -- numbers -----------------------------------------------------------------------------------------------
    def number_of(self, x: TensorValue, kind: type | None = None) -> Value | None:
        """x.item(), or kind(x), as a symbol; None if the graph must break."""
        if not self._may_be_numbers(x) or type(x.fake.numel()) is not int or x.fake.numel() != 1:
            return None
        made = kind or (int if x.fake.dtype.category is Category.INT else float)
        node = self.cap.graphs.graph.call_function(kind or Tensor.item, (self.cap.graphs.node_of(x),), info=NodeInfo(None, self.cap.origin))
        self.note_call(node)
        symbolic: Any = self.cap.symbols.shapes.create_unbacked(_SIZE if made is int else float(_SIZE))
        self.calls.places[next(iter(plain(symbolic).symbols))] = SymbolPlace(node)
        return SymIntValue(symbolic) if made is int else SymFloatValue(symbolic)

    def draw(self, kind: type, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
        """fn(*args, **kwargs), a number from Python's generator. The draw precedes all other nodes of the graph."""
        if not self.cap.symbols.dynamic.data or self.cap.graphs.levels or self.cap.recorder.transforming:
            raise Unsupported(causes.UNKNOWN_CALL, f"random.{fn.__name__}() in a function that runs at another time")
        self.cap.effects.change(None)
        with self.cap.graphs.main.inserting_after(self.draws[-1]) if self.draws else self.cap.graphs.at_start():
            node = self.cap.graphs.main.call_function(fn, args, kwargs, info=NodeInfo(None, self.cap.origin))
        self.draws.append(node)
        self.note_call(node)
        symbolic: Any = self.cap.symbols.shapes.create_unbacked(_SIZE if kind is int else float(_SIZE))
        self.calls.places[next(iter(plain(symbolic).symbols))] = SymbolPlace(node)
        return SymIntValue(symbolic) if kind is int else SymFloatValue(symbolic)

    def _may_be_numbers(self, x: TensorValue) -> bool:
        known = x.fake.dtype.category in (Category.INT, Category.FLOAT)
        return known and self.scalar_outputs and self._allows_call()

    def list_of(self, x: TensorValue) -> Value | None:
        """x.tolist() of a vector, or of a tensor of one number; None if the graph must break."""
        if x.fake.ndim == 0:
            return self.number_of(x)
        if x.fake.ndim != 1 or type(x.fake.shape[0]) is not int or not 0 < x.fake.shape[0] <= _LIST:
            return None
        if not self._may_be_numbers(x):
            return None
        items: list[Value] = []
        for part in x.unpack(self.cap):
            assert isinstance(part, TensorValue)
            number = self.number_of(part)
            assert number is not None
            items.append(number)
        return ListValue(items)

    # -- conditions --------------------------------------------------------------------------------------------
    def comparison(self, fn: Any, a: Value, b: Value) -> ComparisonValue | None:
        """a op b of data-dependent numbers, as a condition that may be asserted; None for any other comparison."""
        op, left, right = _OPERATORS.get(fn), host_value(a), host_value(b)
        if op is None or not any(isinstance(v, SymInt) for v in (left, right)):
            return None
        if not all(isinstance(v, SymInt) or type(v) is int for v in (left, right)):
            return None
        if not self.cap.symbols.shapes.unbacked.concerns(plain(left), plain(right)):
            return None
        return ComparisonValue(op, left, right)


class ComparisonValue(Value):
    """A data-dependent bool: `left op right` over numbers that depend on data."""

    def __init__(self, op: str, left: Any, right: Any) -> None:
        self.op, self.left, self.right = op, left, right

    def python_type(self) -> type:
        return bool

    def describe(self) -> str:
        return f"the comparison {plain(self.left)} {self.op} {plain(self.right)}"

    def truth(self, cap: Machine) -> bool:
        text = str(cap.symbols.shapes.unbacked.refusal(f"{plain(self.left)} {self.op} {plain(self.right)}"))
        raise Unsupported(causes.DATA_DEPENDENT_BRANCH, text)

    def reconstruct(self, cg: Writer) -> str:
        left, right = (cg.symbolic(v) if isinstance(v, SymInt) else repr(v) for v in (self.left, self.right))
        return f"({left} {self.op} {right})"

    def relation(self, env: ShapeEnv) -> Relation:
        """The comparison as a relation between expressions."""
        left, right = (env.simplify(as_expr(v.expr if isinstance(v, SymInt) else v)) for v in (self.left, self.right))
        return Relation(_SWAPPED[self.op], right, left) if self.op in _SWAPPED else Relation(self.op, left, right)


def assert_condition(cap: Machine, condition: Value) -> bool:
    """Assume a data-dependent condition: the compiled code checks it. Returns False for any other value."""
    condition = cap.realize(condition)
    if not isinstance(condition, ComparisonValue):
        return False
    if condition.op == "!=":  # no rule uses an inequality
        cap.symbols.shapes.unbacked.assumed.append(condition.relation(cap.symbols.shapes))
    else:
        cap.symbols.shapes.assume(condition.relation(cap.symbols.shapes))
    return True
