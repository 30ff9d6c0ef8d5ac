"""The folders that the four packages are installed in. Each path ends without a separator."""

from __future__ import annotations

import os
from typing import Final

EAGER_DIR: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT: Final = os.path.dirname(EAGER_DIR)  # the folder that holds the packages
