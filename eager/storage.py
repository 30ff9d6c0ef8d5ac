"""`torch.storage`: the memory beneath tensors, as bytes and as numbers of one dtype."""
from typing import Any

from eager import _native
from eager.legacy import STORAGE_TYPES, TypedStorage

UntypedStorage = _native.UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage of either kind."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


globals().update(STORAGE_TYPES)
