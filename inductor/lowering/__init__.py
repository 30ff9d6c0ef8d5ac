"""Ops to loop IR. `lower(graph)` gives the program of a functional graph."""

from inductor.lowering.graph import canonical_symbols, lower

__all__ = ["canonical_symbols", "lower"]
