"""Programs whose difference the fuzzer found (see `found`): the lifetimes of objects that frames and exceptions hold.
"""

from __future__ import annotations

from typing import Final

# name: (mode, the main function and its helpers)
PROGRAMS: Final[dict[str, tuple[str, str]]] = {
    "a nested call at a break keeps its traceback entries": ("default", """
def f(log, x, n):
    return (lambda q: Base + q)(n)
"""),
    "an error of an op releases a generator, in the first call too": ("default", """
def f(log, x, n):
    try:
        held = guarded(3)
        next(held)
        torch.stack()
    except TypeError:
        pass
"""),
    "a propagating exception keeps one entry for each frame": ("default", """
class Manager:
    def __enter__(self):
        pass
    def __exit__():
        pass
def f(log, x, n):
    with Manager():
        Base().n += sorted
"""),
    "a break in finally does not change the traceback": ("default", """
class Counting:
    def __init__(self):
        Base.count += 1
def f(log, x, n):
    for i in range(n):
        try:
            torch.zeros(2) + torch.zeros(4)
        finally:
            Counting()
"""),
    "__exit__ gets the traceback": ("default", """
class Manager:
    def __enter__(self):
        pass
    def __exit__(self, kind, error, tb):
        note((kind, tb is None, tb is error.__traceback__))
        return True
def f(log, x, n):
    with Manager():
        GL[x.t] = n
    return x
"""),
    "a bare raise without an exception": ("break", """
def f(log, x, n):
    with torch.no_grad():
        raise
"""),
    "a real generator is closed when an exception leaves the loop": ("break", """
def f(log, x, n):
    for i in guarded(n):
        'a' + n
"""),
    "a traceback made for captured code keeps nothing alive": ("break", """
def f(log, x, n):
    for i in guarded(n):
        try:
            raise KeyError
        except KeyError:
            raise
"""),
    "a traceback of a callee does not keep alive what its caller dropped": ("leaf", """
@contextlib.contextmanager
def managed():
    yield
def h():
    G = G
def f(log, x, n):
    with managed():
        for i in guarded(n):
            h()
"""),
    "an object that an inlined frame drops dies while the frame runs": ("leaf", """
def h(n):
    for i in range(n + 2):
        next(guarded(G))
        note(i)
def f(log, x, n):
    h(n)
    return x, [next(guarded(G)) for i in range(n)]
"""),
    "a frame that is thrown into shows the line of its instruction, also without a cache after it": ("default", """
def f(log, x, n):
    try:
        for i in guarded(4):
            print(end='')
            del GL[7]
            note(n)
    except KeyError:
        pass
"""),
    **{f"an unread generator lives as long as its variable, {mode}": (mode, """
def f(log, x, n):
    items = guarded(3)
    note(next(items))
    y = x + 1
    for i in range(n):
        note(i)
        print(end='')
    return y + 1
""") for mode in ("default", "break", "leaf")},
    **{f"objects in the variables of a frame live as long as the traceback, {mode}": (mode, """
def h(x):
    inner = guarded(n=3)
    next(inner)
    print(end='')
    return x + missing
def f(log, x, n):
    for i in range(n):
        items = guarded(3)
        next(items)
    held = [guarded(2)]
    note(next(held[0]))
    h(x)
""") for mode in ("default", "break", "leaf")},
    **{f"variables that are bound again or deleted release their objects at once, {mode}": (mode, """
def f(log, x, n):
    def unread():
        return shared
    shared = guarded(4)
    note(next(shared))
    for i in range(n + 1):
        items, other = guarded(3), [guarded(2)]
        note((next(items), next(other[0])))
        print(end='')
        note(i)
    del items
    note('deleted')
    shared = None
    note('shared')
    print(end='')
    first, *other = 1, 2
    note('other')
    return x, other
""") for mode in ("default", "break", "leaf")},
    **{f"the traceback of an exception that a with block lets through holds its frame, {mode}": (mode, """
class Manager:
    def __enter__(self):
        pass
    def __exit__(self, *error):
        note('out')
        print(end='')
def f(log, x, n):
    with Manager():
        items = guarded(3)
        note(next(items))
        print(end='')
        GL.index(70)
""") for mode in ("default", "break", "leaf", "settrace")},
    **{f"a propagating exception holds the variables of a frame that caught it, {mode}": (mode, """
def f(log, x, n):
    try:
        raise KeyError
    except Exception:
        items = guarded(3)
        next(items)
        raise
    finally:
        note(2)
        print(end='')
""") for mode in ("default", "break", "leaf")},
    **{f"an exception that is kept holds the variables of its frames, {mode}": (mode, """
def h(x, items):
    next(items)
    raise KeyError(x + 1)
def f(log, x, n):
    kept = []
    items = guarded(4)
    next(items)
    try:
        missing
    except Exception as e:
        kept.append(e)
    try:
        h(x, guarded(4))
    except KeyError as e:
        log.append(e)
    note(n)
    print(end='')
    other = guarded(2)
    next(other)
    note(n + 1)
    log[0].__traceback__ = None
    note(n + 2)
""") for mode in ("default", "break", "leaf")},
    **{f"objects that the frames of an exception hold die with it, {mode}": (mode, """
def h(x, items):
    next(items)
    raise KeyError(x + 1)
def f(log, x, n):
    try:
        h(x, guarded(4))
    except KeyError:
        note(n)
        print(end='')
        note(n)
    note(n)
    try:
        h(x, guarded(4))
    except KeyError as e:
        note(n)
    note(6)
""") for mode in ("default", "break", "leaf")},
    **{f"a frame and an exception that it keeps hold each other, {mode}": (mode, """
def h(x, n, again=None):
    kept = None
    try:
        if again is not None:
            raise again
        missing
    except Exception as e:
        kept = e
    note(n)
    print(end='')
    items = guarded(3)
    next(items)
    note(n)
    return kept
def f(log, x, n):
    h(x, n)
    note(7)
    k = h(x, n)
    print(end='')
    note(8)
    h(x, n, k)
    del k
    note(9)
    trace = h(x, n).__traceback__
    return trace.tb_next, sorted(trace.tb_frame.f_locals)
""") for mode in ("default", "break", "leaf")},
    **{f"an exception from outside that is raised holds the frames it passes, {mode}": (mode, """
saved = KeyError(3)
def h(e, items):
    next(items)
    raise e
def f(log, x, n):
    try:
        h(saved, guarded(3))
    except KeyError as e:
        note(e.args)
    note(3)
    print(end='')
    saved.__traceback__ = None
    note(4)
""") for mode in ("default", "break", "leaf")},
    "the frames of an exception have their variables": ("default", """
def g(x, n):
    y = x * n
    raise KeyError(y.sum())
def h(x, n):
    z = x + n
    def inner():
        return z
    return g(z, n)
def f(log, x, n):
    try:
        h(x, n)
    except KeyError as e:
        kept = e
    entry, found = kept.__traceback__, []
    print(end='')
    while entry is not None:
        found.append({k: v for k, v in entry.tb_frame.f_locals.items() if k in ('x', 'y', 'n', 'z')})
        entry = entry.tb_next
    return found[1:]
"""),
    "a function of a module with an empty tuple lives next to a kept exception": ("default", """
empty = ()
def f(log, x, n):
    def h():
        return x
    try:
        missing
    except NameError as e:
        kept = e
    print(end='')
    return h().sum(), kept.args
"""),
    **{f"a traceback that is kept leads to the frame that is running, {mode}": (mode, """
class Keeping:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.error = error
        return True
def f(log, x, n):
    kept = []
    for i in GL:
        held = guarded(3)
        next(held)
        try:
            'a'[True]
        except LookupError as e:
            kept.append(e.__traceback__)
        note(i)
    print(end='')
    note(sorted(kept[0].tb_frame.f_locals)[:3])
    kept = None
    with Keeping() as keeping:
        held = guarded(4)
        next(held)
        missing
    print(end='')
    note(keeping.error[2].tb_frame.f_locals['n'])
    held = None
    note(n)
    keeping.error = None
    note(5)
""") for mode in ("default", "break", "leaf")},
    "an exception that was handled while a frame was captured dies with its handler": ("leaf", """
def thrower():
    try:
        raise KeyError()
    finally:
        note('thrower')
def f(log, x, n):
    held = guarded(3)
    next(held)
    with contextlib.suppress(Exception):
        thrower()
"""),
    "a trace function does not make an error hold the frame that it left": ("settrace", """
def h1():
    held = guarded(3)
    next(held)
    raise 1
def f(log, x, n):
    with contextlib.suppress(Exception):
        h1()
"""),
}  # fmt: skip
