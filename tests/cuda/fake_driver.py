"""Graphs of launches against a driver that runs nothing (fake_driver.c), in a separate process: `python -m tests.cuda.fake_driver NAME`.

The driver is chosen once in a process. Each scenario prints nothing, or raises.
"""
from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import eager as torch
from eager import _native
from eager.cuda import backend as cuda
from inductor._native import CompiledGraph, CudaModule, use_cuda_driver
from inductor.artifact.format import ArtifactPlan
from inductor.base.target import SM_90
from inductor.runtime import loader

LAUNCH, COPY, UPLOAD = 2, 3, 4  # enum step_kind
SIZE, CHECKS = -1, -2  # buffers of an argument
FLOAT, INT64 = torch.float32.code, torch.int64.code


class Launch(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("grid", ctypes.c_uint), ("threads", ctypes.c_uint),
                ("shared_bytes", ctypes.c_uint), ("values", ctypes.c_int64 * 3)]  # fmt: skip


class Driver:
    """The fake driver's counters."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="framejit-fake-driver-")  # removed at the end of the process
        path = f"{self.folder.name}/libcuda.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", path, str(Path(__file__).with_suffix(".c"))], check=True)
        use_cuda_driver(path)
        self.library = ctypes.CDLL(path)
        self.library.fake_launch.restype = ctypes.POINTER(Launch)

    def count(self, what: str) -> int:
        return int(getattr(self.library, f"fake_{what}")())

    def launch(self, number: int) -> Launch:
        return self.library.fake_launch(number).contents


def storage(nbytes: int, never_freed: list[Any] | None = None) -> Any:
    """Memory of the host that claims to be of the device. never_freed: holds the memory, so that no address comes a second time."""
    a = np.zeros(nbytes + 64, np.uint8)
    if never_freed is not None:
        never_freed.append(a)
    start = -a.ctypes.data % 64
    return _native.storage_from_memory(a.ctypes.data + start, nbytes, a, 1, 0)


def tensor(*shape: int, at: int = 0) -> torch.Tensor:
    """A CUDA tensor over such memory, `at` elements after its start."""
    n = int(np.prod(shape))
    t = _native.new_tensor(None, storage(4 * (n + at)), FLOAT, (n + at,), (1,))
    return t.as_strided(shape, torch.empty(shape).stride(), at)


def layout(*shape: Any) -> tuple[Any, ...]:
    return FLOAT, tuple(shape), tuple(int(np.prod(shape[k + 1 :])) for k in range(len(shape))), 0


def graph(steps: Any, inputs: Any, **rest: Any) -> CompiledGraph:
    """A graph with one output of 64 bytes."""
    allocations = rest.pop("allocations", (64,))
    checks_at, recording = rest.pop("checks_at", 0), int(rest.get("keep", False))
    given: dict[str, Any] = {
        "name": "g", "library": None, "inputs": inputs, "allocations": allocations, "constants": (), "packs": (), "steps": steps,
        "outputs": ((0, 0, 0, layout(16)),), "written": (), "arena_bytes": 0, "single": True, "keep": False, "checks": (),
        "symbols": (), "n_sizes": 0, "derive": 0, "device": (0, storage, lambda: 5, checks_at, None, recording),
    }  # fmt: skip
    return CompiledGraph(**given | rest)


def launch(function: int, *arguments: tuple[int, Any], grid: Any = 3, waits: bool = False) -> tuple[int, Any]:
    return LAUNCH, (function, grid, 128, 64 << 10, arguments, waits)


def kernel(image: bytes = b"code", name: str = "k") -> tuple[CudaModule, int]:
    module = CudaModule(image)
    return module, module.function(name, 64 << 10)


def code_for_another_device_leaves_the_current_device(d: Driver) -> None:
    def current() -> Any:
        found = ctypes.c_void_p()
        d.library.cuCtxGetCurrent(ctypes.byref(found))
        return found.value

    for before in (100, None):  # the context of device 0, and a thread without a context
        d.library.cuCtxSetCurrent(ctypes.c_void_p(before))
        module = CudaModule(b"code", 1)
        assert d.count("last_context") == 101 and current() == before
        module.function("k", 64 << 10)
        assert d.count("last_context") == 101 and current() == before
        d.library.fake_forget_context()
        del module
        assert d.count("last_context") == 101 and current() == before


def arguments_are_packed_in_order(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16)
    out = graph((launch(f, (0, 0), (1, 8), (SIZE, 42)),), (layout(16),))(x)
    made = d.launch(0)
    assert (made.function, made.grid, made.threads, made.shared_bytes, made.stream) == (f, 3, 128, 64 << 10, 5)
    assert list(made.values) == [x.data_ptr(), out.data_ptr() + 8, 42]
    assert out.device.type == "cuda" and out.shape == (16,)


def a_kernel_that_waits_is_launched_early(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16)
    out = graph((launch(f, (0, 0), (1, 0)), launch(f, (1, 0), (1, 8), (SIZE, 42), waits=True)), (layout(16),))(x)
    made = d.launch(1)
    assert d.count("launches") == 2 and d.count("early_launches") == 1
    assert (made.function, made.grid, made.threads, made.shared_bytes, made.stream) == (f, 3, 128, 64 << 10, 5)
    assert list(made.values) == [out.data_ptr(), out.data_ptr() + 8, 42]


def an_empty_grid_is_not_launched(d: Driver) -> None:
    _, f = kernel()
    graph((launch(f, (0, 0), grid=0),), (layout(16),))(tensor(16))
    assert d.count("launches") == 0


def sizes_come_from_a_program(d: Driver) -> None:
    _, f = kernel()
    spec = (FLOAT, ((0,), 4), (4, 1), 0)
    program = (1, 0, 0, 4, 3, 0, 8, 0, 1, 1, 0, 3, 4, 0, 8, 0)  # n * 4, then that // 3
    g = graph((launch(f, (SIZE, (1,)), (SIZE, (2,)), grid=(0,)),), (spec,), symbols=((0, 0, 0, 0, 1 << 40),), n_sizes=3, derive=program)
    g(tensor(5, 4))
    assert list(d.launch(0).values[:2]) == [20, 6] and d.launch(0).grid == 5
    with pytest.raises(ValueError, match="program"):
        graph((), (spec,), symbols=((0, 0, 0, 0, 9),), n_sizes=2, derive=(1, 1, 8, 0))


def an_input_at_an_odd_address_is_copied_and_written_back(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16, at=1)
    graph((launch(f, (0, 0)),), (layout(16),), written=(0,))(x)
    assert d.launch(0).values[0] != x.data_ptr() and d.launch(0).values[0] % 16 == 0 and d.count("copies") == 2


def a_constant_at_an_odd_address_is_copied(d: Driver) -> None:
    _, f = kernel()
    odd, even = tensor(16, at=3), tensor(16)
    g = graph((launch(f, (0, 0), (2, 0), (3, 0)),), (layout(16),), constants=(odd, even))
    for _ in range(2):
        g(tensor(16))
    assert d.count("copies") == 2 and d.launch(1).values[1] % 16 == 0
    assert d.launch(1).values[1] != odd.data_ptr() and d.launch(1).values[2] == even.data_ptr()


def the_error_of_a_check_names_the_size_of_the_call(d: Driver) -> None:
    _, f = kernel()
    memory = np.zeros(2, np.int64)
    spec = (FLOAT, ((0,), 4), (4, 1), 0)
    g = graph((launch(f, (0, 0), (CHECKS, 0)),), (spec,), symbols=((0, 0, 0, 0, 1 << 40),), n_sizes=1,
              checks=((IndexError, "index {} of {size}", (0,)),), checks_at=memory.ctypes.data)  # fmt: skip
    g(tensor(6, 4))
    memory[:] = 1, 12
    with pytest.raises(IndexError, match="index 12 of 6"):
        g(tensor(5, 4))


def steps_are_recorded_when_their_addresses_come_again(d: Driver) -> None:
    _, f = kernel()
    weight, x = tensor(16), tensor(16)
    g = graph((launch(f, (0, 0), (1, 0)), (COPY, ((2, 0), (0, 0), 64))), (layout(16), layout(16)), keep=True)
    for call in range(5):
        out = g(weight, x)
        del out
        assert d.count("launches") == (1 if call == 0 else 2) and d.count("graph_launches") == call
    assert d.launch(1).stream == 77 and d.count("recordings") == 1


def an_input_that_moves_is_copied_for_the_recording(d: Driver) -> None:
    _, f = kernel()
    weight, alive = tensor(16), []
    g = graph((launch(f, (0, 0), (1, 0)),), (layout(16), layout(16)), keep=True)
    for _ in range(6):
        alive.append(tensor(16))
        g(weight, alive[-1])
    assert d.count("graph_launches") == 4 and d.count("recordings") == 1 and d.count("copies") == 5


def an_output_in_use_is_never_overwritten(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16)
    g = graph((launch(f, (0, 0), (1, 0)),), (layout(16),), keep=True)
    outs = [g(x) for _ in range(20)]
    assert len({o.data_ptr() for o in outs}) == 20


def each_call_uploads_its_numbers_beside_a_recording(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16)
    inputs = (layout(16), (FLOAT, (), (), -1), (INT64, (), (), -1))
    arena = 4
    steps = ((UPLOAD, ((arena, 64), (1, 2))), launch(f, (0, 0), (arena, 64), (arena, 80)))
    g = graph(steps, inputs, arena_bytes=96, keep=True)
    for call in range(5):
        out = g(x, torch.tensor(call + 0.5), torch.tensor(-call))
        del out
        _, first, second = d.launch(0).values if call == 0 else d.launch(1).values
        found = ctypes.c_float.from_address(first).value, ctypes.c_int64.from_address(second).value
        assert found == (call + 0.5, -call) and d.count("uploads") == call + 1
    assert d.count("launches") == 2 and d.count("graph_launches") == 4 and d.count("recordings") == 1 and d.count("copies") == 0


def a_call_that_the_caller_records_gets_memory_and_numbers_of_its_own(d: Driver) -> None:
    class Owner:
        kept: ClassVar[list[Any]] = []

        def keep_captured(self, graph: CompiledGraph) -> None:
            self.kept.append(graph)

    _, f = kernel()
    held: list[Any] = []
    x, arena = tensor(16), 4
    inputs = (layout(16), (FLOAT, (), (), -1), (INT64, (), (), -1))
    steps = ((UPLOAD, ((arena, 64), (1, 2))), launch(f, (0, 0), (3, 0), (arena, 64)))
    g = graph(steps, inputs, arena_bytes=96, keep=True, device=(0, lambda n: storage(n, held), lambda: 5, 0, Owner(), 1))
    for _ in range(3):
        g(x, torch.tensor(1.5), torch.tensor(-1))
    before = d.launch(d.count("launches") - 1)
    used = {before.values[1], before.values[2]}
    d.library.fake_capture(1)
    for call in range(2):
        g(x, torch.tensor(call + 0.5), torch.tensor(-call))
        made = d.launch(d.count("launches") - 1)
        assert d.count("graph_launches") == 2 and made.stream == 5 and not used & {made.values[1], made.values[2]}
        found = ctypes.c_float.from_address(made.values[2]).value, ctypes.c_int64.from_address(made.values[2] + 16).value
        assert found == (call + 0.5, -call) and d.count("uploads") == 3 and d.count("words") == 3 * (call + 1)
        used |= {made.values[1], made.values[2]}
    assert Owner.kept == [g, g]
    d.library.fake_capture(0)
    g(x, torch.tensor(1.5), torch.tensor(-1))
    made = d.launch(d.count("launches") - 1)
    assert d.count("uploads") == 4 and not used & {made.values[1], made.values[2]}


def a_call_of_another_thread_on_another_stream_shares_no_memory(d: Driver) -> None:
    _, f = kernel()
    held, streams, is_interrupted = list[Any](), [5], [False]

    def allocate(nbytes: int) -> Any:
        if is_interrupted[0]:  # allocators release the interpreter's lock
            is_interrupted[0] = False
            streams.append(6)
            g(x)
            streams.pop()
        return storage(nbytes, held)

    x = tensor(16)
    g = graph((launch(f, (0, 0), (1, 0), (2, 0)),), (layout(16),), arena_bytes=96, keep=True,
              device=(0, allocate, lambda: streams[-1], 0, None, 0))  # fmt: skip
    out = g(x)
    is_interrupted[0] = True
    again = g(x)
    del out, again
    streams[0] = 6
    g(x)
    used: dict[int, set[int]] = {5: set(), 6: set()}
    for i in range(d.count("launches")):
        used[d.launch(i).stream] |= set(d.launch(i).values)
    assert d.count("launches") == 4 and used[5] & used[6] == {x.data_ptr()}


def only_numbers_on_the_cpu_are_uploaded(d: Driver) -> None:
    for wrong in (layout(16), (FLOAT, (2,), (1,), -1)):
        with pytest.raises(ValueError, match="an upload needs"):
            graph(((UPLOAD, ((2, 0), (0,))),), (wrong,), arena_bytes=64)


def errors_name_the_step(d: Driver) -> None:
    with pytest.raises(RuntimeError, match=r"CUDA error while loading machine code: .* \(CUDA_ERROR_TEST, status 200\)"):
        kernel(b"bad")
    with pytest.raises(RuntimeError, match="looking up a kernel"):
        kernel(name="?")
    _, f = kernel()
    g = graph((launch(f, (0, 0)),), (layout(16),))
    d.library.fake_fail_next(2)
    with pytest.raises(RuntimeError, match=r"launching a kernel.*CUDA_ERROR_OUT_OF_MEMORY"):
        g(tensor(16))
    g(tensor(16))  # the graph can still be called
    with pytest.raises(RuntimeError, match="device type"):
        g(torch.zeros(16))


def a_failed_check_is_raised_later(d: Driver) -> None:
    _, f = kernel()
    memory = np.zeros(4, np.int64)
    checks = ((IndexError, "first {}", 0), (IndexError, "index {} is out of bounds for dimension 0 with size {size}", 7))
    g = graph((launch(f, (0, 0), (CHECKS, 0)),), (layout(16),), checks=checks, checks_at=memory.ctypes.data)
    g(tensor(16))
    assert d.launch(0).values[1] == memory.ctypes.data
    memory[2:] = 1, 12
    with pytest.raises(IndexError, match="index 12 is out of bounds for dimension 0 with size 7"):
        g.raise_failed()
    g.raise_failed()
    g(tensor(16))


def a_failure_is_raised_once_though_its_kernel_runs_on(d: Driver) -> None:
    _, f = kernel()
    memory = np.zeros(2, np.int64)
    g = graph((launch(f, (0, 0), (CHECKS, 0)),), (layout(16),), checks=((IndexError, "index {}", 0),), checks_at=memory.ctypes.data)
    g(tensor(16))
    memory[0] = 1  # the position, and the failures of the other programs, follow
    d.library.fake_run_until_wait(ctypes.c_void_p(memory.ctypes.data))
    with pytest.raises(IndexError, match="index 12"):
        g(tensor(16))
    d.library.cuCtxSynchronize()
    g(tensor(16))


def a_launch_costs_less_than_a_microsecond(d: Driver) -> None:
    _, f = kernel()
    x = tensor(16)
    one, many = (graph(tuple(launch(f, *([(0, 0), (1, 0)] * 3)) for _ in range(n)), (layout(16),)) for n in (1, 51))

    def best(g: CompiledGraph) -> float:
        times = []
        for _ in range(50):
            start = time.perf_counter()
            for _ in range(20):
                g(x)
            times.append((time.perf_counter() - start) / 20)
        return min(times)

    each_s = (best(many) - best(one)) / 50
    assert each_s < 1e-6, f"{each_s * 1e9:.0f} ns"


def a_timing_launches_a_candidate_between_events(d: Driver) -> None:
    names = ("inductor.driver.gpu_timing", "inductor.triton.kernel", "inductor.triton.compile")
    timing, kernel_module, compiler = map(importlib.import_module, names)  # here: the other scenarios need no compiler
    cuda.backend().is_emulated = False  # memory, streams and events of the emulated device, but launches by the driver
    timer = timing.EventTimer(torch.device("cuda"), SM_90._replace(caches=(1 << 10,)))
    x, y = torch.bfloat16, torch.int64
    kernels = tuple(kernel_module.TritonKernel(f"k{i}", "", ("p0", "p1"), "", ("x", "y"), ("y",), (), (x, y), 7 + i, 2) for i in range(2))
    cubins = tuple(compiler.Cubin(k.name, 90, b"code of " + k.name.encode(), "", 64 << 10, 2) for k in kernels)
    assert 0 < timer.seconds(timing.Variant(kernels, cubins, {"x": (x, 3 << 20), "y": (y, 80)})) < 0.1
    runs, last = d.count("launches"), d.launch(d.count("launches") - 1)
    assert runs % 2 == 0 and runs >= 2 * (1 + 3 + 5)
    assert (last.grid, last.threads, last.shared_bytes) == (8, 64, 64 << 10)
    of_x, of_y = (np.ctypeslib.as_array((ctypes.c_uint16 * n).from_address(last.values[k])) for k, n in enumerate((3 << 19, 40)))
    numbers = of_x.view(x.numpy).astype(np.float32)
    assert np.isfinite(numbers).all() and 0.9 < numbers.std() < 1.1 and not of_y.any()  # positions are in range
    d.library.fake_fail_next(2)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        timer.seconds(timing.Variant(kernels, cubins, {"x": (x, 64), "y": (y, 80)}))
    timer.release()


def a_plan_from_disk_needs_no_compiler(d: Driver) -> None:
    folder = Path(d.folder.name)
    subprocess.run([sys.executable, "-m", "tests.cuda.fake_driver", "--compile", str(folder)], check=True)
    cuda.backend().is_emulated = False  # memory of the emulated device, kernels of the fake driver
    plan = ArtifactPlan.from_json((folder / "plan.json").read_text())
    x = torch.randn(8, 40).cuda()
    out = loader.load(plan, folder / "kernels.cubins", {}, name="g", single=True)(x)
    assert out.shape == (8, 40) and d.count("launches") == 1
    assert list(d.launch(0).values[:2]) == [x.data_ptr(), out.data_ptr()]
    loaded = [name for name in ("triton", "inductor.driver.cuda_artifact", "inductor.loops.tree") if name in sys.modules]
    assert not loaded, loaded


def compile_to_disk(folder: Path) -> None:
    """Write a plan and its machine code to a folder."""
    compiler = importlib.import_module("inductor.driver.cuda_artifact")
    graphs, trace = importlib.import_module("tests.triton_kernels.graphs"), importlib.import_module("fxir.trace.trace").trace
    graph = trace(lambda x: (torch.softmax(x, -1),), [graphs.on_cuda(torch.zeros(8, 40))])
    made = compiler.compile_for_cuda(graph, torch.device("cuda:0"), graphs.SM_90, is_emulated=False)
    (folder / "plan.json").write_text(made.compiled.plan.to_json())
    (folder / "kernels.cubins").write_bytes(made.code)


SCENARIOS = (
    code_for_another_device_leaves_the_current_device,
    arguments_are_packed_in_order, a_kernel_that_waits_is_launched_early, an_empty_grid_is_not_launched, sizes_come_from_a_program,
    an_input_at_an_odd_address_is_copied_and_written_back, a_constant_at_an_odd_address_is_copied,
    the_error_of_a_check_names_the_size_of_the_call, steps_are_recorded_when_their_addresses_come_again,
    an_input_that_moves_is_copied_for_the_recording, each_call_uploads_its_numbers_beside_a_recording,
    a_call_that_the_caller_records_gets_memory_and_numbers_of_its_own, a_call_of_another_thread_on_another_stream_shares_no_memory,
    only_numbers_on_the_cpu_are_uploaded, an_output_in_use_is_never_overwritten, errors_name_the_step,
    a_failed_check_is_raised_later, a_failure_is_raised_once_though_its_kernel_runs_on, a_launch_costs_less_than_a_microsecond,
)
WITH_TRITON = (a_plan_from_disk_needs_no_compiler, a_timing_launches_a_candidate_between_events)  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1] == "--compile":
        compile_to_disk(Path(sys.argv[2]))
    else:
        {s.__name__: s for s in (*SCENARIOS, *WITH_TRITON)}[sys.argv[1]](Driver())
