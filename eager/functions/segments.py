"""`segment_reduce`: one value for each run of neighbours along a dim, the runs given by their lengths or their bounds."""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import normalize_dim
from eager.optable.asserting import demand
from eager.optable.table import OPS

# of a run, by name: the function that combines its elements, and the value of an empty run
_REDUCES = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", -math.inf), "min": ("amin", math.inf)}


def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
                   unsafe: bool = False, initial: Any = None) -> Any:  # fmt: skip
    """`data` (*, n, *rest) with the n elements along `axis` reduced to one for each of s runs: (*, s, *rest).

    reduce: sum, mean, prod, max or min. lengths: (*, s), which add up to n unless `unsafe`; or offsets: (*, s + 1), where runs
    begin and the last ends. initial: what every run begins with. Empty runs without one give 0, nan, 1, -inf and inf.
    Raises: RuntimeError for an axis that is not the last of lengths and where lengths do not add up.
    """
    if reduce not in _REDUCES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    bounds = offsets if offsets is not None else lengths
    if bounds is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not data.dtype.is_floating_point:
        raise NotImplementedError(f'"_segment_reduce_cpu" not implemented for \'{scalar_name(data.dtype)}\'')
    if bounds.dtype not in (dtypes.int32, dtypes.int64):
        raise NotImplementedError(f'"_segment_reduce_lengths_cpu_kernel1" not implemented for \'{scalar_name(bounds.dtype)}\'')
    axis, what = normalize_dim(axis, data.ndim), "lengths" if offsets is None else "offsets"
    if axis != bounds.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}.")
    bounds = OPS["to_dtype"](bounds, dtypes.int64)
    if offsets is None:
        _check_lengths(bounds, data.shape[axis], unsafe)
        ends, count = OPS["cumsum"](bounds, axis, None), bounds
    else:
        starts = OPS["slice"](bounds, axis, 0, bounds.shape[axis] - 1, 1)
        ends = OPS["slice"](bounds, axis, 1, bounds.shape[axis], 1)
        count = ends - starts
    runs = _runs(data, axis, ends, bounds if offsets is not None else None)
    return _reduced(data, reduce, axis, runs, count, initial).contiguous()


def _check_lengths(lengths: Any, n: int, unsafe: bool) -> None:
    if unsafe:
        return
    demand(lengths >= 0, RuntimeError, "lengths contains negative value!")
    demand(OPS["sum"](lengths, (lengths.ndim - 1,), False, None) == n, RuntimeError,
           "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")  # fmt: skip


def _runs(data: Any, axis: int, ends: Any, offsets: Any) -> Any:
    """The number of the run of every element, in data's shape; s for those in none."""
    n, s = data.shape[axis], ends.shape[axis]
    places = OPS["expand"](OPS["arange"](0, n, 1, dtypes.int64, data.device), (*data.shape[:axis], n))
    lead = OPS["expand"](ends, (*data.shape[:axis], s))
    runs = OPS["searchsorted"](lead.contiguous(), places.contiguous(), True, False)
    if offsets is not None:
        first = OPS["expand"](OPS["slice"](offsets, axis, 0, 1, 1), tuple(runs.shape))
        runs = OPS["where"](places < first, s, runs)
    for _ in range(data.ndim - axis - 1):
        runs = OPS["unsqueeze"](runs, runs.ndim)
    return OPS["expand"](runs, tuple(data.shape))


def _reduced(data: Any, reduce: str, axis: int, runs: Any, count: Any, initial: Any) -> Any:
    s = count.shape[axis]
    how, empty = _REDUCES[reduce]
    shape = (*data.shape[:axis], s + 1, *data.shape[axis + 1 :])  # the last takes what belongs to no run
    extreme = how in ("amax", "amin")
    blank = OPS["full"](shape, empty if initial is None or extreme else initial, data.dtype, data.device)
    result = OPS["slice"](OPS["scatter_reduce"](blank, axis, runs, data, how, not extreme), axis, 0, s, 1)
    if initial is not None and extreme:
        beyond = result < initial if how == "amax" else result > initial
        return OPS["where"](beyond, initial, result)
    if reduce != "mean":
        return result
    for _ in range(data.ndim - axis - 1):
        count = OPS["unsqueeze"](count, count.ndim)
    mean = result / OPS["to_dtype"](count, data.dtype)
    return mean if initial is None else OPS["where"](count == 0, initial, mean)


FUNCTIONS: dict[str, Any] = {"segment_reduce": segment_reduce}
METHODS: dict[str, Any] = {}
