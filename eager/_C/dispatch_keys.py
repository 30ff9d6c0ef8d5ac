"""torch's dispatch keys as names, with which libraries register implementations. Ops here are not dispatched by key."""
from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NoReturn

DispatchKey = enum.Enum(
    "DispatchKey",
    "Undefined CPU CUDA XPU MPS Meta QuantizedCPU QuantizedCUDA SparseCPU SparseCUDA SparseCsrCPU SparseCsrCUDA NestedTensorCPU "
    "NestedTensorCUDA BackendSelect Python PythonTLSSnapshot FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode "
    "FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper Batched VmapMode Functionalize Named Conjugate Negative ZeroTensor "
    "ADInplaceOrView Autograd AutogradOther AutogradFunctionality AutogradCPU AutogradCUDA AutogradXPU AutogradMeta "
    "AutogradNestedTensor AutocastCPU AutocastCUDA AutocastXPU Tracer CompositeImplicitAutograd CompositeExplicitAutograd "
    "CompositeExplicitAutogradNonFunctional PreDispatch",
    module=__name__,
)  # fmt: skip
DispatchKey.__doc__ = "The devices, layouts and modes for which torch registers implementations of an op."


class DispatchKeySet:
    """A set of dispatch keys with `|`, `&`, `-` and `has`."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(sorted(self._keys, key=lambda key: key.value))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"

    def has(self, key: DispatchKey) -> bool:
        """Whether `key` is in the set."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """A new set with `key`."""
        return DispatchKeySet(*(self._keys | {key}))

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """A new set without `key`."""
        return DispatchKeySet(*(self._keys - {key}))


class _ExcludeDispatchKeyGuard:
    """`with _ExcludeDispatchKeyGuard(keys)`. Entering it raises NotImplementedError: ops are not dispatched by key."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = keys

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(f"torch._C._ExcludeDispatchKeyGuard({self._keys}): ops are not dispatched by key; `torch.autocast` and "
                                  "`torch.no_grad` switch off what their keys stand for")  # fmt: skip

    def __exit__(self, *error: object) -> None:
        return None
