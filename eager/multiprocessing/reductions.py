"""Transfer of tensors through the queues and pipes of `multiprocessing`: by shared memory, without copying.

Sending moves a tensor to shared memory first (`Tensor.share_memory_`); both sides then see each other's
writes. The message holds a file descriptor, or under the strategy "file_system" the system's name of that file, which the
receiver opens: then no descriptor passes through a socket. The sender must live until the receiver has opened it.
"""
from __future__ import annotations

import os
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any, Final

from eager import _native
from eager._tensor.tensor import Tensor
from eager.functions.memory import SharedFile, share_memory_, shared_file
from eager.nn.parameter import Parameter

_STRATEGIES: Final = frozenset({"file_descriptor", "file_system"})
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The supported ways to share memory: by file descriptor, or by file name."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The current way to share memory."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Share tensors that are sent later in this way. Raises: AssertionError for an unknown strategy."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {{{', '.join(map(repr, sorted(_STRATEGIES)))}}}")
    _strategy = new_strategy


class _NamedFile:
    """A file of another process, by its name in /proc."""

    def __init__(self, fd: int) -> None:
        self.name = f"/proc/{os.getpid()}/fd/{fd}"

    def detach(self) -> int:
        """A new descriptor of this process for the file."""
        return os.open(self.name, os.O_RDWR | os.O_CLOEXEC)


def reduce_tensor(t: Tensor) -> Any:
    """The function and arguments with which a pickler sends a tensor. Raises: RuntimeError for a non-leaf."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                           "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                           "before serializing (e.g., putting it on the queue).")  # fmt: skip
    if t.device.type != "cpu" or t.is_fake or t.untyped_storage().nbytes() == 0:
        return t.__reduce_ex__(5)
    source = t
    if shared_file(t) is None and t._base is not None:
        source = t.detach().clone()  # a view cannot be sent with its base: send a copy
    file = shared_file(share_memory_(source))
    assert file is not None
    geometry = (source.dtype.code, tuple(source.shape), source.stride(), source.storage_offset())
    descriptor = _NamedFile(file.fd) if _strategy == "file_system" else DupFd(file.fd)
    return _rebuild, (descriptor, file.nbytes, type(t), geometry, t.requires_grad)


def _rebuild(descriptor: Any, nbytes: int, cls: type, geometry: tuple[Any, ...], requires_grad: bool) -> Any:
    code, shape, strides, offset = geometry
    storage = SharedFile(descriptor.detach(), nbytes).storage()
    t = _native.new_tensor(Tensor, storage, code, shape, strides, offset)
    if cls is Parameter:
        return Parameter(t, requires_grad)
    t.requires_grad = requires_grad
    return t


def init_reductions() -> None:
    """Register the transfer of tensors with `multiprocessing`."""
    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)


__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "init_reductions", "reduce_tensor", "set_sharing_strategy"]
