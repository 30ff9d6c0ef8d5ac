"""A table of calls, function by function, that run under torch (make_reference.py) and under eager (test_calls.py).

call_rows.py holds the rows of pointwise functions and reductions, call_rows_more.py the rows of shapes, indices and other
functions, call_rows_corners.py the corner cases. A call is a Python expression over the names that `names` defines:
`t('f4', 3, 4)` is a tensor of float32, `special('f4')` a tensor of nan, infinities, zeros and extremes, `T` the library.
`outcome` runs a call and describes its result or its error as plain data.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.data.call_rows import DTYPES, ROWS, Row
from tests.data.call_rows_corners import ROWS_CORNERS
from tests.data.call_rows_more import ROWS_MORE

_FLOATS = ("f2", "bf", "f4", "f8")
_MOST_VALUES = 4096  # a result with more values is sampled


def _values(code: str, shape: tuple[int, ...], seed: float) -> Any:
    n = int(np.prod(shape))
    if code == "b1":
        flat: Any = np.sin(np.arange(1, n + 1) * 1.7 * seed) > 0
    elif code in _FLOATS:
        flat = 2 * np.sin(np.arange(1, n + 1) * 1.7 * seed + 0.3)
    elif code in ("c8", "c16"):
        flat = 2 * np.sin(np.arange(1, n + 1) * 1.7 * seed + 0.3) + 1j * np.cos(np.arange(n) * seed)
    else:
        flat = (np.arange(n) * int(7 * seed) + 3) % 11 - (0 if code == "u1" else 4)
    return np.asarray(flat).reshape(shape)


def names(T: Any, device: str = "cpu") -> dict[str, Any]:  # noqa: N803 - stands for a module
    """Names for the expressions of calls, over the library `T`. `made` lists the tensors in the order of their creation."""
    made: list[Any] = []

    def of(a: Any, code: str) -> Any:
        wide: Any = np.float64 if code in _FLOATS else np.int64
        kind = np.complex128 if code[0] == "c" else np.bool_ if code == "b1" else wide
        made.append(T.from_numpy(np.array(a, kind)).to(getattr(T, DTYPES[code])).to(device))
        return made[-1]

    def t(code: str, *shape: int, seed: float = 1.0) -> Any:
        return of(_values(code, shape, seed), code)

    def special(code: str) -> Any:
        if code[0] == "c":
            return of([complex(a, b) for a in (np.nan, np.inf, 0.0, -1.5) for b in (0.0, -np.inf, 2.0)], code)
        if code in _FLOATS:
            return of([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 100.0, -1e-3, 1e4], code)
        if code == "b1":
            return of([True, False], code)
        bits = 8 * int(code[1])
        low, high = (0, 255) if code == "u1" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return of([low, low + 1, 0, 1, 2, 3, 5, high - 1, high], code)

    def at(high: int, *shape: int) -> Any:
        """A tensor of indices in [0, high)."""
        made.append(T.from_numpy(((np.arange(int(np.prod(shape))) * 5 + 2) % high).reshape(shape)).to(device))
        return made[-1]

    def spd(n: int, code: str = "f4") -> Any:
        a = _values("f8", (n, n), 1.0)
        return of(a @ a.T + np.eye(n), code)

    def text(f: Callable[[], Any]) -> str:
        return repr(f())

    def shown(f: Callable[[], Any], **options: Any) -> str:
        """The repr under print options. The default options are restored afterwards."""
        T.set_printoptions(**options)
        try:
            return repr(f())
        finally:
            T.set_printoptions(profile="default")

    nn = getattr(T, "nn", T)
    return {"T": T, "F": getattr(nn, "functional", None), "t": t, "special": special, "at": at, "spd": spd, "text": text, "shown": shown,
            "made": made, "inf": float("inf"), "nan": float("nan")}  # fmt: skip




def expand(row: Row) -> Iterator[str]:
    """The calls of one row: each template once per function, and once per dtype if it contains `{d}`."""
    templates = [part.strip() for line in row.templates.strip().splitlines() for part in line.split(" | ")]
    for f in row.functions.split() or [""]:
        for template in templates:
            codes = row.dtypes.split() if "{d}" in template else [""]
            for code in codes:
                yield template.replace("{f}", f).replace("{d}", code)


_KILLS_TORCH = ("T.lcm(special", "T.gcd(special")  # torch divides the smallest integer by -1


def calls() -> dict[str, list[str]]:
    """The calls of each family, without repetition."""
    return {family: list(dict.fromkeys(text for row in rows for text in expand(row) if not text.startswith(_KILLS_TORCH)))
            for family, rows in (ROWS | ROWS_MORE | ROWS_CORNERS).items()}  # fmt: skip


# ---- outcomes ----


def outcome(T: Any, text: str) -> Any:  # noqa: N803
    """The result of a call: a dict of a tensor's properties, a list of such dicts, the repr of other objects, or the error."""
    scope = names(T)
    try:
        return _describe(T, eval(text, scope), scope["made"])  # noqa: S307 - our own table
    except Exception as error:  # the class and the text are the outcome
        mro = [c.__name__.lstrip("_") for c in type(error).__mro__]
        return {"error": mro[: mro.index("Exception") + 1], "text": str(error).split("\n")[0][:200]}


def _describe(T: Any, result: Any, made: list[Any]) -> Any:  # noqa: N803
    if isinstance(result, T.Tensor):
        return _tensor(T, result, made)
    if isinstance(result, (tuple, list)) and any(isinstance(r, T.Tensor) for r in result):
        return [_describe(T, r, made) for r in result]
    return {"repr": repr(result)}


def _tensor(T: Any, x: Any, made: list[Any]) -> dict[str, Any]:  # noqa: N803
    """Dtype, shape, strides, offset and values, and the index in `made` of a tensor with shared memory (-1: no such tensor)."""
    said: dict[str, Any] = {"d": str(x.dtype)[6:], "n": list(x.shape), "s": list(x.stride()), "o": x.storage_offset()}
    if x.device.type != "cpu":
        return {**said, "device": str(x.device)}
    said["a"] = next((i for i, m in enumerate(made) if x.numel() and _address(m) == _address(x)), -1)
    values = x.detach()
    if values.numel() > _MOST_VALUES:
        values = values.reshape(-1)[:: values.numel() // _MOST_VALUES + 1]
    if values.dtype.is_complex:
        values = T.view_as_real(values.resolve_conj())
    if values.dtype.is_floating_point:
        digits = 12 if values.dtype is T.float64 else 7
        said["v"] = [float(f"{v:.{digits}g}") for v in values.double().reshape(-1).tolist()]
    else:
        said["v"] = [int(v) for v in values.reshape(-1).tolist()]
    return said


def _address(x: Any) -> int:
    return int(x.untyped_storage().data_ptr())
