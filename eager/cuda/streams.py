"""Streams and events: CuPy's under torch's names. Each raises a RuntimeError that says why where there is no GPU."""
from __future__ import annotations

from typing import Any

from eager.cuda.backend import backend, index_of, is_available

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "is_current_stream_capturing", "set_stream", "stream"]


class Stream:
    """A queue of work on a device. priority: 0, or negative for a higher one."""

    def __init__(self, device: Any = None, priority: int = 0, *, _stream: Any = None) -> None:
        self._index = index_of(device)
        with backend().xp.cuda.Device(self._index):
            self._stream = _stream if _stream is not None else backend().xp.cuda.Stream(non_blocking=True, priority=priority)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self._stream.ptr)

    def synchronize(self) -> None:
        """Wait for all work in the queue."""
        self._stream.synchronize()

    def query(self) -> bool:
        """Whether all work is done."""
        return bool(self._stream.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this place in the queue."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Later work in this queue waits for `event`."""
        self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Later work in this queue waits for what is in the other now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self._index == other._index

    def __hash__(self) -> int:
        return hash((self._index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:{self._index} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A place in a queue, to wait for or to measure time between."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("cuda.Event: interprocess=True; events here belong to one process")
        self._event = backend().xp.cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        self._event.record(None if stream is None else stream._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of a stream (the current one by default) waits for this event."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        return bool(self._event.done)

    def synchronize(self) -> None:
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        return float(backend().xp.cuda.get_elapsed_time(self._event, end_event._event))


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to now."""
    return Stream(device, _stream=backend().xp.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The device's default stream."""
    return Stream(device, _stream=backend().xp.cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Send work to `stream` from now on; nothing for None."""
    if stream is not None:
        stream._stream.use()


class StreamContext:
    """Sends the work of a block to `stream`; an ordinary block for None."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream._stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """The block whose work goes to `stream`."""
    return StreamContext(stream)


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being recorded."""
    return is_available() and bool(backend().xp.cuda.get_current_stream().is_capturing())
