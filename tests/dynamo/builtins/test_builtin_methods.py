"""Methods and operators of built-in values, with valid and invalid arguments: captured code agrees with Python.

The test calls every method of a class with a few arguments that it draws from a list, so a new method needs no new test.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import random
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from typing import Any

import pytest

import dynamo
import eager

MODULES = {m.__name__: m for m in (collections, copy, dataclasses, enum, functools, itertools, math, operator, types)}
CLASSES = """
class MyList(list): pass
class MyDict(dict):
    def __missing__(self, key): return 'missing', key
class MyStr(str): pass
class MyInt(int): pass
class MyFloat(float): pass
class MyTuple(tuple): pass
class MyOrdered(OrderedDict): pass
class MySet(set): pass
class Odd(dict):
    def __getitem__(self, key): return 'got', key
    def __iter__(self): return iter(['z'])
    def keys(self): return ['z']
class Rank:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return isinstance(other, Rank) and self.n == other.n
    def __hash__(self): return hash(self.n)
    def __lt__(self, other): return self.n < getattr(other, 'n', 0)
    def __len__(self): return self.n
    def __repr__(self): return f'Rank({self.n})'
    def __getitem__(self, i):
        if i >= self.n: raise IndexError(i)
        return i
class Colour(enum.Enum):
    RED = 1
class Level(enum.IntEnum):
    LOW = 1
Pair = collections.namedtuple('Pair', 'x y', defaults=[5])
@dataclasses.dataclass(order=True)
class Point:
    x: int = 1
    y: list = dataclasses.field(default_factory=list)
"""
NAMES = {**MODULES, "Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict, "deque": deque}
VALUES = {
    "list": ["[]", "[3, 1, 2]", "['b', 'a']", "[0, 0.0, True]"],
    "tuple": ["()", "(3, 1, 2)", "('b', None)"],
    "dict": ["{}", "{'a': 1, 'b': 2}", "{None: 0}"],
    "OrderedDict": ["OrderedDict()", "OrderedDict(b=1, a=2)"],
    "defaultdict": ["defaultdict()", "defaultdict(list, {'a': [1]})", "defaultdict(int, a=1, b=2)"],
    "Counter": ["Counter()", "Counter('abca')", "Counter(a=1, b=-2)"],
    "set": ["set()", "{1, 2}", "{'a'}"],
    "frozenset": ["frozenset()", "frozenset({1, 2})"],
    "deque": ["deque()", "deque([1, 2, 3], 2)", "deque('ab')"],
    "str": ["''", "'a,b,,c'", "' A b\\n'", "'{0} {a}'", "'%s'"],
    "bytes": ["b''", "b' A,b'"],
    "int": ["0", "-3", "10**20"],
    "bool": ["True"],
    "float": ["1.5", "float('nan')"],
    "complex": ["2-1j"],
    "slice": ["slice(1, 5)"],
    "range": ["range(0)", "range(5, 0, -2)"],
    "views": ["{'a': 1, 'b': 2}.keys()", "{'a': 1, 'b': 2}.values()", "{'a': 1, 'b': 2}.items()"],
    "iterators": ["enumerate('ab')", "zip('ab', [1, 2])", "map(str, [1])", "reversed([1, 2])", "iter([1, 2])", "iter({1, 2})"],
    "subclasses of containers": ["MyList([3, 1])", "MyDict(a=1)", "MyTuple((1, 2))", "MyOrdered(b=1, a=2)", "MySet({1})", "Odd(a=1)"],
    "subclasses of numbers and text": ["MyStr('a b')", "MyStr('')", "MyInt(3)", "MyFloat(1.5)"],
    "objects": ["Rank(2)", "Rank(0)", "Colour.RED", "Colour", "Level.LOW", "Pair(1, 2)", "Point()", "types.SimpleNamespace(a=1)"],
    "classes": ["int", "dict", "OrderedDict", "Counter", "str", "list", "set", "deque"],
}
ARGUMENTS = ["0", "1", "-1", "2", "None", "'a'", "''", "[1, 2]", "(1,)", "{'a': 1}", "{1, 2}", "1.5", "True", "slice(0, 2)", "len",
             "frozenset({1})", "Counter('a')", "OrderedDict(a=1)", "deque([1])", "range(2)", "b'a'", "int", "[('a', 3)]",
             "{'a': 1}.keys()", "{'a': 1}.values()", "MyList([1])", "MyStr('a')", "MyInt(1)", "Level.LOW",
             "Rank(1)", "Pair(1, 2)"]  # fmt: skip
KEYWORDS = ["key=len", "reverse=True", "default=0", "sep=','", "maxsplit=1", "a=1", "last=False", "start=1", "strict=True",
            "encoding='utf-8'"]  # fmt: skip
EXPRESSIONS = ["v {op} {x}", "{x} {op} v", "v[{x}]", "divmod(v, {x})", "isinstance(v, {x})", "list(zip(v, {x}))", "max(v, {x})",
               "getattr(v, {x}, 0)", "hasattr(v, {x})", "sum(v, {x})", "list(map({x}, v))", "sorted(v, key={x})", "format(v, {x})",
               "int(v, {x})", "list(enumerate(v, {x}))", "next(iter(v), {x})", "dict.fromkeys({x}, v)", "type(v)({x})",
               "'%s %r' % (v, {x})", "reversed(v)", "iter(v)", "v.__module__", "v.__doc__ is None", "dict(v)", "set(v)", "f'{{v!r:>10}}'",
               "abs(v)", "len(v)", "dict.__eq__(v, {x})", "object.__eq__(v, {x})", "object.__str__(v)"]  # fmt: skip
OPERATORS = "+ - * / // % ** & | ^ << >> == != < <= > >= in is and or".split()
STATEMENTS = ["v += {x}", "v *= {x}", "v |= {x}", "v &= {x}", "v -= {x}", "v[{x}] = 7", "del v[{x}]", "v[0:{x}] = [9]", "w, *v = v",
              "v[{x}] += 1", "v.x = {x}"]  # fmt: skip
exec(CLASSES, NAMES)
NAMES["__name__"] = "m"
# Methods that return a new object at each call or depend on the process, and names that only classes use.
SKIPPED = frozenset("__class__ __init_subclass__ __subclasshook__ __reduce__ __reduce_ex__ __sizeof__ __dir__ __new__ __getstate__ "
                    "__setstate__ __init__ __subclasses__ __text_signature__ __hash__ mro __weakref__".split())  # fmt: skip


def programs(literal: str, draw: random.Random) -> Iterator[str]:
    """Statements that use `v`, whose value is `literal`, and set `r`."""
    value = eval(literal, dict(NAMES))
    x = lambda: draw.choice(ARGUMENTS)  # noqa: E731
    for name in dir(value):
        if name not in SKIPPED:
            if not callable(getattr(value, name, None)):
                yield f"r = v.{name}"
                continue
            forms = ["", x(), x(), x(), f"{x()}, {x()}", draw.choice(KEYWORDS), f"{x()}, {draw.choice(KEYWORDS)}"]
            yield from (f"r = v.{name}({form})" for form in forms)
    for text in EXPRESSIONS:
        yield from (f"r = {text.format(x=x(), op=draw.choice(OPERATORS))}" for _ in range(8 if "{op}" in text else 2))
    for text in STATEMENTS:
        yield from (f"r = v; {text.format(x=x())}" for _ in range(3))


def shown(value: Any, depth: int = 4) -> Any:
    kind = type(value)
    if depth > 0 and "__dict__" in dir(kind) and not callable(value):  # the contents, regardless of __repr__
        base = next((b for b in (dict, list, tuple, set, str, int, float) if isinstance(value, b)), object)
        held = {dict: lambda: list(dict.items(value)), list: lambda: list(list.__iter__(value)), tuple: lambda: list(tuple.__iter__(value)),
                set: lambda: list(set.__iter__(value))}.get(base, lambda: None if base is object else base.__repr__(value))  # fmt: skip
        return kind.__name__, shown(dict(vars(value)), depth - 1), shown(held(), depth - 1)
    if depth and kind in (list, tuple, deque, set, frozenset):
        return kind.__name__, getattr(value, "maxlen", None), [shown(item, depth - 1) for item in value]
    if depth and isinstance(value, dict):
        items = [(shown(k, depth - 1), shown(v, depth - 1)) for k, v in value.items()]
        return kind.__name__, shown(getattr(value, "default_factory", None)), items
    if hasattr(kind, "__next__"):
        try:
            return kind.__name__, [shown(item, depth - 1) for item in itertools.islice(value, 10)]
        except Exception as error:  # noqa: BLE001 - the error is part of the result
            return kind.__name__, type(error), str(error)
    return kind.__name__, re.sub("0x[0-9a-f]+", "0x", repr(value))


def outcome(fn: Any, *given: Any) -> Any:
    try:
        return shown(fn(*given))
    except Exception as error:  # noqa: BLE001 - compared
        # Bound or not, a method names its own class or the one of its instance when it is called wrongly.
        text = re.sub(r"^\w+\.(?=\w+\(\) takes)", "", re.sub("0x[0-9a-f]+", "0x", str(error)))
        return type(error), text, shown(given)


FUNCTIONS = {
    "builtins": "abs all any ascii bin bool bytes callable chr complex delattr dict divmod enumerate filter float format frozenset getattr "
                "hasattr hex int isinstance issubclass len list map max min next object oct ord range repr reversed round set setattr "
                "slice sorted str sum tuple type zip",
    "math": "ceil copysign floor fmod gcd hypot isclose isfinite isnan log pow prod sqrt trunc",
    "operator": "add and_ attrgetter contains eq getitem index indexOf itemgetter lt methodcaller neg not_ or_ setitem sub truth",
    "itertools": "accumulate chain chain.from_iterable compress dropwhile filterfalse groupby islice starmap takewhile zip_longest",
    "functools": "partial reduce cmp_to_key",
    "collections": "Counter OrderedDict defaultdict deque",
    "copy": "copy deepcopy",
    "types": "MappingProxyType SimpleNamespace",
}
FURTHER = ["[3, 1, 2]", "(1, 2, 3)", "-3", "2.5", "[[1, 2], [3]]", "'abc'", "[True, False]", "(lambda a, b: a + b)", "(lambda a: a)",
           "[(1, 'a'), (2, 'b')]", "{3, 1}", "Exception", "iter([1, 2])", "str", "float('nan')", "'12'", "0.1"]  # fmt: skip


def calls(module: str, names: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    """(the value of `v`, a statement that calls a function of the module with it and with other values)."""
    for name in names.split():
        called = name if module == "builtins" else f"{module}.{name}"
        for _ in range(14):
            given = ["v", *draw.choices(ARGUMENTS + FURTHER, k=draw.choice([0, 0, 1, 1, 1, 2, 3]))]
            draw.shuffle(given)
            given += [draw.choice(KEYWORDS)] * (draw.random() < 0.2)
            text = f"{called}({', '.join(given)})"
            forms = ["{}", "{}", "list({})", "tuple(map(type, {}))"]  # a text that contains an address is not split
            form = "{}" if name in ("ascii", "format", "repr", "str") else draw.choice(forms)
            yield draw.choice(ARGUMENTS + FURTHER), f"r = {form.format(text)}"


def difference(literal: str, program: str, inside: bool) -> str | None:
    """The difference between plain and captured runs of `program`, on a value that it makes (`inside`) or receives; None if they agree."""
    head = f"def f():\n    v = {literal}\n" if inside else "def f(v):\n"
    code = compile(f"{head}    {program}\n    return r, v\n", "<program>", "exec")
    results = []
    for wrap in (lambda f: f, lambda f: eager.compile(f, backend="eager")):
        scope: dict[str, Any] = dict(NAMES)
        exec(code, scope)
        results.append(outcome(wrap(scope["f"]), *([] if inside else [eval(literal, dict(NAMES))])))
    return None if results[0] == results[1] else f"v = {literal}; {program}\n    {results[0]}\n    captured: {results[1]}"


def check(programs: Iterator[tuple[str, str]], draw: random.Random) -> None:
    found, tried = [], 0
    for literal, program in programs:
        found.append(difference(literal, program, draw.random() < 0.5))
        tried += 1
        if tried % 500 == 0:
            dynamo.reset()
    differing = [d for d in found if d]
    assert tried > 20 and not differing, f"{len(differing)} of {tried} differ:\n" + "\n".join(differing[:10])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", VALUES)
def test_methods_of_builtin_values_agree_with_python(family: str) -> None:
    draw = random.Random(family)
    check(((literal, program) for literal in VALUES[family] for program in programs(literal, draw)), draw)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", FUNCTIONS)
def test_functions_of_the_standard_library_agree_with_python(module: str) -> None:
    draw = random.Random(module)
    check(calls(module, FUNCTIONS[module], draw), draw)


def test_an_iterator_over_text_keeps_its_class_at_the_end() -> None:
    def f() -> list[Any]:
        found = [iter("a"), iter("\u20ac"), iter(b"a"), reversed("ab")]
        return [(type(it), list(it), type(it), it) for it in found]

    for ours, theirs in zip(eager.compile(f, backend="eager")(), f(), strict=True):
        assert ours[:3] == theirs[:3] and type(ours[3]) is type(theirs[3]) and not list(ours[3])


def test_islice_checks_its_numbers_before_it_makes_an_iterator() -> None:
    class Asked:
        count = 0

        def __iter__(self) -> Iterator[int]:
            self.count += 1
            return iter([1, 2])

    def f(asked: Asked) -> Any:
        try:
            return list(itertools.islice(asked, -1))
        except ValueError:
            return asked.count

    assert eager.compile(f, backend="eager")(Asked()) == f(Asked()) == 0


def test_an_iterator_over_a_huge_range_has_its_own_methods() -> None:
    def f() -> tuple[type, int]:
        numbers = iter(range(2**70))
        numbers.__setstate__(2**64 + 7)  # type: ignore[attr-defined]
        return type(numbers), next(numbers)

    assert eager.compile(f, backend="eager")() == f()


def test_a_set_made_by_an_operation_has_the_order_of_python() -> None:
    def combined(n: int) -> Any:
        return {1, 2}.symmetric_difference([("a", n), ("b", n), ("c", n)])

    def changed(n: int) -> Any:
        kept = {("a", n), ("b", n), 3}
        kept.remove(3)
        kept.update([("y", n), ("z", n)])
        return kept

    for fn in (combined, changed):
        compiled = eager.compile(fn, backend="eager")
        for n in range(8):
            assert list(compiled(n)) == list(fn(n))
