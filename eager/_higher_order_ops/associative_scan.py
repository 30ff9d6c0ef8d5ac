"""`associative_scan`: all prefixes of a sequence under an associative operation, in a logarithmic number of steps."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager import func
from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.utils import _pytree as pytree

_Combine = Callable[[list[Any], list[Any]], list[Any]]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:  # fmt: skip
    """The running combination of `xs` along `dim`: y[0] = x[0], y[i] = combine_fn(y[i - 1], x[i]).

    combine_fn: an associative function (a, b) -> c over structures like `xs`. xs: a tensor or a structure of tensors of
    one size along `dim`; the result has its structure and shapes. reverse: scan from the last element to the first.
    combine_mode:
    "pointwise" if combine_fn works elementwise, or "generic", which passes it the elements of the sequence without `dim`.
    Raises: ValueError for another mode, no tensor, or sizes that differ; TypeError for a leaf that is not a tensor;
    RuntimeError if combine_fn returns another structure or another dtype.
    Source: Blelloch, "Prefix sums and their applications", CMU-CS-90-190 (1990).
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, structure = pytree.tree_flatten(xs)
    at = _checked(leaves, dim)
    moved = [OPS["flip"](t.movedim(at, 0), (0,)) if reverse else t.movedim(at, 0) for t in leaves]
    per_element = func.vmap(combine_fn) if combine_mode == "generic" else combine_fn

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        made, got = pytree.tree_flatten(per_element(pytree.tree_unflatten(a, structure), pytree.tree_unflatten(b, structure)))
        if got != structure:
            raise RuntimeError(f"associative_scan: combine_fn returned {got} for arguments of {structure}; allowed: the same structure")
        for x, y in zip(a, made, strict=True):
            if x.dtype is not y.dtype or x.shape != y.shape:
                raise RuntimeError(f"associative_scan: combine_fn returned a tensor of {y.dtype} and shape {list(y.shape)} for one of "
                                   f"{x.dtype} and {list(x.shape)}; allowed: the same")  # fmt: skip
        return made

    scanned = _scan(combine, moved)
    back = [(OPS["flip"](t, (0,)) if reverse else t).movedim(0, at) for t in scanned]
    return pytree.tree_unflatten(back, structure)


def _checked(leaves: Sequence[Any], dim: int) -> int:
    """The non-negative dim to scan.

    Raises: ValueError, TypeError, IndexError unless all leaves have one size along it.
    """
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    for t in leaves:
        if not isinstance(t, Tensor):
            raise TypeError(f"associative_scan: xs holds a {type(t).__name__}; allowed: tensors")
        if not -t.ndim <= dim < t.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-t.ndim}, {t.ndim - 1}], but got {dim})")
    sizes = [t.shape[dim] for t in leaves]
    if any(n != sizes[0] for n in sizes):
        raise ValueError(f"All xs leaves must at least have same number of elements along the scan dimension; got {sizes}")
    return dim % leaves[0].ndim


def _scan(combine: _Combine, xs: list[Any]) -> list[Any]:
    """Prefixes along dim 0: combine neighbours, scan the remaining half, and fill in the elements between."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    odd = _scan(combine, combine([t[: n - 1 : 2] for t in xs], [t[1::2] for t in xs]))
    if n == 2:
        return [OPS["cat"]([t[:1], o], 0) for t, o in zip(xs, odd, strict=True)]
    between = combine([o[: (n - 1) // 2] for o in odd], [t[2::2] for t in xs])
    even = [OPS["cat"]([t[:1], e], 0) for t, e in zip(xs, between, strict=True)]
    return [_interleaved(e, o) for e, o in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    """The elements of both, alternating; `even` has as many as `odd`, or one more."""
    n = odd.shape[0]
    both = OPS["stack"]([even[:n], odd], 1).reshape(2 * n, *odd.shape[1:])
    return both if even.shape[0] == n else OPS["cat"]([both, even[n:]], 0)
