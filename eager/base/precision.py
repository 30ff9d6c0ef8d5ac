"""Switches for precision and determinism of the whole process.

CPU kernels compute with `highest` float32 precision, and give the same results on every run. On CUDA compiled products may take less
exact operands where "high" or "medium" permits it, and additions at positions that data gives run in any order unless
`use_deterministic_algorithms` is on: the order decides their rounding.
"""
from __future__ import annotations

import warnings

_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"
_deterministic = False
_warn_only = False


def get_float32_matmul_precision() -> str:
    """ "highest" (float32 throughout), "high" (TF32 or bfloat16x3 allowed inside) or "medium" (bfloat16 allowed inside)."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Allow matrix products of float32 to be less exact inside. An unknown name warns and changes nothing, as in torch."""
    global _precision
    if not isinstance(precision, str):
        raise TypeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _PRECISIONS:
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has "
                      "no effect.", stacklevel=2)  # fmt: skip
        return
    _precision = _PRECISIONS[_PRECISIONS.index(precision)]  # guards compare by identity


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether results must be the same on every run. CPU kernels are deterministic in any case.

    On CUDA eager and compiled code then add floats at repeated positions in a fixed order, in one round for each repetition.
    """
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return _warn_only


def get_deterministic_debug_mode() -> int:
    """0: off, 1: warn, 2: error."""
    return (1 if _warn_only else 2) if _deterministic else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by number or by "default", "warn", "error". Raises: RuntimeError for another value."""
    names = {"default": 0, "warn": 1, "error": 2}
    value = names.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if value not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, 2 or {', '.join(names)}, but got {debug_mode}")
    use_deterministic_algorithms(value > 0, warn_only=value == 1)
