"""Modules of settings under torch's names, such as `torch._dynamo.config`: attributes that are read, set and patched.

Owns the kinds of names: those that are settings of this project, those that only torch's own machinery needs (kept,
without effect), and those of which one value alone is supported. Any other name raises AttributeError, as in torch.
"""

from __future__ import annotations

import difflib
import functools
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eager import _settings


@dataclass(frozen=True, slots=True)
class Setting:
    """A name for a setting of `eager._settings`, by its full name. negated: the name says the contrary."""

    name: str
    negated: bool = False

    def read(self, kept: dict[str, Any], key: str) -> Any:
        group, _, field = self.name.partition("_")
        value = getattr(getattr(_settings.current(), group), field)
        return not value if self.negated else value

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        _settings.assign(**{self.name: not value if self.negated else value})


@dataclass(frozen=True, slots=True)
class Hint:
    """A name that is kept and concerns nothing here: it steers what this project does in any case, or never."""

    default: Any

    def read(self, kept: dict[str, Any], key: str) -> Any:
        return kept.get(key, self.default)

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        kept[key] = value


@dataclass(frozen=True, slots=True)
class Only:
    """A name of which one value is supported. why: what is missing for the others."""

    value: Any
    why: str

    def read(self, kept: dict[str, Any], key: str) -> Any:
        return self.value

    def write(self, kept: dict[str, Any], key: str, value: Any) -> None:
        self.check(key, value)

    def check(self, key: str, value: Any) -> None:
        """Raises: NotImplementedError for another value."""
        if value != self.value:
            raise NotImplementedError(f"{key}={value!r}: {self.why}; allowed: {self.value!r}")


Entry = Setting | Hint | Only


def _shown(module: str) -> str:
    """The name that programs set a module's settings under: `torch._dynamo.config` for `dynamo.config`."""
    top, _, rest = module.partition(".")
    return f"torch.{rest}" if top == "eager" else f"torch._{module}"


class Config(types.ModuleType):
    """A module whose attributes are entries; "group.name" entries stand in a Config of their own below it."""

    def __init__(self, name: str, entries: dict[str, Entry], doc: str | None = None) -> None:
        super().__init__(name, doc)
        groups: dict[str, dict[str, Entry]] = {}
        plain: dict[str, Entry] = {}
        for key, entry in entries.items():
            group, dot, rest = key.partition(".")
            (groups.setdefault(group, {}) if dot else plain)[rest if dot else key] = entry
        self.__dict__["_entries"] = plain
        self.__dict__["_kept"] = {}
        self.__dict__["_groups"] = tuple(groups)
        self.__dict__.update({group: Config(f"{name}.{group}", inner) for group, inner in groups.items()})

    def _entry(self, key: str) -> Entry:
        entries: dict[str, Entry] = self.__dict__["_entries"]
        if key not in entries:
            near = difflib.get_close_matches(key, [*entries, *self.__dict__["_groups"]], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(entries))}"
            raise AttributeError(f"{_shown(self.__name__)} has no setting {key!r}; {hint}", name=key, obj=self)
        return entries[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or "_entries" not in self.__dict__:
            raise AttributeError(key)
        return self._entry(key).read(self.__dict__["_kept"], f"{_shown(self.__name__)}.{key}")

    def __setattr__(self, key: str, value: Any) -> None:
        if key.startswith("__"):
            super().__setattr__(key, value)
            return
        self._entry(key).write(self.__dict__["_kept"], f"{_shown(self.__name__)}.{key}", value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["_entries"]})

    def _at(self, key: str) -> tuple[Config, str]:
        *path, name = key.split(".")
        return functools.reduce(getattr, path, self), name

    def names(self) -> list[str]:
        """Every name, those of groups with the group's."""
        groups = (value for value in self.__dict__.values() if isinstance(value, Config))
        return [*self.__dict__["_entries"], *(f"{g.__name__.rpartition('.')[2]}.{name}" for g in groups for name in g.names())]

    def read(self, key: str) -> Any:
        """The value of a name, perhaps of a group."""
        return getattr(*self._at(key))

    def entry(self, key: str) -> Entry:
        """What stands behind a name, perhaps of a group."""
        config, name = self._at(key)
        return config._entry(name)

    def patch(self, changes: str | dict[str, Any] | None = None, value: Any = None, **named: Any) -> _Patch:
        """Set names for a `with` block or a decorated function: `patch(a=1)`, `patch("a.b", 1)` or `patch({"a.b": 1})`."""
        given = {changes: value} if isinstance(changes, str) else dict(changes or {})
        return _Patch(self, {**given, **named})

    def get_config_copy(self) -> dict[str, Any]:
        """Every name with its value."""
        return {key: getattr(self, key) for key in self.__dict__["_entries"]}


class _Patch:
    """What `Config.patch` gives: a context manager and decorator."""

    def __init__(self, config: Config, changes: dict[str, Any]) -> None:
        self._config = config
        self._changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        places = {key: self._config._at(key) for key in self._changes}
        before = {key: getattr(*place) for key, place in places.items()}
        self._before.append(before)
        try:
            for key, value in self._changes.items():
                setattr(*places[key], value)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        for key, value in self._before.pop().items():
            setattr(*self._config._at(key), value)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return wrapper


def install(name: str, entries: dict[str, Entry]) -> None:
    """Make the module `name`, which is being imported, a Config with these entries."""
    module = sys.modules[name]
    config = Config(name, entries, module.__doc__)
    for key in ("__file__", "__spec__", "__loader__", "__package__"):
        setattr(config, key, getattr(module, key, None))
    sys.modules[name] = config


