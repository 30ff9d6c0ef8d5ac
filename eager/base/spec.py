"""TensorSpec: the metadata of a tensor, and the laws of output strides.

The meta rule of each op names the law that its results follow, as torch's do:

- `elementwise_strides`: the layout that the operands agree on, else dense in the order of their strides (pointwise ops). A number
  or a 0-d tensor is an operand; an op whose numbers are plain parameters in torch names them in `scalars` (eager/optable/table.py).
- `preserve_strides`: the input's layout if it is dense, else dense in the order of its strides (`clone`, `flip`, `sort`).
- `suggested_strides`: channels-last where the input suggests it, else row-major (pooling, padding, resizing, norms of images).
- `contiguous_strides`: row-major for any layout of the input (reductions, products, lookups).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from eager import _native
from eager.base.device import CPU, device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.base.symint import SymInt, hint_of

# Makes a size that depends on data, at most the given size (None: unbounded).
Fresh: TypeAlias = Callable[[Any], Any]


class SpecLike(Protocol):
    """The attributes of an input that a meta rule may read. Tensors, fakes and specs have them."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> dtype: ...
    @property
    def device(self) -> device: ...
    @property
    def ndim(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...
    def numel(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape, dtype, strides (in elements) and device of a tensor."""

    shape: tuple[int, ...]
    dtype: dtype
    strides: tuple[int, ...]
    device: device = CPU

    @staticmethod
    def contiguous(shape: Sequence[int], dtype: Any, device: Any = CPU) -> TensorSpec:
        return TensorSpec(tuple(shape), dtype, contiguous_strides(shape), device)

    def stride(self) -> tuple[int, ...]:
        return self.strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides)


def spec_of(t: SpecLike) -> TensorSpec:
    """The spec of a tensor, real or fake."""
    if isinstance(t, _native.TensorBase):
        return _native.spec_of(t)
    return TensorSpec(tuple(t.shape), t.dtype, tuple(t.stride()), t.device)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements; an empty dim counts as 1, as in torch."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal; sizes are compared only if the shapes have the same length."""
    return len(a) == len(b) and tuple(a) == tuple(b)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie in row-major order with no gap."""
    expected = 1
    for i in range(len(shape) - 1, -1, -1):
        if strides[i] != expected and shape[i] != 1:  # in this order: of symbolic ones the first is mostly provable
            return 0 in shape
        expected *= shape[i]
    return True


_CHANNELS_INNERMOST: Final = (1, 3, 2, 0)


def _is_packed(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether the dims in `order`, innermost first, leave no gap; the strides of dims of size 1 are free."""
    expected = 1
    for d in order:
        if strides[d] != expected and shape[d] != 1:
            return False
        expected *= shape[d]
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their span with no gap and no overlap, in some order of dims."""
    if is_contiguous(shape, strides):
        return True
    if any(stride == 0 and size != 1 for size, stride in zip(shape, strides, strict=True)):
        return False
    expected = 1
    for stride, size in sorted((st, sz) for sz, st in zip(shape, strides, strict=True) if sz != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to. Raises: RuntimeError with torch's text if they do not broadcast."""
    ndim = max((len(s) for s in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape, ndim - len(shape)):
            if size == 1 or size == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({result[i]}) must match the size of tensor b ({size}) "
                    f"at non-singleton dimension {i}"
                )
            result[i] = size
    return tuple(result)


def _order_of_dims(shape: tuple[int, ...], operands: list[tuple[int, ...]]) -> list[int]:
    """Dims from innermost to outermost, as the inputs' strides suggest.

    The rule of torch's TensorIterator (`reorder_dimensions`): an insertion sort in which inputs
    decide in turn, broadcast dims have no say, and ties keep row-major order.
    """

    def compare(a: int, b: int) -> int:
        for strides in operands:
            x, y = strides[a], strides[b]
            if x == 0 or y == 0:
                continue
            if x != y:
                return -1 if x < y else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            c = compare(order[j], order[at])
            if c > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif c < 0:
                break
    return order


def common_device(who: str, operands: Sequence[Any]) -> device:
    """The device of a result: the inputs' common device, where 0-d CPU tensors do not count."""
    result = operands[0].device
    for x in operands[1:]:
        d = x.device
        if d is result:
            continue
        if result.type == "cpu" and all(o.ndim == 0 for o in operands if o.device is result):
            result = d
        elif not (d.type == "cpu" and x.ndim == 0):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {result} and {d}! "
                f"(when calling {who})"
            )
    return result


def elementwise_strides(shape: tuple[int, ...], inputs: Sequence[SpecLike], *, number: bool = False) -> tuple[int, ...]:
    """Strides of an elementwise result of `shape`: torch's TensorIterator.

    Operands that all have `shape` and are all row-major, all channels-last, or dense with the same strides pass that layout on.
    Otherwise the dims are ordered as the operands' strides order them, and the result is dense in that order. The difference
    shows in dims of size 1, whose strides take part in the order but not in the first test: a row-major (1, 3) with strides
    (1, 1) gives `exp(x)` the strides (3, 1) and `x + 1` the strides (1, 1).

    number: one operand is a Python number, which counts as a 0-d tensor.
    """
    tensors = [x for x in inputs if x.ndim]
    scalars = number or len(tensors) < len(inputs)
    # Beside a number, dims of size 1 must be row-major too. This check comes first: for symbolic sizes it costs no guard.
    if all(same_shape(x.shape, shape) for x in tensors) and not (
        scalars and not _all_row_major(shape, tensors) and any(n in (0, 1) for n in shape)
    ):
        if all(is_contiguous(shape, x.stride()) for x in tensors):
            return contiguous_strides(shape)
        if len(shape) == 4 and all(_is_packed(shape, x.stride(), _CHANNELS_INNERMOST) for x in tensors):
            return channels_last_strides(shape)
        first = tuple(tensors[0].stride())
        if all(tuple(x.stride()) == first for x in tensors) and is_dense(shape, first):
            return first
    ndim = len(shape)
    operands = []
    for x in tensors:
        pad = ndim - x.ndim
        sizes, strides = tuple(x.shape), tuple(x.stride())
        operands.append(
            (0,) * pad + tuple(0 if sizes[i] == 1 and shape[pad + i] != 1 else strides[i] for i in range(x.ndim))
        )
    order = _order_of_dims(shape, operands)
    if order == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    result, step = [0] * ndim, 1
    for dim in order:
        result[dim] = step
        step *= shape[dim]
    return tuple(result)


def _all_row_major(shape: tuple[int, ...], tensors: Sequence[SpecLike]) -> bool:
    """Whether all tensors of this shape have row-major strides, also in dims of size 1."""
    strides = contiguous_strides(shape)
    return all(tuple(x.stride()) == strides for x in tensors)


def preserve_strides(x: SpecLike) -> tuple[int, ...]:
    """Strides of `empty_like(x)`: x's own if dense, else dense in the order of x's."""
    shape = tuple(x.shape)
    return tuple(x.stride()) if is_dense(shape, x.stride()) else elementwise_strides(shape, [x])


def channels_last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of (n, c, *spatial) with channels innermost."""
    strides, step = [0] * len(shape), 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


_RANKS: Final = {"channels_last": 4, "channels_last_3d": 5}


def suggested_format(x: SpecLike) -> str:
    """The memory format that the strides of `x` suggest: torch's `suggest_memory_format`.

    It is channels-last if, from the channels over the spatial dims to the batch, each stride is at least the extent of the
    dims before it; gaps between elements are allowed. Strides that fit both formats count as row-major: the strides of a
    row-major tensor whose dims after the first have size 1, and the strides of expanded channels.
    """
    ndim = x.ndim
    if ndim not in (4, 5):
        return "contiguous"
    shape, strides = x.shape, x.stride()
    if strides[1] == 0:
        return "contiguous"
    extent: int = 0
    for d in (1, *range(ndim - 1, 1, -1), 0):
        if strides[d] < extent or (d == 0 and extent == strides[1]) or shape[d] == 0:
            return "contiguous"
        extent = strides[d] * shape[d] if shape[d] > 1 else strides[d]
    return "channels_last" if ndim == 4 else "channels_last_3d"


def is_channels_last(x: SpecLike) -> bool:
    """Whether the strides of `x` suggest a channels-last format."""
    return suggested_format(x) != "contiguous"


def suggested_strides(x: SpecLike, shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a result of `shape` in the format that `x` suggests; row-major if `shape` has another number of dims."""
    if len(shape) == x.ndim and is_channels_last(x):
        return channels_last_strides(shape)
    return contiguous_strides(shape)


def as_image(x: SpecLike) -> TensorSpec:
    """A (n, c, length) as (n, c, 1, length): torch computes convolutions and pooling of sequences on images of one row."""
    n, c, length = x.shape
    a, b, step = x.stride()
    return TensorSpec((n, c, 1, length), x.dtype, (a, b, step * length, step), x.device)


def image_strides(x: SpecLike, shape: Sequence[int]) -> tuple[int, ...]:
    """`suggested_strides` of an op that treats a sequence as an image of one row."""
    if x.ndim != 3:
        return suggested_strides(x, shape)
    n, c, length = shape
    strides = suggested_strides(as_image(x), (n, c, 1, length))
    return (*strides[:2], strides[3])


def format_strides(shape: Sequence[int], name: str) -> tuple[int, ...]:
    """Strides in the memory format `name`. Raises RuntimeError for channels-last ones of another number of dims."""
    if name == "contiguous":
        return contiguous_strides(tuple(shape))
    if name not in _RANKS:
        raise RuntimeError(f"unsupported memory format {name.capitalize()}")
    if len(shape) != _RANKS[name]:
        raise RuntimeError(f"required rank {_RANKS[name]} tensor to use {name} format")
    return channels_last_strides(shape)


def in_format(x: SpecLike, name: str) -> tuple[int, ...]:
    """Strides of `x.contiguous(memory_format=name)`: the strides of x if it has that format, ignoring dims of size 1."""
    shape, strides = tuple(x.shape), tuple(x.stride())
    order = range(x.ndim - 1, -1, -1) if name == "contiguous" else (1, *range(x.ndim - 1, 1, -1), 0)
    return strides if _is_packed(shape, strides, order) else format_strides(shape, name)


def strides_like(x: SpecLike, memory_format: Any) -> tuple[int, ...]:
    """Strides of `empty_like(x, memory_format=...)`; None is as preserve."""
    name = getattr(memory_format, "name", memory_format) or "preserve"
    return preserve_strides(x) if name == "preserve" else format_strides(x.shape, name)


def normalize_dim(dim: int, ndim: int, who: str = "") -> int:
    """`dim` in 0..ndim-1 (a 0-d tensor counts as having one dim). Raises IndexError as torch does."""
    n = ndim or 1
    if dim.__class__ is float or dim.__class__ is bool:
        kind = type(dim).__name__
        raise TypeError(f"{who}(): argument 'dim' must be int, not {kind}" if who else f"argument 'dim' must be int, not {kind}")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def size_at(shape: Sequence[int], dim: int) -> int:
    """The size of a dim. Raises IndexError for one out of range, and for any dim of a 0-d tensor."""
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[normalize_dim(dim, len(shape))]


def normalize_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dims of a reduction: None or () means all; sorted, unique, non-negative."""
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        return tuple(range(ndim))
    if not isinstance(dims, (tuple, list)):
        dims = (dims,)
    for d in dims:
        if isinstance(d, (bool, float, str)):
            raise TypeError(f"argument 'dim' must be tuple of ints, not {type(d).__name__}")
    result = sorted(normalize_dim(int(d), ndim) for d in dims)
    for a, b in itertools.pairwise(result):
        if a == b:
            raise RuntimeError(f"dim {a} appears multiple times in the list of dims")
    return tuple(d for d in result if d < ndim)


# -- fake tensors ---------------------------------------------------------------------------------------------------
FAKE_FLAG = 1 << 33


class DataDependentError(RuntimeError):
    """Code read the data of a fake tensor, or the result shape of an op depends on data."""


def fake(spec: TensorSpec, requires_grad: bool = False) -> Any:
    """A fake tensor with this metadata, over a new storage. Sizes and strides may be SymInts."""
    d = spec.device
    # Nothing reads the length of memory that is not there, so symbolic sizes need not be decided about for it.
    shape, strides = spec.shape, spec.strides
    if SymInt in map(type, shape) or SymInt in map(type, strides):
        shape, strides = tuple(map(hint_of, shape)), tuple(map(hint_of, strides))
    span = 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    storage = _native.storage_fake(span * spec.dtype.itemsize, d.code, d.index or 0)
    t = _native.new_tensor(None, storage, spec.dtype.code, spec.shape, spec.strides, 0, FAKE_FLAG)
    if requires_grad:
        t._requires_grad = True
    return t


def fake_like(t: SpecLike, requires_grad: bool | None = None) -> Any:
    """A fake leaf with the metadata of `t` (storage offset dropped)."""
    return fake(spec_of(t), getattr(t, "_requires_grad", False) if requires_grad is None else requires_grad)


def refuse_data(t: Any, what: str) -> None:
    """Raise for a tensor without data: RuntimeError or NotImplementedError on the meta device, else DataDependentError."""
    if t.device.type == "meta":
        if what == "item()":
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if t.is_fake:
        raise DataDependentError(f"{what}: reads the value of a fake tensor, which has only metadata")
