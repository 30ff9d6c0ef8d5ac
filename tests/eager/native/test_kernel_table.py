"""The table of native kernels, and their convention: a kernel writes into memory that its caller gives."""
from __future__ import annotations

import pytest

import eager as torch
from eager import _native
from eager.optable import native_kernels
from eager.optable.native_kernels import NATIVE_KERNELS
from eager.optable.table import OPS


def test_the_header_matches_the_table():
    assert native_kernels.PATH.read_text() == native_kernels.source(), "run python -m eager.optable.native_kernels"


@pytest.mark.parametrize("kernel", NATIVE_KERNELS, ids=lambda k: k.op)
def test_every_declared_kernel_is_bound_to_its_op(kernel):
    assert (OPS[kernel.op]._native_kernel >= 0) is kernel.makes_results
    if kernel.writes_target:
        assert OPS[f"{kernel.op}_"].base is OPS[kernel.op]


def test_ops_without_a_declaration_have_no_kernel():
    declared = {k.op for k in NATIVE_KERNELS if k.makes_results}
    assert {name for name, op in OPS.items() if op._native_kernel >= 0} == declared


@pytest.mark.parametrize(("method", "args"), [
    ("clamp_", (0.25, 0.75)), ("masked_fill_", (torch.tensor([True, False, True, False]), 3.0)),
    ("index_put_", ((torch.tensor([1, 3]),), torch.tensor([5.0, 6.0]))), ("index_add_", (0, torch.tensor([0, 0]), torch.ones(2))),
    ("copy_", (torch.arange(4.0),)), ("fill_", (2.0,)),
])  # fmt: skip
def test_in_place_kernels_write_the_target(method, args):
    """The same values as out of place, at the same address, with the write counted."""
    x = torch.rand(4)
    want = getattr(x.clone(), method)(*args)
    address, version, references = x.data_ptr(), x._version, x.untyped_storage().data_ptr()
    assert getattr(x, method)(*args) is x
    assert (x.data_ptr(), x.untyped_storage().data_ptr()) == (address, references) and x._version == version + 1
    assert torch.equal(x, want)


def test_a_kernel_refuses_a_target_that_its_operands_share():
    """Dispatch decides such a call: here it raises, as torch's does."""
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError):
        x[:5].masked_fill_(x[1:] > 2, x[1:2].squeeze(0)).add_(x[1:])


def test_a_kernel_of_other_arguments_leaves_the_call_to_dispatch():
    assert _native.run_kernel(OPS["softmax"], (torch.ones(2, 3), 0)) is None
    assert _native.run_kernel(OPS["softmax"], (torch.ones(2, 3),)) is None
