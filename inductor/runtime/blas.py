"""cuBLASLt at run time: where it is, and the products of plans with the algorithms that were measured for them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from eager.base import dtypes, logs
from eager.cuda import backend as cuda
from inductor import _native
from inductor.artifact.format import MatrixProduct

__all__ = ["chosen", "suggestions", "version"]

_LOG: Final = logs.component("inductor")


@lru_cache(maxsize=1)
def version() -> int:
    """The version of the library, 120901 for 12.9.1. 0 if it is not found or too old, which is logged once."""
    errors = []
    for path in _paths():
        try:
            return _native.open_blas(path)
        except OSError as error:
            errors.append(str(error))
    _LOG.log(f"products of matrices are not compared with cuBLASLt: {'; '.join(dict.fromkeys(errors))}")
    return 0


def _paths() -> Sequence[str]:
    """The library of CUDA's version that CuPy uses, by its name if it is loaded already, then where CuPy's finder finds it."""
    found = []
    with suppress(RuntimeError):  # CUDA is not available
        major = int(cuda.backend().xp.cuda.runtime.runtimeGetVersion()) // 1000
        found.append(f"libcublasLt.so.{major}")
    with suppress(ImportError, RuntimeError):  # the finder is not installed, or finds nothing
        found.append(str(importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cublasLt").abs_path))
    return found


def _described(p: MatrixProduct, index: int) -> _native.MatrixProduct:
    """The product on a device, without an algorithm. Raises: RuntimeError if the library or the device is missing."""
    dtype, stored = dtypes.by_name(p.dtype), dtypes.by_name(p.stored)
    bias = 0 if p.bias is None else p.bias.alignment
    a, b = ((m.is_transposed, m.pitch, m.step) for m in (p.a, p.b))
    return _native.MatrixProduct(index, dtype.code, stored.code, p.is_tf32, p.sizes, a, b, (p.result.pitch, p.result.step), bias)


def suggestions(p: MatrixProduct, index: int, wanted: int, most_bytes: int) -> list[tuple[bytes, int]]:
    """(algorithm, bytes of workspace) of each algorithm that the library suggests, the likely ones first. Raises: RuntimeError.

    most_bytes: of workspace.
    """
    return _described(p, index).suggestions(wanted, most_bytes, (p.a.alignment, p.b.alignment, p.result.alignment))


def chosen(p: MatrixProduct, index: int) -> _native.MatrixProduct:
    """The product of a plan, ready to run. Raises: LookupError if this library does not have the plan's algorithm."""
    if not version():
        raise LookupError("inductor: the plan has a product of cuBLASLt, which is not found")
    try:
        made = _described(p, index)
        nbytes = made.choose(bytes.fromhex(p.algorithm))
    except (RuntimeError, ValueError, TypeError) as error:
        raise LookupError(f"inductor: {error}") from None
    if nbytes > p.workspace_bytes:
        raise LookupError(f"inductor: an algorithm of cuBLASLt needs {nbytes} bytes of workspace; its plan has {p.workspace_bytes}")
    return made
