"""`torch.futures`: results that other threads provide later.

An exception of a `then` callback becomes the exception of its future; an exception of an `add_done_callback` callback is only logged.
"""
from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")
_log = logging.getLogger(__name__)


class Future(Generic[T]):
    """A value that is set once, by `set_result` or `set_exception`; any number of threads can wait for it."""

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether the result, or an exception, is set."""
        return self._is_done

    def wait(self) -> T:
        """Wait for the result and return it. Raises: the exception, if one is set."""
        with self._changed:
            self._changed.wait_for(self.done)
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> T:
        """The result of a completed future. Raises: RuntimeError if it is not completed."""
        if not self._is_done:
            raise RuntimeError("Future: value() called before it has a result; wait() waits for it")
        return self.wait()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Call callback(self) on completion. Returns: a future of its result or exception."""
        after: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:  # noqa: BLE001 - the waiting thread receives it
                after.set_exception(error)

        self._when_done(run)
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call callback(self) on completion. Its exceptions are logged."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:  # noqa: BLE001 - torch logs every exception
                _log.exception("Future: a done callback raised")

        self._when_done(run)

    def set_result(self, result: T) -> None:
        """Set the value. Raises: RuntimeError if the future is completed."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Make `wait` raise.

        Raises: RuntimeError if the future is completed; AssertionError unless `result` is an exception.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError("Future can only be marked completed once: it has a result already")
            self._value, self._error, self._is_done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def _when_done(self, callback: Callable[[Future[T]], None]) -> None:
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that completes when all of `futures` have; its result is their list."""
    together: Future[list[Future[Any]]] = Future()
    lock = threading.Lock()
    waiting = len(futures)

    def one_less(_: Future[Any]) -> None:
        nonlocal waiting
        with lock:
            waiting -= 1
            last = not waiting
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future._when_done(one_less)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all `futures` and return their results. Raises: the first exception among them, in order."""
    return [future.wait() for future in collect_all(futures).wait()]
