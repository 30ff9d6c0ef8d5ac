"""Python code that runs in the middle of a call, in a check or a comparison, and changes the objects that the call uses.

Other threads may run the same changes there.
"""

from __future__ import annotations

import types
from typing import Any

from dynamo import _native
from dynamo._native import CompiledFunction, GuardProgram, Region


def test_a_check_replaces_the_miss_callback_of_its_region() -> None:
    called: list[Any] = []
    others: list[Any] = []

    class Miss:
        def __call__(self, code: types.CodeType, func: types.FunctionType, slots: tuple[Any, ...]) -> None:
            called.append(self)

    def f(a: int) -> int:
        return a + 1

    region = Region(Miss())

    def forget() -> int:
        region.miss = None
        others.extend(bytearray(n) for n in range(16, 400, 8) for _ in range(20))  # in the memory that was freed
        return 1

    region.dispatcher(f.__code__).add_entry(GuardProgram([("call_eq", forget, 2)], 2), lambda a: "entry")
    token = _native.enter_region(region)
    try:
        found = f(1)
    finally:
        _native.leave_region(token)
    assert found == 2 and [type(c) for c in called] == [Miss]


def _with_many_parameters() -> types.FunctionType:
    names: dict[str, Any] = {}
    exec(f"def wide(x, {', '.join(f'a{i}={i}' for i in range(400))}):\n    return 'wide', x\n", names)
    return names["wide"]


def _changing() -> tuple[CompiledFunction, str]:
    """A compiled function, and a keyword whose comparison gives the function code with many parameters."""

    def f(x: int) -> tuple[str, int]:
        return "narrow", x

    wide = _with_many_parameters()
    compiled = CompiledFunction(f, lambda owner, slots: None)

    class Key(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            if f.__code__ is not wide.__code__:
                f.__code__, f.__defaults__ = wide.__code__, wide.__defaults__
                compiled(1)
            return str.__eq__(self, other)

    return compiled, Key("x")


def test_a_keyword_changes_the_code_of_the_function() -> None:
    compiled, key = _changing()
    assert compiled(**{key: 1}) == ("wide", 1)
    compiled, key = _changing()
    assert compiled.bind(**{key: 1}) == (1,)
