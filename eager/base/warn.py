"""Warnings that name the calling line of the program, not a line of this library between."""
from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

from eager.startup.places import EAGER_DIR

_OWN = os.path.join(EAGER_DIR, "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost frame that is not of this package."""
    level, frame = 1, sys._getframe(0)
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(_OWN):
        level, outer = level + 1, outer.f_back
    warnings.warn(message, category, stacklevel=level)
