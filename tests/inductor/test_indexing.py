"""Reads and writes at positions held in tensors: values against eager, no extern call, and errors as eager raises them."""
import pytest

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.ir import definitions as ir
from inductor.lowering import lower

NATIVE = ("gather index_select embedding index scatter scatter_add index_add index_copy index_fill index_put diagonal_scatter "
          "as_strided_scatter constant_pad_nd roll").split()  # fmt: skip


def _compiled(fn, *inputs):
    return compile_graph(trace(fn, [fake_like(x) for x in inputs]), GraphKind.INFERENCE, CompileOptions())


def _program_of(op, args):
    """op as a function of its tensors alone, and the tensors."""
    tensors = [t for a in args for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]

    def fn(*given):
        left = iter(given)
        fill = lambda a: next(left) if isinstance(a, torch.Tensor) else a  # noqa: E731
        return (op(*([fill(t) for t in a] if isinstance(a, list) else fill(a) for a in args)),)

    return fn, tensors


@pytest.mark.parametrize("name", NATIVE)
def test_indexed_ops_run_natively_and_agree_with_eager(name):
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-5), (torch.bfloat16, 1e-2)):
        for args in samples_of(name, dtype):
            fn, tensors = _program_of(OPS[name], args)
            (got,), (want,) = _compiled(fn, *tensors)(*tensors), fn(*tensors)
            assert got.stride() == want.stride() and got.dtype is want.dtype
            assert torch.allclose(got.double(), want.double(), rtol=tolerance, atol=tolerance)
            program = lower(trace(fn, [fake_like(t) for t in tensors]))
            if all(t.numel() and t.ndim for t in tensors):
                assert not any(isinstance(b.definition, ir.Extern) for b in program.buffers.values()), str(program)


def test_the_last_write_wins_and_sums_take_every_one():
    index = torch.tensor([[3, 1, 3, 0, 3, 1, 1, 0]] * 4)
    src = torch.arange(32).reshape(4, 8).float()
    x = torch.zeros(4, 5)
    fn = lambda x, i, s: (x.scatter(1, i, s), x.scatter_add(1, i, s))  # noqa: E731
    for got, want in zip(_compiled(fn, x, index, src)(x, index, src), fn(x, index, src), strict=True):
        assert torch.equal(got, want)


def test_embedding_gradients_add_up_on_many_threads():
    indices = torch.randint(0, 50, (600,))
    g = torch.randn(600, 256)
    fn = lambda g, i: (OPS["embedding_backward"](g, i, 50, 7),)  # noqa: E731
    (got,), (want,) = _compiled(fn, g, indices)(g, indices), fn(g, indices)
    assert torch.allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_of_halves_round_once(dtype):
    """One and a hundred times the half of its rounding step: each addition alone would round to one."""
    x, i, s = torch.ones(2, 8, dtype=dtype), torch.zeros(100, dtype=torch.int64), torch.full((100, 8), 2.0**-12, dtype=dtype)
    fn = lambda x, i, s: (x.index_add(0, i, s), x.index_put((i,), s, accumulate=True))  # noqa: E731
    for got, want in zip(_compiled(fn, x, i, s)(x, i, s), fn(x, i, s), strict=True):
        assert torch.equal(got, want) and got[0, 0].item() > 1


@pytest.mark.parametrize("fn, bad", [
    (lambda x, i: (F.embedding(i, x) * 2,), 5),
    (lambda x, i: (F.embedding(i, x) * 2,), -1),
    (lambda x, i: (x[i].sum(),), -6),
    (lambda x, i: (x[:, i],), 4),
    (lambda x, i: (x.index_select(0, i),), 17),
    (lambda x, i: (torch.gather(x, 0, i.unsqueeze(1)),), 5),
    (lambda x, i: (x.index_add(0, i, x[:3]),), 9),
    (lambda x, i: (x.exp().index_select(1, i).amax(0),), 4),
])  # fmt: skip
def test_a_position_out_of_range_raises_as_in_eager(fn, bad):
    x, good, wrong = torch.randn(5, 4), torch.tensor([1, 0, 3]), torch.tensor([1, bad, 3])
    run = _compiled(fn, x, good)
    with pytest.raises((IndexError, RuntimeError)) as want:
        fn(x, wrong)
    with pytest.raises((IndexError, RuntimeError)) as got:
        run(x, wrong)
    assert type(got.value) is type(want.value) and str(got.value) == str(want.value)
    for a, b in zip(run(x, good), fn(x, good), strict=True):  # the failure leaves nothing behind
        assert torch.allclose(a, b)


def test_a_scatter_works_in_the_memory_of_its_target():
    fn = lambda g, i: (OPS["embedding_backward"](g, i, 50, -1),)  # noqa: E731
    run = _compiled(fn, torch.randn(600, 256), torch.randint(0, 50, (600,)))
    text = "".join(run.artifact.entry.sources().values())
    assert "memcpy" not in text.split("#define FJ_CHECKS")[1]
