"""Strides of results and gradients against torch's, in every layout of the input, eager and compiled.

The calls stand in tests/data/layout_calls.py, torch's strides in layouts.json.gz. Strides of dims of size 1 and of empty
tensors mean nothing and are not compared.
"""
from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.spec import is_dense
from tests.data.layout_calls import DATA_DEPENDENT, RANDOM, Case, Shape, calls, function_of, geometry, inputs, results

INPUTS = list(inputs())

# What is meant to differ: a pattern of "call @ layout", and why.
DIFFERENCES = {
    r"linalg\.(qr|inv)\(": "factorisations are row-major; torch leaves them column-major, as LAPACK does",
    r"_scatter\(.* @ (sliced|sliced last|cropped last)$": "a copy of a tensor with gaps is dense; torch keeps the gaps in these functions",
    r"fft\.fft\(.* @ expanded( last)?$": "an expanded tensor is made complex first, which makes it dense",
    r"pixel_unshuffle\(.* @ (cropped )?last$": "torch refuses volumes in channels-last layout",
    r"local_response_norm\(.* @ reversed$": "torch calls view on the input and fails",
    r"fractional_max_pool3d\(": "torch refuses a window as large as the input",
    r"gradient\(.* @ last$": "torch joins columns of which one has the strides of a row-major tensor",
}


NO_DERIVATIVE = re.compile("heaviside|zeta|unique")


@cache
def reference() -> tuple[list[Any], dict[str, dict[str, list[int]]]]:
    """torch's outcomes, and for each number of dims and call the number of the outcome by input."""
    stored = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "layouts.json.gz").read_bytes()))
    return stored["strides"], stored["calls"]


def _id(given: tuple[int, str, Shape]) -> str:
    return f"{given[1]} {'x'.join(map(str, given[2]))}"


@pytest.mark.parametrize("given", INPUTS, ids=_id)
def test_results_lie_as_torchs_do(given: tuple[int, str, Shape]) -> None:
    ndim, layout, shape = given
    outcomes, table = reference()
    at = [g for g in INPUTS if g[0] == ndim].index(given)
    assert set(table[str(ndim)]) == set(calls(ndim)), "run tests/data/make_layouts.py"
    wrong = {}
    for call in calls(ndim):
        if any(re.search(pattern, f"{call} @ {layout}") for pattern in DIFFERENCES):
            continue
        expected = outcomes[table[str(ndim)][call][at]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found: Any = [list(part) for part in Case(torch, call, layout, shape).geometry()]
            except (RuntimeError, ValueError, NotImplementedError) as error:
                found = type(error).__name__
        if isinstance(expected, str) != isinstance(found, str) or (isinstance(found, list) and found != expected):
            wrong[call] = (found, "torch", expected)
    assert not wrong


def _differentiable(ndim: int, layout: str, shape: Shape) -> Iterator[Case]:
    """Calls that can be made of an input and are the same each time."""
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
    """A gradient lies as its leaf does if that is dense, else it is row-major, as torch's AccumulateGrad has it."""
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
            x = case.x.detach()
            assert geometry(grad) == geometry(x if is_dense(x.shape, x.stride()) else x.contiguous())
        except AssertionError as error:
            wrong[case.call] = str(error)[:200]
    assert not wrong


def _arguments(x: torch.Tensor, given: list[torch.Tensor]) -> tuple[Any, ...]:
    """What a call takes, with the operands that were made for it before."""
    left = iter(given)
    return torch, torch.nn.functional, x, lambda: next(left), lambda *s: next(left), lambda *s: next(left)


def _program(x: torch.Tensor, functions: list[Any], operands: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    out = []
    for fn, given in zip(functions, operands, strict=True):
        out.append(results(fn(*_arguments(x, given))))
    return out


def _check_compiled(cases: list[Case], backend: str) -> None:
    """Compile the calls as one program: its results, and its gradient if x wants one, are those of eager code, with its strides."""
    x = cases[0].x
    compiled = torch.compile(_program, backend=backend)
    torch.manual_seed(0)
    found = compiled(x, [function_of(case.call) for case in cases], [case.given for case in cases])
    wrong = {}
    certain, expected = [], []  # results that are the same each time, in both ways
    for case, ys in zip(cases, found, strict=True):
        if case.geometry() != [geometry(y) for y in ys]:
            wrong[case.call] = ([geometry(y) for y in ys], "eager", case.geometry())
        elif not RANDOM.search(case.call) and not NO_DERIVATIVE.search(case.call):
            certain += ys
            expected += results(function_of(case.call)(*_arguments(x, case.given)))
            torch.testing.assert_close(ys, case.results, equal_nan=True, rtol=1e-4, atol=1e-4, msg=lambda m, c=case.call: f"{c}: {m}")
    assert not wrong
    if not x.requires_grad:
        return
    finite = [i for i, y in enumerate(expected) if y.requires_grad and y.isfinite().all()]
    first, second = (_backward(x, [ys[i] for i in finite]) for ys in (certain, expected))
    assert first is not None and second is not None and geometry(first) == geometry(x.detach())
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)


def _cases(ndim: int, layout: str, shape: Shape, requires_grad: bool) -> list[Case]:
    found = []
    for call in calls(ndim):
        if not DATA_DEPENDENT.search(call):
            try:
                found.append(Case(torch, call, layout, shape, requires_grad))
            except (RuntimeError, ValueError):
                continue
    return found


@pytest.mark.parametrize("given", [(4, "last", (2, 4, 6, 4)), (5, "last", (2, 4, 2, 4, 2))], ids=_id)
def test_captured_graphs_give_the_strides_of_eager_code(given: tuple[int, str, Shape]) -> None:
    cases = _cases(*given, requires_grad=False)
    for i in range(0, len(cases), 40):
        _check_compiled(cases[i : i + 40], "aot_eager")


# Calls whose result the compiler computes itself, in loops or products that write the layout that the capture decided on.
GENERATED = re.compile(
    r"conv2d\(x, (rows|last)\(6|conv_transpose2d\(x, rows\(x.shape\[1\], 5|max_pool2d\(x, 2\)|avg_pool2d\(x, 2\)|pad\(x, \(1, 1, 1, 1\)\)|"
    r"interpolate\(x, scale_factor=2\)|group_norm\(x, 1\)|batch_norm\(x, N|instance_norm\(x\)|F.softmax\(x, 1\)|pixel_|F.channel_shuffle|"
    r"T.cat\(\[x, same\(\)\], 1\)$|T.stack\(\[x, same\(\)\], 1|x.flip\(1|x.roll\(1, 1|x \+ same|x.mean\(1|cumsum\(1|F.gelu\(x\)")


def test_generated_code_gives_the_strides_of_eager_code() -> None:
    cases = [case for case in _cases(4, "last", (2, 4, 6, 4), requires_grad=True) if GENERATED.search(case.call)]
    _check_compiled(cases, "inductor")
