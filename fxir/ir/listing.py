"""Texts of nodes and specs for logs, errors and tables. They are read by people; `printer` writes source that runs.

Owns `format_spec`, the listing that `str(graph)` returns and the table of `Graph.print_tabular`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fxir.expr.rules import Expr, mul
from fxir.ir.node import Node, Spec, name_hint

_COLUMN_WIDTH: Final = 60  # most characters to which a column of a listing is padded


def format_spec(spec: Spec) -> str:
    """A spec in brief: `f32[2, 3]`, followed by the strides if the layout is not contiguous: `f32[2, 3]s[1, 2]`."""
    if spec is None:
        return "?"
    if isinstance(spec, tuple):
        return "(" + ", ".join(format_spec(s) for s in spec) + ")"
    shape, strides = tuple(spec.shape), tuple(spec.strides)
    text = f"{_short_dtype(spec.dtype)}[{', '.join(map(str, shape))}]"
    if strides != _contiguous_strides(shape):
        text += f"s[{', '.join(map(str, strides))}]"
    device = str(spec.device)
    return text if device == "cpu" else f"{text}@{device}"


def listing(nodes: Iterable[Node]) -> str:
    """One line a node: `name = kind call  # spec`, in aligned columns."""
    rows = [_row(node) for node in nodes]
    # The output's line ends with its call, so that its length does not widen the column.
    widths = [max((len(row[i]) for row in rows if i < 2 or row[3]), default=0) for i in range(3)]
    return "\n".join(_aligned(row, widths) for row in rows)


def table(nodes: Iterable[Node]) -> str:
    """The nodes as torch.fx tabulates them: opcode, name, target, args, kwargs."""
    rows = [(n.op, n.name, _target_text(n), str(n.args), str(n.kwargs)) for n in nodes]
    head = ("opcode", "name", "target", "args", "kwargs")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = (head, tuple("-" * w for w in widths), *rows)
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in lines)


def _contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, for sizes that may be expressions; an empty dim counts as 1."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = mul(step, extent) if isinstance(extent, Expr) or isinstance(step, Expr) else step * max(extent, 1)
    return tuple(reversed(strides))


def _short_dtype(dtype: Any) -> str:
    name = str(getattr(dtype, "name", dtype))
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def _target_text(node: Node) -> str:
    return node.target if isinstance(node.target, str) else str(node.target)


def _row(node: Node) -> tuple[str, str, str, str]:
    """Name, kind, call and spec of a node."""
    target = node.target if isinstance(node.target, str) else name_hint(node.target)
    if node.op == "placeholder" and not node.args:
        call = target if target != node.name else ""
    else:
        arguments = [repr(a) for a in node.args] + [f"{k}={v!r}" for k, v in node.kwargs.items()]
        call = f"{target}({', '.join(arguments)})"
    return node.name, node.op, call, "" if node.info.spec is None else format_spec(node.info.spec)


def _aligned(row: tuple[str, str, str, str], widths: list[int]) -> str:
    # The width of a column is limited, so that one long call does not push every spec off the screen.
    name, op, call = (text.ljust(min(width, _COLUMN_WIDTH)) for text, width in zip(row, widths, strict=False))
    return f"{name} = {op} {call}  # {row[3]}" if row[3] else f"{name} = {op} {row[2]}"
