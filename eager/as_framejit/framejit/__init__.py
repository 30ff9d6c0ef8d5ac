"""`import framejit as torch`: another name of the package `eager`, and `framejit.nn` of `eager.nn`.

The build maps this folder to a top-level package. It holds no code: after the import, `framejit` is `eager`.
"""
from __future__ import annotations

import importlib.util
import os

_here = os.path.dirname(os.path.abspath(__file__))
_expected = {os.path.realpath(os.path.join(folder, "eager")) for folder in (
    os.path.dirname(_here), os.path.dirname(os.path.dirname(os.path.dirname(_here))))}  # fmt: skip - installed, and in the checkout
_found = importlib.util.find_spec("eager")
if _found is not None and _found.origin and os.path.dirname(os.path.realpath(_found.origin)) not in _expected:
    raise ImportError(f"framejit: {_found.origin} shadows framejit's package 'eager'. Rename it, or move it into a package of your own.",
                      name="eager", path=_found.origin)  # fmt: skip

from eager.startup import bootstrap  # noqa: E402

bootstrap.add_alias("framejit")
