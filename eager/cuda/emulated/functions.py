"""CuPy's functions: signatures as text, each with numpy's function behind it.

`VIEWS` share memory, `FUNCTIONS` are queued on the current stream, and `WAITING` first wait for it, since the sizes of their results
depend on values. A function that CuPy lacks is not here, and a call binds to CuPy's parameter names alone.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from eager.cuda.emulated import streams
from eager.cuda.emulated.arrays import (
    as_host,
    checked_dtype,
    launch,
    ndarray,
    view,
)
from eager.cuda.emulated.ufuncs import BFLOAT16

_REDUCTIONS = """
sum(a, axis=None, dtype=None, out=None, keepdims=False)
prod(a, axis=None, dtype=None, out=None, keepdims=False)
mean(a, axis=None, dtype=None, out=None, keepdims=False)
max(a, axis=None, out=None, keepdims=False)
min(a, axis=None, out=None, keepdims=False)
amax(a, axis=None, out=None, keepdims=False)
amin(a, axis=None, out=None, keepdims=False)
any(a, axis=None, out=None, keepdims=False)
all(a, axis=None, out=None, keepdims=False)
argmax(a, axis=None, dtype=None, out=None, keepdims=False)
argmin(a, axis=None, dtype=None, out=None, keepdims=False)
var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
nansum(a, axis=None, dtype=None, out=None, keepdims=False)
nanmean(a, axis=None, dtype=None, out=None, keepdims=False)
nanmax(a, axis=None, out=None, keepdims=False)
nanmin(a, axis=None, out=None, keepdims=False)
count_nonzero(a, axis=None)
median(a, axis=None, out=None, overwrite_input=False, keepdims=False)
trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None)
cumsum(a, axis=None, dtype=None, out=None)
cumprod(a, axis=None, dtype=None, out=None)
"""

_FUNCTIONS = """
take_along_axis(a, indices, axis)
concatenate(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
stack(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
vstack(tup, *, dtype=None, casting='same_kind')
hstack(tup, *, dtype=None, casting='same_kind')
lexsort(keys)
partition(a, kth, axis=-1)
argpartition(a, kth, axis=-1)
searchsorted(a, v, side='left', sorter=None)
roll(a, shift, axis=None)
tile(A, reps)
unravel_index(indices, dims, order='C')
pad(array, pad_width, mode='constant', **kwargs)
histogram(x, bins=10, range=None, density=False, weights=None)
diff(a, n=1, axis=-1, prepend=None, append=None)
triu(m, k=0)
tril(m, k=0)
diag(v, k=0)
isin(element, test_elements, assume_unique=False, invert=False)
nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None)
clip(a, a_min, a_max, out=None)
dot(a, b, out=None)
tensordot(a, b, axes=2)
outer(a, b, out=None)
inner(a, b)
vdot(a, b)
kron(a, b)
einsum(*operands, **kwargs)
isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)
packbits(a, axis=None, bitorder='big')
unpackbits(a, axis=None, bitorder='big')
"""

_SORTS = """
argsort(a, axis=-1, kind=None)
sort(a, axis=-1, kind=None)
"""

_CREATION = """
zeros(shape, dtype=float, order='C')
ones(shape, dtype=float, order='C')
full(shape, fill_value, dtype=None, order='C')
eye(N, M=None, k=0, dtype=float, order='C')
tri(N, M=None, k=0, dtype=float)
arange(start, stop=None, step=1, dtype=None)
linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0)
indices(dimensions, dtype=int)
zeros_like(a, dtype=None, order='K', subok=None, shape=None)
ones_like(a, dtype=None, order='K', subok=None, shape=None)
full_like(a, fill_value, dtype=None, order='K', subok=None, shape=None)
copy(a, order='K')
"""

_WAITING = """
bincount(x, weights=None, minlength=None)
nonzero(a)
flatnonzero(a)
argwhere(a)
unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True)
extract(condition, a)
array_equal(a1, a2, equal_nan=False)
"""

_VIEWS = """
swapaxes(a, axis1, axis2)
moveaxis(a, source, destination)
rollaxis(a, axis, start=0)
transpose(a, axes=None)
permute_dims(a, axes=None)
broadcast_to(array, shape)
squeeze(a, axis=None)
expand_dims(a, axis)
flip(a, axis=None)
rot90(a, k=1, axes=(0, 1))
diagonal(a, offset=0, axis1=0, axis2=1)
"""

# Parameters that numpy calls otherwise.
_RENAMED: Final = {"concatenate": {"tup": "arrays"}, "stack": {"tup": "arrays"}, "unravel_index": {"dims": "shape"},
                   "histogram": {"x": "a"}}  # fmt: skip
# Without kernels for bfloat16.
_NO_BFLOAT16: Final = frozenset("sort argsort partition argpartition lexsort unique searchsorted bincount histogram cumsum cumprod dot "
                                "tensordot einsum inner vdot median".split())  # fmt: skip


_NEED_ARRAYS: Final = frozenset(_REDUCTIONS.strip().splitlines())


def signature_of(text: str) -> tuple[str, inspect.Signature]:
    """The name and the signature of one line."""
    name, rest = text.split("(", 1)
    scope: dict[str, Any] = {}
    exec(f"def f({rest}: pass", {"float": float, "int": int}, scope)  # noqa: S102 - text of this module
    return name, inspect.signature(scope["f"])


def _bound(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The given arguments, positional and by name."""
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    kept, named = list(given.args), dict(given.kwargs)
    if given.arguments.get("dtype") is not None:
        checked_dtype(given.arguments["dtype"])
    return kept, named


def _function(text: str, fn: Callable[..., Any], settled: bool = False) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(text)

    def call(*args: Any, **kwargs: Any) -> Any:
        kept, named = _bound(name, signature, args, kwargs)
        out = named.pop("out", None)
        at = list(signature.parameters).index("out") if "out" in signature.parameters else -1
        if 0 <= at < len(kept):
            out, kept[at] = kept[at], None
        _check_arrays(name, kept)
        if text in _NEED_ARRAYS and not isinstance(kept[0], ndarray):
            raise TypeError(f"'a' must be a cupy.ndarray object, but got {type(kept[0])}")
        if name in ("min", "amin") and out is not None:
            raise TypeError("the minimum of CuPy 14.2 takes no `out`")
        return launch(fn, *kept, out=out, settled=settled, **{_RENAMED.get(name, {}).get(k, k): v for k, v in named.items()})

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return name, call


def _check_arrays(name: str, args: list[Any]) -> None:
    """Raise as CuPy does for host arrays, and for bfloat16 where no kernel takes it."""
    first = args[0] if args else None
    for a in first if isinstance(first, (list, tuple)) else [first]:
        if isinstance(a, np.ndarray):
            raise TypeError(f"Unsupported type {type(a)}")
    if name in _NO_BFLOAT16 and isinstance(first, ndarray) and first.dtype == BFLOAT16:
        raise TypeError(f"{name}: bfloat16 is not supported")


def _waiting(text: str, fn: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    name, run = _function(text, fn, True)

    def call(*args: Any, **kwargs: Any) -> Any:
        streams.get_current_stream().synchronize()
        return run(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = run.__signature__  # type: ignore[attr-defined]
    return name, call


def _view(text: str, fn: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(text)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        a = args[0] if args else next(iter(bound.arguments.values()))
        if not isinstance(a, ndarray):
            raise TypeError(f"{name}: Unsupported type {type(a)}")
        return view(fn(*as_host(bound.args), **as_host_values(bound.kwargs)), a)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return name, call


def as_host_values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: as_host(v) for k, v in kwargs.items()}


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _numpy(line: str) -> Callable[..., Any]:
    return getattr(np, line.split("(", 1)[0])  # type: ignore[no-any-return]


def _stable(line: str) -> Callable[..., Any]:
    """`sort` and `argsort`, which are stable in CuPy."""
    fn = _numpy(line)
    return lambda a, axis=-1, kind=None: fn(a, axis=axis, kind="stable")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **dict(_function(line, _numpy(line)) for line in _lines(_REDUCTIONS + _FUNCTIONS + _CREATION) if line),
    **dict(_function(line, _stable(line)) for line in _lines(_SORTS)),
    **dict(_waiting(line, _numpy(line)) for line in _lines(_WAITING)),
    **dict(_view(line, _numpy(line)) for line in _lines(_VIEWS)),
}
