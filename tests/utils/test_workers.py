"""DataLoader with worker processes: equal batches, errors that name their cause, and no process or memory left behind."""
from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.nn.parameter import Parameter
from eager.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from eager.utils.data._utils.transfer import Channel
from eager.utils.data._utils.worker import seed_worker

ROOT = Path(__file__).resolve().parents[2]
SHORT_S = 0.05

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores


class Numbers(Dataset[int]):
    """0 to n-1; `at` is called with each index in the worker."""

    def __init__(self, n: int, at: Callable[[int], Any] | None = None) -> None:
        self.n = n
        self.at = at

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return i if self.at is None else self.at(i)


class Shared(IterableDataset[int]):
    """0 to n-1, shared out over the workers."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


def draws(_: int) -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


@pytest.fixture(autouse=True, scope="module")
def _compiled_before() -> None:
    """The first compilation of a process opens the file that registers which entries of the cache it uses."""
    torch.compile(lambda x: x + 1)(torch.ones(2))


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No worker, named shared memory, thread or open file remains after a test."""
    files, shared = len(os.listdir("/proc/self/fd")), set(os.listdir("/dev/shm"))
    threads = set(threading.enumerate())
    yield
    assert multiprocessing.active_children() == []
    assert set(threading.enumerate()) <= threads
    deadline = time.monotonic() + 30  # other programs make names there too, for a moment
    while not set(os.listdir("/dev/shm")) <= shared and time.monotonic() < deadline:
        time.sleep(SHORT_S)
    assert set(os.listdir("/dev/shm")) <= shared
    assert len(os.listdir("/proc/self/fd")) <= files


def flat(loader: Any) -> list[Any]:
    return [x for batch in loader for x in batch.tolist()]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("options", [{"shuffle": True}, {"batch_size": None}, {"drop_last": True}, {"batch_sampler": [[3, 1], [2]]}])
def test_batches_do_not_depend_on_the_workers(workers: int, options: dict[str, Any]) -> None:
    def passes(n: int) -> list[Any]:
        torch.manual_seed(5)
        size = {} if "batch_sampler" in options else {"batch_size": 3}
        loader = DataLoader(Numbers(10), num_workers=n, **{**size, **options})
        return [[batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader] for _ in range(2)] + [
            float(torch.rand(()))  # the generator advances equally
        ]

    assert passes(workers) == passes(0)


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_start_in_any_way(start: str) -> None:
    program = f"""
import eager as torch
from eager.utils.data import DataLoader, TensorDataset, get_worker_info

def init(i):
    assert get_worker_info().id == i and get_worker_info().num_workers == 2

if __name__ == "__main__":
    data = TensorDataset(torch.arange(6.0), torch.ones(6, 3000, dtype=torch.bfloat16))
    loader = DataLoader(data, 3, num_workers=2, multiprocessing_context={start!r}, worker_init_fn=init)
    print([(x.tolist(), str(y.dtype), int(y.float().sum())) for x, y in loader])
"""
    script = Path(os.environ["FRAMEJIT_CACHE_DIR"]) / f"{start}.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    want = [([0.0, 1.0, 2.0], "torch.bfloat16", 9000), ([3.0, 4.0, 5.0], "torch.bfloat16", 9000)]
    assert done.stdout == f"{want}\n", done.stderr


def test_worker_seeds_are_distinct_and_reproducible() -> None:
    def run() -> list[list[float]]:
        torch.manual_seed(1)
        return [[round(float(v), 9) for column in batch for v in column] for batch in DataLoader(Numbers(4, draws), 2, num_workers=2)]

    first, second = run(), run()
    assert first == second
    assert len({v for batch in first for v in batch}) == 12


def test_workers_are_seeded_as_documented() -> None:
    """numpy's numbers equal torch 2.13's for a base seed of 5 and worker 1."""
    torch.manual_seed(2)
    infos = list(DataLoader(Numbers(2, lambda i: get_worker_info().seed), None, num_workers=2))  # type: ignore[union-attr]
    assert infos[1] == infos[0] + 1
    state, before = np.random.get_state(), random.getstate()
    with torch.random.fork_rng():
        assert seed_worker(5, 1) == 6
        found = random.random(), np.random.rand(), torch.initial_seed()
    np.random.set_state(state)
    random.setstate(before)
    assert found == (random.Random(6).random(), NUMPY_DRAW_OF_TORCH, 6)


NUMPY_DRAW_OF_TORCH = 0.4497605947916279


def test_iterable_datasets_are_shared_out_and_end_apart() -> None:
    assert [b.tolist() for b in DataLoader(Shared(7), 2, num_workers=2)] == [[0, 2], [1, 3], [4, 6], [5]]
    assert sorted(flat(DataLoader(Shared(9), 2, num_workers=3, in_order=False))) == list(range(9))
    assert sorted(flat(DataLoader(Shared(1), 2, num_workers=3))) == [0]
    assert [b.tolist() for b in DataLoader(Shared(7), 2, num_workers=2, drop_last=True)] == [[0, 2], [1, 3], [4, 6]]


def test_too_many_samples_of_an_iterable_dataset_are_warned_of() -> None:
    class Copied(Shared):
        def __iter__(self) -> Iterator[int]:
            return iter(range(self.n))

        def __len__(self) -> int:
            return self.n

    loader = DataLoader(Copied(2), 2, num_workers=2)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="Length of IterableDataset"):
        assert flat(loader) == [0, 1, 0, 1]


def test_persistent_workers_survive_a_pass_that_ends_early() -> None:
    loader = DataLoader(Numbers(8, lambda i: os.getpid()), 2, num_workers=2, persistent_workers=True)
    first = set(flat(loader))
    assert len(first) == 2 and set(flat(loader)) == first
    assert set(next(iter(loader)).tolist()) <= first
    assert len(flat(loader)) == 8
    streams = DataLoader(Shared(5), 2, num_workers=2, persistent_workers=True)
    assert [flat(streams) for _ in range(2)] == [[0, 2, 1, 3, 4]] * 2
    for _ in streams:
        break
    assert flat(streams) == [0, 2, 1, 3, 4]


def test_in_order_false_yields_batches_as_they_finish(tmp_path: Path) -> None:
    may_end = tmp_path / "may_end"

    def slow_first(i: int) -> int:
        deadline = time.monotonic() + 60
        while i == 0 and not may_end.exists() and time.monotonic() < deadline:
            time.sleep(SHORT_S)
        return i

    batches = iter(DataLoader(Numbers(6, slow_first), 1, num_workers=2, in_order=False))
    first = next(batches).item()
    may_end.touch()
    assert first != 0 and sorted([first, *(batch.item() for batch in batches)]) == list(range(6))
    assert flat(DataLoader(Numbers(6, slow_first), 1, num_workers=2)) == list(range(6))


def test_prefetch_factor_bounds_how_far_workers_run_ahead(tmp_path: Path) -> None:
    taken = tmp_path / "taken"

    def count(i: int) -> int:
        with taken.open("a") as file:
            file.write(".")
        return i

    for ahead in (1, 3):
        taken.write_text("")
        batches = iter(DataLoader(Numbers(40, count), 2, num_workers=2, prefetch_factor=ahead))
        next(batches)
        deadline = time.monotonic() + 60
        while taken.stat().st_size < 2 * (2 * ahead + 1) and time.monotonic() < deadline:
            time.sleep(SHORT_S)
        time.sleep(SHORT_S)
        assert taken.stat().st_size == 2 * (2 * ahead + 1)
        del batches


def _tensors(_: int) -> Any:
    base = torch.arange(24.0).reshape(2, 3, 4)
    p = Parameter(torch.ones(2))
    return {
        "dense": base, "transposed": base.transpose(0, 2), "expanded": torch.ones(1, 3).expand(2, 3), "gaps": base[:, :, ::2],
        "empty": torch.ones(0, 3), "scalar": torch.tensor(3), "bool": torch.tensor([True]), "bf16": torch.ones(2, dtype=torch.bfloat16),
        "complex": torch.tensor([1 + 2j]), "wants": torch.ones(2, requires_grad=True), "parameter": p,
        "array": np.arange(6).reshape(2, 3).T, "large": torch.arange(200_000),
        "large array": np.arange(200_000.0), "text": "x" * 100_000, "none": None,
    }  # fmt: skip


def test_every_kind_of_object_in_a_batch_arrives_unchanged() -> None:
    (got,) = DataLoader(Numbers(1, _tensors), None, num_workers=1, collate_fn=lambda x: x)
    for name, sent in _tensors(0).items():
        here = got[name]
        assert type(here) is type(sent), name
        if isinstance(sent, torch.Tensor):
            assert (here.dtype, here.shape, here.requires_grad) == (sent.dtype, sent.shape, sent.requires_grad), name
            assert torch.equal(here, sent), name
            assert name == "gaps" or here.stride() == sent.stride(), name
        elif isinstance(sent, np.ndarray):
            assert (here == sent).all() and here.dtype == sent.dtype and here.flags.writeable
        else:
            assert here == sent
    got["large"].add_(1)
    got["large array"][0] = 7
    assert got["large"][0] == 1 and got["dense"].sum() == 276


def _random_structure(i: int) -> Any:
    """Nested containers of tensors, arrays, numbers and texts, small and large, the same for the same `i`."""
    r = random.Random(i)

    def make(depth: int) -> Any:
        kind = r.randrange(9 if depth else 6)
        if kind < 6:
            leaves: tuple[Callable[[], Any], ...] = (
                lambda: torch.arange(r.randrange(1, 30_000)).float(), lambda: np.full((r.randrange(1, 9), r.randrange(5)), i),
                r.random, lambda: "x" * r.randrange(100), lambda: torch.ones(r.randrange(1, 5), 3).t(), lambda: None)  # fmt: skip
            return leaves[kind]()
        parts = [make(depth - 1) for _ in range(r.randrange(6))]
        return parts if kind == 6 else tuple(parts) if kind == 7 else dict(enumerate(parts))

    return make(4)


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype is b.dtype and a.stride() == b.stride() and bool(torch.equal(a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(map(_same, a, b)) if isinstance(a, (list, tuple)) else bool(a == b)


def test_random_structures_arrive_unchanged() -> None:
    data = Numbers(80, _random_structure)
    held = list(DataLoader(data, None, num_workers=2, collate_fn=lambda x: x))
    assert all(_same(got, data[i]) for i, got in enumerate(held))


def test_more_batches_may_be_held_than_files_may_be_open() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        held = list(DataLoader(TensorDataset(torch.ones(60, 16000)), 1, num_workers=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sum(int(x.sum()) for (x,) in held) == 60 * 16000


class Unusual(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a + b)


@pytest.mark.parametrize(("raised", "seen"), [(ValueError("no 3"), ValueError), (KeyError("k"), KeyError),
                                              (Unusual(1, 2), RuntimeError), (StopIteration(), StopIteration)])  # fmt: skip
def test_an_exception_in_a_worker_is_raised_here(raised: Exception, seen: type[Exception]) -> None:
    def at(i: int) -> int:
        if i == 3:
            raise raised
        return i

    batches = iter(DataLoader(Numbers(6, at), 2, num_workers=2))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(seen) as caught:
        next(batches)
    text = str(caught.value)
    assert text.startswith(f"Caught {type(raised).__name__} in DataLoader worker process 1.\nOriginal Traceback")
    assert "\n    raise raised\n" in text
    assert next(batches).tolist() == [4, 5]  # the workers continue
    del caught


def test_an_error_at_the_start_of_a_worker_is_raised_here() -> None:
    def init(i: int) -> None:
        raise OSError(f"no disk for {i}")

    class NoIterator(Shared):
        def __iter__(self) -> Iterator[int]:
            raise LookupError("no stream")

    with pytest.raises(OSError, match=r"Caught OSError in DataLoader worker process 0(.|\n)*no disk for 0"):
        list(DataLoader(Numbers(4), num_workers=1, worker_init_fn=init))
    with pytest.raises(LookupError, match="no stream"):
        list(DataLoader(NoIterator(3), num_workers=1))


def test_a_batch_that_cannot_be_sent_is_an_error_not_a_hang() -> None:
    with pytest.raises(Exception, match=r"while sending a batch(.|\n)*[Pp]ickle"):
        list(DataLoader(Numbers(2, lambda i: lambda: i), None, num_workers=1))
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader(Numbers(2, lambda i: torch.ones(1, requires_grad=True) * 2), None, num_workers=1))


@pytest.mark.parametrize(("end", "manner"), [(lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal: Killed"),
                                             (lambda: os._exit(3), "exited with code 3")])  # fmt: skip
def test_a_worker_that_dies_is_reported(end: Callable[[], Any], manner: str) -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        list(DataLoader(Numbers(9, lambda i: end() if i == 5 else torch.ones(30_000)), 2, num_workers=2))
    assert manner in str(caught.value.__cause__)
    del caught


def test_a_worker_killed_from_outside_while_idle_is_reported() -> None:
    loader = DataLoader(Numbers(4), num_workers=2, persistent_workers=True)
    assert flat(loader) == [0, 1, 2, 3]
    victim = multiprocessing.active_children()[0]
    os.kill(victim.pid, signal.SIGKILL)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        flat(loader)
    assert flat(loader) == [0, 1, 2, 3]  # the next pass starts new workers


def test_timeout() -> None:
    loader = DataLoader(Numbers(1, lambda i: time.sleep(0.5)), num_workers=1, timeout=0.1)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.1 seconds"):
        list(loader)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt: a shell starts background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_nothing_is_left_after_a_break_a_del_or_an_interrupt() -> None:
    loader = DataLoader(Numbers(50, lambda i: torch.full((20_000,), i)), 2, num_workers=2)
    for _ in loader:
        break
    assert multiprocessing.active_children() == []
    batches = iter(loader)
    next(batches)
    assert len(multiprocessing.active_children()) == 2
    del batches
    assert multiprocessing.active_children() == []
    slow = iter(DataLoader(Numbers(2, lambda i: time.sleep(10)), num_workers=1))
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        next(slow)
    assert multiprocessing.active_children() == []
    timer.join()
    gc.collect()


def test_workers_end_when_their_parent_is_killed() -> None:
    program = """
import multiprocessing, os, time
from eager.utils.data import DataLoader
class Slow:
    def __len__(self): return 9
    def __getitem__(self, i):
        if i: time.sleep(60)
        return i
batches = iter(DataLoader(Slow(), num_workers=2))
print(next(batches).tolist(), *(p.pid for p in multiprocessing.active_children()), flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    first, *pids = done.stdout.split()
    assert first == "[0]" and len(pids) == 2, done.stderr
    deadline = time.monotonic() + 60
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(SHORT_S)
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_may_end_in_the_middle_of_a_pass() -> None:
    program = "from eager.utils.data import DataLoader; it = iter(DataLoader(range(99), num_workers=2)); print(next(it))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("tensor([0])\n", "", 0)


def test_ops_and_compiled_functions_run_in_workers_on_one_thread() -> None:
    w = torch.randn(128, 128)
    compiled = torch.compile(lambda x: torch.softmax(x @ w, -1).sum())
    here = float(compiled(w)), float((w @ w).sum())

    def at(i: int) -> tuple[float, float, int]:
        return float(compiled(w)), float((w @ w).sum()), torch.get_num_threads()

    for batch in DataLoader(Numbers(4, at), None, num_workers=2, timeout=120):
        assert batch[:2] == pytest.approx(here, rel=1e-4) and batch[2] == 1


def test_large_tasks_reach_busy_workers() -> None:
    """Neither side may block on the other's full buffer."""
    order = [list(range(20_000))] * 30
    loader = DataLoader(Numbers(20_000), batch_sampler=order, num_workers=1, prefetch_factor=20)
    assert sum(int(b.sum()) for b in loader) == 30 * sum(order[0])


def test_a_channel_raises_after_its_other_end_closes() -> None:
    ours, theirs = Channel.pair()
    theirs.send({"a": [1]})
    theirs.shut()
    theirs.close()
    assert ours.receive() == {"a": [1]}
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(OSError, match=r"[Bb]roken pipe"):
        ours.send(1)
    ours.shut()
    ours.close()


def test_pinning_without_a_gpu_is_warned_of_and_does_nothing() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert flat(DataLoader(Numbers(2), pin_memory=True)) == [0, 1]


def test_an_iterator_cannot_be_pickled() -> None:
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        multiprocessing.reduction.ForkingPickler.dumps(iter(DataLoader(Numbers(1))))
