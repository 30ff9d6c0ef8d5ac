"""Memory formats and layouts as arguments give torch's strides, or are refused."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch

ROWS, CHANNELS = (60, 20, 5, 1), (60, 1, 15, 3)
# Inputs, and the strides of torch's result for no format or preserve_format.
INPUTS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "rows": (torch.randn(2, 3, 4, 5), ROWS),
    "transposed": (torch.randn(2, 5, 4, 3).transpose(1, 3), (60, 1, 3, 12)),
    "channels last": (torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), CHANNELS),
    "expanded": (torch.randn(1, 3, 1, 1).expand(2, 3, 4, 5), ROWS),
    "sliced": (torch.randn(4, 6, 4, 5)[::2, ::2], ROWS),
}
FORMATS = (None, torch.preserve_format, torch.contiguous_format, torch.channels_last)
COPIES = {
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "empty_like": torch.empty_like, "rand_like": torch.rand_like,
    "randn_like": torch.randn_like, "full_like": lambda x, **kw: torch.full_like(x, 2.0, **kw),
    "randint_like": lambda x, **kw: torch.randint_like(x, 3, **kw), "clone": torch.clone,
    "to another dtype": lambda x, **kw: x.to(torch.float64, **kw), "double": lambda x, **kw: x.double(**kw),
}  # fmt: skip


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("function", COPIES)
def test_a_new_tensor_has_the_requested_format(function: str, name: str, memory_format: Any) -> None:
    x, preserved = INPUTS[name]
    found = COPIES[function](x, **({} if memory_format is None else {"memory_format": memory_format}))
    expected = {torch.contiguous_format: ROWS, torch.channels_last: CHANNELS}.get(memory_format, preserved)
    assert found.stride() == expected
    if function in ("clone", "to another dtype", "double"):
        assert torch.equal(found.float(), x)
    compiled = torch.compile(COPIES[function], backend="aot_eager")
    assert compiled(x, **({} if memory_format is None else {"memory_format": memory_format})).stride() == expected


@pytest.mark.parametrize("name", INPUTS)
def test_to_a_memory_format_returns_the_tensor_itself_if_it_has_the_format(name: str) -> None:
    x, _ = INPUTS[name]
    assert x.to(memory_format=torch.preserve_format) is x
    kept = x.to(memory_format=torch.contiguous_format)
    assert (kept is x) is (name != "channels last")  # torch compares the suggested format, not the strides
    assert x.to(memory_format=torch.channels_last).stride() == CHANNELS
    assert x.to(memory_format=torch.contiguous_format, copy=True).stride() == ROWS


def test_five_dims_have_a_channels_last_format_too() -> None:
    x = torch.randn(2, 3, 4, 5, 6)
    last = x.contiguous(memory_format=torch.channels_last_3d)
    assert last.stride() == (360, 1, 90, 18, 3) and torch.equal(last, x)
    assert x.clone(memory_format=torch.channels_last_3d).stride() == last.stride()
    assert torch.empty(2, 3, 4, 5, 6, memory_format=torch.channels_last_3d).stride() == last.stride()


def test_formats_that_do_not_fit_are_refused() -> None:
    x = torch.randn(2, 3, 4)
    for call in (lambda f: torch.empty(2, 3, 4, memory_format=f), lambda f: torch.zeros_like(x, memory_format=f),
                 lambda f: x.clone(memory_format=f), lambda f: x.contiguous(memory_format=f)):  # fmt: skip
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
            call(torch.channels_last)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        torch.empty(2, 3, memory_format=torch.preserve_format)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        x.transpose(0, 2).contiguous(memory_format=torch.preserve_format)
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == CHANNELS


MAKERS = {
    "zeros": lambda **kw: torch.zeros(2, **kw), "ones": lambda **kw: torch.ones(2, **kw), "empty": lambda **kw: torch.empty(2, **kw),
    "full": lambda **kw: torch.full((2,), 1.0, **kw), "arange": lambda **kw: torch.arange(3.0, **kw),
    "linspace": lambda **kw: torch.linspace(0, 1, 3, **kw), "logspace": lambda **kw: torch.logspace(0, 1, 3, **kw),
    "eye": lambda **kw: torch.eye(2, **kw), "rand": lambda **kw: torch.rand(2, **kw), "randn": lambda **kw: torch.randn(2, **kw),
    "randint": lambda **kw: torch.randint(3, (2,), dtype=torch.float32, **kw), "normal": lambda **kw: torch.normal(0.0, 1.0, (2,), **kw),
    "randperm": lambda **kw: torch.randperm(3, dtype=torch.float32, **kw), "zeros_like": lambda **kw: torch.zeros_like(torch.ones(2), **kw),
    "rand_like": lambda **kw: torch.rand_like(torch.ones(2), **kw), "scalar_tensor": lambda **kw: torch.scalar_tensor(1.0, **kw),
    "randint_like": lambda **kw: torch.randint_like(torch.ones(2), 3, **kw),
    "fftfreq": lambda **kw: torch.fft.fftfreq(4, **kw), "new_empty_strided": lambda **kw: torch.ones(2).new_empty_strided((2,), (1,), **kw),
    "new_full": lambda **kw: torch.ones(2).new_full((2,), 1.0, **kw),
    "new_zeros": lambda **kw: torch.ones(2).new_zeros(2, **kw), "empty_strided": lambda **kw: torch.empty_strided((2,), (1,), **kw),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_every_option_is_applied_or_refused(name: str) -> None:
    made = MAKERS[name](layout=torch.strided, pin_memory=False, requires_grad=True)
    assert made.requires_grad and made.layout is torch.strided
    with pytest.raises(NotImplementedError, match=r"layout torch.sparse_coo is not implemented here"):
        MAKERS[name](layout=torch.sparse_coo)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'bogus'|invalid combination of arguments - got \(.*bogus=int\)"):
        MAKERS[name](bogus=1)


def test_integers_cannot_require_grad() -> None:
    for make in (lambda: torch.randperm(3, requires_grad=True), lambda: torch.zeros(2, dtype=torch.int64, requires_grad=True)):
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
            make()


def test_coordinates_of_triangles() -> None:
    for offset in (-2, 0, 1):
        for row, col in ((3, 4), (4, 2), (0, 3)):
            lower = [(i, j) for i in range(row) for j in range(col) if j - i <= offset]
            upper = [(i, j) for i in range(row) for j in range(col) if j - i >= offset]
            assert torch.tril_indices(row, col, offset).t().tolist() == [list(p) for p in lower]
            assert torch.triu_indices(row, col, offset).t().tolist() == [list(p) for p in upper]
