"""A graph as text that depends on what it computes and on nothing else: the core of a cache key.

Node names, user lines and object identities are left out; order, targets, arguments, specs, the values of small
carried tensors and the signature are in. The same graph gives the same text in every process. Symbols are named by the
order of the inputs that tell them; their bounds and what is relied upon about them are in, the values that they had at
capture are not.
"""

from __future__ import annotations

import enum
import hashlib
import math
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from eager.device import device
from eager.dtypes import dtype
from eager.optable.table import Op
from eager.spec import TensorSpec, spec_of
from eager.tensor import Tensor
from fxir.expr import Expr, Sym, substitute, sym
from fxir.graph import Graph
from fxir.node import Node
from fxir.printer import dotted_name
from fxir.shapes import Relation, SymbolSource, map_ints
from fxir.tighten import tightened

# A backend may bake values of this size into code, so they are part of what is computed; larger ones may not be.
SMALL_BYTES: Final = 4096


def graph_hash(graph: Graph) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical_form(graph).encode()).hexdigest()


def canonical_form(graph: Graph) -> str:
    """One line a node: `%3 = call_function op:mul (%1, 2) : float32[3, 4]s[4, 1]@cpu`.

    Raises: NotImplementedError for an argument or carried value that has no stable text.
    """
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    names = canonical_symbols(graph)
    lines = [f"{name} in {name.lo}..{name.hi}*{name.multiple} = {graph.symbols[s]}" for s, name in names.items()]
    lines += [f"{renamed(r.left, names)!r} {r.op} {renamed(r.right, names)!r}" for r in relied_upon(graph)]
    lines += [f"%{i} = {_node(graph, node, numbers, names)}" for node, i in numbers.items()]
    lines.append(f"signature {graph.signature!r}")
    return "\n".join(lines)


def _node(graph: Graph, node: Node, numbers: dict[Node, int], names: dict[Sym, Sym]) -> str:
    if node.op == "placeholder":
        target = "" if not node.args else f"default {_value(node.args[0], numbers)}"
    elif node.op == "get_attr":
        target = _carried(graph.root[str(node.target)])
    elif node.op == "call_module":
        raise NotImplementedError(f"canonical_form: {node.name} calls a module; trace the graph first")
    else:
        target = node.target if isinstance(node.target, str) else _callable(node.target)
    args = "" if node.op == "placeholder" else _value(renamed(node.args, names), numbers)
    kwargs = f" {_value(renamed(dict(sorted(node.kwargs.items())), names), numbers)}" if node.kwargs else ""
    return f"{node.op} {target} {args}{kwargs} : {_spec(renamed(node.info.spec, names))}"


# -- symbols -----------------------------------------------------------------------------------------------------
def canonical_symbols(graph: Graph) -> dict[Sym, Sym]:
    """Each symbol of the graph with the one that stands for it wherever its name must not matter: `n<k>`, in the order
    of the inputs that they are read from, with its bounds as close as the relations make them (see `fxir.tighten`)."""

    def place(entry: tuple[Sym, SymbolSource]) -> tuple[int, str, int]:
        return entry[1].input, entry[1].kind, entry[1].dim

    found: dict[Sym, Sym] = {}
    near = tightened(graph.symbols, relied_upon(graph)) if graph.symbols else {}
    for k, (s, _) in enumerate(sorted(graph.symbols.items(), key=place)):
        lo, hi = near.get(s, (s.lo, s.hi))
        found[s] = sym(f"n{k}", lo, hi, s.multiple)  # type: ignore[assignment]
    return found


def relied_upon(graph: Graph) -> list[Relation]:
    """What the capture of this graph relies on about its symbols (and so guards)."""
    if graph.shapes is None:
        return []
    return [r for r in graph.shapes.relations if r.symbols <= graph.symbols.keys()]


def renamed(x: Any, names: dict[Sym, Sym]) -> Any:
    """`x` with symbols replaced in every expression in it."""
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
    return f"{s.dtype.name}{list(s.shape)}s{list(s.strides)}@{s.device}"


def _carried(value: Any) -> str:
    if not isinstance(value, Tensor):
        return _value(value, {})
    text = _spec(spec_of(value))
    if value.is_fake or value.nbytes > SMALL_BYTES:
        return text
    content = np.ascontiguousarray(value.detach().cpu()._array).tobytes()
    return f"{text}#{hashlib.sha256(content).hexdigest()}"


def _callable(target: Callable[..., Any]) -> str:
    if isinstance(target, Op):
        return f"op:{target.schema.text}"
    where = dotted_name(target)
    if where is not None:
        return f"fn:{where[0]}.{where[1]}"
    if isinstance(target, types.FunctionType):
        return f"code:{hashlib.sha256(_function(target).encode()).hexdigest()}"
    raise NotImplementedError(f"canonical_form: the call target {target!r} has no stable text")


def _function(fn: types.FunctionType) -> str:
    """A local function by what it does: bytecode, constants, names, defaults and what it closes over."""
    cells = [_value(c.cell_contents, {}) for c in fn.__closure__ or ()]
    return f"{_code(fn.__code__)} {_value(fn.__defaults__, {})} {_value(fn.__kwdefaults__, {})} {cells}"


def _code(code: types.CodeType) -> str:
    consts = [_code(c) if isinstance(c, types.CodeType) else _value(c, {}) for c in code.co_consts]
    return f"{code.co_code.hex()} {consts} {code.co_names} {code.co_varnames} {code.co_freevars}"


def _value(x: Any, numbers: dict[Node, int]) -> str:
    if isinstance(x, Node):
        return f"%{numbers[x]}"
    if x is None or (isinstance(x, bool | int | str | bytes | types.EllipsisType) and not isinstance(x, enum.Enum)):
        return f"{type(x).__name__}:{x!r}"
    if isinstance(x, float):
        # repr tells 0.0 from -0.0; the payload of a NaN has no effect on what is computed.
        return "float:nan" if math.isnan(x) else f"float:{x!r}"
    if isinstance(x, complex):
        return f"complex:({_value(x.real, numbers)}, {_value(x.imag, numbers)})"
    if isinstance(x, tuple | list):
        body = ", ".join(_value(v, numbers) for v in x)
        return f"({body})" if isinstance(x, tuple) else f"[{body}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_value(k, numbers)}: {_value(v, numbers)}" for k, v in x.items()) + "}"
    if isinstance(x, slice):
        return f"slice({_value(x.start, numbers)}, {_value(x.stop, numbers)}, {_value(x.step, numbers)})"
    if isinstance(x, set | frozenset):
        return "{" + ", ".join(sorted(_value(v, numbers) for v in x)) + "}"
    if isinstance(x, enum.Enum):
        return f"{type(x).__module__}.{type(x).__qualname__}.{x.name}"
    if isinstance(x, dtype):
        return f"dtype:{x.name}"
    if isinstance(x, device):
        return f"device:{x}"
    if isinstance(x, Tensor):
        return f"tensor:{_carried(x)}"
    if isinstance(x, Expr):
        return f"expr:{x.key!r}"
    if isinstance(x, TensorSpec):
        return f"spec:{_spec(x)}"
    if isinstance(x, np.generic):
        return f"{x.dtype.name}:{x.item()!r}"
    if callable(x):
        return _callable(x)
    raise NotImplementedError(f"canonical_form: a {type(x).__name__} argument has no stable text: {x!r}")
