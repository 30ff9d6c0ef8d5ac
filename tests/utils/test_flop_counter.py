"""`utils.flop_counter` and `utils.module_tracker`. The numbers are torch 2.13's for the same calls."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from eager.utils.flop_counter import FlopCounterMode, register_flop_formula

import eager as torch
from eager.nn import functional as F
from eager.utils import flop_counter
from eager.utils.module_tracker import ModuleTracker

ATEN = torch.ops.aten
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], dict[str, int], dict[str, int]]] = {
    "linear": (F.linear, [(2, 3, 4), (5, 4), (5,)], {"aten.addmm": 240}, {"aten.mm": 480}),
    "linear without bias": (F.linear, [(2, 3, 4), (5, 4)], {"aten.mm": 240}, {"aten.mm": 480}),
    "broadcast product": (torch.matmul, [(2, 3, 4), (4, 5)], {"aten.mm": 240}, {"aten.mm": 480}),
    "bmm": (torch.bmm, [(2, 3, 4), (2, 4, 5)], {"aten.bmm": 240}, {"aten.bmm": 480}),
    "matmul of 4 dims": (torch.matmul, [(2, 6, 3, 4), (2, 6, 4, 5)], {"aten.bmm": 1440}, {"aten.bmm": 2880}),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [(2, 3, 4), (2, 4, 5)], {"aten.bmm": 240}, {"aten.bmm": 480}),
    "conv1d": (F.conv1d, [(2, 3, 8), (6, 3, 3)], {"aten.convolution": 1296}, {"aten.convolution_backward": 2592}),
    "strided conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), [(2, 3, 8, 8), (6, 3, 3, 3), (6,)],
                       {"aten.convolution": 10368}, {"aten.convolution_backward": 20736}),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(2, 3, 8, 8), (3, 6, 3, 3)],
                         {"aten.convolution": 41472}, {"aten.convolution_backward": 82944}),
    "pointwise": (torch.mul, [(2, 3), (3,)], {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counts_of_forward_and_backward(name: str) -> None:
    fn, shapes, forward, backward = CASES[name]
    given = [torch.randn(*s, requires_grad=True) for s in shapes]
    with FlopCounterMode(display=False) as counter:
        y = fn(*given)
        assert {str(op): n for op, n in counter.get_flop_counts().get("Global", {}).items()} == forward
        y.sum().backward()
    both = {op: forward.get(op, 0) + backward.get(op, 0) for op in {**forward, **backward}}
    assert {str(op): n for op, n in counter.get_flop_counts().get("Global", {}).items()} == both
    assert counter.get_total_flops() == sum(both.values())


def test_attention_counts_its_products() -> None:
    q, k, v = (torch.randn(1, 2, n, d, requires_grad=True) for n, d in ((3, 4), (5, 4), (5, 6)))
    scores, values = 2 * 2 * 3 * 5 * 4, 2 * 2 * 3 * 5 * 6
    with FlopCounterMode(display=False) as counter:
        y = F.scaled_dot_product_attention(q, k, v)
        assert counter.get_total_flops() == scores + values
        y.sum().backward()
    assert counter.get_total_flops() == scores + values + 3 * scores + 2 * values


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5))
        self.head = torch.nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


TABLE = """\
Module                          FLOP    % Total
---------------------------  -------  ---------
Net                          39.864K    100.00%
- aten.convolution           15.552K     39.01%
- aten.addmm                  2.920K      7.32%
- aten.mm                     5.840K     14.65%
- aten.convolution_backward  15.552K     39.01%
Net.body                     39.744K     99.70%
- aten.convolution           15.552K     39.01%
- aten.addmm                  2.880K      7.22%
- aten.mm                     5.760K     14.45%
- aten.convolution_backward  15.552K     39.01%
Net.head                      0.120K      0.30%
- aten.addmm                  0.040K      0.10%
- aten.mm                     0.080K      0.20%
"""


def test_a_table_of_modules(capsys: pytest.CaptureFixture[str]) -> None:
    with FlopCounterMode() as counter:
        Net()(torch.randn(2, 3, 8, 8)).sum().backward()
    assert capsys.readouterr().out == TABLE
    counts = {module: {str(op): n for op, n in found.items()} for module, found in counter.get_flop_counts().items()}
    assert counts["Net.body.2"] == {"aten.addmm": 2880, "aten.mm": 5760}
    assert counts["Net.body.0"] == {"aten.convolution": 15552, "aten.convolution_backward": 15552}
    assert counts["Global"] == counts["Net"] and set(counts) == {"Global", "Net", "Net.body", "Net.body.0", "Net.body.2", "Net.head"}
    with counter:
        Net()(torch.randn(2, 3, 8, 8))
        torch.mm(torch.ones(2000, 300), torch.ones(300, 400))
    assert capsys.readouterr().out.splitlines()[2].split() == ["Global", "480.018M", "100.00%"]
    with FlopCounterMode():
        torch.ones(2) + 1
    assert capsys.readouterr().out.splitlines()[2].split() == ["Global", "0", "0%"]


def test_formulas_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flop_counter, "flop_registry", dict(flop_counter.flop_registry))
    seen: list[Any] = []

    @register_flop_formula([ATEN.sin, ATEN.mul])
    def by_shape(*shapes: Any, out_shape: Any, **kwargs: Any) -> int:
        seen.append((*shapes, out_shape))
        return 7

    def raw(x: Any, out_val: Any) -> int:
        return int(out_val.numel())

    raw._get_raw = True  # type: ignore[attr-defined]
    with FlopCounterMode(display=False, custom_mapping={ATEN.cos: raw, ATEN.mm: lambda a, b, out_shape: 1}) as counter:
        torch.ones(2, 3).sin() * torch.ones(3)
        torch.ones(4).cos()
        F.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert counter.get_flop_counts()["Global"] == {ATEN.sin: 7, ATEN.mul: 7, ATEN.cos: 4, ATEN.mm: 1}
    assert seen == [((2, 3), (2, 3)), ((2, 3), (3,), (2, 3))]
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.sin"):
        register_flop_formula(ATEN.sin)(by_shape)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(torch.sin)(by_shape)


def test_the_modules_that_run() -> None:
    net, tracker = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()), ModuleTracker()
    seen: list[Any] = []
    net[0].register_forward_pre_hook(lambda module, args: seen.append((sorted(tracker.parents), tracker.is_bw)))

    class Mark(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return g

    net[1].register_forward_pre_hook(lambda module, args: Mark.apply(args[0]))
    with tracker:
        y = net(torch.ones(2, 3, requires_grad=True))
        assert tracker.parents == {"Global"}
        y.sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
        with pytest.raises(RuntimeError):
            net(torch.ones(2, 4))
        assert tracker.parents == {"Global"}  # a module that raises is no longer active
    # This hook runs after the tracker's hook, on the module's input, whose gradient is the last that backward computes.
    assert seen[:2] == [(["Global", "Sequential", "Sequential.0"], False), (["Global", "Sequential", "Sequential.1"], True)]
    net(torch.ones(2, 3))
    assert seen[-1] == (["Global"], False)


@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_backward(transposed: bool) -> None:
    x, w, b = torch.randn(2, 4, 5, 5, requires_grad=True), torch.randn(4, 2, 3, 3, requires_grad=True), torch.randn(4, requires_grad=True)
    y = torch.convolution(x, w, b, [2, 2], [1, 1], [1, 1], transposed, [0, 0], 2)
    g = torch.randn_like(y)
    wanted = torch.autograd.grad(y, (x, w, b), g)
    found = ATEN.convolution_backward(g, x, w, [4], [2, 2], [1, 1], [1, 1], transposed, [0, 0], 2, [True, True, True])
    assert all(torch.equal(a, c) for a, c in zip(wanted, found, strict=True))
    assert ATEN.convolution_backward(g, x, w, None, [2, 2], [1, 1], [1, 1], transposed, [0, 0], 2, [False, False, False]) == (None,) * 3
