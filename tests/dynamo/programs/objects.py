"""Classes, instances, descriptors, modules, dataclasses, enums."""
# ruff: noqa: UP042, RUF012, SIM300, B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105 - odd code is the point

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools

import eager as torch
from eager import nn
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()


class Point:
    kind = "point"

    def __init__(self, a, b):
        self.a = a
        self.b = b

    def total(self):
        return self.a + self.b

    @property
    def double(self):
        return self.total() * 2

    @double.setter
    def double(self, v):
        self.a = v

    @staticmethod
    def make(a):
        return Point(a, a)

    @classmethod
    def of(cls, a):
        return cls(a, 0)

    @functools.cached_property
    def cached(self):
        return self.a * 10

    def __add__(self, other):
        return Point(self.a + other.a, self.b + other.b) if isinstance(other, Point) else NotImplemented

    def __radd__(self, other):
        return Point(other + self.a, self.b)

    def __eq__(self, other):
        return isinstance(other, Point) and self.a is other.a

    def __getitem__(self, k):
        return (self.a, self.b)[k]

    def __len__(self):
        return 2

    def __contains__(self, v):
        return v in (1, 2)

    def __call__(self, k):
        return self.a * k

    def __bool__(self):
        return self.b != 0


class Derived(Point):
    def __init__(self, a):
        super().__init__(a, 1)

    def total(self):
        return super().total() + 100


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Dynamic:
    def __init__(self):
        self.real = 1

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(name)


class Guarded:
    def __setattr__(self, name, value):
        object.__setattr__(self, "_" + name, value)


@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.c = self.a + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: int = 2


Pair = collections.namedtuple("Pair", "p q", defaults=(9,))


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def label(self):
        return self.name.lower()


@PROGRAMS.program(lambda: (x23(),))
def new_objects(log, x):
    p = Point(x, 1)
    q = Derived(2)
    p.double = x * 2
    r = Point.make(3) + Point.of(4)
    log.append(p.total())
    return p.double, q.total(), q.double, r.a, r.b, p.kind, isinstance(q, Point), p


@PROGRAMS.program(lambda: (x23(),))
def operators_on_objects(log, x):
    p = Point(x, 2)
    s = 5 + Point(1, 2)
    return p[0], p[1], len(p), 1 in p, p(3), bool(p), s.a, Point(1, 2) == Point(1, 3), Point(1, 2) != 3, p.cached


@PROGRAMS.program(lambda: (x23(), Point(1, 2)), lambda: (x23(), Point(5, 2)))
def existing_object(log, x, p):
    y = x * p.a
    p.b = y
    p.extra = 3
    z = p.total() if False else p.a
    print(end="")
    del p.extra
    return y, z, hasattr(p, "extra"), getattr(p, "nope", "default")


@PROGRAMS.program(lambda: (x23(), Point(1, 2)))
def object_effects_before_error(log, x, p):
    p.a = x + 1
    raise KeyError("after")


@PROGRAMS.program(lambda: (x23(), Slotted(3)))
def slots(log, x, s):
    n = Slotted(2)
    try:
        n.b
    except AttributeError as e:
        log.append(str(e))
    s.b = x
    n.b = s.a
    return n.a + n.b, s.b


@PROGRAMS.program(lambda: (x23(), Dynamic()))
def dynamic_attributes(log, x, d):
    n = Dynamic()
    try:
        n.other
    except AttributeError as e:
        log.append(str(e))
    g = Guarded()
    g.v = 4
    return d.dyn_a + n.dyn_bb, d.real, g._v, x


@PROGRAMS.program(lambda: (x23(),))
def data_classes(log, x):
    d = Data(1)
    d.b.append(x)
    f = Frozen(3)
    try:
        f.a = 4
    except dataclasses.FrozenInstanceError as e:
        log.append(str(e))
    return d.a, d.b, d.c, f.a, f.b, Data(1, [2]) == Data(1, [2])


@PROGRAMS.program(lambda: (x23(), Pair(1)))
def named_tuples(log, x, pair):
    p = Pair(x)
    q = p._replace(q=3)
    return p.p, p.q, q, pair.p, pair._asdict(), Pair._fields


@PROGRAMS.program(lambda: (x23(), Color.RED), lambda: (x23(), Color.BLUE))
def enums(log, x, c):
    if c is Color.RED:
        x = x + 1
    return x * c.value, c.name, c.label(), Color["BLUE"], Color(1), {Color.RED: 1}.get(c), [m.name for m in Color], c == Color.RED


@PROGRAMS.program(lambda: (x23(),))
def class_inside(log, x):
    class Local:
        z = 3

        def __init__(self, v):
            self.v = v

        def m(self):
            return self.v * self.z

    return Local(x).m()


@PROGRAMS.factory(lambda: (x23(),))
def method_patched():
    class K:
        def m(self, v):
            return v + 1

    k = K()
    calls = []

    def f(log, x):
        return k.m(x)

    def g(log, x):
        calls.append(1)
        if len(calls) == 2:
            K.m = lambda self, v: v * 100
        return f(log, x)

    return g


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.items = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.p = 0.5
        with torch.no_grad():
            for i, w in enumerate(self.parameters()):
                w.copy_(torch.arange(w.numel()).reshape(w.shape).float() * 0.01 * (i + 1))

    def forward(self, x, flag=True):
        y = torch.relu(self.lin(x)) * self.scale
        for item in self.items:
            y = item(y) + self.p
        return y if self.training and flag else -y


@PROGRAMS.factory(lambda: (x23(),), lambda: (x23() + 1,))
def module():
    net = Net()

    def f(log, x):
        log.append(net.training)
        return net(x), net(x, flag=False)

    return f


@PROGRAMS.factory(lambda: (x23(),))
def module_changes():
    net = Net()
    calls = []

    def f(log, x):
        calls.append(0)
        print(end="")
        return inner(log, x)

    def inner(log, x):
        return net(x)

    def g(log, x):
        out = f(log, x)
        if len(calls) == 1:
            net.eval()
        else:
            net.p = 3.0
            net.__dict__["p"] = 4.0
        return out

    return g


@PROGRAMS.factory(lambda: (x23(),))
def training_step():
    net = Net()

    def f(log, x):
        loss = net(x).pow(2).mean()
        loss.backward()
        grads = [p.grad.clone() for p in net.parameters()]
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(p.grad * 0.01)
                p.grad = None
        return loss.detach(), grads, [p.detach().clone() for p in net.parameters()]

    return f


# --- copies, and members of enums that are text or numbers too --------------------------------------------------------


class _Layout(str, enum.Enum):
    ROWS = "rows"
    COLUMNS = "columns"


class _Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class _Config:
    def __init__(self):
        self.size = 2
        self.layers = [1, 2]
        self.me = self
        self.layout = _Layout.ROWS


class _Renamed:
    names = {"count": "size"}
    asked: list[str] = []

    def __init__(self):
        self.size = 3
        self.inner = _Config()

    def __getattribute__(self, key):
        if key not in ("names", "asked"):
            self.asked.append(key)
            key = self.names.get(key, key)
        return super().__getattribute__(key)


@PROGRAMS.program(lambda: (x23(), _Config()))
def deepcopy_of_an_object(log, x, config):
    d = copy.deepcopy(config)
    d.size += 1
    d.layers.append(x)
    d.me.extra = 1
    log.append((d.me is d, d is config, len(config.layers), d.layout is _Layout.ROWS, list(d.__dict__)))
    return x * d.size, d.layers is config.layers


@PROGRAMS.program(lambda: (x23(), _Config()))
def copy_of_an_object(log, x, config):
    d = copy.copy(config)
    d.size = 7
    log.append((d.me is config, d.layers is config.layers, config.size))
    return x * d.size, type(d).__name__


@PROGRAMS.program(lambda: (x23(),))
def deepcopy_reads_attributes_that_the_class_computes(log, x):
    config = _Renamed()
    config.asked.clear()
    d = copy.deepcopy(config)
    d.count, d.inner.size = 5, 6
    y = x * d.count + config.inner.size
    log.append([a for a in config.asked if not a.startswith("_")])
    return y, config.size, d.inner is config.inner


@PROGRAMS.program(lambda: (x23(), _Layout.COLUMNS), lambda: (x23(), _Layout.ROWS))
def enum_members_compare_by_their_data(log, x, layout):
    log.append((layout == _Layout.ROWS, "rows" == layout, layout != "rows", layout == 3, layout < "m"))
    log.append((_Level.LOW < _Level.HIGH, _Level.HIGH == 2, 1 < _Level.HIGH, _Level.LOW == "x", _Level.LOW != 1))
    return x + 1 if layout == _Layout.ROWS else x - 1


_PLACES = {_Layout.ROWS: 1.5, _Layout.COLUMNS: 2.5, "other": 3.5}
_LEVELS = {_Level.LOW: 4.5, 2: 5.5}


@PROGRAMS.program(lambda: (x23(), _Layout.COLUMNS, _Level.HIGH), lambda: (x23(), _Layout.ROWS, _Level.LOW))
def enum_members_are_found_by_their_data(log, x, layout, level):
    made = {layout: x, level: x + 1}
    log.append((list(_PLACES), _PLACES["rows"], "columns" in {layout}, layout in ("rows", 3), _LEVELS.get(1), made.get("rows") is None))
    log.append((hash(layout) == hash(str.__str__(layout)), _Layout("rows") in _PLACES, len({layout, layout.value, level, int(level)})))
    return sum(v * (_PLACES.get(k) or _LEVELS[k]) for k, v in made.items()) + _PLACES[layout] + _LEVELS[level]


class RecordsAttributeReads:
    asked: list = []

    def __init__(self):
        object.__setattr__(self, "v", 3)

    def __getattribute__(self, name):
        RecordsAttributeReads.asked.append(name)
        return object.__getattribute__(self, name)


@PROGRAMS.program(lambda: (x23(), RecordsAttributeReads()))
def no_other_attribute_of_objects_is_read(log, x, given):
    RecordsAttributeReads.asked.clear()
    local = RecordsAttributeReads()
    print(end="")
    y = x * given.v
    pair = [given, local]
    print(end="")
    local = pair = None
    return y + given.v, list(RecordsAttributeReads.asked)


class Plain:
    def __init__(self, **given):
        self.__dict__.update(given)


def _with_another_dict():
    return x23(), Plain(a=1), {"a": 1}


def _with_its_dict():
    obj = Plain(a=1)
    return x23(), obj, obj.__dict__


@PROGRAMS.program(_with_another_dict, _with_its_dict, _with_another_dict)
def a_dict_beside_an_object_that_is_written(log, x, obj, namespace):
    obj.a = 3
    return namespace["a"], x + 1


@PROGRAMS.program(_with_its_dict, _with_another_dict, _with_its_dict)
def a_dict_that_is_written_beside_an_object(log, x, obj, namespace):
    before = obj.a
    namespace["a"] = 3
    namespace["b"] = 4
    return before, obj.a, hasattr(obj, "b"), namespace is obj.__dict__, x + 1


@PROGRAMS.program(_with_its_dict, _with_another_dict)
def a_dict_read_before_its_object(log, x, obj, namespace):
    log.append(list(namespace))
    obj.b = 3
    log.append((list(namespace), namespace is vars(obj), obj.a))
    namespace["c"] = 5
    obj.__dict__["d"] = 6
    return list(namespace), list(vars(obj)), x + 1
