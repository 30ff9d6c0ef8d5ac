"""A graph as text that depends on the graph's computation alone: the core of a cache key.

The text contains order, targets, arguments, specs, the signature, the values of small carried tensors, and the carried tensor
that each node reads. It contains no node names, user lines or addresses. The same graph gives the same text in every process;
two graphs that differ in a property that code depends on give different texts. Symbols are named by the order of the inputs
that define them: the text has their bounds and the relations of the capture, but not their values at capture.

Carried tensors are numbered twice, in the order of their first reader: by their key in `graph.root`, since a compiled plan
binds its constants by key, and by object, since two keys may name one tensor.
"""

from __future__ import annotations

import enum
import hashlib
import math
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, spec_of
from eager.optable.table import Op
from fxir.expr.rules import Expr, Sym, substitute, sym
from fxir.ir.graph import Graph
from fxir.ir.node import Node
from fxir.ir.printer import dotted_name
from fxir.symbols.bounds_from_relations import narrowed_bounds
from fxir.symbols.shapes import Relation, SymbolSource, map_ints

# A backend may compile values of at most this size into code, so the text contains them. Larger values stay arguments.
SMALL_BYTES: Final = 4096

# Functions in these packages are identified by their import path; other functions by their content.
_STABLE: Final = frozenset({"dynamo", "eager", "fxir", "inductor", "framejit", "operator", "builtins", "math"})


def graph_hash(graph: Graph) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical_form(graph).encode()).hexdigest()


def canonical_form(graph: Graph) -> str:
    """One line a node: `%3 = call_function op:mul (%1, 2) : float32[3, 4]s[4, 1]@cpu`.

    Raises: NotImplementedError for an argument or carried value without a stable text.
    """
    text = _Text(graph)
    names = canonical_symbols(graph)
    lines = [f"{name} in {name.lo}..{name.hi}*{name.multiple} = {graph.symbols[s]}" for s, name in names.items()]
    lines += [f"{renamed(r.left, names)!r} {r.op} {renamed(r.right, names)!r}" for r in guarded_relations(graph)]
    lines += [f"%{i} = {_node(graph, node, text, names)}" for node, i in text.numbers.items()]
    lines.append(f"signature {graph.signature!r}")
    return "\n".join(lines)


def _node(graph: Graph, node: Node, text: _Text, names: dict[Sym, Sym]) -> str:
    if node.op == "placeholder":
        target = "" if not node.args else f"default {text.value(node.args[0])}"
    elif node.op == "get_attr":
        key = str(node.target)
        target = f"{text.key_number(key)} {text.value(graph.root[key])}"
    elif node.op == "call_module":
        raise NotImplementedError(f"canonical_form: {node.name} calls a module; trace the graph first")
    else:
        target = node.target if isinstance(node.target, str) else text.callable(node.target)
    args = "" if node.op == "placeholder" else text.value(renamed(node.args, names))
    kwargs = f" {text.value(renamed(dict(sorted(node.kwargs.items())), names))}" if node.kwargs else ""
    return f"{node.op} {target} {args}{kwargs} : {_spec(renamed(node.info.spec, names))}"


# -- symbols -----------------------------------------------------------------------------------------------------
def canonical_symbols(graph: Graph) -> dict[Sym, Sym]:
    """symbol -> its canonical symbol `n<k>`, numbered in the order of the inputs that give the symbols.

    The canonical symbol has the bounds that the relations imply (see `fxir.symbols.bounds_from_relations`).
    """

    def place(entry: tuple[Sym, SymbolSource]) -> tuple[int, str, int]:
        return entry[1].input, entry[1].kind, entry[1].dim

    found: dict[Sym, Sym] = {}
    bounds = narrowed_bounds(graph.symbols, guarded_relations(graph)) if graph.symbols else {}
    for k, (s, _) in enumerate(sorted(graph.symbols.items(), key=place)):
        lo, hi = bounds.get(s, (s.lo, s.hi))
        canonical = sym(f"n{k}", lo, hi, s.multiple)
        assert isinstance(canonical, Sym)
        found[s] = canonical
    return found


def guarded_relations(graph: Graph) -> list[Relation]:
    """The relations over its symbols that the graph's capture guards."""
    if graph.shapes is None:
        return []
    return [r for r in graph.shapes.relations if r.symbols <= graph.symbols.keys()]


def renamed(x: Any, names: dict[Sym, Sym]) -> Any:
    """`x` with symbols replaced in all its expressions."""
    if not names:
        return x
    if isinstance(x, Relation):
        return Relation(x.op, renamed(x.left, names), renamed(x.right, names))
    return substitute(x, names) if isinstance(x, Expr) else map_ints(x, lambda i: renamed(i, names))


# -- values ------------------------------------------------------------------------------------------------------

def _spec(s: Any) -> str:
    if s is None:
        return "-"
    if isinstance(s, tuple):
        return "(" + ", ".join(map(_spec, s)) + ")"
    return f"{s.dtype.name}{list(s.shape)}s{list(s.strides)}@{s.device.text}"


def _content(x: Tensor) -> str:
    """A digest of the elements of a small tensor; empty for a larger tensor and for a tensor without elements."""
    if x.is_fake or x.nbytes > SMALL_BYTES:
        return ""
    content = np.ascontiguousarray(x.detach().cpu()._array).tobytes()
    return f"#{hashlib.sha256(content).hexdigest()}"


class _Text:
    """Arguments as text, with the numbers of nodes, of carried keys and of tensors."""

    def __init__(self, graph: Graph | None = None) -> None:
        self.numbers: dict[Node, int] = {} if graph is None else {node: i for i, node in enumerate(graph.in_order())}
        self._keys: dict[str, int] = {}
        self._tensors: dict[int, int] = {}
        self._kept: list[Tensor] = []  # an id is unique only while its tensor exists
        self._functions: dict[types.FunctionType, int] = {}

    def key_number(self, key: str) -> int:
        """The number of a key of `graph.root`, in the order of first use."""
        return self._keys.setdefault(key, len(self._keys))

    def value(self, x: Any) -> str:
        if isinstance(x, Node):
            return f"%{self.numbers[x]}"
        cls = x.__class__
        if cls is int or cls is bool or cls is str:  # the most frequent arguments
            return f"{cls.__name__}:{x!r}"
        if cls is tuple:
            return f"({', '.join([self.value(i) for i in x])})"
        if isinstance(x, enum.Enum):
            return f"{type(x).__module__}.{type(x).__qualname__}.{x.name}={self.value(x.value)}"
        if x is None or isinstance(x, bool | int | str | bytes | types.EllipsisType):
            return f"{type(x).__name__}:{x!r}"
        if isinstance(x, float):
            # repr distinguishes 0.0 from -0.0; the payload of a NaN does not affect results
            return "float:nan" if math.isnan(x) else f"float:{x!r}"
        if isinstance(x, complex):
            return f"complex:({self.value(x.real)}, {self.value(x.imag)})"
        if isinstance(x, tuple | list | dict | slice | set | frozenset):
            return self._container(x)
        if isinstance(x, dtype):
            return f"dtype:{x.name}"
        if isinstance(x, device):
            return f"device:{x}"
        if isinstance(x, Tensor):
            return self._tensor(x)
        if isinstance(x, Expr):
            return f"expr:{x.key!r}"
        if isinstance(x, TensorSpec):
            return f"spec:{_spec(x)}"
        if isinstance(x, np.generic):
            return f"{x.dtype.name}:{x.item()!r}"
        if callable(x):
            return self.callable(x)
        raise NotImplementedError(f"canonical_form: a {type(x).__name__} argument has no stable text: {x!r}")

    def _container(self, x: Any) -> str:
        if isinstance(x, dict):
            return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({self.value(x.start)}, {self.value(x.stop)}, {self.value(x.step)})"
        if isinstance(x, set | frozenset):
            return f"{type(x).__name__}{{" + ", ".join(sorted(map(self.value, x))) + "}"
        body = ", ".join(map(self.value, x))
        if isinstance(x, list):
            return f"[{body}]"
        # A named tuple differs from the tuple of its fields; a Size does not.
        return f"{type(x).__module__}.{type(x).__qualname__}({body})" if hasattr(x, "_fields") else f"({body})"

    def _tensor(self, x: Tensor) -> str:
        if id(x) not in self._tensors:
            self._kept.append(x)
        number = self._tensors.setdefault(id(x), len(self._tensors))
        return f"tensor:{number} {_spec(spec_of(x))}{_content(x)}"

    def callable(self, target: Callable[..., Any]) -> str:
        """The import path of a function of this project or of a library; the content of a function of the user."""
        if isinstance(target, Op):
            return f"op:{target.schema.text}"
        where = dotted_name(target)
        if where is not None and (where[0].partition(".")[0] in _STABLE or not isinstance(target, types.FunctionType)):
            return f"fn:{where[0]}.{where[1]}"
        if isinstance(target, types.FunctionType):
            if target in self._functions:  # a recursive function
                return f"function:{self._functions[target]}"
            self._functions[target] = len(self._functions)
            return f"code:{hashlib.sha256(self._function(target).encode()).hexdigest()}"
        if isinstance(target, types.ModuleType):
            return f"module:{target.__name__}"
        raise NotImplementedError(f"canonical_form: the call target {target!r} has no stable text")

    def _function(self, fn: types.FunctionType) -> str:
        """The parts of a local function that decide its result: bytecode, constants, defaults, globals, closed-over values."""
        cells = [self.value(c.cell_contents) for c in fn.__closure__ or ()]
        read = {name: fn.__globals__[name] for name in sorted(_names(fn.__code__)) if name in fn.__globals__}
        return f"{self._code(fn.__code__)} {self.value(fn.__defaults__)} {self.value(fn.__kwdefaults__)} {cells} {self.value(read)}"

    def _code(self, code: types.CodeType) -> str:
        consts = [self._code(c) if isinstance(c, types.CodeType) else self.value(c) for c in code.co_consts]
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        variables = code.co_varnames, code.co_cellvars, code.co_freevars
        return f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {consts} {code.co_names} {counts} {variables}"


def _names(code: types.CodeType) -> set[str]:
    """The names that `code` and the functions in it may read from their globals."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
