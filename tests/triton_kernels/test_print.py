"""The Triton text of a kernel, without Triton: it parses, names its buffers and says what it cannot print."""
import ast

import pytest

from eager import dtypes
from inductor import ir
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
