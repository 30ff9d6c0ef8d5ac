"""Saving and loading: torch's files (`save`, `load`) and safetensors.

This library and torch read each other's files. By default loading runs no code from the file: it may only use the
functions that rebuild tensors, plain containers, and objects allowed by `add_safe_globals`.
"""
from eager.serialization.names import location_tag, normalize_storage_type
from eager.serialization.read import get_unsafe_globals_in_checkpoint, load
from eager.serialization.reader import PyTorchFileReader
from eager.serialization.safetensors import load_safetensors, save_safetensors
from eager.serialization.settings import (
    MAP_LOCATION,
    MAP_PRIVATE,
    MAP_SHARED,
    LoadEndianness,
    add_safe_globals,
    clear_safe_globals,
    get_default_load_endianness,
    get_default_mmap_options,
    get_safe_globals,
    safe_globals,
    set_default_load_endianness,
    set_default_mmap_options,
)
from eager.serialization.write import DEFAULT_PROTOCOL, save

__all__ = [
    "DEFAULT_PROTOCOL", "MAP_LOCATION", "MAP_PRIVATE", "MAP_SHARED", "LoadEndianness", "PyTorchFileReader", "add_safe_globals",
    "clear_safe_globals", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "load_safetensors", "location_tag", "normalize_storage_type", "safe_globals",
    "save", "save_safetensors", "set_default_load_endianness", "set_default_mmap_options",
]  # fmt: skip
