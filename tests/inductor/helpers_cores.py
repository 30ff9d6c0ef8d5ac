"""The text of a compiled core's caller, for tests that build a core alone."""

from __future__ import annotations

from inductor.cpp.gemm_problem import CoreCode
from inductor.cpp.units import joined


def text_of(code: CoreCode, epilogue: str = "") -> str:
    """The functions `core::run` and `core::pack` of a core's code, and their declarations."""
    made = joined([code.function("run", epilogue), *([code.pack] if code.pack is not None else [])])
    return "\n".join([*made.outside, made.inside("core").text])
