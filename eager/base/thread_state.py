"""Thread state that changes the meaning of op calls: autocast, the default device, modes of the program.

Owns: the per-thread values, and the number of their combination. The number is in the upper bits of the native mode word, so
that the compiler's guards compare the whole state in one step. The fast paths of native code run only while the word is zero.
Zero: all off; odd: autocast is on. The meaning of the values is defined by the modules that set them.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final

from eager import _native

SHIFT = 16  # bits below: the number of dispatch modes (see `eager.dispatch.calls`)
AUTOCAST = 1 << SHIFT
MODES = AUTOCAST - 1

# A number gets its meaning before it can be found, since other threads read these without a lock. Of two threads that number one
# value at the same time, both use the number that is found first.
_new_words, _new_numbers = itertools.count(1), itertools.count(1)
_words: dict[tuple[Hashable, Hashable, bool], int] = {(None, None, False): 0}  # (autocast, device, intercepting) -> word
_values: dict[int, tuple[Any, Any, bool]] = {0: (None, None, False)}


class _State(threading.local):
    autocast: Any = None
    number: int = 0  # of `autocast`, see `number_of`
    device: Any = None
    interceptors: int = 0


_state = _State()
_autocasts: dict[int, Hashable] = {0: None}  # every value that autocast had, by number
_numbers: dict[Hashable, int] = {None: 0}
_when_off: list[Callable[[], None]] = []


def autocast() -> Any:
    """The autocast setting of this thread; None if autocast is off."""
    return _state.autocast


def device() -> Any:
    """The default device of this thread; None for the CPU."""
    return _state.device


def set_autocast(value: Hashable) -> Any:
    """Set autocast. Returns: the former setting."""
    before, _state.autocast = _state.autocast, value
    _state.number = number_of(value)
    _publish()
    return before


def number_of(value: Hashable) -> int:
    """The number that stands for a value of autocast in this process; 0 for None."""
    found = _numbers.get(value)
    if found is None:
        number = next(_new_numbers)
        _autocasts[number] = value
        found = _numbers.setdefault(value, number)
    return found


# () -> the number of the autocast setting of this thread.
autocast_number: Final[Callable[[], int]] = partial(getattr, _state, "number")


def switch_autocast(number: int) -> int:
    """Open or close a block of autocast by number, which captured graphs can hold; returns the number before."""
    before = autocast_number()
    set_autocast(_autocasts[number])
    if number == 0 and before:
        for call in _when_off:
            call()
    return before


def call_when_off(call: Callable[[], None]) -> None:
    """Call `call` whenever the last block of autocast in a thread ends."""
    _when_off.append(call)


def set_device(value: Hashable) -> Any:
    """Set the default device. Returns: the former default."""
    before, _state.device = _state.device, value
    _publish()
    return before


# () -> how many modes of the program see functions or ops in this thread: compiled code would hide them from these.
interceptors: Final[Callable[[], int]] = partial(getattr, _state, "interceptors")


def count_interceptors(change: int) -> None:
    """Count a mode in (1) or out (-1)."""
    _state.interceptors += change
    _publish()


def word() -> int:
    """The number of this thread's combination; the same in all threads of the process. Native code has it too (see `_publish`)."""
    key = (_state.autocast, _state.device, _state.interceptors > 0)
    found = _words.get(key)
    if found is None:
        number = 2 * next(_new_words) + (key[0] is not None)
        _values[number] = key
        found = _words.setdefault(key, number)
    return found


def describe(number: int) -> str:
    """The combination that a word stands for, for logs."""
    on, where, intercepting = _values[number]
    parts = [f"autocast {on}" if on is not None else "no autocast"]
    parts += [f"default device {where}"] if where is not None else []
    return ", ".join([*parts, "a mode of the program"] if intercepting else parts)


def _publish() -> None:
    _native.set_mode_depth((_native.mode_depth() & MODES) | word() << SHIFT)
