"""Printed Triton: the interpreter agrees with the loops and with eager code; machine code has our ABI and spills nothing.

FRAMEJIT_TEST_LOOP_CASES=n runs n random programs, and every sample of every op in three dtypes.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

import eager as torch  # noqa: E402
from benchmarks.plans import of_large_ops  # noqa: E402
from fxir.trace.trace import trace  # noqa: E402
from inductor.base.target import SM_80, SM_90  # noqa: E402
from inductor.driver.backend import KEPT  # noqa: E402
from inductor.driver.cuda import lower_to_cuda  # noqa: E402
from inductor.driver.cuda_artifact import capability_of, target_of  # noqa: E402
from inductor.driver.gpu_candidates import candidates  # noqa: E402
from inductor.triton.compile import compile_kernel, instructions, resources  # noqa: E402

from .attention_cases import Case, function_of, inputs_of  # noqa: E402
from .graphs import GRAPHS, on_cuda, plan_of  # noqa: E402
from .test_candidates import product  # noqa: E402

pytestmark = pytest.mark.gpu
CASES = os.environ.get("FRAMEJIT_TEST_LOOP_CASES", "")
TARGETS = {80: SM_80, 90: SM_90}
HALF = "half precision linear"
# products whose operands are copied to shared memory ahead
EIGHT_BITS = ("8-bit product", "8-bit product of two dtypes")
COPIED = (HALF, *EIGHT_BITS, "convolution", "convolutions, channels first", "gradient of a filter of few channels")
ALIGNED = ("pointwise", "bias and gelu", "half precision", "heads joined", "heads exchanged with positions")


def interpreted(check: str, cases: str) -> dict:
    """The result of a check that runs in Triton's interpreter."""
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    command = [sys.executable, "-m", "tests.triton_kernels.interpreted", check, cases]
    run = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def test_printed_loops_give_what_the_loop_interpreter_gives():
    found = interpreted("law", CASES or "80")
    assert not found["failures"], found["failures"][0]
    assert found["cases"] >= 80


def test_products_of_tiles_give_what_their_definitions_say():
    found = interpreted("contractions", CASES or "30")
    assert not found["failures"], found["failures"][0]
    assert found["cases"] >= 30 and found["persistent"] >= 5


def test_every_op_with_loops_gives_what_its_eager_kernel_gives():
    found = interpreted("ops", "100" if CASES else "1")
    assert not found["failures"], f"{len(found['failures'])} differ; the first:\n{found['failures'][0]}"
    assert found["agree"] >= 190


def test_every_op_with_loops_over_symbolic_sizes_gives_what_its_eager_kernel_gives():
    found = interpreted("symbolic", "100" if CASES else "1")
    assert not found["failures"], f"{len(found['failures'])} differ; the first:\n{found['failures'][0]}"
    assert found["agree"] >= 190


def test_typical_graphs_give_what_eager_code_gives():
    found = interpreted("graphs", "1")
    assert not found["failures"], "\n".join(found["failures"])
    assert found["persistent"] >= 10


def test_attention_gives_what_its_loops_and_eager_code_give():
    found = interpreted("attention", "2" if CASES else "1")
    assert not found["failures"], "\n".join(found["failures"])
    assert found["cases"] >= 20 and found["by loops"] >= 2


@pytest.mark.parametrize("capability", TARGETS)
@pytest.mark.parametrize("depth, dropout_p", [(64, 0.0), (128, 0.0), (128, 0.1), (256, 0.1)])
def test_attention_runs_on_the_matrix_unit_and_spills_nothing(depth, dropout_p, capability):
    case = Case((4, 4 if dropout_p else 2), (1024, 1024, depth, depth), True, dropout_p=dropout_p)
    graph = trace(function_of(case, True), [on_cuda(t) for t in inputs_of(case, torch.bfloat16, True)], KEPT)
    kernels = [k for k in lower_to_cuda(graph, TARGETS[capability]).kernels if "tl.dot" in k.source]
    assert len(kernels) == 3  # the result, the gradient of queries, the gradients of keys and values
    for kernel in kernels:
        cubin = compile_kernel(kernel, capability)
        found, used = instructions(cubin), resources(cubin)
        assert used.spilled_bytes == 0, f"{used}\n{kernel.source}"
        assert cubin.shared_bytes <= TARGETS[capability].shared_bytes
        units = ("HGMMA",) if capability == 90 and depth <= 128 else ("HGMMA", "HMMA")
        assert any(i.startswith(units) for i in found), f"none of {units}: {sorted(set(found))}"


@pytest.mark.parametrize(("device", "shared_kib", "unit"), [((8, 9), 99, "HMMA"), ((10, 0), 227, "UTCHMMA"), ((12, 0), 99, "HMMA")])
def test_other_devices_have_machine_code_within_their_limits(device, shared_kib, unit):
    target = target_of(device)
    assert target.shared_bytes == shared_kib << 10 and capability_of(target) == 10 * device[0] + device[1]
    fn, _, large = GRAPHS[HALF]
    for kernel in plan_of(fn, large(), target).kernels:
        cubin = compile_kernel(kernel, capability_of(target))
        assert resources(cubin).spilled_bytes == 0 and cubin.shared_bytes <= target.shared_bytes
        assert any(i.startswith(unit) for i in instructions(cubin))


def test_a_device_that_is_too_old_is_an_error():
    with pytest.raises(RuntimeError, match=r"a CUDA device of capability 7\.5; allowed: 8\.0 or newer"):
        target_of((7, 5))


@pytest.mark.parametrize("capability", TARGETS)
def test_persistent_programs_load_ahead_and_spill_nothing(capability):
    """The compiler copies operands ahead only in a loop without barriers and inner loops."""
    target = TARGETS[capability]
    for loops in (product(4096, 4096, 4096), product(2000, 2000, 1000)):
        candidate = next(c for c in candidates(loops, target) if c.choice.resident and max(c.choice.product[:2]) < 256)
        (kernel,) = candidate.printed("kernel").kernels
        assert kernel.grid <= candidate.choice.resident * target.cores and kernel.source.count("for ") == 1
        cubin = compile_kernel(kernel, capability)
        found = instructions(cubin)
        assert resources(cubin).spilled_bytes == 0 and cubin.shared_bytes <= target.shared_bytes
        for word in ("HGMMA" if capability == 90 else "HMMA", "LDGSTS"):
            assert any(i.startswith(word) for i in found), f"no {word}: {sorted(set(found))}"


def test_a_kernel_that_spills_to_run_twice_at_once_gets_all_registers():
    def attention(x):
        x = x.detach().requires_grad_()
        heads = (t.view(4, 1024, 12, 64).transpose(1, 2) for t in x.split(768, -1))
        y = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return y, *torch.autograd.grad(y.sum(), x)

    graph = trace(attention, [on_cuda(torch.zeros(4, 1024, 2304, dtype=torch.bfloat16))], KEPT)
    first = next(k for k in lower_to_cuda(graph, TARGETS[80]).kernels if "tl.dot" in k.source)
    assert resources(compile_kernel(first, 80)).spilled_bytes == 0


def test_a_kernel_of_atomic_additions_that_spills_gets_all_registers():
    (plan,) = (p for p in of_large_ops("scatter_add", (80,)) if p.name == "scatter_add-1 bfloat16")
    assert any("tl.atomic_add" in k.source for k, _ in plan.kernels)
    assert all(resources(compile_kernel(k, 80)).spilled_bytes == 0 for k, _ in plan.kernels)


def test_kernels_compile_without_the_tools_that_report_spills(monkeypatch):
    def absent(*arguments, code):
        raise FileNotFoundError("cuobjdump")

    monkeypatch.setattr("inductor.triton.compile._run", absent)
    fn, _, large = GRAPHS[HALF]
    kernel = next(k for k in plan_of(fn, large(), TARGETS[80]).kernels if "tl.dot" in k.source)
    assert compile_kernel(kernel, 80).code


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("capability", TARGETS)
def test_machine_code_spills_nothing(name, capability):
    if capability == 80 and name not in ("softmax", "pointwise", "gather", HALF) and not CASES:
        pytest.skip("a sample is compiled for sm_80; FRAMEJIT_TEST_LOOP_CASES compiles all")
    fn, _, large = GRAPHS[name]
    target = TARGETS[capability]
    kernels = plan_of(fn, large(), target).kernels
    for kernel in kernels:
        cubin = compile_kernel(kernel, capability)
        used = resources(cubin)
        assert used.spilled_bytes == 0, f"{kernel.name} of {name} spills: {used}\n{kernel.source}"
        assert cubin.shared_bytes <= target.shared_bytes
        is_product = "tl.dot" in kernel.source and name in COPIED
        found = instructions(cubin) if name in ALIGNED or is_product else []
        if is_product:
            unit = "HMMA" if capability == 80 else "QGMMA" if name in EIGHT_BITS else "HGMMA"
            assert all(any(i.startswith(word) for i in found) for word in (unit, "LDGSTS")), f"no {unit} or copy: {sorted(set(found))}"
        if name in ALIGNED:
            assert any(i.startswith("LDG") and i.endswith(".128") for i in found), f"no 16-byte loads: {sorted(set(found))}"
            assert any(i.startswith("STG") and i.endswith(".128") for i in found), f"no 16-byte stores: {sorted(set(found))}"
