"""`torch._higher_order_ops.associative_scan`: every prefix, as a loop finds it."""
from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import eager as torch
from eager._higher_order_ops.associative_scan import associative_scan


def _step(left: Any, right: Any) -> Any:
    """Two steps of h' = a * h + b as one."""
    return left[0] * right[0], right[0] * left[1] + right[1]


def _loop(a: Any, b: Any) -> Any:
    h, found = torch.zeros(a.shape[0], a.shape[2]), []
    for i in range(a.shape[1]):
        h = a[:, i] * h + b[:, i]
        found.append(h)
    return torch.stack(found, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16])
def test_recurrence_and_its_gradients(n: int) -> None:
    torch.manual_seed(n)
    a, b = torch.rand(2, n, 3, requires_grad=True), torch.randn(2, n, 3, requires_grad=True)
    got, want = associative_scan(_step, (a, b), dim=1)[1], _loop(a, b)
    torch.testing.assert_close(got, want)
    weight = torch.randn(got.shape)
    grads = [torch.autograd.grad((y * weight).sum(), (a, b), allow_unused=True, materialize_grads=True) for y in (got, want)]
    for g, w in zip(*grads, strict=True):
        torch.testing.assert_close(g, w)


def test_reverse() -> None:
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(associative_scan(torch.add, x, dim=-2, reverse=True), x.flip(1).cumsum(1).flip(1))


def test_generic_sees_elements_without_the_dim() -> None:
    m = torch.randn(3, 6, 3)
    got = associative_scan(torch.mm, m, dim=1, combine_mode="generic")
    want = m[:, 0]
    for i in range(1, 6):
        want = want @ m[:, i]
    torch.testing.assert_close(got[:, -1], want, rtol=1e-4, atol=1e-4)


def test_compiled_whole() -> None:
    a, b = torch.rand(2, 9, 3), torch.randn(2, 9, 3)
    got = torch.compile(lambda a, b: associative_scan(_step, (a, b), 1)[1], fullgraph=True)(a, b)
    torch.testing.assert_close(got, _loop(a, b))


def test_bad_input() -> None:
    x = torch.ones(3, 2)
    with pytest.raises(ValueError, match="Combine_mode must either 'pointwise' or 'generic', but got fast"):
        associative_scan(torch.add, x, 0, combine_mode="fast")
    with pytest.raises(ValueError, match="Expected at least 1 xs leaf"):
        associative_scan(torch.add, [], 0)
    with pytest.raises(ValueError, match="same number of elements along the scan dimension"):
        associative_scan(_step, (x, torch.ones(2, 2)), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        associative_scan(torch.add, x, 2)
    with pytest.raises(RuntimeError, match="combine_fn returned"):
        associative_scan(lambda a, b: (a, b), x, 0)
    with pytest.raises(RuntimeError, match=r"combine_fn returned a tensor of torch\.float64"):
        associative_scan(lambda a, b: (a + b).double(), x, 0)


def test_the_module_and_the_function_have_one_name() -> None:
    """As in torch: libraries import the function from the module and from the package."""
    program = ("import eager.as_torch; eager.as_torch.install()\n"
               "from torch._higher_order_ops import associative_scan as a\n"
               "from torch._higher_order_ops.associative_scan import associative_scan as b\n"
               "assert a is b and callable(a)\n")  # fmt: skip
    subprocess.run([sys.executable, "-c", program], check=True)
