"""Automatic dynamic shapes: the first graph is static, then a changed size or number becomes a symbol.

Results are eager's, and the number of compilations is exact.
"""

from __future__ import annotations

import random

import pytest

import dynamo
import eager as torch
from dynamo.report.errors import RecompileLimitExceeded
from eager import nn
from tests.dynamic.support import BACKENDS, assert_same, check, compiled, rows

F = nn.functional
r = torch.randn


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_that_changed_compiles_twice(backend: str) -> None:
    check(lambda x: x * 2 + 1, rows(4, 5, 6, 9, 2, 100), compilations=2, backend=backend)


def test_without_automatic_dynamic_each_size_and_number_compiles() -> None:
    with dynamo.config.patch(automatic_dynamic_shapes=False):
        check(lambda x: x * 2 + 1, rows(4, 5, 6), compilations=3)
        check(lambda x, n: x + n, [(r(3), 2), (r(3), 5), (r(3), 9)], compilations=3)
    check(lambda x, n: x + n, [(r(3), 2), (r(3), 5), (r(3), 9)], compilations=2)


def test_sizes_zero_and_one_compile_separately() -> None:
    check(lambda x: x.sum(0) + x.shape[0], rows(4, 1, 5, 0, 6, 1, 0, 2), compilations=4)


def test_sizes_share_a_symbol_until_they_differ() -> None:
    def f(x, y):  # type: ignore[no-untyped-def]
        return x * 2, y.sum(0)

    check(f, [(r(a, 3), r(b)) for a, b in ((4, 4), (5, 5), (6, 6), (6, 7), (9, 2), (3, 3))], compilations=3)
    check(f, [(r(a, 3), r(b)) for a, b in ((4, 7), (5, 5), (6, 6), (6, 7), (9, 2), (3, 3))], compilations=2)


def test_related_sizes_are_guarded_to_stay_equal() -> None:
    calls = [(r(a, 3), r(b, 3)) for a, b in ((4, 4), (5, 5), (6, 6), (7, 1), (8, 1))]
    check(lambda x, y: x + y, calls, compilations=3)


def test_duck_shaping_guards_that_equal_sizes_stay_equal() -> None:
    calls = [(r(a, 3), r(b)) for a, b in ((4, 4), (5, 5), (6, 7), (9, 2), (8, 8))]
    made = check(lambda x, y: (x * 2, y.sum(0)), calls, compilations=2, dynamic=True)
    assert [g.what.split("  #")[0] for g in dynamo.explain_guards(made).guards if ".size(" in g.what] == ["y.size(0) == x.size(0)"]


def test_dynamic_true_compiles_once_and_false_each_time() -> None:
    check(lambda x: x * 2, rows(4, 5, 6, 9), compilations=1, dynamic=True)
    check(lambda x: x * 2, rows(4, 5, 6, 9), compilations=4, dynamic=False)
    check(lambda x, n: x * n, [(r(3), n) for n in (4, 5, 6, 1)], compilations=1, dynamic=True)


def test_each_dim_becomes_a_symbol_when_it_changes() -> None:
    check(lambda x: x.sum(-1), [(r(*s),) for s in ((4, 5), (6, 5), (6, 7), (8, 9), (3, 2))], compilations=3)


def test_branches_on_sizes_compile_for_each_side() -> None:
    check(lambda x: x + 1 if x.shape[0] > 4 else x - 1, rows(3, 4, 2, 5, 9, 6, 3), compilations=3)


@pytest.mark.parametrize("seed", range(4))
def test_random_sizes_after_the_dynamic_compilation_give_eagers_results(seed: int) -> None:
    pick = random.Random(seed)

    def f(x, y):  # type: ignore[no-untyped-def]
        b, t, d = x.shape
        z = (x @ y).view(b, t, 2, -1).transpose(1, 2).reshape(b, 2 * t, -1)
        z = torch.cat([z, z[:, 1:]], 1).softmax(-1) / (t + 1)
        return z.sum(1), z[:, -1], z.mean(), b * t + d

    calls = [(r(b, t, 4), r(4, 6)) for b, t in ((2, 3), (3, 4), *((pick.randint(2, 9), pick.randint(2, 9)) for _ in range(12)))]
    check(f, calls, compilations=2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", [
    lambda n: r(n, 8)[:, ::2],
    lambda n: r(8, n).t(),
    lambda n: r(8, n)[:, :3],
    lambda n: r(n, 1).expand(n, 4),
    lambda n: r(n, 3, 4, 5).to(memory_format=torch.channels_last),
    lambda n: r(2, 3, n, 5).transpose(1, 2),
])  # fmt: skip
def test_layouts_of_inputs(layout: object, backend: str) -> None:
    check(lambda x: (x * 2, x.sum(0), x.transpose(0, 1)), [(layout(n),) for n in (4, 5, 6, 9)], compilations=2, backend=backend)  # type: ignore[operator]


def test_a_changed_order_of_strides_recompiles() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return x * 2, x.stride(), x.is_contiguous()

    check(f, [(r(4, 5),), (r(6, 5),), (r(5, 6).t(),), (r(7, 5),), (r(5, 8).t(),), (r(8, 10)[:, ::2],)], compilations=4)


# -- ints --------------------------------------------------------------------------------------------------------
def test_an_int_that_changed_compiles_twice() -> None:
    check(lambda x, n: (x * n, n + 1, x[:n]), [(r(9), n) for n in (2, 5, 7, 1, 9)], compilations=2)
    check(lambda x, n: (x * n, n + 1), [(r(9), n) for n in (2, -5, 7, 1, 0, 1 << 40)], compilations=2)


def test_an_int_that_is_none_or_bool_at_times() -> None:
    check(lambda x, n: x if n is None else x * n, [(r(3), n) for n in (2, 3, None, 5, True, 7)], compilations=3)


def test_an_int_beyond_64_bits_is_a_constant() -> None:
    check(lambda x, n: (x + 1, n * 2), [(r(3), n) for n in (2, 3, 1 << 80, 4)], compilations=3)


def test_python_arithmetic_with_sizes_stays_symbolic() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        n = x.shape[0]
        m = len(x) + x.size(0) * x.numel() - x.shape.numel()
        return x * m, n // 2, n % 3, n**2, -n, abs(n), divmod(n, 4), n << 1, ~n, int(n), max(n, 3), min(n, 100), sum([n, 1]), n == m, n is n

    check(f, rows(4, 5, 7, 9, 12), compilations=2)


def test_an_operation_that_needs_the_int_compiles_for_each_int() -> None:
    check(lambda x: (x + 1, f"{x.shape[0]:03d}"), rows(4, 5, 7), compilations=3)
    check(lambda x: sum(x[i] * i for i in range(x.shape[0])), rows(4, 5, 7), compilations=3)
    check(lambda x: (x + 1, {x.shape[0]: 1}), rows(4, 5, 7), compilations=3)
    check(lambda x: (x + 1, x.shape[0] / 2 // 1), rows(4, 5, 7), compilations=3)


def test_ints_of_globals_closures_and_attributes() -> None:
    class Config:
        scale = 2

    config, cell = Config(), 3

    def f(x):  # type: ignore[no-untyped-def]
        return x * config.scale + cell

    made, counting = compiled(f)
    for value in (2, 5, 7, 9):
        config.scale, cell = value, value + 1
        assert_same(made(r(3) * 0 + 1), torch.full((3,), value * 1.0 + cell))
    assert len(counting.graphs) == 2


def test_an_attribute_set_to_a_symbolic_size_is_an_int() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = 0
            self.layer = nn.Linear(3, 2)

        def forward(self, x):  # type: ignore[no-untyped-def]
            self.rows = x.shape[0]
            return self.layer(x)

    model = Model()
    made, counting = compiled(model)
    for n in (4, 5, 6, 7):
        made(r(n, 3))
        assert type(model.rows) is int and model.rows == n
    assert len(counting.graphs) == 2


def test_a_graph_break_with_a_symbolic_int_alive() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        n = x.shape[0]
        y = x * 2
        print(end="")
        return y * n, n + 1

    check(f, rows(4, 6, 8, 3), compilations=4, fullgraph=False)


def test_nested_breaks_with_symbolic_ints() -> None:
    def inner(y, n):  # type: ignore[no-untyped-def]
        z = y + n
        print(end="")
        return z.shape[0] + n

    def f(x):  # type: ignore[no-untyped-def]
        h = x * 2
        k = inner(h, x.shape[0])
        return h * k, k

    check(f, rows(3, 4, 5, 6), compilations=4, fullgraph=False)


# -- state -------------------------------------------------------------------------------------------------------
def test_containers_of_tensors() -> None:
    check(lambda xs: sum(x.sum() for x in xs), [([r(n), r(n + 2)],) for n in (3, 4, 5, 6)], compilations=2)
    check(lambda d: {k: v * v.shape[0] for k, v in d.items()}, [({"a": r(n, 2)},) for n in (3, 4, 5, 6)], compilations=2)


def test_inputs_written_to_and_views_of_them() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        x.add_(1)
        x[1:].mul_(2)
        return x.view(-1), x[1:], x.t()

    made, counting = compiled(f)
    for n in (4, 5, 7, 9):
        x = r(n, 3)
        mine, theirs = x.clone(), x.clone()
        outs, expected = made(mine), f(theirs)
        assert_same((mine, *outs), (theirs, *expected))
        assert all(o.data_ptr() - mine.data_ptr() == e.data_ptr() - theirs.data_ptr() for o, e in zip(outs, expected, strict=True))
    assert len(counting.graphs) == 2


def test_a_cache_that_grows() -> None:
    def step(cache, new):  # type: ignore[no-untyped-def]
        cache = torch.cat([cache, new], 1)
        return cache, cache.shape[1]

    made, counting = compiled(step)
    cache = mine = r(2, 3, 4)
    for _ in range(6):
        new = r(2, 1, 4)
        (cache, n), (mine, m) = step(cache, new), made(mine, new)
        assert_same((mine, m), (cache, n))
    assert len(counting.graphs) == 2


def test_tables_and_masks_by_length() -> None:
    cos = r(64, 8)

    def f(x):  # type: ignore[no-untyped-def]
        t = x.shape[1]
        mask = torch.triu(torch.full((t, t), float("-inf")), 1)
        position = torch.arange(t).unsqueeze(0)
        return (x * cos[:t] @ x.transpose(1, 2) + mask).softmax(-1), position, torch.tensor([t, 1])

    check(f, [(r(2, t, 8),) for t in (3, 4, 5, 6)], compilations=2)


def test_the_same_random_numbers() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return F.dropout(x, 0.5), torch.rand(x.shape[0], 2), torch.randn_like(x)

    made, counting = compiled(f)
    for n in (3, 4, 5, 6):
        x = r(n, 2)
        torch.manual_seed(n)
        expected = f(x)
        torch.manual_seed(n)
        assert_same(made(x), expected)
    assert len(counting.graphs) == 2


def test_errors_are_eagers() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return x.view(2, -1)

    made, _ = compiled(f, fullgraph=False)
    for n in (4, 6, 7, 8, 9):
        x = r(n)
        if n % 2 == 0:
            assert_same(made(x), f(x))
            continue
        with pytest.raises(RuntimeError) as theirs:
            f(x)
        with pytest.raises(RuntimeError) as mine:
            made(x)
        assert str(mine.value) == str(theirs.value)


def test_the_recompile_limit_counts_symbolic_variants_too() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return x + len(f"{x.shape[0]}")

    made, counting = compiled(f)
    with pytest.raises(RecompileLimitExceeded):
        for n in range(2, 20):
            made(r(n))
    assert len(counting.graphs) == 8


def test_reset_forgets_what_changed() -> None:
    made, counting = compiled(lambda x: x * 2)
    for n in (3, 4, 5):
        made(r(n))
    dynamo.reset()
    made(r(6))
    assert len(counting.graphs) == 3 and not counting.graphs[-1].graph.symbols
