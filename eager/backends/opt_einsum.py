"""opt_einsum plays no part: `einsum` contracts in an order of its own. Asking for it is an error, as in torch without it."""
from __future__ import annotations

import sys
import types


def is_available() -> bool:
    return False


def get_opt_einsum() -> None:
    """The package, where it is used: never."""
    return


class _Flags(types.ModuleType):
    """The module's flags, which refuse what could not be honoured."""

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
