"""torch.multiprocessing: shared tensors, and errors of processes that are raised in the parent."""
from __future__ import annotations

import multiprocessing as standard
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

import eager as torch
from eager import multiprocessing as mp


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    shared = set(os.listdir("/dev/shm"))
    yield
    assert standard.active_children() == []
    deadline = time.monotonic() + 30  # other programs also create files there for a short time
    while not set(os.listdir("/dev/shm")) <= shared and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(os.listdir("/dev/shm")) <= shared


def add(i: int, t: torch.Tensor) -> None:
    t[i] += i + 1


def fail(i: int) -> None:
    if i == 1:
        raise ValueError("wrong index")
    signal.pause()


def leave(i: int, how: str) -> None:
    if how == "code":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def echo(requests: Any, answers: Any) -> None:
    t, p = requests.get()
    t.mul_(2)
    answers.put((t.sum().item(), p.requires_grad, type(p).__name__, t.stride()))
    answers.put(torch.arange(3))
    requests.get()


def test_sharing_moves_the_storage_and_only_once() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    assert not t.is_shared() and t.share_memory_() is t and t.is_shared()
    address = t.data_ptr()
    assert t.share_memory_().data_ptr() == address and t[1:].is_shared() and t.tolist() == [[0, 1, 2], [3, 4, 5]]
    whole = torch.arange(4.0)
    part = whole[1:]
    with pytest.raises(NotImplementedError, match="other tensors view this tensor's memory"):
        whole.share_memory_()
    part.share_memory_().add_(1)
    assert whole.is_shared() and whole.tolist() == [0, 2, 3, 4]
    model = torch.nn.Linear(2, 2).share_memory()
    assert all(p.is_shared() and p.is_leaf and p.requires_grad for p in model.parameters())
    assert torch.ones(0).share_memory_().shape == (0,)


def test_forked_processes_write_into_shared_tensors() -> None:
    t = torch.zeros(3).share_memory_()
    private = torch.zeros(3)
    mp.start_processes(add, (t,), nprocs=3, start_method="fork")
    mp.start_processes(add, (private,), nprocs=3, start_method="fork")
    assert t.tolist() == [1, 2, 3] and private.tolist() == [0, 0, 0]


def test_spawned_processes_share_their_tensor_arguments() -> None:
    t = torch.zeros(2)
    mp.spawn(add, (t,), nprocs=2)
    assert t.tolist() == [1, 2] and t.is_shared()


def test_tensors_in_queues_are_shared_both_ways() -> None:
    context = mp.get_context("fork")
    requests, answers = context.Queue(), context.Queue()
    child = context.Process(target=echo, args=(requests, answers))
    child.start()
    whole = torch.ones(5)
    requests.put((whole, torch.nn.Parameter(torch.ones(2))))
    assert answers.get(timeout=120) == (10.0, True, "Parameter", (1,))
    assert whole.tolist() == [2.0] * 5
    assert answers.get(timeout=120).tolist() == [0, 1, 2]
    requests.put(None)
    child.join()
    for queue in (requests, answers):
        queue.close()
        queue.join_thread()
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        standard.reduction.ForkingPickler.dumps(torch.ones(1, requires_grad=True) * 2)


def test_the_first_failure_ends_all_and_is_raised() -> None:
    with pytest.raises(mp.ProcessRaisedException, match=r"-- Process 1 terminated with the following error:(.|\n)*wrong index") as caught:
        mp.start_processes(fail, nprocs=3, start_method="fork")
    assert caught.value.error_index == 1
    for how, name in (("code", None), ("signal", "SIGKILL")):
        with pytest.raises(mp.ProcessExitedException) as ended:
            mp.start_processes(leave, (how,), nprocs=1, start_method="fork")
        assert ended.value.signal_name == name and ended.value.exit_code == (3 if name is None else -9)


def test_without_join_the_processes_are_the_callers() -> None:
    running = mp.start_processes(add, (torch.zeros(2),), nprocs=2, join=False, start_method="fork")
    assert running is not None and len(running.pids()) == 2
    while not running.join(timeout=10):
        pass
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'bogus'"):
        mp.set_sharing_strategy("bogus")
    with pytest.raises(ValueError, match="start_method='fork'"):
        mp.spawn(add, start_method="fork")
