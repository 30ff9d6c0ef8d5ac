"""Modules of settings under torch's names, such as `torch._dynamo.config`: attributes that are read, set and patched.

Owns the kinds of flags: those that are settings of this project, those whose effect is absent here (kept, with the reason
in their table), and those of which one value alone is supported. Every value is checked against the flag's type. An
unknown name raises AttributeError, as in torch.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eager.base import settings

# A table of flags: the reason for a group of flags, and each flag's default value.
Table = Iterable[tuple[str, Mapping[str, Any]]]


class Values:
    """The values that a flag may have: its default, the types it allows, or every value by itself."""

    def __init__(self, default: Any, types_: tuple[type, ...] = (), choices: tuple[Any, ...] = ()) -> None:
        self.default = default
        self.types = types_
        self.choices = choices

    def describe(self) -> str:
        """The values as an error lists them."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        names = ["True or False" if kind is bool else "None" if kind is types.NoneType else _with_article(kind) for kind in self.types]
        return " or ".join(names)

    def check(self, key: str, value: Any) -> None:
        """Raises: TypeError for a value of another type, ValueError for one that is not among the choices."""
        if self.choices:
            if not any(value == choice and type(value) is type(choice) for choice in self.choices):
                near = difflib.get_close_matches(str(value), map(str, self.choices), n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{key}={value!r}: allowed: {self.describe()}{hint}")
        elif not _is_one_of(value, self.types):
            kind = "None" if value is None else _with_article(type(value))
            raise TypeError(f"{key}={value!r}: this is {kind}; allowed: {self.describe()}")


def _is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    if object in kinds:
        return True
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _with_article(kind: type) -> str:
    return f"an {kind.__name__}" if kind.__name__[0] in "aeiou" else f"a {kind.__name__}"


def optional(*kinds: type, default: Any = None) -> Values:
    """Values of these types, or None."""
    return Values(default, (*kinds, types.NoneType))


def one_of(default: Any, *others: Any) -> Values:
    """One of the values listed, of which the first is the default."""
    return Values(default, choices=(default, *others))


def _values(default: Any) -> Values:
    return default if isinstance(default, Values) else Values(default, (type(default),))


@dataclass(frozen=True, slots=True)
class Setting:
    """A name for a setting of `eager.base.settings`, by its full name. negated: the name says the contrary.

    spelt: a value of the setting, and torch's value of the flag that means the same. choices: all values, where they are few.
    """

    name: str
    negated: bool = False
    spelt: tuple[Any, Any] | None = None
    choices: tuple[Any, ...] = ()

    def current(self) -> Any:
        group, _, field = self.name.partition("_")
        return getattr(getattr(settings.current(), group), field)

    def read(self, kept: dict[str, Any], key: str) -> Any:
        value = self.current()
        if self.spelt is not None and value == self.spelt[0]:
            return self.spelt[1]
        if isinstance(value, Path):
            return str(value.absolute())
        return not value if self.negated else value

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        self.values().check(key, value)
        if self.spelt is not None and (value is None or value == self.spelt[1]):
            value = self.spelt[0]
        try:
            settings.assign(**{self.name: not value if self.negated else value})
        except ValueError as error:
            raise ValueError(f"{key}={value!r}: {error}") from None

    def values(self) -> Values:
        if self.choices:
            return Values(self.choices[0], choices=self.choices)
        kind = str if isinstance(self.current(), Path) else type(self.current())
        kinds = (kind, types.NoneType) if self.spelt is not None else (kind,)
        return Values(self.read({}, ""), kinds)


@dataclass(frozen=True, slots=True)
class Hint:
    """A flag that is kept and changes nothing here. why: what this project does instead."""

    accepted: Values
    why: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        if key not in kept and isinstance(self.accepted.default, list | dict | set):
            kept[key] = type(self.accepted.default)(self.accepted.default)  # a program may change it in place
        return kept.get(key, self.accepted.default)

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        self.accepted.check(key, value)
        kept[key] = value

    def values(self) -> Values:
        return self.accepted


@dataclass(frozen=True, slots=True)
class Only:
    """A flag of which one value is supported. why: what is missing for the others, and what to do."""

    accepted: Values
    why: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        default = self.accepted.default
        return type(default)(default) if isinstance(default, list | dict | set) else default

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        self.check(key, value)

    def check(self, key: str, value: Any) -> None:
        """Raises: TypeError or ValueError for what is no value of the flag; NotImplementedError for one that is not supported."""
        self.accepted.check(key, value)
        if value != self.accepted.default:
            raise NotImplementedError(f"{key}={value!r}: {self.why}; allowed: {self.accepted.default!r}")

    def values(self) -> Values:
        return self.accepted


@dataclass(frozen=True, slots=True)
class Alias:
    """Another module's flag."""

    module: Config
    name: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        return getattr(self.module, self.name)

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        setattr(self.module, self.name, value)

    def values(self) -> Values:
        return self.module.entry(self.name).values()


Entry = Setting | Hint | Only | Alias


def hints(table: Table) -> dict[str, Entry]:
    """Flags that change nothing, from (reason, {name: default}) pairs."""
    return {name: Hint(_values(default), why) for why, flags in table for name, default in flags.items()}


def refused(table: Table) -> dict[str, Entry]:
    """Flags of which the default alone is supported, from (reason, {name: default}) pairs."""
    return {name: Only(_values(default), why) for why, flags in table for name, default in flags.items()}


class Config(types.ModuleType):
    """A module whose attributes are flags; those called "group.name" are kept in a Config of the group."""

    def __init__(self, name: str, shown: str, entries: Mapping[str, Entry], doc: str | None = None) -> None:
        super().__init__(name, doc)
        groups: dict[str, dict[str, Entry]] = {}
        plain: dict[str, Entry] = {}
        for key, entry in entries.items():
            group, dot, rest = key.partition(".")
            (groups.setdefault(group, {}) if dot else plain)[rest if dot else key] = entry
        inner = {group: Config(f"{name}.{group}", f"{shown}.{group}", flags) for group, flags in groups.items()}
        self.__dict__.update(inner, _shown=shown, _entries=plain, _kept={}, _groups=inner, _hidden=set(), _prefixes=(), _variables={})

    def _entry(self, key: str) -> Entry:
        entries: dict[str, Entry] = self.__dict__["_entries"]
        if key not in entries:
            inner = {name.rpartition(".")[2]: name for name in self.names()}
            near = difflib.get_close_matches(key, [*entries, *self.__dict__["_groups"], *inner], n=1)
            some = ", ".join(sorted(name for name in entries if name[0] != "_")[:40])
            hint = f"did you mean {inner.get(near[0], near[0])!r}?" if near else f"there are: {some}{', ...' if len(entries) > 40 else ''}"
            raise AttributeError(f"{self.__dict__['_shown']} has no setting {key!r}; {hint}", name=key, obj=self)
        return entries[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or "_entries" not in self.__dict__ or key in self.__dict__["_hidden"]:
            raise AttributeError(key)
        if "." in key:
            return self.read(key)
        return self._entry(key).read(self.__dict__["_kept"], f"{self.__dict__['_shown']}.{key}")

    def __setattr__(self, key: str, value: Any) -> None:
        if key.startswith("__"):
            super().__setattr__(key, value)
            return
        config, name = self._at(key)
        config._entry(name).write(config.__dict__["_kept"], f"{config.__dict__['_shown']}.{name}", value)
        config.__dict__["_hidden"].discard(name)

    def __delattr__(self, key: str) -> None:
        """Hide a flag until it is set again: unittest.mock deletes what it sets anew."""
        self._entry(key)
        self.__dict__["_hidden"].add(key)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["_entries"]})

    def _at(self, key: str) -> tuple[Config, str]:
        group, dot, name = key.partition(".")
        if not dot:
            return self, key
        if group not in self.__dict__["_groups"]:
            self._entry(group)
        return self.__dict__["_groups"][group], name

    def names(self) -> list[str]:
        """Every name, with the group's name before a dot."""
        groups = self.__dict__["_groups"].items()
        return [*self.__dict__["_entries"], *(f"{group}.{name}" for group, inner in groups for name in inner.names())]

    def read(self, key: str) -> Any:
        """The value of a flag, perhaps of a group."""
        config, name = self._at(key)
        return getattr(config, name)

    def entry(self, key: str) -> Entry:
        """The table's entry for a flag, perhaps of a group."""
        config, name = self._at(key)
        return config._entry(name)

    def get_type(self, key: str) -> Any:
        """The type of a flag's values, or a tuple of types."""
        accepted = self.entry(key).values()
        kinds = accepted.types or tuple({type(choice) for choice in accepted.choices})
        return kinds[0] if len(kinds) == 1 else kinds

    def patch(self, arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> _Patch:
        """Set flags for a `with` block or a decorated function: `patch(a=1)`, `patch("a.b", 1)` or `patch({"a.b": 1})`."""
        if arg1 is None:
            return _Patch(self, kwargs)
        if kwargs:
            raise AssertionError("cannot pass both positional and keyword arguments to patch")
        if isinstance(arg1, str):
            return _Patch(self, {arg1: arg2})
        if not isinstance(arg1, Mapping) or arg2 is not None:
            raise AssertionError("patch takes a name and a value, a dict, or keywords")
        return _Patch(self, dict(arg1))

    def get_config_copy(self) -> dict[str, Any]:
        """Every flag with its value, without those that are another module's."""
        return {key: self.read(key) for key in self.names() if not isinstance(self.entry(key), Alias)}

    def get_serializable_config_copy(self) -> dict[str, Any]:
        """Every flag with its value."""
        return self.get_config_copy()

    def to_dict(self) -> dict[str, Any]:
        """Every flag with its value (deprecated in torch)."""
        warnings.warn("`config.to_dict()` has been deprecated. It no longer changes the underlying config."
                      " use `config.get_config_copy()` instead", FutureWarning, stacklevel=2)  # fmt: skip
        return self.get_config_copy()

    def shallow_copy_dict(self) -> dict[str, Any]:
        """Every flag with its value (deprecated in torch)."""
        warnings.warn("`config.shallow_copy_dict()` has been deprecated. It no longer changes the underlying config."
                      " use `config.get_config_copy()` instead", FutureWarning, stacklevel=2)  # fmt: skip
        return self.get_config_copy()

    def save_config(self) -> bytes:
        """Every flag with its value, pickled."""
        return pickle.dumps(self.get_config_copy(), protocol=2)

    def save_config_portable(self, *, ignore_private_configs: bool = True) -> dict[str, Any]:
        """Every flag with its value; without private names, if asked."""
        return {key: value for key, value in self.get_config_copy().items() if not (ignore_private_configs and key.startswith("_"))}

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Set the flags that `save_config` or `get_config_copy` returned; warns of a name that does not exist."""
        given = maybe_pickled_config if isinstance(maybe_pickled_config, dict) else pickle.loads(maybe_pickled_config)
        known = set(self.names())
        for key, value in given.items():
            if key in known:
                setattr(self, key, value)
            else:
                warnings.warn(f"key {key} with value {value} is not understood by this config", stacklevel=2)

    def codegen_config(self) -> str:
        """Python statements that set the flags whose values are not the defaults."""
        changed = ((key, self.read(key), self.entry(key)) for key in self.names())
        return "\n".join(f"{self.__dict__['_shown']}.{key} = {value!r}" for key, value, entry in changed
                         if not isinstance(entry, Setting | Alias) and value != entry.values().default)  # fmt: skip

    def get_hash(self) -> bytes:
        """A digest of every flag's value."""
        return hashlib.md5(repr(sorted(self.get_config_copy().items())).encode(), usedforsecurity=False).digest()

    def read_environment(self, prefixes: tuple[str, ...], names: Mapping[str, str]) -> None:
        """Set flags from environment variables: `names`, and those called prefix + flag. Warns of one that has no effect."""
        self.__dict__.update(_prefixes=prefixes, _variables=names)
        for variable, text in settings.variables(prefixes, names):
            key = self.flag_of(variable)
            if key is None:
                near = difflib.get_close_matches(variable, [prefixes[0] + key.replace(".", "_").upper() for key in self.names()], n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                warnings.warn(f"environment variable {variable} sets no flag of {self.__dict__['_shown']}{hint}", stacklevel=2)
                continue
            try:
                setattr(self, key, _parsed(text, self.entry(key).values()))
            except (NotImplementedError, TypeError, ValueError) as error:
                warnings.warn(f"environment variable {variable}={text!r} has no effect: {error}", stacklevel=2)

    def flag_of(self, variable: str) -> str | None:
        """The flag that an environment variable sets, perhaps one of a group; None if it sets none."""
        names: Mapping[str, str] = self.__dict__["_variables"]
        if variable in names:
            return names[variable]
        words = [variable.removeprefix(prefix).lower() for prefix in self.__dict__["_prefixes"] if variable.startswith(prefix)]
        return next((key for key in self.names() if key.replace(".", "_") in words or key.rpartition(".")[2] in words), None)


def _parsed(text: str, accepted: Values) -> Any:
    """The value that an environment variable's text stands for, of the flag's type where it can be."""
    for kind in accepted.types:
        if kind is bool and text in ("0", "1"):
            return text == "1"
        if kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return next((choice for choice in accepted.choices if str(choice) == text), text)


class _Patch:
    """A context manager and decorator of functions and test cases: `Config.patch` returns it."""

    def __init__(self, config: Config, changes: dict[str, Any]) -> None:
        self._config = config
        self._changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append({key: self._config.read(key) for key in self._changes})
        try:
            for key, value in self._changes.items():
                setattr(self._config, key, value)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        for key, value in self._before.pop().items():
            setattr(self._config, key, value)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, type) and hasattr(fn, "setUpClass"):
            return _patched_test_case(fn, self)

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return wrapper


def _patched_test_case(case: Any, patch: _Patch) -> Any:
    """A unittest.TestCase whose tests all run with the flags set."""

    class Patched(case):  # type: ignore[valid-type, misc]
        @classmethod
        def setUpClass(cls) -> None:
            patch.__enter__()
            try:
                super().setUpClass()
            except BaseException:
                patch.__exit__()
                raise

        @classmethod
        def tearDownClass(cls) -> None:
            try:
                super().tearDownClass()
            finally:
                patch.__exit__()

    Patched.__name__, Patched.__qualname__, Patched.__module__ = case.__name__, case.__qualname__, case.__module__
    return Patched


def install(name: str, shown: str, entries: Mapping[str, Entry], second_names: Mapping[str, str] | None = None) -> Config:
    """Make the module `name`, which is being imported, a Config with these entries.

    shown: the name that programs use. second_names: other names of flags.
    """
    module = sys.modules[name]
    config = Config(name, shown, entries, module.__doc__)
    config.__dict__["_entries"].update({second: Alias(config, first) for second, first in (second_names or {}).items()})
    for key in ("__file__", "__spec__", "__loader__", "__package__"):
        setattr(config, key, getattr(module, key, None))
    sys.modules[name] = config
    return config
