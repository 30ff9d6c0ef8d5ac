"""The whole path, from a decorated function to native code: results, breaks, recompiles, logs, fallbacks."""
import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import eager as torch
from dynamo import _native as capture
from eager import nn
from eager.base import logs, settings
from eager.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
MODES = ["default", "reduce-overhead", "max-autotune"]


def _close(a, b, tolerance=1e-5):
    assert a.shape == b.shape and a.dtype is b.dtype and a.stride() == b.stride()
    assert torch.allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    assert not capture.hook_installed(), "a frame-evaluation hook is installed while no compiled region runs"


@pytest.mark.parametrize("mode", MODES)
def test_pointwise_chain(mode):
    fn = torch.compile(lambda x: (x * 2 + 1).tanh(), mode=mode, fullgraph=True)
    for n in (8, 1000):
        x = torch.randn(n)
        _close(fn(x), (x * 2 + 1).tanh())
        _close(fn(x), (x * 2 + 1).tanh())


@pytest.mark.parametrize("mode", MODES)
def test_results_of_earlier_calls_are_not_overwritten(mode):
    fn = torch.compile(lambda x: x + 1, mode=mode)
    first, second = fn(torch.zeros(100)), fn(torch.ones(100))
    assert first.tolist() == [1.0] * 100 and second.tolist() == [2.0] * 100


@pytest.mark.parametrize("shape, dim", [((4, 7), -1), ((4, 7), 0), ((2, 3, 130), 1), ((1, 1000), 1)])
def test_softmax_and_reductions(shape, dim):
    def f(x):
        return torch.softmax(x, dim), x.sum(dim), x.mean(dim, keepdim=True), x.amax(dim)

    torch.manual_seed(0)  # a sum that nearly cancels has no five digits
    x = torch.randn(*shape) * 3
    for got, want in zip(torch.compile(f, fullgraph=True)(x), f(x), strict=True):
        _close(got, want)


def test_module_forward_and_backward():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
    x = torch.randn(6, 20)
    want = model(x)
    want.square().mean().backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    got = torch.compile(model, fullgraph=True)(x)
    _close(got, want)
    got.square().mean().backward()
    for n, p in model.named_parameters():
        _close(p.grad, grads[n])


def test_training_step_follows_eager():
    def losses(compiled):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))

        def step(x, y):
            return F.cross_entropy(model(x), y)

        run = torch.compile(step) if compiled else step
        result = []
        for _ in range(20):
            loss = run(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            result.append(loss.item())
        return result

    eager, compiled = losses(False), losses(True)
    assert compiled == pytest.approx(eager, rel=1e-4) and compiled[-1] < compiled[0] * 0.9


def test_dropout_draws_the_same_numbers():
    x = torch.ones(1000)
    fn = torch.compile(lambda x: F.dropout(x, 0.3, training=True) * 2)
    torch.manual_seed(5)
    want = [F.dropout(x, 0.3, training=True) * 2 for _ in range(3)]
    torch.manual_seed(5)
    for w in want:
        _close(fn(x), w)


def test_print_in_the_middle_keeps_results_and_order(capsys):
    def f(x):
        y = x + 1
        print("middle", y.sum().item())
        return y * 2

    x = torch.ones(3)
    fn = torch.compile(f)
    for _ in range(2):
        _close(fn(x), (x + 1) * 2)
    assert capsys.readouterr().out == "middle 6.0\n" * 2


def test_data_dependent_branch_takes_both_ways():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    fn = torch.compile(f)
    for x in (torch.ones(3), -torch.ones(3), torch.ones(3)):
        _close(fn(x), f(x))


def test_breaks_inside_loops_and_with():
    log = []

    def f(x):
        for i in range(3):
            with torch.no_grad():
                x = x + i
                log.append(i)
                unknown(x)
            x = x * 2
        return x

    def unknown(x):
        log.append(float(x.sum()))

    want_log = []
    x = torch.ones(2)
    want, want_log[:] = f(x), log
    log.clear()
    _close(torch.compile(f)(x), want)
    assert log == want_log


def test_mutation_of_arguments_and_containers():
    def f(x, items, counts):
        x.add_(1)
        items.append(x * 2)
        counts["calls"] += 1
        return items[0] + x

    def run(fn):
        x, items, counts = torch.ones(3), [torch.zeros(3)], {"calls": 0}
        results = [fn(x, items, counts).tolist() for _ in range(3)]
        return results, x.tolist(), [t.tolist() for t in items], counts

    assert run(torch.compile(f)) == run(f)


def test_aliased_arguments_are_seen():
    def f(a, b):
        a.mul_(2)
        return a + b

    fn = torch.compile(f)
    x, y = torch.ones(3), torch.ones(3)
    assert fn(x, y).tolist() == [3.0] * 3
    z = torch.ones(3)
    assert fn(z, z).tolist() == [4.0] * 3


def test_returned_input_keeps_its_identity():
    fn = torch.compile(lambda x: (x, x + 1))
    x = torch.ones(2)
    assert fn(x)[0] is x


def test_recompile_states_the_failed_guard():
    fn = torch.compile(lambda x, n: x * n)
    with logs.capture("recompiles") as lines:
        fn(torch.ones(3), 2)
        assert fn(torch.ones(3), 3).tolist() == [3.0] * 3
    text = "\n".join(str(line) for line in lines)
    assert "n" in text and "2" in text and "3" in text


def test_break_log_names_the_users_line():
    def f(x):
        y = x + 1
        print(end="")
        return y

    with logs.capture("graph_breaks") as lines:
        torch.compile(f)(torch.ones(2))
    text = "\n".join(str(line) for line in lines)
    assert f"Graph break in user code at {__file__}:{f.__code__.co_firstlineno + 2}" in text
    assert "print" in text


def test_fullgraph_raises_where_it_would_break():
    def f(x):
        print(x)
        return x

    with pytest.raises(Exception, match="print") as info:
        torch.compile(f, fullgraph=True)(torch.ones(2))
    assert __file__ in str(info.value)


def test_shape_error_is_eagers_own():
    def f(x, y):
        z = x * 2
        return z + y

    bad = torch.ones(3), torch.ones(4)
    with pytest.raises(RuntimeError) as want:
        f(*bad)
    with pytest.raises(RuntimeError) as got:
        torch.compile(f)(*bad)
    assert type(got.value) is type(want.value) and str(got.value) == str(want.value)
    assert any(entry.path == Path(__file__) and entry.lineno + 1 == f.__code__.co_firstlineno + 2 for entry in got.traceback)


def test_module_attribute_change_is_seen():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.factor = 2.0
            self.extra = [1.0]

        def forward(self, x):
            return x * self.weight * self.factor + self.extra[0]

    model = Scale()
    fn = torch.compile(model)
    x = torch.ones(3)
    assert fn(x).tolist() == [3.0] * 3
    model.factor = 5.0
    assert fn(x).tolist() == [6.0] * 3
    model.__dict__["factor"] = 7.0
    assert fn(x).tolist() == [8.0] * 3
    model.extra[0] = 0.0
    assert fn(x).tolist() == [7.0] * 3
    model.weight = nn.Parameter(torch.zeros(3))
    assert fn(x).tolist() == [0.0] * 3
    with torch.no_grad():
        model.weight.fill_(1.0)
    assert fn(x).tolist() == [7.0] * 3


def test_grad_mode_is_guarded():
    fn = torch.compile(lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)
    assert fn(x).requires_grad
    with torch.no_grad():
        assert not fn(x).requires_grad
    assert fn(x).requires_grad


def test_disable_keeps_a_function_out():
    seen = []

    @torch.compiler.disable
    def outside(x):
        seen.append(type(x))
        return x * 3

    fn = torch.compile(lambda x: outside(x + 1) + 1)
    assert fn(torch.ones(2)).tolist() == [7.0, 7.0] and len(seen) == 1
    assert fn(torch.ones(2)).tolist() == [7.0, 7.0] and len(seen) == 2


def test_explain_counts_graphs_and_breaks():
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    report = torch._dynamo.explain(f)(torch.ones(2))
    assert report.graph_count == 2 and report.graph_break_count == 1


def test_failing_backend_falls_back_with_one_warning():
    calls = []

    def broken(gm, inputs):
        calls.append(gm)
        raise RuntimeError("kaboom")

    fn = torch.compile(lambda x: x + 1, backend=broken)
    with settings.scope(capture_suppress_errors=True), logs.capture() as records:
        assert fn(torch.ones(2)).tolist() == [2.0, 2.0]
        assert fn(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(calls) == 1
    (warning,) = [r.message for r in records if r.level >= logging.WARNING]
    assert "kaboom" in warning and "runs uncompiled" in warning
    with pytest.raises(Exception, match="kaboom"):
        torch.compile(lambda x: x + 1, backend=broken, fullgraph=True)(torch.ones(2))


def _python(code, **env):
    import os

    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **env})  # fmt: skip


SMALL = """
    import eager as torch
    fn = torch.compile(lambda x: (x * 2 + 1).relu())
    print(fn(torch.ones(4)).tolist())
"""


def test_second_process_loads_from_disk_without_the_compiler(tmp_path):
    code = SMALL + "    import sys; print([m for m in ('inductor.lowering', 'inductor.plan.schedule') if m in sys.modules])\n"
    first = _python(code, FRAMEJIT_CACHE_DIR=str(tmp_path))
    second = _python(code, FRAMEJIT_CACHE_DIR=str(tmp_path))
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0] == "[3.0, 3.0, 3.0, 3.0]", first.stderr + second.stderr
    assert second.stdout.splitlines()[1] == "[]"


def test_truncated_cache_entries_are_rebuilt(tmp_path):
    assert "3.0" in _python(SMALL, FRAMEJIT_CACHE_DIR=str(tmp_path)).stdout
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = _python(SMALL, FRAMEJIT_CACHE_DIR=str(tmp_path))
    assert again.returncode == 0 and again.stdout.strip() == "[3.0, 3.0, 3.0, 3.0]", again.stderr


def test_missing_compiler_falls_back_with_a_clear_message(tmp_path):
    run = _python(SMALL, FRAMEJIT_CACHE_DIR=str(tmp_path), CXX="/nonexistent/g++", TORCHDYNAMO_SUPPRESS_ERRORS="1")
    assert run.returncode == 0 and run.stdout.strip() == "[3.0, 3.0, 3.0, 3.0]", run.stderr
    assert "compiler" in run.stderr and "/nonexistent/g++" in run.stderr


def test_unwritable_cache_folder_warns_and_works(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    run = _python(SMALL, FRAMEJIT_CACHE_DIR=str(blocked / "cache"))
    assert run.returncode == 0 and run.stdout.strip() == "[3.0, 3.0, 3.0, 3.0]", run.stderr
    assert "cache" in run.stderr


def test_output_code_log_shows_the_kernels(tmp_path):
    run = _python(SMALL, FRAMEJIT_CACHE_DIR=str(tmp_path), TORCH_LOGS="output_code")
    assert 'extern "C"' in run.stderr and "#include" not in run.stderr
