"""Tensor: the class that users see. Its ops are functions of `eager.functions`, attached by name."""
from __future__ import annotations

import copy
import operator
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from eager import _native
from eager._tensor import text
from eager.base import dtypes
from eager.base.device import from_codes
from eager.base.dtypes import dtype
from eager.base.hooks import RemovableHandle, add_hook
from eager.base.memory_format import layout, strided
from eager.base.overriding import open_parameters
from eager.base.spec import FAKE_FLAG, TensorSpec, refuse_data, spec_of
from eager.base.symint import SymInt
from eager.optable.memory import empty, from_array
from eager.optable.table import OPS
from eager.tape import engine
from eager.tape.node import edge_of, history_of, meta_of


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints with `numel()`."""

    __slots__ = ()

    def __new__(cls, *sizes: Iterable[Any]) -> Size:
        made = tuple.__new__(cls, *sizes)
        for i, n in enumerate(made):
            if n.__class__ is not int and not isinstance(n, (int, SymInt, np.integer)):
                try:
                    return cls([*made[:i], operator.index(n), *made[i + 1 :]])
                except TypeError:
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')") from None
        return made

    def numel(self) -> int:
        n = 1
        for d in self:
            n *= d
        return n

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Size:  # type: ignore[override]
        return Size(tuple(self) + tuple(other))

    def __mul__(self, count: Any) -> Size:  # type: ignore[override]
        return Size(tuple(self) * count)

    __rmul__ = __mul__  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


_NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
    "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
    "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)


class Tensor(_native.TensorBase):
    """A multi-dimensional array with a dtype and a device, differentiable in reverse.

    `Tensor(2, 3)` is an uninitialised float tensor, `Tensor([1, 2])` one of those values; use
    `eager.tensor` to keep the dtype of the data.
    """

    _shown_as = "tensor"
    # an ndarray on the left leaves the operation to us
    __array_priority__ = 1000
    _is_torch_tensor = True

    def __new__(cls, *args: Any, device: Any = None) -> Any:
        if len(args) == 1 and isinstance(args[0], Tensor):
            made = OPS["alias"](args[0])
        elif len(args) == 1 and isinstance(args[0], (float, complex)):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
        elif len(args) == 1 and not isinstance(args[0], (int, np.integer)) and not isinstance(args[0], Size):
            made = from_array(np.array(args[0], dtypes.get_default_dtype().numpy))
        else:
            shape = args[0] if len(args) == 1 and isinstance(args[0], Size) else args or (0,)
            made = empty(TensorSpec.contiguous(tuple(int(n) for n in shape), dtypes.get_default_dtype()))
        return made if cls is Tensor else _as(cls, made)

    # ---- autograd ----

    @property
    def requires_grad(self) -> bool:
        """Whether autograd computes a gradient for this tensor."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._grad_fn is not None:
            if not value:
                raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                                   "variable in a subgraph that doesn't require differentiation use var_no_grad = "
                                   "var.detach().")  # fmt: skip
            return
        if value and self.dtype.is_integral:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if value and self._is_inference and not _native.inference_mode():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return self."""
        if requires_grad is not True and requires_grad is not False:
            raise TypeError(f"requires_grad_(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient added up by `backward`, or None."""
        found = self._grad
        if found is None and self._grad_fn is not None and not self.retains_grad:
            warnings.warn(_NON_LEAF_GRAD, stacklevel=2)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
            if tuple(value.shape) != tuple(self.shape):
                raise RuntimeError(f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                                   f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size")  # fmt: skip
            if value.dtype is not self.dtype:
                raise RuntimeError(f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor of dtype '{self.dtype}'. "
                                   "The gradient must have the dtype of the tensor.")  # fmt: skip
        self._grad = value

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor, or None for a leaf."""
        return history_of(self)

    @property
    def is_leaf(self) -> bool:
        return not self._requires_grad or history_of(self) is None

    @property
    def data(self) -> Tensor:
        """A tensor over the same memory, without history and with a separate version counter."""
        storage = _native.storage_alias(self.untyped_storage())
        flags = self._meta_word & (1 << 33)
        return _native.new_tensor(None, storage, self.dtype.code, tuple(self.shape), self.stride(), self.storage_offset(), flags)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        self._set_impl(value)

    @property
    def _base(self) -> Tensor | None:
        m = self._autograd
        return None if m is None else m.base

    def _is_view(self) -> bool:
        return self._base is not None

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:  # fmt: skip
        """Add the gradients of this tensor into the `.grad` of its leaves. See `autograd.backward`."""
        engine.backward([self], [gradient], retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """`hook(grad)` whenever the gradient of this tensor is computed; may return a replacement."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        node = history_of(self)
        if node is None:
            m = meta_of(self)
            if m.hooks is None:
                m.hooks = {}
            return add_hook(m.hooks, hook)
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        return add_hook(node.tensor_hooks.setdefault(self.output_nr, {}), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """`hook(self)` after a gradient was added into `.grad` of this leaf."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        m = meta_of(self)
        if m.post_hooks is None:
            m.post_hooks = {}
        edge_of(self)
        return add_hook(m.post_hooks, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in `.grad`."""
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        node = history_of(self)
        if node is not None:
            meta_of(self).retains_grad = True
            if node.retained is None:
                node.retained = {}
            node.retained[self.output_nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        m = self._autograd
        return m is not None and m.retains_grad

    # The batches that a function transform maps over and this tensor is a row of: it has then no single value to read.
    _batches: frozenset[Any] = frozenset()

    def _adopt(self, t: Any) -> Any:
        """`t`, newly made like this tensor, as one of the same batch if this is a row of one."""
        return t

    def _alias(self) -> Any:
        """A tensor over the same memory, without history; no op call."""
        return _native.alias(self, tuple(self.shape), self.stride(), self.storage_offset())

    def _recorded(self) -> Tensor:
        """The tensor whose history the engine follows."""
        return self

    def detach(self) -> Tensor:
        """The same memory, cut off from the history."""
        return OPS["detach"](self)

    def detach_(self) -> Tensor:
        """Forget this tensor's own history."""
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                               "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                               "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                               "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.")
        self._set_history(None, 0)
        self._requires_grad = False
        return self

    # ---- reading the data ----

    def item(self) -> Any:
        """The value of a single-element tensor, as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        refuse_data(self, "item()")
        value = self._array.item()
        return value if self.dtype.in_numpy else float(value)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        refuse_data(self, "tolist()")
        a = (self.cpu() if self.dtype.is_float8 else self)._array
        return (a if self.dtype.in_numpy else a.astype(np.float32)).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """An ndarray over the same memory. Raises: RuntimeError if the tensor requires a gradient and recording is on, unless `force`."""
        if not isinstance(force, bool):
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if self.device.type == "meta":
            raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        refuse_data(self, "numpy()")
        if self._requires_grad and not force and _native.grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device.type == "cuda":
            if not force:
                raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                                "to host memory first.")  # fmt: skip
            return self.cpu()._array
        if not self.dtype.in_numpy:
            raise TypeError(f"Got unsupported ScalarType {dtypes.scalar_name(self.dtype)}")
        self._expose()  # writes through the ndarray are not seen: compiled graphs stop keeping packed forms of it
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        a = self.numpy()
        if dtype is not None and a.dtype != dtype:
            return a.astype(dtype)
        return a.copy() if copy else a

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """The result of a numpy function of this tensor, as a tensor (bool results as uint8, as in torch)."""
        return from_array(array.astype(np.uint8) if array.dtype == np.bool_ else np.asarray(array))  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        if self.numel() != 1:
            if self.numel() == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def _number(self) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def _real_number(self, name: str) -> Any:
        value = self._number()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {name} without overflow")
            return value.real
        return value

    def __float__(self) -> float:
        return float(self._real_number("double"))

    def __int__(self) -> int:
        return int(self._real_number("int64_t"))

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if not self.dtype.is_integral:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter([OPS["select"](self, 0, i) for i in range(self.shape[0])])

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, (Tensor, int, float, bool, complex, np.number)):
            return bool((self == value).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")

    def __hash__(self) -> int:
        return id(self)

    def __reversed__(self) -> Tensor:
        return self if self.ndim == 0 else OPS["flip"](self, (0,))

    @open_parameters
    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return text.format_tensor(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and not self.is_fake and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    # ---- metadata ----

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a CUDA tensor for other libraries, version 2 of the protocol.

        Raises: AttributeError for a tensor on the CPU; RuntimeError for a tensor that requires grad.
        """
        if not self.is_cuda:
            raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
                                 "tensor.cuda() to copy tensor to device memory.")  # fmt: skip
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
                               "var.detach() to get Variable that doesn't require grad.")  # fmt: skip
        strides = None if self.is_contiguous() else tuple(s * self.element_size() for s in self.stride())
        typestr = self.dtype.numpy.str if self.dtype.in_numpy else f"<V{self.element_size()}"
        return {"typestr": typestr, "shape": tuple(self.shape), "strides": strides, "data": (self.data_ptr() if self.numel() else 0, False),
                "version": 2}  # fmt: skip

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    @property
    def itemsize(self) -> int:
        return self.element_size()

    @property
    def nbytes(self) -> int:
        return self.numel() * self.element_size()

    @property
    def layout(self) -> layout:
        return strided

    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_mps = is_xpu = False
    is_ipu = is_maia = is_mtia = is_vulkan = is_xla = volatile = False
    names: Any = property(lambda self: (None,) * self.ndim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie row-major without gaps (or in `memory_format`)."""
        name = getattr(memory_format, "name", memory_format)
        if name in (None, "contiguous"):
            return self._is_contiguous()
        if name not in ("channels_last", "channels_last_3d", "preserve"):
            raise TypeError(f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
        shape, strides, expected = self.shape, self.stride(), 1
        if name != {4: "channels_last", 5: "channels_last_3d"}.get(self.ndim):
            return False
        for d in (1, *range(self.ndim - 1, 1, -1), 0):
            if shape[d] != 1 and strides[d] != expected:
                return False
            expected *= shape[d]
        return True

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        return self._is_inference

    def get_device(self) -> int:
        """Index of the CUDA device, -1 on the CPU."""
        return self.device.index or 0 if self.is_cuda else -1

    def is_set_to(self, other: Tensor) -> bool:
        """Whether both are the same view of the same memory."""
        return (self.untyped_storage().root is other.untyped_storage().root and self.shape == other.shape
                and self.stride() == other.stride() and self.storage_offset() == other.storage_offset())  # fmt: skip

    # ---- copies and pickling ----

    def as_subclass(self, cls: type) -> Any:
        """A tensor of class `cls` over the same memory, with the same history.

        Raises: TypeError unless `cls` is a subclass of Tensor; NotImplementedError if `cls` has `__torch_dispatch__`.
        """
        return _as(cls, OPS["alias"](self))

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
        """A leaf of class `cls` over the memory of `data`."""
        made = _as(cls, data.detach())
        made._requires_grad = require_grad
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                               "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm "
                               "usage, see https://github.com/pytorch/pytorch/pull/103001")  # fmt: skip
        with _NoGrad():
            result = self._over(self._copied_storage(memo))
        memo[id(self)] = result
        if self._grad is not None:
            result._grad = self._grad.__deepcopy__(memo)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __copy__(self) -> Any:
        """A leaf over the same memory, with the same attributes, without history and gradient."""
        result = self._over(self.untyped_storage())
        result.__dict__.update(self.__dict__)
        return result

    def _over(self, storage: Any) -> Any:
        """A leaf of this class, shape, strides, dtype and kind, over `storage`."""
        flags = self._meta_word & FAKE_FLAG
        made = _native.new_tensor(None, storage, self.dtype.code, tuple(self.shape), self.stride(), self.storage_offset(), flags)
        result = made if type(self) is Tensor else _as(type(self), made)
        result._requires_grad = self._requires_grad
        result._is_param = self._is_param
        return result

    def _copied_storage(self, memo: dict[int, Any]) -> Any:
        """The whole memory, copied once for all tensors of one `deepcopy`: views go on sharing it."""
        storage = self.untyped_storage()
        key = id(storage.root)
        if key not in memo:
            whole = _native.new_tensor(None, storage, dtypes.uint8.code, (storage.nbytes(),), (1,), 0, self._meta_word & FAKE_FLAG)
            memo[key] = whole.clone().untyped_storage()
        return memo[key]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """The state of a pickle: the elements of this tensor (not the rest of its memory), its strides if it has no gaps, and its
        attributes. The history is not saved."""
        if self.device.type == "meta":
            made: tuple[Any, ...] = (type(self), spec_of(self), self._requires_grad, self._is_param)
            return (_rebuild_meta, made, dict(self.__dict__)) if self.__dict__ else (_rebuild_meta, made)
        order = sorted(range(self.ndim), key=lambda d: -self.stride(d))
        with _NoGrad():
            t = self.detach().cpu()
            dense = t.permute(order).is_contiguous()
            t = t.permute(order) if dense else t
        made = (type(self), t._array.tobytes(), self.dtype, tuple(t.shape), order if dense else None,
                self._requires_grad, self._is_param)  # fmt: skip
        return (_rebuild, made, dict(self.__dict__)) if self.__dict__ else (_rebuild, made)


def _as(cls: type, fresh: Any) -> Any:
    """A fresh tensor, to which no other reference exists, as an instance of `cls`."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, got {cls!r}")
    if hasattr(cls, "__torch_dispatch__"):
        raise NotImplementedError(f"{cls.__name__}: __torch_dispatch__ of a tensor subclass is not implemented; __torch_function__ is, "
                                  "and a TorchDispatchMode sees every op of its block")  # fmt: skip
    fresh.__class__ = cls
    return fresh


class _NoGrad:
    """A block of this module with recording off (the public `no_grad` is in a higher layer)."""

    def __enter__(self) -> None:
        self.before = _native.set_grad_enabled(False)

    def __exit__(self, *exc: object) -> None:
        _native.set_grad_enabled(self.before)


def _rebuild(cls: type, data: bytes, d: dtype, shape: tuple[int, ...], order: list[int] | None, requires_grad: bool,
             is_param: bool) -> Any:  # fmt: skip
    """The tensor whose dims, in `order`, have `shape` and the numbers `data`."""
    t = empty(TensorSpec.contiguous(shape, d))
    t._array[...] = np.frombuffer(data, d.numpy).reshape(shape)
    if order is not None:
        t = t.permute([order.index(dim) for dim in range(len(order))])
    return _flagged(cls, t, requires_grad, is_param)


def _rebuild_meta(cls: type, spec: TensorSpec, requires_grad: bool, is_param: bool) -> Any:
    """A tensor of the meta device."""
    return _flagged(cls, empty(spec), requires_grad, is_param)


def _flagged(cls: type, t: Tensor, requires_grad: bool, is_param: bool) -> Any:
    result = t if cls is Tensor else _as(cls, t)
    result._is_param = is_param
    result._requires_grad = requires_grad
    return result


_native.register_types(Tensor, Size, dtypes.ALL, [d.numpy for d in dtypes.ALL], from_codes)


def attach(methods: dict[str, Any]) -> None:
    """Make functions of `eager.functions` methods of Tensor, under the given names."""
    for name, fn in methods.items():
        setattr(Tensor, name, fn)


__all__ = ["Size", "Tensor", "attach"]
_native.set_symint(SymInt)
