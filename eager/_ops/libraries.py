"""Operators of torch's smaller libraries: the supported part of `prims`, `prim`, `profiler` and `higher_order`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eager import _higher_order_ops
from eager.autograd.profiler import record_function


def _enter(name: str, args: str | None = None) -> record_function:
    region = record_function(name, args)
    region.__enter__()
    return region


def _exit(record: record_function) -> None:
    record.__exit__(None, None, None)


_OPERATORS: Final[dict[str, dict[str, tuple[Callable[..., Any], str]]]] = {
    "prims::convert_element_type": {"default": (lambda a, dtype: a.to(dtype), "(Tensor a, ScalarType dtype) -> Tensor")},
    "prims::device_put": {"default": (lambda a, device, non_blocking=False: a.to(device, non_blocking=non_blocking),
                                      "(Tensor a, Device device, bool non_blocking=False) -> Tensor")},
    "prim::device": {"default": (lambda a: a.device, "(Tensor a) -> Device")},
    "prim::layout": {"default": (lambda a: a.layout, "(Tensor a) -> Layout")},
    "prim::dtype": {"default": (lambda a: a.dtype, "(Tensor a) -> ScalarType")},
    "profiler::_record_function_enter_new": {"default": (_enter, "(str name, str? args=None) -> Any")},
    "profiler::_record_function_exit": {"_RecordFunction": (_exit, "(Any record) -> ()")},
}  # fmt: skip


def find(namespace: str, name: str) -> dict[str, tuple[Callable[..., Any], str]]:
    """Function and schema of each overload of an operator; empty for an unknown operator."""
    qualified = f"{namespace}::{name}"
    return {overload: (op, f"{qualified}{'' if overload == 'default' else '.' + overload}{signature}")
            for overload, (op, signature) in _OPERATORS.get(qualified, {}).items()}  # fmt: skip


def higher_order(name: str) -> Callable[..., Any] | None:
    """The function of `torch.ops.higher_order.name`, or None."""
    return getattr(_higher_order_ops, name) if name in _higher_order_ops.__all__ else None
