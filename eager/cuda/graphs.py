"""CUDA graphs: a stream's work, recorded once and replayed as a whole. CuPy's graphs under torch's names."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from eager.base import dtypes
from eager.base.spec import TensorSpec
from eager.cuda.backend import GraphBlock, backend, synchronize
from eager.cuda.streams import Stream, StreamContext, current_stream
from eager.optable.memory import empty
from eager.random import cuda_generator

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"]


class _Memory:
    """Memory for one graph. It lives as long as the graph or a tensor in it: CuPy's pool alone frees blocks that are in use."""

    def __init__(self) -> None:
        self._pool = backend().xp.cuda.MemoryPool()

    def allocate(self, size: int) -> Any:
        """A pointer to `size` bytes, for `cupy.cuda.using_allocator`."""
        cuda, block = backend().xp.cuda, self._pool.malloc(size)
        return cuda.MemoryPointer(cuda.UnownedMemory(block.ptr, size, GraphBlock(self._pool, block), block.device_id), 0)


class _Draws:
    """The draws of one graph from the default generator of its device.

    Recorded work reads the generator's state at the begin of a replay from memory on the device, which each replay sets again. The
    generator then advances as the recorded calls did: a replay draws the numbers that the calls would draw.
    """

    def __init__(self, device: Any) -> None:
        self._generator = cuda_generator(device.index)
        self._state = empty(TensorSpec.contiguous((2,), dtypes.int64, device))
        self._begin = self._generator.get_offset()
        self._length = 0

    def write(self, out: Any, n: int) -> None:
        """Record the state of a draw of `n` elements into the device array `out`."""
        distance = self._generator.take(n)[1] - self._begin
        out[:] = self._state._array
        out[1:] += distance

    def end(self) -> None:
        """The capture has ended: it drew nothing."""
        self._length = self._generator.get_offset() - self._begin
        self._generator.set_offset(self._begin)

    def advance(self) -> None:
        """Set the state for a replay that the current stream launches next."""
        if self._length:
            backend().copy_from_host(self._state, self._generator.state(self._length), True)


class CUDAGraph:
    """A recorded graph. Its tensors keep their addresses: overwrite their contents before each `replay()`.

    Raises: RuntimeError without a GPU; NotImplementedError for keep_graph=True.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        if keep_graph:
            raise NotImplementedError("cuda.CUDAGraph(keep_graph=True): a graph is instantiated when its capture ends; allowed: False")
        backend()
        self._graph: Any = None
        self._stream: Stream | None = None
        self._memory: Any = None
        self._allocator: Any = None
        self._used: list[Any] = []  # memory that the recorded work reads
        self._draws: _Draws | None = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Start recording the current stream, which must not be the default one.

        Raises: RuntimeError if a graph is recorded.
        """
        if self._graph is not None or self._stream is not None:
            raise RuntimeError("CUDAGraph.capture_begin: it holds a capture already; reset() it first")
        stream = current_stream()
        self._draws = _Draws(stream.device)
        stream._stream.begin_capture()
        self._stream = stream
        # Results of the recorded work keep their memory until the graph goes: it comes from the graph's pool.
        self._memory = _Memory()
        self._allocator = backend().xp.cuda.using_allocator(self._memory.allocate)
        self._allocator.__enter__()
        self._used = []
        backend().captured.append(self._used)
        backend().draws[threading.get_ident()] = self._draws

    def capture_end(self) -> None:
        """Stop recording. Raises: RuntimeError without a `capture_begin`."""
        if self._stream is None or self._draws is None:
            raise RuntimeError("CUDAGraph.capture_end: no capture_begin() came before it")
        self._allocator.__exit__(None, None, None)
        backend().draws.pop(threading.get_ident(), None)
        self._draws.end()
        self._used.append(self._draws)
        backend().captured = [used for used in backend().captured if used is not self._used]
        stream, self._stream = self._stream, None
        self._graph = stream._stream.end_capture()

    def replay(self) -> None:
        """Launch the recorded work on the current stream. Raises: RuntimeError if nothing is recorded."""
        if self._graph is None or self._draws is None:
            raise RuntimeError("CUDAGraph.replay: nothing is recorded; use it in `with torch.cuda.graph(g):` first")
        stream = current_stream()._stream
        self._draws.advance()
        self._graph.launch(stream)
        backend().keep_until_reached(stream, self._used)  # the graph may go before its work is done

    def reset(self) -> None:
        """Discard the recorded work."""
        self._graph = self._memory = self._draws = None
        self._used = []

    def pool(self) -> tuple[int, int]:
        """The id of the graph's memory pool. All graphs share one pool."""
        return graph_pool_handle()


@contextlib.contextmanager
def graph(cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global") -> Iterator[None]:
    """Record the block's work into `cuda_graph`, on `stream` or a new stream."""
    synchronize()
    with StreamContext(stream if stream is not None else Stream()):
        cuda_graph.capture_begin(pool, capture_error_mode)
        try:
            yield
        finally:
            cuda_graph.capture_end()



def graph_pool_handle() -> tuple[int, int]:
    """The id of the memory pool that graphs share."""
    return 0, 0


def make_graphed_callables(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    raise NotImplementedError("cuda.make_graphed_callables: use cuda.graph, or compile(mode='reduce-overhead')")
