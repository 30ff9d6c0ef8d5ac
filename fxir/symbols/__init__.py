"""Symbols of one compilation: the sizes, integers and floats that a graph is compiled for.

`shapes.ShapeEnv` owns the symbols, their hints and the facts that guards check (start there), numbers that depend on data included.
`floats` does the same for float symbols, and `bounds_from_relations` narrows bounds by known relations.
"""
