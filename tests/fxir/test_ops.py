"""Every op of the table through aot: forward and gradient, generated from the samples.

One test per op covers all its samples; what eager refuses to differentiate is run forward only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
from eager import Tensor
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.region.aot import aot_compile, interpret
from fxir.trace.trace import Decompositions
from tests.fxir.helpers import aliasing, as_list, capture, fakes_of

TOLERANCE = {2: (2e-2, 2e-2), 4: (1e-4, 1e-5), 8: (1e-8, 1e-9)}
NAMES = sorted(name for name, op in OPS.items() if op.samples is not None and not op.dynamic_output)
COMPOSITES = sorted(n for n in NAMES if OPS[n].kind is Kind.COMPOSITE and (OPS[n].kernel or OPS[n].vjp))


def tensors_in(args: Any) -> list[Tensor]:
    found = []
    for a in args:
        if isinstance(a, Tensor):
            found.append(a)
        elif isinstance(a, list | tuple):
            found += [t for t in a if isinstance(t, Tensor)]
    return list({id(t): t for t in found}.values())


def caller(name: str, args: Any) -> Any:
    """The op as a function of its tensors alone."""
    places = {id(t): i for i, t in enumerate(tensors_in(args))}

    def fill(a: Any, ts: Any) -> Any:
        if isinstance(a, Tensor):
            return ts[places[id(a)]]
        return type(a)(fill(x, ts) for x in a) if isinstance(a, list | tuple) else a

    return lambda *ts: OPS[name](*(fill(a, ts) for a in args))


def copies(tensors: list[Tensor], grad: bool) -> list[Tensor]:
    made = []
    for t in tensors:
        c = eager.empty_strided(tuple(t.shape), tuple(t.stride()), dtype=t.dtype)
        c.copy_(t)
        made.append(c.requires_grad_() * 1 if grad and t.dtype.is_floating_point else c)
    return made


def world(fn: Any, tensors: list[Tensor]) -> tuple[list[Any], list[Any]]:
    """(results, gradients of their weighted sum)."""
    results = as_list(fn(*tensors))
    total: Any = 0
    for k, y in enumerate(results):
        if y.requires_grad and y.dtype.is_floating_point and y.numel():
            total = total + (y.to(eager.float64) * (k + 1.5)).sum()
    wanted = [t for t in tensors if t.requires_grad]
    if not isinstance(total, Tensor) or not wanted:
        return results, []
    return results, list(eager.autograd.grad(total, wanted, allow_unused=True))


def compare(got: list[Any], want: list[Any], what: str, layout: bool) -> None:
    assert len(got) == len(want), what
    for a, b in zip(got, want, strict=True):
        if b is None or a is None:
            assert a is b, what
            continue
        assert a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape), what
        assert not layout or tuple(a.stride()) == tuple(b.stride()), f"{what}: strides {a.stride()} for {b.stride()}"
        rtol, atol = TOLERANCE.get(b.dtype.itemsize, (0, 0)) if b.dtype.is_floating_point else (0, 0)
        x, y = (t.detach().to(eager.float64) if t.dtype is eager.bfloat16 else t.detach() for t in (a, b))
        np.testing.assert_allclose(x._array, y._array, rtol=rtol, atol=atol, err_msg=what, equal_nan=True)


def check(name: str, grad: bool, keep: tuple[str, ...] = ()) -> None:
    for number, args in enumerate(samples_of(name, eager.float32)):
        originals, what = tensors_in(args), f"{name} sample {number}"
        fn = caller(name, args)
        theirs, ours = copies(originals, grad), copies(originals, grad)
        decompositions = Decompositions(keep=frozenset(keep))

        def compiled(*tensors: Tensor) -> Any:
            run = aot_compile(capture(fn, len(tensors)), fakes_of(tensors), interpret, decompositions=decompositions)
            return run(*tensors)

        eager.manual_seed(1)
        try:
            want = world(fn, theirs)
        except (NotImplementedError, RuntimeError, IndexError, ValueError) as refusal:
            assert grad or OPS[name].mutates, f"{what}: eager refuses its own sample"
            with pytest.raises(type(refusal)):
                world(compiled, ours)
            continue
        eager.manual_seed(1)
        got = world(compiled, ours)
        compare(got[0], want[0], what, layout=True)
        compare(got[1], want[1], f"{what}, gradient", layout=False)
        compare(ours, theirs, f"{what}, inputs", layout=True)
        assert aliasing([*ours, *got[0]]) == aliasing([*theirs, *want[0]]), what


@pytest.mark.parametrize("name", NAMES)
def test_forward(name):
    check(name, grad=False)


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].kind not in (Kind.CREATION, Kind.RANDOM, Kind.EFFECT)])
def test_gradient(name):
    check(name, grad=True)


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_kept_whole(name):
    check(name, grad=True, keep=(name,))
