"""Queries of portable code about devices, processes and overriding classes, and their results on this machine."""

from __future__ import annotations

import pytest

import eager as torch
from eager import distributed, overrides, random
from eager.nn.parallel import DistributedDataParallel

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")


@without_gpu
def test_cuda_can_be_queried_and_seeded_without_a_gpu() -> None:
    c = torch.cuda
    assert not c.is_available() and c.device_count() == 0 and not c.is_initialized() and not c.is_bf16_supported()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for call in (lambda: c.manual_seed(1), c.seed, c.empty_cache, c.reset_peak_memory_stats):
        call()
    c.manual_seed_all(1)
    assert torch.equal(before, torch.get_rng_state())  # the CPU's generator is another
    assert (c.memory_allocated(), c.max_memory_allocated(), c.memory_reserved(), c.max_memory_reserved()) == (0, 0, 0, 0)
    assert set(c.memory_stats().values()) == {0} and "allocated" in c.memory_summary()
    assert c.get_rng_state_all() == [] and c.get_arch_list() == [] and not c.is_current_stream_capturing()
    assert issubclass(torch.OutOfMemoryError, RuntimeError) and c.OutOfMemoryError is torch.OutOfMemoryError


@without_gpu
@pytest.mark.parametrize("name", ["Stream", "Event", "current_stream", "default_stream", "get_device_properties", "mem_get_info",
                                  "current_device", "get_rng_state", "init", "synchronize"])  # fmt: skip
def test_functions_that_need_a_gpu_report_its_absence(name: str) -> None:
    with pytest.raises(RuntimeError, match="CUDA is not available: "):
        getattr(torch.cuda, name)()


def test_a_seed_reaches_cuda_generators_that_are_made_later() -> None:
    kept, seed = dict(random._cuda_generators), random._cuda_seed
    try:
        random._cuda_generators.clear()
        torch.manual_seed(77)
        assert random.cuda_generator(3).initial_seed() == 77
        torch.cuda.manual_seed_all(78)
        assert random.cuda_generator(3).initial_seed() == 78 == random.cuda_generator(4).initial_seed()
    finally:
        random._cuda_generators.clear()
        random._cuda_generators.update(kept)
        random._cuda_seed = seed


def test_there_is_one_process() -> None:
    assert not distributed.is_available() and not distributed.is_initialized() and not distributed.is_nccl_available()
    for call in (distributed.get_rank, distributed.get_world_size, distributed.barrier, lambda: distributed.all_reduce(torch.ones(1)),
                 lambda: DistributedDataParallel(torch.nn.Linear(1, 1))):  # fmt: skip
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(NotImplementedError, match="one process"):
        distributed.init_process_group("gloo", world_size=2, rank=0)
    assert distributed.ReduceOp.SUM is not distributed.ReduceOp.MAX


def test_queries_report_that_other_devices_are_absent() -> None:
    assert torch.accelerator.is_available() == torch.cuda.is_available()
    assert torch.accelerator.device_count() == torch.cuda.device_count() and not torch.xpu.is_available()
    assert (torch.accelerator.current_accelerator() is None) == (not torch.cuda.is_available())
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1 and torch.cpu.synchronize() is None


class Box:
    """A class with `__torch_function__` that is not a tensor."""

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return ("box", func.__name__, types, args, kwargs)


class Refuses(Box):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return NotImplemented


def test_the_protocol_of_overriding_classes() -> None:
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def twice(a, b=None):  # type: ignore[no-untyped-def]
        return a * 2

    t, box, refuses = torch.ones(2), Box(1.0), Refuses(2.0)
    assert torch.equal(twice(t), 2 * t)
    assert twice(box) == ("box", "twice", (Box,), (box,), {})
    assert twice(t, b=box)[2] == (Box,)
    assert twice(box, refuses)[2] == (Refuses, Box)  # the subclass comes first
    with pytest.raises(TypeError, match=r"no implementation found for .*twice"):
        twice(refuses)
    assert overrides.is_tensor_like(t) and overrides.is_tensor_like(box) and not overrides.is_tensor_like(3)
    assert not overrides.has_torch_function((t, torch.nn.Parameter(t), 3)) and overrides.has_torch_function_unary(box)
    assert overrides.has_torch_function_variadic(t, box)
    assert overrides.is_tensor_method_or_property(torch.Tensor.detach) and not overrides.is_tensor_method_or_property(len)


def test_checks_raise_their_messages() -> None:
    torch._check(True)
    for call, kind in ((torch._check, RuntimeError), (torch._check_value, ValueError), (torch._check_index, IndexError),
                       (torch._check_type, TypeError), (torch._check_not_implemented, NotImplementedError)):  # fmt: skip
        with pytest.raises(kind, match="3 is too much"):
            call(False, lambda: "3 is too much")
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(torch.tensor(True))
    with pytest.raises(LookupError, match="by name"):
        torch._check_with(LookupError, False, lambda: "by name")
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="not all"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "not all")
    with pytest.raises(ZeroDivisionError):
        torch._check_tensor_all_with(ZeroDivisionError, torch.tensor([False]))
    with pytest.raises(TypeError, match=r"torch\.bool, but got torch\.int64"):
        torch._check_tensor_all(torch.tensor([1]))
    torch._check_is_size(3, max=3)
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="not zero please"):
        torch._assert_async(torch.tensor(0), "not zero please")
    assert not isinstance(3, torch.SymInt) and not isinstance(True, torch.SymBool) and not isinstance(1.0, torch.SymFloat)
