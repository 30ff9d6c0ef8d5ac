"""`out=` of functions with several results, and arguments under the names that torch has for them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

A = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
LU, PIVOTS = torch.linalg.lu_factor(A)
H, TAU = torch.geqrf(A)
CALLS: dict[str, Callable[..., Any]] = {
    "aminmax": lambda **kw: torch.aminmax(A, dim=1, **kw), "geqrf": lambda **kw: torch.geqrf(A, **kw),
    "lu_unpack": lambda **kw: torch.lu_unpack(LU, PIVOTS, **kw), "nan_to_num": lambda **kw: torch.nan_to_num(A, **kw),
    "narrow_copy": lambda **kw: torch.narrow_copy(A, 0, 1, 2, **kw), "ormqr": lambda **kw: torch.ormqr(H, TAU, A, **kw),
    "qr": lambda **kw: torch.qr(A, **kw), "slogdet": lambda **kw: torch.slogdet(A, **kw), "svd": lambda **kw: torch.svd(A, **kw),
    "triangular_solve": lambda **kw: torch.triangular_solve(A, A, **kw),
    "nonzero_static": lambda **kw: torch.nonzero_static(A, size=3, **kw),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_results_are_written_to_the_given_tensors(name: str) -> None:
    call = CALLS[name]
    expected = call()
    several = isinstance(expected, tuple)
    outs = [torch.empty(0, dtype=t.dtype) for t in (expected if several else [expected])]
    found = call(out=tuple(outs) if several else outs[0])
    for r, o, e in zip(found if several else [found], outs, expected if several else [expected], strict=True):
        assert r is o and torch.equal(o, e)
    wrong = [torch.empty(0, dtype=torch.float16 if t.dtype.is_floating_point else torch.int8) for t in outs]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        call(out=tuple(wrong) if several else wrong[0])


def test_parts_by_either_name() -> None:
    x, y = torch.arange(7), torch.ones(2, 4, 2)
    assert [p.tolist() for p in torch.tensor_split(x, sections=3)] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [p.tolist() for p in x.tensor_split(indices=(2, 3))] == [[0, 1], [2], [3, 4, 5, 6]]
    assert [p.shape[1] for p in torch.hsplit(y, sections=2)] == [2, 2] and [p.shape[1] for p in y.hsplit(indices=(1,))] == [1, 3]
    assert [p.shape[0] for p in y.vsplit(sections=2)] == [1, 1] and [p.shape[2] for p in torch.dsplit(y, indices=[1])] == [1, 1]
    for call in (lambda: torch.tensor_split(x), lambda: torch.tensor_split(x, 2, sections=3), lambda: torch.hsplit(y)):
        with pytest.raises(TypeError, match="received an invalid combination of arguments"):
            call()


def test_axes_and_types_by_name() -> None:
    assert torch.swapaxes(torch.ones(2, 3), axis0=0, axis1=1).shape == (3, 2) == torch.ones(2, 3).swapaxes(axis0=-1, axis1=0).shape
    assert torch.ones(2, 3).swapaxes_(0, 1).shape == (3, 2) and torch.swapdims(torch.ones(2, 3), dim0=0, dim1=1).shape == (3, 2)
    assert torch.promote_types(type1=torch.int8, type2=torch.float16) is torch.float16


def test_a_forked_generator_goes_back() -> None:
    torch.manual_seed(3)
    before = torch.rand(2)
    torch.manual_seed(3)
    for kw in ({}, {"devices": []}, {"devices": [0], "device_type": "cuda"}, {"devices": ["cuda:0"]}):
        with torch.random.fork_rng(**kw):
            torch.rand(5)
        with torch.random.fork_rng(enabled=False, device_type="cpu"):
            pass
    assert torch.equal(torch.rand(2), before)


def test_modules_of_devices() -> None:
    assert torch.get_device_module("cpu") is torch.cpu and torch.get_device_module("cuda:1") is torch.cuda
    assert torch.get_device_module() in (torch.cpu, torch.cuda)
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module"):
        torch.get_device_module("meta")
    torch.set_default_device(device="meta")
    try:
        assert torch.zeros(2).is_meta
    finally:
        torch.set_default_device(None)
