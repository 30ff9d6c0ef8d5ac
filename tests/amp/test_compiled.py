"""Autocast and compiled code: blocks of autocast around a compiled call, inside a compiled function, and both."""

from __future__ import annotations

import pytest

import eager as torch
from eager.nn import functional as F

BACKENDS = ("eager", "aot_eager", "inductor")


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def gradients(m: torch.nn.Module, loss: torch.Tensor) -> list[torch.Tensor]:
    m.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in m.parameters()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_follows_the_autocast_around_it(backend: str) -> None:
    m = model()
    x, y = torch.randn(5, 8), torch.tensor([0, 1, 2, 3, 0])

    def loss(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = m(x)
        return F.cross_entropy(z, y), z

    compiled = torch.compile(loss, backend=backend)
    for on, low in ((True, torch.bfloat16), (False, torch.bfloat16), (True, torch.float16), (True, torch.bfloat16)):
        with torch.autocast("cpu", enabled=on, dtype=low):
            expected, got = loss(x, y), compiled(x, y)
        assert got[1].dtype is expected[1].dtype is (low if on else torch.float32) and got[0].dtype is torch.float32
        torch.testing.assert_close(got[0], expected[0], rtol=2e-2 if on else 1e-5, atol=1e-2 if on else 1e-6)
        for g, e in zip(gradients(m, got[0]), gradients(m, expected[0]), strict=True):
            assert g.dtype is torch.float32
            torch.testing.assert_close(g, e, rtol=2e-2 if on else 1e-5, atol=1e-2 if on else 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_autocast_inside_a_compiled_function(backend: str) -> None:
    m = model()
    x = torch.randn(5, 8)

    def f(x: torch.Tensor, on: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        before = x @ x.T
        with torch.autocast("cpu", enabled=on):
            inside = m(x)
        return before, inside, inside.float() @ inside.float().T

    compiled = torch.compile(f, backend=backend)
    for on in (True, False, True):
        for got, expected in zip(compiled(x, on), f(x, on), strict=True):
            assert got.dtype is expected.dtype
            torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)
        assert not torch.is_autocast_enabled("cpu")


def test_autocast_turned_off_inside_a_compiled_function() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", enabled=False):
            exact = x @ x.T
        return exact, x @ x.T

    compiled = torch.compile(f)
    x = torch.randn(4, 4)
    with torch.autocast("cpu"):
        exact, low = compiled(x)
        assert torch.is_autocast_enabled("cpu")
    assert exact.dtype is torch.float32 and low.dtype is torch.bfloat16


def test_casts_are_not_applied_again_where_a_float32_op_is_made_of_products() -> None:
    """cdist is on the float32 list but decomposes into products, which are on the low-precision list. Compiled code must
    compute it in float32."""
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, x)

    x = torch.randn(6, 3)
    with torch.autocast("cpu"):
        expected = f(x)
        for backend in BACKENDS:
            got = torch.compile(f, backend=backend)(x)
            assert got.dtype is torch.float32
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_a_block_of_autocast_is_captured_without_a_break() -> None:
    m = model()

    @torch.autocast("cpu", dtype=torch.float16)
    def decorated(x: torch.Tensor) -> torch.Tensor:
        return x @ x.T

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, bool]:
        with torch.autocast("cpu"):
            y = m(x)
            with torch.autocast(device_type="cpu", enabled=False):
                z = y.float() @ y.float().T
            inside = torch.is_autocast_enabled("cpu")
        return y, z, decorated(x), inside

    x = torch.randn(5, 8)
    for backend in BACKENDS:
        got = torch.compile(f, backend=backend, fullgraph=True)(x)
        assert [t.dtype for t in got[:3]] == [torch.bfloat16, torch.float32, torch.float16] and got[3] is True
        torch.testing.assert_close(got, f(x), rtol=2e-2, atol=2e-2)
        assert not torch.is_autocast_enabled("cpu")


def test_the_default_precision_is_guarded() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return x @ x.T

    x = torch.randn(3, 3)
    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert compiled(x).dtype is torch.bfloat16
    try:
        torch.set_autocast_dtype("cpu", torch.float16)
        assert compiled(x).dtype is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    assert compiled(x).dtype is torch.bfloat16


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_graph_break_inside_a_block_of_autocast_keeps_it_open(backend: str) -> None:
    m = model()
    seen = []

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu"):
            y = m(x)
            torch._dynamo.graph_break()
            seen.append(torch.is_autocast_enabled("cpu"))
            z = m(x) + 1
        return y, z, x @ x.T

    x = torch.randn(5, 8)
    got = torch.compile(f, backend=backend)(x)
    assert [t.dtype for t in got] == [torch.bfloat16, torch.bfloat16, torch.float32] and seen == [True]
    assert not torch.is_autocast_enabled("cpu")


def test_an_error_inside_a_captured_block_closes_it() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return x @ x

    compiled = torch.compile(f, backend="eager")
    with pytest.raises(RuntimeError):
        compiled(torch.ones(2, 3))
    assert not torch.is_autocast_enabled("cpu")
    assert compiled(torch.ones(2, 2)).dtype is torch.bfloat16 and not torch.is_autocast_enabled("cpu")
