"""Capture of numbers and sizes that depend on data: the user sees one graph, with eager's results and gradients for any data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.compilation import attempt
from dynamo.report.errors import CaptureError
from tests.dynamic.support import assert_same


@pytest.fixture(autouse=True)
def _captured() -> Iterator[None]:
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def _view_written(x: Any) -> Any:
    y = x * 2
    first = y[0]
    n = x.abs().sum().item()
    first.add_(n)
    return y + first


def _experts(x: Any) -> Any:
    out, choice = torch.zeros_like(x), x.argmax(1)
    for e in range(3):
        rows = torch.where(choice == e)[0]
        out = out.index_add(0, rows, x[rows] * (e + 1))
    return out


def _experts_by_mask(x: Any) -> Any:
    out, choice = torch.zeros_like(x), x.argmax(1)
    for e in range(3):
        out[choice == e] = x[choice == e] * (e + 1)
    return out


def _under_no_grad(x: Any) -> Any:
    with torch.no_grad():
        rows = x.sum(1) > 0
        k = x[rows] * 2
    return (x[rows] * k).sum(0)


def _under_autocast(x: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        y = x[x > 0]
        z = (y.unsqueeze(0) @ y.unsqueeze(1)).float()
    return z + y.sum()


def _asserted(x: Any) -> Any:
    n = (x > 0).sum().item()
    torch._check_is_size(n)
    torch._check(n <= 1000)
    torch._check(n >= 0)
    return torch.ones(n) * n


def _dropped(x: Any) -> Any:
    y = torch.nn.functional.dropout(x, 0.5, True)
    return torch.nn.functional.dropout(y[y > 0] * 2, 0.5, True)


def _written_behind(x: Any) -> Any:
    x = x.detach().clone()
    n = (x > 0).sum().item()
    x.mul_(n)
    return x + 1


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x * x.sum().item(),
    "int item": lambda x: x * (x > 0).sum().item() + 1,
    "two items": lambda x: x * x.sum().item() + x.max().item(),
    "float": lambda x: x / float(x.abs().sum()),
    "int": lambda x: x * int((x * 5).sum()),
    "tolist": lambda x: torch.stack([x * v for v in x[0].tolist()]),
    "nonzero": lambda x: (x > 0).nonzero() * 2,
    "where": lambda x: torch.where(x > 0)[0] + 1,
    "mask": lambda x: x[x > 0] * 2,
    "a number that is an argument of an op": lambda x: torch.full((3,), (x > 0).sum().item() / 2.0) * x.sum(),
    "a number added and kept": lambda x: x.clone().index_fill_(0, torch.tensor([0]), float((x > 0).sum().item())),
    "mask in the middle": lambda x: (x * 3)[x > 0].exp().sum() + x,
    "rows": lambda x: x[x.sum(1) > 0] @ x.t(),
    "two masks": lambda x: x[x > 0] + (x * 2)[x > 0],
    "mask of a mask": lambda x: (lambda y: y[y > y.mean()].sum())(x[x > 0]),
    "masked_select": lambda x: x.masked_select(x > 0).softmax(0),
    "unique": lambda x: torch.unique((x * 2).long()) + 1,
    "unique rows": lambda x: torch.unique(x.detach().sign(), dim=0) + x[:1] * 0,
    "bincount": lambda x: torch.bincount((x.abs() * 3).long().view(-1)) * 2,
    "repeat_interleave": lambda x: torch.repeat_interleave(x, (x[:, 0] > -2).long() * 2, 0) + 1,
    "a size": lambda x: (x[x > 0] * 2).shape[0] + 1,
    "numbers and tensors": lambda x: (x[x > 0].shape[0], x[x > 0].sum(), (x > 0).sum().item(), x[x > 0].numel() * 2),
    "slice": lambda x: x[: (x[:, 0] > 0).sum().item()] * 2,
    "arange": lambda x: torch.arange((x > -5).sum().item()) * 2,
    "view": lambda x: x[x > -9].view(-1, 3).sum(0),
    "cat": lambda x: torch.cat([x[x > 0], x.view(-1)]).softmax(0),
    "none left": lambda x: x.sum() if x[x > 0].numel() == 0 else x * 2,
    "a view is written to": _view_written,
    "experts": _experts,
    "experts by mask": _experts_by_mask,
    "no_grad": _under_no_grad,
    "autocast": _under_autocast,
    "asserted": _asserted,
    "dropout": _dropped,
    "a write behind it": _written_behind,
}


NOT_OF_NOTHING = frozenset(
    {
        "two items",
        "tolist",
        "a number added and kept",
        "view",
        "experts",
        "experts by mask",
        "unique rows",
        "a view is written to",
        "asserted",
    }
)


def _data(n: int, sign: int = 1) -> Any:
    return (torch.arange(3.0 * n).view(n, 3).cos() * sign).requires_grad_()


def _assert_like_eager(made: Any, fn: Any, n: int, sign: int = 1) -> None:
    x, y = _data(n, sign), _data(n, sign)
    torch.manual_seed(n)
    actual = made(x)
    torch.manual_seed(n)
    expected = fn(y)
    assert_same(actual, expected)
    if isinstance(expected, torch.Tensor) and expected.requires_grad:
        for result in (actual, expected):
            (result * result).sum().backward()
        assert_same(x.grad, y.grad)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_gives_eagers_results_and_gradients_for_any_data(name: str) -> None:
    fn = PROGRAMS[name]
    made = torch.compile(fn, backend="aot_eager", fullgraph=True)
    for n in (4, 5, 8, 1, 2, 5, 0):
        if n or name not in NOT_OF_NOTHING:
            for sign in (1, -1):
                _assert_like_eager(made, fn, n, sign)


@pytest.mark.parametrize("name", ["item", "mask in the middle", "two masks", "slice"])
def test_native_code_runs_for_data_dependent_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(error: Exception, *_: Any) -> Any:
        raise error

    monkeypatch.setattr(attempt, "_eager_again", again)  # no assumption fails for these sizes
    fn = PROGRAMS[name]
    made = torch.compile(fn, fullgraph=True)
    for n in (8, 9, 12):
        _assert_like_eager(made, fn, n)


@pytest.mark.parametrize("name", ["item", "mask", "slice", "two masks"])
def test_a_break_behind_it_takes_the_numbers_along(name: str) -> None:
    def fn(x: Any) -> Any:
        n = (x > 0).sum().item()
        y = PROGRAMS[name](x)
        torch._dynamo.graph_break()
        z = y * n
        return z[z > 1] + n

    made = torch.compile(fn, backend="aot_eager")
    for n in (4, 5, 1, 0, 7):
        _assert_like_eager(made, fn, n)


def test_only_data_decides_a_branch() -> None:
    def fn(x: Any) -> Any:
        n = (x > 0).sum().item()
        return x * n if n > 5 else x - n

    with pytest.raises(CaptureError, match=r"Could not guard on data-dependent expression u\d+ > 5 \(unhinted: u\d+ > 5\)"):
        torch.compile(fn, backend="aot_eager", fullgraph=True)(_data(3))
    made = torch.compile(fn, backend="aot_eager")
    for n in (3, 4, 9, 1):
        _assert_like_eager(made, fn, n)
        _assert_like_eager(made, fn, n, -1)
    assert dynamo.explain(fn)(_data(3)).breaks[0].cause.id == "data-dependent-branch"


def test_an_assertion_decides_a_branch_and_is_checked() -> None:
    def fn(x: Any) -> Any:
        n = (x > 0).sum().item()
        torch._check(n > 5, lambda: f"{n} are too few")
        return x * n if n > 5 else x - n

    made = torch.compile(fn, backend="aot_eager", fullgraph=True)
    for n in (9, 12):
        _assert_like_eager(made, fn, n)
    with pytest.raises(RuntimeError, match="are too few"):
        made(_data(2))


def test_a_write_to_an_input_before_it_breaks_the_graph() -> None:
    """If an assumption about data fails, the program runs again in eager, so that it must not have written to an input."""

    def fn(x: Any) -> Any:
        x.add_(1)
        return x[x > 0] * 2

    with pytest.raises(CaptureError, match="data"):
        torch.compile(fn, backend="aot_eager", fullgraph=True)(_data(3).detach())
    made = torch.compile(fn, backend="aot_eager")
    for n in (3, 1, 0):
        x, y = _data(n).detach(), _data(n).detach()
        assert_same(made(x), fn(y))
        assert_same(x, y)


@pytest.mark.parametrize("names", ["capture_scalar_outputs", "capture_dynamic_output_shape_ops"])
def test_each_setting_is_separate(names: str) -> None:
    number, mask = PROGRAMS["item"], PROGRAMS["mask"]
    with torch._dynamo.config.patch({names: False}):
        refused, taken = (number, mask) if names == "capture_scalar_outputs" else (mask, number)
        with pytest.raises(CaptureError, match="data"), torch._dynamo.error_on_graph_break(True):
            torch.compile(refused, backend="aot_eager")(_data(3))  # fullgraph alone would capture the number
        _assert_like_eager(torch.compile(taken, backend="aot_eager", fullgraph=True), taken, 3)


@pytest.mark.parametrize("select", [lambda x, m: x[m], torch.masked_select, lambda x, m: m.nonzero()])
def test_a_mask_written_between_two_calls_gives_another_size(select: Any) -> None:
    """Equal calls share a symbol for their size. A write to the mask between two calls makes them unequal."""

    def fn(x: Any, mask: Any) -> Any:
        mask = mask.clone()
        first = select(x, mask)
        mask.logical_not_()
        second = select(x, mask)
        return first * 2, second * 3, first.shape[0], second.shape[0]

    made = torch.compile(fn, backend="aot_eager", fullgraph=True)
    for n in (5, 6, 9):
        x = torch.arange(float(n))
        got, expected = made(x, x < 3), fn(x, x < 3)
        assert got[2:] == expected[2:]
        assert_same(got[:2], expected[:2])


def test_no_recompilation_for_other_data() -> None:
    made = torch.compile(PROGRAMS["mask in the middle"], backend="aot_eager", fullgraph=True, dynamic=True)
    made(_data(4))
    with torch.compiler.set_stance("fail_on_recompile"):
        for n in (5, 8, 30):
            _assert_like_eager(made, PROGRAMS["mask in the middle"], n)
