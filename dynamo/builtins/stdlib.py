"""Python functions of the standard library whose calls a capture answers without following their code: signatures, the
environment, pure functions.

The facts behind an answer are guarded: the parts of the functions behind a signature, single variables of os.environ.
"""

from __future__ import annotations

import bisect
import inspect
import json
import os
import re
import struct
import sys
import textwrap
import types
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from dynamo.builtins.registry import Args, Kwargs, Row, on_constants
from dynamo.guards.sources import AttrSource, ConstSource, DictAttrSource, DictItemSource
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.builtin_subclasses import ContainerObject
from dynamo.values.functions import BoundMethod, FunctionValue
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Machine, Value

_SIGNS_OTHERWISE: Final = ("__signature__", "__partialmethod__", "_partialmethod")  # attributes that inspect reads before the code


def _signature(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """inspect.signature(fn) of a function or a method: it depends on the function only."""
    value = cap.realize(args[0]) if len(args) == 1 and not kwargs else NONE
    bound = isinstance(value, BoundMethod)
    fn = cap.realize(value.func) if isinstance(value, BoundMethod) else value
    if not isinstance(fn, FunctionValue):
        raise Unsupported(causes.UNKNOWN_CALL, "inspect.signature() of anything but a function or a method")
    described = fn
    while True:  # as inspect.unwrap does
        for name in _SIGNS_OTHERWISE:
            if cap.attributes.has(described, name):
                raise Unsupported(causes.UNKNOWN_CALL, f"inspect.signature() of {fn.describe()}, which has a {name}")
        if described.real is None:
            raise Unsupported(causes.UNKNOWN_CALL, f"inspect.signature() of {described.describe()}, made in the compiled function")
        if not cap.attributes.has(described, "__wrapped__"):
            break
        inner = cap.realize(described.getattr(cap, "__wrapped__"))
        if not isinstance(inner, FunctionValue):
            raise Unsupported(causes.UNKNOWN_CALL, f"inspect.signature() of {inner.describe()}")
        described = inner
    real = _depend_on(cap, described)
    return cap.world.wrap_static(cap.host(inspect.signature, types.MethodType(real, object()) if bound else real))


def _depend_on(cap: Machine, fn: FunctionValue) -> types.FunctionType:
    """Guard the parts of the function that its signature shows: code, defaults and annotations."""
    real, source = fn.real, fn.source
    assert real is not None and source is not None
    cap.world.guard("is", AttrSource(source, "__code__"), real.__code__)
    cap.world.guard("is", AttrSource(source, "__defaults__"), real.__defaults__)
    for name in ("__kwdefaults__", "__annotations__"):
        found = getattr(real, name)
        cap.world.guard("is", AttrSource(source, name), found)
        if found:
            held = ConstSource(found, f"{fn.name}.{name}")
            cap.world.guard("dict_keys", held, tuple(found))
            for key, item in found.items():
                cap.world.guard("is", DictItemSource(held, key), item)
            if getattr(cap.world.by_id.get(id(found)), "mutated", False):
                raise Unsupported(causes.UNKNOWN_CALL, f"inspect.signature() of {fn.describe()}, changed in the compiled function")
    return real


ANSWERS[inspect.signature] = _signature


# --- the environment -------------------------------------------------------------------------------------------


def _environ_getitem(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """os.environ[key]; the guard covers this key only."""
    owner, key = cap.realize(args[0]), cap.realize(args[1])
    if not isinstance(owner, UserObject) or not isinstance(owner.source, ConstSource):
        raise Unsupported(causes.UNKNOWN_CALL, f"{owner.describe()}.__getitem__()")
    if not isinstance(key, Constant):
        raise Unsupported(causes.UNKNOWN_CALL, f"os.environ[{key.describe()}]")
    data = owner.real._data
    cap.world.guard("is", DictAttrSource(owner.source, "_data"), data)
    held, name = ConstSource(data, owner.source.name), cap.host(owner.real.encodekey, key.value)
    if name not in data:
        cap.world.guard("dict_absent", held, name)
        return cap.exceptions.raise_values(KeyError, [key])
    cap.world.guard("const_eq", DictItemSource(held, name), data[name])
    return Constant(cap.host(owner.real.decodevalue, data[name]))


def _getenv(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """os.getenv(key, default=None)"""
    environ = cap.world.wrap(os.environ, DictItemSource(ConstSource(vars(os), "os"), "environ"))
    return cap.call_method(environ, "get", args, kwargs)


ANSWERS[os._Environ.__getitem__] = _environ_getitem
ANSWERS[os.getenv] = _getenv


# --- functions that only compute ---------------------------------------------------------------------------------

_PURE: Final[tuple[Callable[..., Any], ...]] = (
    re.match, re.fullmatch, re.search, re.sub, re.subn, re.split, re.findall, re.finditer, re.compile, re.escape,
    os.path.join, os.path.basename, os.path.dirname, os.path.split, os.path.splitext, os.path.normpath, os.path.isabs,
    textwrap.dedent, textwrap.indent, textwrap.fill, textwrap.wrap, textwrap.shorten,
    json.loads, json.dumps, struct.calcsize, struct.pack, struct.unpack, bisect.bisect_left, bisect.bisect_right,
    int.from_bytes, float.fromhex, bytes.fromhex, str.maketrans, sys.intern,
)  # fmt: skip
_PURE_CLASSES: Final = (Fraction, timedelta, PurePosixPath, PureWindowsPath)


def _computed(fn: Callable[..., Any]) -> Row:
    """A row for a pure function or class.

    An instance argument breaks the graph: the result may contain the instance, and a constant cannot.
    """
    plain = on_constants(fn)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        for value in map(cap.realize, (*args, *kwargs.values())):
            flags = getattr(value, "real", None) if isinstance(value, UserObject) else value.value if isinstance(value, Constant) else None
            if isinstance(value, UserObject) and not isinstance(flags, re.RegexFlag):
                raise Unsupported(causes.OPAQUE_OBJECT, f"{fn.__name__}() of {value.describe()}")
            if getattr(fn, "__module__", "") == "re" and isinstance(flags, int) and flags & re.DEBUG:
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() with re.DEBUG, which prints")
        return plain(cap, args, kwargs)

    return row


def _read(fn: Callable[..., Any]) -> Row:
    """A row for a method of str: it reads the stored text of an instance, without calls of overridden methods."""
    plain = on_constants(fn)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        texts = (v.contents(cap) if isinstance(v, ContainerObject) and v.base is str else v for v in map(cap.realize, args))
        return plain(cap, list(texts), kwargs)

    return row


for _fn in (str.lower, str.upper, str.strip):
    ANSWERS[_fn] = _read(_fn)
for _fn in _PURE:
    ANSWERS[_fn] = _computed(_fn)
ANSWERS.update((kind, _computed(kind)) for kind in _PURE_CLASSES)
