"""Graph to Python source. The source runs: executing it defines a `forward(self, ...)` equal to the graph.

Owns the text of targets and argument values. `self` is any object whose `.root` maps the graph's keys to values (a
GraphModule). A value without an importable name is put into `globals` under a generated name.
"""

from __future__ import annotations

import enum
import math
import sys
import types
from collections.abc import Callable
from dataclasses import field
from typing import Any

import eager
from eager.base.records import dataclass
from fxir.expr.printing import PYTHON, to_source
from fxir.expr.rules import Expr, Sym
from fxir.ir.listing import format_spec
from fxir.ir.node import Argument, Node, walk_nodes
from fxir.ir.node_sequence import CodeGen, NodeSequence, Source
from fxir.symbols.floats import FloatExpr, to_text

_OPERATOR_MODULES = ("_operator", "operator")


@dataclass(slots=True)
class PythonCode:
    """Printed source and the values its text cannot name (`exec(source, dict(globals))` defines `forward`)."""

    source: str
    globals: dict[str, Any] = field(default_factory=dict)


def print_python(graph: NodeSequence, *, annotate: bool = False, free: bool = False, attributes: bool = False) -> PythonCode:
    """Print `graph` as an import header and a function `forward(self, <placeholders>)`.

    annotate: add specs and user lines as comments. free: delete each value after its last use, which a running graph needs but
    which makes the text longer. attributes: read the values that the graph names as attributes of `self`.
    """
    return _Printer(graph, annotate, free, attributes).run()


def dotted_name(value: Any) -> tuple[str, str] | None:
    """(module, qualified name) under which `value` itself can be imported again, or None."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    if module in _OPERATOR_MODULES:
        module = "operator"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return (module, name) if found is value else None


class _Printer:
    def __init__(self, graph: NodeSequence, annotate: bool, free: bool, attributes: bool = False) -> None:
        self.graph = graph
        self.attributes = attributes
        self.annotate = annotate
        self.free = free
        self.imports: set[str] = set()
        self.globals: dict[str, Any] = {}
        self.names = {n.name for n in graph.in_order()}
        self.symbols: dict[Sym, str] = {}  # symbol -> the variable that holds it

    def run(self) -> PythonCode:
        last_use = self._last_uses() if self.free else {}
        lines = self._symbol_lines()
        place = ""
        for node in self.graph.in_order():
            if node.op == "placeholder":
                continue
            origin = node.info.origin if self.annotate else None
            if origin is not None and str(origin) != place:
                place = str(origin)
                lines.append(f"# {place}: {origin.source_line.strip()}")
            text = self._statement(node)
            dead = last_use.get(node, ())
            if dead and node.op != "output":
                text += "".join(f"; {n.name} = None" for n in dead)
            if self.annotate and node.info.spec is not None:
                text += f"  # {format_spec(node.info.spec)}"
            lines.append(text)
        head, body = self._function(lines or ["pass"])
        tables = {"eager.optable.table": "from eager.optable.table import OPS\n"}
        imports = "".join(tables.get(m, f"import {m}\n") for m in sorted(self.imports))
        if imports:
            imports += "\n\n"
        return PythonCode(f"{imports}{head}\n{body}\n", self.globals)

    def _function(self, lines: list[str]) -> tuple[str, str]:
        """The definition line and the body, written by the graph's CodeGen."""
        codegen = self.graph._codegen
        if type(codegen) is not CodeGen:
            self.globals.update({"torch": eager, "inf": math.inf, "nan": math.nan, "NoneType": type(None), "device": eager.device})
            self.globals.update(codegen.additional_globals())
        if codegen._body_transformer is not None:
            lines = "".join(codegen._body_transformer([f"{line}\n" for line in lines])).splitlines()
        head = codegen.gen_fn_def(self._parameters(), "")
        return head.lstrip("\n"), "\n".join(f"    {line}" if line else line for line in lines)

    def _symbol_lines(self) -> list[str]:
        """Lines that read each symbol from an input."""
        names = [n.name for n in self.graph.placeholders]
        lines = []
        for s, source in self.graph.symbols.items():
            if source.is_number:
                self.symbols[s] = names[source.input]
                continue
            self.symbols[s] = name = self._free_name(s.name)
            lines.append(f"{name} = {source.text(names[source.input])}")
        return lines

    def _free_name(self, name: str) -> str:
        while name in self.names or name in self.symbols.values():
            name = f"{name}_"
        return name

    def _parameters(self) -> list[str]:
        parameters = []
        for node in self.graph.placeholders:
            text = node.name
            if self.annotate and node.info.spec is not None:
                text += f": {format_spec(node.info.spec)!r}"
            if node.args:
                text += f"={self.value(node.args[0])}"
            parameters.append(text)
        return parameters

    def _statement(self, node: Node) -> str:
        if node.op == "output":
            return self.graph._codegen.generate_output(Source(self.value(node.args[0])))
        if node.op == "get_attr":
            return f"{node.name} = {self._carried(str(node.target))}"
        if node.op == "call_method":
            return f"{node.name} = {self.value(node.args[0])}.{node.target}({self._call(node.args[1:], node.kwargs)})"
        callee = self._carried(str(node.target)) if node.op == "call_module" else self.target(node.target)
        return f"{node.name} = {callee}({self._call(node.args, node.kwargs)})"

    def _carried(self, key: str) -> str:
        """The expression for a value that the graph names."""
        if not self.attributes:
            return f"self.root[{key!r}]"
        text = "self"
        for part in key.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
        return text

    def _call(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> str:
        parts = [self.value(a) for a in args]
        if all(k.isidentifier() for k in kwargs):
            parts += [f"{k}={self.value(v)}" for k, v in kwargs.items()]
        else:
            parts.append(f"**{self.value(kwargs)}")
        return ", ".join(parts)

    def target(self, target: Any) -> str:
        """An expression that evaluates to the callable `target`."""
        if is_op(target):
            self.imports.add("eager.optable.table")
            return f"OPS[{target.name!r}]"
        return self._importable(target, getattr(target, "__name__", type(target).__name__))

    def _importable(self, value: Any, hint: str) -> str:
        where = dotted_name(value)
        if where is not None:
            module, name = where
            if module == "builtins":
                return name if name not in self.names else self._global(value, hint)
            # A node with the name of the module's first part would shadow the import inside forward.
            if module.split(".")[0] not in self.names:
                self.imports.add(module)
                return f"{module}.{name}"
        return self._global(value, hint)

    def _global(self, value: Any, hint: str) -> str:
        for name, known in self.globals.items():
            if known is value:
                return name
        stem = "_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in hint).strip("_")
        name, k = stem, 0
        while name in self.globals or name in self.names:
            k += 1
            name = f"{stem}_{k}"
        self.globals[name] = value
        return name

    def value(self, arg: Argument) -> str:
        """An expression that evaluates to `arg`."""
        if isinstance(arg, Node):
            return arg.name
        if type(arg) in _WRITERS:
            return _WRITERS[type(arg)](self, arg)
        if isinstance(arg, Expr):
            return _write_expr(self, arg)
        if isinstance(arg, FloatExpr):
            return self._float(arg)
        if isinstance(arg, enum.Enum):
            return f"{self._importable(type(arg), type(arg).__name__)}[{arg.name!r}]"
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self._importable(type(arg), type(arg).__name__)}({', '.join(map(self.value, arg))})"
        kind = type(arg)
        if kind.__module__.split(".")[0] == "eager" and kind.__name__ in ("dtype", "memory_format", "layout"):
            self.imports.add("eager")
            return f"eager.{repr(arg).removeprefix('torch.')}"
        if kind.__module__.split(".")[0] == "eager" and kind.__name__ == "device":
            self.imports.add("eager")
            return f"eager.device({str(arg)!r})"
        return self._importable(arg, kind.__name__)

    def _float(self, arg: FloatExpr) -> str:
        self.imports.add("math")
        return to_text(arg, lambda s: self.symbols.get(s, s.name))

    def _last_uses(self) -> dict[Node, list[Node]]:
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for node in reversed(self.graph):
            for used in dict.fromkeys(walk_nodes((node.args, node.kwargs))):
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last


def is_op(target: Any) -> bool:
    """Whether a call target is an op of eager's table. It is recognised by its attributes, so that a printed graph needs no table."""
    return hasattr(target, "schema") and hasattr(target, "kind") and isinstance(getattr(target, "name", None), str)


def _write_float(_: _Printer, x: float) -> str:
    if math.isnan(x):
        return "float('nan')"
    if math.isinf(x):
        return "float('inf')" if x > 0 else "float('-inf')"
    return repr(x)


def _write_complex(p: _Printer, x: complex) -> str:
    return f"complex({_write_float(p, x.real)}, {_write_float(p, x.imag)})"


def _write_tuple(p: _Printer, x: tuple[Any, ...]) -> str:
    return "(" + ", ".join(map(p.value, x)) + (",)" if len(x) == 1 else ")")


def _write_list(p: _Printer, x: list[Any]) -> str:
    return "[" + ", ".join(map(p.value, x)) + "]"


def _write_dict(p: _Printer, x: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{p.value(k)}: {p.value(v)}" for k, v in x.items()) + "}"


def _write_slice(p: _Printer, x: slice) -> str:
    return f"slice({p.value(x.start)}, {p.value(x.stop)}, {p.value(x.step)})"


def _write_expr(p: _Printer, x: Expr) -> str:
    return to_source(x, PYTHON.with_symbols(lambda s: p.symbols.get(s, s.name)))


def _write_repr(_: _Printer, x: object) -> str:
    return repr(x)


_WRITERS: dict[type, Callable[[_Printer, Any], str]] = {
    float: _write_float,
    complex: _write_complex,
    tuple: _write_tuple,
    list: _write_list,
    dict: _write_dict,
    slice: _write_slice,
    int: _write_repr,
    bool: _write_repr,
    str: _write_repr,
    bytes: _write_repr,
    type(None): _write_repr,
    types.EllipsisType: lambda _p, _x: "...",
}
