"""Ops to loop IR. `lower(graph)` gives the program of a functional graph."""

from inductor.lowering.graph import lower

__all__ = ["lower"]
