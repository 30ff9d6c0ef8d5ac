"""Locks of state that all threads share.

A thread may take a lock that it holds: the garbage collector runs finalizers in the middle of any code, a signal handler runs
between two instructions, and both may call the function that they interrupt. In a forked child, a lock that another thread of the
parent held is free: that thread does not exist in the child.
"""
from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> AbstractContextManager[Any]:
    """A lock that its holder may take again, and that is free in a forked child unless the forking thread holds it."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _after_fork() -> None:
    for lock in _made:
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
