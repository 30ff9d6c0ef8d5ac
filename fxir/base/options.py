"""The request of one compilation: `CompileOptions` (the user's options) and `GraphKind` (the graph's role).

Owns no behaviour: passes and backends take these values as arguments and read no environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from eager.base.records import dataclass

OptionValue: TypeAlias = bool | int | float | str | None

MODES: Final = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class GraphKind(StrEnum):
    """The role of a functional graph that is passed to a backend's `compile_graph`."""

    INFERENCE = "inference"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The arguments of `compile(...)` that a backend may read.

    mode: one of `MODES`. fullgraph: a graph break is an error. dynamic: True, False or None (first static, then symbolic in
    each dimension that changed). options: backend-specific switches, sorted and read-only, so that two equal requests compare
    and hash equal. compiler_timeout_s: the seconds after which a run of the C++ compiler is stopped, for the forward and the
    backward graphs of this compilation; None: the value in the settings. It is not part of the key.
    Raises: RuntimeError for an unknown mode; TypeError for an option value that is not a scalar.
    """

    mode: str = "default"
    fullgraph: bool = False
    dynamic: bool | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    compiler_timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise RuntimeError(f"Unrecognized mode={self.mode}, should be one of: {', '.join(MODES)}")
        for name, value in self.options.items():
            if value is not None and not isinstance(value, bool | int | float | str):
                raise TypeError(
                    f"compile: options[{name!r}] is a {type(value).__name__}; allowed: bool, int, float, str or None"
                )
        object.__setattr__(self, "options", MappingProxyType(dict(sorted(self.options.items()))))

    def __hash__(self) -> int:
        return hash(self.key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompileOptions) and self.key() == other.key()

    def __reduce__(self) -> tuple[object, ...]:
        return CompileOptions, (self.mode, self.fullgraph, self.dynamic, dict(self.options))

    def key(self) -> tuple[object, ...]:
        """A hashable value of everything that decides the compiled code, equal in every process: part of a cache key."""
        return self.mode, self.fullgraph, self.dynamic, tuple(self._items())

    def get(self, name: str, default: OptionValue = None) -> OptionValue:
        """The backend option `name`, or `default` when it was not given."""
        return self.options.get(name, default)

    def with_(self, **changes: object) -> CompileOptions:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def _items(self) -> Iterator[tuple[str, str, OptionValue]]:
        # With its type's name, True is a different request from 1, which Python compares equal to it.
        for name, value in self.options.items():
            yield name, type(value).__name__, value
