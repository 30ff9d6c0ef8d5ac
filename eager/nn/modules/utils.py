"""Helpers of several layer families: creation of parameters, and arguments given once or per dim."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from eager.base import dtypes
from eager.base.device import default_device, device
from eager.base.spec import TensorSpec
from eager.nn.parameter import Parameter
from eager.optable.memory import empty


def parameter(shape: tuple[int, ...], where: Any = None, dtype: Any = None, requires_grad: bool = True) -> Parameter:
    """A new, uninitialised parameter of `shape`.

    Raises: TypeError if the first size is a bool, as torch's `empty` does.
    """
    if shape and isinstance(shape[0], bool):
        raise TypeError("empty(): argument 'size' (position 1) must be tuple of ints, but found element of type bool at pos 0")
    target = default_device() if where is None else device(where)
    return Parameter(empty(TensorSpec.contiguous(shape, dtypes.chosen(dtype, dtypes.get_default_dtype()), target)), requires_grad)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Keyword arguments for creation functions: device, dtype, memory_format, given directly or in `factory_kwargs`.

    Raises: TypeError for any other name, or a name that is given twice.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    if not kwargs.keys() <= simple | {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - simple - {'factory_kwargs'}}")
    result = dict(kwargs.get("factory_kwargs", {}))
    if not result.keys() <= simple:
        raise TypeError(f"unexpected kwargs {result.keys() - simple}")
    for key in sorted(simple & kwargs.keys()):
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove `prefix` from the front of every key and of every key of the metadata, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if (key and key in (prefix, prefix.rstrip("."))) or key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)


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
    """(a, b) -> (b, b, a, a) for n = 2: the padding per dim in the order that `pad` takes."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]
