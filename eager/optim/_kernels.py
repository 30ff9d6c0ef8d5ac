"""Update rules over arrays, in blocks that fit into the cache.

A rule such as Adam's reads and writes four arrays a dozen times. Over whole parameters each of these
passes reads main memory; over blocks of a few thousand elements only the first does. Every
rule has the same form: it receives slices and two scratch buffers, and writes in place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager import _native
from eager._tensor.tensor import Tensor
from eager.compiler import is_compiling

BLOCK = 16384


def runs_on_arrays(tensors: Sequence[Tensor]) -> bool:
    """Whether the array rules apply: contiguous real float32 or float64 CPU tensors of equal dtype and shape."""
    if is_compiling() or _native.mode_depth():
        return False
    first = tensors[0]
    d = first.dtype
    if d.name not in ("float32", "float64"):
        return False
    return all(t.dtype is d and t.device.type == "cpu" and not t.is_fake and t._is_contiguous() for t in tensors)


def in_blocks(rule: Callable[..., None], tensors: Sequence[Tensor], written: int, *settings: Any) -> None:
    """Run `rule(*slices, scratch, scratch, *settings)` block by block; the rule writes the first `written` tensors."""
    arrays = [t._array.reshape(-1) for t in tensors]
    n = arrays[0].size
    # Of this call alone: numpy releases the lock of the interpreter, so that a step of another thread may run meanwhile.
    scratch = [np.empty(min(n, BLOCK), arrays[0].dtype) for _ in range(2)]
    with np.errstate(all="ignore"):
        for at in range(0, n, BLOCK):
            end = min(at + BLOCK, n)
            rule(*[a[at:end] for a in arrays], *[s[: end - at] for s in scratch], *settings)
    for t in tensors[:written]:
        t._bump_version()


def sgd(p: Any, buf: Any, g: Any, s: Any, t: Any, lr: float, weight_decay: float, momentum: float, dampening: float,
        nesterov: bool, first: bool) -> None:  # fmt: skip
    """SGD with momentum: buf = momentum * buf + (1 - dampening) * g, then p -= lr * buf, or lr * (g + momentum * buf)."""
    if weight_decay:
        g = np.add(np.multiply(p, weight_decay, out=s), g, out=s)
    if first:
        np.copyto(buf, g)
    else:
        buf *= momentum
        buf += np.multiply(g, 1 - dampening, out=t) if dampening else g
    if nesterov:
        np.multiply(buf, momentum, out=t)
        t += g
        t *= lr
        p -= t
    else:
        p -= np.multiply(buf, lr, out=t)


def sgd_plain(p: Any, g: Any, s: Any, t: Any, lr: float, weight_decay: float) -> None:
    """SGD without momentum: p -= lr * (g + weight_decay * p)."""
    if weight_decay:
        g = np.add(np.multiply(p, weight_decay, out=s), g, out=s)
    p -= np.multiply(g, lr, out=t)


def adam(p: Tensor, m: Tensor, v: Tensor, g: Tensor, *settings: float) -> None:
    """Adam, and AdamW with decoupled weight decay, in one native pass that writes p, m and v.

    settings: lr, beta1, beta2, eps, weight_decay, whether the decay is decoupled, the step number.
    Source: Kingma & Ba, 2015; Loshchilov & Hutter, 2019.
    Raises: RuntimeError for differing sizes (`runs_on_arrays` checks the other conditions).
    """
    if not _native.adam_step(p._array, m._array, v._array, g._array, *settings):
        sizes = [list(t.shape) for t in (p, m, v, g)]
        raise RuntimeError(f"adam: the parameter, its averages and its gradient have sizes {sizes}; allowed: the same")
    for t in (p, m, v):
        t._bump_version()

