"""Storages: `untyped` gives the native class its methods, `tensor_types` holds typed storages and the old tensor types.

The public module is `eager.storage`.
"""
