"""The native call: checks, memory, aliasing, kept outputs, threads; no leak and no lost reference."""

from __future__ import annotations

import gc
import re
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager.autograd.grad_mode import no_grad
from eager.base.spec import fake_like
from inductor import _native
from inductor.artifact import format as artifact_format
from inductor.artifact.format import (
    Allocation,
    ArtifactPlan,
    BufferView,
    Check,
    Constant,
    ConstantAlias,
    ExternCall,
    InputAlias,
    Literal,
    NativeSegment,
    NewOutput,
    Pack,
    Spec,
    ViewOf,
)
from tests.inductor.helpers_runtime import PRELUDE, affine_plan, affine_source, make, spec

ROOT = Path(__file__).resolve().parents[2]


def affine(folder: Path, n: int = 8, **options: Any) -> Any:
    return make(folder, affine_plan(n), [affine_source(n)], **options)


def values(t: Any) -> Any:
    return np.array(t.tolist())


# --------------------------------------------------------------------------- the ABI


def _structs(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text).replace(" *", "*").replace("* ", "*")


def test_header_declares_the_abi_that_generated_code_is_given() -> None:
    header = (ROOT / "eager/native/runtime/runtime.h").read_text()
    declared = _structs(header)
    for struct in re.findall(
        r"(?:typedef struct \{.*?\} GemmCall;|struct Runtime \{.*?\};)", _structs(artifact_format.RUNTIME_ABI)
    ):
        assert struct in declared
    assert _native.abi_version == artifact_format.ABI_VERSION


# --------------------------------------------------------------------------- inputs


def test_call_computes_what_the_segment_says(tmp_path: Path) -> None:
    (y,) = affine(tmp_path)(eager.arange(8, dtype=eager.float32))
    assert y.tolist() == [2.0 * i + 1 for i in range(8)]
    assert type(y) is eager.Tensor and y.dtype is eager.float32 and not y.requires_grad


def test_single_output_comes_bare(tmp_path: Path) -> None:
    assert affine(tmp_path, single=True)(eager.ones(8)).tolist() == [3.0] * 8


@pytest.mark.parametrize(
    "argument, error, text",
    [
        (lambda: 3, TypeError, "input 0 is a int; allowed: a tensor"),
        (lambda: np.ones(8, np.float32), TypeError, "ndarray"),
        (lambda: eager.ones(9), RuntimeError, r"shape \(9,\).*compiled for.*shape \(8,\)"),
        (lambda: eager.ones(8, dtype=eager.float64), RuntimeError, "dtype code 9"),
        (lambda: eager.ones(16)[::2], RuntimeError, r"strides \(2,\)"),
        (lambda: eager.ones(8, 1), RuntimeError, r"shape \(8, 1\)"),
        (lambda: fake_like(eager.ones(8)), RuntimeError, "fake tensor"),
    ],
)
def test_input_of_another_layout_is_refused(tmp_path: Path, argument: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        affine(tmp_path)(argument())


def test_wrong_number_of_inputs_and_keywords_are_refused(tmp_path: Path) -> None:
    graph = affine(tmp_path)
    with pytest.raises(TypeError, match="called with 2 tensors; this graph takes 1"):
        graph(eager.ones(8), eager.ones(8))
    with pytest.raises(TypeError, match="keyword"):
        graph(x=eager.ones(8))


def test_stride_of_a_dim_of_size_one_does_not_matter(tmp_path: Path) -> None:
    plan = ArtifactPlan((spec(1, 8),), (NewOutput(0, spec(8)),), (Allocation(32),), steps=(NativeSegment("segment"),))
    graph = make(tmp_path, plan, [affine_source(8)])
    odd = eager.ones(8).as_strided((1, 8), (3, 1))
    assert graph(odd)[0].tolist() == [3.0] * 8


def test_offset_of_a_view_is_respected(tmp_path: Path) -> None:
    x = eager.arange(20, dtype=eager.float32)
    assert affine(tmp_path)(x[5:13])[0].tolist() == [2.0 * i + 1 for i in range(5, 13)]


def test_empty_tensors_run(tmp_path: Path) -> None:
    graph = make(tmp_path, affine_plan(0), [affine_source(0)])
    assert graph(eager.ones(0))[0].shape == (0,)


def test_parameter_input_is_taken_with_its_flags(tmp_path: Path) -> None:
    x = eager.ones(8, requires_grad=True)
    (y,) = affine(tmp_path)(x)
    assert not y.requires_grad and x.requires_grad  # history is the business of the wrapper around


# --------------------------------------------------------------------------- outputs


def test_outputs_follow_the_laid_down_strides_and_share_what_the_plan_says(tmp_path: Path) -> None:
    columns = Spec((2, 3), (1, 2), "float32")
    plan = ArtifactPlan(
        inputs=(spec(6),),
        outputs=(
            NewOutput(0, columns),
            ViewOf("output", 0, spec(2), 2),
            InputAlias(0),
            ViewOf("input", 0, spec(3), 1),
            ConstantAlias(0),
            ViewOf("constant", 0, spec(1), 1),
            Literal(None),
            Literal(2.5),
        ),
        allocations=(Allocation(24),),
        constants=(Constant("c", spec(2)),),
        steps=(NativeSegment("segment"),),
    )
    x, c = eager.arange(6, dtype=eager.float32), eager.tensor([7.0, 8.0])
    y, tail, same, part, constant, last, nothing, number = make(tmp_path, plan, [affine_source(6)], {"c": c})(x)
    assert y.shape == (2, 3) and y.stride() == (1, 2) and y.tolist() == [[1.0, 5.0, 9.0], [3.0, 7.0, 11.0]]
    assert tail.tolist() == [5.0, 7.0] and tail.untyped_storage() is y.untyped_storage()
    assert same is x and part.tolist() == [1.0, 2.0, 3.0] and part.untyped_storage() is x.untyped_storage()
    assert constant is c and last.tolist() == [8.0]
    assert nothing is None and number == 2.5


def test_view_of_an_offset_input_counts_from_the_input(tmp_path: Path) -> None:
    plan = ArtifactPlan((spec(4),), (ViewOf("input", 0, spec(2), 1),))
    graph = make(tmp_path, plan, "")
    assert graph(eager.arange(10, dtype=eager.float32)[3:7])[0].tolist() == [4.0, 5.0]


def test_written_inputs_have_their_version_bumped(tmp_path: Path) -> None:
    plan = ArtifactPlan((spec(4),), (), steps=(NativeSegment("segment"),), written_inputs=(0,))
    graph = make(tmp_path, plan, "EXPORT void segment(char **bufs, const Runtime *rt) { ((float *)bufs[0])[0] += 1; }")
    x = eager.zeros(4)
    before = x._version
    assert graph.writes_inputs and graph(x) == ()
    assert x._version == before + 1 and x.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_outputs_are_aligned(tmp_path: Path) -> None:
    graph = affine(tmp_path)
    held = [graph(eager.ones(8))[0] for _ in range(20)]
    assert all(y.data_ptr() % 64 == 0 for y in held)


# --------------------------------------------------------------------------- kept outputs (reduce-overhead)


def test_kept_output_is_reused_only_without_references(tmp_path: Path) -> None:
    graph = affine(tmp_path, single=True, keep_outputs=True)
    first = graph(eager.ones(8)).data_ptr()
    assert graph(eager.ones(8)).data_ptr() == first  # the first one was dropped: written again
    held = graph(eager.ones(8))
    other = graph(eager.zeros(8))
    assert held.tolist() == [3.0] * 8 and other.tolist() == [1.0] * 8
    assert held.data_ptr() != other.data_ptr()


HOLDERS = {
    "view": lambda y: y[2:],
    "storage": lambda y: y.untyped_storage(),
    "ndarray": lambda y: y.numpy(),
    "view of ndarray": lambda y: y.numpy()[1:],
    "memoryview": lambda y: memoryview(y.untyped_storage()),
    "detached": lambda y: y.detach(),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS.keys())
def test_kept_output_is_not_written_while_its_memory_can_be_seen(tmp_path: Path, hold: Any) -> None:
    graph = affine(tmp_path, single=True, keep_outputs=True)
    y = graph(eager.ones(8))
    address, holder = y.data_ptr(), hold(y)
    del y
    assert graph(eager.zeros(8)).data_ptr() != address
    if isinstance(holder, np.ndarray | eager.Tensor):
        assert set(np.asarray(holder).tolist()) == {3.0}


def test_weak_reference_to_a_kept_output_does_not_come_back_to_life(tmp_path: Path) -> None:
    graph = affine(tmp_path, single=True, keep_outputs=True)
    ref = weakref.ref(graph(eager.ones(8)))
    y = graph(eager.ones(8))
    assert ref() is None and y.tolist() == [3.0] * 8


def test_kept_output_with_user_state_is_not_handed_out_again(tmp_path: Path) -> None:
    graph = affine(tmp_path, single=True, keep_outputs=True)
    y = graph(eager.ones(8))
    y.note = "mine"
    del y
    assert not hasattr(graph(eager.ones(8)), "note")
    y = graph(eager.ones(8))
    y.requires_grad_(True)
    del y
    assert not graph(eager.ones(8)).requires_grad
    y = graph(eager.ones(8))
    y.add_(1)
    del y
    assert graph(eager.ones(8))._version == 0


def test_kept_outputs_that_share_memory_stay_apart_from_the_next_call(tmp_path: Path) -> None:
    plan = ArtifactPlan(
        (spec(8),), (NewOutput(0, spec(8)), ViewOf("output", 0, spec(4), 4)), (Allocation(32),),
        steps=(NativeSegment("segment"),),
    )  # fmt: skip
    graph = make(tmp_path, plan, [affine_source(8)], keep_outputs=True)
    tail = graph(eager.ones(8))[1]
    graph(eager.zeros(8))
    assert tail.tolist() == [3.0] * 4


# --------------------------------------------------------------------------- extern calls


def extern_plan(op: str, shape: tuple[int, ...], result: tuple[int, ...], *args: Any) -> ArtifactPlan:
    """segment into the arena, `op` from there into the output."""
    count = int(np.prod(shape))
    middle = BufferView(2, 64, spec(*shape))
    return ArtifactPlan(
        inputs=(spec(count),),
        outputs=(NewOutput(0, spec(*result)),),
        allocations=(Allocation(4 * int(np.prod(result))),),
        arena_bytes=64 + 4 * count,
        steps=(
            NativeSegment("segment"),
            ExternCall(op, (middle, *args), (BufferView(1, 0, spec(*result)),)),
        ),
    )


INTO_ARENA = """EXPORT void segment(char **bufs, const Runtime *rt) {
  const float *x = (const float *)bufs[0]; float *y = (float *)(bufs[2] + 64);
  for (long i = 0; i < %d; i++) y[i] = x[i] * 2; }"""


@pytest.mark.parametrize("op, args", [("sum", ((1,), False, None)), ("amax", ((0,), True)), ("exp", ())])
def test_extern_call_runs_the_eager_kernel_on_the_arena(tmp_path: Path, op: str, args: tuple[Any, ...]) -> None:
    x = eager.arange(12, dtype=eager.float32)
    want = eager.optable.table.OPS[op](eager.reshape(x * 2, (3, 4)), *args)
    graph = make(tmp_path, extern_plan(op, (3, 4), tuple(want.shape), *args), INTO_ARENA % 12)
    for _ in range(3):
        assert np.allclose(values(graph(x)[0]), values(want))


def test_error_in_an_extern_call_leaves_the_graph_usable_and_names_the_line(tmp_path: Path) -> None:
    plan = ArtifactPlan(
        inputs=(spec(3, 2), spec(1, dtype="int64")),
        outputs=(NewOutput(0, spec(1, 2)),),
        allocations=(Allocation(8),),
        steps=(
            ExternCall(
                "index_select",
                (BufferView(0, 0, spec(3, 2)), 0, BufferView(1, 0, spec(1, dtype="int64"))),
                (BufferView(2, 0, spec(1, 2)),),
                node=3,
            ),
        ),
    )
    graph = make(tmp_path, plan, "", lines={3: "model.py:41"})
    x = eager.arange(6, dtype=eager.float32).reshape(3, 2)
    with pytest.raises(Exception) as eager_error:
        eager.index_select(x, 0, eager.tensor([7]))
    with pytest.raises(type(eager_error.value)) as caught:
        graph(x, eager.tensor([7]))
    assert any("model.py:41" in note for note in caught.value.__notes__)
    assert graph(x, eager.tensor([1]))[0].tolist() == [[2.0, 3.0]]


def test_arena_seen_by_a_leaked_tensor_is_not_used_again(tmp_path: Path) -> None:
    graph = make(tmp_path, extern_plan("i0", (12,), (12,)), INTO_ARENA % 12)  # an op without a native kernel
    leaked: list[Any] = []
    op = eager.optable.table.OPS["i0"]
    original = type(op).execute

    def spy(self: Any, args: tuple[Any, ...]) -> Any:
        if self is op:
            leaked.append(args[0])
        return original(self, args)

    type(op).execute = spy  # type: ignore[method-assign]
    try:
        graph(eager.ones(12))
        seen = leaked[0].tolist()
        graph(eager.zeros(12))
    finally:
        type(op).execute = original  # type: ignore[method-assign]
    assert leaked[0].tolist() == seen == [2.0] * 12


# --------------------------------------------------------------------------- packed weights

PACKING = """
static long packs = 0;
EXPORT void pack(char **bufs, const Runtime *rt) {
  packs++; const float *s = (const float *)bufs[1]; float *t = (float *)bufs[3];
  for (int i = 0; i < 4; i++) t[i] = s[3 - i]; }
EXPORT void segment(char **bufs, const Runtime *rt) {
  const float *x = (const float *)bufs[0], *w = (const float *)bufs[3]; float *y = (float *)bufs[2];
  for (int i = 0; i < 4; i++) y[i] = x[i] + w[i];
  y[4] = packs; }"""


def packing(folder: Path) -> Any:
    plan = ArtifactPlan(
        (spec(4), spec(4)), (NewOutput(0, spec(5)),), (Allocation(20),), packs=(Pack("pack", (1,), 16),),
        steps=(NativeSegment("segment"),),
    )  # fmt: skip
    return make(folder, plan, PACKING, single=True)


def test_packed_weights_are_kept_while_the_weight_is_unchanged(tmp_path: Path) -> None:
    graph, x, w = packing(tmp_path), eager.zeros(4), eager.arange(4, dtype=eager.float32)
    counts = [graph(x, w).tolist()[4] for _ in range(5)]
    assert counts == [1, 2, 2, 2, 2]  # kept from the second time the same bytes are seen
    assert graph(x, w).tolist()[:4] == [3.0, 2.0, 1.0, 0.0]


def _set_data(w: Any) -> None:
    w.data = eager.full((4,), 5.0)


WRITES = {
    "in place": lambda w: w.fill_(5.0),
    "through a view": lambda w: w[:].fill_(5.0),
    "through detach()": lambda w: w.detach().fill_(5.0),
    "through .data": lambda w: w.data.fill_(5.0),
    "under no_grad": lambda w: no_grad()(lambda: w.copy_(eager.full((4,), 5.0)))(),
    ".data replaced": _set_data,
    "through numpy()": lambda w: w.detach().numpy().fill(5.0),
    "through the buffer": lambda w: memoryview(w.untyped_storage()).cast("B").cast("f").__setitem__(
        slice(None), memoryview(np.full(4, 5.0, np.float32))
    ),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_changed_weight_is_packed_again(tmp_path: Path, write: Any) -> None:
    graph, x, w = packing(tmp_path), eager.zeros(4), eager.arange(4, dtype=eager.float32)
    for _ in range(3):
        graph(x, w)
    write(w)
    assert graph(x, w).tolist()[:4] == [5.0] * 4


def test_ndarray_handed_out_earlier_is_seen_to_change_the_weight(tmp_path: Path) -> None:
    graph, x, w = packing(tmp_path), eager.zeros(4), eager.arange(4, dtype=eager.float32)
    array = w.numpy()
    for i in range(4):
        array[:] = float(i)
        assert graph(x, w).tolist()[:4] == [float(i)] * 4


def test_foreign_memory_is_packed_at_each_call(tmp_path: Path) -> None:
    graph, x, memory = packing(tmp_path), eager.zeros(4), np.zeros(4, np.float32)
    w = eager.from_numpy(memory)
    for i in range(4):
        memory[:] = float(i)
        assert graph(x, w).tolist()[:4] == [float(i)] * 4


def test_new_weight_at_the_address_of_a_freed_one_is_packed_again(tmp_path: Path) -> None:
    graph, x = packing(tmp_path), eager.zeros(4)
    addresses = set()
    for i in range(6):
        w = eager.full((4,), float(i))
        addresses.add(w.data_ptr())
        for _ in range(3):
            assert graph(x, w).tolist()[:4] == [float(i)] * 4
        del w
    assert len(addresses) < 6  # the allocator did give an address twice, or this test shows nothing


def test_release_drops_what_the_graph_keeps(tmp_path: Path) -> None:
    graph, x, w = packing(tmp_path), eager.zeros(4), eager.arange(4, dtype=eager.float32)
    for _ in range(3):
        graph(x, w)
    graph.release()
    assert graph(x, w).tolist() == [3.0, 2.0, 1.0, 0.0, 3.0]


# --------------------------------------------------------------------------- references


def _leaks(run: Any, rounds: int = 200) -> int:
    for _ in range(20):
        run()
    gc.collect()
    before = eager._native.memory_stats()["allocated_bytes"]
    blocks = sys.getallocatedblocks()
    for _ in range(rounds):
        run()
    gc.collect()
    after = eager._native.memory_stats()["allocated_bytes"]
    assert after == before
    return max(0, sys.getallocatedblocks() - blocks)


@pytest.mark.parametrize("keep", [False, True])
def test_calls_leak_neither_objects_nor_memory(tmp_path: Path, keep: bool) -> None:
    graph, x = affine(tmp_path, keep_outputs=keep), eager.ones(8)
    counts = sys.getrefcount(x), sys.getrefcount(graph)
    assert _leaks(lambda: graph(x)) < 20
    assert (sys.getrefcount(x), sys.getrefcount(graph)) == counts


def test_failed_calls_leak_nothing(tmp_path: Path) -> None:
    graph, x = affine(tmp_path), eager.ones(9)

    def run() -> None:
        with pytest.raises(RuntimeError):
            graph(x)

    assert _leaks(run, 50) < 100


def test_extern_calls_and_packs_leak_nothing(tmp_path: Path) -> None:
    extern, x = make(tmp_path, extern_plan("exp", (12,), (12,)), INTO_ARENA % 12), eager.ones(12)
    assert _leaks(lambda: extern(x)) < 20
    graph, small, w = packing(tmp_path), eager.zeros(4), eager.ones(4)
    assert _leaks(lambda: (graph(small, w), w.fill_(1.0))) < 20


def test_graph_frees_everything_it_holds(tmp_path: Path) -> None:
    constant = eager.ones(2)
    count = sys.getrefcount(constant)

    def run() -> None:
        plan = ArtifactPlan((), (ConstantAlias(0),), constants=(Constant("c", spec(2)),))
        make(tmp_path, plan, "", {"c": constant})()

    run()
    gc.collect()
    assert sys.getrefcount(constant) == count


def test_cycle_through_the_artifact_attribute_is_collected(tmp_path: Path) -> None:
    graph = affine(tmp_path)
    holder = type("Holder", (), {})()
    holder.graph, graph.artifact = graph, holder
    gone = weakref.ref(graph)
    del graph, holder
    gc.collect()
    assert gone() is None


def test_library_stays_open_while_a_graph_uses_it(tmp_path: Path) -> None:
    graph = affine(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    gc.collect()
    assert graph(eager.ones(8))[0].tolist() == [3.0] * 8


def test_source_of_the_prelude_is_c_and_cpp() -> None:
    assert "#include" not in PRELUDE


# --------------------------------------------------------------------------- checks on data


def test_failed_check_raises_what_the_plan_names_and_only_once(tmp_path: Path) -> None:
    source = """EXPORT void segment(char **bufs, const Runtime *rt) {
      float x = ((const float *)bufs[0])[0]; if (x < 0) rt->fail(rt, 1, (long)x); ((float *)bufs[1])[0] = x; }"""
    plan = ArtifactPlan(
        (spec(1),),
        (NewOutput(0, spec(1)),),
        (Allocation(4),),
        steps=(NativeSegment("segment"),),
        checks=(Check("ValueError", "never"), Check("IndexError", "index {} is out of bounds")),
    )
    graph = make(tmp_path, plan, source, single=True)
    for _ in range(3):
        with pytest.raises(IndexError, match=r"^index -7 is out of bounds$"):
            graph(eager.tensor([-7.0]))
        assert graph(eager.tensor([7.0])).tolist() == [7.0]

    def run() -> None:
        with pytest.raises(IndexError):
            graph(eager.tensor([-7.0]))

    assert _leaks(run, 50) < 100
