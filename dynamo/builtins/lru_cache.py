"""Calls of functions behind functools.lru_cache.

The result for constant arguments is read from the cache at capture, and is a constant in the compiled code. Each run of
the compiled code calls the function again, so that the cache counts the same hits as in eager. A function with effects
runs them only on a cache miss, and a capture cannot predict a miss: such a call breaks the graph.
"""

from __future__ import annotations

import functools
import gc
import itertools
from typing import Any, Final

from dynamo.builtins.registry import Row
from dynamo.guards.sources import ConstSource, DictItemSource
from dynamo.policy import callees
from dynamo.policy.callees import ANSWER_RULES
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.trees import to_host
from dynamo.world.side_effects import CachedCall


def repeat_cached_call(call: CachedCall) -> None:
    """Call a cached function from compiled code, where the program calls it."""
    if call.ahead:
        call.ahead = False
    else:
        call.fn(*call.args, **call.kwargs)

_ONLY_TUPLES: Final = frozenset({tuple})  # arguments must be hashable


def call_cached(cap: Machine, fn: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """fn(*args, **kwargs)"""
    try:
        given = tuple(_host_value(cap, a) for a in args)
        named = {k: _host_value(cap, v) for k, v in kwargs.items()}
    except NotConstant:
        return _followed(cap, fn, args, kwargs)
    code = getattr(fn.__wrapped__, "__code__", None)
    if code is not None and callees.may_capture(code) and _key(fn, given, named) not in _held(fn):
        _followed(cap, fn, args, kwargs)  # for its exceptions, and to check that it has no effects
    result = cap.host(fn, *given, **named)
    held, key = _held(fn), _key(fn, given, named)
    if key in held:  # until the cache forgets it
        cap.world.guard("is", DictItemSource(ConstSource(held, f"{getattr(fn, '__qualname__', 'cached')}.cache"), key), held[key])
    cap.effects.repeat_cached_call(CachedCall(fn, given, named))
    return cap.world.wrap_static(result)


def _followed(cap: Machine, fn: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The result of the function behind the cache, which must not change objects that existed before."""
    inner = fn.__wrapped__
    before = cap.effects.outside
    result = cap.call(cap.world.wrap(inner, ConstSource(inner, getattr(inner, "__name__", "cached"))), args, kwargs)
    if cap.effects.outside != before:
        detail = f"{getattr(inner, '__qualname__', inner)}() is cached and has effects: they happen only on a cache miss"
        raise Unsupported(causes.UNKNOWN_CALL, detail)
    return result


def _held(fn: Any) -> dict[Any, Any]:
    """The dict that holds the results of `fn`, or the links of a list of them; an empty dict if `fn` keeps none.

    A read of the dict does not count as a hit.
    """
    return next((d for d in gc.get_referents(fn) if type(d) is dict and d is not fn.__dict__), {})


def _key(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The key of a call in the dict of results (lru_cache_make_key in Modules/_functoolsmodule.c)."""
    typed = fn.cache_parameters()["typed"]
    if not kwargs and not typed:
        return args[0] if len(args) == 1 and type(args[0]) in (int, str) else args
    key = (*args, *((_KEYWORDS, *itertools.chain(*kwargs.items())) if kwargs else ()))
    return (*key, *map(type, args), *map(type, kwargs.values())) if typed else key


@functools.lru_cache
def _probe(**kwargs: None) -> None:
    return None


_probe(name=None)
_KEYWORDS: Final = next(iter(_held(_probe)))[0]  # the separator of positions and keywords in a key


def _host_value(cap: Machine, value: Value) -> Any:
    """The host object of a constant, of a tuple of constants, or of an object that the entry holds.

    Raises: NotConstant.
    """

    def leaf(value: Value) -> Any:
        is_held = isinstance(value, UserObject) and value.source is not None and value.source.is_constant_rooted
        real = getattr(value, "real", None) if is_held else None
        return value.as_constant() if real is None else real

    return to_host(cap, value, _ONLY_TUPLES, leaf)


def _cached(fn: Any) -> Row | None:
    """The row of a function behind a cache; None for any other callee."""
    return (lambda cap, args, kwargs: call_cached(cap, fn, args, kwargs)) if isinstance(fn, type(_probe)) else None


ANSWER_RULES.append(_cached)
