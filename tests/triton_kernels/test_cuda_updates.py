"""Overwritten inputs in plans for CUDA: launches, copies and memory. No GPU and no Triton are needed."""
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from fxir.region.aot import aot_compile
from inductor.driver.cuda import Call, CudaPlan, Launch, Upload, lower_to_cuda
from inductor.plan.launch_groups import Effect, launch_groups
from inductor.triton.combined import MOST_POINTERS
from tests.fxir.helpers import capture

from .graphs import GRAPHS, on_cuda, plan_of


def plan_of_update(fn: Callable[..., Any], *inputs: torch.Tensor) -> CudaPlan:
    """The plan of a program, which overwrites inputs, for CUDA tensors like `inputs`; those without dims stay on the CPU."""
    found: list[CudaPlan] = []

    def keep(graph: Any, *rest: Any) -> Callable[..., Any]:
        found.append(lower_to_cuda(graph))
        return lambda *args: ()

    aot_compile(capture(fn, len(inputs)), [on_cuda(t) if t.ndim else t for t in inputs], keep)
    return found[0]


def stored(plan: CudaPlan, step: Launch) -> set[str]:
    """The buffers that a launch writes."""
    kernel = plan.kernels[step.kernel]
    return {a for a, pointer in zip(step.arguments, kernel.pointers, strict=True) if pointer in kernel.outputs}


def adam(p: Any, g: Any, m: Any, v: Any) -> None:
    m.lerp_(g, 0.1)
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    p.addcdiv_(m, v.sqrt() + 1e-8, value=-0.1)


def both(p: Any, g: Any) -> None:
    p.mul_(2)
    g.add_(p)


def swapped(p: Any, g: Any) -> None:
    kept = p.clone()
    p.copy_(g)
    g.copy_(kept)


IN_PLACE: dict[str, tuple[Callable[..., Any], int]] = {
    "sum": (lambda p, g: p.add_(g), 2),
    "two inputs": (both, 2),
    "adam": (adam, 4),
    "with a result": (lambda p, g: (p.add_(g), g * 3), 2),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_pointwise_update_is_one_launch_into_its_inputs(name: str) -> None:
    fn, n = IN_PLACE[name]
    plan = plan_of_update(fn, *(torch.zeros(6, 50) for _ in range(n)))
    (step,) = plan.steps
    assert isinstance(step, Launch) and plan.arena_bytes == 0 and plan.program.writes
    assert {w.input for w in plan.program.writes} <= stored(plan, step) and len(set(step.arguments)) == len(step.arguments)


def test_optimizers_of_many_parameters_copy_nothing() -> None:
    def update(*tensors: Any) -> None:
        for k in range(0, len(tensors), 4):
            adam(*tensors[k : k + 4])

    shapes = ((8, 9), (9,), (4, 8), (4,))
    plan = plan_of_update(update, *(torch.zeros(shape) for shape in shapes for _ in range(4)))
    assert len(plan.steps) <= len(shapes) and all(isinstance(s, Launch) for s in plan.steps) and plan.arena_bytes == 0


SCATTERED: dict[str, tuple[Callable[..., Any], int]] = {
    "added rows": (lambda p, g, i: p.index_add_(0, i, g), 1),
    "replaced rows": (lambda p, g, i: p.index_put_((i,), g), 1),
    "after a product with a number": (lambda p, g, i: p.mul_(2).index_add_(0, i, g), 2),
    "twice": (lambda p, g, i: p.index_add_(0, i, g).index_add_(0, i, g * 2), 2),
    "after a read": (lambda p, g, i: (p.sum(0), p.index_add_(0, i, g))[0], 3),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_rows_of_an_input_are_changed_in_its_memory(name: str) -> None:
    """The launches that check the positions come first."""
    fn, count = SCATTERED[name]
    plan = plan_of_update(fn, torch.zeros(600, 5), torch.zeros(3, 5), torch.zeros(3, dtype=torch.int64))
    steps = [s for s in plan.steps if not (isinstance(s, Launch) and s.title.startswith("check"))]
    assert all(isinstance(s, Launch) for s in steps) and len(steps) == count
    assert isinstance(steps[-1], Launch) and stored(plan, steps[-1]) >= {"in0"} and plan.arena_bytes < 600


COPIED: dict[str, Callable[..., Any]] = {
    "other elements": lambda p, g: p.copy_(p.t() + g),
    "swapped": swapped,
    "a reduction": lambda p, g: p.copy_(torch.softmax(p, -1)),
    "a product": lambda p, g: p.add_(g @ g),
}


@pytest.mark.parametrize("name", COPIED)
def test_other_updates_are_copied_at_the_end(name: str) -> None:
    plan = plan_of_update(COPIED[name], torch.zeros(6, 6), torch.zeros(6, 6))
    last = plan.steps[-1]
    assert len(plan.steps) > 1 and isinstance(last, Launch) and "copy" in last.title
    assert stored(plan, last) <= {w.input for w in plan.program.writes}


def test_a_call_that_may_fail_comes_before_the_update() -> None:
    plan = plan_of_update(lambda p, g: (torch.sort(g)[0], p.add_(g))[0], torch.zeros(6, 6), torch.zeros(6, 6))
    call, launch = plan.steps
    assert isinstance(call, Call) and isinstance(launch, Launch) and stored(plan, launch) == {"in0"}


def test_an_operand_on_the_host_is_uploaded_first() -> None:
    plan = plan_of_update(lambda p, s: p.mul_(s), torch.zeros(6), torch.tensor(2.0))
    upload, launch = plan.steps
    assert str(plan).count("of the host") == 1 and plan.memory["in1"].kind == "arena" and plan.arena_bytes == 128
    assert isinstance(upload, Upload) and upload.inputs == ("in1",)
    assert isinstance(launch, Launch) and set(launch.arguments) == {"in0", "in1"} and stored(plan, launch) == {"in0"}


def test_small_parameters_of_one_shape_are_updated_by_one_launch() -> None:
    def update(*tensors: Any) -> None:
        for k in range(0, len(tensors), 4):
            adam(*tensors[k : k + 4])

    shapes = ((768,), (96, 8), (64,)) * 5
    plan = plan_of_update(update, *(torch.zeros(shape) for shape in shapes for _ in range(4)))
    assert len(plan.steps) <= 3 and plan.arena_bytes == 0
    written = set().union(*(stored(plan, s) for s in plan.steps if isinstance(s, Launch)))
    assert {w.input for w in plan.program.writes} <= written


def test_a_launch_serves_a_bounded_number_of_parameters() -> None:
    fn, _, large = GRAPHS["updates of many parameters"]
    plan = plan_of(fn, large())
    assert sum(k.grid for k in plan.kernels) == 40 * (6 + 24) and len(plan.steps) <= 3
    assert all(len(k.pointers) <= MOST_POINTERS for k in plan.kernels)
    assert all(isinstance(s, Launch) and s.arguments.count("in0") == 1 for s in plan.steps)  # the shared operand


BUFFERS = st.frozensets(st.sampled_from("abcdef"), max_size=3)
EFFECTS = st.builds(lambda r, w, kind: Effect(r | w, w, kind, 3), BUFFERS, BUFFERS, st.sampled_from([None, 1, 2]))


@given(effects=st.lists(EFFECTS, max_size=12))
@settings(deadline=None, derandomize=True, database=None)
def test_grouped_launches_keep_the_order_of_steps_that_share_written_memory(effects: list[Effect]) -> None:
    groups = launch_groups(effects)
    assert sorted(n for group in groups for n in group) == list(range(len(effects)))
    at = {n: k for k, group in enumerate(groups) for n in group}
    for (i, first), (j, second) in itertools.combinations(enumerate(effects), 2):
        if first.written & second.touched or first.touched & second.written:
            assert at[i] < at[j]
        elif at[i] == at[j]:
            assert first.kind == second.kind is not None
    assert all(len(group) <= 3 for group in groups)


def test_equal_steps_without_an_order_are_one_group() -> None:
    effects = [Effect(frozenset((a, b)), frozenset(b), "k", 8) for a, b in ("ab", "cd", "ef")]
    assert launch_groups(effects) == [[0, 1, 2]]
    between = Effect(frozenset("dx"), frozenset("x"))
    assert launch_groups([*effects[:2], between, effects[2]]) == [[0, 1], [2], [3]]
