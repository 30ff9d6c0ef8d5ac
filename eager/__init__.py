"""Eager tensors with torch's names and semantics: `import eager as torch`.

A call of a public function (`functions`, or a method of `_tensor`) binds its arguments and calls an op of the table
(`optable`). `dispatch` runs the op under the active modes: it computes by a native or numpy kernel, and `tape` records
a node with the op's gradient. `Tensor.backward` walks that record.

Layers, each of which imports only from earlier ones: `startup` (installation, import hooks), `base` (dtypes, devices,
specs, settings), `tape` (the autograd record), `dispatch` (modes), `optable` (the ops), `_tensor`, `autograd` (public
differentiation), `functions`, `transforms` (vmap, grad, jvp), `nn`, then `optim`, `amp`, `sparse`, `serialization`,
`distributions`, `utils` and torch's other packages. C code is in `native`. Start reading at `optable/table.py`, then
`optable/pointwise.py`.
"""
from __future__ import annotations

import math as _math
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from eager.startup import absent_names as _absent
from eager.startup import bootstrap as _bootstrap
from eager.startup import first_use as _first_use

_no_collection = _bootstrap.NoCollection()  # the garbage collector is off until the end of this file

from eager import _native as _native
from eager import amp, autograd, compiler, cuda, linalg, nn, optim, random, sparse
from eager._storage.tensor_types import CUDA_TENSOR_TYPES as _CUDA_TENSOR_TYPES
from eager._storage.tensor_types import STORAGE_TYPES as _STORAGE_TYPES
from eager._storage.tensor_types import TENSOR_TYPES as _TENSOR_TYPES
from eager._storage.tensor_types import TypedStorage, UntypedStorage, set_default_tensor_type
from eager._tensor.tensor import Size, Tensor
from eager._tensor.text import set_printoptions
from eager._tensor.torch_function import set_namespaces as _set_namespaces
from eager.amp import GradScaler
from eager.amp import cuda as _cuda_amp
from eager.amp.autocast_mode import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from eager.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from eager.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from eager.base import dtypes as _dtypes
from eager.base import logs as _logging
from eager.base import machine as _host
from eager.base.device import default_device as get_default_device
from eager.base.device import device, set_default_device
from eager.base.dtypes import can_cast as _can_cast
from eager.base.dtypes import dtype, get_default_dtype, promote_types, result_type, set_default_dtype
from eager.base.limits import finfo, iinfo
from eager.base.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from eager.base.precision import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from eager.base.threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from eager.base.tracebacks import filter_public_functions as _filter_public_functions
from eager.cuda import OutOfMemoryError
from eager.functions import FUNCTIONS as _FUNCTIONS
from eager.functions.assertions import SymBool, SymFloat, SymInt, _assert
from eager.functions.assertions import assert_async as _assert_async
from eager.functions.assertions import check as _check
from eager.functions.assertions import check_index as _check_index
from eager.functions.assertions import check_is_size as _check_is_size
from eager.functions.assertions import check_not_implemented as _check_not_implemented
from eager.functions.assertions import check_tensor_all as _check_tensor_all
from eager.functions.assertions import check_tensor_all_with as _check_tensor_all_with
from eager.functions.assertions import check_type as _check_type
from eager.functions.assertions import check_value as _check_value
from eager.functions.assertions import check_with as _check_with
from eager.random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from eager.version import __version__

_host.configure()
for _d in (*_dtypes.ALL, *_dtypes.NAMES_ONLY):
    globals()[_d.name] = _d
for _name, _d in _dtypes.ALIASES.items():
    globals()[_name] = _d
globals().update(_FUNCTIONS)
globals().update(_TENSOR_TYPES)
globals().update(_STORAGE_TYPES)
vars(cuda).update(_CUDA_TENSOR_TYPES)
globals().update(nn.functional.TOP_LEVEL)
globals().update(sparse.TOP_LEVEL)
for _name in _absent.METHODS:
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _absent.AbsentMethod(_name))
Stream, Event = cuda.Stream, cuda.Event  # of the accelerator; CUDA is the only one
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
Storage = TypedStorage


_named_device = device  # for functions with a parameter `device`


def get_device_module(device: _Any = None) -> _Any:
    """`torch.cuda` or `torch.cpu`, for a device or device type; by default of the available accelerator.

    Raises: RuntimeError for a device without a module.
    """
    if not isinstance(device, (_named_device, str, type(None))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = ("cuda" if cuda.is_available() else "cpu") if device is None else _named_device(device).type
    if kind not in ("cuda", "cpu"):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return cuda if kind == "cuda" else _first_use.find("eager", "cpu")


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:  # noqa: A002
    """Whether the dtype of `input` is floating point."""
    return input.is_floating_point()


def numel(input: Tensor) -> int:  # noqa: A002
    """The number of elements of `input`."""
    return input.numel()


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether type promotion allows a cast from the dtype `from_` to the dtype `to`."""
    return _can_cast(from_, to)


compile = compiler.compile  # noqa: A001 - torch's name

# Modules and names that are imported at first use; startup.torch_names lists modules with another name in torch.
_first_use.register("eager", {
    **{name: f"eager.{name}" for name in (
        "_C __config__ _custom_ops _functorch _ops _higher_order_ops _subclasses _tensor_str accelerator ao as_torch backends library "
        "cpu distributed distributions fft func functional futures hub jit multiprocessing onnx overrides profiler "
        "serialization signal special storage testing types _utils utils version").split()},
    "vmap": "eager.transforms.mapping:vmap", "Future": "eager.futures:Future", "is_storage": "eager.storage:is_storage",
    "TensorType": "eager.jit.annotations:TensorType", "ScriptModule": "eager.jit:ScriptModule",
    "ScriptFunction": "eager.jit:ScriptFunction", "cond": "eager._higher_order_ops:cond",
    "while_loop": "eager._higher_order_ops:while_loop", "Tag": "eager._ops:Tag",
    "DisableTorchFunction": "eager.overrides:DisableTorchFunction",
    "DisableTorchFunctionSubclass": "eager.overrides:DisableTorchFunctionSubclass", "DispatchKey": "eager._C:DispatchKey",
    "DispatchKeySet": "eager._C:DispatchKeySet",
    **{name: f"eager.serialization:{name}" for name in ("load", "save", "PyTorchFileReader")},
})  # fmt: skip
_first_use.register("eager.autograd", {
    "Function": "eager.autograd.function:Function", "FunctionCtx": "eager.autograd.function:FunctionCtx",
    "InplaceFunction": "eager.autograd.function:InplaceFunction",
    "once_differentiable": "eager.autograd.function:once_differentiable", "Variable": "eager.autograd.variable:Variable",
    "gradcheck": "eager.transforms.finite_differences:gradcheck",
    "gradgradcheck": "eager.transforms.finite_differences:gradgradcheck",
    **{name: f"eager.autograd.{name}" for name in "function graph profiler variable".split()},
    **{name: f"eager.transforms.{name}" for name in "forward_ad functional".split()},
})  # fmt: skip
_first_use.register("eager.utils", {
    **{name: f"eager.utils.{name}" for name in "_foreach_utils _ordered_set _python_dispatch _pytree checkpoint data dlpack model_zoo "
       "tensorboard weak".split()}, "hooks": "eager.base.hooks",
})  # fmt: skip
_first_use.register("eager.tape.hooks", {"call_batched": "eager.transforms.mapping:call_batched"})
_first_use.register("eager.compiler", {"_dynamo": "dynamo.api.compile", "_bundle": "inductor.artifact.bundle"})


def _namespaces_of_functions() -> dict[str, dict[str, _Any]]:
    """The namespaces whose functions `__torch_function__` intercepts."""
    modules = (nn.functional, linalg, *(_first_use.find("eager", name) for name in ("fft", "special")), nn.init)
    return {"eager": globals(), **{module.__name__: vars(module) for module in modules}, "eager.autograd": {"grad": autograd.grad}}


_set_namespaces(_namespaces_of_functions)

if _TYPE_CHECKING:
    from eager import serialization
    from eager.serialization import PyTorchFileReader, load, save

    def __getattr__(name: str) -> _Any: ...

else:
    __getattr__ = _absent.attribute_finder(_sys.modules[__name__], "torch", None)

_filter_public_functions()
del _no_collection
