"""The checks of one op on a CUDA device, generated from the op table: the CPU's results are the reference.

Shared by `tests.cuda.report`, which lists every failure of a device, and by the tests.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import eager
from eager.base.dtypes import can_cast
from eager.optable import signatures
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS, Op
from tests.ops.conftest import assert_same, flat, is_differentiable, map_tensors, public_ops

UNDEFINED = {"empty"}  # the contents of the result are undefined
UP_TO_SIGN = {"eigh", "svd"}  # the signs of the vectors are free
ILL_CONDITIONED = {"qr", "eigh", "svd"}  # their gradients are compared in double precision
HALF = (eager.bfloat16, eager.float16)

# Ops that programs use most come first: a run with a time limit checks them.
FIRST = """add sub mul div matmul mm addmm bmm linear relu gelu silu sigmoid tanh exp log sqrt rsqrt pow neg abs sum mean amax amin max_dim
argmax softmax log_softmax layer_norm rms_norm batch_norm group_norm where masked_fill cat stack view permute transpose slice select expand
clone copy_ contiguous to_dtype fill_ zero_ full arange embedding index_select gather scatter scatter_add index index_put cumsum sort topk
conv2d convolution max_pool2d avg_pool2d nll_loss cross_entropy mse_loss scaled_dot_product_attention dropout philox_uniform philox_normal
eq ne lt le gt ge logical_and logical_or logical_not maximum minimum clamp var std tril triu""".split()


class Check(NamedTuple):
    """One comparison with the CPU: `run()` raises if they differ."""

    op: str
    sample: int
    name: str
    run: Callable[[], None]


def ordered_ops() -> list[str]:
    """Every op with samples, the most used first."""
    known = [n for n in public_ops() if OPS[n].samples is not None]
    place = {name: i for i, name in enumerate(FIRST)}
    return sorted(known, key=lambda n: (place.get(n.removesuffix("_"), len(place)), n))


def to_cuda(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tensors, and the device of a creation op, on CUDA."""
    copies: dict[int, Any] = {}  # a tensor that occurs twice stays one tensor
    moved = map_tensors(lambda t: copies.setdefault(id(t), t.to("cuda")), args)
    return tuple(eager.device("cuda", 0) if p.type.startswith("device") and _creates(op) else a
                 for p, a in zip(op.schema.params, moved, strict=True))  # fmt: skip


def _creates(op: Op) -> bool:
    return op.kind in (Kind.CREATION, Kind.EFFECT)


def checks_of(name: str, half: bool = True) -> Iterator[Check]:
    """The checks of an op in each sample: values, gradients, out=, and values in half precision if `half`."""
    op = OPS[name]
    for number, args in enumerate(samples_of(name)):
        if op.mutates and not _may_write(op, args):
            continue
        yield Check(name, number, "values", partial(check_values, op, number))
        if is_differentiable(op) and any(t.dtype.is_floating_point for t in _leaves(args)):
            yield Check(name, number, "gradients", partial(check_gradients, op, number))
        if number == 0 and not op.mutates and op.kind is not Kind.VIEW and signatures.signatures(name) and signatures.takes_out(name):
            yield Check(name, number, "out", partial(check_out, op, number))
        if half and number == 0 and any(t.dtype is eager.float32 for t in _leaves(args)):
            for d in HALF:
                yield Check(name, number, d.name, partial(check_values, op, number, d))


def _sample(op: Op, number: int, dtype: Any = eager.float32) -> tuple[Any, ...]:
    return next(args for i, args in enumerate(samples_of(op.name, dtype)) if i == number)


def _may_write(op: Op, args: Any) -> bool:
    """Whether the results of an in-place op fit into the operands that it writes."""
    if not isinstance(args[0], eager.Tensor):
        return False
    base = op.base
    assert base is not None
    return all(tuple(spec.shape) == tuple(t.shape) and (base.casts_result or can_cast(spec.dtype, t.dtype))
               for t, spec in zip(op.written(args), flat(base.infer(*args)), strict=True))  # fmt: skip


def _leaves(args: Any) -> list[Any]:
    found = []
    for a in args:
        if isinstance(a, eager.Tensor):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += _leaves(a)
    return found


def _reset() -> None:
    eager.manual_seed(7)  # of both devices' generators


def _compare(op: Op, on_cuda: Any, on_cpu: Any) -> None:
    ours, theirs = flat(on_cuda), flat(on_cpu)
    assert len(ours) == len(theirs)
    for i, (y, expected) in enumerate(zip(ours, theirs, strict=True)):
        if not isinstance(expected, eager.Tensor):
            assert y == expected
            continue
        assert y.device.type == "cuda", f"{op.name} output {i}: the result is on {y.device}"
        assert y.numel() < 2 or y.stride() == expected.stride(), f"{op.name} output {i}: strides {y.stride()} against {expected.stride()}"
        if op.name in UP_TO_SIGN:
            y, expected = y.abs(), expected.abs()
        if op.name not in UNDEFINED:
            assert_same(y.detach().cpu(), expected.detach(), f"{op.name} output {i}")


def _outcome(run: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The result of a call on the CPU, or the exception that it raises."""
    try:
        return run(), None
    except (NotImplementedError, RuntimeError) as error:
        return None, error


def check_values(op: Op, number: int, dtype: Any = eager.float32) -> None:
    """Values, dtypes, shapes, strides; of an in-place op also that it returns its target."""
    _reset()
    expected, refused = _outcome(lambda: op(*_sample(op, number, dtype)))
    args = to_cuda(op, _sample(op, number, dtype))
    _reset()
    if refused is not None:
        try:
            op(*args)
        except type(refused):
            return
        raise AssertionError(f"the CPU raises {refused!r}, CUDA raises nothing")
    y = op(*args)
    if op.mutates:
        assert y is args[0]
    _compare(op, y, expected)


def _gradients(op: Op, args: tuple[Any, ...]) -> list[Any]:
    leaves = [t for t in _leaves(args) if t.dtype.is_floating_point or t.dtype.is_complex]
    for x in leaves:
        x.requires_grad_(True)
    outputs = [y for i, y in enumerate(flat(op(*args))) if y.requires_grad and i not in op.nondifferentiable_outputs]
    if not outputs:
        return []
    weights = [eager.linspace(0.5, 1.5, y.numel(), dtype=eager.float64).reshape(y.shape).to(y.device, y.dtype) for y in outputs]
    if op.name in UP_TO_SIGN:
        weights = [w * y.detach().sign() for w, y in zip(weights, outputs, strict=True)]
    return list(eager.autograd.grad(outputs, leaves, weights, allow_unused=True))


def check_gradients(op: Op, number: int) -> None:
    """Gradients of all floating inputs for fixed cotangents."""
    dtype = eager.float64 if op.name in ILL_CONDITIONED else eager.float32
    _reset()
    expected = _gradients(op, _sample(op, number, dtype))
    args = to_cuda(op, _sample(op, number, dtype))
    _reset()
    actual = _gradients(op, args)
    assert [g is None for g in actual] == [g is None for g in expected]
    for i, (g, e) in enumerate(zip(actual, expected, strict=True)):
        if e is not None:
            assert g.device.type == "cuda", f"gradient {i} is on {g.device}"
            assert_same(g.detach().cpu(), e.detach(), f"{op.name}: gradient of input {i}")


def check_out(op: Op, number: int) -> None:
    """`out=`: the result lies in the given tensors."""
    _reset()
    expected = op(*_sample(op, number))
    args = to_cuda(op, _sample(op, number))
    outs = [eager.empty((0,), dtype=e.dtype, device="cuda") for e in flat(expected)]
    _reset()
    y = op(*args, out=tuple(outs) if isinstance(expected, tuple) else outs[0])
    assert all(a is b for a, b in zip(flat(y), outs, strict=True))
    for i, (o, e) in enumerate(zip(outs, flat(expected), strict=True)):
        signless = op.name in UP_TO_SIGN
        assert_same(o.abs().cpu() if signless else o.cpu(), e.abs() if signless else e, f"{op.name} out {i}")
