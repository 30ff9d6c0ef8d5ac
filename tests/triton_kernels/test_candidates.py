"""The schedules that a tuner times: the default first, all legal, within shared memory, and equal in their results."""
import pytest

from eager.base import dtypes
from inductor.base.target import SM_80, SM_90
from inductor.driver.gpu_candidates import candidates
from inductor.ir import definitions as ir
from inductor.loops.build import build
from inductor.plan.gpu_schedule import schedule_gpu

F32, BF16 = dtypes.float32, dtypes.bfloat16


def product(m, n, k, of=BF16):
    """The loops of a product of numbers of a dtype, added up in float32."""
    rows, columns, depth = ir.axis(0, m), ir.axis(1, n), ir.reduced_axis(0, k)
    a, b = (ir.cast(ir.load(name, ir.linear_position(shape, at), of), F32)
            for name, shape, at in (("x", (m, k), (rows, depth)), ("y", (k, n), (depth, columns))))  # fmt: skip
    d = ir.Contraction((m, n), (k,), ("row", "column"), a, b)
    return build([ir.Buffer("z", ir.row_major((m, n), F32), d)], {"x": of, "y": of})


def row_sums(rows, columns):
    value = ir.load("x", ir.linear_position((rows, columns), (ir.axis(0, rows), ir.reduced_axis(0, columns))), F32)
    d = ir.Reduction((rows,), (columns,), "sum", value)
    return build([ir.Buffer("y", ir.row_major((rows,), F32), d)], {"x": F32})


def doubled(n):
    read = ir.load("x", ir.axis(0, n), F32)
    return build([ir.Buffer("y", ir.row_major((n,), F32), ir.Pointwise((n,), ir.make_op("add", (read, read), F32)))], {"x": F32})


LOOPS = {
    "a large product": product(4096, 4096, 4096), "a product of few rows": product(16, 4096, 4096),
    "a product of float32": product(512, 512, 512, F32), "row sums": row_sums(4096, 9000), "pointwise": doubled(1 << 20),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("target", [SM_80, SM_90])
def test_the_default_comes_first_and_no_candidate_occurs_twice(name, target):
    found = candidates(LOOPS[name], target)
    assert found[0].steps == schedule_gpu(LOOPS[name], target)[1] and found[0].options.num_warps == 0
    assert len({str(c) for c in found}) == len(found) > 3


@pytest.mark.parametrize("name", LOOPS)
def test_every_candidate_prints_with_its_launch_parameters(name):
    for candidate in candidates(LOOPS[name])[1:]:
        for kernel in candidate.printed("kernel").kernels:
            assert kernel.num_warps == candidate.options.num_warps
            assert kernel.num_stages == (candidate.options.num_stages if "tl.dot" in kernel.source else 1)


def test_blocks_fit_the_shared_memory_of_the_target():
    small = {str(c) for c in candidates(LOOPS["a large product"], SM_80)[1:]}
    large = {str(c) for c in candidates(LOOPS["a large product"], SM_90)[1:]}
    assert any("z, 128, 256, 64" in c and "4 stages" in c for c in large)
    assert not any("z, 128, 256, 64" in c and "4 stages" in c for c in small)


def test_products_of_few_blocks_have_no_persistent_programs():
    assert not any(c.choice.resident for c in candidates(LOOPS["a product of few rows"]))
    assert not any("persistent" in str(c) for c in candidates(product(256, 256, 4096)))


def test_blocks_are_not_much_larger_than_the_product():
    assert all("blocks(z, 16, " in str(c) for c in candidates(LOOPS["a product of few rows"])[1:] if "blocks" in str(c))


def test_products_of_float32_are_exact_unless_a_lower_precision_is_allowed():
    for precision in ("ieee", "tf32"):
        for candidate in candidates(LOOPS["a product of float32"], SM_90, precision):
            (kernel,) = candidate.printed("kernel").kernels
            assert f"input_precision='{precision}'" in kernel.source


def test_neighbouring_programs_share_blocks_of_rows():
    (kernel,) = candidates(LOOPS["a large product"])[0].printed("kernel").kernels
    assert "% (8)" in kernel.source and kernel.grid == 512
