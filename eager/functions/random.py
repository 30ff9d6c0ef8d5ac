"""Public random functions and in-place fills."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.device import default_device, device
from eager.base.dtypes import scalar_name
from eager.base.spec import strides_like
from eager.functions.creation import check_layout, empty_strided, finish
from eager.functions.views import given_sizes, sizes_of
from eager.optable.asserting import demand
from eager.optable.out import refuse_gradients_through_out
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import Out, public
from eager.random import state_for

TensorBase = _native.TensorBase


def _check_sizes(size: tuple[int, ...]) -> tuple[int, ...]:
    negative = next((n for n in size if n < 0), None)
    if negative is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(size)}")
    return size


def _draw(op: str, size: tuple[int, ...], generator: Any, dtype: Any, where: Any) -> Any:
    """Draws of `op`; of a complex dtype with both parts drawn (normal: of variance one together)."""
    _check_sizes(size)
    where = default_device() if where is None else device(where)
    d = dtypes.chosen(dtype, dtypes.get_default_dtype())
    if d.is_complex:
        parts = OPS[op](state_for(2 * math.prod(size), generator, where), (*size, 2), d.to_real())
        return OPS["view_as_complex"](parts * math.sqrt(0.5) if op == "philox_normal" else parts)
    return OPS[op](state_for(math.prod(size), generator, where), size, d)


def rand(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
    """Uniform in [0, 1)."""
    check_layout(layout)
    return finish(_draw("philox_uniform", given_sizes("rand", sizes, size), generator, dtype, device), requires_grad,
                  out, pin_memory)  # fmt: skip


def randn(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
    """Standard normal."""
    check_layout(layout)
    return finish(_draw("philox_normal", given_sizes("randn", sizes, size), generator, dtype, device), requires_grad,
                  out, pin_memory)  # fmt: skip


def randint(low: int = 0, high: Any = None, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
    """Integers in [low, high); `randint(high, size)` starts at 0."""
    check_layout(layout)
    if isinstance(high, (tuple, list)):
        if size is not None:
            raise TypeError("randint() got multiple values for argument 'size'")
        low, high, size = 0, low, high
    elif size is not None and high is None:
        low, high = 0, low
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, float):
            raise TypeError(f"randint(): argument '{name}' must be int, not float")
    if high is None or size is None:
        raise TypeError(f"randint() received an invalid combination of arguments - got ({type(low).__name__}), but expected one of:\n"
                        " * (int high, tuple of ints size, *, ...)\n * (int low, int high, tuple of ints size, *, ...)")
    shape = _check_sizes(sizes_of((size,)))
    where = default_device() if device is None else _device(device)
    state = state_for(math.prod(shape), generator, where)
    return finish(OPS["philox_randint"](state, low, high, shape, dtypes.chosen(dtype, dtypes.int64)), requires_grad, out, pin_memory)


def _device(d: Any) -> Any:
    return device(d)


def _in_layout(input: Any, drawn: Any, memory_format: Any) -> Any:
    """The draws in the memory layout that `empty_like(input, memory_format=...)` has."""
    strides = strides_like(input, memory_format)
    if drawn.stride() == strides:
        return drawn
    return OPS["copy_"](empty_strided(tuple(input.shape), strides, dtype=drawn.dtype, device=drawn.device), drawn)


def _drawn_like(draw: Callable[..., Any]) -> Any:
    def make(input: Any, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
        drawn = draw(tuple(input.shape), generator=generator, dtype=dtypes.chosen(dtype, input.dtype), layout=layout,
                     device=input.device if device is None else device)  # fmt: skip
        return finish(_in_layout(input, drawn, memory_format), requires_grad, pin_memory=pin_memory)

    make.__name__ = make.__qualname__ = f"{draw.__name__}_like"
    return make


rand_like, randn_like = public(out=Out())(_drawn_like(rand)), _drawn_like(randn)


def randint_like(input: Any, low: int = 0, high: Any = None, *, generator: Any = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
    """Integers in [low, high), in the size of `input` and by default its dtype; `randint_like(input, high)` starts at 0."""
    low, high = (0, low) if high is None else (low, high)
    drawn = randint(low, high, tuple(input.shape), generator=generator, dtype=dtypes.chosen(dtype, input.dtype), layout=layout,
                    device=input.device if device is None else device)  # fmt: skip
    return finish(_in_layout(input, drawn, memory_format), requires_grad, pin_memory=pin_memory)


def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
    """A random permutation of 0..n-1: the order of n random keys."""
    check_layout(layout)
    keys = _draw("philox_uniform", (n,), generator, dtypes.float64, device)
    order = OPS["sort"](keys, 0, False, True)[1]
    return finish(order if dtypes.meant(dtype) in (None, order.dtype) else OPS["to_dtype"](order, dtypes.meant(dtype)), requires_grad,
                  out, pin_memory)  # fmt: skip


@public(parsed=False)
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
    """Normal draws. mean, std: numbers with a `size`, or tensors that broadcast. Raises: RuntimeError for a negative number std."""
    check_layout(layout)
    _not_negative("normal", std)
    if size is not None:
        drawn = randn(size, generator=generator, dtype=dtype, device=device)
    else:
        like = mean if isinstance(mean, TensorBase) else std
        if not isinstance(like, TensorBase):
            raise TypeError("normal(): with numbers for mean and std, size must be given")
        shape = tuple((mean + std).shape)
        drawn = randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    drawn = in_rows(drawn * _detached(std) + _detached(mean))
    if out is not None:
        refuse_gradients_through_out("normal", mean, std, out)
    elif _native.grad_enabled():
        for x in (mean, std):
            drawn = _with_zero_gradient(drawn, x)
    return finish(drawn, requires_grad, out, pin_memory)


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, TensorBase) else x


def _with_zero_gradient(y: Any, x: Any) -> Any:
    """`y`, with a gradient of zero for `x`, as torch's draws have. y has the shape that x broadcasts to."""
    return in_rows(y + OPS["fill"](x, 0)) if isinstance(x, TensorBase) and x._requires_grad else y


@public(out=Out())
def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Any:
    """1 with probability input (or p), else 0. Raises RuntimeError for a probability outside [0, 1]."""
    _probability("bernoulli", input if p is None else p)
    u = rand(tuple(input.shape), generator=generator, dtype=input.dtype if input.is_floating_point() else None, device=input.device)
    below = u < (input if p is None else p)
    drawn = OPS["to_dtype"](in_rows(below) if p is None else below, input.dtype)
    return _with_zero_gradient(drawn, input) if p is None and _native.grad_enabled() else drawn


@public(out=Out())
def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Indices drawn with the weights of each row. Without replacement by the largest perturbed keys.

    Source: Efraimidis & Spirakis, "Weighted random sampling with a reservoir", 2006.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    rows = input if input.ndim == 2 else input.unsqueeze(0)
    _check_weights(rows, num_samples, replacement)
    if not replacement:
        if num_samples > rows.shape[1]:
            raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        u = rand(tuple(rows.shape), generator=generator, dtype=dtypes.float64, device=input.device)
        keys = OPS["where"](rows > 0, -OPS["log1p"](-u) / rows, math.inf)
        result = OPS["argsort"](keys, 1, False, True)
        result = OPS["slice"](result, 1, 0, num_samples, 1)
    else:
        total = OPS["cumsum"](rows.to(dtypes.float64), 1)
        u = rand(rows.shape[0], num_samples, generator=generator, dtype=dtypes.float64, device=input.device)
        target = u * OPS["slice"](total, 1, -1, None, 1)
        result = OPS["sum"](OPS["unsqueeze"](total, 1) <= OPS["unsqueeze"](target, 2), (2,), False, None)
    return result if input.ndim == 2 else OPS["squeeze"](result, (0,))


# ---- what draws refuse ----


def _not_negative(who: str, std: Any) -> None:
    if not isinstance(std, TensorBase) and std < 0:
        raise RuntimeError(f"{who} expects std >= 0.0, but found std {std}")
    if isinstance(std, TensorBase) and std.dtype.is_complex:
        raise RuntimeError(f"{who} expects standard deviation to be non-complex")


def _probability(who: str, p: Any) -> None:
    if isinstance(p, TensorBase):
        if p.dtype is not dtypes.bool_:
            inside = OPS["logical_and"](OPS["ge"](p, 0), OPS["le"](p, 1))
            demand(inside, RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    elif not 0 <= p <= 1:
        raise RuntimeError(f"{who} expects p to be in [0, 1], but got p={p}")


def _floating(who: str, x: Any) -> None:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise NotImplementedError(f"\"{who.rstrip('_')}\" not implemented for '{scalar_name(x.dtype)}'")


def _check_weights(rows: Any, num_samples: int, replacement: bool) -> None:
    """Raise RuntimeError for negative or infinite weights, or too few weights above zero."""
    weights = OPS["logical_and"](OPS["ge"](rows, 0), OPS["isfinite"](rows))
    demand(weights, RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0")
    demand(OPS["sum"](rows, (1,), False, None) > 0, RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and rows.shape[1] >= num_samples:
        demand(OPS["sum"](rows > 0, (1,), False, None) >= num_samples, RuntimeError,
               "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)")  # fmt: skip


# ---- in-place fills ----


def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **kw: Any) -> Any:
    """Uniform in [from, to)."""
    low = kw.pop("from", kw.pop("a", from_))
    high = kw.pop("b", to)
    _floating("uniform_", self)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    u = rand(tuple(self.shape), generator=generator, dtype=self.dtype, device=self.device)
    return OPS["copy_"](self, u * (high - low) + low)


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with draws from a normal distribution. Raises: RuntimeError for a dtype that is not floating or a negative `std`."""
    _floating("normal_", self)
    _not_negative("normal", std)
    z = randn(tuple(self.shape), generator=generator, dtype=self.dtype, device=self.device)
    return OPS["copy_"](self, z * std + mean)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones of probability `p`, a number or a tensor that broadcasts, and zeros. Raises: RuntimeError for p outside [0, 1]."""
    _probability("bernoulli_", p)
    u = rand(tuple(self.shape), generator=generator, device=self.device)
    return OPS["copy_"](self, OPS["to_dtype"](u < p, self.dtype))


def random_(self: Any, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Any:
    """Integers in [from, to), or in the dtype's whole range."""
    if to is None and from_:
        from_, to = 0, from_
    if to is None:
        digits = {2: 2**11 if self.dtype is dtypes.float16 else 2**8, 4: 2**24, 8: 2**53}
        to = digits[self.dtype.itemsize] + 1 if self.is_floating_point() else 2 if self.dtype is dtypes.bool_ else (
            2 ** (8 * self.dtype.itemsize - (1 if self.dtype.is_signed else 0)))  # fmt: skip
    return OPS["copy_"](self, randint(from_, to, tuple(self.shape), generator=generator, device=self.device))


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Exponential with rate `lambd`. Raises RuntimeError unless it is above zero."""
    _floating("exponential_", self)
    if lambd <= 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    u = rand(tuple(self.shape), generator=generator, dtype=self.dtype, device=self.device)
    return OPS["copy_"](self, OPS["log1p"](-u) * (-1.0 / lambd))


FUNCTIONS: dict[str, Any] = {
    "rand": rand, "randn": randn, "randint": randint, "rand_like": rand_like, "randn_like": randn_like,
    "randint_like": randint_like, "randperm": randperm, "normal": normal, "bernoulli": bernoulli, "multinomial": multinomial,
}  # fmt: skip
METHODS: dict[str, Any] = {
    "uniform_": uniform_, "normal_": normal_, "bernoulli_": bernoulli_, "random_": random_, "exponential_": exponential_,
    "bernoulli": bernoulli, "multinomial": multinomial,
}  # fmt: skip
