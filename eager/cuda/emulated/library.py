"""`cupy.linalg`, `cupy.fft` and `cupyx.scipy.special` of the emulated device."""
from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from eager import _native
from eager.cuda.emulated import streams
from eager.cuda.emulated.arrays import launch, ndarray
from eager.cuda.emulated.functions import signature_of
from eager.cuda.emulated.ufuncs import Ufunc
from eager.optable import loop_api

_LINALG: Final = """
cholesky(a)
det(a)
slogdet(a)
eig(a)
eigh(a, UPLO='L')
eigvals(a)
eigvalsh(a, UPLO='L')
inv(a)
pinv(a, rcond=1e-15)
qr(a, mode='reduced')
solve(a, b)
svd(a, full_matrices=True, compute_uv=True)
norm(x, ord=None, axis=None, keepdims=False)
matrix_rank(M, tol=None)
matrix_power(M, n)
lstsq(a, b, rcond=None)
"""
_FFT: Final = """
fft(a, n=None, axis=-1, norm=None)
ifft(a, n=None, axis=-1, norm=None)
rfft(a, n=None, axis=-1, norm=None)
irfft(a, n=None, axis=-1, norm=None)
fftn(a, s=None, axes=None, norm=None)
ifftn(a, s=None, axes=None, norm=None)
rfftn(a, s=None, axes=None, norm=None)
irfftn(a, s=None, axes=None, norm=None)
"""
_SPECIAL: Final[dict[str, list[str]]] = {
    "erf": ["e->d", "f->f", "d->d"], "erfc": ["e->d", "f->f", "d->d"], "erfinv": ["f->f", "d->d"],
    "gammaln": ["l->d", "e->d", "f->f", "d->d"], "digamma": ["l->d", "e->d", "f->f", "d->d"],
}  # fmt: skip


_raising = [False]  # the setting of each open `errstate`, innermost last


@contextlib.contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """`cupyx.errstate` for linear algebra. linalg: "raise" or "ignore"."""
    _raising.append(linalg == "raise")
    try:
        yield
    finally:
        _raising.pop()


def _matrices(line: str) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(line)
    fn = getattr(np.linalg, name)

    def run(*args: Any, raises: bool, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except np.linalg.LinAlgError:  # the device's libraries report failure in a status that CuPy ignores by default
            if raises:
                raise
            return _failed(fn, args, kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for a in (v for k, v in bound.arguments.items() if k in ("a", "b", "x", "M")):
            if not isinstance(a, ndarray):
                raise TypeError(f"Unsupported type {type(a)}")
            if a.dtype.char not in "fdFD":
                raise TypeError(f"array type {a.dtype} is unsupported in linalg")
        raises = _raising[-1]
        if raises:
            streams.get_current_stream().synchronize()  # the host reads the status
        return launch(run, *bound.args, **bound.kwargs, raises=raises)

    call.__name__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return name, call


def _failed(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each matrix separately; nan for a matrix that has no result."""
    a = args[0]
    if a.ndim == 2:
        like = fn(np.eye(*a.shape, dtype=a.dtype), *args[1:], **kwargs)
        return type(like)(*[np.full_like(r, np.nan) for r in like]) if isinstance(like, tuple) else np.full_like(like, np.nan)
    rest = [np.broadcast_to(b, (*a.shape[:-2], *b.shape[-2:])) if isinstance(b, np.ndarray) else b for b in args[1:]]
    rows = [_one(fn, (m, *[b[i] if isinstance(b, np.ndarray) else b for b in rest]), kwargs) for i, m in enumerate(a)]
    if isinstance(rows[0], tuple):
        return tuple(np.stack(parts) for parts in zip(*rows, strict=True))
    return np.stack(rows)


def _one(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return fn(*args, **kwargs)
    except np.linalg.LinAlgError:
        return _failed(fn, args, kwargs)


def _transform(line: str) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(line)
    fn = getattr(np.fft, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        if not isinstance(bound.arguments["a"], ndarray):
            raise TypeError(f"Unsupported type {type(bound.arguments['a'])}")
        return launch(fn, *bound.args, **bound.kwargs)

    call.__name__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return name, call


def _libm(name: str) -> Callable[[Any], Any]:
    """A function of the C library, or of eager's special functions, over host arrays."""

    def run(x: Any) -> Any:
        wide = np.asarray(x, np.float64)
        if name in ("digamma", "erfinv"):
            return getattr(loop_api.NUMPY, name)(wide)
        out = np.empty(wide.shape, np.float64)
        _native.libm_unary({"gammaln": "lgamma"}.get(name, name), out, np.ascontiguousarray(wide))
        return out

    return run


def linalg_module() -> types.ModuleType:
    made = types.ModuleType("cupy.linalg")
    made.__dict__.update(dict(_matrices(line) for line in _LINALG.strip().splitlines()), LinAlgError=np.linalg.LinAlgError)
    return made


def fft_module() -> types.ModuleType:
    made = types.ModuleType("cupy.fft")
    made.__dict__.update(_transform(line) for line in _FFT.strip().splitlines())
    return made


def special_module() -> types.ModuleType:
    made = types.ModuleType("cupyx.scipy.special")
    made.__dict__.update({name: Ufunc(name, loops, _libm(name)) for name, loops in _SPECIAL.items()})
    return made
