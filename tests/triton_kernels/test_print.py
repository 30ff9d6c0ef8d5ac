"""The Triton text of a kernel, without Triton: it parses, names its buffers, and a definition without Triton form raises."""
import ast

import pytest

from eager.base import dtypes
from inductor.ir import definitions as ir
from inductor.triton.kernels import print_kernel

from . import programs


def test_every_case_prints_python_that_parses():
    for case in programs.cases():
        tree = ast.parse(case.kernel.source)
        names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert case.kernel.name in names
        assert set(case.kernel.outputs) <= set(case.kernel.pointers)


def test_softmax_reads_its_input_from_one_kernel():
    kernel = next(c.kernel for c in programs.cases() if c.name.startswith("softmax_5"))
    assert kernel.source.count("tl.store") == 1 and "tl.sum" in kernel.source and "fj_max" in kernel.source


def test_unsupported_definition_is_named():
    layout = ir.row_major((4,), dtypes.float32)
    scan = ir.Buffer("s", layout, ir.Scan((), 4, "sum", ir.load("x", ir.reduced_axis(0, 4), dtypes.float32)))
    with pytest.raises(NotImplementedError, match="Scan"):
        print_kernel("k", [scan], ["s"], {"x": layout, "s": layout})


def _kernel(name):
    return next(c.kernel for c in programs.cases() if c.name == name)


def test_another_element_of_a_member_is_recomputed():
    kernel = _kernel("flipped_30")
    assert "29 - " in kernel.source or "* -1 + 29" in kernel.source or "29 + " in kernel.source, kernel.source


def test_another_element_of_a_reduction_is_refused():
    row = ir.row_major((4,), dtypes.float32)
    full = ir.row_major((4, 8), dtypes.float32)
    at = ir.axis(0, 4) * 8 + ir.reduced_axis(0, 8)
    s = ir.Buffer("s", row, ir.Reduction((4,), (8,), "sum", ir.load("x", at, dtypes.float32)))
    y = ir.Buffer("y", row, ir.Pointwise((4,), ir.load("s", 3 - ir.axis(0, 4), dtypes.float32)))
    with pytest.raises(NotImplementedError, match=r"s is read at .* another program computes it"):
        print_kernel("k", [s, y], ["y"], {"x": full, "s": row, "y": row})


def test_index_checks_are_printed_and_positions_outside_are_not_read():
    kernel = _kernel("indexed_outside")
    assert kernel.pointers[-1] == "checks" and ("checks_ptr", "*i64") in kernel.signature
    assert kernel.source.count("tl.store(checks_ptr") == 2
    assert "checks_ptr" not in _kernel("flipped_30").source
