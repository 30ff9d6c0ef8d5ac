"""Making tensors: from data, from numbers, like another tensor."""
from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes, float8, thread_state
from eager.base.device import default_device, device
from eager.base.dtypes import dtype, result_type
from eager.base.memory_format import strided
from eager.base.scalars import rounded
from eager.base.spec import TensorSpec, format_strides, strides_like
from eager.base.symint import SymInt, times_ratio
from eager.functions.views import given_sizes, sizes_of
from eager.optable.creation import in_dtype
from eager.optable.memory import empty as empty_of_spec
from eager.optable.memory import from_array
from eager.optable.out import resize_out
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import public

TensorBase = _native.TensorBase


def finish(t: Any, requires_grad: bool, out: Any = None, pin_memory: bool = False) -> Any:
    """The made tensor, or `out` with its values: resized, and in its own dtype. Raises RuntimeError if it cannot be pinned."""
    if pin_memory and t.device.type != "meta":
        t = t.pin_memory()
    if out is not None:
        if tuple(out.shape) != tuple(t.shape):
            resize_out(out, tuple(t.shape), tuple(t.stride()))
        t = OPS["copy_"](out, t)
    if requires_grad:
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad = True
    return t


def check_layout(layout: Any) -> None:
    """Raise NotImplementedError for a layout that only sparse tensors have."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout} is not implemented here; allowed: torch.strided (sparse tensors: sparse_coo_tensor, "
                                  "to_sparse)")  # fmt: skip


def in_format(made: Any, memory_format: Any) -> Any:
    """A fresh row-major tensor in another memory format. Raises: RuntimeError if the format needs another number of dims."""
    name = getattr(memory_format, "name", memory_format)
    return made if name in (None, "contiguous") else restrided(made, format_strides(made.shape, name))


def restrided(made: Any, strides: tuple[int, ...]) -> Any:
    """A fresh tensor of one value, or of none in particular, with other dense strides."""
    return made if strides == made.stride() else OPS["as_strided"](made, tuple(made.shape), strides, None)


def _where(d: Any) -> device:
    return default_device() if d is None else device(d)


def _array_of(data: Any, d: dtype | None) -> Any:
    """An ndarray of nested sequences, numbers, arrays or tensors, in torch's default dtypes."""
    if isinstance(data, np.ndarray):
        return np.array(data, d.numpy if d else dtypes.from_numpy(data.dtype).numpy)
    if isinstance(data, (np.number, np.bool_)):
        return np.array(data, d.numpy if d else data.dtype)
    listed = isinstance(data, (list, tuple))
    kinds = _kinds(data) if listed else {type(data)}
    if any(map(_is_other_sequence, kinds)):
        data = _listed(data)
        listed, kinds = True, _kinds(data)
    if listed and isinstance(_first(data), str):
        raise ValueError("too many dimensions 'str'")
    if d is None and not kinds <= _PYTHON_NUMBERS:
        d = _inferred(data)
    if listed and any(issubclass(kind, TensorBase) for kind in kinds):
        data = _plain(data)
    try:
        a = np.array(data)
    except ValueError:
        lengths = _lengths_of(data)
        if lengths and lengths[-1]:
            _check_lengths(data, lengths, 0)
            raise
        a = np.empty(lengths)  # where the first one is empty the others are not looked at
    if a.dtype == object:
        d = d or _inferred(data)
        if d.is_integral:
            raise ValueError("Overflow when unpacking long long")
        a = np.array(data, d.numpy)
    if a.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if a.dtype == np.uint64 and d is not dtypes.uint64 and kinds <= _PYTHON_NUMBERS:
        raise ValueError("Overflow when unpacking long long")
    if d is None:
        d = dtypes.bool_ if a.dtype.kind == "b" else dtypes.int64 if a.dtype.kind in "iu" and a.size else _of_kind(a.dtype.kind)
    _check_range(a, d)
    return float8.cast(a, d.numpy)


def _check_range(a: Any, d: dtype) -> None:
    """Raise RuntimeError for a Python number that an integer dtype cannot hold."""
    if a.dtype.kind == "c" and not d.is_complex and d is not dtypes.bool_:
        raise TypeError("must be real number, not complex" if d.is_floating_point else
                        "'complex' object cannot be interpreted as an integer")  # fmt: skip
    if not a.size or not d.is_integral or d is dtypes.bool_ or (a.dtype.kind in "iu" and d.itemsize == 8):
        return
    limits = np.iinfo(d.numpy)
    low, high = int(limits.min), int(limits.max)
    if a.dtype.kind in "iu":
        inside = (low if d.is_signed else -high - 1) <= int(a.min()) and int(a.max()) <= high
    else:
        inside = a.dtype.kind != "f" or bool((a >= low).all() and (a <= high).all())  # nan compares false
    if not inside:
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")


_PYTHON_NUMBERS = {bool, int, float, complex}


def _of_kind(kind: str) -> dtype:
    default = dtypes.get_default_dtype()
    return default.to_complex() if kind == "c" else default


def _is_other_sequence(kind: type) -> bool:
    """Whether objects of this class have a length and elements by number, like range and deque, without being lists or tuples."""
    known = (list, tuple, str, bytes, Mapping, np.ndarray, np.generic, TensorBase)
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not issubclass(kind, known)


def _listed(data: Any) -> Any:
    """Nested sequences of any class as lists."""
    if isinstance(data, (list, tuple)):
        return [_listed(v) for v in data]
    return [_listed(data[i]) for i in range(len(data))] if _is_other_sequence(type(data)) else data


def _kinds(data: Any) -> set[type]:
    """The classes of all elements of nested lists and tuples."""
    found = set(map(type, data))
    nested = {kind for kind in found if issubclass(kind, (list, tuple))}
    return found if not nested else (found - nested).union(*(_kinds(v) for v in data if isinstance(v, (list, tuple))))


def _inferred(data: Any) -> dtype:
    """The dtype that holds all elements: Python's numbers count as the default dtypes, tensors and numpy's numbers as their own.

    Raises: RuntimeError for an element that is not a number.
    """
    if isinstance(data, (list, tuple)):
        found = [_inferred(v) for v in data]
        return functools.reduce(dtypes.promote_types, found) if found else dtypes.get_default_dtype()
    if isinstance(data, TensorBase):
        own: dtype = data.dtype
        return own
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, np.str_):
        return dtypes.from_numpy(data.dtype)
    if isinstance(data, bool):
        return dtypes.bool_
    if isinstance(data, int):
        return dtypes.int64
    if isinstance(data, (float, complex)):
        return _of_kind("c" if isinstance(data, complex) else "f")
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _first(data: Any) -> Any:
    """The first element of nested sequences."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _lengths_of(data: Any) -> list[int]:
    """The lengths of nested sequences, as their first elements have them."""
    lengths = []
    while isinstance(data, (list, tuple)) or (isinstance(data, np.ndarray) and data.ndim):
        lengths.append(len(data))
        if not lengths[-1]:
            break
        data = data[0]
    return lengths


def _check_lengths(data: Any, lengths: list[int], dim: int) -> None:
    """Raise ValueError or TypeError where nested sequences are not of these lengths at every level."""
    sequence = isinstance(data, (list, tuple, np.ndarray))
    if dim == len(lengths):
        if sequence:
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
        return
    if not sequence:
        raise TypeError("not a sequence")
    if len(data) != lengths[dim]:
        raise ValueError(f"expected sequence of length {lengths[dim]} at dim {dim} (got {len(data)})")
    for v in data:
        _check_lengths(v, lengths, dim + 1)


def _has_symbols(data: Any) -> bool:
    return isinstance(data, SymInt) or (isinstance(data, (list, tuple)) and any(map(_has_symbols, data)))


def _of_symbols(data: Any, d: dtype | None) -> Any:
    """A tensor of nested sequences of numbers among which are symbolic ones."""
    if isinstance(data, (list, tuple)):
        parts = [_of_symbols(v, d) for v in data]
        common = result_type(*parts)
        return OPS["stack"]([OPS["to_dtype"](t, common) for t in parts], 0)
    return OPS["full"]((), data, d or dtypes.of_scalar(data), None) if not isinstance(data, TensorBase) else data


def _plain(data: Any) -> Any:
    if isinstance(data, TensorBase):
        if data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    return [_plain(v) for v in data] if isinstance(data, (list, tuple)) else data


@public(parsed=False, interception="modes")
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # noqa: A002
    """A new tensor with a copy of `data` (numbers, nested sequences, arrays, tensors).

    Python floats become the default dtype, ints int64, bools bool; arrays keep theirs.
    """
    if isinstance(data, TensorBase):
        made = data.detach().clone()
        made = made.to(dtype) if dtype is not None else made
    elif _has_symbols(data):
        made = _of_symbols(data, dtype)
    else:
        array = _array_of(data, dtype)
        made = _own(array)
        if not array.size and isinstance(data, np.ndarray):
            made = _with_strides_of(array, made)
    made = made.to(_where(device)) if device is not None or thread_state.device() is not None else made
    return finish(made, requires_grad, pin_memory=pin_memory)


def _over(a: Any) -> Any:
    """A tensor over the array's memory, with its strides: numpy gives an empty array other strides than torch."""
    made = from_array(a)
    return made if a.size else _with_strides_of(a, made)


def _with_strides_of(a: Any, made: Any) -> Any:
    return _native.alias(made, made.shape, tuple(s // a.itemsize for s in a.strides), 0)


def _own(a: Any) -> Any:
    """The array's values in memory from the pool."""
    t = empty_of_spec(TensorSpec.contiguous(a.shape, dtypes.from_numpy(a.dtype)))
    t._array[...] = a
    return t


@public(parsed=False, interception="modes")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:  # noqa: A002
    """Like `tensor`, but returns or shares data that already is a tensor or array of the dtype and device."""
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.from_numpy(data.dtype) is dtype):
        data = _over(data)
    if isinstance(data, TensorBase):
        made: Any = data.to(device=device, dtype=dtype) if device is not None or dtype is not None else data
        return made
    return tensor(data, dtype=dtype, device=device)


@public(interception="modes")
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None) -> Tensor:  # noqa: A002
    """A tensor of `obj`, over its memory where that is possible and `copy` is not True.

    requires_grad: None as `obj` does, a copy with its history; False takes gradients from a tensor that is given back itself.
    Raises ValueError if `copy` is False and a copy cannot be avoided.
    """
    made = as_tensor(obj, dtype, device)
    shares = made is obj or (isinstance(obj, np.ndarray) and np.may_share_memory(made._array, obj))
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary sequence into a tensor." if not isinstance(obj, (TensorBase, np.ndarray)) else
                         "can't alias tensor with another dtype or device.")  # fmt: skip
    if copy and shares:
        made = OPS["clone"](made, None)
    if requires_grad is False and made.requires_grad:
        made.detach_()
    return finish(made, True) if requires_grad else made


def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,  # noqa: A002
                   layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised dense tensor whose dims lie in memory in the order `physical_layout`, outermost first."""
    shape = tuple(size)
    if sorted(physical_layout) != list(range(len(shape))):
        raise RuntimeError(f"Number of dimensions in size does not match the length of the physical_layout; expected a permutation of "
                           f"{len(shape)} dims, got {tuple(physical_layout)}")  # fmt: skip
    strides, step = [0] * len(shape), 1
    for d in reversed(physical_layout):
        strides[d] = step
        step *= max(shape[d], 1)
    return empty_strided(shape, tuple(strides), dtype=dtype, layout=layout, device=device, requires_grad=requires_grad,
                         pin_memory=pin_memory)  # fmt: skip


@public(interception="modes")
def from_numpy(a: Any) -> Tensor:
    """A tensor over the array's memory. Raises: TypeError for a dtype that eager lacks."""
    if not isinstance(a, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(a).__name__})")
    if any(s < 0 for s in a.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                         "currently supported. (You can probably work around this by making a copy of your array with "
                         "array.copy().)")  # fmt: skip
    return _over(a)


@public(interception="modes")
def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector over a buffer's memory. count: elements, -1 for all. offset: bytes. Raises: ValueError if the buffer is too small."""
    size = memoryview(buffer).nbytes
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1")
    if count < 0 and (size - offset) % dtype.itemsize:
        raise ValueError(f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
                         f"({dtype.itemsize})")  # fmt: skip
    if count > 0 and offset + count * dtype.itemsize > size:
        raise ValueError(f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} bytes) must not be greater "
                         f"than actual buffer length ({size} bytes)")  # fmt: skip
    return finish(from_array(np.frombuffer(buffer, dtype.numpy, count, offset)), requires_grad)


@public(ints_are_numbers=True)
def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of shape `size` filled with a number. dtype: by default the fill value's (bool, int64, or the default float dtype)."""
    check_layout(layout)
    if isinstance(fill_value, TensorBase):
        fill_value = fill_value.item()
    if isinstance(size, int):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    size = tuple(size)
    d = dtypes.chosen(dtype, dtypes.of_scalar(fill_value))
    return finish(OPS["full"](sizes_of(size), fill_value, d, _where(device)), requires_grad, out, pin_memory)


def _filled(name: str, value: Any) -> Any:
    def make(*sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
        check_layout(layout)
        d = dtypes.chosen(dtype, dtypes.get_default_dtype())
        return finish(OPS["full"](given_sizes(name, sizes, size), value, d, _where(device)), requires_grad, out, pin_memory)

    make.__name__ = make.__qualname__ = name
    return make


zeros, ones = _filled("zeros", 0), _filled("ones", 1)


def empty(*sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor with undefined contents."""
    check_layout(layout)
    shape = given_sizes("empty", sizes, size)
    made = OPS["empty"](shape, dtypes.chosen(dtype, dtypes.get_default_dtype()), _where(device))
    return finish(in_format(made, memory_format), requires_grad, out, pin_memory)


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of undefined contents with shape `size` and strides `stride`, counted in elements."""
    check_layout(layout)
    spec = TensorSpec(tuple(size), dtypes.chosen(dtype, dtypes.get_default_dtype()), tuple(stride), _where(device))
    return finish(empty_of_spec(spec), requires_grad, pin_memory=pin_memory)


def _like(value: Any) -> Any:
    def make(input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
        return full_like(input, value, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad,
                         pin_memory=pin_memory, memory_format=memory_format)  # fmt: skip

    return make


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor like `input`, filled with one value. memory_format: None or preserve keeps the order of dims in memory."""
    check_layout(layout)
    d, where = dtypes.chosen(dtype, input.dtype), input.device if device is None else _where(device)
    made = OPS["full"](tuple(input.shape), fill_value, d, where)
    return finish(input._adopt(restrided(made, strides_like(input, memory_format))), requires_grad, pin_memory=pin_memory)


zeros_like, ones_like = _like(0), _like(1)
zeros_like.__name__ = zeros_like.__qualname__ = "zeros_like"
ones_like.__name__ = ones_like.__qualname__ = "ones_like"


empty_like = _like(0)
empty_like.__name__ = empty_like.__qualname__ = "empty_like"


def _number(v: Any) -> Any:
    return v.item() if isinstance(v, (TensorBase, np.generic)) else v


@public(ints_are_numbers=True)
def arange(start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The values start, start + step, ... below end; int64 if all are ints, else the default dtype.

    Raises: RuntimeError for step 0, or a step away from end.
    """
    check_layout(layout)
    if start is None and end is None:
        raise TypeError("arange() received an invalid combination of arguments - got (), but expected one of:\n * (Number end, *, ...)\n"
                        " * (Number start, Number end, *, ...)\n * (Number start, Number end, Number step, *, ...)")
    if end is None:
        start, end = 0, start
    start, end, step = _number(0 if start is None else start), _number(end), _number(step)
    _check_range_of(start, end, step)
    made = OPS["arange"](start, end, step, out.dtype if dtype is None and out is not None else dtype, _where(device))
    return _finish_range(made, requires_grad, out, pin_memory)


def _finish_range(made: Any, requires_grad: bool, out: Any, pin_memory: bool) -> Any:
    """As `finish`; but an `out` with as many elements keeps its shape."""
    if out is not None and out.numel() == made.numel():
        made = OPS["view"](made, tuple(out.shape))
    return finish(made, requires_grad, out, pin_memory)


def _check_range_of(start: Any, end: Any, step: Any) -> None:
    if any(isinstance(v, complex) for v in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if not all(isinstance(v, int | SymInt) or math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0 or (isinstance(step, float) and math.isnan(step)):
        raise RuntimeError("step must be nonzero")


@public(parsed=False)
def range_(start: Any, end: Any, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`torch.range`: the values start, start + step, ... up to end inclusive, in the default dtype. Raises: RuntimeError as `arange`."""
    check_layout(layout)
    start, end, step = _number(start), _number(end), _number(step)
    _check_range_of(start, end, step)
    target = dtypes.chosen(dtype, dtypes.get_default_dtype() if out is None else out.dtype)
    if target.is_integral:
        start, end, step = int(start), int(end), int(step)
        _check_range_of(start, end, step)
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count, exact = math.floor((end - start) / step) + 1, dtypes.int64 if target.is_integral else dtypes.float64
    places = OPS["arange"](0, count, 1, exact, _where(device))
    return _finish_range((places * step + start).to(target), requires_grad, out, False)


@public(ints_are_numbers=True)
def linspace(start: Any, end: Any, steps: int, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """`steps` evenly spaced values from start to end inclusive, in the default dtype. Raises: RuntimeError for negative steps."""
    check_layout(layout)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    first, last = _number(start), _number(end)
    start, end = in_dtype(first, dtype), in_dtype(last, dtype)
    default = dtypes.get_default_dtype()
    d = dtypes.chosen(dtype, default.to_complex() if isinstance(start, complex) or isinstance(end, complex) else default)
    i = OPS["arange"](0, steps, 1, dtypes.int64, _where(device))
    if steps == 1:
        one = OPS["full"]((1,), bool(first) if d is dtypes.bool_ else start, d, _where(device))
        return _finish_range(one, requires_grad, out, pin_memory)
    wide = d if d.is_complex or d is dtypes.float32 else dtypes.float64
    x = OPS["to_dtype"](i, wide)

    def at(k: Any) -> Any:
        return times_ratio(k, end - start, max(steps - 1, 1))

    half = steps // 2  # both halves count from their own end, so that the ends are exact
    values = OPS["where"](i < half, start + at(x), end - at(steps - 1 - x))
    return _finish_range(values.to(d), requires_grad, out, pin_memory)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Any = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """`steps` powers of `base` whose exponents are evenly spaced from start to end, both included; complex if one of them is."""
    check_layout(layout)
    start, end = _number(start), _number(end)
    if steps != 1:
        start, end = in_dtype(start, dtype), in_dtype(end, dtype)
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    default = dtypes.get_default_dtype()
    exponents = linspace(start, end, steps, dtype=dtypes.complex128 if is_complex else dtypes.float64, device=device)
    powers = OPS["pow"](base, exponents).to(dtypes.chosen(dtype, default.to_complex() if is_complex else default))
    return _finish_range(powers, requires_grad, out, pin_memory)


def eye(n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """(n, m) with ones on the diagonal and zeros elsewhere; m is n by default. Raises: RuntimeError for a negative size."""
    check_layout(layout)
    m = n if m is None else m
    for name, count in (("n", n), ("m", m)):
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    rows = OPS["arange"](0, n, 1, None, _where(device)).unsqueeze(1)
    cols = OPS["arange"](0, m, 1, None, _where(device))
    made = in_rows((rows == cols).to(dtypes.chosen(dtype, dtypes.get_default_dtype())))
    return finish(made, requires_grad, out, pin_memory)


@public(ints_are_numbers=True)
def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
                  pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of shape () that holds a number, by default in the default float dtype. Raises: TypeError for a tensor."""
    check_layout(layout)
    d = dtypes.chosen(dtype, dtypes.get_default_dtype())
    made = OPS["full"]((), rounded(s, d), d, _where(device))
    return finish(made, requires_grad, pin_memory=pin_memory)


# ---- methods: new_* take dtype and device from self ----


def _new(fn: Any) -> Any:
    def method(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any) -> Tensor:
        made = fn(*size, dtype=dtypes.chosen(dtype, self.dtype), device=self.device if device is None else device, **kw)
        return finish(self._adopt(made), requires_grad)

    return method


def new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`full` with the dtype and device of self by default."""
    made = full(size, fill_value, dtype=dtypes.chosen(dtype, self.dtype), layout=layout,
                device=self.device if device is None else device, pin_memory=pin_memory)  # fmt: skip
    return finish(self._adopt(made), requires_grad)


def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`tensor` with the dtype and device of self by default."""
    return tensor(data, dtype=dtypes.chosen(dtype, self.dtype), device=self.device if device is None else device,
                  requires_grad=requires_grad)  # fmt: skip


@public(parsed=False)
def new(self: Any, *args: Any) -> Tensor:
    """A tensor of self's dtype and device: of a list or array, over the memory of a tensor of self's type, or of undefined
    contents for sizes (none: an empty tensor).
    """
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].type() != self.type():
            raise TypeError(f"new(): expected a {self.type()}, got a {args[0].type()}; convert it with tensor.to({self.dtype})")
        return OPS["alias"](args[0])
    if len(args) == 1 and isinstance(args[0], (list, np.ndarray)):
        return new_tensor(self, args[0])
    return empty(*(args or (0,)), dtype=self.dtype, device=self.device)


FUNCTIONS: dict[str, Any] = {
    "tensor": tensor, "as_tensor": as_tensor, "asarray": asarray, "empty_permuted": empty_permuted,
    "from_numpy": from_numpy, "frombuffer": frombuffer,
    "full": full, "zeros": zeros, "ones": ones, "empty": empty, "empty_strided": empty_strided, "zeros_like": zeros_like,
    "ones_like": ones_like, "empty_like": empty_like, "full_like": full_like, "arange": arange, "linspace": linspace,
    "logspace": logspace, "eye": eye, "scalar_tensor": scalar_tensor,
    "range": range_,
}  # fmt: skip
METHODS: dict[str, Any] = {
    "new_zeros": _new(zeros), "new_ones": _new(ones), "new_empty": _new(empty), "new_full": new_full, "new_tensor": new_tensor,
    "new": new,
}  # fmt: skip
