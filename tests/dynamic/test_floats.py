"""Floats that change: symbols from the second value on, computed by Python's own arithmetic, guarded where outcomes count."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamo
import eager as torch
from eager import nn
from tests.dynamic.support import BACKENDS, Counting, assert_same, check, compiled

F = nn.functional
r = torch.randn
VALUES = (0.5, 0.25, 3.0, -1.5, 1e-3)

COMPUTED: dict[str, Any] = {
    "arithmetic": lambda x, a: (x * a, a * 2, x + a, a - x, x / (a + 10.0), -a, abs(a), a / 4),
    "comparison": lambda x, a: (x > a, x == a, torch.maximum(x, x * a)),
    "alpha": lambda x, a: torch.add(x, x, alpha=a),
    "addcmul": lambda x, a: torch.addcmul(x, x, x, value=a),
    "lerp": lambda x, a: torch.lerp(x, x + 1, a),
    "clamp": lambda x, a: x.clamp(min=a),
    "power": lambda x, a: x.abs() ** a,
    "where": lambda x, a: torch.where(x > 0, x, a),
    "masked_fill": lambda x, a: x.masked_fill(x > 0, a),
    "in place": lambda x, a: x.clone().mul_(a).add_(1.0, alpha=a),
    "division": lambda x, a: x * (1 / a),
    "root": lambda x, a: x / math.sqrt(a * a),
    "sizes": lambda x, a: x * (a / x.shape[0]) / math.sqrt(x.shape[1]),
    "conversion": lambda x, a: x * float(a) + float(x.shape[0]),
    "containers": lambda x, a: (x + {"k": [a]}["k"][0], [a, (a, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", COMPUTED)
def test_a_float_that_changed_compiles_twice(name: str, backend: str) -> None:
    check(COMPUTED[name], [(r(3, 4), a) for a in VALUES], compilations=2, backend=backend)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float64", "bfloat16", "float16", "complex64"])
def test_a_float_promotes_as_a_number(dtype: str) -> None:
    def f(x, a):  # type: ignore[no-untyped-def]
        return x * a, x + a

    for x in (torch.arange(6).to(getattr(torch, dtype)), torch.tensor(3).to(getattr(torch, dtype))):
        made, counting = compiled(f)
        for a in VALUES:
            for mine, theirs in zip(made(x, a), f(x, a), strict=True):
                assert mine.dtype is theirs.dtype
                rtol = 1e-2 if x.dtype.itemsize == 2 else 1e-6
                assert torch.allclose(mine.to(torch.complex128), theirs.to(torch.complex128), rtol=rtol)
        rounded = x.ndim == 0 and x.dtype.itemsize == 2  # a 0-d input of a half dtype would round, unlike eager's number
        assert len(counting.graphs) == (len(VALUES) if rounded else 2)


def test_outcomes_are_guarded() -> None:
    check(lambda x, a: x * 2 if a > 0 else x * a, [(r(3), a) for a in VALUES], compilations=3)
    made = check(lambda x, a: x * 2 if 2 * a + 1 > 0 else x * a, [(r(3), a) for a in (0.5, 0.25, -0.25, -4.0, -3.0)], compilations=3)
    texts = [g.what for g in dynamo.explain_guards(made).guards]
    assert any("0 < ((2 * a) + 1)" in t for t in texts), texts


def test_nan_takes_neither_side() -> None:
    def f(x, a):  # type: ignore[no-untyped-def]
        return x + (1 if a < 1.0 else 2 if a >= 1.0 else 3), a != a

    check(f, [(r(3), a) for a in (0.5, 0.25, math.nan, 2.0, math.nan, math.inf, -math.inf)], compilations=4)


def test_an_operation_that_needs_the_float_compiles_for_each_float() -> None:
    check(lambda x, a: (x + 1, f"{a:.4f}"), [(r(3), a) for a in VALUES], compilations=5)
    check(lambda x, a: (x + 1, f"{a}".zfill(5)), [(r(3), a) for a in VALUES], compilations=5)
    check(lambda x, a: x[: int(a)] + 1, [(r(5), a) for a in (1.5, 2.5, 3.5)], compilations=3)
    check(lambda x, a: (x + 1, {a: 1}), [(r(3), a) for a in (0.0, -0.0, 0.0)], compilations=2)


def test_a_float_is_formatted_when_the_compiled_function_runs() -> None:
    check(lambda x, a: (x + 1, f"{a} and {a!r}"), [(r(3), a) for a in (*VALUES, math.nan, math.inf, 1e300, 3.0)], compilations=2)


def test_division_by_zero_is_pythons() -> None:
    def f(x, a):  # type: ignore[no-untyped-def]
        return x * (1 / a)

    made, counting = compiled(f, fullgraph=False)
    for a in (0.5, 0.25, 0.0, 0.75, 0.0):
        if a:
            assert_same(made(r(3) * 0 + 1, a), torch.ones(3) * (1 / a))
            continue
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            made(r(3), a)
    assert len(counting.graphs) == 2


def test_ints_and_floats_in_one_place() -> None:
    check(lambda x, a: x * a, [(torch.arange(3), a) for a in (2, 2.0, 3, 3.0, 4, 4.0, True, 5.0)], compilations=5)


def test_zero_keeps_its_sign() -> None:
    made, _ = compiled(lambda x, a: x * a)
    assert [math.copysign(1, made(torch.ones(()), a).item()) for a in (0.5, 0.25, 0.0, -0.0, 0.0)] == [1, 1, 1, -1, 1]


def test_floats_of_globals_closures_and_attributes() -> None:
    class Config:
        scale = 0.5

    config, cell = Config(), 1.5

    def f(x):  # type: ignore[no-untyped-def]
        return x * config.scale + cell

    made, counting = compiled(f)
    for value in (0.5, 1.25, 2.5, 7.0):
        config.scale, cell = value, value + 1
        assert_same(made(torch.ones(3)), torch.full((3,), value + cell))
    assert len(counting.graphs) == 2


def test_dynamic_false_keeps_floats_constant() -> None:
    check(lambda x, a: x * a, [(r(3), a) for a in VALUES], compilations=5, dynamic=False)


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_dropout_by_probability(backend: str) -> None:
    made, counting = compiled(lambda x, p: F.dropout(x, p), backend)
    x = r(5, 6)
    for p in (0.1, 0.2, 0.3, 0.9, 0.5):
        torch.manual_seed(1)
        expected = F.dropout(x, p)
        torch.manual_seed(1)
        assert_same(made(x, p), expected)
    assert len(counting.graphs) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    def f(x, w, a, s):  # type: ignore[no-untyped-def]
        return ((x @ w / a).softmax(-1) * (1.0 - s) + s).log().sum() * a

    made, counting = compiled(f, backend)
    for a, s, n in ((1.0, 0.1, 4), (2.0, 0.2, 5), (0.5, 0.3, 2), (0.25, 0.4, 7)):
        x, w = r(n, 3, requires_grad=True), r(3, 5, requires_grad=True)
        y, v = (t.detach().clone().requires_grad_() for t in (x, w))
        mine, theirs = made(x, w, a, s), f(y, v, a, s)
        mine.backward()
        theirs.backward()
        assert_same((mine.detach(), x.grad, w.grad), (theirs.detach(), y.grad, v.grad))
    assert len(counting.graphs) == 2


def test_gradients_of_gradients() -> None:
    def f(x, a):  # type: ignore[no-untyped-def]
        return (x**3 * a).sum()

    made, _ = compiled(f)
    for a in VALUES:
        x = r(3, requires_grad=True)
        (g,) = torch.autograd.grad(made(x, a), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        assert_same(h, (6 * x * a).detach())


class Scaled(torch.autograd.Function):
    """A custom function that keeps a float and a size."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: float) -> Any:
        ctx.save_for_backward(x)
        ctx.a, ctx.n = a, x.shape[0]
        return x * a * x.shape[0]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.a * ctx.n + x.new_zeros(ctx.n, 1), None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_custom_functions_capture_symbols(dynamic: bool | None, backend: str) -> None:
    made, counting = compiled(lambda x, a: Scaled.apply(x, a).sum(), backend, dynamic=dynamic)
    for n, a in ((3, 0.5), (4, 0.75), (5, 2.0), (2, -1.0)):
        x = r(n, 2, requires_grad=True)
        made(x, a).backward()
        assert_same(x.grad, torch.full((n, 2), a * n))
    assert len(counting.graphs) == 2


def test_transforms_capture_symbols() -> None:
    def f(x, a):  # type: ignore[no-untyped-def]
        return torch.func.vmap(lambda row: row * a + row.shape[0])(x)

    check(f, [(r(3, 4), a) for a in VALUES], compilations=2)


def test_attributes_of_modules_stay_constant() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Conv2d(3, 4, 3, stride=2, padding=3), nn.Conv2d(4, 4, 3, padding=2, dilation=2)])
            self.settings = {"k": 5, "scales": [2, 3]}

        def forward(self, x):  # type: ignore[no-untyped-def]
            for layer in self.layers:
                x = layer(x)
            return x * self.settings["k"] + self.settings["scales"][1]

    model = Model()
    for fn in (model, lambda x: model(x), lambda x, held=[model]: held[0](x)):
        counting = Counting()
        torch.compile(fn, backend=counting, fullgraph=True, dynamic=True)(r(2, 3, 16, 16))
        assert {s.kind for s in counting.graphs[0].graph.symbols.values()} == {"size"}


numbers = st.floats(allow_nan=True, width=64) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(numbers, numbers), min_size=4, max_size=8))
def test_any_values_give_eagers_results(pairs: list[tuple[float, float]]) -> None:
    def f(x, a, b):  # type: ignore[no-untyped-def]
        scale = a * b - a if a < b else (a + b) / (2 + b * b)
        return x * scale + (1 if a == b else b), scale, x - a

    made, counting = compiled(f)
    x = torch.arange(-2, 3).double()
    for a, b in pairs:
        (y, scale, z), (mine_y, mine_scale, mine_z) = f(x, a, b), made(x, a, b)
        assert (scale == mine_scale and math.copysign(1, scale) == math.copysign(1, mine_scale)) or scale != scale != mine_scale
        assert torch.equal(y.nan_to_num(), mine_y.nan_to_num()) and torch.equal(z.nan_to_num(), mine_z.nan_to_num())
        assert torch.equal(y.isnan(), mine_y.isnan())
    assert len(counting.graphs) <= 8
