"""Programs that overwrite inputs, brought to the form in which a result may be stored into the input itself.

A scatter whose target is a plain copy takes the source of the copy as its target. The positions that a program checks are checked
first, if they depend on inputs alone: then nothing is written to an input unless all checks hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.ir.values import at_point

CHECKS: Final = frozenset({"check_index", "wrap_index"})


def prepare_updates(program: ir.Program) -> ir.Program:
    """The same program with direct targets of scatters and, if it overwrites inputs, with early checks."""
    program = _with_direct_targets(program)
    return _with_early_checks(program) if program.checks and program.writes else program


def _with_direct_targets(program: ir.Program) -> ir.Program:
    changed: dict[str, ir.Buffer] = {}
    for b in program.buffers.values():
        if isinstance(b.definition, ir.Scatter):
            source = _copied(program, b.definition.target)
            if source:
                changed[b.name] = replace(b, definition=replace(b.definition, target=source))
    return replace(program, buffers={n: changed.get(n, b) for n, b in program.buffers.items()}) if changed else program


def _copied(program: ir.Program, name: str) -> str:
    """The buffer of which `name` is a copy in the same layout; "" if it is not such a copy."""
    b = program.buffers[name]
    d = b.definition
    if not isinstance(d, ir.Pointwise) or not isinstance(d.value, ir.Load):
        return ""
    v = d.value
    is_whole = v.mask is None and not v.indirect and v.index is ir.own_position(d.ranges)
    return v.buffer if is_whole and program.buffers[v.buffer].layout == b.layout else ""


def _with_early_checks(program: ir.Program) -> ir.Program:
    """Reductions before all other definitions that compute every checked position; none if a position is computed in the graph."""
    early: dict[tuple[ir.Value, tuple[Size, ...]], ir.Source] = {}
    for b in program.buffers.values():
        for value, sizes in _checked(b.definition):
            if any(program.buffers[x.buffer].definition is not None for x in ir.loads_in(value)):
                return program
            early.setdefault((value, sizes), b.source)
    made = {
        name: ir.Buffer(name, ir.row_major((), dtypes.int64), _greatest(value, sizes), source)
        for name, ((value, sizes), source) in zip((f"check{k}" for k in range(len(early))), early.items(), strict=True)
    }
    given = {n: b for n, b in program.buffers.items() if b.definition is None}
    return replace(program, buffers={**given, **made, **program.buffers}, early_checks=tuple(made))


def _checked(d: ir.Definition | None) -> Iterator[tuple[ir.Value, tuple[Size, ...]]]:
    """The checked positions of a definition over reduced axes, and the sizes of these axes."""
    if not isinstance(d, ir.Pointwise | ir.Reduction | ir.Scan | ir.Scatter | ir.Contraction):
        return
    sizes = {ir.axis(k, n): n for k, n in enumerate(d.ranges) if n != 1}
    inner = (d.length,) if isinstance(d, ir.Scan) else d.reduced if isinstance(d, ir.Reduction | ir.Contraction) else ()
    sizes |= {ir.reduced_axis(k, n): n for k, n in enumerate(inner) if n != 1}
    if 0 in (*d.ranges, *inner):
        return
    for v in d.values:
        if isinstance(v, ir.Op) and v.name in CHECKS:
            free = ir.free_axes(v)
            axes = [axis for axis in sizes if axis in free]
            moved: dict[E.Expr, E.IntLike] = {axis: ir.reduced_axis(k, sizes[axis]) for k, axis in enumerate(axes)}
            yield at_point(v, moved), tuple(sizes[axis] for axis in axes)


def _greatest(position: ir.Value, sizes: tuple[Size, ...]) -> ir.Definition:
    return ir.Reduction((), sizes, "max", position) if sizes else ir.Pointwise((), position)
