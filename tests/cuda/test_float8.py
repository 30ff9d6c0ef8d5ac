"""8-bit floats on a CUDA device, where CuPy has no kernels for them: stored, moved, cast and multiplied as on the CPU."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F

pytestmark = pytest.mark.usefixtures("on_emulated_device")
TYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


def _numbers(where: str) -> torch.Tensor:
    return torch.tensor([[0.0, 1.1, 440.0, 500.0], [1e-3, -3.0, 61440.0, 1e9], [0.5, 2.0, -0.25, 7.0]], device=where)


def _written(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(3, 4, device=x.device, dtype=x.dtype)
    y.copy_(values)
    y[1] = x[0]
    y[:, 2:].fill_(1.5)
    return y


CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "to": lambda x, w: x, "float": lambda x, w: x.float(), "bfloat16": lambda x, w: x.bfloat16(), "clone": lambda x, w: x.clone(),
    "contiguous": lambda x, w: x.t().contiguous(), "reshape": lambda x, w: x.t().reshape(6, 2), "eq": lambda x, w: x == x.flip(0),
    "float of a view": lambda x, w: x.t()[1:].float(), "isnan": lambda x, w: x.isnan(), "cat": lambda x, w: torch.cat([x, x]),
    "index": lambda x, w: x[torch.tensor([2, 0], device=x.device)], "mask": lambda x, w: x[w > 1],
    "where": lambda x, w: torch.where(w > 1, x, x), "written": _written, "copied": lambda x, w: w.clone().copy_(x),
    "full": lambda x, w: torch.full((2, 3), 1.25, dtype=x.dtype, device=x.device),
    "cpu": lambda x, w: x.t().cpu(), "list": lambda x, w: x[:, ::2].t().tolist(),
}  # fmt: skip


@pytest.mark.parametrize("d", TYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_8_bit_floats_are_the_cpus(name: str, d: Any) -> None:
    wanted, found = (_result(CALLS[name], where, d) for where in ("cpu", "cuda"))
    assert found == wanted


def _result(call: Callable[..., Any], where: str, d: Any) -> Any:
    w = _numbers(where)
    try:
        y = call(w.to(d), w)
    except (RuntimeError, NotImplementedError) as error:
        return type(error)
    return repr(y) if isinstance(y, list) else (str(y.dtype), tuple(y.shape), y.cpu().contiguous().view(torch.uint8).tolist())


def test_products_of_8_bit_floats_are_the_cpus() -> None:
    x, w = torch.randn(4, 8).to(torch.float8_e4m3fn), torch.randn(5, 8).to(torch.float8_e4m3fn)
    one = torch.ones(())
    found = torch._scaled_mm(x.cuda(), w.cuda().t(), one.cuda(), one.cuda(), out_dtype=torch.float32)
    assert torch.allclose(found.cpu(), torch._scaled_mm(x, w.t(), one, one, out_dtype=torch.float32))
    assert torch.equal(F.linear(x.cuda(), w.cuda()).cpu().float(), F.linear(x, w).float())
