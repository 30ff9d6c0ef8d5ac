"""Plans of graphs on CUDA tensors: kernels, calls, memory, sizes. No GPU and no Triton are needed."""
import pytest

import eager as torch
from eager.nn import functional as F
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.driver.backend import KEPT
from inductor.driver.cuda import Call, Launch, lower_to_cuda
from tests.inductor.helpers_symbolic import symbolic_graph

from .attention_cases import Case, function_of, inputs_of
from .graphs import GRAPHS, all_on_cuda, on_cuda, plan_of


def test_a_plan_prints_its_launches_memory_and_sources():
    plan = plan_of(GRAPHS["softmax"][0], GRAPHS["softmax"][2]())
    text = str(plan)
    assert "plan for sm_90: 1 kernels, 1 steps, 0 bytes of arena" in text
    assert "kernel_0<<<512, 4 warps>>>(in0, " in text and "@triton.jit" in text
    assert plan.memory["in0"].kind == "input" and plan.memory["in0"].nbytes == 512 * 1000 * 4


def test_buffers_between_kernels_share_one_arena():
    def fn(x):
        a = x.cumsum(1)
        b = (a * 2).cumsum(1)
        return ((b * 2).cumsum(1),)

    plan = plan_of(fn, (torch.zeros(64, 256),))
    placed = {n: m for n, m in plan.memory.items() if m.kind == "arena"}
    assert len(placed) >= 2
    assert plan.arena_bytes < sum(m.nbytes for m in placed.values()) or len(placed) == 2


def test_an_op_without_loops_is_a_call_of_its_eager_kernel():
    plan = plan_of(lambda x: (torch.sort(x + 1).values * 2,), (torch.zeros(6, 50),))
    kinds = [type(s) for s in plan.steps]
    assert kinds == [Launch, Call, Launch]
    call = plan.steps[1]
    assert call.op == "sort" and call.results[0] in plan.steps[2].arguments


def test_a_scatter_works_in_the_memory_of_its_target():
    for name, readers in (("added by index", 0), ("halves added by index", 1)):  # sums of halves are float32 until they are read
        plan = plan_of(GRAPHS[name][0], GRAPHS[name][2]())
        fill, added, *rest = plan.steps
        assert fill.arguments[0] in added.arguments and all(isinstance(s, Launch) for s in plan.steps) and len(rest) == readers


def test_a_computed_operand_with_unaligned_rows_is_stored_once_in_aligned_rows():
    """As the gradient of the logits of an odd number of tokens, which two products read."""

    def fn(x, w, y):
        g = (F.gelu(x.float()) - x.sigmoid()).bfloat16()
        return g @ w, g.t() @ y

    shapes = (512, 1001), (1001, 256), (512, 256)
    plan = plan_of(fn, tuple(torch.zeros(*s, dtype=torch.bfloat16) for s in shapes))
    assert len(plan.steps) == 3 and [n.endswith("_rows") for n, m in plan.memory.items() if m.kind == "arena"] == [True]
    assert "// 1001" not in plan.kernels[0].source and "% 1001" not in plan.kernels[0].source


@pytest.mark.parametrize("name", GRAPHS)
def test_no_addition_of_a_deterministic_plan_is_atomic(name: str) -> None:
    fn, _, large = GRAPHS[name]
    plan = lower_to_cuda(trace(fn, all_on_cuda(large())), is_deterministic=True)
    assert not any("atomic" in k.source for k in plan.kernels)


def test_the_grid_of_a_symbolic_size_is_an_expression():
    plan = lower_to_cuda(symbolic_graph(lambda x: (torch.softmax(x * 2, -1),), ("m", 300)))
    (kernel,) = plan.kernels
    ((size, _),) = plan.symbols
    assert E.evaluate(kernel.grid, {size: 100}) == 100 and plan.memory["in0"].nbytes is E.mul(size, 1200)
    (flat,) = lower_to_cuda(symbolic_graph(lambda x: (x * 2,), ("m", 300))).kernels
    assert flat.sizes == (size.name,) and 0 < E.evaluate(flat.grid, {size: 100}) < 30000


def test_convolutions_and_linear_layers_have_a_plan():
    plan = plan_of(lambda x, w, b: (F.relu(F.linear(x, w, b)),), (torch.zeros(32, 64), torch.zeros(48, 64), torch.zeros(48)))
    assert plan.steps and plan.outputs


@pytest.mark.parametrize("name", [f"{kind}_layer{end}" for kind in ("lstm", "gru", "rnn") for end in ("", "_backward")])
def test_a_recurrent_layer_is_a_call_of_its_eager_kernel(name: str) -> None:
    args = next(iter(samples_of(name)))
    tensors = [a for a in args if isinstance(a, torch.Tensor)]

    def call(*given: torch.Tensor) -> object:
        rest = iter(given)
        return OPS[name](*(next(rest) if isinstance(a, torch.Tensor) else a for a in args))

    (step,) = plan_of(call, tuple(tensors)).steps
    assert isinstance(step, Call) and step.op == name


@pytest.mark.parametrize("p", [0.0, 0.1])
def test_attention_and_its_gradients_hold_no_scores_in_memory(p):
    case = Case((4, 4), (512, 512, 64, 64), True, dropout_p=p)
    graph = trace(function_of(case, True), [on_cuda(t) for t in inputs_of(case, torch.bfloat16, True)], KEPT)
    plan = lower_to_cuda(graph)
    kernels = [k for k in plan.kernels if "tl.dot" in k.source]
    assert [k.source.count("tl.dot") for k in kernels] == [4, 6, 8]  # in whole blocks and in blocks at the edge
    assert all(n.nbytes <= 2 * 4 * 512 * 64 * 4 for n in plan.memory.values())


def test_attention_that_a_program_writes_out_is_one_kernel():
    def fn(q, k, v):
        return (torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v,)

    (kernel,) = plan_of(fn, tuple(torch.zeros(2, 4, 256, 64) for _ in range(3))).kernels
    assert kernel.source.count("tl.dot") == 2
