"""`torch.futures`: results that other threads give later.

A callback that raises in `then` makes its future raise; one of `add_done_callback` only logs, as nobody could see it.
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
    """A value that is set once, by `set_result` or `set_exception`, and waited for by any number of threads."""

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether it has a result, which may be an exception."""
        return self._is_done

    def wait(self) -> T:
        """The result, when it is there. Raises: the exception that was set instead."""
        with self._changed:
            self._changed.wait_for(self.done)
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> T:
        """The result of a future that is done. Raises: RuntimeError for one that is not."""
        if not self._is_done:
            raise RuntimeError("Future: value() called before it has a result; wait() waits for it")
        return self.wait()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of callback(self), which is called when this one is done; its exceptions are that future's."""
        after: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
                after.set_exception(error)

        self._when_done(run)
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call callback(self) when this future is done. Its exceptions are logged."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:  # noqa: BLE001 - torch logs it, whatever it is
                _log.exception("Future: a done callback raised")

        self._when_done(run)

    def set_result(self, result: T) -> None:
        """Give the value. Raises: RuntimeError for a future that is done."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Make `wait` raise. Raises: RuntimeError for a future that is done."""
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
    """A future that is done when all of `futures` are; its result is the list of them."""
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
    """The results of `futures`, when all are there. Raises: the first exception among them, in order."""
    return [future.wait() for future in collect_all(futures).wait()]
