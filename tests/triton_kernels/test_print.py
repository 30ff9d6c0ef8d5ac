"""The Triton text of loops, without Triton: it parses, has the schedule's form, and a refusal states its reason."""
import ast
import re

import pytest

import eager as torch
from eager.base import dtypes
from eager.nn import functional as F
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.base.target import SM_90
from inductor.driver.cuda import Launch, lower_to_cuda
from inductor.driver.gpu_candidates import default_candidate
from inductor.ir import definitions as ir
from inductor.loops.apply import apply
from inductor.loops.build import build
from inductor.loops.steps import Blocks
from inductor.loops.tree import Kernel, Loop, values_of, walk
from inductor.plan.gpu_schedule import schedule_gpu
from inductor.triton.loops import print_kernel
from inductor.triton.values import Unprintable

from .graphs import GRAPHS, on_cuda, plan_of

F32, BF16, I64 = dtypes.float32, dtypes.bfloat16, dtypes.int64


def sources(name):
    fn, _, large = GRAPHS[name]
    return [k.source for k in plan_of(fn, large()).kernels]


@pytest.mark.parametrize("name", GRAPHS)
def test_every_kernel_parses_and_writes_its_outputs(name):
    fn, small, large = GRAPHS[name]
    for inputs in (small(), large()):
        for kernel in plan_of(fn, inputs).kernels:
            tree = ast.parse(kernel.source)
            assert kernel.name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
            assert kernel.outputs and set(kernel.outputs) <= set(kernel.pointers)
            assert "tl.store" in kernel.source or "tl.atomic_add" in kernel.source


def test_a_short_row_is_read_once_and_kept_in_registers():
    (source,) = sources("softmax")
    assert source.count("tl.load") == 1 and source.count("tl.store") == 1 and "for " not in source
    assert "tl.sum" in source and "tl.reduce" in source


def test_a_long_row_is_reduced_in_tiles_of_partial_results():
    (source,) = sources("softmax of long rows")
    assert len(re.findall(r"^    for ", source, re.MULTILINE)) == 3
    assert source.count("tl.reduce") + source.count("tl.sum") == 2  # after the loops, not inside of them
    assert not re.search(r"^        .*tl\.(reduce|sum)", source, re.MULTILINE)


def contiguous_loads(name):
    """Whether each load of an array of two axes or more is contiguous along an axis of tiles, for each kernel of a graph."""
    found = []

    def choose(loops, target, options):
        candidate = default_candidate(loops, target, options)
        tiles = {x.axis: x.extent for x in walk(candidate.kernel.body) if isinstance(x, Loop) and x.kind == "lanes" and x.extent >= 32}
        for load in {load for x in walk(candidate.kernel.body) for v in values_of(x) for load in ir.loads_in(v)}:
            if load.buffer in whole:
                steps, _ = E.strides_of(load.index, list(tiles))
                found.append(1 in [steps[axis].value for axis in tiles])
        return candidate

    fn, _, large = GRAPHS[name]
    inputs = large()
    whole = {f"in{k}" for k, x in enumerate(inputs) if min(x.shape) > 1}
    lower_to_cuda(trace(fn, [on_cuda(x) for x in inputs]), SM_90, choose=choose)
    return found


@pytest.mark.parametrize("name", ["sum of columns", "gradients of norm weights", "layer norm", "pointwise"])
def test_a_program_reads_contiguous_elements(name):
    found = contiguous_loads(name)
    assert found and all(found)


@pytest.mark.parametrize("name", ["heads joined", "channels last", "rows of a transposed image", "bias and gelu"])
def test_a_program_computes_one_whole_tile(name):
    fn, _, large = GRAPHS[name]
    (kernel,) = plan_of(fn, large()).kernels
    assert "for " not in kernel.source and kernel.tile == 1024


def test_rows_that_start_at_odd_positions_are_one_axis():
    (kernel,) = plan_of(lambda x, b: (x + b[:, None],), (torch.zeros(300, 4001), torch.zeros(300))).kernels
    assert kernel.grid == -(-300 * 4001 // 1024)


def test_a_product_is_converted_on_its_blocks_before_its_rows_are_reduced():
    fn, _, large = GRAPHS["softmax of a product"]
    product, rows = plan_of(fn, large()).kernels
    assert product.source.count("tl.dot") == 1 and [product.dtypes[product.pointers.index(n)] for n in product.outputs] == [BF16]
    assert product.outputs[0] in rows.pointers


def test_sums_over_rows_are_spread_over_programs_and_read_a_common_operand_once():
    fn, _, large = GRAPHS["gradients of norm weights"]
    parts, whole = plan_of(fn, large()).kernels
    assert parts.grid >= 2 * SM_90.cores and len(whole.outputs) == 2  # converted to the results' dtype as well
    assert parts.pointers.count("in0") == 1


def test_a_result_that_overwrites_an_input_is_stored_apart_from_the_sum_that_it_reads():
    def update(mean, x):
        y = x.sum(0)
        mean.mul_(0.9).add_(y)
        return (y * 2,)

    plan = plan_of(update, (torch.zeros(96), torch.zeros(640, 96)))
    assert all(isinstance(s, Launch) for s in plan.steps) and "in0" in plan.steps[-1].arguments


def test_a_sum_of_elements_on_different_pages_is_spread_over_programs():
    fn, _, large = GRAPHS["sum of one element of each row"]
    parts, whole = plan_of(fn, large()).kernels
    assert parts.grid >= SM_90.cores - 4 and parts.tile == 64 and whole.grid == 1


def test_a_short_sum_of_everything_is_one_kernel():
    (kernel,) = plan_of(lambda x: (x.sum(),), (torch.zeros(8192),)).kernels
    assert kernel.grid == 1


def test_a_sum_of_everything_has_a_program_for_each_multiprocessor():
    parts, _ = plan_of(lambda x: (x.sum(),), (torch.zeros(2_400_000),)).kernels
    assert parts.grid >= SM_90.cores


def test_sums_of_float32_are_accumulated_in_float64():
    for name in ("sum of columns", "sum of everything", "layer norm"):
        assert "tl.float64" in sources(name)[0]


def test_a_whole_tile_is_not_masked():
    (source,) = sources("pointwise")
    assert "<" not in source.split("def kernel_0")[1]


def test_a_transposed_operand_is_read_in_tiles_of_two_axes():
    (source,) = sources("transposed operand")
    assert "[:, None]" in source and "[None, :]" in source


def test_a_linear_layer_is_one_kernel_of_products_of_tiles():
    fn, _, large = GRAPHS["half precision linear"]
    (kernel,) = plan_of(fn, large()).kernels
    assert kernel.source.count("tl.dot") == 1 and kernel.source.count("tl.store") == 1
    assert "input_precision" not in kernel.source and kernel.num_stages == 3


@pytest.mark.parametrize("name", ["deep product", "gradient of a filter"])
def test_a_deep_product_with_few_blocks_is_added_up_in_parts(name):
    fn, _, large = GRAPHS[name]
    kernels = plan_of(fn, large()).kernels
    (parts,) = [k for k in kernels if "tl.dot" in k.source]
    assert parts.source.count("tl.dot") == 1 and 64 <= parts.grid <= 2 * SM_90.cores
    assert parts is not kernels[-1]


def test_a_product_with_enough_blocks_is_whole():
    assert len(sources("half precision linear")) == 1


@pytest.mark.parametrize("name", ["convolution", "convolutions, channels first"])
def test_a_loop_over_taps_moves_pointers_by_scalars(name):
    loops = [part.split("tl.dot")[0] for source in sources(name) for part in source.split("for ")[1:]]
    assert loops
    for loop in loops:
        assert len(re.findall(r"tl\.load\(\(p\d \+ \(.*?\)\) \+ \(t\d+\)", loop)) == 2, loop
        assert not re.search(r"x\d+ .*//|x\d+\) *%", loop), loop  # divisions of the positions of a tile come before it


def test_windows_on_few_channels_have_no_masks():
    first, *_ = [s for s in sources("convolutions, channels first") if "tl.dot" in s]
    loop = first.split("for ")[1].split("tl.dot")[0]
    assert "other=0" not in loop and "tl.where" not in loop


def test_small_kernels_that_read_inputs_alone_are_one_launch():
    fn, _, large = GRAPHS["convolutions, channels first"]
    plan = plan_of(fn, large())
    group = [k for k in plan.kernels if "part_1" in k.source]
    assert len(group) == 1 and len(plan.steps) == len(plan.kernels) == 3  # and two products
    assert len(group[0].outputs) == 5 and len(group[0].pointers) == 10  # the image, two weights, two scales


def test_a_product_that_another_kernel_reads_is_stored_converted():
    plan = plan_of(lambda x, y, z: (F.relu(x @ y) + x @ z,), [torch.zeros(512, 512, dtype=torch.bfloat16)] * 3)
    first, second = plan.kernels
    assert "tl.dot" in first.source and "tl.dot" in second.source
    assert set(first.dtypes) == set(second.dtypes) == {BF16}


def test_operands_are_converted_inside_of_a_product_if_both_are():
    both = plan_of(lambda x, y: (x.float() @ y.float(),), [torch.zeros(512, 512, dtype=torch.bfloat16)] * 2)
    (product,) = both.kernels
    assert [product.dtypes[product.pointers.index(n)] for n in ("in0", "in1")] == [BF16, BF16]
    one = plan_of(lambda x, y: (x @ y.float(),), [torch.zeros(512, 512), torch.zeros(512, 512, dtype=torch.bfloat16)])
    convert, product = one.kernels
    assert "tl.dot" not in convert.source and "tl.dot" in product.source and BF16 not in product.dtypes


def test_products_read_unaligned_rows_from_an_aligned_copy_without_masks():
    copy, left, right = sources("products of unaligned rows")
    assert "tl.dot" not in copy and "5001" not in right.split("for ")[1].split("tl.dot")[0]
    loop, last = left.split("for ")[1].split("tl.dot")[:2]
    assert "5056*" in left and "other=0" not in loop  # rows of a multiple of 64 numbers
    assert "other=0" in last


def test_gradients_of_a_product_of_transposed_halves_multiply_halves():
    def gradients(x, w, g):
        x, w = (t.detach().requires_grad_() for t in (x, w))
        return torch.autograd.grad(F.linear(x.transpose(1, 2), w), [x, w], g)

    inputs = tuple(torch.zeros(s, dtype=torch.bfloat16) for s in ((8, 64, 128), (96, 64), (8, 128, 96)))
    kernels = [k for k in plan_of(gradients, inputs).kernels if "tl.dot" in k.source]
    assert len(kernels) == 2
    for k in kernels:
        assert "float32" not in k.source.split("for ")[1].split("tl.dot")[0], k.source


def test_small_products_of_one_operand_run_side_by_side():
    def projections(x, *weights):
        return tuple(F.linear(x, w) for w in weights)

    inputs = tuple(torch.zeros(s, dtype=torch.bfloat16) for s in ((128, 768), *[(768, 768)] * 3))
    (kernel,) = plan_of(projections, inputs).kernels
    assert kernel.grid == 72 and len(kernel.pointers) == 7


def test_programs_of_blocks_are_grouped_where_the_last_block_is_not_whole():
    fn, _, large = GRAPHS["product into unaligned rows"]
    (kernel,) = plan_of(fn, large()).kernels
    assert "pid % (8)" in kernel.source and kernel.tile == 128 * 128  # no registers for addresses of more elements


def test_a_product_with_one_row_is_a_reduction():
    assert "tl.dot" not in sources("product with one row")[0]


def test_rows_whose_results_lie_in_another_order_are_programs():
    row, column, depth = ir.axis(1, 2), ir.axis(0, 32), ir.reduced_axis(0, 2)
    d = ir.Contraction((32, 2), (2,), ("column", "row"), ir.load("x", 2 * depth + row, F32), ir.load("y", 32 * depth + column, F32))
    plain = build([ir.Buffer("z", ir.row_major((32, 2), F32), d)], {"x": F32, "y": F32})
    (kernel,) = print_kernel(schedule_gpu(plain)[0], "kernel").kernels
    assert kernel.grid == 64 and "for " not in kernel.source


def test_a_product_of_float64_is_a_reduction():
    fn, _, large = GRAPHS["batched product"]
    (kernel,) = plan_of(fn, tuple(t.double() for t in large())).kernels
    assert "tl.dot" not in kernel.source and "tl.sum" in kernel.source


def test_tiles_of_float64_are_refused():
    ranges = (32, 32)
    a, b = (ir.load(n, ir.linear_position(ranges, at), dtypes.float64)
            for n, at in (("x", (ir.axis(0, 32), ir.reduced_axis(0, 32))), ("y", (ir.reduced_axis(0, 32), ir.axis(1, 32)))))  # fmt: skip
    d = ir.Contraction(ranges, (32,), ("row", "column"), a, b)
    plain = build([ir.Buffer("z", ir.row_major(ranges, dtypes.float64), d)], {"x": dtypes.float64, "y": dtypes.float64})
    made = apply(plain, (Blocks("z", 16, 16, 16),))
    assert isinstance(made, Kernel)
    with pytest.raises(Unprintable, match="no product of tiles of float64"):
        print_kernel(made, "kernel")


def test_a_running_sum_is_a_scan_with_a_carry():
    (source,) = sources("running sum")
    assert "tl.associative_scan" in source and "for " in source


def test_additions_by_index_are_atomic():
    assert any("tl.atomic_add" in s for s in sources("added by index"))


def test_writes_by_index_keep_their_order():
    at = ir.load("k", ir.axis(0, 8), I64)
    (s,) = [ir.counter("s", 5)]
    d = ir.Scatter((8,), "t", s, ((s, at),), ir.load("x", ir.axis(0, 8), F32), "set")
    plain = build([ir.Buffer("y", ir.row_major((5,), F32), d)], {"k": I64, "x": F32, "t": F32})
    (kernel,) = print_kernel(schedule_gpu(plain)[0], "kernel").kernels
    assert kernel.grid == 1 and "for " in kernel.source and "tl.arange" not in kernel.source


def test_whole_quotients_of_float32_are_divided_exactly():
    """A GPU's `/` is off by up to two units of rounding: 16777213 // 3 could be 5592403 in place of 5592404."""
    (kernel,) = plan_of(lambda x, y: (torch.floor_divide(x, y),), (torch.zeros(64), torch.ones(64))).kernels
    assert kernel.source.count("tl.div_rn(") == 2 and "fj_floordiv_f(" not in kernel.source
    (wide,) = plan_of(lambda x, y: (torch.floor_divide(x, y),), (torch.zeros(64).double(), torch.ones(64).double())).kernels
    assert "fj_floordiv_f(" in wide.source and "tl.div_rn(" not in wide.source  # `/` of float64 is exact


def test_index_checks_mask_the_lookup():
    (source,) = sources("gather")
    assert "fj_check(checks, 0, " in source and ", checks):" in source


def test_equal_kernels_are_printed_once():
    def fn(x, y):
        return x.exp() + 1, y.exp() + 1

    plan = plan_of(fn, (GRAPHS["pointwise"][2]()))
    launches = [s for s in plan.steps if hasattr(s, "kernel")]
    assert len(plan.kernels) <= len(launches)


def test_a_dtype_without_a_triton_type_is_refused():
    of = dtypes.complex64
    d = ir.Pointwise((8,), ir.load("x", ir.axis(0, 8), of))
    plain = build([ir.Buffer("y", ir.row_major((8,), of), d)], {"x": of})
    with pytest.raises(Unprintable, match="no type for complex64; allowed: "):
        print_kernel(schedule_gpu(plain)[0], "kernel")


def test_positions_beyond_31_bits_are_int64():
    n = 1 << 32
    d = ir.Pointwise((n,), ir.load("x", ir.axis(0, n), F32))
    plain = build([ir.Buffer("y", ir.row_major((n,), F32), d)], {"x": F32})
    (kernel,) = print_kernel(schedule_gpu(plain)[0], "kernel").kernels
    assert "tl.program_id(0).to(tl.int64)" in kernel.source
