"""A misspelt keyword raises torch's TypeError; where this library composes the text, it names the nearest right keyword."""
from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator

import pytest

import eager
from eager.optable import signatures
from eager.public.record import record_of
from tests.keywords.calls import Call, run
from tests.keywords.compare import plan

_FORMS = (
    r"\S+\(\) got an unexpected keyword argument '{0}'",
    r"\S+\(\) takes no keyword arguments",
    r"\S+\(\) received an invalid combination of arguments - got \(.*{0}=NoneType\)",
)
# The whole call is wrong in another way as well, which torch finds first, or the name takes any arguments.
_OTHERWISE = {
    "nn.Identity": "takes and ignores any arguments, as torch's",
    **dict.fromkeys(("T.median", "T.nanmedian", "Tensor.round_"), "torch reports the missing argument of the overload with keywords"),
    "Tensor.where": "the call's number is refused first",
    **dict.fromkeys(("Tensor.stride", "Tensor.size"), "the native method counts its arguments"),
    **dict.fromkeys(("T.lstm", "T.gru", "T.rnn_tanh", "T.rnn_relu"), "the classes of all arguments are reported"),
    "T.utils.checkpoint.checkpoint_sequential": "torch raises ValueError",
}


def _misspelt() -> Iterator[tuple[Call, str]]:
    for call, names in plan():
        yield call, names[0] if names else "dim"


def _error(call: Call, keyword: str) -> Exception | None:
    try:
        run(eager, call, {keyword: None})
    except Exception as error:  # noqa: BLE001 - the test checks the class
        return error
    return None


@pytest.fixture(scope="module")
def errors() -> dict[str, tuple[str, Exception | None]]:
    """By call, the right keyword and the error that its misspelling raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {call.name: (name, _error(call, name + "m")) for call, name in _misspelt()}


def test_a_misspelt_keyword_is_refused_in_the_form_of_torch(errors: dict[str, tuple[str, Exception | None]]) -> None:
    def fits(name: str, error: Exception | None) -> bool:
        return isinstance(error, TypeError) and any(re.match(form.format(name + "m"), str(error)) for form in _FORMS)

    wrong = {call: str(error) for call, (name, error) in errors.items() if not fits(name, error)}
    assert {call: text for call, text in wrong.items() if call not in _OTHERWISE} == {}
    assert set(_OTHERWISE) <= set(wrong)


def _keywords_of(call: str) -> set[str]:
    """The keywords in torch's schemas of a function; none if torch writes the function in Python."""
    owner, _, name = call.rpartition(".")
    body = inspect.unwrap(getattr(eager.Tensor if owner == "Tensor" else eager, name))
    parsed = record_of(body).parsed is not False
    return {p.name for overload in signatures.signatures(name) for p in overload} if parsed else set()


def test_the_nearest_keyword_is_named(errors: dict[str, tuple[str, Exception | None]]) -> None:
    parsed = {call: (name, str(error)) for call, (name, error) in errors.items()
              if re.fullmatch(r"(T|Tensor)\.\w+", call) and call not in _OTHERWISE and name in _keywords_of(call)}
    for name in ("to_dense", "is_contiguous", "requires_grad_", "set_"):  # methods without a wrapper: the interpreter composes their texts
        del parsed[f"Tensor.{name}"]
    assert len(parsed) > 400
    assert {call: text for call, (name, text) in parsed.items() if f"Did you mean '{name}'?" not in text} == {}
