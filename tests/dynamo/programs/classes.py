"""Corner cases of the object model: descriptors, metaclasses, special methods with effects, protocols."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105, RUF005, RUF012, B015, UP032 - odd code is the point

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import typing

from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()


class Typed:
    """A data descriptor that keeps its name."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, "unset")

    def __set__(self, obj, value):
        setattr(obj, self.name, value * 2)

    def __delete__(self, obj):
        delattr(obj, self.name)


class NonData:
    def __get__(self, obj, owner=None):
        return ("non-data", owner.__name__)


class WithDescriptors:
    field = Typed()
    plain = NonData()

    def __init__(self, v):
        self.field = v


class Meta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.tagged = True
        return made


class Tagged(metaclass=Meta):
    def __init__(self, v):
        self.v = v


class Singleton:
    _one = None

    def __new__(cls, *args):
        if cls._one is None:
            cls._one = object.__new__(cls)
        return cls._one


class Other:
    def __new__(cls, v):
        return v * 10


class Base:
    registry: list = []

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Base.registry.append(cls.__name__)

    def who(self):
        return ["Base"]


class Left(Base):
    def who(self):
        return ["Left", *super().who()]


class Right(Base):
    def who(self):
        return ["Right", *super().who()]


class Diamond(Left, Right):
    def who(self):
        return ["Diamond", *super().who(), *(lambda: super(Diamond, self).who())()]


class Effects:
    def __init__(self, log, v):
        self.log, self.v = log, v

    def __bool__(self):
        self.log.append("bool")
        return self.v > 0

    def __len__(self):
        self.log.append("len")
        return self.v

    def __contains__(self, k):
        self.log.append(("contains", k))
        return k == self.v

    def __index__(self):
        self.log.append("index")
        return self.v

    def __format__(self, spec):
        self.log.append(("format", spec))
        return f"<{self.v}>"

    def __iter__(self):
        self.log.append("iter")
        return iter(range(self.v))

    def __eq__(self, other):
        self.log.append("eq")
        return "not a bool"

    def __hash__(self):
        return 7

    def __lt__(self, other):
        self.log.append("lt")
        return self.v < other.v

    def __getitem__(self, k):
        self.log.append(("item", k))
        return self.v + k

    def __setitem__(self, k, v):
        self.log.append(("set", k, v))

    def __delitem__(self, k):
        self.log.append(("del", k))

    def __neg__(self):
        return -self.v

    def __iadd__(self, other):
        self.v += other
        return self


class Counter:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class ByItem:
    def __getitem__(self, k):
        if k == 3:
            raise IndexError
        return k * 10


class Radd:
    def __radd__(self, other):
        return ("radd", other)

    def __add__(self, other):
        return NotImplemented


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        """area"""


class Square(Shape):
    def __init__(self, s):
        self.s = s

    def area(self):
        return self.s * self.s


@typing.runtime_checkable
class HasArea(typing.Protocol):
    def area(self): ...


class Flags(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(order=True)
class Ordered:
    a: int
    b: str = "x"


class Reader:
    def __getattribute__(self, name):
        if name == "special":
            return 42
        return object.__getattribute__(self, name)


@PROGRAMS.program(lambda: (x23(),))
def descriptors(log, x):
    w = WithDescriptors(3)
    before = w.field
    w.field = x
    d = w.field
    del w.field
    return before, d, w.field, w.plain, WithDescriptors.plain


@PROGRAMS.program(lambda: (x23(),))
def metaclass_call(log, x):
    t = Tagged(x)
    return t.tagged, t.v + 1


@PROGRAMS.program(lambda: (x23(),))
def unusual_new(log, x):
    return Singleton() is Singleton(), Other(x), isinstance(Other(2), int)


@PROGRAMS.program(lambda: (x23(),))
def diamond(log, x):
    return Diamond().who(), x + 1, issubclass(Diamond, Base), Diamond.__mro__[1].__name__, Base.registry


@PROGRAMS.program(lambda: (x23(),))
def special_methods_with_effects(log, x):
    e = Effects(log, 2)
    r = [bool(e), len(e), 2 in e, f"{e:z}", list(e), e == 3, e[1], -e, [1, 2, 3][e]]
    e[5] = 6
    del e[7]
    e += 3
    other = Effects(log, 9)
    return r, e.v, e < other, "yes" if e else "no", x * e.v


@PROGRAMS.program(lambda: (x23(), 2))
def existing_object_with_effects(log, x, n):
    e = Effects(log, n)
    print(end="")
    return bool(e), len(e), e[3], x[e - 2 if False else 0] + len(e)


@PROGRAMS.program(lambda: (x23(),))
def user_iterators(log, x):
    c = Counter(3)
    first = next(c)
    return first, list(c), next(c, "done"), list(ByItem()), [v for v in Counter(2)], x


@PROGRAMS.program(lambda: (x23(), Counter(3)))
def existing_user_iterator(log, x, c):
    total = x
    for v in c:
        total = total + v
    return total, c.n


@PROGRAMS.program(lambda: (x23(),))
def reflected(log, x):
    try:
        Radd() + 1
    except TypeError as e:
        log.append(str(e))
    try:
        Radd() < 1
    except TypeError as e:
        log.append(str(e))
    return 1 + Radd(), [1] + [2], x


@PROGRAMS.program(lambda: (x23(),))
def abstract_classes(log, x):
    try:
        Shape()
    except TypeError as e:
        log.append(str(e))
    s = Square(3)
    return s.area(), isinstance(s, Shape), isinstance(s, HasArea), isinstance(3, HasArea), x


@PROGRAMS.program(lambda: (x23(), Flags.A | Flags.B))
def flags(log, x, f):
    return Flags.A in f, (f & Flags.B).name, x + (1 if f & Flags.A else 0)


@PROGRAMS.program(lambda: (x23(),))
def ordered_dataclasses(log, x):
    a, b = Ordered(1), Ordered(2)
    c = dataclasses.replace(a, b="y")
    return a < b, sorted([b, a])[0] is a, c.b, dataclasses.asdict(c), a == Ordered(1), x


@PROGRAMS.program(lambda: (x23(), Reader()))
def own_getattribute(log, x, r):
    return r.special, Reader().special, x + r.special


@PROGRAMS.program(lambda: (x23(),))
def class_reassigned(log, x):
    w = Left()
    a = w.who()
    w.__class__ = Right
    return a, w.who(), x


@PROGRAMS.program(lambda: (x23(),))
def attribute_errors(log, x):
    for fn in (lambda: x.nonesuch, lambda: Left().nope, lambda: Left.nope, lambda: [].nope, lambda: (1).nope, lambda: None.nope):
        try:
            fn()
        except AttributeError as e:
            log.append(str(e))
    return x


@PROGRAMS.program(lambda: (x23(),))
def type_errors(log, x):
    for fn in (lambda: 1 + "a", lambda: [] + (), lambda: len(3), lambda: 3(), lambda: {}[[]], lambda: int("z"), lambda: -"a",
               lambda: [1] < "a", lambda: (yield_ for yield_ in 3), lambda: [*4], lambda: next([])):  # fmt: skip
        try:
            fn()
        except (TypeError, ValueError) as e:
            log.append((type(e).__name__, str(e)))
    return x


@PROGRAMS.program(lambda: (x23(),), held=True)
def property_deleted(log, x):
    class P:
        def __init__(self):
            self._v = 1

        @property
        def v(self):
            return self._v

        @v.deleter
        def v(self):
            log.append("deleted")
            del self._v

    p = P()
    del p.v
    try:
        p.v = 3
    except AttributeError as e:
        log.append(str(e))
    return hasattr(p, "_v"), x


class Subscripted(type):
    def __getitem__(cls, key):
        return "metaclass", key


class BothSubscripts(metaclass=Subscripted):
    def __class_getitem__(cls, key):
        return "class", key


class PlainSubscript:
    def __class_getitem__(cls, key):
        return "class", key


@PROGRAMS.program(lambda: (x23(),))
def subscripts_of_classes(log, x):
    return BothSubscripts[1], PlainSubscript[2], str(type[int]), str(list[int]), x + 1


class Unhashable(type):
    __hash__ = None


class NoKey(metaclass=Unhashable):
    pass


class AllOne(type):
    asked: typing.ClassVar[list[str]] = []

    def __hash__(cls):
        AllOne.asked.append("hash")
        return 5

    def __eq__(cls, other):
        return isinstance(other, AllOne)


class OneKey(metaclass=AllOne):
    pass


class SameKey(metaclass=AllOne):
    pass


@PROGRAMS.program(lambda: (x23(),))
def classes_as_keys(log, x):
    AllOne.asked.clear()
    for look in (lambda: {NoKey: 1}, lambda: NoKey in {1, 2}, lambda: {1: 2}.get(NoKey), lambda: hash((NoKey, 1)),
                 lambda: frozenset([NoKey]), lambda: {NoKey}):  # fmt: skip
        try:
            log.append(look())
        except TypeError as error:
            log.append(str(error))
    log.append({OneKey: 1, SameKey: 2}[OneKey])
    log.append(hash((OneKey, 1)) == hash((SameKey, 1)))
    log.append((len(AllOne.asked), len({OneKey, SameKey}), SameKey in {OneKey: 3}))
    return x + 1


class ShadowsType:
    __flags__ = 3


@PROGRAMS.program(lambda: (x23(),))
def attributes_of_classes_that_type_defines(log, x):
    log.append((ShadowsType.__flags__ == 3, type(type.__dictoffset__), type(int.__basicsize__)))
    log.append([getattr(c, "__abstractmethods__", "none") for c in (type, int, ShadowsType)])
    log.append([getattr(c, "__type_params__", "none") for c in (type, int, ShadowsType)])
    return x + 1


class Wrapping:
    """Class methods of descriptors: before CPython 3.13, a classmethod calls `__get__` of the descriptor in it."""

    seen: typing.ClassVar[list] = []

    @classmethod
    @classmethod
    def twice(cls):
        return cls.__name__

    @classmethod
    @property
    def named(cls):
        return cls.__name__

    @classmethod
    @staticmethod
    def unbound(*args):
        return [getattr(a, "__name__", a) for a in args]

    @classmethod
    @functools.lru_cache
    def cached(cls, k):
        return cls.__name__, k

    collected = classmethod(seen.append)
    length = classmethod(len)


class WrappingToo(Wrapping):
    @classmethod
    def twice(cls):
        return "over", super().twice()


@PROGRAMS.program(lambda: (x23(),))
def class_methods_of_descriptors(log, x):
    Wrapping.seen.clear()
    for look in (lambda: Wrapping.twice(), lambda: Wrapping().twice(), lambda: WrappingToo.twice(), lambda: Wrapping.named,
                 lambda: Wrapping.unbound(1), lambda: WrappingToo().unbound(2), lambda: Wrapping.cached(3), lambda: WrappingToo().cached(3),
                 lambda: Wrapping.collected(), lambda: Wrapping.collected(4), lambda: Wrapping.length()):  # fmt: skip
        try:
            log.append(str(look()).split(" at 0x")[0])
        except TypeError as error:
            log.append(str(error))
    log.append([getattr(v, "__name__", v) for v in Wrapping.seen])
    return x + 1
