"""numpy's names for arguments, which torch takes as well: `axis` for dim, `keepdims` for keepdim."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

NUMPY_NAMES: Final = {"axis": "dim", "keepdims": "keepdim"}
WRAPPED: Final = frozenset({
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "concat", "concatenate", "count_nonzero", "cumprod", "cumsum",
    "log_softmax", "logsumexp", "max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "quantile", "softmax",
    "sort", "squeeze", "stack", "std", "std_mean", "sum", "topk", "unbind", "var", "var_mean",
})  # fmt: skip


def accept_numpy_names(functions: dict[str, Any]) -> None:
    """Make those functions of a table that users call in numpy's manner take numpy's names too."""
    for name in WRAPPED.intersection(functions):
        functions[name] = renaming(functions[name])


@functools.cache
def renaming(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, taking numpy's names for the arguments it has; `fn` itself if it does already."""
    code = inspect.unwrap(fn).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    renames = {theirs: ours for theirs, ours in NUMPY_NAMES.items() if ours in names and theirs not in names}
    if not renames:
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for theirs, ours in renames.items():
                if theirs in kwargs and ours in kwargs:
                    raise TypeError(f"{call.__name__}() got both '{theirs}' and '{ours}', which name one argument")
            kwargs = {renames.get(k, k): v for k, v in kwargs.items()}
        return fn(*args, **kwargs)

    return call
