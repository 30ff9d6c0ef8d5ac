"""Programs whose difference the fuzzer found, made short.

Each is a module in the form of `programs.write`, without the cast.
"""

from __future__ import annotations

from typing import Final

from tests.dynamo.fuzz import found_lifetimes

_STATE: Final = """
class Base:
    count = 0
G, GL, GD, GT, LOG, OUT = 3, [1, 2], {'a': 1}, torch.arange(6.0), [], io.StringIO()
def note(value):
    LOG.append(value)
def guarded(n):
    try:
        for i in range(n):
            yield i
    finally:
        note('closed')
"""

_INPUTS: Final = """
def inputs0():
    return torch.ones(2, 3), 2
def inputs1():
    return torch.ones(2, 3) * 2, 1
"""

# name: (mode, the main function and its helpers)
PROGRAMS: Final[dict[str, tuple[str, str]]] = {
    **found_lifetimes.PROGRAMS,
    "a generator dropped inside its try block is closed at once": ("default", """
def f(log, x, n):
    first = next(guarded(n))
    note('after')
    return first
"""),
    "a subclass of dict on the right of | decides the kind": ("default", """
def f(log, x, n):
    return x, dict.fromkeys('ab') | collections.defaultdict(int, a=n)
"""),
    "a global written through globals() is seen by name": ("default", """
def f(log, x, n):
    (lambda: globals())()['G'] = n
    return x, G
"""),
    "a set keeps the element that Python keeps, of two equal elements": ("default", """
def f(log, x, n):
    v = GT.min().item()
    return {0, 5} & {v, 7.0}, {v} | {0}, {0}.intersection([v])
"""),
    "a call reads no attribute of an object": ("default", """
class Nosy(Base):
    def __call__(self, n):
        return n
    def __getattr__(self, name):
        note(name)
def f(log, x, n):
    return x * Nosy()(n)
"""),
    "raise from a class, at a break": ("break", """
def f(log, x, n):
    raise ValueError(n) from KeyError
"""),
    "in, of an object that has neither __contains__ nor __iter__": ("default", """
def f(log, x, n):
    return n in Base()
"""),
    "an iterator over a new mapping continues after a break": ("default", """
def f(log, x, n):
    it = iter(collections.defaultdict(int, a=n, b=2).items())
    note(next(it))
    print(n, file=OUT)
    other = iter(collections.Counter('ab'))
    dynamo.graph_break()
    return list(it), list(other)
"""),
    "an OrderedDict that captured code made keeps its order": ("break", """
def f(log, x, n):
    d = collections.OrderedDict(b=1, a=n)
    d['c'] = 3
    d.move_to_end('b')
    return d, list(d), d | {'z': 1}
"""),
    "a C class is not treated as a Python class": ("default", """
def f(log, x, n):
    return operator.itemgetter(1)([n, x]), operator.attrgetter('shape')(x), __import__('threading').RLock() is None
"""),
    "the error of index() names the missing value": ("leaf", """
def f(log, x, n):
    return GL.index(n + 40)
"""),
    "a cached function has effects only on a cache miss": ("default", """
@functools.lru_cache
def cached(n):
    note(n)
    return [n]
@functools.lru_cache(4)
def pure(n):
    return [n]
def f(log, x, n):
    note(GT)
    cached(n).append(3)
    pure(3).append(n)
    note(1)
    return cached(n), pure(3), cached.cache_info(), pure.cache_info()
"""),
    "a real generator is closed when captured code raises in its loop": ("default", """
class Counted(Base):
    def __init__(self, n):
        Base.count += n
def f(log, x, n):
    for i in guarded(n):
        Counted(n)
        raise StopIteration
"""),
    "a real generator is closed when captured code catches the exception that ends its loop": ("default", """
def f(log, x, n):
    try:
        for i in guarded(n):
            raise KeyError
    except KeyError:
        note('after')
    for i in enumerate(guarded(n)):
        print(n, file=OUT)
        break
    note('left')
    return x
"""),
    "an int that became a symbol is stored unchanged": ("default", """
def f(log, x, n):
    with contextlib.suppress(Exception):
        GT[0] = n
    try:
        n + 'a'
    except TypeError as e:
        note(str(e))
"""),
    "a real generator is dropped inside a try block": ("default", """
def f(log, x, n):
    try:
        for i in guarded(n):
            print(n, file=OUT)
            if n:
                break
    finally:
        note('finally')
    return x
"""),
    "an object that is not None differs from None": ("default", """
def f(log, x, n):
    seen = []
    for d in (vars(Base), {}, vars(Base)):
        attr = d.get('count2', d.get('__dict__'))
        dynamo.graph_break()
        if attr is None:
            seen.append('none')
    return seen
"""),
    "a real generator is closed when an inlined assertion fails": ("leaf", """
def f(log, x, n):
    for i in guarded(n):
        assert {n} > {n}, ','.join((str() for i in [n]))
"""),
    "the order of a set depends on the calls that made it": ("default", """
def f(log, x, n):
    made, table = set([13, 5]), dict.fromkeys([40, 8, 16, 24, n - 2])
    other = made ^ {1, 9}
    made.discard(13)
    made |= {21, 29}
    dynamo.graph_break()
    return list(other), list(set(table)), list(made), list(table.keys() - {8}), [i for i in frozenset([13, 5])]
"""),
    "the error of a tensor operation has a context": ("default", """
def f(log, x, n):
    try:
        missing
    finally:
        try:
            torch + x
        finally:
            shout = (lambda: dynamo.graph_break())()
            del GD[str]
"""),
    "an attribute that is deleted and set again is the last one": ("default", """
class Data:
    def __init__(self):
        self.n, self.t, self.items = 1, 2, 3
HELD = [Data(), Data()]
def f(log, x, n):
    o = HELD[n - 1]
    del o.t
    o.t = x
    return o
"""),
    "operators of sets and views of dicts return new sets": ("default", """
def f(log, x, n):
    table, made = {13: 1, 5: 2}, {5, 1}
    old = made
    made |= table.keys()
    return made, old, {2} | table.keys(), table.keys() - {5}, table.keys() ^ {1, 9}, {1, 5} - table.keys()
"""),
    "a class method of C, read through an instance": ("default", """
class Table(dict):
    pass
def f(log, x, n):
    return Table().fromkeys('ab', n), Table.fromkeys('a'), n.from_bytes(b'a', 'big')
"""),
    "subclasses of list and tuple refuse the arguments that their bases refuse": ("default", """
class Plain(list):
    pass
class Made(list):
    def __new__(cls, *args, **named):
        return super().__new__(cls, *args, **named)
class Row(tuple):
    pass
class Noted(tuple):
    def __init__(self, *args, **named):
        note(sorted(named))
def made(cls, *args, **named):
    try:
        return cls(*args, **named)
    except TypeError as error:
        return error.args
def f(log, x, n):
    kinds = Plain, Made, Row, Noted
    return [(made(c, sequence=()), made(c, [n], [n]), made(c, [n], a=n), made(c, n), made(c, [n])) for c in kinds]
"""),
    "a generator that has not begun when the graph breaks keeps the defaults of its function": ("default", """
def f(log, x, n):
    def items(a, b=x, *rest, name='end', **named):
        yield a, b, rest, name
        note(list(named.items()))
    first, second = items(n), items(1, 2, 3, name=n, **{'no name': x})
    items.__defaults__, items.__kwdefaults__ = (7,), None
    print(end='')
    return [*first], [*second]
"""),
    "hooks run for an unused gradient": ("default", """
def f(log, x, n):
    v = -x.detach().requires_grad_()
    v.register_hook(lambda g: note(g.shape))
    torch.autograd.grad(v.sum(), v)
"""),
    "a write to a view of a leaf raises at the line of the write": ("default", """
def f(log, x, n):
    w = x.detach().clone().requires_grad_()
    v = w[0]
    print(end='')
    v[1] = n
    note(w)
    return x + 1
"""),
    "the start of enumerate is an int": ("default", """
def f(log, x, n):
    try:
        return [*enumerate(GL, x.sum().item())]
    except TypeError as error:
        note(error.args)
    return [*enumerate(GL, True)]
"""),
    "ranges with the same numbers and different bounds differ": ("default", """
def h(x, numbers):
    return x * numbers.stop
def f(log, x, n):
    return [h(x, numbers) for numbers in (range(0), range(-n), range(0, n, 9), range(0, 1, n))], range(-n).stop
"""),
    "iterators of a deque that changed": ("default", """
def f(log, x, n):
    d = collections.deque([1, 2])
    it = iter(d)
    d.append(n)
    backwards = reversed(collections.deque('ab'))
    print(end='')
    try:
        next(it)
    except RuntimeError as error:
        note(error.args)
    return type(backwards)(d).__length_hint__()
"""),
    **{f"a deletion of an unbound variable raises, in a loop over an iterator from outside, {mode}": (mode, """
def h(x):
    for i in reversed(GL):
        del shared
    missing
    return lambda: shared
def g(x):
    for i in reversed(GL):
        del unbound
    missing
def f(log, x, n):
    for fn in (g, h):
        try:
            fn(x)
        except NameError as e:
            note(e.args)
""") for mode in ("default", "break", "leaf")},
    **{f"one call ends a generator and the next leaves it open, {mode}": (mode, """
def f(log, x, n):
    items = guarded(5 - 2 * n)
    next(items, None)
    next(items, None)
    print(end='')
    note(1)
    GL.missing
""") for mode in ("default", "break")},
    "views of all kinds of dicts are sets": ("default", """
def f(log, x, n):
    other = {'b': n, 'c': 1, 'zz': 2, 'q': 3}
    for made in (collections.Counter('abcab'), collections.OrderedDict(b=1, a=2), collections.defaultdict(int, c=1, k=2)):
        note([*(made.keys() & other.keys())])
        note([*(made.keys() | other.keys())])
        note([*(other.keys() - made.keys())])
        note([*(made.keys() ^ other.keys())])
        note(sorted({'a', 'b'} & made.keys()))
    return x + n
"""),
    "an attribute that the program sets and deletes before a break": ("default", """
class Slotted:
    __slots__ = ('n',)
def f(log, x, n):
    o = plain
    o.twice = n
    del o.twice
    o.again = n
    del o.again
    o.again = n + 1
    o.gone = n
    del o.gone
    o.gone = n
    del o.gone
    kept.n = n
    del kept.n
    x[1, 0].item()
    note(sorted(vars(o)))
    GL.index(hasattr(kept, 'n'))
plain, kept = Base(), Slotted()
"""),
    "a slot of a global object is unset, and set by a later call": ("default", """
class Slotted:
    __slots__ = ('n',)
class Both(Slotted):
    pass
kept = [Slotted(), Both()]
one, both = kept
def f(log, x, n):
    note((hasattr(one, 'n'), hasattr(both, 'n')))
    print(end='')
    for o in kept:
        setattr(o, 'n', n)
    return x + n
"""),
    **{f"effects before a call that refuses its data, after a break, {mode}": (mode, """
def f(log, x, n):
    y = x.clone().t_()
    print(end='')
    log.append(n)
    GD['a'] = n
    return y[:, [n]]
""") for mode in ("default", "break", "leaf")},
    **{f"a write to a tensor with gaps and a history that came past a break, {mode}": (mode, """
def f(log, x, n):
    whole = GT.requires_grad_().clone()
    column = whole.view(2, 3)[:, 1]
    try:
        print(end='')
        column.mul_(2)
        column.fill_(torch.ones(2))
    except RuntimeError as e:
        note(e.args)
    return whole
""") for mode in ("default", "break", "leaf")},
    **{f"the error of a write to one of many views, {mode}": (mode, """
def f(log, x, n):
    leaf = x.detach().requires_grad_()
    try:
        one, other = leaf.unbind()
        other.copy_(one)
    except RuntimeError as e:
        note(e.args)
    try:
        one, other = (leaf * n).split(1)
        other[0].mul_(one)
    except RuntimeError as e:
        note(e.args)
""") for mode in ("default", "break", "leaf")},
    **{f"the error of a write to a view that is a leaf, {mode}": (mode, """
def f(log, x, n):
    view = GT.view(2, 3).requires_grad_()
    for t in (view, view[0]):
        print(end='')
        try:
            t.copy_(t * n)
        except RuntimeError as e:
            note(e.args)
""") for mode in ("default", "break", "leaf")},
    **{f"truth checks what __len__ and __bool__ give, {mode}": (mode, """
class Sized:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
class Asked(Sized):
    def __bool__(self): return self.n
def f(log, x, n):
    for kind in (Sized, Asked):
        for given in (None, 1.0, -1, 0, 3, True, False, "a"):
            try:
                note(bool(kind(given)))
                note(not kind(given), 5 if kind(given) else 6)
            except (TypeError, ValueError) as e:
                note(e.args)
""") for mode in ("default", "break", "leaf")},
    **{f"a view of no_grad whose base was written to with gradients is kept over a break, {mode}": (mode, """
def f(log, x, n):
    base = x.detach().requires_grad_() * n
    with torch.no_grad():
        view = base[:]
    base.mul_(2)
    print(end='')
    try:
        note(view.grad_fn)
    except RuntimeError as e:
        note(e.args)
    return base
""") for mode in ("default", "break", "leaf", "settrace")},
}  # fmt: skip


def source(name: str) -> str:
    """The module of a program."""
    return _STATE + PROGRAMS[name][1] + _INPUTS
