"""Results of special methods, captured: Python checks them before the program receives them."""
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import dynamo
import eager as torch

GIVEN: tuple[Any, ...] = (None, 1, "a", 1.5, [1], (1,), True, -1, b"x", object, SimpleNamespace())
USES: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "__str__": (str, lambda o: f"{o}", lambda o: f"{o!s}"), "__repr__": (repr, str, lambda o: f"{o!r}"),
    "__format__": (lambda o: f"{o:x}",), "__hash__": (hash, lambda o: {o: 1}),
    "__iter__": (list, lambda o: [*o], iter, lambda o: (lambda *a: a)(*o), lambda o: [i + 1 for i in o]),
    "__index__": (operator.index, lambda o: [1, 2, 3][o], lambda o: "abc"[o:]),
    "__len__": (len, bool, lambda o: not o, lambda o: 1 if o else 2, list), "__length_hint__": (operator.length_hint, list),
    "__bool__": (bool, lambda o: not o, lambda o: o and 2, lambda o: any([o]), lambda o: [i for i in (o,) if i] and 3),
    "__contains__": (lambda o: 3 in o, lambda o: 3 not in o, lambda o: operator.contains(o, 3)),
    "__int__": (int,), "__float__": (float,), "__complex__": (complex,), "__bytes__": (bytes,), "__init__": (lambda o: type(o)(),),
    "__reversed__": (reversed,), "__round__": (round,), "__abs__": (abs,), "__neg__": (operator.neg,), "__ceil__": (math.ceil,),
    "__trunc__": (math.trunc,), "__next__": (next,), "__eq__": (lambda o: o == 1, lambda o: o in [1]),
    "__getitem__": (lambda o: o[1],), "__call__": (lambda o: o(1),), "__getattr__": (lambda o: o.missing,), "__dir__": (dir,),
}  # fmt: skip


def _described(found: Any) -> Any:
    if isinstance(found, Exception):
        return type(found).__name__, str(found)
    text = repr(found) if type(found).__repr__ is not object.__repr__ else ""
    return type(found).__name__, "" if " at 0x" in text else text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", USES)
def test_results_of_special_methods_are_checked(method: str) -> None:
    for given, use in itertools.product(GIVEN, USES[method]):
        cls = type("P", (), {method: lambda self, *_, given=given: given, "count": 0})
        if method in ("__len__", "__length_hint__") and use is list:
            cls.__iter__ = lambda self: iter((1, 2))  # type: ignore[attr-defined]

        def program(x: torch.Tensor, cls: type = cls, use: Callable[[Any], Any] = use) -> tuple[torch.Tensor, Any]:
            y = x + 1
            try:
                return y, use(object.__new__(cls))
            except Exception as error:  # noqa: BLE001 - the error is compared
                return y, error

        assert _described(dynamo.compile(program, backend="eager")(torch.ones(2))[1]) == _described(program(torch.ones(2))[1]), (given, use)
