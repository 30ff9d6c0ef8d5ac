"""Decisions about code before it runs: which `callees` are followed, called or recorded as nodes, the `signatures` of builtins,
and which sizes are dynamic (`dynamic_sizes`).
"""
