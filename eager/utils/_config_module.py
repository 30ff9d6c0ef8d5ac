"""Modules of settings under torch's names, such as `torch._dynamo.config`: attributes that programs read, set and patch.

Owns the kinds of flags: a Setting is a setting of this project; a Hint has no effect here and is kept (its table gives
the reason); an Only supports a single value. Every value is checked against the flag's type. An unknown name raises
AttributeError, as in torch.
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
from pathlib import Path
from typing import Any

from eager.base import settings
from eager.base.records import dataclass

# A table of flags: pairs of a reason and the flags that it applies to, with their default values.
Table = Iterable[tuple[str, Mapping[str, Any]]]


class Values:
    """The values that a flag accepts: given types, or an explicit list of choices, and the default."""

    def __init__(self, default: Any, types_: tuple[type, ...] = (), choices: tuple[Any, ...] = ()) -> None:
        self.default = default
        self.types = types_
        self.choices = choices

    def describe(self) -> str:
        """The accepted values, as an error message lists them."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        names = ["True or False" if kind is bool else "None" if kind is types.NoneType else _with_article(kind) for kind in self.types]
        return " or ".join(names)

    def check(self, key: str, value: Any) -> None:
        """Raises: TypeError for a value of another type; ValueError for a value that is not among the choices."""
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
    """Accept values of these types, or None."""
    return Values(default, (*kinds, types.NoneType))


def one_of(default: Any, *others: Any) -> Values:
    """Accept one of the listed values; the first is the default."""
    return Values(default, choices=(default, *others))


def _values(default: Any) -> Values:
    return default if isinstance(default, Values) else Values(default, (type(default),))


@dataclass(frozen=True, slots=True)
class Setting:
    """A flag that reads and writes a setting of `eager.base.settings`, given by its full name.

    negated: the flag has the opposite meaning. spelt: a value of the setting, and the flag's value with the same meaning.
    choices: all accepted values, if there are few.
    """

    name: str
    negated: bool = False
    spelt: tuple[Any, Any] | None = None
    choices: tuple[Any, ...] = ()

    def current(self) -> Any:
        """The setting's present value."""
        group, _, field = self.name.partition("_")
        return getattr(getattr(settings.current(), group), field)

    def read(self, kept: dict[str, Any], key: str) -> Any:
        """The flag's value, derived from the setting."""
        value = self.current()
        if self.spelt is not None and value == self.spelt[0]:
            return self.spelt[1]
        if isinstance(value, Path):
            return str(value.absolute())
        return not value if self.negated else value

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        """Set the setting. Raises: TypeError, ValueError for a value that the flag does not accept."""
        self.values().check(key, value)
        if self.spelt is not None and (value is None or value == self.spelt[1]):
            value = self.spelt[0]
        try:
            settings.assign(**{self.name: not value if self.negated else value})
        except ValueError as error:
            raise ValueError(f"{key}={value!r}: {error}") from None

    def values(self) -> Values:
        """The accepted values."""
        if self.choices:
            return Values(self.choices[0], choices=self.choices)
        kind = str if isinstance(self.current(), Path) else type(self.current())
        kinds = (kind, types.NoneType) if self.spelt is not None else (kind,)
        return Values(self.read({}, ""), kinds)


@dataclass(frozen=True, slots=True)
class Hint:
    """A flag that stores its value and has no effect here. why: the behaviour of this project instead."""

    accepted: Values
    why: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        """The stored value, or the default."""
        if key not in kept and isinstance(self.accepted.default, list | dict | set):
            kept[key] = type(self.accepted.default)(self.accepted.default)  # a copy, because a program may change it in place
        return kept.get(key, self.accepted.default)

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        """Store a value. Raises: TypeError, ValueError for a value that the flag does not accept."""
        self.accepted.check(key, value)
        kept[key] = value

    def values(self) -> Values:
        """The accepted values."""
        return self.accepted


@dataclass(frozen=True, slots=True)
class Only:
    """A flag that supports a single value. why: the requirements of the other values, and an alternative."""

    accepted: Values
    why: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        """The supported value."""
        default = self.accepted.default
        return type(default)(default) if isinstance(default, list | dict | set) else default

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        """Check the value; there is nothing to store."""
        self.check(key, value)

    def check(self, key: str, value: Any) -> None:
        """Raises: TypeError, ValueError for a value that the flag does not accept; NotImplementedError for an unsupported one."""
        self.accepted.check(key, value)
        if value != self.accepted.default:
            raise NotImplementedError(f"{key}={value!r}: {self.why}; allowed: {self.accepted.default!r}")

    def values(self) -> Values:
        """The accepted values."""
        return self.accepted


@dataclass(frozen=True, slots=True)
class Alias:
    """A flag of another module under a second name."""

    module: Config
    name: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        """The value of the other module's flag."""
        return getattr(self.module, self.name)

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        """Set the other module's flag."""
        setattr(self.module, self.name, value)

    def values(self) -> Values:
        """The accepted values."""
        return self.module.entry(self.name).values()


Entry = Setting | Hint | Only | Alias


def hints(table: Table) -> dict[str, Entry]:
    """Flags without effect, from (reason, {name: default}) pairs."""
    return {name: Hint(_values(default), why) for why, flags in table for name, default in flags.items()}


def refused(table: Table) -> dict[str, Entry]:
    """Flags that support only their default, from (reason, {name: default}) pairs."""
    return {name: Only(_values(default), why) for why, flags in table for name, default in flags.items()}


class Config(types.ModuleType):
    """A module whose attributes are flags. Flags named "group.name" live in a nested Config for the group."""

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
        config, name = self._locate(key)
        config._entry(name).write(config.__dict__["_kept"], f"{config.__dict__['_shown']}.{name}", value)
        config.__dict__["_hidden"].discard(name)

    def __delattr__(self, key: str) -> None:
        """Hide a flag until it is set again, because unittest.mock deletes an attribute before it restores it."""
        self._entry(key)
        self.__dict__["_hidden"].add(key)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["_entries"]})

    def _locate(self, key: str) -> tuple[Config, str]:
        group, dot, name = key.partition(".")
        if not dot:
            return self, key
        if group not in self.__dict__["_groups"]:
            self._entry(group)
        return self.__dict__["_groups"][group], name

    def names(self) -> list[str]:
        """Every flag name; a flag of a group has the group's name before a dot."""
        groups = self.__dict__["_groups"].items()
        return [*self.__dict__["_entries"], *(f"{group}.{name}" for group, inner in groups for name in inner.names())]

    def read(self, key: str) -> Any:
        """The value of a flag, which may belong to a group."""
        config, name = self._locate(key)
        return getattr(config, name)

    def entry(self, key: str) -> Entry:
        """The table's entry for a flag, which may belong to a group."""
        config, name = self._locate(key)
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
        """All flags with their values, except aliases of another module's flags."""
        return {key: self.read(key) for key in self.names() if not isinstance(self.entry(key), Alias)}

    def get_serializable_config_copy(self) -> dict[str, Any]:
        """All flags with their values."""
        return self.get_config_copy()

    def to_dict(self) -> dict[str, Any]:
        """All flags with their values (deprecated in torch)."""
        warnings.warn("`config.to_dict()` has been deprecated. It no longer changes the underlying config."
                      " use `config.get_config_copy()` instead", FutureWarning, stacklevel=2)  # fmt: skip
        return self.get_config_copy()

    def shallow_copy_dict(self) -> dict[str, Any]:
        """All flags with their values (deprecated in torch)."""
        warnings.warn("`config.shallow_copy_dict()` has been deprecated. It no longer changes the underlying config."
                      " use `config.get_config_copy()` instead", FutureWarning, stacklevel=2)  # fmt: skip
        return self.get_config_copy()

    def save_config(self) -> bytes:
        """All flags with their values, pickled."""
        return pickle.dumps(self.get_config_copy(), protocol=2)

    def save_config_portable(self, *, ignore_private_configs: bool = True) -> dict[str, Any]:
        """All flags with their values; ignore_private_configs leaves out names with a leading underscore."""
        return {key: value for key, value in self.get_config_copy().items() if not (ignore_private_configs and key.startswith("_"))}

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Set the flags that `save_config` or `get_config_copy` returned; warns about an unknown name."""
        given = maybe_pickled_config if isinstance(maybe_pickled_config, dict) else pickle.loads(maybe_pickled_config)
        known = set(self.names())
        for key, value in given.items():
            if key in known:
                setattr(self, key, value)
            else:
                warnings.warn(f"key {key} with value {value} is not understood by this config", stacklevel=2)

    def codegen_config(self) -> str:
        """Python statements that set the flags whose values differ from the defaults."""
        changed = ((key, self.read(key), self.entry(key)) for key in self.names())
        return "\n".join(f"{self.__dict__['_shown']}.{key} = {value!r}" for key, value, entry in changed
                         if not isinstance(entry, Setting | Alias) and value != entry.values().default)  # fmt: skip

    def get_hash(self) -> bytes:
        """A digest of all flags' values."""
        return hashlib.md5(repr(sorted(self.get_config_copy().items())).encode(), usedforsecurity=False).digest()

    def read_environment(self, prefixes: tuple[str, ...], names: Mapping[str, str]) -> None:
        """Set flags from environment variables: those in `names`, and those named prefix + flag.

        Warns if one has no effect.
        """
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
        """The flag that an environment variable sets, which may belong to a group; None if it sets none."""
        names: Mapping[str, str] = self.__dict__["_variables"]
        if variable in names:
            return names[variable]
        words = [variable.removeprefix(prefix).lower() for prefix in self.__dict__["_prefixes"] if variable.startswith(prefix)]
        return next((key for key in self.names() if key.replace(".", "_") in words or key.rpartition(".")[2] in words), None)


def _parsed(text: str, accepted: Values) -> Any:
    """The text of an environment variable as a value of the flag's type, if it can be parsed."""
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
    """A subclass of a unittest.TestCase that runs all tests with the flags set."""

    def set_up(cls: Any) -> None:
        patch.__enter__()
        try:
            super(patched, cls).setUpClass()
        except BaseException:
            patch.__exit__()
            raise

    def tear_down(cls: Any) -> None:
        try:
            super(patched, cls).tearDownClass()
        finally:
            patch.__exit__()

    patched: Any = type(case.__name__, (case,), {
        "__module__": case.__module__, "__qualname__": case.__qualname__, "setUpClass": classmethod(set_up),
        "tearDownClass": classmethod(tear_down),
    })  # fmt: skip
    return patched


def install(name: str, shown: str, entries: Mapping[str, Entry], second_names: Mapping[str, str] | None = None) -> Config:
    """Turn the module `name`, which is being imported, into a Config with these entries.

    shown: the name that programs use. second_names: alternative names of flags.
    """
    module = sys.modules[name]
    config = Config(name, shown, entries, module.__doc__)
    config.__dict__["_entries"].update({second: Alias(config, first) for second, first in (second_names or {}).items()})
    for key in ("__file__", "__spec__", "__loader__", "__package__"):
        setattr(config, key, getattr(module, key, None))
    sys.modules[name] = config
    return config
