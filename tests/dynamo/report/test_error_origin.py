"""An error of a call during capture is the user's if eager raises it too; any other error is reported as a fault of the capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.report import causes
from dynamo.report.errors import UnsupportedUnderFullgraph
from eager.base import logs as _logging


@torch.compiler.allow_in_graph
def fails_without_data(x: Any) -> Any:
    """Raises like an op with a wrong shape rule."""
    if x.is_fake:
        raise ValueError("the rule is wrong")
    return x * 2


def handled(x: Any) -> Any:
    try:
        return fails_without_data(x) + 1
    except ValueError:
        return x - 100


def test_a_fault_of_a_shape_rule_does_not_reach_the_users_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo.reset()
    x, told = torch.arange(3.0), []
    monkeypatch.setattr(_logging, "warn_once", lambda key, text: told.append(text))
    assert torch.compile(handled, backend="eager")(x).tolist() == [1.0, 3.0, 5.0]
    assert any("fails_without_data: its shape rule raises ValueError" in text for text in told)
    reasons = [r for r in dynamo.explain(handled, x).breaks if r.cause is causes.SHAPE_RULE]
    assert len(reasons) == 1
    with pytest.raises(UnsupportedUnderFullgraph, match="the rule is wrong"):
        torch.compile(handled, backend="eager", fullgraph=True)(x)


@pytest.mark.parametrize("wrong", [
    lambda x: x.reshape(7), lambda x: x @ torch.ones(5, 2), lambda x: torch.cat([x, torch.ones(2, 2)]), lambda x: x.sum(4),
    lambda x: torch.nn.functional.conv2d(x, x), lambda x: x.view(torch.int64), lambda x: x[9],
])  # fmt: skip
def test_errors_of_the_user_agree_with_eager_and_are_caught(wrong: Any) -> None:
    def run(x: Any) -> Any:
        before = torch.rand(2)
        try:
            wrong(x)
        except Exception as error:  # noqa: BLE001 - to compare
            return type(error), str(error), before, torch.rand(2)
        return None

    results = []
    for fn in (run, torch.compile(run, backend="eager")):
        torch.manual_seed(0)
        results.append(fn(torch.ones(2, 3)))
    (kind, text, *drawn), (kind_captured, text_captured, *drawn_captured) = results
    assert (kind, text) == (kind_captured, text_captured)
    assert all(a.equal(b) for a, b in zip(drawn, drawn_captured, strict=True))  # no generator was advanced to find out


def _generator(log: list[str]) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")


def writes_into_a_view_of_a_leaf(x: Any) -> Any:
    row = x[0]
    try:
        row.mul_(2)
    except RuntimeError as error:
        return x + len(str(error))
    return x


def test_an_error_of_a_view_is_checked_on_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo.reset()
    x, told = torch.ones(2, 3, requires_grad=True), []
    monkeypatch.setattr(_logging, "warn_once", lambda key, text: told.append(text))
    compiled = torch.compile(writes_into_a_view_of_a_leaf, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), writes_into_a_view_of_a_leaf(x)) and not told


def test_a_finalizer_that_is_invisible_in_one_call_may_be_visible_in_the_next() -> None:
    def callee(items: Any, log: list[str]) -> None:
        del items
        log.append("dropped")

    def run(x: Any, box: list[Any], log: list[str]) -> Any:
        items = box.pop()
        callee(items, log)
        items = None
        log.append("after")
        return x + 1

    logs = []
    for fn in (run, torch.compile(run, backend="eager")):
        seen: list[list[str]] = []
        for make in (lambda log: 3, lambda log: [4], _generator):
            log: list[str] = []
            made = make(log)
            if hasattr(made, "__next__"):
                next(made)
            box = [made]
            del made
            fn(torch.ones(1), box, log)
            seen.append(log)
        logs.append(seen)
    assert logs[0] == logs[1]
