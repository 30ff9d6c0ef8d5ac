"""numpy's scalars and functions on constants: what models compute of sizes and hyperparameters.

Only what gives a scalar is answered; an array would have to be another one at each call, and ends the graph, as does what
is not finite, since numpy warns of it. Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dynamo import breaks
from dynamo.builtin_table import CLASSES, FUNCTIONS, Args, Kwargs, Row, on_constants
from dynamo.errors import Unsupported
from dynamo.values.base import Value
from dynamo.values.constant import NUMPY_SCALARS, Constant

if TYPE_CHECKING:
    from dynamo.capture import Capture

_OF_SEQUENCES: Final = (
    "prod sum mean median std var max min amax amin argmax argmin all any round clip dot allclose isclose array_equal ndim size"
).split()


def _scalar(fn: Any) -> Row:
    plain = on_constants(fn)

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        result = cap.realize(plain(cap, args, kwargs))
        if isinstance(result, Constant) and (not isinstance(result.value, np.inexact) or np.isfinite(result.value)):
            return result
        raise Unsupported(breaks.UNKNOWN_CALL, f"numpy.{fn.__name__}() with a result that is no finite number")

    return row


for _kind in NUMPY_SCALARS:
    CLASSES[_kind] = _scalar(_kind)
for _fn in vars(np).values():
    if isinstance(_fn, np.ufunc):
        FUNCTIONS[_fn] = _scalar(_fn)
for _name in _OF_SEQUENCES:
    FUNCTIONS[getattr(np, _name)] = _scalar(getattr(np, _name))
