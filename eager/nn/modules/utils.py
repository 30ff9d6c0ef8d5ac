"""What several families of modules need: parameters of a shape, and arguments given once or per dim."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from eager import dtypes
from eager.device import CPU, device
from eager.nn.parameter import Parameter
from eager.ops.table import empty
from eager.spec import TensorSpec


def parameter(shape: tuple[int, ...], where: Any = None, dtype: Any = None, requires_grad: bool = True) -> Parameter:
    """An uninitialised parameter of `shape`."""
    target = CPU if where is None else device(where)
    return Parameter(empty(TensorSpec.contiguous(shape, dtype or dtypes.get_default_dtype(), target)), requires_grad)


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """(a, b) -> (b, b, a, a) for n = 2: padding per dim in the order that `pad` takes."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]
