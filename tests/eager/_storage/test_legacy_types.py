"""Tensor types by name, storages, default types and devices, and the switches of the process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import eager as torch
from eager._storage import tensor_types
from eager.base import settings


@pytest.mark.parametrize("name", sorted(tensor_types.TENSOR_TYPES))
def test_a_tensor_type_makes_and_recognises_its_tensors(name: str) -> None:
    cls = getattr(torch, name)
    t = cls([0, 1, 1])
    assert type(t) is torch.Tensor and t.dtype is cls.dtype and t.tolist() == [0, 1, 1]
    assert isinstance(t, cls) and t.type() == f"torch.{name}"
    others = [other for other in tensor_types.TENSOR_TYPES.values() if other is not cls]
    assert not any(isinstance(t, other) for other in others)
    assert cls(2, 3).shape == (2, 3) and cls(torch.Size([4])).shape == (4,) and cls().shape == (0,)
    assert torch.zeros(2, dtype=torch.complex64).type(cls).dtype is cls.dtype if name == "ComplexFloat" else True
    assert torch.ones(2).type(cls).dtype is cls.dtype and torch.ones(2).type(f"torch.{name}").dtype is cls.dtype
    assert repr(cls) == f"<class 'torch.{name}'>"


def test_tensor_types_take_arrays_and_tensors_of_their_type() -> None:
    assert torch.FloatTensor(np.ones(2)).dtype is torch.float32
    t = torch.ones(2)
    assert torch.FloatTensor(t).data_ptr() == t.data_ptr()
    assert torch.LongTensor([1.5]).tolist() == [1]
    with pytest.raises(TypeError, match=r"torch\.LongTensor, got a torch\.FloatTensor"):
        torch.LongTensor(t)
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.FloatTensor(2.5)
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu"):
        torch.FloatTensor([1], device="meta")
    with pytest.raises(ValueError, match=r"invalid type: 'torch\.FooTensor'"):
        t.type("torch.FooTensor")


def test_cuda_types_say_why_they_are_not_available() -> None:
    if torch.cuda.is_available():
        assert torch.cuda.FloatTensor([1.0]).is_cuda
        return
    with pytest.raises(TypeError, match=r"type torch\.cuda\.FloatTensor not available: .+"):
        torch.cuda.FloatTensor(2)
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor)
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        torch.ones(2).type("torch.cuda.FloatTensor")


def test_storages_hold_numbers() -> None:
    s = torch.FloatStorage([1, 2, 3])
    assert s.tolist() == [1.0, 2.0, 3.0] == list(s) and len(s) == 3 and s.nbytes() == 12 and s.element_size() == 4
    s[1] = 5
    assert s[1] == 5.0 and torch.FloatTensor(s).tolist() == [1.0, 5.0, 3.0]
    assert torch.FloatTensor(s).data_ptr() == s.data_ptr() and s.clone().data_ptr() != s.data_ptr()
    assert isinstance(s, torch.FloatStorage) and not isinstance(s, torch.LongStorage) and isinstance(s, torch.TypedStorage)
    with pytest.raises(TypeError, match=r"expected a storage of torch\.int64"):
        torch.LongTensor(s)


def test_a_storage_from_a_buffer_copies_it() -> None:
    data = bytearray(b"abc")
    s = torch.ByteStorage.from_buffer(data)
    data[0] = 0
    assert torch.ByteTensor(s).tolist() == [97, 98, 99]
    numbers = np.array([1, -2], ">i4")
    assert torch.IntStorage.from_buffer(numbers.tobytes(), "big").tolist() == [1, -2]
    assert torch.IntStorage.from_buffer(numbers.tobytes(), "big", count=1, offset=4).tolist() == [-2]
    with pytest.raises(RuntimeError, match="byte_order"):
        torch.FloatStorage.from_buffer(b"abcd")
    with pytest.raises(ValueError, match="does not hold a whole number of elements"):
        torch.FloatStorage.from_buffer(b"abcde", "little")
    with pytest.raises(ValueError, match="invalid byte_order"):
        torch.FloatStorage.from_buffer(b"abcd", "middle")


def test_the_default_tensor_type_is_the_default_dtype() -> None:
    try:
        with pytest.warns(UserWarning, match="set_default_tensor_type.. is deprecated"):
            torch.set_default_tensor_type("torch.DoubleTensor")
        assert torch.get_default_dtype() is torch.float64 and torch.Tensor([1]).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type(torch.LongTensor)
    with pytest.raises(TypeError, match="invalid type object"):
        torch.set_default_tensor_type("torch.FooTensor")


def test_a_device_is_a_context_and_the_innermost_wins() -> None:
    with torch.device("meta"):
        made = [torch.zeros(2), torch.ones(2), torch.empty(2), torch.full((2,), 3), torch.arange(3), torch.linspace(0, 1, 3), torch.eye(2),
                torch.rand(2), torch.randn(2), torch.randint(3, (2,)), torch.tensor([1.0]), torch.nn.Linear(2, 3).weight,
                torch.nn.BatchNorm1d(2).running_mean]  # fmt: skip
        assert {t.device.type for t in made} == {"meta"}
        assert torch.zeros(2, device="cpu").device.type == "cpu" and torch.zeros_like(torch.zeros(2, device="cpu")).is_cpu
        with torch.device("cpu"):
            assert torch.zeros(2).is_cpu and torch.get_default_device() == torch.device("cpu")
        assert torch.zeros(2).is_meta
    assert torch.zeros(2).is_cpu

    @torch.device("meta")
    def build() -> torch.Tensor:
        return torch.ones(3)

    assert build().is_meta and torch.ones(1).is_cpu


def test_the_default_device_can_be_set_and_reset() -> None:
    try:
        torch.set_default_device("meta")
        assert torch.get_default_device() == torch.device("meta") and torch.ones(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).is_cpu
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch.set_default_device("abacus")


def test_the_default_device_is_guarded_by_compiled_code() -> None:
    @torch.compile(backend="eager")
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, torch.zeros(2)

    assert f(torch.ones(2))[1].is_cpu
    with torch.device("meta"):
        assert f(torch.ones(2, device="cpu"))[1].is_meta
    assert f(torch.ones(2))[1].is_cpu


def test_thread_counts_are_the_values_that_were_set() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1 == settings.current().cpu.threads
    finally:
        torch.set_num_threads(before)
    for wrong, text in ((0, "positive integer"), ("2", "expects an int, but got str")):
        with pytest.raises(RuntimeError, match=text):
            torch.set_num_threads(wrong)


def test_precision_and_tf32_are_one_switch() -> None:
    assert torch.get_float32_matmul_precision() == "highest" and not torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
        torch.set_float32_matmul_precision("highest")
        assert torch.backends.cuda.matmul.allow_tf32 is False
        with pytest.warns(UserWarning, match="is not one of"):
            torch.set_float32_matmul_precision("exact")
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_determinism_is_recorded() -> None:
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
        torch.set_deterministic_debug_mode("error")
        assert torch.get_deterministic_debug_mode() == 2
    finally:
        torch.use_deterministic_algorithms(False)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.set_deterministic_debug_mode("loud")


def test_backends_report_this_machine() -> None:
    b = torch.backends
    assert torch.cuda.is_available() or (b.cudnn.is_available() is False and b.cudnn.version() is None)
    for part in (b.mps, b.mkldnn, b.mkl, b.openmp, b.opt_einsum):
        assert part.is_available() is False
    assert b.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    before = b.cudnn.benchmark
    with b.cudnn.flags(enabled=True, benchmark=not before, deterministic=True):
        assert b.cudnn.benchmark is not before and b.cudnn.deterministic
    assert b.cudnn.benchmark is before and not b.cudnn.deterministic
    with pytest.raises(ValueError, match="opt_einsum is not available"):
        b.opt_einsum.enabled = True
    assert b.opt_einsum.enabled is False
    with pytest.raises(RuntimeError, match="unknown input value"):
        b.cuda.preferred_linalg_library("abacus")


def test_attention_switches_and_the_context_manager_are_one_state() -> None:
    b = torch.backends.cuda
    assert b.flash_sdp_enabled() and b.math_sdp_enabled()
    try:
        b.enable_flash_sdp(False)
        assert not b.flash_sdp_enabled() and b.math_sdp_enabled() and b.mem_efficient_sdp_enabled()
        with b.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
            assert b.flash_sdp_enabled() and not b.math_sdp_enabled()
        assert not b.flash_sdp_enabled()
    finally:
        b.enable_flash_sdp(True)


def test_torchscript_names() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    jit = torch.jit
    assert jit.script(f) is f and jit.ignore(f) is f and jit.ignore(drop=True)(f) is f and jit.unused(f) is f and jit.export(f) is f
    assert not jit.is_scripting() and not jit.is_tracing() and jit.annotate(int, 3) == 3
    for call in (lambda: jit.trace(f, torch.ones(1)), lambda: jit.load("x.pt"), lambda: jit.save(f, "x.pt")):
        with pytest.raises(NotImplementedError, match="there is no TorchScript"):
            call()
    assert jit.isinstance([1], list[int]) and not jit.isinstance(1, list[int])
