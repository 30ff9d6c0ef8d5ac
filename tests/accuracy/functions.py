"""Errors of elementary and special functions in units in the last place, by dtype.

The exact values are stored in tests/data/functions_reference.xz. The error of a result is |result - exact| divided by the
distance between adjacent numbers of the dtype at the exact value. Rows leave out exact values beyond the dtype's range;
`test_functions.py` compares the zeros, infinities and nan of those results with torch's.
"""
from __future__ import annotations

import functools
import lzma
import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.accuracy.function_table import FUNCTIONS, Function
from tests.accuracy.points import fits

TITLE: Final = "Functions"
HEADERS: Final = ("function", "dtype", "statistic")
UNIT: Final = "ulp"
FLOOR: Final = 1.5  # torch's vector functions promise 1.0
DTYPES: Final = ("float64", "float32", "float16", "bfloat16")
PATH: Final = Path(__file__).parent.parent / "data" / "functions_reference.xz"
_SMALLEST: Final = {"float64": -1074, "float32": -149, "float16": -24, "bfloat16": -133}
_BITS: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_LARGEST: Final = {"float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38, "float16": 65504.0, "bfloat16": 3.3895e38}


def measure(torch: Any, mode: str) -> dict[str, float]:
    """The largest and the mean error of each function in each dtype."""
    found = {}
    for name, f in FUNCTIONS.items():
        if name not in reference():
            continue
        for dtype in DTYPES:
            keep = representable(f, dtype)
            got = values(torch, f, dtype, mode, keep)
            if got is None:
                continue
            errors = ulp_errors(got, reference()[name][keep], dtype, f, keep)
            found[f"{name} | {dtype} | max"], found[f"{name} | {dtype} | mean"] = float(errors.max()), float(errors.mean())
    return found


def values(torch: Any, f: Function, dtype: str, mode: str, keep: np.ndarray) -> np.ndarray | None:
    """Values of the function at the points that `keep` selects, as float64. None if the function lacks the dtype."""
    inputs = [torch.tensor(x[keep].tolist(), dtype=torch.float64).to(getattr(torch, dtype)) for x in f.inputs]
    run = functools.partial(f.call, torch)
    if mode == "compiled":
        def run(*args: Any) -> Any:
            return f.call(torch, *args)

        run = torch.compile(run)
    try:
        return run(*inputs).to(torch.float64).numpy()
    except (NotImplementedError, RuntimeError) as e:
        if "not implemented" in str(e) or "not supported" in str(e) or "unsupported" in str(e).lower():
            return None
        raise


def representable(f: Function, dtype: str) -> np.ndarray:
    """Mask of the points that the dtype represents exactly."""
    return functools.reduce(np.logical_and, (fits(x, dtype) for x in f.inputs))


def ulp_errors(got: np.ndarray, exact: np.ndarray, dtype: str, f: Function, keep: np.ndarray) -> np.ndarray:
    """Errors in units in the last place of the results whose exact values are finite and within the dtype's range.

    A result that is nan or infinite at such a point has an infinite error. Where |x| > 1/4 and the exact value is smaller
    than `f.amplitude`, the unit in the last place is taken at `f.amplitude`.
    """
    with np.errstate(all="ignore"):
        held = np.isfinite(exact) & (np.abs(exact) < _LARGEST[dtype])
        got, exact, x = got[held], exact[held], f.inputs[0][keep][held]
        size = np.where(np.abs(x) > 0.25, np.maximum(np.abs(exact), f.amplitude), np.abs(exact))
        exponent = np.maximum(np.frexp(size)[1] - _BITS[dtype], _SMALLEST[dtype])
        errors = np.abs(np.ldexp(got - exact, -exponent))
    return np.where(np.isfinite(got), errors, math.inf)


def classes(got: np.ndarray | None) -> np.ndarray:
    """Class of each result: 0 positive, 1 negative, 2 zero, 3 negative zero, 4 infinite, 5 negative infinite, 6 nan."""
    if got is None:
        return np.zeros(0, np.uint8)
    kind = np.where(np.isnan(got), 6, np.where(np.isinf(got), 4, np.where(got == 0, 2, 0)))
    return (kind + (np.signbit(got) & (kind != 6))).astype(np.uint8)


@functools.cache
def reference() -> dict[str, np.ndarray]:
    """Exact values by function, and torch's classes by "function:dtype"."""
    data = lzma.decompress(PATH.read_bytes())
    found, start = {}, 0
    lines, _, body = data.partition(b"\n\n")
    for line in lines.decode().splitlines():
        name, kind, count = line.rsplit(" ", 2)
        itemsize = np.dtype(kind).itemsize
        raw = np.frombuffer(body, np.uint8, int(count) * itemsize, start)
        found[name] = np.ascontiguousarray(raw.reshape(itemsize, -1).T).view(kind).reshape(-1)
        start += raw.size
    return found


def store(parts: dict[str, np.ndarray]) -> None:
    """Write the file that `reference` reads: one line an array, then the arrays with bytes of equal significance grouped."""
    lines = "\n".join(f"{name} {a.dtype.str} {a.size}" for name, a in parts.items())
    body = b"".join(np.ascontiguousarray(a.view(np.uint8).reshape(-1, a.itemsize).T).tobytes() for a in parts.values())
    PATH.write_bytes(lzma.compress(lines.encode() + b"\n\n" + body, preset=9 | lzma.PRESET_EXTREME))
