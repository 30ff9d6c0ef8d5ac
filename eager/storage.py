"""`torch.storage`: the memory of tensors, as bytes and as numbers of one dtype."""
import io
from typing import Any

from eager import _native
from eager._storage.tensor_types import STORAGE_TYPES, TypedStorage
from eager.serialization import load

UntypedStorage = _native.UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage of either kind."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


def _load_from_bytes(b: bytes) -> Any:
    """Load `b`, the bytes of a `torch.save` file; pickles of torch's storages call it.

    Like any pickle, it may run code.
    """
    return load(io.BytesIO(b), weights_only=False)


globals().update(STORAGE_TYPES)
