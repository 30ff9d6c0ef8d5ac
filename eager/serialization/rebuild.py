"""The functions that a file calls to rebuild its tensors, and the table of names that every file may use."""
from __future__ import annotations

import collections
import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

from eager import _native
from eager._storage.tensor_types import TypedStorage
from eager._tensor.tensor import Size, Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.memory_format import LAYOUTS, sparse_coo
from eager.nn.parameter import Parameter
from eager.optable.table import OPS
from eager.serialization.names import STORAGES
from eager.sparse import SparseTensor, sparse_coo_tensor

# Attributes with which this library marks tensors; they are not user attributes.
OWN_MARKS = ("persistent", "_is_buffer")
_LARGEST = 2**62


def _bytes_of(storage: Any) -> Any:
    if not isinstance(storage, TypedStorage):
        raise pickle.UnpicklingError(f"a tensor is built over a {type(storage).__name__} in place of a storage: the file is damaged")
    return storage.untyped()


def _extent(size: Any, stride: Any, offset: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    size, stride = tuple(size), tuple(stride)
    numbers = (*size, *stride, offset)
    if len(size) != len(stride) or any(type(n) is not int or not 0 <= n < _LARGEST for n in numbers) or math.prod(size) >= _LARGEST:
        raise pickle.UnpicklingError(f"a tensor has size {size}, strides {stride} and offset {offset}: the file is damaged")
    return size, stride, offset


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
                   metadata: Any = None) -> Tensor:  # fmt: skip
    """A tensor over a storage of the file, with the storage's dtype."""
    return _over(_bytes_of(storage), storage.dtype, offset, size, stride, requires_grad, metadata)


def rebuild_tensor_v3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, d: Any,
                      metadata: Any = None) -> Tensor:  # fmt: skip
    """A tensor over a storage of bytes, with a separate dtype."""
    return _over(_bytes_of(storage), d, offset, size, stride, requires_grad, metadata)


def _over(storage: Any, d: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any) -> Tensor:
    if not isinstance(d, dtype):
        raise pickle.UnpicklingError(f"a tensor has the element type {d!r}: the file is damaged")
    size, stride, offset = _extent(size, stride, offset)
    last = offset + (sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if math.prod(size) else -1)
    if (last + 1) * d.itemsize > storage.nbytes():
        raise pickle.UnpicklingError(f"a tensor of {list(size)} with strides {list(stride)} reaches past its storage of "
                                     f"{storage.nbytes()} bytes: the file is damaged")  # fmt: skip
    t: Tensor = _native.new_tensor(None, storage, d.code, size, stride, offset)
    marks = metadata if isinstance(metadata, dict) else {}
    if marks.get("conj"):
        t = OPS["conj"](t)
    if marks.get("neg"):
        t = -t
    t.requires_grad = bool(requires_grad)
    return t


def rebuild_meta_tensor(d: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor on the meta device, from shape, strides and dtype."""
    if not isinstance(d, dtype):
        raise pickle.UnpicklingError(f"a tensor has the element type {d!r}: the file is damaged")
    size, stride, _ = _extent(size, stride, 0)
    t: Tensor = OPS["as_strided"](OPS["empty"]((0,), d, device("meta")), size, stride, 0)
    t = t.detach()
    t.requires_grad = bool(requires_grad)
    return t


def rebuild_sparse_tensor(kind: Any, data: Any) -> SparseTensor:
    """A sparse tensor from its parts: (indices, values, size, is_coalesced); older files lack the last."""
    if kind is not sparse_coo:
        raise NotImplementedError(f"load: sparse tensors of the layout {kind} are not implemented")
    if not isinstance(data, tuple) or len(data) not in (3, 4):
        raise pickle.UnpicklingError("a sparse tensor is not made of indices, values and a size: the file is damaged")
    at, held, size, *more = data
    try:
        return sparse_coo_tensor(_tensor(at), _tensor(held), size, is_coalesced=bool(more and more[0]))
    except (RuntimeError, TypeError, ValueError) as error:
        raise pickle.UnpicklingError(f"a sparse tensor does not fit its parts: the file is damaged ({error})") from error


def _layout(name: Any) -> Any:
    if name not in LAYOUTS:
        raise pickle.UnpicklingError(f"a file names the layout {name!r}, which does not exist: the file is damaged")
    return LAYOUTS[name]


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any = None) -> Parameter:
    """A Parameter that shares a tensor's memory."""
    return Parameter(_tensor(data), bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Parameter:
    """A Parameter with additional attributes."""
    p = rebuild_parameter(data, requires_grad)
    set_state(p, state)
    return p


def rebuild_from_type(allowed: Callable[[Any], bool], make: Any, kind: Any, args: Any, state: Any) -> Any:
    """`make(*args)` as an instance of the subclass `kind`, with its attributes.

    Both `make` and `kind` must be allowed.
    """
    if not allowed(make) or not (kind in (Tensor, Parameter) or allowed(kind)):
        raise pickle.UnpicklingError(f"a tensor is rebuilt by {make!r} as {kind!r}, which the file may not use")
    made = _tensor(make(*args))
    if type(made) is not kind and kind is not Tensor:
        made = made.as_subclass(kind)
    set_state(made, state)
    return made


def set_state(t: Tensor, state: Any) -> None:
    """Set the attributes of a tensor from a dict, or from a pair of a dict and slots."""
    parts = state if isinstance(state, tuple) else (state,)
    for part in parts[:2]:
        if part is not None and not isinstance(part, dict):
            raise pickle.UnpicklingError(f"the attributes of a tensor are a {type(part).__name__}: the file is damaged")
        t.__dict__.update({k: v for k, v in (part or {}).items() if isinstance(k, str)})


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise pickle.UnpicklingError(f"expected a tensor, found a {type(value).__name__}: the file is damaged")
    return value


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Decode bytes that a pickle of protocol 2 stores as text."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise pickle.UnpicklingError(f"bytes are written in encoding {encoding!r}: the file is damaged")
    return text.encode(encoding)


def _bytearray(*args: Any) -> bytearray:
    """A bytearray from text or bytes; rejects a number, which would allocate that many bytes."""
    if args and not isinstance(args[0], (str, bytes)):
        raise pickle.UnpicklingError(f"a bytearray is made of a {type(args[0]).__name__}: the file is damaged")
    return bytearray(_encode(*args) if args and isinstance(args[0], str) else b"".join(args))


def _unsupported(what: str) -> Callable[..., Any]:
    def refuse(*args: Any) -> Any:
        raise NotImplementedError(f"load: {what} are not implemented")

    return refuse


@functools.cache
def safe_names() -> dict[tuple[str, str], Any]:
    """The objects that every file may use, by torch's module and name."""
    names: dict[tuple[str, str], Any] = {
        ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor, ("torch._utils", "_rebuild_tensor"): rebuild_tensor,
        ("torch._utils", "_rebuild_tensor_v3"): rebuild_tensor_v3,
        ("torch._utils", "_rebuild_meta_tensor_no_storage"): rebuild_meta_tensor,
        ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
        ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter_with_state,
        ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
        ("torch._utils", "_rebuild_sparse_tensor"): rebuild_sparse_tensor,
        ("torch._utils", "_rebuild_qtensor"): _unsupported("quantized tensors"),
        ("torch._utils", "_rebuild_nested_tensor"): _unsupported("nested tensors"),
        ("torch._utils", "_rebuild_wrapper_subclass"): _unsupported("wrapper subclasses of tensors"),
        ("torch", "Size"): Size, ("torch", "device"): device, ("torch", "Tensor"): Tensor,
        ("torch.nn.parameter", "Parameter"): Parameter,
        ("torch.storage", "UntypedStorage"): dtypes.uint8, ("torch", "UntypedStorage"): dtypes.uint8,
        ("torch.serialization", "_get_layout"): _layout,
        ("collections", "OrderedDict"): collections.OrderedDict, ("collections", "Counter"): collections.Counter,
        ("builtins", "set"): set, ("builtins", "frozenset"): frozenset, ("builtins", "complex"): complex,
        ("builtins", "bytearray"): _bytearray, ("builtins", "dict"): dict, ("_codecs", "encode"): _encode,
    }  # fmt: skip
    for prefix in ("torch", "torch.cuda"):
        for name, d in STORAGES.items():
            names[prefix, name] = d
    for d in dtypes.ALL:
        names["torch", d.name] = d
    return names
