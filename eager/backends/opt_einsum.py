"""opt_einsum is not used: `einsum` determines its own contraction order. Enabling it raises, as in torch without it."""
from __future__ import annotations

import sys
import types


def is_available() -> bool:
    """Whether opt_einsum is used: always False."""
    return False


def get_opt_einsum() -> None:
    """The package opt_einsum: always None."""
    return


class _Flags(types.ModuleType):
    """The module's flags, which reject unsupported values."""

    @property
    def enabled(self) -> bool:
        return False

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value:
            raise ValueError("opt_einsum is not available, so setting `enabled` to True will not reap the benefits of calculating "
                             "an optimal path for einsum.")  # fmt: skip

    @property
    def strategy(self) -> str | None:
        return None

    @strategy.setter
    def strategy(self, value: str | None) -> None:
        if value is not None:
            raise ValueError("opt_einsum is not available, so setting `strategy` will not be meaningful; it can only be None here")


sys.modules[__name__].__class__ = _Flags
