"""`assert_close`: equal structure, equal metadata, values within tolerances; failures report where and by how much."""
from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.functions import creation, pointwise
from eager.functions.reductions import max as maximum_of
from eager.functions.reductions import sum as sum_of
from eager.optable.table import OPS

# dtype -> (rtol, atol), a few units in the last place. Values of unlisted dtypes must be equal.
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5), dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
_OLD_TOLERANCES = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}
_Message = str | Callable[[str], str] | None
_NUMBERS = (int, float, complex, np.number)


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of the call."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *types: dtype) -> tuple[float, float]:
        """(rtol, atol): the given ones, or the largest default of the types."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [_TOLERANCES.get(d, (0.0, 0.0)) for d in types]
        return max(r for r, _ in found), max(a for _, a in found)


class _Mismatch(AssertionError):
    """A comparison failed at `path`."""

    def __init__(self, text: str, path: tuple[Any, ...]) -> None:
        path_text = "".join(f"[{key!r}]" for key in path)
        super().__init__(f"{text}\n\nThe failure occurred for item {path_text}" if path else text)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, msg: _Message = None) -> None:  # fmt: skip
    """Assert |actual - expected| <= atol + rtol * |expected| everywhere, in tensors, arrays, numbers, and containers of them.

    rtol, atol: both or neither; by default by dtype (float32: 1.3e-6 and 1e-5, integers: equal). equal_nan: NaNs are
    equal to each other. check_*: metadata that must be equal too. msg: the error's text, or a function that maps the
    usual text to it. Sequences are compared item by item, mappings key by key.
    Raises: AssertionError; ValueError for one tolerance without the other; TypeError for values of other types.
    """
    if not isinstance(equal_nan, bool):
        raise RuntimeError(f"assert_close: equal_nan must be bool, not {type(equal_nan).__name__}")
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    options = _Options(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    try:
        _compare(actual, expected, options, ())
    except _Mismatch as error:
        text = msg(str(error)) if callable(msg) else msg or str(error)
    else:
        return
    raise AssertionError(text)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
                    msg: str = "") -> None:  # fmt: skip
    """The older `assert_close`: accepts anything that `tensor` does, ignores dtypes and devices, NaNs are equal.

    Deprecated.
    """
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
                  "`torch.testing.assert_close()` instead.", FutureWarning, stacklevel=2)  # fmt: skip
    actual = actual if isinstance(actual, Tensor) else creation.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else creation.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False, check_dtype=False, msg=msg or None)


# ---- structure ----


def _compare(actual: Any, expected: Any, options: _Options, path: tuple[Any, ...]) -> None:
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, e, options, (*path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_keys(actual, expected, path)
        for key in sorted(actual, key=str):
            _compare(actual[key], expected[key], options, (*path, key))
    else:
        _compare_leaves(actual, expected, options, path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: tuple[Any, ...]) -> None:
    missing, more = sorted(set(expected) - set(actual), key=str), sorted(set(actual) - set(expected), key=str)
    if missing or more:
        raise _Mismatch("The keys of the mappings do not match:\n"
                        f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}", path)  # fmt: skip


def _compare_leaves(actual: Any, expected: Any, options: _Options, path: tuple[Any, ...]) -> None:
    booleans, numbers = (bool, np.bool_), _NUMBERS
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}", path)
    elif isinstance(actual, booleans) and isinstance(expected, booleans):
        if bool(actual) is not bool(expected):
            raise _Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", path)
    elif isinstance(actual, numbers) and isinstance(expected, numbers) and not isinstance(actual, bool) and not isinstance(expected, bool):
        _compare_numbers(_number(actual), _number(expected), options, path)
    elif isinstance(actual, Tensor) and isinstance(expected, Tensor):
        if not options.allow_subclasses and type(actual) is not type(expected):
            _refuse(actual, expected)
        _compare_tensors(actual, expected, options, path)
    elif isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
        _compare_tensors(creation.from_numpy(actual), creation.from_numpy(expected), options, path)
    else:
        _refuse(actual, expected)


def _refuse(actual: Any, expected: Any) -> NoReturn:
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


# ---- numbers ----


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.number) else value


def _dtype_of_number(value: Any) -> dtype:
    return {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}[type(value)]


def _compare_numbers(actual: Any, expected: Any, options: _Options, path: tuple[Any, ...]) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
    rtol, atol = options.tolerances(_dtype_of_number(actual), _dtype_of_number(expected))
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    absolute = abs(actual - expected)
    if cmath.isfinite(absolute) and absolute <= atol + rtol * abs(expected):
        return
    relative = absolute / abs(expected) if expected else float("inf")
    raise _Mismatch(_scalar_text(actual, expected, absolute, relative, rtol, atol), path)


def _allowed(rtol: float, atol: float, tolerance: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _headline(what: str, rtol: float, atol: float) -> str:
    return f"{what} are not {'equal' if rtol == 0 and atol == 0 else 'close'}!\n\n"


def _scalar_text(actual: Any, expected: Any, absolute: Any, relative: Any, rtol: float, atol: float) -> str:
    return (f"{_headline('Scalars', rtol, atol)}Expected {expected} but got {actual}.\n"
            f"Absolute difference: {absolute}{_allowed(rtol, atol, atol)}\n"
            f"Relative difference: {relative}{_allowed(rtol, atol, rtol)}")  # fmt: skip


# ---- tensors ----


def _compare_tensors(actual: Tensor, expected: Tensor, options: _Options, path: tuple[Any, ...]) -> None:
    _compare_metadata(actual, expected, options, path)
    if actual.is_meta or expected.is_meta:
        return  # meta tensors have no values
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = _alike(actual.detach(), expected.detach())
    matches = pointwise.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    raise _Mismatch(_tensor_text(actual, expected, matches, rtol, atol), path)


def _compare_metadata(actual: Tensor, expected: Tensor, options: _Options, path: tuple[Any, ...]) -> None:
    facts = [("shape", actual.shape, expected.shape)]
    if options.check_layout:
        facts.append(("layout", actual.layout, expected.layout))
    if options.check_stride:
        facts.append(("stride()", actual.stride(), expected.stride()))
    if options.check_device:
        facts.append(("device", actual.device, expected.device))
    if options.check_dtype:
        facts.append(("dtype", actual.dtype, expected.dtype))
    for name, a, e in facts:
        if a != e:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {a} != {e}.", path)


def _alike(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Both on one device and in one dtype; integers, bools and 8-bit floats in a dtype wide enough for differences."""
    if actual.device is not expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    d = dtypes.promote_types(actual.dtype, expected.dtype) if actual.dtype is not expected.dtype else actual.dtype
    d = dtypes.int64 if d.is_integral else dtypes.float32 if d.is_float8 else d
    return actual.to(d), expected.to(d)


def _tensor_text(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float) -> str:
    absolute = OPS["abs"](actual - expected)
    relative = absolute / OPS["abs"](expected)
    if actual.ndim == 0:
        return _scalar_text(actual.item(), expected.item(), absolute.item(), relative.item(), rtol, atol)
    wrong, n = matches.numel() - int(sum_of(matches).item()), matches.numel()
    lines = [f"{_headline('Tensor-likes', rtol, atol)}Mismatched elements: {wrong} / {n} ({wrong / n:.1%})"]
    for kind, difference, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        greatest, at = maximum_of(OPS["masked_fill"](difference, matches, creation.scalar_tensor(0, dtype=difference.dtype)).flatten(), 0)
        index = tuple(int(i) for i in np.unravel_index(int(at.item()), tuple(matches.shape)))
        lines.append(f"Greatest {kind} difference: {greatest.item()} at index {index}{_allowed(rtol, atol, tolerance)}")
    return "\n".join(lines)
