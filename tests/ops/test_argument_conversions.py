"""Arguments of other types that torch converts: Python types instead of dtypes, numbers instead of tensors in arithmetic."""
from __future__ import annotations

import pytest

import eager as torch

_TYPES = [(bool, torch.bool), (int, torch.int64), (float, torch.float64), (complex, torch.complex128)]
_MADE = {
    "ones": lambda t: torch.ones(2, dtype=t),
    "full": lambda t: torch.full((2,), 1, dtype=t),
    "tensor": lambda t: torch.tensor([1, 0], dtype=t),
    "zeros_like": lambda t: torch.zeros_like(torch.ones(2), dtype=t),
    "new_zeros": lambda t: torch.ones(2).new_zeros(2, dtype=t),
    "eye": lambda t: torch.eye(2, dtype=t),
    "to": lambda t: torch.ones(2).to(t),
    "to a dtype by name": lambda t: torch.ones(2).to(dtype=t),
    "to a device and dtype": lambda t: torch.ones(2).to("cpu", t),
    "sum": lambda t: torch.ones(2).sum(dtype=t),
    "cumsum": lambda t: torch.ones(2).cumsum(0, dtype=t),
    "as_tensor": lambda t: torch.as_tensor([1], dtype=t),
}


@pytest.mark.parametrize("name", _MADE)
@pytest.mark.parametrize(("given", "meant"), _TYPES)
def test_python_types_are_accepted_as_dtypes(name: str, given: type, meant: torch.dtype) -> None:
    got, want = _MADE[name](given), _MADE[name](meant)
    assert got.dtype is meant
    assert torch.equal(got, want)
    compiled = torch.compile(lambda: _MADE[name](given))()
    assert compiled.dtype is meant
    assert torch.equal(compiled, want)


def test_a_view_with_a_python_type_reinterprets_the_bytes():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert torch.equal(x.view(int), x.view(torch.int64))
    assert x.view(int).data_ptr() == x.data_ptr()


def test_to_a_python_type_returns_a_tensor_of_that_dtype_itself():
    x = torch.arange(3)
    assert x.to(int) is x
    assert x.to(dtype=int) is x


def test_random_functions_draw_the_same_numbers_for_a_python_type_and_its_dtype():
    torch.manual_seed(3)
    got = torch.randn(4, dtype=float), torch.randint(0, 9, (4,), dtype=int), torch.rand(3)
    torch.manual_seed(3)
    want = torch.randn(4, dtype=torch.float64), torch.randint(0, 9, (4,), dtype=torch.int64), torch.rand(3)
    assert all(torch.equal(a, b) and a.dtype is b.dtype for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("wrong", [str, list, "float32", None.__class__])
def test_other_types_are_refused_as_dtypes(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not"):
        torch.ones(2, dtype=wrong)
    with pytest.raises(ValueError, match="invalid type: 'int'"):
        torch.ones(2).type(int)


_SUMS = {
    "div": (lambda: torch.div(7, 2), 3.5, torch.float32),
    "div, truncated": (lambda: torch.div(-7, 2, rounding_mode="trunc"), -3, torch.int64),
    "div, floored": (lambda: torch.div(-7, 2, rounding_mode="floor"), -4, torch.int64),
    "floor_divide": (lambda: torch.floor_divide(7.5, 2), 3.0, torch.float32),
    "add": (lambda: torch.add(1, 2, alpha=3), 7, torch.int64),
    "add of a bool": (lambda: torch.add(True, 2), 3, torch.int64),
    "sub": (lambda: torch.subtract(3, 5), -2, torch.int64),
    "mul": (lambda: torch.mul(2, 3.5), 7.0, torch.float32),
    "mul, complex": (lambda: torch.multiply(1j, 2), 2j, torch.complex64),
}


@pytest.mark.parametrize("name", _SUMS)
def test_arithmetic_functions_accept_numbers_for_all_operands(name: str) -> None:
    call, value, dtype = _SUMS[name]
    for result in (call(), torch.compile(call)()):
        assert result.dtype is dtype
        assert result.shape == ()
        assert result.item() == value


def test_arithmetic_functions_accept_a_symbolic_size():
    @torch.compile(dynamic=True)
    def f(x):
        return x.sum() + torch.div(x.shape[0], 2, rounding_mode="trunc")

    for n in (5, 8, 9):
        assert f(torch.ones(n)).item() == n + n // 2


@pytest.mark.parametrize("name", ["remainder", "pow", "eq", "fmod", "maximum", "logical_and"])
def test_other_functions_require_a_tensor(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(torch, name)(7, 2)
