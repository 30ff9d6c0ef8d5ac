"""Compiled functions called from several threads, tasks and processes at once."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import dynamo
import eager as torch
from dynamo.compilation.region import CompiledRegion
from dynamo.policy.dynamic_sizes import Dynamic
from eager import nn
from tests.dynamo.api.test_compile import _environment

N = 8
SCALE = 1


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _at_once(n: int, work) -> list:
    """work(i) in n threads that start together; their results, or the first error."""
    gate = threading.Barrier(n)

    def run(i: int):
        gate.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_all_threads_compile_one_function(backend) -> None:
    compiled = dynamo.compile(lambda x, k: torch.relu(x * k).sum() + k, backend=backend)

    def work(i: int) -> list[float]:
        return [float(compiled(torch.ones(4), 1.0 + (i + j) % 3)) for j in range(6)]

    assert _at_once(N, work) == [[5.0 * (1 + (i + j) % 3) for j in range(6)] for i in range(N)]


def test_each_thread_compiles_a_separate_function_and_module() -> None:
    def work(i: int) -> bool:
        torch.manual_seed(i)
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        compiled = dynamo.compile(net, backend="aot_eager")
        x = torch.ones(2, 3)
        for _ in range(3):
            compiled(x).sum().backward()
        return bool(torch.allclose(compiled(x), net(x))) and all(p.grad is not None for p in net.parameters())

    assert all(_at_once(N, work))


def test_breaks_and_continuations_in_all_threads() -> None:
    def f(x, log):
        y = x + 1
        log.append(threading.get_ident())
        print(end="")
        return y * len(log)

    compiled = dynamo.compile(f, backend="eager")

    def work(i: int) -> list[float]:
        log: list[int] = []
        found = [float(compiled(torch.tensor(float(i)), log)) for _ in range(5)]
        assert set(log) == {threading.get_ident()}
        return found

    assert _at_once(N, work) == [[(i + 1.0) * n for n in range(1, 6)] for i in range(N)]


def test_a_global_that_another_thread_changes() -> None:
    """The result of a call corresponds to a value that the global had during the call."""
    global SCALE
    compiled = dynamo.compile(lambda x: x * SCALE, backend="eager")
    stop = threading.Event()

    def change() -> None:
        global SCALE
        while not stop.is_set():
            SCALE = SCALE % 3 + 1

    changer = threading.Thread(target=change)
    changer.start()
    try:
        found = {float(compiled(torch.tensor(1.0))) for _ in range(300)}
    finally:
        stop.set()
        changer.join()
    assert found <= {1.0, 2.0, 3.0}
    for SCALE in (1, 2, 3):
        assert float(compiled(torch.tensor(1.0))) == SCALE
    SCALE = 1


def test_grad_mode_autocast_and_stances_belong_to_one_thread() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    compiled = dynamo.compile(lambda x: x @ w, backend="eager")

    def work(i: int) -> tuple[bool, object]:
        if i % 2:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                y = compiled(torch.ones(2, 2))
        else:
            y = compiled(torch.ones(2, 2))
        return y.requires_grad, y.dtype

    wanted = {0: (True, torch.float32), 1: (False, torch.bfloat16)}
    for _ in range(3):
        assert _at_once(N, work) == [wanted[i % 2] for i in range(N)]


def test_a_reset_while_other_threads_call() -> None:
    compiled = dynamo.compile(lambda x: x * 2 + 1, backend="eager")

    def work(i: int) -> bool:
        for _ in range(20):
            if i == 0:
                dynamo.reset()
            assert float(compiled(torch.tensor(float(i)))) == 2 * i + 1
        return True

    assert all(_at_once(N, work))


def test_a_reset_during_a_capture_in_another_thread(monkeypatch) -> None:
    """A capture succeeds even if another thread resets the compiler at any point of it."""
    points = [(Dynamic, "see"), (Dynamic, "dims"), (Dynamic, "int_is_symbolic"), (CompiledRegion, "_explain_recompile")]

    def then_reset(do):
        def wrapped(*args):
            found = do(*args)
            dynamo.reset()
            return found

        return wrapped

    for owner, name in points:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, then_reset(getattr(owner, name)))
            compiled = dynamo.compile(lambda x, k: x * k + x.shape[0], backend="eager")
            for n in (3, 4, 5):
                assert compiled(torch.ones(n), n).tolist() == [2.0 * n] * n


def test_tasks_of_asyncio_and_context_variables() -> None:
    scale = contextvars.ContextVar("scale", default=1)

    @dynamo.compile(backend="eager")
    def step(x):
        return x * scale.get() + 1

    async def task(k: int) -> float:
        scale.set(k)
        x = torch.tensor(1.0)
        for _ in range(3):
            x = step(x)
            await asyncio.sleep(0)
        return float(x)

    async def main() -> list[float]:
        return await asyncio.gather(*(task(k) for k in range(5)))

    def plain(k: int) -> float:
        x = 1.0
        for _ in range(3):
            x = x * k + 1
        return x

    assert asyncio.run(main()) == [plain(k) for k in range(5)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_calls_and_compiles() -> None:
    code = """
import os, sys
import eager as torch
f = torch.compile(lambda x, k: torch.sin(x) * k)
assert torch.allclose(f(torch.ones(70000), 2.0), torch.sin(torch.ones(70000)) * 2)
pid = os.fork()
if pid == 0:
    ok = torch.allclose(f(torch.ones(70000), 2.0), torch.sin(torch.ones(70000)) * 2)
    ok = ok and torch.allclose(torch.compile(lambda x: x.cos() + 1)(torch.ones(5)), torch.ones(5).cos() + 1)
    os._exit(0 if ok else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=_environment(), check=False)
    assert done.returncode == 0, done.stderr


def test_processes_share_the_disk_cache(tmp_path) -> None:
    code = """
import eager as torch
f = torch.compile(lambda x: (x * 3 + 1).tanh().sum())
print(float(f(torch.arange(6).float())))
"""
    env = {**_environment(), "FRAMEJIT_CACHE_DIR": str(tmp_path)}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([sys.executable, "-c", code], env=env, **piped) for _ in range(2)]
    found = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0] * 2, found
    assert len({out for out, _ in found}) == 1


def test_a_parse_in_another_thread_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, refusals = ast.parse, [SystemError("AST constructor recursion depth mismatch (before=42, after=36)")]

    def once(*args: object, **kwargs: object) -> object:
        if refusals:
            raise refusals.pop()
        return parse(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", once)
    compiled = dynamo.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2, 2] and not refusals
