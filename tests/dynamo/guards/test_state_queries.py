"""Queries about modes of the process and about tensors: a compiled variant that is reused answers as eager does.

Each query is compiled once and called under every mode, or with every kind of tensor, and then once more in the reverse
order, so that each call finds the variants of all others.
"""

from __future__ import annotations

import contextlib
import os  # noqa: F401 - read by the queries
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import eager as torch
from eager import nn


@contextlib.contextmanager
def _setting(read: Callable[[], Any], write: Callable[[Any], Any], value: Any) -> Iterator[None]:
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


def _flag(owner: Any, name: str, value: Any) -> Any:
    return _setting(lambda: getattr(owner, name), lambda v: setattr(owner, name, v), value)


MODES: dict[str, Callable[[], Any]] = {
    "plain": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "inference off": lambda: torch.inference_mode(False),
    "float64": lambda: _setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": lambda: _setting(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
    "deterministic, warn": lambda: _setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 1),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast off": lambda: torch.autocast("cpu", enabled=False),
    "autocast uncached": lambda: torch.autocast("cpu", cache_enabled=False),
    "one thread": lambda: _setting(torch.get_num_threads, torch.set_num_threads, 1),
    "two threads": lambda: _setting(torch.get_num_threads, torch.set_num_threads, 2),
    "anomaly": torch.autograd.detect_anomaly,
    "anomaly, no nan check": lambda: torch.autograd.detect_anomaly(check_nan=False),
    "precision": lambda: _setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
    "meta device": lambda: torch.device("meta"),
    "seed": lambda: _setting(torch.initial_seed, torch.manual_seed, 77),
    "benchmark": lambda: _flag(torch.backends.cudnn, "benchmark", True),
    "cudnn off": lambda: _flag(torch.backends.cudnn, "enabled", False),
    "tf32": lambda: _flag(torch.backends.cuda.matmul, "allow_tf32", True),
    "sdpa": lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    "environment": lambda: _setting(lambda: "", lambda v: os.environ.__setitem__("STATE_QUERY", v), "1"),
}
QUERIES_OF_MODES = """
torch.is_inference_mode_enabled()
torch.is_inference(x)
x.is_inference()
torch.ones(2).is_inference()
(x+1).is_inference()
torch.is_grad_enabled()
(x*p).requires_grad
p.requires_grad
torch.get_default_dtype()
torch.tensor([1.5]).dtype
torch.ones(2).dtype
torch.arange(0,2,.5).dtype
(torch.arange(3)/2).dtype
torch.get_default_device()
torch.ones(2).device
torch.empty(2).device
torch.tensor(1).device
torch.are_deterministic_algorithms_enabled()
torch.is_deterministic_algorithms_warn_only_enabled()
torch.get_deterministic_debug_mode()
torch.get_num_threads()
torch.get_num_interop_threads()
torch.is_autocast_enabled()
torch.is_autocast_enabled("cpu")
torch.is_autocast_cpu_enabled()
torch.get_autocast_dtype("cpu")
torch.get_autocast_cpu_dtype()
torch.get_autocast_gpu_dtype()
torch.is_autocast_cache_enabled()
(x@x.T).dtype
torch.is_anomaly_enabled()
torch.is_anomaly_check_nan_enabled()
torch.get_float32_matmul_precision()
torch.initial_seed()
torch.backends.cudnn.benchmark
torch.backends.cudnn.deterministic
torch.backends.cudnn.enabled
torch.backends.cuda.matmul.allow_tf32
torch.backends.cuda.flash_sdp_enabled()
torch.backends.cuda.math_sdp_enabled()
torch.backends.cuda.mem_efficient_sdp_enabled()
torch.is_tensor(x)
torch.finfo().dtype
torch.promote_types(torch.int64,torch.get_default_dtype())
torch.result_type(x,2.)
torch.result_type(torch.ones(2,dtype=torch.int64),2.)
torch.full((2,),1.).dtype
torch.zeros(2,dtype=torch.get_default_dtype()).dtype
torch.nn.Parameter(torch.ones(1)).requires_grad
torch.complex(x,x).dtype
torch.tensor(1j).dtype
torch.linspace(0,1,3).dtype
torch.eye(2).dtype
torch.hann_window(4).dtype
torch.rand(2).dtype
torch.rand(2).device
torch.Tensor([1.]).dtype
torch.scalar_tensor(2.).dtype
torch.empty(2,dtype=torch.int32).device
str(os.environ.get('STATE_QUERY'))
nn.functional.linear(x,p).dtype
(x*p).grad_fn is None
(x*p).is_leaf
torch.compiler.is_compiling() is None
torch.cuda.is_available()
torch.set_grad_enabled is None
x.device.type
torch.nn.Linear(2,2).weight.dtype
torch.optim.SGD is None
torch.utils.checkpoint.checkpoint is None
torch.layer_norm(x,(3,)).dtype
x.new_ones(2).device
torch.zeros_like(x).device
torch.as_tensor([1.,2.]).dtype
torch.as_tensor(2).device
torch.from_numpy(numpy.ones(2)).device
(x.double().sum()+1).dtype
torch.mean(x).dtype
torch.softmax(x,-1).dtype
torch.sum(x,0).dtype
nn.functional.layer_norm(x,(3,)).dtype
(x.bfloat16()@x.bfloat16().T).dtype
torch.cat([x,x.bfloat16()]).dtype
nn.functional.mse_loss(x,x.bfloat16()).dtype
torch.logsumexp(x,0).dtype
""".strip().splitlines()


def _in(mode: Any, make: Callable[[], Any]) -> Any:
    with mode():
        return make()


def _with(x: Any, change: Callable[[Any], Any]) -> Any:
    change(x)
    return x


class Sub(torch.Tensor):
    """A subclass that does not define __torch_function__."""


def _leaf() -> Any:
    return torch.ones(2, 3, requires_grad=True)


TENSORS: dict[str, Callable[[], Any]] = {
    "plain": lambda: torch.ones(2, 3),
    "requires grad": _leaf,
    "result": lambda: _leaf() * 2,
    "parameter": lambda: nn.Parameter(torch.ones(2, 3)),
    "frozen": lambda: nn.Parameter(torch.ones(2, 3), requires_grad=False),
    "view": lambda: torch.ones(6).view(2, 3),
    "view at an offset": lambda: torch.ones(12)[6:].view(2, 3),
    "view of a leaf": lambda: torch.ones(6, requires_grad=True).view(2, 3),
    "transposed": lambda: torch.ones(3, 2).t(),
    "expanded": lambda: torch.ones(1, 3).expand(2, 3),
    "columns": lambda: torch.ones(2, 3).t().contiguous().t(),
    "gradient": lambda: _with(_leaf(), lambda x: setattr(x, "grad", torch.ones(2, 3))),
    "attribute": lambda: _with(torch.ones(2, 3), lambda x: setattr(x, "note", 3)),
    "hook": lambda: _with(_leaf(), lambda x: x.register_hook(lambda g: g)),
    "inference": lambda: _in(torch.inference_mode, lambda: torch.ones(2, 3)),
    "inference view": lambda: _in(torch.inference_mode, lambda: torch.ones(6).view(2, 3)),
    "written": lambda: torch.ones(2, 3).add_(1),
    "result without history": lambda: _in(torch.no_grad, lambda: _leaf() * 2),
    "view without history": lambda: _in(torch.no_grad, lambda: _leaf().view(2, 3)),
    "retains grad": lambda: _with(_leaf() * 2, lambda x: x.retain_grad()),
    "double": lambda: torch.ones(2, 3, dtype=torch.float64),
    "integers": lambda: torch.ones(2, 3, dtype=torch.int64),
    "complex": lambda: torch.ones(2, 3, dtype=torch.complex64),
    "conjugate": lambda: torch.ones(2, 3, dtype=torch.complex64).conj(),
    "negative": lambda: torch.ones(2, 3, dtype=torch.complex64).conj().imag,
    "meta": lambda: torch.ones(2, 3, device="meta"),
    "detached": lambda: (_leaf() * 2).detach(),
    "buffer": lambda: nn.Buffer(torch.ones(2, 3)),
    "numpy": lambda: torch.from_numpy(numpy.ones((2, 3), "f")),
    "shared": lambda: torch.ones(2, 3).share_memory_(),
    "subclass": lambda: torch.ones(2, 3).as_subclass(Sub),
    "more rows": lambda: torch.ones(4, 3),
    "one element": lambda: torch.ones(1, 1),
}
QUERIES_OF_TENSORS = """
x.is_inference()
torch.is_inference(x)
x.requires_grad
x.is_leaf
x.grad_fn is None
x.grad is None
x._version
x.is_contiguous()
x.is_pinned()
x.is_shared()
x.storage_offset()
x.stride()
x.shape
x.names
x.retains_grad
x.is_conj()
x.is_neg()
x.element_size()
x.nbytes
x.is_sparse
x.has_names()
x.get_device()
x._backward_hooks is None
x.output_nr
x._is_view()
x._base is None
hasattr(x,'note')
getattr(x,'note',None)
len(x.__dict__)
isinstance(x,nn.Parameter)
isinstance(x,nn.Buffer)
type(x).__name__
torch.is_complex(x)
torch.is_floating_point(x)
torch.is_nonzero(x) if x.numel()==1 else 0
torch.is_conj(x)
torch.is_neg(x)
torch.is_signed(x)
x.is_signed()
x.is_meta
x.device
x.layout
x.numel()
x.dim()
x.ndim
x.is_set_to(x)
x.is_same_size(torch.ones(2,3))
x.untyped_storage().nbytes()
x.untyped_storage().size()
x.storage().size()
x.is_coalesced() if x.is_sparse else 0
x.data.requires_grad
x.detach().is_inference()
x.clone().is_inference()
x.view(-1).is_inference()
x.T.is_contiguous()
x.is_contiguous(memory_format=torch.contiguous_format)
x.type()
x.dtype.is_complex
x.itemsize
torch.typename(x)
x.grad_fn.__class__.__name__
x.grad_fn.name() if x.grad_fn is not None else 0
(x.grad_fn.next_functions if x.grad_fn is not None else ()).__len__()
x.is_quantized
x.dense_dim() if x.is_sparse else 0
str(x.grad)
x.is_cpu
x.is_cuda
(x*2).is_leaf
(x*2).requires_grad
(x*2)._version
(x+0).stride()
x.view(-1)._is_view()
x.view(-1)._base is x
x.expand_as(x)._base is None
x.contiguous() is x
x.to(torch.float32) is x
x.float() is x
x.cpu() is x
x.reshape(2,3) is x
x.requires_grad_ is None
x.detach()._version
x.dim_order()
x.__class__ is torch.Tensor
callable(x)
id(x)==id(x)
x in [x] if x.numel()==1 else 0
x.real is x
x.resolve_conj() is x
x.resolve_neg() is x
x.is_distributed()
x.data_ptr()==x.data_ptr()
x.data_ptr()%64==0 if not x.is_meta else 0
torch.overrides.is_tensor_like(x)
len(x)
x.untyped_storage().data_ptr()==x.data_ptr()
torch.result_type(x,1.5)
torch.can_cast(x.dtype,torch.int32)
x.names is None
x._backward_hooks is not None and len(x._backward_hooks)
x.is_nested
torch.numel(x)
x.new_ones(1).requires_grad
x.sum().requires_grad
torch.is_tensor(x)
torch.is_storage(x)
x._grad is None
x._grad_fn is None
""".strip().splitlines()


def _order(names: dict[str, Any]) -> list[str]:
    return [*names, *reversed(names)]


def _compiled(query: str) -> tuple[Any, Any]:
    namespace = {"torch": torch, "nn": nn, "numpy": numpy, "os": os}
    exec(f"def f(x, p):\n    answer = {query}\n    return answer, x + 1", namespace)
    return namespace["f"], torch.compile(namespace["f"], backend="eager")  # type: ignore[type-var]


def _answer(fn: Any, x: Any, p: Any) -> tuple[str, ...]:
    try:
        answer = fn(x, p)[0]
    except Exception as error:
        return type(error).__name__, str(error)
    return type(answer).__name__, str(answer)


@pytest.fixture(autouse=True)
def _many_variants() -> Iterator[None]:
    with torch._dynamo.config.patch(recompile_limit=200), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("query", QUERIES_OF_MODES)
def test_modes_of_the_process(query: str) -> None:
    plain, compiled = _compiled(query)
    for mode in _order(MODES):
        x, p = torch.ones(2, 3), nn.Parameter(torch.ones(2, 3))
        with MODES[mode]():
            assert _answer(compiled, x, p) == _answer(plain, x, p), mode


@pytest.mark.parametrize("query", QUERIES_OF_TENSORS)
def test_kinds_of_tensors(query: str) -> None:
    plain, compiled = _compiled(query)
    for kind in _order(TENSORS):
        x = TENSORS[kind]()
        assert _answer(compiled, x, x) == _answer(plain, x, x), kind


def _states(values: tuple[Any, ...]) -> list[Any]:
    return [(v.is_inference(), v.requires_grad) if isinstance(v, torch.Tensor) else v for v in values]


def _block(x: Any) -> Any:
    with torch.inference_mode():
        y, view, on = x * 2, x.view(3, 1), torch.is_inference_mode_enabled()
    return y, view, y.reshape(3, 1), x * 3, on, y.is_inference(), torch.is_inference_mode_enabled()


def _block_with_a_break(x: Any) -> Any:
    with torch.inference_mode():
        y = x * 2
        torch._dynamo.graph_break()
        z = y * 2
    return y, z, z.is_inference(), z.clone()


def _switched_off(x: Any) -> Any:
    with torch.inference_mode(False):
        y = x * 2
    return y, x + 1


def _left_by_an_exception(x: Any) -> Any:
    try:
        with torch.inference_mode():
            y = x * 2
            raise ValueError
    except ValueError:
        return y, torch.is_inference_mode_enabled()


def _saved_for_backward(x: Any) -> Any:
    with torch.inference_mode():
        y = x * 2
    return (y * torch.ones(3, requires_grad=True),)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [_block, _block_with_a_break, _switched_off, _left_by_an_exception, _saved_for_backward])
def test_inference_mode_within(fn: Any, backend: str) -> None:
    compiled = torch.compile(fn, backend=backend)

    def observed(call: Any, x: Any) -> Any:
        try:
            return _states(call(x))
        except RuntimeError as error:
            return str(error)

    for mode in (contextlib.nullcontext, torch.inference_mode, torch.no_grad, contextlib.nullcontext):
        for requires_grad in (False, True):
            with mode():
                x = torch.ones(3, requires_grad=requires_grad)
                assert observed(compiled, x) == observed(fn, x)
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
