"""Streams and events: CuPy's under torch's names.

Constructors raise a RuntimeError with the reason if there is no GPU.
"""
from __future__ import annotations

from typing import Any
from weakref import ref

from eager.base.device import device
from eager.cuda.backend import backend, index_of, is_available
from eager.tape import engine

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "is_current_stream_capturing", "set_stream", "stream"]


class Stream:
    """A queue of work on a device. priority: 0, or a negative number for higher priority."""

    def __init__(self, device: Any = None, priority: int = 0, *, _stream: Any = None) -> None:
        self._index = index_of(device)
        with backend().xp.cuda.Device(self._index):
            self._stream = _stream if _stream is not None else backend().xp.cuda.Stream(non_blocking=True, priority=priority)

    @property
    def device(self) -> device:
        """The device of the stream."""
        return device("cuda", self._index)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle of the stream."""
        return int(self._stream.ptr)

    def synchronize(self) -> None:
        """Wait for all work in the queue."""
        self._stream.synchronize()

    def query(self) -> bool:
        """Whether all work in the queue is done."""
        return bool(self._stream.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event at the end of the queue. Returns: the event."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work in this queue wait for `event`."""
        self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work in this queue wait for the present work of `stream`."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self._index == other._index

    def __hash__(self) -> int:
        return hash((self._index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:{self._index} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A marker in a queue, for waiting and for timing."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("cuda.Event: interprocess=True; events here belong to one process")
        self._event = backend().xp.cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Record the event at the end of a stream (by default the current one)."""
        self._event.record(None if stream is None else stream._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work of a stream (by default the current one) wait for this event."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether the work before the event is done."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`."""
        return float(backend().xp.cuda.get_elapsed_time(self._event, end_event._event))


def current_stream(device: Any = None) -> Stream:
    """The stream that receives new work."""
    return Stream(device, _stream=backend().xp.cuda.get_current_stream(index_of(device)))


def default_stream(device: Any = None) -> Stream:
    """The device's default stream."""
    return Stream(device, _stream=backend().xp.cuda.Stream.null)


_used: dict[int, ref[Any]] = {}  # streams that were current, and the default one, by id; other threads may add some
_newest: dict[int, Any] = {}  # the latest of them, by handle: their work may not be done when the user drops them
_HELD = 64  # most of these


def _note(stream: Any) -> None:
    """Note that a stream becomes current."""
    if not _used:
        _add(backend().xp.cuda.Stream.null)
        engine.BEFORE[:] = [_join]
    _add(stream)
    _newest.pop(stream.ptr, None)
    _newest[stream.ptr] = stream
    for oldest in list(_newest)[:-_HELD]:
        _newest.pop(oldest, None)


def _add(stream: Any) -> None:
    key = id(stream)
    if key not in _used:
        _used[key] = ref(stream, lambda _: _used.pop(key, None))


def _join() -> None:
    """Let the current stream wait for the others, where the forward work of a backward pass may be.

    torch runs each gradient formula on the stream of its forward op; here all of them run on the current stream. Captured work is left
    alone: it must not wait for other work.
    """
    cuda = backend().xp.cuda
    now, index = cuda.get_current_stream(), cuda.runtime.getDevice()
    known = [s for held in list(_used.values()) if (s := held()) is not None]
    others = [s for s in known if s != now and s.device_id in (-1, index)]
    if others and not now.is_capturing():
        for s in others:
            if not s.is_capturing():
                now.wait_event(s.record(cuda.Event(disable_timing=True)))


def set_stream(stream: Stream | None) -> None:
    """Send new work to `stream`; does nothing for None."""
    if stream is not None:
        _note(stream._stream)
        stream._stream.use()


class StreamContext:
    """Sends the block's work to `stream`; does nothing for None."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _note(self.stream._stream)
            self.stream._stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """A context that sends its block's work to `stream`."""
    return StreamContext(stream)


def is_current_stream_capturing() -> bool:
    """Whether the current stream is being recorded into a CUDA graph."""
    return is_available() and bool(backend().xp.cuda.get_current_stream().is_capturing())
