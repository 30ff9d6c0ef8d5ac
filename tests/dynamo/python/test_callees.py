"""One record states how a capture treats a callee; one module walks and maps trees of host objects."""

from __future__ import annotations

import collections
import copy
import functools
import logging
import operator
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import dynamo.frames.capture  # noqa: F401 - fills the table of answers
import eager as torch
from dynamo.policy import callees
from dynamo.policy.callees import Action, resolve
from dynamo.report import causes
from dynamo.report.errors import ForbiddenCall
from dynamo.values.trees import map_tree
from fxir.ir.node import walk_tree


def plain(x: int) -> int:
    return x


class Plain:
    pass


@pytest.mark.parametrize(
    ("target", "action"),
    [
        (plain, Action.FOLLOW), (Plain, Action.FOLLOW), (str.upper, Action.ANSWER), (bytes.hex, Action.FOLLOW),
        (len, Action.ANSWER), (operator.add, Action.ANSWER), (list, Action.ANSWER), (copy.copy, Action.ANSWER),
        (torch.add, Action.NODE), (torch.nn.functional.relu, Action.NODE), (torch.cuda.is_available, Action.CONSTANT),
        (functools.lru_cache(plain), Action.ANSWER), (torch.func.grad(plain), Action.ANSWER), (Plain.__subclasses__, Action.ANSWER),
        (print, Action.BREAK), (eval, Action.BREAK), (__import__, Action.BREAK), (logging.warning, Action.BREAK),
    ],
)  # fmt: skip
def test_the_record_of_a_callee_has_one_action(target: Any, action: Action) -> None:
    found = resolve(target)
    assert found.action is action
    assert found.target is target
    assert (found.cause is None) == (action is not Action.BREAK)
    assert (found.row is None) == (action is not Action.ANSWER)


@pytest.mark.parametrize(
    ("target", "keywords", "looks"),
    [
        (locals, (), True), (sys._getframe, (), True), (traceback.format_stack, (), True), (traceback.format_exc, (), False),
        (logging.warning, (), False), (logging.warning, ("stacklevel",), True), (print, (), False), (len, (), False),
    ],
)  # fmt: skip
def test_a_callee_that_inspects_frames_is_marked(target: Any, keywords: tuple[str, ...], looks: bool) -> None:
    assert resolve(target, keywords).looks_at_frames is looks


def test_a_row_has_bounds_for_its_arguments() -> None:
    assert resolve(len).takes(1, {})
    assert not resolve(len).takes(2, {})
    assert resolve(sorted).takes(1, {"key": None})
    assert not resolve(sorted).takes(1, {"by": None})


def test_marks_and_lists_of_the_user_take_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    disabled = torch.compiler.disable(lambda x: x, reason="a test")
    assert resolve(disabled).cause is causes.DISABLED_CALL
    assert resolve(disabled).detail.endswith("is marked with disable (a test)")

    def other(x: int) -> int:
        return x + 1

    for name in ("_disallowed", "_forbidden", "_substitutes"):
        monkeypatch.setattr(callees, name, {})
    callees.substitute(operator.add, other)
    assert resolve(operator.add).target is other
    callees.disallow(len)
    assert resolve(len).cause is causes.DISABLED_CALL
    callees.forbid(plain)
    with pytest.raises(ForbiddenCall, match="plain"):
        resolve(plain)


def test_a_callee_that_cannot_be_hashed_is_followed() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> None: ...

    assert resolve(Unhashable()).action is Action.FOLLOW


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]), ([1, (2, {"a": 3})], [1, 2, 3]), (Point(1, "b"), [1]), (slice(1, None, 2), [1, 2]), ({"a": "b"}, []),
        ((1, torch.Size([2])), [1, 2]),
    ],
)  # fmt: skip
def test_a_tree_is_walked_in_order_and_mapped_in_shape(tree: Any, leaves: list[int]) -> None:
    double: Callable[[int], int] = lambda v: v * 2
    assert walk_tree(tree, int) == leaves
    mapped = map_tree(tree, int, double)
    assert type(mapped) is type(tree)
    assert walk_tree(mapped, int) == [v * 2 for v in leaves]
