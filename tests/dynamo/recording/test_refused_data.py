"""Calls with data that eager refuses, compiled: the same error, in the same `except`, even if the result is unread.

`try: cholesky(m); return True` is how programs check whether a matrix is positive definite.
"""
from __future__ import annotations

import contextlib
import random
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from eager.base.spec import fake, spec_of
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS

F = torch.nn.functional
X, I, J, Z, EYE = torch.tensor([-2.0, 5.0]), torch.tensor([-9, 8]), torch.tensor([3, 4]), torch.tensor([0, 1]), torch.eye(2)
NAN = EYE * float("nan")
CASES: dict[str, Callable[[], Any]] = {
    "binary_cross_entropy": lambda: F.binary_cross_entropy(X, torch.zeros(2)), "one_hot": lambda: F.one_hot(I, 3),
    "bernoulli": lambda: torch.bernoulli(X), "multinomial": lambda: torch.multinomial(X, 1), "poisson": lambda: torch.poisson(X),
    "gaussian_nll_loss": lambda: F.gaussian_nll_loss(X, X, X), "//": lambda: J // Z, "%": lambda: J % Z,
    "div": lambda: torch.div(J, Z, rounding_mode="trunc"), "fmod": lambda: torch.fmod(J, Z),
    "embedding": lambda: F.embedding(I, torch.ones(3, 2)), "cross_entropy": lambda: F.cross_entropy(torch.ones(2, 3), I),
    "embedding_bag": lambda: F.embedding_bag(I, torch.ones(3, 2), torch.tensor([0])),
    "ctc_loss": lambda: F.ctc_loss(torch.ones(4, 1, 3), torch.tensor([[9, 9]]), torch.tensor([4]), torch.tensor([2])),
    "ctc_loss lengths": lambda: F.ctc_loss(torch.ones(4, 1, 3), torch.tensor([[1, 1]]), torch.tensor([9]), torch.tensor([2])),
    "index": lambda: X[I], "take": lambda: torch.take(X, I), "gather": lambda: torch.gather(X, 0, I),
    "index of one element": lambda: X[:1].expand(2)[I], "index_add": lambda: torch.zeros(3).index_add(0, I, X),
    "index_put": lambda: torch.zeros(3).index_put((I,), X), "scatter": lambda: torch.zeros(3).scatter(0, I, X),
    "index_put_": lambda: torch.zeros(3).index_put_((I,), X), "inverse": lambda: torch.inverse(torch.zeros(2, 2)),
    "cholesky": lambda: torch.linalg.cholesky(-EYE), "solve": lambda: torch.linalg.solve(EYE * 0, EYE),
    "svd": lambda: torch.linalg.svd(NAN), "eig": lambda: torch.linalg.eig(NAN), "histc": lambda: torch.histc(X * float("nan")),
    "max_unpool1d": lambda: F.max_unpool1d(torch.ones(1, 1, 2), torch.tensor([[[50, 3]]]), 2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.parametrize("name", CASES)
def test_the_error_agrees_with_eager(name: str, backend: str) -> None:
    call = CASES[name]

    def read() -> Any:
        return call()

    def unread() -> Any:
        call()
        return 1

    def caught(log: list[int]) -> Any:
        log.append(1)
        try:
            call()
        except (RuntimeError, IndexError, ValueError):
            return False
        log.append(2)
        return True

    with pytest.raises(Exception) as expected:  # noqa: PT011 - the class of eager's error varies
        call()
    for fn in (read, unread):
        with pytest.raises(expected.type) as found:
            dynamo.compile(fn, backend=backend)()
        assert str(found.value) == str(expected.value)
    log: list[int] = []
    assert dynamo.compile(caught, backend=backend)(log) is False and log == [1]


def test_a_write_is_refused_although_its_result_is_unread() -> None:
    def fn(i: Any) -> Any:
        x = torch.zeros(3)
        x[i] = 1.0
        x.view(3)[i] += 1
        return i + 1

    compiled = dynamo.compile(fn, fullgraph=True)
    assert compiled(Z).tolist() == [1, 2]
    with pytest.raises(IndexError, match="index 8 is out of bounds"):
        compiled(I)


def _amid_writes(net: Any, x: Any, w: Any, i: Any, log: list[str]) -> Any:
    log.append("begun")
    rows = F.embedding(i, w)
    x.add_((net(rows) > 0).sum())
    log.append("written")
    picked = rows.sum(1)[i]
    x.mul_(2)
    log.append("ended")
    return picked + x.sum()


def _as_captured(gm: Any, example_inputs: Any) -> Any:
    return gm.forward


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager", _as_captured])
@pytest.mark.parametrize(("grad", "i"), [(g, i) for g in (False, True) for i in ([0, 9], [0, 3], [0, 1])])
def test_writes_before_a_refusal_have_happened(backend: str, grad: bool, i: list[int]) -> None:
    """The graph writes to its inputs at its end, or its writes are undone: after a refused call, the program runs a
    second time.
    """

    def outcome(fn: Callable[..., Any]) -> Any:
        net = torch.nn.BatchNorm1d(3)
        x, w, log = torch.zeros(2), torch.arange(12.0).view(4, 3).requires_grad_(grad), []
        try:
            told: Any = fn(net, x, w, torch.tensor(i), log).tolist()
        except IndexError as error:
            told = str(error), [n for _, n in traceback.walk_tb(error.__traceback__) if _.f_code is _amid_writes.__code__]
        return told, log, x.tolist(), net.running_mean.tolist(), net.num_batches_tracked.item()

    plain = outcome(_amid_writes)
    assert plain[1] == {9: ["begun"], 3: ["begun", "written"], 1: ["begun", "written", "ended"]}[i[1]]
    assert outcome(dynamo.compile(_amid_writes, backend=backend)) == plain
    if i == [0, 1]:  # and it is one graph
        dynamo.compile(_amid_writes, backend=backend, fullgraph=True)(torch.nn.BatchNorm1d(3), X + 0, torch.ones(4, 3), Z, [])


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("i", [0, 7])
def test_a_refusal_leaves_the_history_that_eager_leaves(backend: str, i: int) -> None:
    def fn(x: Any, row: Any, plain: Any, w: Any, i: Any) -> Any:
        x.mul_(3)
        row.add_(w)
        plain.add_(w.sum())
        picked = x[i]
        x.mul_(2)
        return picked

    def outcome(fn: Callable[..., Any]) -> Any:
        leaf, w, base = torch.ones(3, 2, requires_grad=True), torch.ones(2, requires_grad=True), torch.zeros(3, 2)
        x, kept, plain = leaf * 2, leaf * 5, torch.zeros(4)
        x.retain_grad()
        with contextlib.suppress(IndexError):
            fn(x, base[1], plain, w, torch.tensor([i]))
        (x.sum() + (base * 7).sum() + plain.sum() + kept.sum()).backward()
        return leaf.grad.tolist(), w.grad.tolist(), x.grad.tolist(), x.tolist(), base.tolist(), plain.tolist()

    assert outcome(dynamo.compile(fn, backend=backend)) == outcome(fn)


@pytest.mark.parametrize("handling", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_the_error_has_the_context_that_eager_gives_it(handling: bool, broken: bool) -> None:
    def fn(x: Any, i: Any) -> Any:
        if broken:
            dynamo.graph_break()
        return x[i] * 2

    def context(call: Callable[..., Any]) -> type | None:
        try:
            if not handling:
                call(X, I)
            try:
                raise KeyError("first")
            except KeyError:
                call(X, I)
        except IndexError as error:
            return error.__context__ and type(error.__context__)
        raise AssertionError("nothing was refused")

    assert context(dynamo.compile(fn)) == context(fn) == (KeyError if handling else None)


@pytest.mark.parametrize("around", ["except", "finally", "suppress", "callee", "no_grad"])
@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_handlers_of_a_refusal_run(around: str, writes: bool, broken: bool) -> None:
    def positive(m: Any) -> bool:
        try:
            torch.linalg.cholesky(m)
        except RuntimeError:
            return False
        return True

    def fn(m: Any, buffer: Any, log: list[str]) -> Any:
        if broken:
            dynamo.graph_break()
        if writes:
            buffer.add_(1)
        y = m * 2
        if around == "except":
            try:
                torch.linalg.cholesky(y)
                log.append("is")
            except RuntimeError:
                log.append("is not")
        elif around == "finally":
            try:
                y = torch.linalg.cholesky(y)
            finally:
                log.append("done")
        elif around == "suppress":
            with contextlib.suppress(RuntimeError):
                y = torch.linalg.cholesky(y)
                log.append("is")
        elif around == "callee":
            log.append(str(positive(y)))
        else:
            with torch.no_grad():
                y = torch.linalg.cholesky(y)
        if writes:
            buffer.mul_(2)
        return y + 1

    def outcome(call: Any, m: Any) -> Any:
        buffer, log = torch.ones(2), []
        try:
            result = call(m, buffer, log).tolist()
        except RuntimeError as error:
            result = str(error)
        return result, log, buffer.tolist() if around != "no_grad" else None  # without a handler writes may have happened or not

    compiled = dynamo.compile(fn)
    for m in (EYE, -EYE, EYE):
        assert outcome(compiled, m) == outcome(fn, m)


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("handled", [False, True])
def test_numbers_drawn_before_a_refusal_are_drawn_once(backend: str, writes: bool, handled: bool) -> None:
    weight, x, state = torch.ones(3, 2), torch.ones(8), torch.zeros(2)

    def program(i: torch.Tensor) -> torch.Tensor:
        if writes:
            state.add_(1)
        y = F.dropout(x)
        if not handled:
            return y + random.random() + F.embedding(i, weight).sum()
        try:
            return y + F.embedding(i, weight).sum()
        except IndexError:
            return y

    def draws(fn: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(0)
        random.seed(0)
        found = []
        for i in (0, 5, 1):
            with contextlib.suppress(IndexError):
                found.append(fn(torch.tensor([i])))
            found.append(torch.rand(2))
        return [t.tolist() for t in found] + [random.random()]

    assert draws(dynamo.compile(program, backend=backend)) == draws(program)


def test_a_call_kept_for_its_error_has_no_gradient() -> None:
    def fn(w: Any, i: Any) -> Any:
        w[i]
        w.gather(0, i)
        torch.linalg.eigh(torch.outer(w, w))
        return (w * w).sum()

    w = X.clone().requires_grad_()
    y = dynamo.compile(fn, fullgraph=True)(w, Z)
    y.backward()
    assert w.grad.tolist() == [-4.0, 10.0] and y.item() == 29.0


def test_data_that_a_graph_demands_is_checked_at_each_call() -> None:
    compiled = dynamo.compile(lambda p: F.binary_cross_entropy(p, torch.ones(2)), fullgraph=True)
    p = torch.tensor([0.5, 0.25], requires_grad=True)
    compiled(p).backward()
    assert torch.allclose(p.grad, torch.tensor([-1.0, -2.0]))
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        compiled(p * 4)


def _spoilt(x: Any, value: int) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_spoilt(v, value) for v in x)
    if not isinstance(x, torch.Tensor) or x.dtype is torch.bool:
        return x
    y = x.detach().clone()
    return y.fill_((float("nan"), -3.0, 0.0)[value] if y.dtype.is_floating_point or y.dtype.is_complex else (100, -100, 0)[value])


def _faked(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_faked, x))
    return fake(spec_of(x)) if isinstance(x, torch.Tensor) else x


def _fails(fn: Callable[[], Any]) -> bool:
    try:
        fn()
    except NotImplementedError:
        return False
    except Exception:  # noqa: BLE001 - any is a refusal
        return True
    return False


@pytest.mark.filterwarnings("ignore")
def test_ops_whose_kernels_refuse_data_are_marked_fallible() -> None:
    """Whether an op refuses data is found by trial: data out of every range, of a shape that the meta rule accepts."""
    refusing = set()
    for name, op in OPS.items():
        if op.fallible or op.samples is None or op.dynamic_output or op.kind is Kind.INPLACE or name.endswith("_backward"):
            continue
        for args in list(samples_of(op))[:3]:
            for i in range(op.schema.params[0].name == "state", len(args)):  # a generator's state is not data of the user
                for value in range(3):
                    bad = [_spoilt(a, value) if k == i else a for k, a in enumerate(args)]
                    if _fails(lambda bad=bad, op=op: op(*bad)) and not _fails(lambda bad=bad, op=op: op.infer(*map(_faked, bad))):
                        refusing.add(name)
    assert not refusing
