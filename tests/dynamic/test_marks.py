"""mark_dynamic, maybe_mark_dynamic, mark_static, mark_static_address."""

from __future__ import annotations

import pytest

import dynamo
import eager as torch
from dynamo.report.errors import ConstraintViolationError
from tests.dynamic.support import assert_same, compiled


def marked(n: int, dim: int = 0, **bounds: int) -> torch.Tensor:
    x = torch.randn(n, 3)
    dynamo.mark_dynamic(x, dim, **bounds)
    return x


def test_a_marked_dim_is_a_symbol_at_once() -> None:
    made, counting = compiled(lambda x: x * 2)
    for x in (marked(4), torch.randn(5, 3), torch.randn(9, 3)):
        assert_same(made(x), x * 2)
    assert len(counting.graphs) == 1


def test_bounds_are_guarded() -> None:
    made, counting = compiled(lambda x: x * 2 if x.shape[0] < 10 else x - 1)
    made(marked(4, min=3, max=9))
    (s,) = counting.graphs[0].graph.shapes.symbols
    assert (s.lo, s.hi) == (3, 9)
    assert not counting.graphs[0].graph.shapes.relations  # the branch was provable
    for n, graphs in ((9, 1), (3, 1), (2, 2), (10, 3)):
        x = torch.randn(n, 3)
        assert_same(made(x), x * 2 if n < 10 else x - 1)
        assert len(counting.graphs) == graphs
    with pytest.raises(ConstraintViolationError, match="4 not in range"):
        compiled(lambda x: x * 2)[0](marked(4, min=5, max=9))


def test_a_marked_dim_that_the_code_needs_is_an_error_naming_the_line() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return x.view(4, 3)

    with pytest.raises(ConstraintViolationError, match=r"x\.size\(0\) as dynamic but your code specialized it .* \(4\).*test_marks\.py"):
        compiled(f)[0](marked(4))
    x = torch.randn(4, 3)
    dynamo.maybe_mark_dynamic(x, 0)
    assert_same(compiled(f)[0](x), x)


def test_maybe_mark_dynamic_is_a_symbol_at_once() -> None:
    made, counting = compiled(lambda x: x * 2)
    x = torch.randn(4, 3)
    dynamo.maybe_mark_dynamic(x, [0, 1])
    for y in (x, torch.randn(5, 6), torch.randn(7, 8)):
        assert_same(made(y), y * 2)
    assert len(counting.graphs) == 1


def test_sizes_zero_and_one_stay_static_though_marked() -> None:
    made, counting = compiled(lambda x: x * 2)
    for n, graphs in ((1, 1), (0, 2), (5, 3)):
        made(marked(n))
        assert len(counting.graphs) == graphs


def test_mark_static_wins_over_change() -> None:
    made, counting = compiled(lambda x: x * 2)
    for n in (4, 5, 6):
        x = torch.randn(n, n)
        dynamo.mark_static(x, 0)
        assert_same(made(x), x * 2)
    assert len(counting.graphs) == 3
    x = torch.randn(7, 8)
    dynamo.mark_static(x)
    made(x)
    assert not counting.graphs[-1].graph.symbols


def test_wrong_marks() -> None:
    with pytest.raises(IndexError, match="dim 2 of a tensor of 2 dims"):
        dynamo.mark_dynamic(torch.randn(2, 3), 2)
    with pytest.raises(TypeError, match="got a int"):
        dynamo.mark_dynamic(3, 0)
    with pytest.raises(NotImplementedError, match="specialize_on"):
        dynamo.mark_dynamic(torch.randn(2), 0, specialize_on=[lambda n: n == 2])


def test_mark_static_address_changes_neither_results_nor_recompilations() -> None:
    compiles: list[int] = []
    f = torch.compile(lambda cache, x: cache + x, backend=lambda gm, inputs: compiles.append(1) or gm.forward)
    caches = [torch.zeros(3), torch.ones(3)]
    for guard, cache in zip((False, True), caches, strict=True):
        dynamo.mark_static_address(cache, guard=guard)
        assert f(cache, torch.ones(3)).tolist() == (cache + 1).tolist()
    assert len(compiles) == 1
    with pytest.raises(TypeError, match="mark_static_address expects a tensor but received <class 'int'>"):
        dynamo.mark_static_address(3)
