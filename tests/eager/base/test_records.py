"""`eager.base.records.dataclass` beside the standard decorator: every combination of parameters, one set of classes."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import subprocess
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from eager.base import records

OURS: Any = records.dataclass
CASES = [
    {"frozen": frozen, "slots": slots, "eq": eq, "weakref_slot": weak}
    for frozen, slots, eq, weak in itertools.product((False, True), repeat=4)
    if slots or not weak
]


def family(decorate: Any, case: dict[str, bool]) -> tuple[type, type, type]:
    """A class, a class with a base and a class with own methods, made by one of the two decorators."""

    @decorate(**case)
    class Point:
        x: int
        y: float = 2.5
        names: list[str] = field(default_factory=list)
        hidden: int = field(default=7, repr=False, compare=False)
        made: dict[str, int] = field(default_factory=dict, init=False)
        shared: ClassVar[int] = 3

        def norm(self) -> float:
            return self.x * self.x + self.y * self.y

    @decorate(**case)
    class Named(Point):
        y: float = 4.0
        label: str = "p"

        def __post_init__(self) -> None:
            object.__setattr__(self, "hidden", self.hidden + 1)

    @decorate(**case)
    class Own:
        value: int

        def __repr__(self) -> str:
            return f"<{self.value}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.value % 10 == other.value % 10

        def __hash__(self) -> int:
            return self.value % 10

    return Point, Named, Own


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as e:
        return type(e), str(e)


def facts(classes: tuple[type, type, type]) -> list[Any]:
    """Results of all that a user of the classes can do."""
    point, named, own = classes
    a: Any = point(1)
    b: Any = named(1, names=["n"], label="q")
    runs: list[Callable[[], Any]] = [
        lambda: (a, b, own(3)),
        lambda: (a == point(1), a == point(2), a == b, a != 1, point(1, hidden=9) == a, own(3) == own(13)),
        lambda: hash(point(1, names=())) == hash(point(1, names=())),
        lambda: hash(a) if type(a).__hash__ is not object.__hash__ else None,
        lambda: (hash(own(3)), {own(3), own(13)}),
        lambda: setattr(a, "x", 5),
        lambda: delattr(named(1), "y"),
        lambda: (point.shared, point.__qualname__, point.__match_args__, named.__match_args__),
        lambda: point(),
        lambda: point(1, 2, 3, 4, 5),
        lambda: named(1, lable="q"),
        lambda: point(1, names=[]).names is point(1).names,
        lambda: (b.hidden, b.made, a.norm()),
        lambda: dataclasses.replace(a, x=3),
        lambda: dataclasses.asdict(b),
        lambda: [(f.name, f.init, f.repr, f.compare) for f in dataclasses.fields(named)],
        lambda: dataclasses.is_dataclass(a),
        lambda: copy.deepcopy(b),
        lambda: copy.copy(a) is a,
        lambda: weakref.ref(a)() is a,
        lambda: hasattr(a, "__dict__"),
    ]
    return [repr(outcome(run)) for run in runs]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(k for k, v in case.items() if v) or "plain")
def test_classes_look_as_the_standard_ones_do(case: dict[str, bool]) -> None:
    for ours, standard in zip(facts(family(OURS, case)), facts(family(dataclasses.dataclass, case)), strict=True):
        assert ours == standard


@OURS(frozen=True, slots=True)
class Pair:
    left: int
    right: str = "r"


@OURS
class Plain:
    left: int


def test_instances_of_frozen_classes_with_slots_are_pickled() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Pair(1), protocol)) == Pair(1)


def test_instances_made_without_their_initializer_compare() -> None:
    @OURS(frozen=True)
    class Fresh:
        value: int

    a, b = object.__new__(Fresh), object.__new__(Fresh)
    for one in (a, b):
        object.__setattr__(one, "value", 4)
    assert a == b and hash(a) == hash(b) and a != 4


def test_patterns_match() -> None:
    match Pair(1, "s"):
        case Pair(left, right):
            assert (left, right) == (1, "s")


def test_a_frozen_instance_with_slots_takes_no_other_attribute() -> None:
    """The standard decorator fails with a TypeError about `super` here."""
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        Pair(1).other = 5


def test_a_standard_dataclass_derives_from_one_of_these() -> None:
    @dataclasses.dataclass(frozen=True)
    class Derived(Pair):
        more: int = 0

    assert repr(Derived(1, more=3)).endswith("Derived(left=1, right='r', more=3)")
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):

        @dataclasses.dataclass(frozen=True)
        class Wrong(Plain):
            pass


def test_a_recursive_value_prints() -> None:
    one = Plain(1)
    one.left = one  # type: ignore[assignment]
    assert repr(one) == "Plain(left=...)"


def test_a_field_without_default_comes_first() -> None:
    with pytest.raises(TypeError, match="Late: field 'b' has no default and follows a field with a default"):

        @OURS
        class Late:
            a: int = 1
            b: int


def test_the_constructor_of_an_abstract_class_refuses() -> None:
    @OURS(slots=True)
    class Shape(ABC):
        sides: int

        @abstractmethod
        def area(self) -> float: ...

    with pytest.raises(TypeError, match="abstract"):
        Shape(3)


def test_no_class_of_the_compiler_is_made_by_the_standard_decorator() -> None:
    """Each cost half a millisecond of every import."""
    program = (
        "import dataclasses; made = []; process = dataclasses._process_class\n"
        "def note(cls, *args): made.append(cls.__module__); return process(cls, *args)\n"
        "dataclasses._process_class = note\n"
        "import eager as torch; torch.compile(lambda x: x * 2 + 1)(torch.randn(3))\n"
        "print(*made)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = [name for name in done.stdout.split() if name.split(".")[0] in ("eager", "fxir", "dynamo", "inductor")]
    assert ours == ["eager.base.records"]
