"""Loop programs and their numpy results, shared by the interpreter run and the ahead-of-time tests."""
from dataclasses import dataclass

import numpy as np

import eager
from eager.base import dtypes
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.trace.trace import trace
from inductor.ir import definitions as ir
from inductor.lowering import lower
from inductor.plan.schedule import schedule
from inductor.triton.kernels import TritonKernel, print_kernel

F32 = dtypes.float32


@dataclass
class Case:
    name: str
    kernel: TritonKernel
    arrays: dict
    expected: dict


def _op(name, *args, of=F32):
    return ir.make_op(name, args, of)


def _c(v):
    return ir.const(v, F32)


def _i(k, n):
    return ir.axis(k, n)


def _r(k, n):
    return ir.reduced_axis(k, n)


def _softmax(rows, cols):
    x = lambda c: ir.load("x", _i(0, rows) * cols + c, F32)  # noqa: E731
    inner, outer = _r(0, cols), _i(1, cols)
    row = ir.row_major((rows,), F32)
    m = ir.Buffer("m", row, ir.Reduction((rows,), (cols,), "max", x(inner)), ir.Source(ops=("amax",)))
    at_m = ir.load("m", _i(0, rows), F32)
    s = ir.Buffer("s", row, ir.Reduction((rows,), (cols,), "sum", _op("exp", _op("sub", x(inner), at_m))), ir.Source(ops=("sum",)))
    y_value = _op("div", _op("exp", _op("sub", x(outer), at_m)), ir.load("s", _i(0, rows), F32))
    full = ir.row_major((rows, cols), F32)
    y = ir.Buffer("y", full, ir.Pointwise((rows, cols), y_value), ir.Source(ops=("div",)))
    layouts = {"x": full, "m": row, "s": row, "y": full}
    kernel = print_kernel(f"softmax_{rows}_{cols}", [m, s, y], ["y"], layouts)
    a = np.random.default_rng(0).standard_normal((rows, cols)).astype(np.float32) * 4
    e = np.exp(a - a.max(1, keepdims=True))
    return Case(kernel.name, kernel, {"x": a, "y": np.zeros_like(a)}, {"y": e / e.sum(1, keepdims=True)})


def _layernorm(rows, cols):
    x = lambda c: ir.load("x", _i(0, rows) * cols + c, F32)  # noqa: E731
    inner, outer = _r(0, cols), _i(1, cols)
    row, full = ir.row_major((rows,), F32), ir.row_major((rows, cols), F32)
    mean = ir.Buffer("mean", row, ir.Reduction((rows,), (cols,), "sum", _op("mul", x(inner), _c(1 / cols))), ir.Source(ops=("mean",)))
    at_mean = ir.load("mean", _i(0, rows), F32)
    d = _op("sub", x(inner), at_mean)
    var = ir.Buffer("var", row, ir.Reduction((rows,), (cols,), "sum", _op("mul", _op("mul", d, d), _c(1 / cols))), ir.Source(ops=("var",)))
    rstd = ir.Buffer("rstd", row, ir.Pointwise((rows,), _op("rsqrt", _op("add", ir.load("var", _i(0, rows), F32), _c(1e-5)))))
    y_value = _op("add", _op("mul", _op("mul", _op("sub", x(outer), at_mean), ir.load("rstd", _i(0, rows), F32)),
                             ir.load("w", outer, F32)), ir.load("b", outer, F32))  # fmt: skip
    y = ir.Buffer("y", full, ir.Pointwise((rows, cols), y_value), ir.Source(ops=("layer_norm",)))
    vec = ir.row_major((cols,), F32)
    layouts = {"x": full, "w": vec, "b": vec, "mean": row, "var": row, "rstd": row, "y": full}
    kernel = print_kernel(f"layernorm_{rows}_{cols}", [mean, var, rstd, y], ["y", "rstd"], layouts)
    rng = np.random.default_rng(1)
    a, w, b = (rng.standard_normal(n).astype(np.float32) for n in ((rows, cols), cols, cols))
    r = 1 / np.sqrt(a.var(1, keepdims=True) + 1e-5)
    return Case(kernel.name, kernel, {"x": a, "w": w, "b": b, "y": np.zeros_like(a), "rstd": np.zeros(rows, np.float32)},
                {"y": (a - a.mean(1, keepdims=True)) * r * w + b, "rstd": r[:, 0]})  # fmt: skip


def _gelu(shape, half=False):
    of = dtypes.bfloat16 if half else F32
    n, m = shape
    x = ir.load("x", _i(0, n) + _i(1, m) * n, of)  # x is (m, n), read transposed
    b = ir.load("b", _i(1, m), of)
    if half:
        x, b = (_op("cast", v) for v in (x, b))
    t = _op("add", x, b)
    inner = _op("mul", _c(0.7978845608), _op("add", t, _op("mul", _op("mul", _op("mul", t, t), t), _c(0.044715))))
    value = _op("mul", _op("mul", _c(0.5), t), _op("add", _c(1.0), _op("tanh", inner)))
    if half:
        value = _op("cast", value, of=of)
    full = ir.row_major(shape, of)
    y = ir.Buffer("y", full, ir.Pointwise(shape, value), ir.Source(ops=("add", "gelu")))
    layouts = {"x": ir.row_major((m, n), of), "b": ir.row_major((m,), of), "y": full}
    name = f"gelu_{'bf16' if half else 'f32'}"
    kernel = print_kernel(name, [y], ["y"], layouts)
    rng = np.random.default_rng(2)
    a, v = rng.standard_normal((m, n)).astype(of.numpy), rng.standard_normal(m).astype(of.numpy)
    z = a.astype(np.float64).T + v.astype(np.float64)
    expected = 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))
    return Case(name, kernel, {"x": a, "b": v, "y": np.zeros(shape, of.numpy)}, {"y": expected.astype(of.numpy)})


def _from_ops(name, fn, inputs, expected, failed=None):
    """A kernel from real ops, by the same lowering and schedule that the C++ target uses.

    failed: what its index checks leave in `checks`, for a kernel that has any."""
    program = lower(trace(fn, [fake_like(eager.from_numpy(a)) for a in inputs]))
    made = schedule(program)
    members = [m for step in made.steps for m in step.members]
    layouts = {n: b.layout for n, b in made.program.buffers.items()}
    out = made.program.outputs[0].buffer
    kernel = print_kernel(name, members, [out], layouts)
    arrays = dict(zip(made.program.inputs, inputs, strict=True))
    if failed is None:
        return Case(name, kernel, {**arrays, out: np.zeros_like(expected)}, {out: expected})
    checks = np.array(failed, np.int64)
    return Case(name, kernel, {**arrays, out: np.zeros_like(expected), "checks": np.zeros_like(checks)}, {out: expected, "checks": checks})


def _traced():
    a = np.random.default_rng(3).standard_normal((6, 50)).astype(np.float32)
    t = eager.from_numpy(a)
    yield _from_ops("traced_softmax", lambda x: (F.softmax(x, -1),), [a], F.softmax(t, -1).numpy())
    yield _from_ops("traced_layernorm", lambda x: (F.layer_norm(x, (50,)),), [a], F.layer_norm(t, (50,)).numpy())
    yield _from_ops("traced_gelu", lambda x: (F.gelu(x + 1, approximate="tanh") * 2 + x,), [a],
                    (F.gelu(t + 1, approximate="tanh") * 2 + t).numpy())  # fmt: skip


def _other_elements():
    """Members that read elements of a member other than the elements that their program holds."""
    rng = np.random.default_rng(5)
    for rows, cols in ((4, 30), (3, 9000)):
        a = rng.standard_normal((rows, cols)).astype(np.float32)
        y = np.exp(np.tanh(a)) + 1
        yield _from_ops(f"flipped_{cols}", lambda x: (_exp_tanh(x).flip(1) / _exp_tanh(x).sum(1, keepdim=True),), [a],
                        y[:, ::-1] / y.sum(1, keepdims=True))  # fmt: skip
        yield _from_ops(f"flipped_rows_{cols}", lambda x: (_shared(x, lambda y: y.flip(0) / y.sum(1, keepdim=True)),), [a],
                        y[::-1] / y.sum(1, keepdims=True))  # fmt: skip
        yield _from_ops(f"flipped_and_summed_{cols}", lambda x: (_shared(x, lambda y: (y.flip(1) * y).sum(1) / cols),), [a],
                        (y[:, ::-1] * y).sum(1) / cols)  # fmt: skip


def _exp_tanh(x):
    return x.tanh().exp() + 1


def _shared(x, fn):
    return fn(_exp_tanh(x))


def _checked():
    """Lookups by index: positions in range, counted from the end, and out of range."""
    table = np.random.default_rng(6).standard_normal((7, 5)).astype(np.float32)
    inside, outside = np.array([0, 6, -1, -7, 3]), np.array([2, 9, 2, 2, 2])
    yield _from_ops("indexed", lambda t, i: (t[i] * 2,), [table, inside], table[inside] * 2, [0, 0])
    yield _from_ops("indexed_outside", lambda t, i: (t[i] * 2,), [table, outside], table[[2, 0, 2, 2, 2]] * 2, [1, 9])
    yield _from_ops("indexed_rows", lambda t, i: (t[i].sum(1),), [table, outside], table[[2, 0, 2, 2, 2]].sum(1), [1, 9])


def cases():
    yield from _traced()
    yield from _other_elements()
    yield from _checked()
    yield _softmax(5, 37)
    yield _softmax(2, 10000)  # beyond the persistent limit: looped
    yield _layernorm(4, 384)
    yield _layernorm(2, 9000)
    yield _gelu((33, 70))
    yield _gelu((33, 70), half=True)
