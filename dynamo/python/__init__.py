"""Python's semantics over captured values; each module is a part of a capture.

`calls` calls callees by their kind (start there), `classes` and `attributes` find attributes, `operators` applies
operators, `iteration` runs iterators, `exceptions` raises, `formatting` makes text, and `finalizers` decides whether
dropping a value would run code.
"""
