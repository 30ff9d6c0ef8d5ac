"""Nested containers as leaves and a structure: `registry` of container types, `tree` to take them apart, `text` of a structure.

The public module is `eager.utils._pytree`.
"""
