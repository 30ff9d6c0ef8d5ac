"""gradcheck and gradgradcheck: gradients against finite differences.

For an input x and an output y the Jacobian is laid out (elements of x, elements of y). A complex input counts as
two real ones: its entry is d/d(real part) + i d/d(imaginary part); a complex output is checked in its real and its
imaginary part. In fast mode only u^T J v is compared, for random u and v.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager import _native
from eager.autograd.function import Function
from eager.autograd.grad_mode import enable_grad, no_grad
from eager.base.records import dataclass
from eager.optable.memory import from_array
from eager.optable.table import OPS
from eager.tape import hooks
from eager.tape.engine import grad
from eager.transforms.push import jvp

TensorBase = _native.TensorBase
Func = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A gradient that `gradcheck` refuses."""


_FAST_NOTE = """
The above quantities relating the numerical and analytical jacobians are computed 
in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background 
about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:

Numerical:
 {numerical}
Analytical:
{analytical}

The max per-element difference (slow mode) is: {worst}.
"""  # noqa: W291 - the text users match on
_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
    "although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {tol}."
)
_UNDEFINED = (
    "Expected backward function to handle undefined output grads. Please look at \"Notes about undefined output gradients\" in "
    "\"tools/autograd/derivatives.yaml\""
)


@dataclass(frozen=True, slots=True)
class _Settings:
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast: bool


def _tensors(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, TensorBase) else tuple(x)


def _differentiable(outputs: Any) -> list[Any]:
    return [y for y in _tensors(outputs) if isinstance(y, TensorBase) and y.requires_grad]


def _array(t: Any) -> Any:
    return t.detach()._array


# ---- Jacobians ----


def _numerical(value: Callable[[], list[Any]], x: Any, outputs: int, eps: float) -> list[Any]:
    """Central differences of every output in every element of `x`."""
    a = _array(x)
    columns: list[list[Any]] = [[] for _ in range(outputs)]
    for at in np.ndindex(a.shape):
        steps = [_difference(value, a, at, eps, eps)]
        if a.dtype.kind == "c":
            steps.append(_difference(value, a, at, eps * 1j, eps))
        for i in range(outputs):
            columns[i].append(steps[0][i] + 1j * steps[1][i] if len(steps) > 1 else steps[0][i])
    return [np.array(c).reshape(len(c), -1) if a.size and c[0].size else np.zeros((a.size, 0)) for c in columns]


def _difference(value: Callable[[], list[Any]], a: Any, at: Any, step: Any, length: float) -> list[Any]:
    kept = a[at]
    a[at] = kept + step
    above = value()
    a[at] = kept - step
    below = value()
    a[at] = kept
    return [(p.astype(np.float64) - m.astype(np.float64)) / (2 * length) for p, m in zip(above, below, strict=True)]


def _analytical(y: Any, xs: Sequence[Any]) -> list[Any]:
    """The rows that backward gives, for each input: (elements of x, elements of y)."""
    found = [np.zeros((x.numel(), y.numel()), np.complex128 if x.dtype.is_complex else np.float64) for x in xs]
    for j in range(y.numel()):
        seed = np.zeros(y.numel())
        seed[j] = 1
        g = from_array(seed.reshape(tuple(y.shape)).astype(y.dtype.numpy))
        for i, row in enumerate(grad([y], xs, [g], retain_graph=True, allow_unused=True)):
            if row is not None:
                found[i][:, j] = _array(row).reshape(-1)
    return found


def _forward(fn: Func, inputs: Sequence[Any], at: int, outputs: int) -> list[Any]:
    """The columns that forward mode gives for input `at`."""
    x = inputs[at]

    def partial(value: Any) -> Any:
        return tuple(_tensors(fn(*[value if i == at else t for i, t in enumerate(inputs)])))

    columns: list[list[Any]] = [[] for _ in range(outputs)]
    for j in range(x.numel()):
        parts = []
        for unit in (1, 1j) if x.dtype.is_complex else (1,):
            seed = np.zeros(x.numel(), x.dtype.numpy)
            seed[j] = unit
            tangents = jvp(partial, (x,), (from_array(seed.reshape(tuple(x.shape))),))[1]
            parts.append([_array(t).reshape(-1) for t in tangents])
        for i in range(outputs):
            columns[i].append(parts[0][i] + 1j * parts[1][i] if len(parts) > 1 else parts[0][i])
    return [np.array(c).reshape(len(c), -1) if c and c[0].size else np.zeros((x.numel(), 0)) for c in columns]


# ---- comparisons ----


def _close(a: Any, n: Any, s: _Settings) -> bool:
    return bool(np.allclose(a, n, rtol=s.rtol, atol=s.atol, equal_nan=False))


def _mismatch(a: Any, n: Any, output: int, at: int, prefix: str, forward: bool, tail: str = "") -> GradcheckError:
    if not np.iscomplexobj(a) and np.iscomplexobj(n):
        n = n.real
    kind = "computed with forward mode " if forward else ""
    what = f"{prefix}Jacobian {kind}mismatch for output {output} with respect to input {at},"
    values = [from_array(v) if isinstance(v, np.ndarray) else complex(v) if np.iscomplexobj(v) else float(v) for v in (n, a)]
    return GradcheckError(f"{what}\nnumerical:{values[0]}\nanalytical:{values[1]}\n{tail}")


def _check_slow(fn: Func, inputs: Sequence[Any], checked: Sequence[int], s: _Settings, prefix: str, forward: bool) -> None:
    """Every entry of every Jacobian."""

    def value() -> list[Any]:
        with no_grad():
            return [np.array(_array(y)).reshape(-1) for y in _tensors(fn(*inputs))]

    with enable_grad():
        ys = list(_tensors(fn(*inputs)))
    analytical = None if forward else [_analytical(y, [inputs[i] for i in checked]) for y in ys]
    for k, i in enumerate(checked):
        numerical = _numerical(value, inputs[i], len(ys), s.eps)
        columns = _forward(fn, inputs, i, len(ys)) if forward else None
        for j in range(len(ys)):
            a = columns[j] if columns is not None else analytical[j][k]  # type: ignore[index]
            if a.size and not _close(a, numerical[j], s):
                raise _mismatch(a, numerical[j], j, i, prefix, forward)


def _directions(x: Any, rng: Any) -> Any:
    """Random unit vectors: one for a real input, for a complex one two (for its parts)."""
    count = 2 if x.dtype.is_complex else 1
    draws = [rng.standard_normal(tuple(x.shape)) for _ in range(count)]
    return [d / max(float(np.linalg.norm(d)), 1e-30) for d in draws]


def _check_fast(fn: Func, inputs: Sequence[Any], checked: Sequence[int], s: _Settings, prefix: str, forward: bool) -> None:
    """One number of every Jacobian: u^T J v."""
    rng = np.random.default_rng(0)
    with enable_grad():
        ys = list(_tensors(fn(*inputs)))
    weights = [rng.uniform(0.0, 1.0, tuple(y.shape)) for y in ys]
    for i in checked:
        x = inputs[i]
        directions = _directions(x, rng)
        for j, y in enumerate(ys):
            numerical = _directional(fn, inputs, x, directions, j, weights[j], s.eps)
            analytical = (_pushed if forward else _pulled)(fn, inputs, i, y, j, directions, weights[j])
            if not _close(np.asarray(analytical), np.asarray(numerical), s):
                raise _fast_mismatch(fn, inputs, i, j, y, numerical, analytical, s, prefix, forward)


def _directional(fn: Func, inputs: Sequence[Any], x: Any, directions: Any, j: int, weight: Any, eps: float) -> Any:
    a = _array(x)
    total = []
    for d, unit in zip(directions, (1, 1j), strict=False):
        kept = a.copy()
        with no_grad():
            a[...] = kept + d * (eps * unit)
            above = np.array(_array(_tensors(fn(*inputs))[j]), np.float64)
            a[...] = kept - d * (eps * unit)
            below = np.array(_array(_tensors(fn(*inputs))[j]), np.float64)
            a[...] = kept
        total.append(float(np.sum(weight * (above - below)) / (2 * eps)))
    return complex(*total) if len(total) > 1 else total[0]


def _pulled(fn: Func, inputs: Sequence[Any], i: int, y: Any, j: int, directions: Any, weight: Any) -> Any:
    g = grad([y], [inputs[i]], [from_array(np.array(weight, y.dtype.numpy))], retain_graph=True, allow_unused=True)[0]
    if g is None:
        return 0j if len(directions) > 1 else 0.0
    a = _array(g)
    if len(directions) > 1:
        return complex(float(np.sum(a.real * directions[0])), float(np.sum(a.imag * directions[1])))
    return float(np.sum(a * directions[0]))


def _pushed(fn: Func, inputs: Sequence[Any], i: int, y: Any, j: int, directions: Any, weight: Any) -> Any:
    def partial(value: Any) -> Any:
        return _tensors(fn(*[value if k == i else t for k, t in enumerate(inputs)]))[j]

    x = inputs[i]
    parts = [float(np.sum(weight * _array(jvp(partial, (x,), (from_array(np.array(d * unit, x.dtype.numpy)),))[1])))
             for d, unit in zip(directions, (1, 1j), strict=False)]  # fmt: skip
    return complex(*parts) if len(parts) > 1 else parts[0]


def _fast_mismatch(fn: Func, inputs: Sequence[Any], i: int, j: int, y: Any, numerical: Any, analytical: Any, s: _Settings,
                   prefix: str, forward: bool) -> GradcheckError:  # fmt: skip
    """The error of fast mode, with the whole Jacobians to look at."""

    def value() -> list[Any]:
        with no_grad():
            return [np.array(_array(_tensors(fn(*inputs))[j])).reshape(-1)]

    n = _numerical(value, inputs[i], 1, s.eps)[0]
    a = _forward(fn, inputs, i, j + 1)[j] if forward else _analytical(y, [inputs[i]])[0]
    tail = _FAST_NOTE.format(numerical=from_array(n), analytical=from_array(a), worst=float(np.max(np.abs(n - a), initial=0.0)))
    return _mismatch(analytical, numerical, j, i, prefix, forward, tail)


# ---- further properties ----


def _check_reentrant(ys: Sequence[Any], xs: Sequence[Any], tol: float) -> None:
    """The same backward twice gives the same gradients."""
    rng = np.random.default_rng(1)
    for y in ys:
        g = from_array(np.array(rng.standard_normal(tuple(y.shape)), y.dtype.numpy))
        first = grad([y], xs, [g], retain_graph=True, allow_unused=True)
        second = grad([y], xs, [g], retain_graph=True, allow_unused=True)
        for a, b in zip(first, second, strict=True):
            if a is not None and b is not None and np.max(np.abs(_array(a) - _array(b)), initial=0.0) > tol:
                raise GradcheckError(_REENTRANT.format(tol=tol))


class _NoGradient(Function):
    """Passes tensors on; none of the gradients comes back."""

    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        return tuple(x.view_as(x) for x in xs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return tuple(None for _ in grads)


def _check_undefined(ys: Sequence[Any], xs: Sequence[Any]) -> None:
    """Check that backward without output gradients gives no input gradients, or zeros."""
    cut = _NoGradient.apply(*ys)
    try:
        found = grad(list(cut), xs, [hooks.ones(y) for y in cut], retain_graph=True, allow_unused=True)
    except RuntimeError as e:
        raise GradcheckError(_UNDEFINED) from e
    if any(g is not None and np.any(_array(g)) for g in found):
        raise GradcheckError("Expected all inputs to have undefined or zero gradients when all output gradients are undefined")


def _check_batched(ys: Sequence[Any], xs: Sequence[Any]) -> None:
    """A batch of cotangents under vmap gives what one after the other gives."""
    rng = np.random.default_rng(2)
    for j, y in enumerate(ys):
        rows = [from_array(np.array(rng.standard_normal(tuple(y.shape)), y.dtype.numpy)) for _ in range(2)]
        singly = [grad([y], xs, [g], retain_graph=True, allow_unused=True) for g in rows]
        at_once = grad([y], xs, [OPS["stack"](rows, 0)], retain_graph=True, allow_unused=True, is_grads_batched=True)
        for i, batch in enumerate(at_once):
            expected = [row[i] for row in singly]
            if (batch is None) != (expected[0] is None) or (batch is not None and not np.allclose(
                    _array(batch), np.stack([_array(e) for e in expected]))):  # fmt: skip
                raise GradcheckError(f"For output {j} and input {i}:\n\nvmap over gradients gives other values than a loop over them.\n"
                                     f"vmapped: {batch}\nlooped: {expected}")  # fmt: skip


def _check_dtypes(ys: Sequence[Any], xs: Sequence[Any]) -> None:
    for x, g in zip(xs, grad(list(ys), xs, [hooks.ones(y) for y in ys], retain_graph=True, allow_unused=True), strict=True):
        if g is not None and (g.dtype is not x.dtype or tuple(g.shape) != tuple(x.shape)):
            raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} of shape {list(g.shape)} for an input of {x.dtype}, "
                                 f"{list(x.shape)}")  # fmt: skip


# ---- the whole ----


def _checked_inputs(inputs: Sequence[Any]) -> list[int]:
    """Positions of the inputs to check. Raises: ValueError for an empty list; RuntimeError for overlapping memory."""
    found = []
    for i, x in enumerate(inputs):
        if not isinstance(x, TensorBase) or not x.requires_grad:
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                          "likely fail if all the inputs are not of double precision floating point or complex. ",
                          stacklevel=4)  # fmt: skip
        if any(st == 0 and n > 1 for st, n in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping "
                               "to be able to compute the numerical gradients correctly. You should call .contiguous on the input "
                               "before passing it to gradcheck.")  # fmt: skip
        found.append(i)
    if not found:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")  # fmt: skip
    return found


def _part(fn: Func, which: str, keep: Callable[[Any], bool]) -> Func:
    """`fn` with only the outputs that `keep` accepts; of complex ones the real or imaginary part."""

    def parts(*inputs: Any) -> tuple[Any, ...]:
        return tuple(OPS[which](y) if y.dtype.is_complex else y for y in _tensors(fn(*inputs)) if keep(y))

    return parts


def _check_constant(fn: Func, inputs: Sequence[Any], checked: Sequence[int], eps: float) -> None:
    """Check that a function is constant if none of its outputs requires a gradient."""

    def value() -> list[Any]:
        with no_grad():
            ys = [y for y in _tensors(fn(*inputs)) if isinstance(y, TensorBase) and y.dtype.category >= 2]
            return [np.array(_array(OPS["real"](y) if y.dtype.is_complex else y)).reshape(-1) for y in ys]

    count = len(value())
    for i in checked:
        if any(np.any(j) for j in _numerical(value, inputs[i], count, eps)):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _gradcheck(func: Func, inputs: tuple[Any, ...], s: _Settings, undefined: bool, dtypes: bool, batched: bool, forward: bool,
               backward: bool) -> None:  # fmt: skip
    checked = _checked_inputs(inputs)
    for i in checked:
        inputs[i].retain_grad()
    with enable_grad():
        outputs = func(*inputs)
    for y in _tensors(outputs):
        y.requires_grad  # noqa: B018 - raises AttributeError unless `y` is a tensor
    ys = _differentiable(outputs)
    if not ys:
        _check_constant(func, inputs, checked, s.eps)
        return
    xs = [inputs[i] for i in checked]
    wanted = {i for i, y in enumerate(_tensors(outputs)) if y.requires_grad}

    def differentiable(*args: Any) -> tuple[Any, ...]:
        return tuple(y for i, y in enumerate(_tensors(func(*args))) if i in wanted)

    if backward:
        _check_reentrant(ys, xs, s.nondet_tol)
    compare = _check_fast if s.fast else _check_slow
    any_complex = any(y.dtype.is_complex for y in ys)
    views = [("", _part(differentiable, "real", lambda y: not y.dtype.is_complex))]
    if any_complex:
        views = [("While considering the imaginary part of complex outputs only, ",
                  _part(differentiable, "imag", lambda y: y.dtype.is_complex)),
                 ("While considering the real part of complex outputs only, ",
                  _part(differentiable, "real", lambda y: True))]  # fmt: skip
    for mode in [m for m, on in ((True, forward), (False, backward)) if on]:
        for prefix, fn in views:
            compare(fn, inputs, checked, s, prefix, mode)
    if not backward:
        return
    if batched:
        _check_batched(ys, xs)
    if undefined:
        _check_undefined(ys, xs)
    if dtypes:
        _check_dtypes(ys, xs)


def gradcheck(func: Func, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:  # fmt: skip
    """Whether the gradients of `func` agree with central differences of step `eps`, within atol + rtol * |numerical|.

    inputs: a tensor or a tuple. Inputs that require gradients are checked, in double precision. The check includes that
    backward is deterministic within nondet_tol and accepts missing output gradients. Options add forward mode, vmap over
    backward, and dtypes.
    Raises: GradcheckError with the difference, unless `raise_exception` is False; ValueError if no input requires a gradient.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if masked:
        raise NotImplementedError("gradcheck: masked=True is about sparse tensors, which are not implemented")
    if check_batched_forward_grad:
        raise NotImplementedError("gradcheck: check_batched_forward_grad is not implemented")
    args = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
    settings = _Settings(eps, atol, rtol, nondet_tol, fast_mode)
    try:
        _gradcheck(func, args, settings, check_undefined_grad, check_grad_dtypes, check_batched_grad, check_forward_ad,
                   check_backward_ad)  # fmt: skip
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func: Func, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
                  masked: bool = False) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func`, as functions of its inputs and of `grad_outputs` (random if None)."""
    args = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
    count = len(args)
    if grad_outputs is None:
        with enable_grad():
            cotangents = [_random_like(y, i, gen_non_contig_grad_outputs) for i, y in enumerate(_differentiable(func(*args)))]
    else:
        cotangents = list(_tensors(grad_outputs))
    wanted = [i for i, x in enumerate(args) if isinstance(x, TensorBase) and x.requires_grad]

    def slopes(*given: Any) -> tuple[Any, ...]:
        with enable_grad():
            own = [x.detach().requires_grad_() if i in wanted and not x.requires_grad else x for i, x in enumerate(given[:count])]
            ys = _differentiable(func(*own))
            found = grad(ys, [own[i] for i in wanted], list(given[count:]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(slopes, (*args, *cotangents), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked)  # fmt: skip


def _random_like(y: Any, seed: int, spread: bool) -> Any:
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, tuple(y.shape))
    if y.dtype.is_complex:
        a = a + 1j * rng.uniform(-1, 1, tuple(y.shape))
    t = from_array(np.array(a, y.dtype.numpy))
    if spread:
        t = OPS["select"](OPS["stack"]([t, t], t.ndim), t.ndim, 0)
    return t.requires_grad_()


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
