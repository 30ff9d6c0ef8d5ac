"""`x[...]`, `x[...] = v` and the functions that read or write at positions.

Ints, slices, None and Ellipsis make views, one dim after another; the remaining indices (tensors, lists,
masks) go to the ops `index` and `index_put` together, as in torch.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.overlap import check_each_element_once
from eager.base.scalars import rounded
from eager.base.spec import broadcast_shapes, normalize_dim
from eager.base.symint import as_int
from eager.functions.creation import tensor
from eager.optable.asserting import demand
from eager.optable.gradient_strides import with_gradient
from eager.optable.index_along_dim import check_sources
from eager.optable.memory import from_array
from eager.optable.out import write_out
from eager.optable.precision import PROMOTE_ON_CPU, PROMOTE_ON_CUDA
from eager.optable.table import OPS
from eager.public.record import Out, public

TensorBase = _native.TensorBase
_SELECT, _SLICE = OPS["select"], OPS["slice"]


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result)


# ---- x[...] ----


def _bad_index(item: Any) -> IndexError | TypeError:
    if isinstance(item, (str, bytes)):  # a sequence, of which torch would make a tensor
        return TypeError(f"new(): invalid data type '{type(item).__name__}'")
    return IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                      f"(got {type(item).__name__})")  # fmt: skip


def _as_index(item: Any, where: Any) -> Any:
    """A tensor from a list, tuple, range or array used as an index."""
    if isinstance(item, np.ndarray):
        t = from_array(item)
    elif len(item) == 0:
        t = from_array(np.zeros(0, np.int64))
    else:
        t = tensor(list(item) if isinstance(item, range) else item)
    if t.dtype.category > dtypes.Category.INT:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {t.dtype}")
    return t.to(where) if t.device is not where else t


def _is_nested(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, (slice, list, tuple, TensorBase, np.ndarray))


def _items(key: Any) -> tuple[Any, ...]:
    """The key as a tuple. A short list that holds slices, tensors or sequences is one, by an old rule of torch."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and any(map(_is_nested, key)):
        return tuple(key)
    return (key,)


def _consumed(item: Any) -> int:
    """How many dims of the tensor an item takes up."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, TensorBase) and item.dtype in (dtypes.bool_, dtypes.uint8):
        return item.ndim
    if isinstance(item, np.ndarray) and item.dtype == bool:
        return item.ndim
    if isinstance(item, list) and item:
        first, depth = item, 0
        while isinstance(first, list) and first:
            first, depth = first[0], depth + 1
        return depth if isinstance(first, bool) else 1
    return 1


def _slice(x: Any, dim: int, item: slice) -> Any:
    start, end, step = item.start, item.stop, item.step
    if start is None and end is None and step is None:
        return x
    if step is None and (start is None or type(start) is int) and (end is None or type(end) is int):
        return _SLICE(x, dim, start, end, 1)
    step = 1 if step is None else int(step)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return _SLICE(x, dim, None if start is None else as_int(start), None if end is None else as_int(end), step)


def _select(x: Any, dim: int, index: int) -> Any:
    if x.ndim == 0:
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
                         "a 0-dim tensor to a number")  # fmt: skip
    n = x.size(dim)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {n}")
    return _SELECT(x, dim, index)


def _split_key(x: Any, key: Any, writing: bool) -> tuple[Any, list[Any]]:
    """The view that the basic items of a key make, and per dim of it the tensor index, or None."""
    items = key if type(key) is tuple else _items(key)
    total = 0
    for item in items:
        kind = type(item)
        total += 1 if kind is int or kind is slice else _consumed(item)
    if total > x.ndim:
        if x.ndim == 0 and len(items) == 1:
            if isinstance(items[0], slice):
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                             "convert a 0-dim tensor to a number")  # fmt: skip
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    result, dim = x, 0
    indices: list[Any] = []
    ndim = x.ndim
    for item in items:
        if type(item) is int:
            result = _select(result, dim, item)
        elif isinstance(item, slice):
            result, dim = _slice(result, dim, item), dim + 1
        elif item is Ellipsis:
            dim += ndim - total
        elif item is None:
            result, dim = OPS["unsqueeze"](result, dim), dim + 1
        elif isinstance(item, (bool, np.bool_)):
            result = OPS["unsqueeze"](result, dim)
            dim = _place(indices, dim, OPS["full"]((1,), bool(item), dtypes.bool_, result.device))
        else:
            result, dim = _take_item(result, dim, item, indices, writing)
    return result, indices


def _take_item(x: Any, dim: int, item: Any, indices: list[Any], writing: bool) -> tuple[Any, int]:
    """One item that is a tensor, a sequence or an integer of another type."""
    if isinstance(item, (list, tuple, range, np.ndarray)) and not (isinstance(item, np.ndarray) and item.ndim == 0):
        return x, _place(indices, dim, _as_index(item, x.device))
    if isinstance(item, TensorBase):
        if item.ndim:
            return x, _place(indices, dim, item)
        if item.dtype in (dtypes.bool_, dtypes.uint8):
            return OPS["unsqueeze"](x, dim), _place(indices, dim, OPS["unsqueeze"](item, 0))
        if item.dtype.category is not dtypes.Category.INT:
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {item.dtype}")
        if item._batches or (writing and (item.is_fake or x.is_fake)):
            return x, _place(indices, dim, item)  # no value to select by; a write needs none
        return _select(x, dim, item.item()), dim
    if hasattr(item, "__index__"):
        return _select(x, dim, as_int(item)), dim
    raise _bad_index(item)


def _place(indices: list[Any], dim: int, t: Any) -> int:
    """Note a tensor index at `dim`; the next free dim."""
    indices.extend([None] * (dim + 1 - len(indices)))
    indices[dim] = t
    is_mask = t.dtype in (dtypes.bool_, dtypes.uint8)
    width = t.ndim if is_mask else 1
    indices.extend([_COVERED] * (dim + width - len(indices)))
    return dim + width


_COVERED = object()  # a dim that the mask before it takes up as well


def _check_masks(x: Any, indices: list[Any]) -> None:
    for d, t in enumerate(indices):
        if t is None or t is _COVERED or t.dtype not in (dtypes.bool_, dtypes.uint8):
            continue
        for j, n in enumerate(t.shape):
            if d + j >= x.ndim or x.shape[d + j] != n:
                raise IndexError(f"The shape of the mask {list(t.shape)} at index {j} does not match the shape of the indexed tensor "
                                 f"{list(x.shape)} at index {d + j}")  # fmt: skip


def _positions(x: Any, indices: list[Any]) -> list[Any]:
    """Masks turned into positions. Raises DataDependentError for a mask without data."""
    result: list[Any] = []
    for t in indices:
        if t is _COVERED:
            continue
        if t is not None and t.dtype in (dtypes.bool_, dtypes.uint8):
            found = OPS["nonzero"](t)
            result.extend(OPS["select"](found, 1, j) for j in range(t.ndim))
        else:
            if t is not None and t.dtype not in (dtypes.int64, dtypes.int32):
                if t.dtype.category is not dtypes.Category.INT:
                    raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {t.dtype}")
                t = OPS["to_dtype"](t, dtypes.int64)
            result.append(t if t is None or t.device is x.device or t.is_fake else t.to(x.device))
    return result


def getitem(self: Any, key: Any) -> Any:
    """`self[key]`: a view for ints, slices, None and Ellipsis; a copy once a tensor, list or mask is among them."""
    if type(key) is int:
        return _select(self, 0, key)
    result, indices = _split_key(self, key, False)
    if not indices:
        return OPS["alias"](self) if result is self else result
    _check_masks(result, indices)
    mask = indices[0]
    if mask is not None and mask.dtype is dtypes.bool_ and mask.ndim == result.ndim:
        return OPS["masked_select"](with_gradient("rows", result), mask)
    return OPS["index"](result, _positions(result, indices))


def _value(self: Any, value: Any) -> Any:
    """The value to store: a tensor of self's dtype and device, or a number."""
    if isinstance(value, TensorBase):
        if value.device is not self.device and not value.is_fake and not self.is_fake:
            value = value.to(self.device)
        return value if value.dtype is self.dtype else OPS["to_dtype"](value, self.dtype)
    if isinstance(value, (int, float, complex)):
        return value
    if isinstance(value, (np.number, np.bool_)):
        return value.item()
    raise TypeError(f"can't assign a {type(value).__name__} to a {self.dtype} tensor; make a tensor of it first")


def _drop_leading_ones(value: Any, ndim: int) -> Any:
    """The value without the leading dims of size 1 that exceed the target's."""
    lead = 0
    while value.ndim - lead > ndim and value.shape[lead] == 1:
        lead += 1
    return value if lead == 0 else OPS["squeeze"](value, tuple(range(lead)))


def setitem(self: Any, key: Any, value: Any) -> None:
    """`self[key] = value`: the value is cast to self's dtype and broadcast to the selected elements."""
    if key is False or (isinstance(key, np.bool_) and not key):
        return
    if isinstance(value, (int, float)):
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        value = rounded(value, self.dtype)
    target, indices = _split_key(self, key, True)
    if not indices:
        check_each_element_once(target)
        if isinstance(value, (int, float, bool, complex)):
            OPS["fill_"](target, value)
            return
        value = _value(self, value)
        if not isinstance(value, TensorBase):
            OPS["fill_"](target, value)
            return
        value = _drop_leading_ones(value, target.ndim)
        OPS["copy_"](target, OPS["expand"](value, tuple(target.shape)) if value.shape != target.shape else value)
        return
    _check_masks(target, indices)
    value = _value(self, value)
    masks = [(d, t) for d, t in enumerate(indices) if t is not None and t is not _COVERED]
    if len(masks) == 1 and masks[0][1].dtype is dtypes.bool_ and (not isinstance(value, TensorBase) or value.ndim == 0):
        d, mask = masks[0]
        tail = target.ndim - d - mask.ndim
        OPS["masked_fill_"](target, mask.reshape((*mask.shape, *([1] * tail))), value)
        return
    OPS["index_put_"](target, _positions(target, indices), _number_as_tensor(value, target), False)


def _number_as_tensor(value: Any, target: Any) -> Any:
    return value if isinstance(value, TensorBase) else OPS["full"]((), value, target.dtype, target.device)


# ---- gather, scatter ----


@public(out=Out(exact=True, not_over_inputs=True))
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False, out: Any = None) -> Any:  # noqa: A002
    """out[i][j] = input[index[i][j]][j] for dim 0, likewise for other dims. Result: shape of index.

    index: int32 or int64, of the rank of input.
    Raises: RuntimeError for another rank or dtype of index or for an index out of range, IndexError for a wrong dim.
    """
    return _out(OPS["gather"](input, normalize_dim(dim, input.ndim), index), out)


_OLD_REDUCE = {"add": "sum", "multiply": "prod"}


def _scatter(suffix: str) -> Any:
    @public(out=Out(exact=True, not_over_itself=True, not_over_inputs=True))
    def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None,  # noqa: A002
                out: Any = None) -> Any:  # fmt: skip
        """`input` with input[index[i][j]][j] = src[i][j] for dim 0; `reduce` is None, "add" or "multiply"."""
        if src is not None and value is not None:
            raise TypeError("scatter() received an invalid combination of arguments: expected src or value, got both")
        src = value if src is None else src
        dim = normalize_dim(dim, input.ndim)
        if reduce is None:
            return _out(OPS["scatter" + suffix](input, dim, index, src), out)
        if reduce not in _OLD_REDUCE:
            raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}.")
        if not isinstance(src, TensorBase):
            src = OPS["full"](tuple(index.shape), src, input.dtype, input.device)
        return _out(OPS["scatter_reduce" + suffix](input, dim, index, src, _OLD_REDUCE[reduce], True), out)

    return scatter


def _scatter_add(suffix: str) -> Any:
    @public(out=Out(exact=True, not_over_itself=True, not_over_inputs=True), autocast=None if suffix else PROMOTE_ON_CUDA)
    def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:  # noqa: A002
        """`input` with src[i][j] added at input[index[i][j]][j] for dim 0."""
        return OPS["scatter_add" + suffix](input, normalize_dim(dim, input.ndim), index, src)

    return scatter_add


def _scatter_reduce(suffix: str) -> Any:
    @public(out=Out(exact=True, not_over_itself=True, not_over_inputs=True))
    def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:  # noqa: A002
        """`input` combined with `src` at the indexed places: reduce is sum, prod, mean, amax or amin."""
        return OPS["scatter_reduce" + suffix](input, normalize_dim(dim, input.ndim), index, src, reduce, include_self)

    return scatter_reduce


@public(out=Out(exact=True, not_over_inputs=True))
def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:  # noqa: A002
    """`gather` whose operands broadcast over the other dims; without dim, over the flattened input. Raises: RuntimeError, IndexError."""
    if dim is None:
        return _out(gather(input.reshape(-1), 0, indices.reshape(-1)), out)
    if input.ndim != indices.ndim:
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices")  # fmt: skip
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {scalar_name(indices.dtype)}")
    if input.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = normalize_dim(dim, input.ndim)
    if input.shape[d]:
        indices = OPS["remainder"](indices, input.shape[d])  # torch wraps positions around when `dim` is given

    def without(t: Any) -> list[int]:
        return [1 if i == d else n for i, n in enumerate(t.shape)]

    shape = list(broadcast_shapes(without(input), without(indices)))
    theirs = OPS["expand"](input, tuple(input.shape[d] if i == d else n for i, n in enumerate(shape)))
    at = OPS["expand"](indices, tuple(indices.shape[d] if i == d else n for i, n in enumerate(shape)))
    return _out(OPS["gather"](theirs, d, at), out)


# ---- index_* ----


@public(out=Out(exact=True, not_over_itself=True, not_over_inputs=True))
def index_select(input: Any, dim: int, index: Any, *, out: Any = None) -> Any:  # noqa: A002
    """Slices of `input` along `dim` at positions. index: (n,) int32 or int64. Result: size n in `dim`, dtype of input.

    Raises: IndexError for a position or dim out of range, RuntimeError for another dtype of index.
    """
    return _out(OPS["index_select"](input, normalize_dim(dim, input.ndim), index), out)


def _index_add(suffix: str) -> Any:
    @public(out=Out(exact=True, not_over_inputs=True))
    def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
        """`input` with alpha * source[i] added to slice index[i] along `dim`."""
        alpha = dtypes.option(input.dtype, alpha)
        return OPS["index_add" + suffix](input, normalize_dim(dim, input.ndim), index, source, alpha)

    return index_add


def _index_copy(suffix: str) -> Any:
    @public(out=Out(not_over_inputs=True), autocast=None if suffix else PROMOTE_ON_CPU)
    def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:  # noqa: A002
        """`input` with slice index[i] along `dim` replaced by source[i]."""
        return OPS["index_copy" + suffix](input, normalize_dim(dim, input.ndim), index, source)

    return index_copy


def _index_fill(suffix: str) -> Any:
    def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:  # noqa: A002
        """`input` with the slices at `index` along `dim` set to `value`."""
        return OPS["index_fill" + suffix](input, normalize_dim(dim, input.ndim), index, value)

    return index_fill


_REDUCES = ("prod", "mean", "amax", "amin")


def _index_reduce(suffix: str) -> Any:
    @public(out=Out(exact=True, not_over_inputs=True))
    def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:  # noqa: A002
        """`input` with the slices source[i] combined into slice index[i] along `dim`: prod, mean, amax or amin.

        Without `include_self`, slices that something is combined into do not count themselves.
        """
        if reduce not in _REDUCES:
            raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
        d = normalize_dim(dim, input.ndim)
        if index.ndim > 1:
            raise IndexError(f"index_reduce_(): Index is supposed to be a vector, but got dim: {index.ndim}")
        if index.dtype not in (dtypes.int32, dtypes.int64):
            raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {scalar_name(index.dtype)}")
        if source.dtype is not input.dtype:
            raise RuntimeError("index_reduce_(): self and source expected to have the same scalar type")
        check_sources("index_reduce", input, d, index, source)
        if not include_self and input.dtype is dtypes.bool_:
            raise dtypes.no_kernel("index_reduce_func_exclude_input_init", input.dtype)
        if not index.is_fake and index.device.type != "meta" and index.numel():
            demand(((index >= 0) & (index < input.shape[d])).all(), IndexError, "index out of range in self")
        at = OPS["view"](index.contiguous(), tuple(-1 if i == d else 1 for i in range(source.ndim)))
        at = OPS["expand"](OPS["to_dtype"](at, dtypes.int64), tuple(source.shape))
        return OPS["scatter_reduce" + suffix](input, d, at, source, reduce, include_self)

    return index_reduce


def _index_put(suffix: str) -> Any:
    @public(autocast=None if suffix else PROMOTE_ON_CUDA)
    def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:  # noqa: A002
        """`input` with `values` at `indices` (tensors, masks or None per dim); added if `accumulate`."""
        placed: list[Any] = []
        for t in indices:
            if t is None:
                placed.append(None)
            else:
                _place(placed, len(placed), t)
        _check_masks(input, placed)
        return OPS["index_put" + suffix](input, _positions(input, placed), values, accumulate)

    return index_put


# ---- masks ----


def _masked_fill(suffix: str) -> Any:
    def masked_fill(input: Any, mask: Any, value: Any) -> Any:  # noqa: A002
        """`input` with `value` where `mask` is true."""
        return OPS["masked_fill" + suffix](input, mask, value)

    return masked_fill


def _masked_scatter(suffix: str) -> Any:
    def masked_scatter(input: Any, mask: Any, source: Any) -> Any:  # noqa: A002
        """`input` with the elements of `source`, in order, where `mask` is true."""
        return OPS["masked_scatter" + suffix](input, mask, source)

    return masked_scatter


@public(out=Out(exact=True, not_over_itself=True, not_over_inputs=True))
def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:  # noqa: A002
    """The elements of `input` where `mask` is true, in row-major order. mask: bool, broadcasts. Result: (count,). Raises: RuntimeError."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return _out(OPS["masked_select"](input, mask), out)


@public(out=Out(exact=True), parsed=False)
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:  # noqa: A002
    """int64 positions of the elements that are not zero: (count, ndim), or with as_tuple ndim vectors (count,)."""
    if as_tuple and input.ndim == 0:
        input = OPS["unsqueeze"](input, 0)
    found = OPS["nonzero"](input)
    if as_tuple:
        return tuple(OPS["select"](found, 1, i) for i in range(input.ndim))
    return _out(found, out)


def argwhere(input: Any) -> Any:  # noqa: A002
    """Positions of the non-zero elements, (count, ndim)."""
    return OPS["nonzero"](input)


@public(out=Out(exact=True))
def take(input: Any, index: Any, *, out: Any = None) -> Any:  # noqa: A002
    """Elements of the flattened input. index: int64. Result: shape of index. Raises: IndexError for a position out of range."""
    return _out(OPS["take"](input, index), out)


def _put(suffix: str) -> Any:
    def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:  # noqa: A002
        """`input` with `source` at the positions `index` of its flattened form."""
        return OPS["put" + suffix](input, index, source, accumulate)

    return put


_FAMILIES = {"scatter": _scatter, "scatter_add": _scatter_add, "scatter_reduce": _scatter_reduce, "index_add": _index_add,
             "index_reduce": _index_reduce, "index_copy": _index_copy, "index_fill": _index_fill, "index_put": _index_put,
             "masked_fill": _masked_fill, "masked_scatter": _masked_scatter, "put": _put}  # fmt: skip


def _named(fn: Any, name: str) -> Any:
    fn.__name__ = fn.__qualname__ = name
    return fn


FUNCTIONS: dict[str, Any] = {
    "gather": gather, "take_along_dim": take_along_dim, "index_select": index_select, "masked_select": masked_select,
    "nonzero": nonzero, "argwhere": argwhere, "take": take, **{name: _named(make(""), name) for name, make in _FAMILIES.items()},
    "index_put_": _named(_index_put("_"), "index_put_"),
}  # fmt: skip
METHODS: dict[str, Any] = {
    **FUNCTIONS, **{name + "_": _named(make("_"), name + "_") for name, make in _FAMILIES.items()},
    "__getitem__": getitem, "__setitem__": setitem,
}  # fmt: skip
