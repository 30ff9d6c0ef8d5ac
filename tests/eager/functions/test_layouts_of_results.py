"""Strides of results: code calls `view` on results, so that the strides are part of a function's contract.

Shapes and strides are torch 2.13's for the same calls.
"""
from __future__ import annotations

import numpy as np
import pytest

import eager as torch

EINSUM = [
    ("zfn,nij->zfij", [(2, 3, 4), (4, 5, 6)], (2, 3, 5, 6), (90, 30, 6, 1)),
    ("bam,am->bm", [(2, 8, 9), (8, 9)], (2, 9), (1, 2)),
    ("...am,mai->...ia", [(2, 8, 9), (9, 8, 4)], (2, 4, 8), (4, 1, 8)),
    ("mi,...ma->...ia", [(4, 3), (2, 4, 5)], (2, 3, 5), (5, 10, 1)),
    ("am,...ba->...bm", [(4, 3), (2, 5, 4)], (2, 5, 3), (15, 3, 1)),
    ("bij,bkj->bki", [(2, 3, 4), (2, 5, 4)], (2, 5, 3), (15, 3, 1)),
    ("ij,jk->ki", [(3, 4), (4, 5)], (5, 3), (3, 1)),
    ("bhij,bhjd->bihd", [(2, 3, 4, 6), (2, 3, 6, 5)], (2, 4, 3, 5), (60, 5, 20, 1)),
    ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)], (2, 3, 4, 6), (72, 24, 6, 1)),
    ("i,j->ij", [(3,), (4,)], (3, 4), (4, 1)),
    ("ij->ji", [(3, 4)], (4, 3), (1, 4)),
    ("ii->i", [(3, 3)], (3,), (4,)),
    ("ijk,kl,lm->ijm", [(2, 3, 4), (4, 5), (5, 6)], (2, 3, 6), (18, 6, 1)),
    ("abc,cd->adb", [(2, 3, 4), (4, 5)], (2, 5, 3), (15, 1, 5)),
    ("nchw,oc->nohw", [(2, 3, 4, 5), (6, 3)], (2, 6, 4, 5), (120, 1, 30, 6)),
    ("bnd,hde->bhne", [(2, 4, 6), (3, 6, 5)], (2, 3, 4, 5), (60, 5, 15, 1)),
    ("bhne,hed->bnd", [(2, 3, 4, 5), (3, 5, 6)], (2, 4, 6), (24, 6, 1)),
    ("uvw,zu,zv->zw", [(2, 3, 4), (5, 2), (5, 3)], (5, 4), (4, 1)),
    ("zui,zvj,ijk->zuvk", [(5, 2, 3), (5, 4, 3), (3, 3, 3)], (5, 2, 4, 3), (24, 12, 3, 1)),
    ("b i, b j -> b j i", [(2, 3), (2, 4)], (2, 4, 3), (12, 3, 1)),
    ("nlhd,nshd->nlsh", [(2, 3, 4, 5), (2, 6, 4, 5)], (2, 3, 6, 4), (72, 6, 1, 18)),
    ("nctv,kvw->nkctw", [(2, 3, 4, 5), (2, 5, 6)], (2, 2, 3, 4, 6), (144, 6, 48, 12, 1)),
    ("bchw,bcn->bnhw", [(2, 3, 4, 5), (2, 3, 6)], (2, 6, 4, 5), (120, 20, 5, 1)),
    ("dc,ae->cae", [(1, 4), (2, 5)], (4, 2, 5), (1, 20, 4)),
    ("aeb,dc->ca", [(2, 5, 3), (1, 4)], (4, 2), (1, 4)),
    ("cea,bda->deac", [(4, 5, 2), (3, 1, 2)], (1, 5, 2, 4), (10, 2, 1, 10)),
    ("ecdb,ae->abd", [(5, 4, 1, 3), (2, 5)], (2, 3, 1), (1, 2, 2)),
    ("cabd,da->acb", [(4, 2, 3, 1), (1, 2)], (2, 4, 3), (3, 6, 1)),
    ("lmj,bj,lmi,l->mbi", [(2, 3, 4), (5, 4), (2, 3, 6), (2,)], (3, 5, 6), (30, 6, 1)),
]


@pytest.mark.parametrize(("equation", "shapes", "shape", "strides"), EINSUM)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    given = [torch.randn(*s, dtype=torch.float64) for s in shapes]
    y = torch.einsum(equation, *given)
    assert (tuple(y.shape), y.stride()) == (shape, strides)
    np.testing.assert_allclose(y, np.einsum(equation, *(np.asarray(t) for t in given)), rtol=1e-12, atol=1e-12)
    compiled = torch.compile(lambda *ts: torch.einsum(equation, *ts), fullgraph=True)(*given)
    assert compiled.stride() == strides
    np.testing.assert_allclose(compiled, y, rtol=1e-12, atol=1e-12)


def test_einsum_that_does_not_broadcast_names_the_shapes() -> None:
    with pytest.raises(RuntimeError, match="subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"):
        torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(4, 5))
    with pytest.raises(RuntimeError, match="dimension 0 covered by ellipsis in operand 1 has size 4 which does not broadcast"):
        torch.einsum("...i,...i->...", torch.ones(2, 3), torch.ones(4, 3))
    with pytest.raises(RuntimeError, match="subscript i is repeated for operand but the sizes don't match, 3 != 2"):
        torch.einsum("ii->i", torch.ones(2, 3))


def test_strides_of_size_1_dims_affect_the_layout_of_a_broadcast() -> None:
    a = torch.ones(1, 4)[..., None, None].permute(1, 2, 3, 0)
    b = torch.ones(2, 5)[..., None, None].permute(2, 0, 1, 3)
    assert (a.stride(), b.stride()) == ((1, 1, 1, 4), (1, 5, 1, 1))
    assert (a * b).stride() == torch.atan2(a, b).stride() == (1, 20, 4, 40)
    one, row = torch.empty_strided((1, 1), (1, 1)), torch.empty_strided((1, 3), (1, 1))
    assert (one * row).stride() == (row + one).stride() == (1, 1)
    assert (row * row).stride() == torch.exp(row).stride() == (3, 1)
    assert (one * torch.ones(1, 3)).stride() == (3, 1)


def _reversed(*shape: int) -> torch.Tensor:
    """A tensor whose first dim is the innermost."""
    return torch.randn(*shape[::-1]).permute(*range(len(shape) - 1, -1, -1))


def _channels_last(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).contiguous(memory_format=torch.channels_last)


F = torch.nn.functional
LAYOUTS = {
    "addmm": (lambda c, a, b: torch.addmm(c, a, b), (_reversed(3, 2), _reversed(3, 4), _reversed(4, 2)), (2, 1)),
    "addmm of a column": (lambda c, a, b: torch.addmm(c, a, b, beta=2), (_reversed(3, 1), _reversed(3, 4), _reversed(4, 2)), (2, 1)),
    "baddbmm": (torch.baddbmm, (_reversed(2, 3, 5), _reversed(2, 3, 4), _reversed(2, 4, 5)), (15, 5, 1)),
    "addbmm": (torch.addbmm, (_reversed(3, 5), _reversed(2, 3, 4), _reversed(2, 4, 5)), (5, 1)),
    "logsigmoid": (F.logsigmoid, (_reversed(5, 4),), (4, 1)),
    "dropout": (F.dropout, (_reversed(2, 5, 4),), (1, 2, 10)),
    "dropout of heads": (lambda x: F.dropout(x.transpose(1, 2), 0.3), (torch.randn(2, 3, 4, 5),), (60, 5, 20, 1)),
    "dropout of a tensor with gaps": (F.dropout, (torch.randn(4, 6)[:, ::2],), (3, 1)),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, training=True), (_channels_last(2, 3, 4, 5),), (60, 1, 15, 3)),
    "dropout1d": (lambda x: F.dropout1d(x, training=True), (_reversed(2, 5, 4),), (1, 2, 10)),
    "rrelu": (lambda x: F.rrelu(x, training=True), (_reversed(5, 4),), (4, 1)),
    "randint_like": (lambda x: torch.randint_like(x, 5), (_reversed(5, 4),), (1, 5)),
    "one_hot": (lambda i: F.one_hot(i, 4), (torch.zeros(2, 3, dtype=torch.int64).t(),), (8, 4, 1)),
    **{f"batch_norm {'in training' if training else 'in use'}, {name}":
       (lambda x, training=training: F.batch_norm(x, torch.zeros(4), torch.ones(4), training=training), (x,), strides)
       for training in (True, False)
       for name, x, strides in (
           ("2 dims", _reversed(5, 4), (4, 1)), ("3 dims", _reversed(5, 4, 3), (12, 3, 1)),
           ("of a sequence", torch.randn(5, 3, 4).transpose(1, 2), (12, 3, 1)), ("4 dims", _reversed(5, 4, 3, 2), (24, 6, 2, 1)),
           ("channels last", _channels_last(5, 4, 3, 2), (24, 1, 8, 4)))},
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_functions_of_tensors_in_other_layouts(name: str, compiled: bool) -> None:
    fn, given, strides = LAYOUTS[name]
    y = (torch.compile(fn, fullgraph=True) if compiled else fn)(*given)
    assert y.stride() == strides
    if not any(random in name for random in ("drop", "rand", "rrelu")):
        torch.testing.assert_close(y, fn(*(t.contiguous() for t in given)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_an_image_resized_to_its_own_size_is_a_copy(mode: str, compiled: bool, dtype: torch.dtype) -> None:
    x = torch.arange(24, dtype=dtype).view(1, 2, 3, 4)
    resize = torch.compile(F.interpolate, fullgraph=True) if compiled else F.interpolate
    y = resize(x, size=(3, 4), mode=mode)
    assert torch.equal(x, y) and y.stride() == x.stride() and y.data_ptr() != x.data_ptr()
