"""Strides of results and gradients against torch's, in every layout of the input, eager and compiled.

The calls are in tests/data/layout_calls.py. layouts.json.gz stores torch's strides, strides of dims of size 1 included.
"""
from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.base.spec import is_dense
from tests.data.layout_calls import DATA_DEPENDENT, RANDOM, Case, Shape, calls, function_of, geometry, inputs, results

INPUTS = list(inputs())

# Results that differ on purpose: a pattern of "call @ layout", and the reason.
DIFFERENCES = {
    r"linalg\.(qr|inv)\(": "factorisations are row-major; torch's are column-major, as LAPACK writes them",
    r"_scatter\(.* @ (sliced|sliced last|cropped last)$": "a copy of a tensor with gaps is dense; torch keeps the gaps in these functions",
    r"fft\.fft\(.* @ expanded( last)?$": "eager first casts an expanded tensor to a complex dtype, which makes it dense",
    r"pixel_unshuffle\(.* @ (cropped )?last$": "torch refuses volumes in channels-last layout",
    r"local_response_norm\(.* @ reversed$": "torch calls view on the input and fails",
    r"fractional_max_pool3d\(": "torch refuses a window as large as the input",
    r"gradient\(.* @ last$": "torch concatenates columns, one of which has the strides of a row-major tensor",
}


# Gradients that differ on purpose: a pattern of the whole "call @ rank layout", and the reason.
GRADIENT_DIFFERENCES = {
    r"x\.clone\(\)\.copy_\(rows\(\*x\.shape\)\) @ .*": "torch's zeros for the overwritten tensor are row-major",
    r"F\.rrelu\(x\) @ .*": "torch's leaky_relu_backward orders dims by its saved result, which is row-major",
    r"F\.scaled_dot_product_attention\(.* @ (2 swapped|4 (rows|batch inner|sliced|expanded|last|reversed))":
        "torch's fused backward allocates the gradients of its three inputs as transposed tensors",
    r"T\.tensordot\(x, x, x\.ndim\) @ .*": "torch multiplies flattened copies, whose gradients are row-major",
    r"T\.cdist\(x, same\(\)\) @ 4 (last|reversed)": "torch computes distances of single rows from row-major copies",
    r"(x @ rows\(x\.shape\[-1\]\)|T\.addmv\(.*|F\.bilinear\(.*) @ 2 swapped":
        "torch's gradient of a matrix in a product with a vector is an outer product, row-major",
    r"(x\.nansum\(1\)|x\.nanmean\(1, keepdim=True\)) @ (3 (image|reversed)|4 (reversed|swapped)|5 reversed)":
        "torch multiplies the expanded gradient by a mask; our selection orders the dims by the input",
    r"T\.nn\.GRU\(.* @ 3 reversed": "torch's fused backward transposes a product of the gates' gradients",
}

# Calls whose gradients have torch's strides except in dims of size 1, by the reason for the other stride.
# A stride of a dim of size 1 does not change the position of an element.
FREE_IN_SIZE_1: dict[str, tuple[str, ...]] = {
    "these formulas end in another op, which orders dims of size 1 by its own operands": (
        "F.rms_norm(x, x.shape[-1:])", "F.rms_norm(x, x.shape[1:], rows(*x.shape[1:]))", "T.rms_norm(x, x.shape[2:])",
        "T.nn.RMSNorm(x.shape[-1])(x)", "F.batch_norm(x, None, None, training=True)",
        "F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1]))",
        "F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1]), rows(x.shape[1]), rows(x.shape[1]), training=True)",
        "T.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)", "T.angle(x)", "x.cumprod(1)", "x.prod(1)",
        "x.prod(1, keepdim=True)", "x.renorm(2, 0, 0.5)", "x.renorm(2, 1, 1.0)", "x.norm(dim=1, keepdim=True)",
        "T.linalg.vector_norm(x, dim=1)", "F.pairwise_distance(x, same())", "F.cosine_similarity(x, same(), 1)"),
    "torch expands the gradient along the reduced dim by a kernel for that dim": (
        "x.amax(1)", "x.amax(1, keepdim=True)", "x.amax((2, 3), keepdim=True)", "x.amin(-1, keepdim=True)", "x.aminmax(dim=1)",
        "x.aminmax(dim=1, keepdim=True)", "F.adaptive_avg_pool2d(x, 1)", "F.adaptive_avg_pool3d(x, 1)"),
    "autograd adds the gradients of two results in another order": ("T.var_mean(x, 1)", "T.std_mean(x, 0, keepdim=True)"),
    "a row-major condition or operand orders dims of size 1": ("T.where(x.contiguous() > 0, x, x)", "T.where(x > 0, x, last(*x.shape))"),
    "torch's gradient of the copy under an in-place op keeps the strides of the copy": (
        "x.clone().relu_()", "F.relu(x.clone(), inplace=True)", "F.dropout(x.clone(), inplace=True)"),
    "a gradient that is a view, or that is written into zeros, has the strides of its base": (
        "x[x > 0]", "x.unsqueeze(1).squeeze(1)", "x.split(1, 1)[0]", "x.chunk(2, -1)[0] + 1", "T.complex(x, same())",
        "T.view_as_real(T.complex(x, x))", 'F.nll_loss(x, T.zeros(x.shape[0], *x.shape[2:], dtype=T.int64), reduction="none")'),
    "torch's zeros have the strides of the result": ("T.normal(x, 1.0)", "T.normal(x, same().abs())", "T.bernoulli(x.sigmoid())"),
}  # fmt: skip
FREE_CALLS = {call for free in FREE_IN_SIZE_1.values() for call in free}

NO_DERIVATIVE = re.compile(r"floor_divide|x // |heaviside|zeta|unique")


@cache
def reference() -> tuple[list[Any], dict[str, dict[str, list[int]]], dict[str, dict[str, list[int]]]]:
    """torch's outcomes, and two tables of indices into them, by number of dims, call and input: results and gradient."""
    stored = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "layouts.json.gz").read_bytes()))
    return stored["strides"], stored["calls"], stored["gradients"]


def _id(given: tuple[int, str, Shape]) -> str:
    return f"{given[1]} {'x'.join(map(str, given[2]))}"


def _gradient_against(case: Case, given: tuple[int, str, Shape], expected: Any) -> Any:
    """The difference of the gradient's strides from torch's, or None if they agree or differ on purpose."""
    ndim, layout, shape = given
    if not isinstance(expected, list) or NO_DERIVATIVE.search(case.call) or any(
            re.fullmatch(pattern, f"{case.call} @ {ndim} {layout}") for pattern in GRADIENT_DIFFERENCES):
        return None
    found = case.gradient()
    if found is not None and case.call in FREE_CALLS:
        found, expected = ([s for n, s in zip(shape, strides, strict=True) if n != 1] for strides in (found, expected))
    return None if found == expected else ("gradient", found, "torch", expected)


@pytest.mark.parametrize("given", INPUTS, ids=_id)
def test_results_and_gradients_have_torchs_strides(given: tuple[int, str, Shape]) -> None:
    ndim, layout, shape = given
    outcomes, table, gradients = reference()
    at = [g for g in INPUTS if g[0] == ndim].index(given)
    assert set(table[str(ndim)]) == set(calls(ndim)), "run tests/data/make_layouts.py"
    wrong: dict[str, Any] = {}
    for call in calls(ndim):
        if any(re.search(pattern, f"{call} @ {layout}") for pattern in DIFFERENCES):
            continue
        expected, expected_gradient = (outcomes[t[str(ndim)][call][at]] for t in (table, gradients))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                case = Case(torch, call, layout, shape, requires_grad=True)
                found: Any = [list(part) for part in case.geometry()]
                if gradient := _gradient_against(case, given, expected_gradient):
                    wrong[call] = gradient
            except (RuntimeError, ValueError, NotImplementedError) as error:
                found = type(error).__name__
        if isinstance(expected, str) != isinstance(found, str) or (isinstance(found, list) and found != expected):
            wrong[call] = (found, "torch", expected)
    assert not wrong


def _follows(grad: torch.Tensor, leaf: torch.Tensor) -> bool:
    """Whether a leaf's gradient obeys the contract of torch's AccumulateGrad: the leaf's strides if it is dense, else row-major.

    The contract leaves the strides of dims of size 1 open.
    """
    x = leaf.detach()
    wanted = (x if is_dense(x.shape, x.stride()) else x.contiguous()).stride()
    return all(n == 1 or a == b for n, a, b in zip(x.shape, grad.stride(), wanted, strict=True))


def _differentiable(ndim: int, layout: str, shape: Shape) -> Iterator[Case]:
    """Differentiable calls that accept the input and are deterministic."""
    for call in calls(ndim):
        if RANDOM.search(call) or NO_DERIVATIVE.search(call):
            continue
        try:
            yield Case(torch, call, layout, shape, requires_grad=True)
        except (RuntimeError, ValueError):
            continue


def _backward(x: torch.Tensor, ys: list[torch.Tensor]) -> torch.Tensor | None:
    """x.grad after a backward pass from all results that have a gradient, with fixed cotangents."""
    roots = [y for y in ys if y.requires_grad and not y.is_leaf]
    if not roots:
        return None
    x.grad = None
    cotangents = [torch.linspace(0.5, 1.5, y.numel()).view(y.shape).to(y.dtype) for y in roots]
    torch.autograd.backward(roots, cotangents)
    return x.grad


@pytest.mark.parametrize("given", [
    (4, "last", (2, 4, 6, 4)), (4, "cropped last", (2, 4, 6, 4)), (4, "reversed", (2, 4, 6, 4)), (4, "last", (2, 1, 6, 4)),
    (5, "last", (2, 4, 2, 4, 2)), (3, "swapped", (2, 4, 6))], ids=_id)  # fmt: skip
def test_values_and_gradients_do_not_depend_on_the_layout(given: tuple[int, str, Shape]) -> None:
    """A gradient has the strides of its leaf if the leaf is dense. Otherwise it is row-major, as in torch's AccumulateGrad."""
    ndim, layout, shape = given
    wrong = {}
    for case in _differentiable(ndim, layout, shape):
        plain = Case(torch, case.call, layout, shape, requires_grad=True, rows_first=True)
        try:
            for y, expected in zip(case.results, plain.results, strict=True):
                torch.testing.assert_close(y, expected, equal_nan=True, rtol=1e-4, atol=1e-5)
            grad, expected = _backward(case.x, case.results), _backward(plain.x, plain.results)
            if grad is None or expected is None:
                continue
            torch.testing.assert_close(grad, expected, equal_nan=True, rtol=1e-4, atol=1e-4)
            assert _follows(grad, case.x)
        except AssertionError as error:
            wrong[case.call] = str(error)[:200]
    assert not wrong


def _arguments(x: torch.Tensor, given: list[torch.Tensor]) -> tuple[Any, ...]:
    """Arguments of the function of a call; `given` are the other operands, which `Case` made."""
    left = iter(given)
    return torch, torch.nn.functional, x, lambda: next(left), lambda *s: next(left), lambda *s: next(left)


def _leaves(case: Case) -> list[torch.Tensor]:
    """The floating operands of a call, for which gradients are compared. Empty if the call writes into an operand."""
    return [] if "out=" in case.call or ".copy_(x)" in case.call else [t for t in [case.x, *case.given] if t.is_floating_point()]


Gradients = list[list[tuple[torch.Tensor | None, torch.Tensor | None]]]


def _gradients(cases: list[Case], found: list[list[torch.Tensor]]) -> Gradients:
    """For each call and each of its leaves: the gradient that a hook receives, and the accumulated gradient.

    One backward pass covers all calls, with fixed cotangents.
    """
    roots = [y for case, ys in zip(cases, found, strict=True) if not RANDOM.search(case.call) and not NO_DERIVATIVE.search(case.call)
             for y in ys if y.requires_grad and not y.is_leaf]  # fmt: skip
    cotangents = [torch.empty_like(y).copy_(torch.linspace(0.5, 1.5, y.numel()).view(y.shape)) for y in roots]
    leaves = [t for case in cases for t in _leaves(case)]
    seen: dict[int, torch.Tensor] = {}
    hooks = [t.register_hook(partial(seen.__setitem__, id(t))) for t in leaves]
    torch.autograd.backward(roots, cotangents)
    made = [[(seen.get(id(t)), t.grad) for t in _leaves(case)] for case in cases]
    for t, hook in zip(leaves, hooks, strict=True):
        t.grad = None
        hook.remove()
    return made


def _program(functions: list[Any], arguments: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    return [results(fn(*_arguments(x, given))) for fn, (x, *given) in zip(functions, arguments, strict=True)]


def _difference(case: Case, found: list[torch.Tensor], expected: list[torch.Tensor]) -> str | None:
    """The difference of results in strides or values, or None."""
    if [geometry(y) for y in found] != [geometry(y) for y in expected]:
        return f"{[geometry(y) for y in found]}, eager {[geometry(y) for y in expected]}"
    if RANDOM.search(case.call):
        return None
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-4)
    except AssertionError as error:
        return str(error)[:200]
    return None


def _gradient_difference(case: Case, found: list[Any], expected: list[Any]) -> str | None:
    """The difference of gradients in strides or values, or None.

    Gradients in hooks are compared with eager code's. Accumulated gradients must obey the contract of `_follows`.
    """
    if [g is None for _, g in found] != [g is None for _, g in expected]:
        return f"{found}, eager {expected}"
    for leaf, (g, accumulated), (wanted, _) in zip(_leaves(case), found, expected, strict=True):
        if g is None:
            continue
        if any(n != 1 and a != b for n, a, b in zip(g.shape, g.stride(), wanted.stride(), strict=True)):
            return f"gradient strides {g.stride()}, eager {wanted.stride()}, for a leaf with {leaf.stride()}"
        if not _follows(accumulated, leaf):
            return f"accumulated strides {accumulated.stride()} for a leaf with {leaf.stride()}"
        try:
            torch.testing.assert_close(accumulated, wanted, equal_nan=True, rtol=1e-3, atol=1e-3)
        except AssertionError as error:
            return str(error)[:200]
    return None


def _check_compiled(cases: list[Case], backend: str) -> None:
    """Compile the calls as one program: the results and the gradients of each call have the values and strides of eager code."""
    functions, arguments = [function_of(case.call) for case in cases], [[case.x, *case.given] for case in cases]
    for case in cases:
        for t in _leaves(case):
            t.requires_grad_()
    torch.manual_seed(0)
    expected = _program(functions, arguments)
    expected_gradients = _gradients(cases, expected)
    torch.manual_seed(0)
    found = torch.compile(_program, backend=backend, fullgraph=True)(functions, arguments)
    wrong = {case.call: d for case, a, b in zip(cases, found, expected, strict=True) if (d := _difference(case, a, b))}
    gradients = _gradients(cases, found)
    wrong |= {case.call: d for case, a, b in zip(cases, gradients, expected_gradients, strict=True)
              if (d := _gradient_difference(case, a, b))}  # fmt: skip
    assert not wrong


# Calls that break a graph: they read data, make parameters, resize a tensor or set requires_grad.
GRAPH_BREAK = re.compile(r"one_hot|out=T.empty\(0\)|requires_grad_|T\.nn\.(Linear|LayerNorm|GroupNorm|RMSNorm)")


def _cases(ndim: int, layout: str, shape: Shape, step: int, first: int) -> list[Case]:
    """The calls number `first`, `first + step`, ... of the calls of rank 3. If step <= 4, also all calls that rank 3 lacks."""
    number = {call: i for i, call in enumerate(calls(3))}
    found = []
    for call in calls(ndim):
        wanted = number[call] % step == first if call in number else step <= 4
        if not wanted or DATA_DEPENDENT.search(call) or GRAPH_BREAK.search(call):
            continue
        try:
            found.append(Case(torch, call, layout, shape))
        except (RuntimeError, ValueError):
            continue
    return found


# The g++ run for each group of calls takes most of the time of this file, so the layouts divide the calls among them. The
# first five layouts together compile each call of rank 3 at least once.
COMPILED = [
    ((4, "last", (2, 4, 6, 4)), 2, 0), ((5, "last", (2, 4, 2, 4, 2)), 4, 1), ((4, "swapped", (2, 4, 6, 4)), 12, 3),
    ((4, "cropped last", (2, 4, 6, 4)), 12, 7), ((4, "expanded last", (2, 4, 6, 4)), 12, 11),
    ((4, "last", (2, 4, 1, 1)), 7, 0), ((4, "last", (2, 1, 6, 4)), 8, 0),
]  # fmt: skip


def test_every_call_is_compiled_in_some_layout() -> None:
    assert {i for i in range(12) for _, step, first in COMPILED[:5] if i % step == first} == set(range(12))


@pytest.mark.parametrize(("given", "step", "first"), COMPILED, ids=lambda v: str(v) if isinstance(v, int) else _id(v))
def test_compiled_results_and_gradients_have_the_strides_of_eager_code(given: tuple[int, str, Shape], step: int, first: int) -> None:
    cases = _cases(*given, step, first)
    for i in range(0, len(cases), 60):
        _check_compiled(cases[i : i + 60], "inductor")


@pytest.mark.parametrize("given", [(4, "last", (2, 4, 6, 4)), (5, "last", (2, 4, 2, 4, 2))], ids=_id)
def test_captured_graphs_give_the_strides_of_eager_code(given: tuple[int, str, Shape]) -> None:
    cases = _cases(*given, 1, 0)
    for i in range(0, len(cases), 60):
        _check_compiled(cases[i : i + 60], "aot_eager")


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_gradient_has_the_strides_of_its_leaf_and_keeps_them_when_it_accumulates(backend: str) -> None:
    """Weights and x have torch's gradient strides after one backward pass and after two, for every pair of layouts."""
    last, plain = torch.channels_last, torch.contiguous_format
    convolution = torch.compile(lambda x, w: torch.nn.functional.conv2d(x, w, padding=1), backend=backend)
    double = torch.compile(lambda x: x * 2, backend=backend)
    for x_format in (last, plain):
        x = torch.randn(2, 4, 6, 4).to(memory_format=x_format).requires_grad_()
        for w_format in (last, plain):
            w = torch.randn(6, 4, 3, 3).to(memory_format=w_format).requires_grad_()
            for _ in range(2):
                y = convolution(x, w)
                assert y.is_contiguous(memory_format=plain if x_format is w_format is plain else last)
                y.sum().backward()
                assert (w.grad.stride(), x.grad.stride()) == (w.stride(), x.stride())
        x.grad = None
        for _ in range(2):  # the cotangent is row-major
            double(x).backward(torch.ones(2, 4, 6, 4))
            assert x.grad.stride() == x.stride()
    x.grad = torch.ones(2, 4, 6, 4).to(memory_format=last)
    double(x).backward(torch.ones(2, 4, 6, 4))
    assert x.grad.stride() == (96, 1, 16, 4)  # backward adds to the existing gradient in place
    gaps = torch.randn(2, 8, 6, 4)[:, ::2].requires_grad_()
    double(gaps).sum().backward()
    assert gaps.grad.stride() == (96, 24, 4, 1)


def test_gradients_of_norm_parameters_are_row_major() -> None:
    norms = (torch.nn.BatchNorm2d(4), torch.nn.GroupNorm(2, 4), torch.nn.InstanceNorm2d(4, affine=True), torch.nn.LayerNorm((6, 4)))
    for norm in norms:
        x = torch.randn(2, 4, 6, 4).to(memory_format=torch.channels_last).requires_grad_()
        norm(x).square().sum().backward()
        assert x.grad.stride() == x.stride()
        assert all(p.grad is not None and p.grad.stride() == p.stride() for p in norm.parameters())
