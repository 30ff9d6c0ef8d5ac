"""The emitted matrix products: every tile, edge, stride and epilogue against numpy; choices; packing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager.base import machine as host
from eager.base import settings
from inductor.artifact.format import Allocation, ArtifactPlan, NativeSegment, NewOutput, Pack, SourceUnit, Spec
from inductor.base import toolchain
from inductor.base.toolchain import build
from inductor.cpp import gemm
from inductor.cpp.gemm import GemmChoice, Request
from inductor.cpp.gemm_problem import REAL, GemmProblem, pack_function
from inductor.runtime import loader
from tests.inductor.helpers_cores import SCARCE, text_of
from tests.inductor.helpers_runtime import PRELUDE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gemm")


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    with settings.scope(cpu_threads=3):
        host.configure()
        yield
    host.configure()


def problem(
    m: int, n: int, k: int, batch: int = 1, dtype: str = "float32", ta: bool = False, tb: bool = False,
    pad: int = 0, one_b: bool = False,
) -> GemmProblem:  # fmt: skip
    """Row-major (or transposed) operands whose rows are `pad` elements longer than needed."""
    a = (1, m + pad) if ta else (k + pad, 1)
    b = (1, k + pad) if tb else (n + pad, 1)
    a_step = (k if ta else m) * ((m if ta else k) + pad)
    b_step = 0 if one_b else (n if tb else k) * ((k if tb else n) + pad)
    return GemmProblem(dtype, batch, m, n, k, a, b, n + pad, (a_step, b_step, m * (n + pad)))


def _laid_out(
    rng: Any, p: GemmProblem, batch: int, rows: int, columns: int, strides: tuple[int, int], step: int
) -> Any:
    """An eager tensor of normal numbers over (batch, rows, columns) with those strides."""
    size = (batch - 1) * step + (rows - 1) * strides[0] + (columns - 1) * strides[1] + 1 if rows and columns else 1
    memory = eager.tensor(rng.standard_normal(size).tolist(), dtype=getattr(eager, p.dtype))
    return memory.as_strided((batch, rows, columns), (step, *strides))


def run(
    folder: Path, p: GemmProblem, choice: GemmChoice, packed: bool = False, epilogue: str = "", tools: Any = None,
    spoil: tuple[int, int] | None = None, scratch: str = "", prologue: str = "",
) -> tuple[Any, Any]:  # fmt: skip
    """The template's result and numpy's. spoil: where a holds a NaN. scratch: "sometimes" or "never", if memory is scarce.

    epilogue, prologue: the text of functions `finish` and `prepare`, or "".
    """
    tools = tools or toolchain.toolchain()
    code = gemm.render(p, tools, choice, packed)
    real = REAL[p.dtype]
    functions = text_of(code, "finish" if epilogue else "", "prepare" if prologue else "")
    source = f"""{PRELUDE}{SCARCE if scratch else ""}{epilogue}{prologue}{functions}
EXPORT void segment(char **bufs, const Runtime *rt) {{
  {f"Runtime poor = scarce(rt, {scratch}); rt = &poor;" if scratch else ""}
  core::run((const {real} *)bufs[0], (const {real} *)bufs[{3 if packed else 1}], ({real} *)bufs[2], bufs, rt); }}
{pack_function("pack", "core", "bufs[1]", 3) if packed else ""}"""
    library = folder / f"{len(list(folder.iterdir()))}.so"
    build([SourceUnit("unit", source), code.unit], library, tools, folder / "objects")
    rng = np.random.default_rng(0)
    a = _laid_out(rng, p, p.batch, p.m, p.k, p.a_strides, p.batch_strides[0])
    b = _laid_out(rng, p, p.batch, p.k, p.n, p.b_strides, p.batch_strides[1])
    c_step = p.batch_strides[2]
    if spoil is not None:
        a._array[0, spoil[0], spoil[1]] = np.nan
    out = Spec((p.batch, p.m, p.n), (c_step, p.ldc, 1), p.dtype)
    item = {"float32": 4, "float64": 8}[p.dtype]
    plan = ArtifactPlan(
        (Spec(tuple(a.shape), a.stride(), p.dtype), Spec(tuple(b.shape), b.stride(), p.dtype)),
        (NewOutput(0, out),), (Allocation(p.batch * c_step * item),),
        packs=(Pack("pack", (1,), code.packed_bytes),) if packed else (),
        steps=(NativeSegment("segment", 10**6),),
    )  # fmt: skip
    y = loader.load(plan, library, {}, name="gemm", single=True)(a, b)
    return y._array.copy(), a._array @ b._array


def template(p: GemmProblem, rows: int, vectors: int, **changes: Any) -> GemmChoice:
    fields = {"mc": rows * 8, "nc": 512, "kc": 512, "direct": False, "a_direct": False, **changes}
    return GemmChoice("template", rows, vectors, **fields)


def default(p: GemmProblem, packed: bool = False) -> GemmChoice:
    return gemm.choose(Request(p, packed), toolchain.toolchain(), has_blas=False)


def close(pair: tuple[Any, Any]) -> bool:
    y, want = pair
    tolerance = 1e-4 if y.dtype == np.float32 else 1e-11
    return bool(np.allclose(y, want, rtol=tolerance, atol=tolerance * max(1.0, np.abs(want).max(initial=0.0))))


TILES = gemm._TILES[toolchain.toolchain().simd_bits]


@pytest.mark.parametrize("rows, vectors", TILES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_tile_computes_every_remainder(folder: Path, rows: int, vectors: int, dtype: str) -> None:
    lanes = toolchain.toolchain().simd_bits // 8 // (4 if dtype == "float32" else 8)
    for m in (1, rows - 1, rows, rows + 1, 2 * rows + 3):
        n = vectors * lanes * 2 + (m * 5) % (vectors * lanes)
        p = problem(m, n, 37, dtype=dtype)
        assert close(run(folder, p, template(p, rows, vectors))), (m, n)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("of_b", ["packed before", "packed", "packed by block"])
@pytest.mark.parametrize("a_direct", [False, True])
def test_transposed_operands_and_row_padding(folder: Path, ta: bool, tb: bool, of_b: str, a_direct: bool) -> None:
    for pad, kc in ((0, 512), (3, 19)):
        p = problem(33, 70, 45, ta=ta, tb=tb, pad=pad)
        choice = template(p, *TILES[0], a_direct=a_direct, by_block=of_b == "packed by block", kc=kc)
        assert close(run(folder, p, choice, of_b == "packed before"))


@pytest.mark.parametrize("blocks", [(14, 64, 16), (28, 32, 7), (1000, 1000, 1000), (14, 96, 100), (9, 50, 33)])
@pytest.mark.parametrize("packed", [False, True])
def test_any_blocking_gives_the_same_result(folder: Path, blocks: tuple[int, int, int], packed: bool) -> None:
    mc, nc, kc = blocks
    p = problem(150, 130, 100)
    assert close(run(folder, p, template(p, *TILES[0], mc=mc, nc=nc, kc=kc), packed))


@pytest.mark.parametrize("n", [5, 32, 40, 96])
def test_direct_b_is_read_in_place_up_to_its_edge(folder: Path, n: int) -> None:
    p = problem(20, n, 50, pad=2)
    assert close(run(folder, p, template(p, *TILES[0], direct=True)))


@pytest.mark.parametrize(
    "batch, one_b, packed", [(6, False, False), (6, True, False), (6, True, True), (50, False, False)]
)
@pytest.mark.parametrize("direct", [False, True])
def test_batches_of_products(folder: Path, batch: int, one_b: bool, packed: bool, direct: bool) -> None:
    p = problem(17, 35, 24, batch=batch, one_b=one_b)
    assert close(run(folder, p, template(p, *TILES[0], direct=direct), packed))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 40, 0), (1, 300, 200), (300, 1, 200), (257, 129, 513), (64, 2000, 64)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_default_choice_agrees_with_numpy(folder: Path, shape: tuple[int, int, int], packed: bool) -> None:
    p = problem(*shape)
    assert close(run(folder, p, default(p, packed), packed))


EPILOGUE = """
static float seen[1 << 17];
static void finish(char **bufs, void *, long batch, long i0, long i1, long j0, long j1) {
  float *c = (float *)bufs[2];
  for (long i = i0; i < i1; i++) for (long j = j0; j < j1; j++) {
    long at = batch * %(step)d + i * %(ldc)d + j; c[at] += 1000 * ++seen[at] + 10 * batch; } }"""


@pytest.mark.parametrize("shape, batch", [((200, 150, 90), 1), ((30, 70, 16), 5), ((3, 4, 0), 1)])
def test_epilogue_sees_every_element_once_after_it_is_complete(
    folder: Path, shape: tuple[int, int, int], batch: int
) -> None:
    p = problem(*shape, batch=batch)
    source = EPILOGUE % {"step": p.batch_strides[2], "ldc": p.ldc}
    y, want = run(folder, p, template(p, *TILES[0], mc=28, nc=64, kc=40), epilogue=source)
    want = want + 1000 + 10 * np.arange(batch)[:, None, None]
    assert np.allclose(y, want, atol=1e-2)


@pytest.mark.parametrize("scratch", ["sometimes", "never"])
@pytest.mark.parametrize(
    "shape, batch, changes", [((200, 150, 90), 1, {}), ((60, 70, 90), 3, {"by_block": True}), ((9, 40, 9000), 1, {"direct": True})]
)
def test_a_task_without_scratch_memory_computes_its_block_once(
    folder: Path, shape: tuple[int, int, int], batch: int, changes: dict[str, Any], scratch: str, three_threads: None
) -> None:
    p = problem(*shape, batch=batch)
    source = EPILOGUE % {"step": p.batch_strides[2], "ldc": p.ldc}
    y, want = run(folder, p, template(p, *TILES[0], mc=28, nc=64, kc=40, **changes), epilogue=source, scratch=scratch)
    want = want + 1000 + 10 * np.arange(batch)[:, None, None]
    assert np.allclose(y, want, atol=1e-2)


@pytest.fixture
def three_threads() -> Iterator[None]:
    with settings.scope(cpu_threads=3):
        yield
    host.configure()


@pytest.mark.parametrize("by_block", [False, True])
def test_threads_share_a_long_depth(folder: Path, by_block: bool, three_threads: None) -> None:
    p = problem(11, 40, 9000, tb=by_block, pad=4)
    source = EPILOGUE % {"step": p.batch_strides[2], "ldc": p.ldc}
    y, want = run(folder, p, template(p, *TILES[0], kc=64, direct=not by_block, by_block=by_block), epilogue=source)
    assert np.allclose(y, want + 1000, atol=1e-2)


@pytest.mark.parametrize("packed", [False, True])
def test_nan_stays_in_its_row_and_padding_adds_none(folder: Path, packed: bool) -> None:
    p = problem(5, 20, 9)  # 20 columns: the panel is padded with zeros, and 0 * nan is nan
    y, want = run(folder, p, template(p, *TILES[0]), packed, spoil=(2, 4))
    assert np.isnan(want[0, 2]).all() and np.isfinite(np.delete(want, 2, axis=1)).all()
    assert np.allclose(y, want, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64"])
def test_narrower_instruction_sets_compute_the_same(folder: Path, march: str) -> None:
    if "__SSE4_2__" not in toolchain.toolchain().isa:
        pytest.skip("not an x86 CPU")
    with settings.scope(cpu_march=march):
        tools = toolchain.toolchain()
        for rows, vectors in gemm._TILES[tools.simd_bits]:
            p = problem(rows + 2, 50, 33)
            code = gemm.render(p, tools, template(p, rows, vectors, nc=gemm_columns(p, tools, vectors)), False)
            assert f"_{tools.simd_bits}" in code.unit.name
            assert close(run(folder, p, template(p, rows, vectors, nc=gemm_columns(p, tools, vectors)), tools=tools))


def gemm_columns(p: GemmProblem, tools: Any, vectors: int) -> int:
    return 4 * gemm.tile_of(template(p, 1, vectors), p, tools).columns


def test_core_is_the_same_text_for_every_problem_so_it_is_compiled_once() -> None:
    tools = toolchain.toolchain()
    one = gemm.render(problem(64, 64, 64), tools, template(problem(64, 64, 64), *TILES[0]), False)
    two = gemm.render(problem(9, 99, 9), tools, template(problem(9, 99, 9), *TILES[0], kc=3), True)
    assert one.unit == two.unit and one.unit.reusable


def test_emit_declines_where_blas_is_better_and_never_without_one() -> None:
    tools = toolchain.toolchain()
    few = problem(8, 2048, 2048, tb=True)
    assert gemm.emit(few, False, tools) is None
    assert gemm.emit(few, False, tools, has_blas=False) is not None
    assert gemm.emit(few, False, tools, packed=True) is not None
    odd = GemmProblem("float32", 1, 8, 2048, 2048, (4096, 2), (1, 2048), 2048)
    assert gemm.emit(odd, False, tools) is not None  # CBLAS cannot express a with a column stride of 2


def test_emit_refuses_what_no_core_computes() -> None:
    tools = toolchain.toolchain()
    with pytest.raises(ValueError, match="dtype int32; allowed: float32, float64"):
        gemm.emit(GemmProblem("int32", 1, 2, 2, 2, (2, 1), (2, 1), 2), False, tools)
    with pytest.raises(ValueError, match="packed"):
        gemm.emit(problem(8, 8, 8, batch=2), False, tools, packed=True)


def test_requests_can_be_collected_and_decided() -> None:
    tools, p = toolchain.toolchain(), problem(64, 64, 64)
    with gemm.collect() as seen:
        gemm.emit(p, False, tools)
        gemm.emit(p, False, tools)
        gemm.emit(p, False, tools, packed=True)
        gemm.emit(p, True, tools)
    assert seen == [Request(p, False), Request(p, True), Request(p, False, fused=True)]
    with gemm.decided({Request(p, False): GemmChoice("blas")}):
        assert gemm.emit(p, False, tools) is None
        assert gemm.emit(p, False, tools, packed=True) is not None


def test_candidates_are_distinct_and_start_with_the_rule_of_thumb() -> None:
    request, tools = Request(problem(64, 64, 64), False), toolchain.toolchain()
    found = gemm.candidates(request, tools, True)
    assert found[0] == gemm.rule_of_thumb(request, tools, True) and GemmChoice("blas") in found
    assert len(set(found)) == len(found) > 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("march", [None, "x86-64-v2", "x86-64-v3"])
def test_every_candidate_computes_the_product(folder: Path, dtype: str, packed: bool, march: str | None) -> None:
    """Several blocks of columns of every panel width: 1.5 blocks of 512, and a few columns more."""
    if march is not None and "__SSE4_2__" not in toolchain.toolchain().isa:
        pytest.skip("not an x86 CPU")
    with settings.scope(**({} if march is None else {"cpu_march": march})):
        tools = toolchain.toolchain()
        for tb in (False, True):
            p = problem(33, 777, 40, dtype=dtype, tb=tb)
            for choice in gemm.candidates(Request(p, packed), tools, has_blas=False):
                assert close(run(folder, p, choice, packed, tools=tools)), choice


@pytest.mark.parametrize("scratch", ["", "sometimes", "never"])
@pytest.mark.parametrize(("m", "n", "k", "batch", "packed"), [(530, 70, 96, 1, True), (75, 130, 1100, 1, False), (64, 33, 40, 3, False)])
def test_a_prologue_computes_blocks_of_an_operand(folder: Path, m: int, n: int, k: int, batch: int, packed: bool, scratch: str) -> None:
    p = problem(m, n, k, batch, pad=3)
    choice = gemm.rule_of_thumb(Request(p, packed, computed=True), toolchain.toolchain(), True)
    twice = f"""
static void prepare(char **args, void *a, long pitch, long batch, long i0, long i1, long k0, long k1) {{
  const float *from = (const float *)args[0] + batch * {p.batch_strides[0]};
  for (long i = i0; i < i1; i++)
    for (long k = k0; k < k1; k++) ((float *)a)[i * pitch + k] = 2 * from[i * {p.a_strides[0]} + k]; }}
"""
    got, want = run(folder, p, choice, packed, scratch=scratch, prologue=twice)
    assert choice.kernel == "template"
    np.testing.assert_allclose(got, 2 * want, rtol=1e-4, atol=1e-3)
