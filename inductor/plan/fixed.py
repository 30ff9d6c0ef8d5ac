"""Values that depend on weights alone: they are computed once, and again only after a weight has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from inductor.ir import definitions as ir
from inductor.ir.sizes import is_symbolic

__all__ = ["fixed_buffers"]


def fixed_buffers(program: ir.Program, weights: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The buffers that are computed from the inputs and constants `weights` alone, and the weights that each depends on.

    Results of the graph are not among them, since a caller may keep them, and neither are values that may fail a check, or values that
    an eager kernel reads: they must be tensors.
    """
    results = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    results |= {n for b in program.buffers.values() if isinstance(b.definition, ir.Extern) for n in b.reads}
    sources = {n: frozenset((n,)) for n in weights}
    found: dict[str, frozenset[str]] = {}
    for b in program.buffers.values():
        d = b.definition
        if not isinstance(d, ir.Pointwise | ir.Reduction) or not d.reads or b.name in results:
            continue
        if sources.keys() >= set(d.reads) and _is_plain(b, d):
            found[b.name] = sources[b.name] = frozenset().union(*(sources[n] for n in d.reads))
    return found


def _is_plain(b: ir.Buffer, d: ir.Pointwise | ir.Reduction) -> bool:
    checked = any(isinstance(v, ir.Op) and v.name == "check_index" for v in d.values)
    return not checked and not is_symbolic(*b.layout.shape) and not any(v.indirect for v in d.loads)
