"""`torch.ops.aten`, `torch.futures` and the imports of distributed programs: names of torch that libraries use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from eager.distributed._composable.fsdp import FSDPModule
from eager.distributed._tensor.experimental import implicit_replication

import eager
from eager import Tensor
from eager._ops import OpOverload, OpOverloadPacket
from eager._tensor_str import PRINT_OPTS, _tensor_str
from eager.distributed import rpc
from eager.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from eager.distributed.tensor import DTensor
from eager.distributions.transforms import _clipped_sigmoid
from eager.futures import Future, collect_all, wait_all
from eager.nn.parallel.distributed import DistributedDataParallel
from eager.nn.parallel.scatter_gather import gather, scatter
from eager.serialization import MAP_LOCATION
from eager.utils.data.dataloader import DataLoader, _BaseDataLoaderIter, _collate_fn_t, _MultiProcessingDataLoaderIter

torch: Any = eager
aten: Any = torch.ops.aten


def test_overloads_are_one_object_each_and_are_called_by_position() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert aten.add.Tensor is aten.add.Tensor
    assert aten.add.Tensor is not aten.add.Scalar
    assert aten.add.Tensor.overloadpacket is aten.add
    assert (str(aten.add), str(aten.add.Tensor), aten.add.Tensor.name()) == ("aten.add", "aten.add.Tensor", "aten::add.Tensor")
    assert isinstance(aten.add, OpOverloadPacket)
    assert isinstance(aten.add.Tensor, OpOverload)
    assert aten.add.Tensor(x, x, alpha=2).equal(x * 3)
    assert aten.slice.Tensor(x, 1, 1, 3).equal(x[:, 1:3])
    assert aten.index.Tensor(x, [None, torch.tensor([1])]).equal(x[:, [1]])
    assert aten.index_put.default(x, [torch.tensor([0])], torch.zeros(4))[0].sum() == 0
    assert x[0].sum() == 6
    assert aten.sym_size.int(x, -1) == 4
    assert aten._softmax.default(x, 1, False).equal(x.softmax(1))
    assert aten._to_copy.default(x, dtype=torch.int64).dtype is torch.int64
    assert aten.alias.default(x).data_ptr() == x.data_ptr()
    assert aten._to_copy.default(x).data_ptr() != x.data_ptr()
    assert aten.view.default(x, [4, 3]).shape == (4, 3)
    assert aten.add_.Tensor(x, 1) is x
    assert aten.native_layer_norm.default(x, [4], None, None, 1e-5)[0].shape == (3, 4)


def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="object has no attribute 'nosuch'"):
        _ = aten.nosuch
    with pytest.raises(AttributeError, match="has no overload name 'nosuch'"):
        _ = aten.add.nosuch


def test_overloads_are_captured_without_a_graph_break() -> None:
    def f(x: Tensor) -> Tensor:
        return aten.mul.Tensor(aten.slice.Tensor(x, 0, 1, 3), aten.scalar_tensor.default(2.0)).sum()

    x = torch.randn(4, 3, requires_grad=True)
    y = torch.compile(f, fullgraph=True)(x)
    y.backward()
    assert torch.allclose(y, f(x))
    assert x.grad is not None
    assert x.grad[0].sum() == 0
    assert x.grad[1].sum() == 6


def test_futures_give_values_to_waiting_threads() -> None:
    first: Future[int] = Future()
    second = first.then(lambda done: done.wait() + 1)
    called: list[bool] = []
    first.add_done_callback(lambda done: called.append(done.done()))
    threading.Timer(0.01, first.set_result, (3,)).start()
    assert wait_all([first, second]) == [3, 4]
    assert second.value() == 4
    assert called == [True]
    assert collect_all([]).wait() == []
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(4)


def test_futures_raise_the_error_that_was_set() -> None:
    assert torch.Future is Future
    future: Future[int] = Future()
    after = future.then(lambda done: done.wait())
    with pytest.raises(RuntimeError):
        future.value()
    with pytest.raises(AssertionError, match="not an Exception"):
        future.set_exception(3)  # type: ignore[arg-type]
    future.set_exception(ValueError("no"))
    for wait in (future.wait, future.value, after.wait):
        with pytest.raises(ValueError, match="no"):
            wait()


@pytest.mark.parametrize("make", [rpc.init_rpc, rpc.RRef, DTensor, FSDPModule, fully_shard, implicit_replication])
def test_functions_for_several_processes_raise(make: Callable[[], Any]) -> None:
    assert not isinstance(torch.ones(1), DTensor)
    assert MixedPrecisionPolicy().param_dtype is None
    with pytest.raises(NotImplementedError, match="one process"):
        make()
    with pytest.raises(ValueError, match="process group"):
        DistributedDataParallel(torch.nn.Linear(1, 1))


def test_a_subclass_can_disable_torch_function() -> None:
    class Plain(Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Plain)
    assert type(x) is Plain
    assert type(x + 1) is Tensor


def test_names_for_annotations_and_transforms() -> None:
    assert MAP_LOCATION is not None
    assert PRINT_OPTS.threshold == 1000
    assert _tensor_str(torch.ones(2), indent=0) == "[1., 1.]"
    assert not rpc.is_available()
    batches = iter(DataLoader([1, 2, 3]))  # type: ignore[arg-type]
    assert isinstance(batches, _BaseDataLoaderIter)
    assert not isinstance(batches, _MultiProcessingDataLoaderIter)
    assert 0 < float(_clipped_sigmoid(torch.tensor(-1e4))) < float(_clipped_sigmoid(torch.tensor(1e4))) < 1
    assert _collate_fn_t is not None


def test_parts_for_devices_and_their_results() -> None:
    x = torch.arange(5.0)
    halves = scatter((x, {"k": x}, 3), ["cpu", "cpu"])
    assert [h[0].tolist() for h in halves] == [[0.0, 1.0, 2.0], [3.0, 4.0]]
    assert [h[2] for h in halves] == [3, 3]
    assert gather([h[1] for h in halves], "cpu")["k"].equal(x)


@pytest.mark.parametrize("name", ["cholesky_ex", "eigh", "qr", "svd", "slogdet", "lu_factor_ex", "pinv", "svdvals", "eigvalsh", "cond"])
def test_linear_algebra_functions_accept_out(name: str) -> None:
    fn = getattr(torch.linalg, name)
    a = torch.eye(3) * 2
    want = fn(a, out=None)
    single = isinstance(want, Tensor)
    out = torch.empty_like(want) if single else tuple(torch.empty_like(t) for t in want)
    got = fn(a, out=out)
    for w, g, o in zip((want,) if single else want, (got,) if single else got, (out,) if single else out, strict=True):
        assert g is o
        assert g.equal(w)
