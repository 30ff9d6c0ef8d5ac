"""The result of a kernel depends neither on other code in it, nor on its length, nor on the position of an element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op

NUMBERS = {"float": 0.5, "Scalar": 0.5, "int": 1, "bool": False}


def calls(d: dtypes.dtype) -> list[tuple[Op, tuple[Any, ...]]]:
    """Each pointwise op of the table with the positions of its tensors (as `None`) and numbers for its other parameters."""
    found = []
    for _, op in sorted(OPS.items()):
        if op.kind is not Kind.POINTWISE or op.scalar is None or op.fallible or op.name.startswith("philox"):
            continue
        args: list[Any] = []
        for i, p in enumerate(op.schema.params):
            if i in op._tensor_at:
                args.append(None)
            elif p.type.rstrip("?") in NUMBERS:
                args.append(NUMBERS[p.type.rstrip("?")])
        if len(args) == len(op.schema.params) and accepts(op, d):
            found.append((op, tuple(args)))
    return found


def accepts(op: Op, d: dtypes.dtype) -> bool:
    try:
        op(*(torch.ones(2, dtype=d) if i in op._tensor_at else 0.5 for i in range(len(op.schema.params))))
    except (NotImplementedError, TypeError, RuntimeError):
        return False
    return True


def special(d: dtypes.dtype, seed: int) -> Tensor:
    """Numbers of every kind in a fixed random order: ordinary, huge, subnormal, zeros, infinities, nan."""
    rng = np.random.default_rng(seed)
    info = np.finfo(d.numpy)
    tiny, least, huge = (float(x) for x in (info.tiny, info.smallest_subnormal, info.max))
    few = [0.0, 1.0, 2.0, 0.5, 3.0, 1e-3, 4.7, 10.5, 100.0, 1e5, tiny, least, huge, math.inf]
    values = np.concatenate([few, [-x for x in few], [math.nan], rng.standard_normal(120) * 3, rng.standard_normal(120)])
    return torch.from_numpy(rng.permutation(values).astype(d.numpy))


def bits(t: Tensor) -> bytes:
    """The bits of a result, all nans alike."""
    a = t._array
    return (np.where(np.isnan(a), np.nan, a) if t.dtype.is_floating_point else np.ascontiguousarray(a)).astype(a.dtype).tobytes()


@pytest.mark.parametrize("d", [torch.float32, torch.float64], ids=str)
def test_each_pointwise_op_alone_and_together(d: dtypes.dtype) -> None:
    """Together: all in one loop. Alone: each over inputs that begin one element later, so in a loop of another length."""
    found = calls(d)
    assert len(found) > 60
    inputs = [special(d, seed) for seed in range(3)]

    def run(op: Op, args: tuple[Any, ...], tensors: list[Tensor]) -> Any:
        rest = iter(tensors)
        return op(*(next(rest) if a is None else a for a in args))

    def together(*tensors: Tensor) -> list[Any]:
        return [run(op, args, list(tensors)) for op, args in found]

    def alone(*tensors: Tensor) -> list[Any]:
        return [run(op, args, [t[k:] for t in tensors]) for k, (op, args) in enumerate(found)]

    torch.compiler.reset()
    one, each = (torch.compile(fn, fullgraph=True)(*inputs) for fn in (together, alone))
    different = [op.name for k, ((op, _), a, b) in enumerate(zip(found, one, each, strict=True)) if bits(a[k:]) != bits(b)]
    assert not different


@pytest.mark.parametrize("exponent", [0.5, -0.5, 2, 3, -1, -2, 1, 0, 1.5])
def test_a_power_by_a_number_equals_eagers_beside_other_results(exponent: float) -> None:
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.25, math.inf, -math.inf, math.nan, 1e-42, -1e-42] * 3)
    want = x**exponent
    alone = torch.compile(lambda x: x**exponent, fullgraph=True)(x)
    shared = torch.compile(lambda x: (x**exponent, x.sin(), x.cos(), x.sqrt()), fullgraph=True)(x)[0]
    assert bits(alone) == bits(shared)
    assert torch.allclose(alone, want, rtol=2e-7, atol=0, equal_nan=True)
    assert np.array_equal(np.signbit(alone._array[:9]), np.signbit(want._array[:9]))


WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint64")
FLOATS = (0.0, 0.5, -1.9, 127.0, 128.0, -129.0, 255.9, 256.0, 3e4, 40000.0, 65536.0, -32769.0, 2147483520.0, 2147483648.0, -2147483648.0,
          3e9, -3e9, 5e9, 9.2e18, 9.3e18, -9.3e18, 2e19, 1e30, -1e30, math.inf, -math.inf, math.nan)  # fmt: skip


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_floats_that_do_not_fit_become_the_integers_of_eager(source: str) -> None:
    """In the vectors and the remainder of a loop, and as constants."""
    x = torch.tensor(FLOATS * 2, dtype=torch.float64).to(getattr(torch, source))

    def convert(x: Tensor) -> list[Tensor]:
        return [x.to(getattr(torch, name)) for name in WHOLE] + [x[3:8].to(getattr(torch, name)) for name in WHOLE]

    for got, want in zip(torch.compile(convert, fullgraph=True)(x), convert(x), strict=True):
        assert got.dtype is want.dtype and got.tolist() == want.tolist()


def test_constants_that_do_not_fit_become_the_integers_of_eager() -> None:
    def convert(x: Tensor) -> list[Tensor]:
        return [(torch.full((3,), v) + x * 0).to(torch.int32) for v in (3e9, -3e9, 1e30)] + [
            torch.full((3,), v).to(getattr(torch, name)) for v in FLOATS for name in WHOLE
        ]

    x = torch.zeros(3)
    for got, want in zip(torch.compile(convert, fullgraph=True)(x), convert(x), strict=True):
        assert got.tolist() == want.tolist()
