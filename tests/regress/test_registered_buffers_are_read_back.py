"""Buffers that a module registers while it is captured: reads that follow see them."""

from __future__ import annotations

import pytest

import eager as torch
from eager import nn


class Cached(nn.Module):
    """A table made by the first call that needs it, kept as a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", None, persistent=False)

    def make(self, n: int) -> torch.Tensor:
        if self.table is not None and self.table.shape[0] >= n:
            return self.table[:n]
        self.register_buffer("table", torch.arange(n) * 2.0, persistent=False)
        return self.table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.make(x.shape[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_buffer_registered_in_the_call_is_read_back(backend: str) -> None:
    plain, module = Cached(), Cached()
    compiled = torch.compile(module, backend=backend)
    for n in (3, 2, 5, 4):
        assert torch.equal(compiled(torch.ones(n)), plain(torch.ones(n)))
        assert torch.equal(module.table, plain.table)


def test_a_name_registered_in_the_call_is_then_written_as_a_buffer() -> None:
    class Counter(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not hasattr(self, "seen"):
                self.register_buffer("seen", torch.zeros(1))
            self.seen = self.seen + 1
            return x * self.seen

    plain, module = Counter(), Counter()
    compiled = torch.compile(module, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), plain(torch.ones(2)))
    assert list(dict(module.named_buffers())) == list(dict(plain.named_buffers())) == ["seen"]
    assert "seen" not in vars(module)
