"""Each call checks its arguments against torch's signature before the function runs. Caching does not weaken the check."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager import _native
from eager.nn import functional as F  # noqa: N812 - torch's name
from eager.optable import signatures
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.public import matching, wrapper

X = torch.ones(2, 3)
# Ops for whose tensors torch takes numbers, beside those with an overload for a number.
_NUMBERS_AS_TENSORS = frozenset("add div mul sub floor_divide add_ div_ mul_ sub_ floor_divide_".split())


def _with_two_tensors() -> list[Op]:
    return [op for op in OPS.values() if op.kind is Kind.POINTWISE and op.schema.params[1:] and op.schema.params[1].is_tensor]


def _torch_takes_numbers(op: Op, at: int) -> bool:
    """Whether some overload of torch's operator has a number in that place."""
    taken = any(len(parameters) > at and parameters[at].kind == "Scalar" for parameters in signatures.signatures(op.name))
    return taken or op.name in _NUMBERS_AS_TENSORS


@pytest.mark.parametrize("op", [op for op in _with_two_tensors() if signatures.signatures(op.name)], ids=lambda op: op.name)
def test_numbers_stand_for_tensors_where_torch_has_an_overload(op: Op) -> None:
    tensors = [p.name for p in op.schema.params if p.is_tensor]
    in_torch = {name for at, name in enumerate(tensors) if _torch_takes_numbers(op, at)}
    assert op.takes_numbers == in_torch


@pytest.mark.parametrize("op", [op for op in _with_two_tensors() if not op.takes_numbers], ids=lambda op: op.name)
def test_a_number_for_a_tensor_is_refused(op: Op) -> None:
    x = torch.ones(3, dtype=torch.int64) if op.accepts <= OPS["gcd"].accepts else torch.ones(3)
    rest = [x for p in op.schema.params[2:] if p.is_tensor]
    for number in (2, 0.5, True):
        for args in ((x, number, *rest), (number, x, *rest)):
            with pytest.raises(TypeError, match=f"must be Tensor, not {type(number).__name__}"):
                op(*args)
        with pytest.raises(TypeError, match="must be Tensor"):
            op(x, **{op.schema.params[1].name: number})


WRONG: dict[str, Any] = {
    "maximum": lambda x: torch.maximum(2, x), "eq": lambda x: torch.eq(2, x), "atan2": lambda x: torch.atan2(x, 2),
    "logical_and": lambda x: torch.logical_and(x, True), "method": lambda x: x.fmin(2.0), "in place": lambda x: x.clone().hypot_(1.0),
    "lerp": lambda x: torch.lerp(x, 2, 0.5), "addcmul": lambda x: torch.addcmul(x, 2, x), "dist": lambda x: torch.dist(x, 1.0),
    "bool as int": lambda x: x.sum(True), "list of floats": lambda x: x.sum([0.5]), "out of a method": lambda x: x.clone().lt_(0, out=x),
    "function of a list": lambda x: torch.flip(x, 1), "complex": lambda x: x.nan_to_num(1j), "loss": lambda x: F.mse_loss(2, x),
    "unknown keyword": lambda x: torch.cumsum(x, 0, axes=1), "too many": lambda x: torch.mm(x, x, x), "none": lambda x: torch.mm(x, None),
    "wanted gradient": lambda x: torch.add(x, x, alpha=torch.ones(3)), "linalg": lambda x: torch.linalg.matrix_rank(x, rtol=1j),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_type_error(name: str) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            WRONG[name](X)


@pytest.mark.parametrize("name", ["maximum", "eq", "logical_and", "in place", "lerp", "list of floats", "function of a list", "loss"])
def test_compiled_code_raises_the_same(name: str) -> None:
    with pytest.raises(TypeError) as in_eager:
        WRONG[name](X)
    with pytest.raises(TypeError) as compiled:
        torch.compile(WRONG[name])(X)
    assert str(compiled.value) == str(in_eager.value)


def test_a_check_that_depends_on_a_value_runs_again() -> None:
    one, two = torch.tensor(1), torch.tensor([1, 1])
    for _ in range(3):
        assert torch.cumsum(X, one).shape == (2, 3) and X.sum((0, 1)).item() == 6 and X.sum([]).item() == 6
        with pytest.raises(TypeError):
            torch.cumsum(X, two)
        with pytest.raises(TypeError):
            torch.cumsum(X, torch.tensor(1.0))
        with pytest.raises(TypeError):
            X.sum([0, 0.5])


def test_a_check_caches_verified_classes_up_to_its_limit() -> None:
    verified: list[Any] = []

    def verify(args: tuple[Any, ...], kwargs: Any) -> Any:
        verified.append((args, kwargs))
        return "b" not in args and (("replaced",) if float in args else True)

    check = _native.ArgumentCheck(verify)
    calls: list[tuple[tuple[Any, ...], Any]] = [((1,), None), ((1.0,), None), (([1, 2],), None), (([1, 2.0],), None), (([],), None),
                                                ((1,), {"a": 1}), ((1,), {"b": 1}), ((), None)]  # fmt: skip
    for args, kwargs in calls * 2:
        assert check(args, kwargs) is None
    assert [a for a, _ in verified] == [a for a, _ in calls] + [([1, 2.0],)]  # a list of two classes is verified in each call
    assert check((float,)) == ("replaced",) and check((float,)) == ("replaced",)
    before = len(verified)
    check(("b",)), check(("b",))
    assert len(verified) == before + 2  # the verifier reported that the outcome depends on a value
    classes = [type(f"C{i}", (), {}) for i in range(40)]
    for cls in classes * 3:
        assert check((cls(),)) is None
    assert check(tuple(range(20))) is None and check((1,)) is None
    with pytest.raises(TypeError, match="takes a tuple"):
        check([1])  # type: ignore[arg-type]


def test_signatures_of_torch_are_read_with_their_options() -> None:
    (zeros,) = signatures.signatures("zeros")
    assert [p.name for p in zeros] == ["size", "dtype", "layout", "device", "pin_memory", "requires_grad", "out"]
    assert not signatures.signatures("no_operator") and signatures.takes_out("no_operator") and not signatures.takes_out("isnan")
    largest = signatures.signatures("max")
    assert {p.name for s in largest for p in s} == {"input", "dim", "keepdim", "out", "other"}


def test_arguments_of_known_classes_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(matching, "check", lambda *args, real=matching.check: (checked.append("schema"), real(*args))[1])
    monkeypatch.setattr(wrapper, "refuse", lambda *args, real=wrapper.refuse: (checked.append("annotations"), real(*args))[1])
    x, at = torch.ones(3, 3), torch.zeros(3, 3, dtype=torch.int64)
    calls: dict[str, Callable[[], Any]] = {
        "matmul": lambda: x @ x, "rmatmul": lambda: torch.Tensor.__rmatmul__(x, x), "xlogy": lambda: torch.xlogy(x, x),
        "sum": lambda: x.sum(1),
        "max": lambda: torch.max(x, x), "clamp": lambda: torch.clamp(x, x, x), "scatter": lambda: torch.scatter(x, 0, at, x),
        "gather": lambda: x.gather(1, at),
        "cat": lambda: torch.cat([x, x]),
        "loss": lambda: F.mse_loss(x, x), "solve": lambda: torch.linalg.solve(x + torch.eye(3), x),
    }  # fmt: skip
    for name, call in calls.items():
        call()
        checked.clear()
        call()
        assert not checked, name


@pytest.mark.parametrize(("call", "message"), [  # the texts of torch 2.13
    (lambda x: x.transpose("a", 1), "transpose(): argument 'dim0' (position 1) must be int, not str"),
    (lambda x: torch.transpose(x, "a", 1), "transpose(): argument 'dim0' (position 2) must be int, not str"),
    (lambda x: x.gather(0, 1), "gather(): argument 'index' (position 2) must be Tensor, not int"),
    (lambda x: x.mm(3), "mm(): argument 'mat2' (position 1) must be Tensor, not int"),
    (lambda x: x.sum("a"), "sum() received an invalid combination of arguments - got (str), but expected one of:"),
    (lambda x: x.masked_fill(1, 2), "masked_fill() received an invalid combination of arguments - got (int, int), but expected one of:"),
    (lambda x: x.t(1), "t() takes 0 positional arguments but 1 was given"),
    (lambda x: torch.t(x, 1), "t() takes 1 positional argument but 2 were given"),
    (lambda x: torch.exp_(x, 1), "exp_() takes 1 positional argument but 2 were given"),
    (lambda x: torch.clamp_(x, "a"), "clamp_() received an invalid combination of arguments - got (Tensor, str), but expected one of:"),
    (lambda x: torch.nan_to_num_(x, "a"), "nan_to_num_(): argument 'nan' (position 2) must be float, not str"),
    (lambda x: x.nan_to_num_("a"), "nan_to_num_(): argument 'nan' (position 1) must be float, not str"),
    (lambda x: torch.relu_("a"), "relu_(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda x: torch.zero_("a"), "zero_(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda x: torch.fill_(x, "a"), "fill_() received an invalid combination of arguments - got (Tensor, str), but expected one of:"),
    (lambda x: torch.addmv_(x, x, "a"), "addmv_(): argument 'vec' (position 3) must be Tensor, not str"),
])  # fmt: skip
def test_messages_do_not_count_the_tensor_of_a_method(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(torch.ones(2, 3))
    assert str(caught.value).splitlines()[0] == message
