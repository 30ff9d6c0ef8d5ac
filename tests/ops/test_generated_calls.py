"""A sample of the calls generated from torch's signatures against torch's stored outcomes (tests/data/generated_calls.py)."""
from __future__ import annotations

from tests.data.call_differences import DIFFERENCES, excused
from tests.data.compare_calls import GENERATED, difference, generated_differences, in_order_of, kind_of, stored
from tests.data.generated_calls import generated, sample
from tests.data.generated_differences import KNOWN


def test_generated_calls_agree_with_torch() -> None:
    reference = stored(GENERATED)
    unexpected = [f"{kind_of(what)}: {text}\n    {what}" for family, text, what in generated_differences(reference, [])
                  if not excused(text, reference[family].get(text), what, DIFFERENCES + KNOWN)]  # fmt: skip
    assert sum(map(len, reference.values())) > 3000
    assert not unexpected, f"{len(unexpected)} calls differ:\n" + "\n".join(unexpected[:30])


def test_every_call_of_the_sample_has_a_stored_outcome() -> None:
    reference, chosen = stored(GENERATED), sample()
    missing = [text for family, group in chosen.items() for text in group if text not in reference.get(family, {})]
    assert len(missing) < 20, f"run compare_calls --generated --store again: {missing[:5]}"  # calls that kill torch have no outcome


def test_every_form_of_an_argument_is_generated() -> None:
    calls = generated()["T.index_fill"]
    for form in ("T.index_fill(input=", ").index_fill(", "t('f4', 0, 4)", "t('f4', 1, 1)", ".expand(3, 4)", ".permute(1, 0)",
                 "special('f4')", "t('c8', 3, 4)", "t('b1', 3, 4)", ", -1, at", ", 7, at", "None", "out=T.empty(0)", "-at(2, 2)",
                 ", nan)", ", 1j)"):  # fmt: skip
        assert any(form in call for call in calls), form


def test_eigenvalues_are_compared_in_any_order() -> None:
    theirs = {"d": "complex64", "n": [3], "s": [1], "o": 0, "a": -1, "v": [-0.75, 0.0, 0.0, 2.0, 0.0, -2.0]}
    ours = {**theirs, "v": [0.0, -2.0, 1e-8, 2.0, -0.75, 0.0]}
    assert difference(ours, theirs) and not difference(in_order_of(ours, theirs), theirs)
    assert difference(in_order_of({**ours, "v": [0.0, -2.0, 0.0, 2.0, 0.75, 0.0]}, theirs), theirs)


def test_kinds_of_differences_are_distinguished() -> None:
    assert kind_of("no error, but {'d'} against torch's TypeError: x") == "accepted"
    assert kind_of("IndexError: 'a' against torch's RuntimeError: 'b'") == "error class"
    assert kind_of("RuntimeError: a") == "refused"
    assert kind_of("values: 1.0 against torch's 2.0 in [1.0] against [2.0]") == kind_of("dtype: float32 against torch's int64") == "result"
