"""The check of flags that only choose how a function works, where no later code would notice a value that is not a bool."""
from __future__ import annotations

from typing import Any

import numpy as np


def check_flags(function: str, **flags: Any) -> None:
    """Raise TypeError, with torch's text, for a value that is not a bool."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{function}(): argument '{name}' must be bool, not {type(value).__name__}")
