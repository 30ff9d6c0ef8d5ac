"""Whole programs: a fixed cast of classes and helpers, random helpers, a random main function and its inputs."""

from __future__ import annotations

import itertools
import random
import warnings

from tests.dynamo.fuzz.chapters import Chapters
from tests.dynamo.fuzz.sentences import indented
from tests.dynamo.fuzz.words import Scope

CAST = '''\
def note(value):
    LOG.append(value)

def shout(value):
    print(value, file=OUT)
    return value

def echo(value):
    return value

def first(*values, **named):
    note(sorted(named))
    return values[0]

def broken(value):
    dynamo.graph_break()
    return value

def set_g(value):
    global G
    G = value

def globals_of():
    return globals()

def fact(n):
    return 1 if n < 1 else n * fact(n - 1)

def many(a, *rest, k=1, **named):
    note((rest, list(named)))
    return a + len(rest) + k

def gen(n):
    try:
        for i in range(n):
            note(('gen', i))
            yield i
    finally:
        note('closed')
    return n

def guarded(n):
    try:
        for i in range(n):
            yield i
    finally:
        note('closed')

def tgen(x, n):
    for i in range(n):
        x = x + i
        yield x
    yield from [x]

def thrower(n):
    try:
        if n % 3 == 0:
            raise Oops(n)
        if n % 3 == 1:
            return {}[n]
    finally:
        note('thrower')
    return n

def kind(value):
    match value:
        case int(n) if n > 3:
            return 'big'
        case int() | float():
            return 'number'
        case str(text):
            return 'text' + text[:2]
        case [a, *rest]:
            return f'list of {len(rest)}'
        case {'a': a}:
            return 'a'
        case Base(n=n):
            return 'object'
        case None:
            return 'none'
    return 'other'

def counted(n, seen=[]):
    seen.append(n)
    return len(seen)

@functools.lru_cache(maxsize=None)
def cached(n):
    note(('cached', n))
    return n * 2

class Oops(Exception):
    pass

class Worse(Oops):
    def __init__(self, text, code=3):
        super().__init__(text, code)
        self.code = code

class Holder:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

class Base:
    count = 0

    def __init__(self, n, t):
        self.n = n
        self.t = t
        Base.count += 1 if n == 99 else 0

    @property
    def twice(self):
        return self.n * 2

    @twice.setter
    def twice(self, value):
        note(('twice', value))
        self.n = value // 2

    @classmethod
    def make(cls, n):
        return cls(n, GT)

    @staticmethod
    def plain(n):
        return n

    def scale(self, x):
        return x * self.n + self.t

    def bump(self, by):
        self.n += by
        return self

    def log(self, text):
        note((type(self).__name__, text))

    def __len__(self):
        return abs(self.n) % 5

    def __getitem__(self, i):
        note(('get', i))
        if i > 2:
            raise IndexError(i)
        return self.n + i

    def __setitem__(self, i, value):
        note(('set', i, value))

    def __call__(self, n):
        return self.n - n

    def __contains__(self, n):
        note(('in', n))
        return n == self.n

    def __add__(self, other):
        return type(self)(self.n + other, self.t) if isinstance(other, int) else NotImplemented

    def __radd__(self, other):
        note('radd')
        return Base(other + self.n, self.t)

    def __matmul__(self, x):
        return x - self.t

    def __eq__(self, other):
        return isinstance(other, Base) and self.n == other.n

    def __hash__(self):
        return 7

    def __lt__(self, other):
        note('lt')
        return self.n < other.n

    def __repr__(self):
        return f'{type(self).__name__}({self.n})'

class Derived(Base):
    def __init__(self, n, t, extra='e'):
        super().__init__(n, t)
        self.extra = extra

    def bump(self, by):
        super().bump(by)
        note(self.extra)
        return self

    def __bool__(self):
        note('bool')
        return self.n > 0

    def __iter__(self):
        yield self.n
        note('between')
        yield self.n + 1

    def __getattr__(self, name):
        note(('getattr', name))
        if name == 'missing':
            return 1
        raise AttributeError(name)

class Slotted(Base):
    __slots__ = ('n', 't')

    def __setattr__(self, name, value):
        note(('setattr', name))
        object.__setattr__(self, name, value)

@dataclasses.dataclass
class Data:
    n: int
    t: object
    items: list = dataclasses.field(default_factory=list)
    count = 2

    def scale(self, x):
        self.items.append(self.n)
        return x + self.n

    def bump(self, by):
        self.n = by

    def __len__(self):
        return len(self.items)

Pair = collections.namedtuple('Pair', 'a b')

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        note('forward')
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 + x * 0

class Manager:
    def __init__(self, n, swallow=False):
        self.n = n
        self.swallow = swallow

    def __enter__(self):
        note(('enter', self.n))
        if self.n == 13:
            raise Oops('enter')
        return self.n

    def __exit__(self, kind, error, tb):
        note(('exit', self.n, kind and kind.__name__, tb is None))
        return self.swallow

@contextlib.contextmanager
def managed(n):
    note(('in', n))
    try:
        yield n + 1
    except Oops as e:
        note(('managed', e.args))
        raise
    finally:
        note(('out', n))

G = 3
GL = [1, 2]
GD = {'a': 1, 'g': 2}
GT = torch.arange(6.0).reshape(2, 3)
LOG = []
OUT = io.StringIO()
'''

PARAMETERS = {"x": "T", "y": "T", "n": "I", "m": "I", "s": "S", "l": "L", "ts": "LT", "d": "D", "o": "O", "e": "E"}


class Programs(Chapters):
    """Writes one program for one seed. data: how often a branch or a number depends on a tensor's values."""

    def __init__(self, seed: str) -> None:
        super().__init__(random.Random(seed))

    def program(self) -> str:
        """The source of a module with `f(log, ...)` and `inputs0()`, `inputs1()`."""
        data = self.rng.choice((0.0, 0.02, 0.1))
        parts = [CAST]
        base = Scope(data=data)
        for kind, name in (("I", "G"), ("L", "GL"), ("D", "GD"), ("T", "GT")):
            base.add(kind, name)
        for k, kind in enumerate(self.rng.sample(("T", "T", "I", "L", "O", "Z"), self.rng.randint(0, 2))):
            parts.append(self._helper(f"h{k}", kind, base))
            base.functions[kind].append(f"h{k}")
        chosen = ["x", *self.rng.sample([p for p in PARAMETERS if p != "x"], self.rng.randint(1, 5))]
        parts.append(self._main(chosen, base))
        parts += [self._inputs(k, chosen) for k in range(2)]
        return "\n".join(parts)

    def _helper(self, name: str, kind: str, base: Scope) -> str:
        scope = base.inner()
        scope.add("T", "x")
        scope.add("I", "n")
        self.budget = self.rng.randint(1, 6)
        body = self.block(scope, self.budget, kind)
        star = self.pick("", "", ", *rest", ", **named", ", *, k=2")
        lines = [f"def {name}(x, n=1{star}):", *indented(["log, kept = LOG, LOG", *body, f"return {self.expr(kind, scope)}"])]
        if self.chance(0.15):
            lines.insert(0, "@functools.wraps(echo)" if self.chance(0.2) else "@torch.no_grad()")
            if "wraps" in lines[0]:
                lines.pop(0)
        return "\n".join(lines) + "\n"

    def _main(self, chosen: list[str], base: Scope) -> str:
        scope = base.inner()
        for name in chosen:
            scope.add(PARAMETERS[name], name)
        self.budget = self.rng.randint(4, 22)
        body: list[str] = []
        while self.budget > 0:
            body += self.block(scope, self.budget, "U" if self.chance(0.2) else "T")
        result = ", ".join(self.expr(k, scope) for k in self.rng.sample(("T", "T", "Z", "I", "S", "L", "LT", "D", "O", "U", "E"), 4))
        return "\n".join([f"def f(log, {', '.join(chosen)}):", *indented(["kept = []", *body, f"return {result}, kept"])]) + "\n"

    def _inputs(self, k: int, chosen: list[str]) -> str:
        r = self.rng
        tensor = f"(torch.arange(6.0).reshape(2, 3) * {r.randint(1, 3)} - {r.randint(0, 4)})"
        literal = {
            "T": tensor, "I": str(r.randint(-2, 6)), "S": repr(r.choice(("a", "ab", "zz"))),
            "L": str([r.randint(-2, 5) for _ in range(r.randint(0, 4))]),
            "LT": "[torch.ones(2, 3), t]", "D": repr({c: r.randint(-1, 4) for c in r.sample("abcz", r.randint(1, 3))}),
            "O": f"{r.choice(('Base', 'Derived', 'Slotted', 'Data'))}({r.randint(-1, 5)}, t)",
            "E": repr(set(r.sample(range(6), r.randint(1, 3)))),
        }  # fmt: skip
        lines = [f"t = {tensor}"]
        for name in chosen:
            kind = PARAMETERS[name]
            shared = kind == "T" and self.chance(0.15)
            lines.append(f"{name} = {self.pick('t', 't.view(2, 3)') if shared else literal[kind]}")
        return "\n".join([f"def inputs{k}():", *indented([*lines, f"return {', '.join(chosen)}"])]) + "\n"


def write(seed: int) -> str:
    """The program of a seed: the first draft that compiles (a walrus, for example, is not valid everywhere)."""
    for draft in itertools.count():
        text = Programs(f"{seed}.{draft}").program()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text.removeprefix(CAST), "<fuzzed>", "exec")
        except SyntaxError:
            continue
        return text
    raise AssertionError
