"""The surface of `torch.cuda` on the emulated device: memory, streams, copies, errors, graphs, training, serialization."""
from __future__ import annotations

import io
import weakref
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.cuda import memory as cuda_memory
from eager.cuda.backend import backend
from eager.optable import table
from inductor.artifact.format import ArtifactPlan
from inductor.runtime import cuda as runtime
from tests.eager.tape.test_gradients_and_history import LOSSES, copies_none

pytestmark = pytest.mark.usefixtures("on_emulated_device")


def test_the_device_is_there_and_says_that_it_is_emulated() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert backend().is_emulated
    assert "mulated" in torch.cuda.get_device_properties(0).name


# -- mixing devices ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", [
    lambda a, b: a + b, lambda a, b: a @ b, lambda a, b: torch.cat([a, b]), lambda a, b: torch.where(a > 0, a, b),
    lambda a, b: torch.nn.functional.linear(a, b),
])  # fmt: skip
def test_tensors_of_two_devices_are_refused(call: Any) -> None:
    with pytest.raises(RuntimeError, match="on the same device, but found at least two devices, cuda:0 and cpu!"):
        call(torch.ones(3, 3, device="cuda"), torch.ones(3, 3))


def test_a_cpu_tensor_without_dims_counts_as_a_number() -> None:
    x = torch.arange(4, device="cuda", dtype=torch.float32)
    for y in (x * torch.tensor(2.0), torch.tensor(2.0) * x, x + torch.tensor(3), torch.where(x > 1, x, torch.tensor(0.0))):
        assert y.device.type == "cuda"
    assert (x * torch.tensor(2.0)).tolist() == [0.0, 2.0, 4.0, 6.0]
    x.mul_(torch.tensor(3.0))
    assert x.tolist() == [0.0, 3.0, 6.0, 9.0]


def test_numpy_cannot_read_a_cuda_tensor() -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError):
        np.asarray(x._array)


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:1")


# -- moves ------------------------------------------------------------------------------------------------------------
def test_moves_keep_values_strides_and_gradients() -> None:
    x = torch.arange(12.0).reshape(3, 4).t().requires_grad_()
    y = x.cuda()
    assert y.stride() == x.stride()
    assert y.cpu().tolist() == x.tolist()
    (y * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.device.type == "cpu"
    assert x.to("cuda", torch.float16).dtype is torch.float16
    assert torch.ones(2, 6)[:, ::2].cuda().tolist() == [[1.0] * 3] * 2
    assert torch.ones(1).expand(3).cuda().tolist() == [1.0] * 3


def test_copy_writes_across_devices() -> None:
    on_cuda, on_cpu = torch.zeros(3, device="cuda"), torch.zeros(3)
    on_cuda.copy_(torch.arange(3.0))
    on_cpu.copy_(on_cuda * 2)
    assert on_cpu.tolist() == [0.0, 2.0, 4.0]


def test_state_dicts_cross_devices() -> None:
    m, n = torch.nn.Linear(3, 2).cuda(), torch.nn.Linear(3, 2)
    n.load_state_dict(m.state_dict())
    assert n.weight.device.type == "cpu"
    assert n.weight.tolist() == m.weight.tolist()
    file = io.BytesIO()
    torch.save(m.state_dict(), file)
    file.seek(0)
    assert torch.load(file)["weight"].device.type == "cuda"
    file.seek(0)
    assert torch.load(file, map_location="cpu")["weight"].device.type == "cpu"


# -- memory -----------------------------------------------------------------------------------------------------------
def test_a_new_tensor_does_not_walk_over_the_blocks_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's pool adds up the sizes of all blocks for these figures: 100 us in a model with a thousand tensors."""
    pool, walks = backend().xp.get_default_memory_pool(), list[str]()
    for name in ("used_bytes", "free_bytes"):
        monkeypatch.setattr(pool, name, lambda name=name: walks.append(name))
    kept = [torch.ones(2, 3, device="cuda") * 2 for _ in range(3)]
    assert not walks and torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() >= 512 * len(kept)


def test_an_op_of_operands_alike_infers_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result has the layout and dtype of the operands. To infer them costs three times the rest of the call."""
    x, y = torch.full((2, 3), 5.0, device="cuda"), torch.full((2, 3), 3.0, device="cuda")
    monkeypatch.setattr(table, "infer_pointwise", None)
    for found, wanted in ((x + y, 8.0), (x * 2.5, 12.5), (torch.addcmul(x, y, y), 14.0), (x.add_(y), 8.0)):
        assert found.tolist() == [[wanted] * 3] * 2 and found.device == x.device and found.dtype is x.dtype


def test_figures_of_memory() -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4 << 20
    reserved = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved - (4 << 20)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    assert "allocated" in torch.cuda.memory_summary()


def test_out_of_memory_gives_the_figures() -> None:
    pool = backend().xp.get_default_memory_pool()
    pool.set_limit(size=64 << 20)
    try:
        kept = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has"):
            torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
        assert kept.fill_(3).sum().item() == 3 * (8 << 20)  # the process continues
    finally:
        pool.set_limit(size=0)


def test_snapshot_lists_the_bytes_in_use() -> None:
    x = torch.ones(1000, device="cuda")
    found = cuda_memory.memory_snapshot()
    assert sum(s["allocated_size"] for s in found) == torch.cuda.memory_allocated()
    assert sum(s["total_size"] for s in found) == torch.cuda.memory_reserved()
    assert x.sum().item() == 1000


@pytest.mark.parametrize("loss", LOSSES)
def test_a_first_gradient_is_not_copied(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, b = (torch.randn(*shape, device="cuda") for shape in ((6, 8), (8, 8), (8,)))
    k = torch.randn(4, 3, 2, 2, device="cuda").to(memory_format=torch.channels_last)
    value = loss(x, *(t.requires_grad_() for t in (w, b, k)))
    monkeypatch.setattr(torch.Tensor, "clone", copies_none)
    value.backward()
    assert any(t.grad is not None for t in (w, b, k))


def test_an_array_over_a_gradient_is_never_written() -> None:
    w = torch.zeros(4, device="cuda", requires_grad=True)
    held: list[Any] = []
    y = w * 2
    y.register_hook(lambda g: held.append(g._array))
    (y * torch.ones(4, device="cuda")).sum().backward()
    (z := w * 1).register_hook(lambda g: held.append(g._array))
    z.backward(torch.ones(4, device="cuda"))
    assert [a.tolist() for a in held] == [[1.0] * 4] * 2 and w.grad.tolist() == [3.0] * 4


def test_a_stream_that_is_recorded_twice_keeps_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(backend(), "keep_until_reached", lambda stream, memory: kept.append(stream))
    x, s = torch.ones(4, device="cuda"), torch.cuda.Stream()
    for _ in range(3):
        x.record_stream(s)
    del x
    assert len(kept) == 1


def test_recorded_memory_is_waited_for_before_memory_is_exhausted() -> None:
    pool, s = backend().xp.get_default_memory_pool(), torch.cuda.Stream()
    torch.cuda.empty_cache()
    x = torch.ones(1 << 20, device="cuda")
    with torch.cuda.stream(s):
        total = x.sum()
    x.record_stream(s)
    del x
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        y = torch.zeros(1 << 20, device="cuda")
    finally:
        pool.set_limit(size=0)
    assert total.item() == 1 << 20 and y.sum().item() == 0


# -- streams ----------------------------------------------------------------------------------------------------------
def test_work_of_a_stream_runs_late_without_synchronisation() -> None:
    s = torch.cuda.Stream()
    x = torch.zeros(4, device="cuda")
    with torch.cuda.stream(s):
        x.fill_(7)
    assert x.tolist() == [0.0] * 4  # nothing ordered this read after the fill
    s.synchronize()
    assert x.tolist() == [7.0] * 4


def test_each_device_has_its_own_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    code = runtime.Code(ArtifactPlan((), (), device="cuda:0"), None, runtime.Recording.NEVER)
    asked: list[int] = []

    def current(device_id: int = -1) -> Any:
        asked.append(device_id)
        return backend().xp.cuda.Stream.null

    monkeypatch.setattr(backend().xp.cuda, "get_current_stream", current)
    assert code.device[2]() == 0 and torch.cuda.current_stream(0).cuda_stream == 0
    assert asked == [0, 0]


def test_events_order_streams() -> None:
    s = torch.cuda.Stream()
    x = torch.zeros(4, device="cuda")
    with torch.cuda.stream(s):
        x.add_(1)
        x.mul_(5)
    torch.cuda.current_stream().wait_stream(s)
    assert (x + 1).tolist() == [6.0] * 4


def _loss_on_a_stream(x: Any) -> Any:
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        return (x * 2).exp().sum()


def test_a_backward_pass_waits_for_the_stream_of_the_forward_pass() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    _loss_on_a_stream(x).backward()
    y = torch.exp(2 * x.detach())
    assert torch.equal(x.grad, 2 * y)
    s = torch.cuda.Stream()
    with torch.cuda.stream(torch.cuda.Stream()):
        loss = (x * 3).sum() * y.sum()
    with torch.cuda.stream(s):
        (found,) = torch.autograd.grad(loss, x)
    torch.cuda.current_stream().wait_stream(s)
    assert torch.allclose(found, 3 * y.sum().expand(2))


def test_events_measure_time() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(1000, device="cuda").sum()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_an_error_of_queued_work_appears_at_the_next_synchronisation() -> None:
    s = torch.cuda.Stream()
    stream = s._stream

    def fail() -> None:
        raise IndexError("index 9 is out of bounds")

    stream.enqueue(fail)
    with pytest.raises(RuntimeError, match="device-side assert"):
        torch.cuda.synchronize()
    torch.cuda.synchronize()


def test_copies_from_pinned_memory_do_not_wait() -> None:
    s = torch.cuda.Stream()
    x = torch.arange(5.0).pin_memory()
    assert x.is_pinned()
    with torch.cuda.stream(s):
        y = x.to("cuda", non_blocking=True)
        z = y * 2
    x.fill_(9)  # before the copy runs: a program must not do this, and sees it here
    s.synchronize()
    assert z.tolist() == [18.0] * 5
    w = torch.arange(5.0).pin_memory().to("cuda")
    assert w.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_source_in_pinned_memory_lives_until_its_copy_ran() -> None:
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        y = torch.full((1000,), 3.0).pin_memory().to("cuda", non_blocking=True)
        others = [torch.full((1000,), 5.0).pin_memory() for _ in range(4)]
    s.synchronize()
    assert y.sum().item() == 3000
    assert len(others) == 4


def test_pageable_memory_is_read_at_once() -> None:
    s = torch.cuda.Stream()
    x = torch.arange(5.0)
    with torch.cuda.stream(s):
        y = x.to("cuda", non_blocking=True)
    x.fill_(9)
    s.synchronize()
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_memory_is_kept_while_events_are_queried(monkeypatch: pytest.MonkeyPatch) -> None:
    s, late = torch.cuda.Stream(), torch.cuda.Stream()
    late._stream.enqueue(lambda: None)
    torch.zeros(1000).pin_memory().to("cuda", non_blocking=True)
    kept: list[weakref.ref[Any]] = []

    def done(event: Any) -> bool:
        if not kept:  # a finalizer, or another thread: the query of an event releases the interpreter's lock
            value = torch.zeros(10)
            kept.append(weakref.ref(value))
            backend().keep_until_reached(late._stream, value)
        return False

    with monkeypatch.context() as m:
        m.setattr(backend().xp.cuda.Event, "done", property(done))
        backend().keep_until_reached(s._stream, None)
    assert kept[0]() is not None
    late.synchronize()
    torch.cuda.empty_cache()
    assert kept[0]() is None


def test_a_prefetcher_on_two_streams_gives_the_cpus_results() -> None:
    data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.arange(32))
    loader = torch.utils.data.DataLoader(data, 8, pin_memory=True)
    side = torch.cuda.Stream()
    sums: list[Any] = []
    previous: Any = None
    for x, _ in loader:
        assert x.is_pinned()
        with torch.cuda.stream(side):
            now = x.to("cuda", non_blocking=True)
        if previous is not None:
            sums.append((previous * 2).sum())
        torch.cuda.current_stream().wait_stream(side)
        now.record_stream(torch.cuda.current_stream())
        previous = now
    sums.append((previous * 2).sum())
    assert torch.stack(sums).sum().item() == pytest.approx(2 * data.tensors[0].sum().item(), rel=1e-5, abs=1e-5)


# -- graphs -----------------------------------------------------------------------------------------------------------
def test_a_graph_replays_over_new_contents() -> None:
    x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2 + 1
    for value in (5.0, 7.0):
        x.fill_(value)
        g.replay()
        torch.cuda.synchronize()
        assert y.tolist() == [2 * value + 1] * 4


def test_a_graphs_results_keep_their_memory() -> None:
    x, g = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 3
        hidden = x * 5
    del hidden
    other = [torch.zeros(1000, device="cuda") for _ in range(4)]
    g.replay()
    assert all(t.sum().item() == 0 for t in other)
    assert y.sum().item() == 3000


def test_a_graphs_results_outlive_the_graph() -> None:
    x, g = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y, z = x * 3, x * 4
    g.replay()
    g.reset()
    assert y.sum().item() == 3000
    with torch.cuda.graph(g):
        w = x * 5
    g.replay()
    del g
    assert y.sum().item() == 3000 and z.sum().item() == 4000 and w.sum().item() == 5000


def test_a_synchronisation_in_a_capture_is_an_error() -> None:
    x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"capturing|previous error during capture"), torch.cuda.graph(g):
        x.sum().item()
    assert x.sum().item() == 4


def test_quotients_and_powers_can_be_recorded() -> None:
    x = torch.tensor([5.0, -5.0, 0.0, -0.0])
    y, n = torch.tensor([0.5, 2.0, 0.0, 0.5]), torch.tensor([2, 1, -1, 3])

    def compute(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x // 2.0, x // 0.0, x // y, 7.0 // y, x ** y, 2.0 ** x, x ** 0.5, n ** 2, n ** n, 2 ** n.abs()

    inputs, g = [t.cuda() for t in (x, y, n)], torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        found = compute(*inputs)
    g.replay()
    for a, b in zip(found, compute(x, y, n), strict=True):
        np.testing.assert_array_equal(a.cpu().numpy(), b.numpy())
        assert torch.equal(a.cpu().signbit() & ~b.isnan(), b.signbit() & ~b.isnan())


def test_a_remainder_by_a_number_can_be_recorded() -> None:
    x, g = torch.tensor([5.0, -5.0, 0.0, 6.0], device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y, z = x % 3, torch.remainder(x, -3.0)
    g.replay()
    assert y.tolist() == [2.0, 1.0, 0.0, 0.0] and z.tolist() == [-1.0, -2.0, 0.0, 0.0]


def test_each_replay_draws_the_next_random_numbers() -> None:
    x = torch.ones(1000, device="cuda")

    def draw() -> tuple[torch.Tensor, ...]:
        return (torch.rand(5, device="cuda"), torch.nn.functional.dropout(x, 0.5), torch.randn(3, 40, device="cuda", dtype=torch.float64),
                torch.randint(0, 100, (7,), device="cuda"))  # fmt: skip

    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        found = draw()
    assert torch.equal(torch.cuda.get_rng_state(), before)
    for seed in (3, 3, 2**64 - 1):
        torch.cuda.manual_seed(seed)
        wanted = [draw() for _ in range(3)]
        torch.cuda.manual_seed(seed)
        for w in wanted[:2]:
            g.replay()
            assert all(torch.equal(a, b) for a, b in zip(found, w, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(draw(), wanted[2], strict=True))


def test_a_capture_that_others_begin_does_not_draw() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        stream._stream.begin_capture()
        try:
            with pytest.raises(RuntimeError, match="would be the same at each replay"):
                torch.rand(3, device="cuda")
        finally:
            stream._stream.end_capture()


def test_a_graph_copies_from_pinned_memory_at_each_replay() -> None:
    x, y = torch.ones(4).pin_memory(), torch.full((4,), 2.0).pin_memory()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        z = x.to("cuda", non_blocking=True) * 10 + y.to("cuda", non_blocking=True)
    x.fill_(3)
    del y
    others = [torch.full((4,), 5.0).pin_memory() for _ in range(4)]
    for _ in range(2):
        g.replay()
        assert z.tolist() == [32.0] * 4 and len(others) == 4


@pytest.mark.parametrize("move", [
    lambda x: x.to("cuda", non_blocking=True), lambda x: x.cuda(), lambda x: x.t().to("cuda", non_blocking=True),
])  # fmt: skip
def test_a_graph_does_not_copy_from_pageable_memory(move: Any) -> None:
    x, g, y = torch.ones(4, 3), torch.cuda.CUDAGraph(), torch.ones(3, device="cuda")
    with torch.cuda.graph(g):
        z = y * 2
        with pytest.raises(RuntimeError, match="during CUDA graph capture unless the CPU tensor is pinned"):
            move(x)
    g.replay()
    assert z.tolist() == [2.0] * 3


# -- numbers, and other libraries -------------------------------------------------------------------------------------
def test_random_numbers_equal_the_cpus() -> None:
    for draw in (torch.rand, torch.randn):
        torch.manual_seed(5)
        on_cpu = draw(100)
        torch.manual_seed(5)
        on_cuda = draw(100, device="cuda")
        np.testing.assert_allclose(on_cuda.cpu().numpy(), on_cpu.numpy(), rtol=1e-5, atol=1e-6)


def test_states_of_the_generator() -> None:
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    first = torch.rand(5, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.rand(5, device="cuda").tolist() == first.tolist()


def test_array_interfaces() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    found = x.__cuda_array_interface__
    assert (found["shape"], found["typestr"], found["data"][0], found["strides"]) == ((2, 3), "<f4", x.data_ptr(), None)
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    with pytest.raises(AttributeError, match="__cuda_array_interface__"):
        _ = torch.ones(2).__cuda_array_interface__
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = torch.ones(2, device="cuda", requires_grad=True).__cuda_array_interface__
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr()
    assert x.__dlpack_device__() == (2, 0)


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torch.linalg.inv(torch.zeros(3, 3, device="cuda")), "linalg.inv: The diagonal element 1 is zero"),
    (lambda: torch.linalg.cholesky(-torch.eye(3, device="cuda")), "linalg.cholesky: The factorization could not be completed"),
    (lambda: torch.linalg.solve(torch.zeros(2, 3, 3, device="cuda"), torch.ones(2, 3, 1, device="cuda")), "torch.linalg.solve"),
])  # fmt: skip
def test_singular_matrices_raise_as_on_the_cpu(call: Any, text: str) -> None:
    with pytest.raises(torch.linalg.LinAlgError, match=text):
        call()


# -- training ---------------------------------------------------------------------------------------------------------
def _trained(device: str, dtype: Any) -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)).to(device)
    x, y = torch.randn(32, 8).to(device), torch.arange(32).remainder(4).to(device)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-2), []
    scaler = torch.amp.GradScaler(device, enabled=dtype is torch.float16)
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(("dtype", "tolerance"), [(None, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)])
def test_training_equals_the_cpus(dtype: Any, tolerance: float) -> None:
    losses = _trained("cuda", dtype)
    assert losses == pytest.approx(_trained("cpu", dtype), rel=tolerance)
    assert losses[-1] < losses[0]


def test_packed_sequences_keep_their_lengths_on_the_cpu() -> None:
    rnn = torch.nn.utils.rnn
    x, lengths = torch.randn(4, 3, 2), torch.tensor([2, 4, 1])

    def unpacked(where: str) -> tuple[torch.Tensor, torch.Tensor]:
        packed = rnn.pack_padded_sequence(x.to(where), lengths, enforce_sorted=False)
        assert packed.batch_sizes.device.type == "cpu" and packed.data.device.type == where
        return rnn.pad_packed_sequence(packed)

    (found, n), (wanted, m) = unpacked("cuda"), unpacked("cpu")
    assert n.device.type == "cpu" and n.tolist() == m.tolist() == [2, 4, 1]
    assert torch.equal(found.cpu(), wanted)
