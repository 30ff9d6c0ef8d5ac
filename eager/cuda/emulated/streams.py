"""Streams, events and graphs of the emulated device: closures in queues.

Work on the default stream runs when it is submitted, after the work of blocking streams. Work on any other stream waits in
its queue until the host waits for it: a program that does not synchronise where it must reads old values. An exception in
queued work is an asynchronous error: it appears at the next synchronisation.
"""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, Final

from eager.cuda.emulated.errors import CUDARuntimeError

Work = Callable[[], object]
RELAXED: Final = 2  # the mode of a capture that allows allocations
_PROHIBITED: Final = "operation not permitted when stream is capturing"

_all: list[Stream] = []  # every stream but the default one, which may have work
_error: list[BaseException] = []  # of work that failed, until the next synchronisation
_local = threading.local()


class Graph:
    """Recorded work. `launch` queues it as a whole."""

    def __init__(self, work: list[Work]) -> None:
        self._work = work

    def launch(self, stream: Any = None) -> None:
        """Queue the work on a stream, by default the current one."""
        target = stream if stream is not None else get_current_stream()
        for work in self._work:
            target.enqueue(work)

    def upload(self, stream: Any = None) -> None:
        """Nothing is left to prepare."""


class Stream:
    """A queue of work. non_blocking: the default stream does not wait for it."""

    null: ClassVar[Stream]
    ptds: ClassVar[Stream]
    _next = 0x1000

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int = 0) -> None:
        self.device_id = 0
        self.non_blocking, self.priority = non_blocking, priority
        self._queue: deque[Work] = deque()
        self._done = 0  # pieces of work that ran
        self._recording: list[Work] | None = None
        self._is_strict = False  # the capture prohibits allocations of the device
        self._broken = False  # something prohibited happened during the capture
        self._is_default = null
        self.ptr = 0 if self._is_default else Stream._next
        Stream._next += 0 if self._is_default else 0x10
        if not self._is_default:
            _all.append(self)

    def enqueue(self, work: Work) -> None:
        """Add work; on the default stream, run it."""
        if self._recording is not None:
            self._recording.append(work)
        elif self._is_default:
            for other in _all:
                if not other.non_blocking:
                    if other._recording is not None:
                        other._broken = True
                        raise CUDARuntimeError("cudaErrorStreamCaptureImplicit",
                                               "operation would make the legacy stream depend on a capturing blocking stream")  # fmt: skip
                    other.run_queue()
            run(work)
        else:
            self._queue.append(work)

    def run_queue(self, until: int | None = None) -> None:
        """Run the queued work; up to the given number of pieces since the start, if that is given."""
        while self._queue and (until is None or self._done < until):
            work = self._queue.popleft()
            self._done += 1
            run(work)

    @property
    def done(self) -> bool:
        """Whether the queue is empty. Asking is a sign of polling, so the work makes progress: one piece runs."""
        self._check_no_capture("cudaStreamQuery")
        empty = not self._queue
        self.run_queue(self._done + 1)
        return empty

    def synchronize(self) -> None:
        """Run all work; raise the asynchronous error, if there is one."""
        self._check_no_capture("cudaStreamSynchronize")
        self.run_queue()
        raise_error()

    def _check_no_capture(self, call: str) -> None:
        if self._recording is not None:
            self._broken = True
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported", f"{_PROHIBITED}: {call}")

    def record(self, event: Event | None = None) -> Event:
        """Mark the end of the queue with an event."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Later work waits for the event."""
        self.enqueue(event._reach)

    def is_capturing(self) -> bool:
        return self._recording is not None

    def begin_capture(self, mode: int | None = None) -> None:
        """Record further work into a graph. mode: RELAXED by default. Raises: CUDARuntimeError on the default stream."""
        if self._is_default:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported", f"{_PROHIBITED}: the legacy stream")
        if self._recording is not None:
            raise CUDARuntimeError("cudaErrorIllegalState", "the operation cannot be performed in the present state")
        self._recording, self._broken, self._is_strict = [], False, mode not in (None, RELAXED)

    def end_capture(self) -> Graph:
        """The graph. Raises: CUDARuntimeError without a capture, or if the capture was made invalid."""
        recorded, self._recording = self._recording, None
        if recorded is None:
            raise CUDARuntimeError("cudaErrorIllegalState", "the operation cannot be performed in the present state")
        if self._broken:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture")
        return Graph(recorded)

    def use(self) -> Stream:
        """Make it the current stream."""
        _stack()[-1] = self
        return self

    def __enter__(self) -> Stream:
        _stack().append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack().pop()

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        """Call `callback(arg)` on the host in the order of the stream."""
        self.enqueue(lambda: callback(arg))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<Stream {self.ptr:#x} (device 0), emulated>"


def run(work: Work) -> None:
    """Run work now. After an error no more work runs until the error was seen."""
    if _error:
        return
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the error belongs to the device and appears at a synchronisation
        _error.append(error)


def raise_error() -> None:
    """Raise the asynchronous error, if there is one."""
    if _error:
        error = _error.pop()
        _error.clear()
        if isinstance(error, CUDARuntimeError):
            raise error
        raise CUDARuntimeError("cudaErrorAssert", f"device-side assert triggered ({type(error).__name__}: {error})") from error


def synchronize_device() -> None:
    """Run the work of all streams. Raises: CUDARuntimeError during a capture, and the asynchronous error."""
    if is_capturing_globally():
        invalidate_captures()
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported", f"{_PROHIBITED}: cudaDeviceSynchronize")
    for stream in _all:
        stream.run_queue()
    raise_error()


def is_capturing_globally() -> bool:
    """Whether any stream is being captured."""
    return any(stream._recording is not None for stream in _all)


def forbids_allocation() -> bool:
    """Whether a capture is under way in a mode that forbids `cudaMalloc`."""
    return any(stream._recording is not None and stream._is_strict for stream in _all)


def invalidate_captures() -> None:
    """Something prohibited happened: every capture fails at its end."""
    for stream in _all:
        stream._broken |= stream._recording is not None


def _stack() -> list[Stream]:
    if not hasattr(_local, "stack"):
        _local.stack = [Stream.null]
    return _local.stack  # type: ignore[no-any-return]


def get_current_stream(device_id: int = -1) -> Stream:
    """The stream that receives new work of this thread."""
    return _stack()[-1]


class Event:
    """A place in a stream's queue, and the time at which the work before it ended."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._timed = not disable_timing
        self._stream: Stream | None = None
        self._at = 0
        self._time: float | None = None
        self._capture: list[Work] | None = None  # the capture that recorded it, which must not be queried
        self.ptr = id(self)

    def record(self, stream: Stream | None = None) -> None:
        """Mark the present end of the queue of a stream, by default the current one."""
        stream = stream if stream is not None else get_current_stream()
        self._stream, self._time, self._capture = stream, None, stream._recording
        if stream._recording is not None:
            stream._recording.append(self._stamp)
            self._at = 0
            return
        stream.enqueue(self._stamp)
        self._at = stream._done + len(stream._queue)

    def _stamp(self) -> None:
        self._time = time.perf_counter()

    def _reach(self) -> None:
        """Run the work before the event."""
        if self._stream is not None and self._stream._recording is None:
            self._stream.run_queue(self._at)

    @property
    def done(self) -> bool:
        """Whether the work before the event ran. CuPy reports the error of a captured event, which breaks its capture, as False."""
        if self._stream is not None and self._capture is not None:
            self._stream._broken |= self._stream._recording is self._capture
            return False
        if self._stream is None or self._time is not None:
            return True
        self._stream.run_queue(self._stream._done + 1)  # see Stream.done
        return False

    def synchronize(self) -> None:
        """Run the work before the event; raise the asynchronous error, if there is one."""
        if self._stream is not None:
            self._stream._check_no_capture("cudaEventSynchronize")
        self._reach()
        raise_error()


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events. Raises: CUDARuntimeError if one was not recorded or not reached."""
    if not (start_event._timed and end_event._timed) or start_event._stream is None or end_event._stream is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle", "invalid resource handle")
    if start_event._time is None or end_event._time is None:
        raise CUDARuntimeError("cudaErrorNotReady", "device not ready")
    return (end_event._time - start_event._time) * 1e3


Stream.null = Stream(null=True)
Stream.ptds = Stream.null
