"""Transfer of objects between processes: one datagram per message, with large messages in shared memory.

A message is a pickle (protocol 5), followed by the memory of its tensors and arrays. Up to `_INLINE_BYTES` the whole
message is sent through the socket. A larger one is written to an unnamed file whose descriptor is sent through the
socket; the receiver maps the file, and its tensors use the mapping. No file has a name, so nothing remains
however a process ends; and no datagram is larger than the socket's buffer.

Measured on two cores, per message: 0.1 ms up to 32 KB either way; at 150 MB, 21 ms of the receiver's time by
mapping against 380 ms through a pipe.
"""
from __future__ import annotations

import array
import io
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from eager import _native
from eager._tensor.tensor import Tensor
from eager.functions.memory import nameless_file
from eager.nn.parameter import Parameter

_INLINE_BYTES = 48 << 10  # below this size the socket is as fast and needs no separate page
_ALIGNMENT = 64
_DESCRIPTOR_BYTES = array.array("i").itemsize


class Channel:
    """One end of a connection. One thread may call `send` while another calls `receive`."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """Two connected ends."""
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Channel(a), Channel(b)

    def fileno(self) -> int:
        """The file descriptor of the socket."""
        return self._socket.fileno()

    def send(self, message: Any) -> None:
        """Send a picklable object; blocks while the other side's buffer is full.

        Raises: OSError if the other side is closed.
        """
        parts = _pack(message)
        size = sum(_aligned(len(p)) for p in parts)
        if size <= _INLINE_BYTES:
            self._socket.sendall(b"".join(bytes(p) + b"\0" * (_aligned(len(p)) - len(p)) for p in parts))
            return
        fd = nameless_file(size)
        try:
            _write(fd, parts)
            self._socket.sendmsg([struct.pack("<Q", size)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        finally:
            os.close(fd)

    def receive(self) -> Any:
        """The next message. Raises: EOFError once the other end is closed and all its messages were received."""
        data, ancillary, _, _ = self._socket.recvmsg(_INLINE_BYTES, socket.CMSG_LEN(_DESCRIPTOR_BYTES))
        if not data:
            raise EOFError("the other end of the channel is closed")
        if not ancillary:
            storage = _native.storage_empty(len(data))
            memoryview(storage)[:] = data
            return _unpack(storage)
        (fd,) = array.array("i", ancillary[0][2][:_DESCRIPTOR_BYTES])
        try:
            storage = _native.storage_from_fd(fd, *struct.unpack("<Q", data))
        finally:
            os.close(fd)
        return _unpack(storage)

    def shut(self) -> None:
        """End both directions of the connection, even if other processes hold a copy of this end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side has already closed the connection
            return

    def close(self) -> None:
        """Close this process's copy of the socket."""
        self._socket.close()


def _write(fd: int, parts: Sequence[memoryview]) -> None:
    start = 0
    for part in parts:
        done = 0
        while done < len(part):
            done += os.pwrite(fd, part[done:], start + done)
        start += _aligned(len(part))


def _aligned(n: int) -> int:
    return -(-n // _ALIGNMENT) * _ALIGNMENT


# ---- messages: a header of sizes, the pickle, then the buffers, each aligned ----


class _Pickler(ForkingPickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor or type(obj) is Parameter:
            return _reduce(obj)
        return NotImplemented


def _pack(message: Any) -> list[memoryview]:
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, 5, True, buffers.append).dump(message)
    body = [stream.getbuffer(), *(b.raw() for b in buffers)]
    header = struct.pack(f"<{len(body) + 1}Q", len(body), *(len(part) for part in body))
    return [memoryview(header), *body]


def _unpack(storage: Any) -> Any:
    memory = memoryview(storage)
    (count,) = struct.unpack_from("<Q", memory)
    sizes = struct.unpack_from(f"<{count}Q", memory, 8)
    start = _aligned(8 * (count + 1))
    parts = []
    for size in sizes:
        parts.append(memory[start : start + size])
        start += _aligned(size)
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - written by our own child process


def _reduce(t: Tensor) -> Any:
    """A CPU tensor as its memory: with its strides if they leave no gaps, else row-major.

    Tensors that share memory do not share it on the receiving side.
    Raises: RuntimeError for a non-leaf that requires a gradient.
    """
    if not t.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                           "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                           "before serializing (e.g., putting it on the queue).")  # fmt: skip
    if t.device.type != "cpu" or t.is_fake:
        return t.__reduce_ex__(5)
    shape, strides, n = tuple(t.shape), t.stride(), t.numel()
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if n else 0
    if span > n:
        t_dense = t.detach().contiguous()
        strides, span = t_dense.stride(), n
    else:
        t_dense = t
    start = t_dense.storage_offset() * t.itemsize
    memory = memoryview(t_dense.untyped_storage())[start : start + span * t.itemsize]
    return _rebuild, (pickle.PickleBuffer(memory), type(t), t.dtype.code, shape, strides, t.requires_grad)


def _rebuild(memory: Any, cls: type, code: int, shape: tuple[int, ...], strides: tuple[int, ...], requires_grad: bool) -> Any:
    a = np.frombuffer(memory, np.uint8)
    storage = _native.storage_from_memory(a.ctypes.data, a.nbytes, a)
    t = _native.new_tensor(Tensor, storage, code, shape, strides)
    if cls is Parameter:
        return Parameter(t, requires_grad)
    t.requires_grad = requires_grad
    return t
