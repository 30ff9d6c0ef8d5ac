"""CompiledFunction and Dispatcher: they bind as Python does, choose entries by guards, and behave as functions."""
from __future__ import annotations

import copy
import gc
import inspect
import itertools
import pickle
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from dynamo import _native
from dynamo._native import CompiledFunction, Dispatcher, Entry, GuardProgram


def no_target(self: Any, slots: tuple) -> None:
    return None


def refuse_miss(self: Any, slots: tuple) -> None:
    raise AssertionError("miss called")


def compiled(fn: Any, target: Any = None, guards: list | None = None, **kwargs: Any) -> CompiledFunction:
    cf = CompiledFunction(fn, refuse_miss, **kwargs)
    program = None if guards is None else GuardProgram(guards, len(fn.__code__.co_varnames) and argument_slots(fn) + 1)
    cf.add_entry(program, target)
    return cf


def argument_slots(fn: Any) -> int:
    c = fn.__code__
    return c.co_argcount + c.co_kwonlyargcount + bool(c.co_flags & inspect.CO_VARARGS) + bool(c.co_flags & inspect.CO_VARKEYWORDS)


# --- binding ----------------------------------------------------------------------------------------
def f_none(): return locals()
def f_positional(a, b): return locals()
def f_defaults(a, b=2, c=3): return locals()
def f_positional_only(a, b=2, /, c=3): return locals()
def f_keyword_only(a, *, k, m=5): return locals()
def f_rest(a, *rest): return locals()
def f_keywords(a=1, **kw): return locals()
def f_positional_only_and_keywords(a, /, **kw): return locals()
def f_all(a, b=2, /, c=3, *rest, k, m=5, **kw): return locals()
def f_cells(a, b=2, *, k=3, **kw):
    [lambda: (a, b, k, kw)]
    return locals()


FUNCTIONS = [f_none, f_positional, f_defaults, f_positional_only, f_keyword_only, f_rest, f_keywords,
             f_positional_only_and_keywords, f_all, f_cells]


def calls() -> Iterator[tuple[tuple, dict]]:
    names = ("a", "b", "c", "k", "m", "zz")
    for n in range(5):
        for r in range(4):
            for chosen in itertools.combinations(names, r):
                yield tuple(range(10, 10 + n)), {name: name.upper() for name in reversed(chosen)}


@pytest.mark.parametrize("fn", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_binding_agrees_with_python_for_every_call(fn: Any) -> None:
    names = fn.__code__.co_varnames[:argument_slots(fn)]
    cf = CompiledFunction(fn, no_target)
    seen: list[tuple] = []
    cf.add_entry(None, lambda *slots: seen.append(slots))
    outcomes = set()
    for args, kwargs in calls():
        try:
            bound = fn(*args, **kwargs)     # not inspect.signature: it errs on positional-only parameters
            want: tuple | None = tuple(bound[name] for name in names)
        except TypeError:
            want = None
        outcomes.add(want is None)
        seen.clear()
        if want is None:
            with pytest.raises(TypeError) as ours:
                cf(*args, **kwargs)
            with pytest.raises(TypeError) as pythons:
                fn(*args, **kwargs)
            assert str(ours.value) == str(pythons.value) and not seen
            with pytest.raises(TypeError, match="do not fit"):
                cf.bind(*args, **kwargs)
        else:
            cf(*args, **kwargs)
            assert seen == [want] and cf.bind(*args, **kwargs) == want
            for slot in want:
                if isinstance(slot, dict):
                    assert list(slot) == [k for k in kwargs if k in slot]
    assert outcomes == {True, False}


def test_keyword_names_that_are_not_interned() -> None:
    cf = compiled(f_defaults, lambda *slots: slots)
    assert cf(**{"".join(["a"]): 1, "".join(["c", ""]): 9}) == (1, 2, 9)

    class Name(str):
        pass
    assert cf(**{Name("a"): 1}) == (1, 2, 3)


def test_defaults_are_read_at_each_call() -> None:
    def f(a, b=1, *, k=2):
        return a, b, k
    cf = compiled(f, lambda *slots: slots)
    assert cf(0) == (0, 1, 2)
    f.__defaults__, f.__kwdefaults__ = (10,), {"k": 20}
    assert cf(0) == (0, 10, 20)
    cf.__defaults__ = (30, 40)
    assert f.__defaults__ == (30, 40) and cf() == (30, 40, 20)
    f.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        cf(0)


def test_more_arguments_than_the_inline_buffer() -> None:
    n = 200
    names = [f"a{i}" for i in range(n)]
    namespace: dict[str, Any] = {}
    exec(f"def f({', '.join(names)}): return sum(({', '.join(names)}))", namespace)
    cf = compiled(namespace["f"], lambda *slots: ("compiled", sum(slots)), [("int_eq", n - 1, n - 1)])
    assert cf(*range(n)) == cf(**{name: i for i, name in enumerate(names)}) == ("compiled", sum(range(n)))


# --- entries ----------------------------------------------------------------------------------------
def test_entries_are_chosen_by_guards_and_the_last_hit_moves_to_the_front() -> None:
    cf = CompiledFunction(lambda x: ("original", x), no_target)
    entries = [cf.add_entry(GuardProgram([("int_eq", 0, i)], 2), lambda x, i=i: ("entry", i, x)) for i in range(4)]
    assert cf.entries() == entries[::-1]
    assert cf(1) == ("entry", 1, 1) and cf.entries()[0] is entries[1]
    assert cf(3) == ("entry", 3, 3) and cf.entries() == [entries[3], entries[1], entries[2], entries[0]]
    assert cf(9) == ("original", 9)
    assert (cf.hits, cf.misses, entries[1].hits) == (2, 1, 1)
    assert cf.remove_entry(entries[1]) and not cf.remove_entry(entries[1])
    assert cf(1) == ("original", 1)
    cf.clear_entries()
    assert cf.entries() == [] and cf(3) == ("original", 3)


def test_the_result_of_miss_decides_which_code_runs() -> None:
    outcomes: dict[int, Any] = {0: None, 1: lambda x, y: ("target", x, y), 3: 7,
                                2: Entry(None, lambda x, y, fn: ("entry", x, y, fn), pass_function=True), 4: Entry(None, None)}
    seen = []

    def miss(self: Any, slots: tuple) -> Any:
        seen.append((self, slots))
        return outcomes[slots[0]]

    def f(x, y=5):
        return "original", x, y
    cf = CompiledFunction(f, miss)
    assert cf(0) == ("original", 0, 5) and cf(1) == ("target", 1, 5) and cf(2, y=6) == ("entry", 2, 6, f) and cf(4) == ("original", 4, 5)
    with pytest.raises(TypeError, match="miss returned a int"):
        cf(3)
    assert seen == [(cf, (0, 5)), (cf, (1, 5)), (cf, (2, 6)), (cf, (4, 5)), (cf, (3, 5))]
    assert cf.entries() == []
    with pytest.raises(KeyError):
        cf(9)
    cf.miss = no_target
    assert cf(9) == ("original", 9, 5)
    with pytest.raises(TypeError):
        cf.miss = 3


def test_pass_function_and_the_function_slot() -> None:
    def make(k: int) -> Any:
        def f(x):
            return k + x
        return f
    f = make(3)
    cf = CompiledFunction(f, no_target)
    guards = [("type", 0, int), ("closure", 1, 0, 2), ("int_eq", 2, 3)]
    cf.add_entry(GuardProgram(guards, 2), lambda x, fn: (x, fn.__closure__[0].cell_contents), pass_function=True)
    assert cf(1) == (1, 3)
    f.__closure__[0].cell_contents = 4
    assert cf(1) == 5
    with pytest.raises(ValueError, match="n_slots must be 2"):
        cf.add_entry(GuardProgram([], 1), print)
    with pytest.raises(TypeError, match="expected a GuardProgram"):
        cf.add_entry([], print)
    with pytest.raises(TypeError, match="unexpected keyword"):
        cf.add_entry(None, print, wrong=1)


def test_an_entry_without_target_runs_the_original() -> None:
    cf = compiled(lambda *a, **k: (a, k), None)
    assert cf(1, 2, z=3) == ((1, 2), {"z": 3})


def test_replacing_the_code_drops_the_entries() -> None:
    def f(x):
        return x

    def g(x, y=2):
        return x, y
    cf = compiled(f, lambda x: "compiled")
    assert cf(1) == "compiled"
    f.__code__ = g.__code__
    f.__defaults__ = (7,)
    cf.miss = no_target
    assert cf(1) == (1, 7) and cf.entries() == []


def test_entries_changed_while_guards_run() -> None:
    cf = CompiledFunction(lambda x: "original", no_target)

    class Evil:
        def __init__(self, action: Any) -> None:
            self.action = action

        def __eq__(self, other: object) -> bool:
            self.action()
            return False
        __hash__ = None  # type: ignore[assignment]

    def program(value: Any) -> GuardProgram:
        return GuardProgram([("call_eq", lambda: check_now(value), True)], 2)

    def check_now(value: Any) -> bool:
        value()
        return False
    for action in (cf.clear_entries, lambda: cf.add_entry(GuardProgram([("int_eq", 0, 1)], 2), lambda x: "late"), gc.collect):
        cf.clear_entries()
        fired = []

        def once(action: Any = action, fired: list = fired) -> None:
            if not fired:
                fired.append(1)
                action()
        for _ in range(5):
            cf.add_entry(program(once), lambda x: "never")
        assert cf(1) == ("late" if len(cf.entries()) == 6 else "original")
        assert fired
    cf.clear_entries()
    def clearing(x):
        cf.clear_entries()
        gc.collect()
        return "ran"
    cf.add_entry(None, clearing)
    assert cf(1) == "ran" and cf.entries() == []


def test_errors_in_targets_and_guards_pass_through() -> None:
    def target(x: int) -> None:
        raise LookupError(x)
    cf = compiled(lambda x: x, target)
    with pytest.raises(LookupError):
        cf(1)
    with pytest.raises(TypeError):
        compiled(lambda x: x, lambda: None)(1)

    def interrupt() -> None:
        raise KeyboardInterrupt
    cf = CompiledFunction(lambda x: x, refuse_miss)
    cf.add_entry(GuardProgram([("call_eq", interrupt, 0)], 2), lambda x: x)
    with pytest.raises(KeyboardInterrupt):
        cf(1)


def test_recursion_through_the_compiled_function() -> None:
    def fact(n: int) -> int:
        return 1 if n == 0 else n * cf(n - 1)
    cf = CompiledFunction(fact, no_target)
    cf.add_entry(GuardProgram([("type", 0, int)], 2), lambda n: 1 if n == 0 else n * cf(n - 1))
    assert cf(30) == 265252859812191058636308480000000
    with pytest.raises(RecursionError):
        cf(10**6)
    assert cf(5) == 120


# --- stances ----------------------------------------------------------------------------------------
def test_stances_and_disabling() -> None:
    cf = CompiledFunction(lambda x: ("original", x), lambda self, slots: lambda x: ("captured", x))
    cf.add_entry(GuardProgram([("int_eq", 0, 1)], 2), lambda x: ("compiled", x))
    assert cf(1) == ("compiled", 1) and cf(2) == ("captured", 2)
    try:
        assert _native.set_stance(_native.STANCE_EAGER) == _native.STANCE_DEFAULT
        assert cf(1) == ("original", 1) and cf(2) == ("original", 2)
        assert _native.set_stance(_native.STANCE_RUN_ONLY) == _native.STANCE_EAGER
        assert cf(1) == ("compiled", 1) and cf(2) == ("original", 2)
    finally:
        _native.set_stance(_native.STANCE_DEFAULT)
    assert _native.call_disabled(cf, 1) == ("original", 1) and cf(1) == ("compiled", 1)
    assert _native.set_disabled(True) is False
    out: list = []
    thread = threading.Thread(target=lambda: out.append(cf(1)))
    thread.start()
    thread.join()
    assert cf(1) == ("original", 1) and out == [("compiled", 1)]
    assert _native.set_disabled(False) is True
    with pytest.raises(ValueError, match="expected STANCE_DEFAULT"):
        _native.set_stance(9)
    with pytest.raises(ZeroDivisionError):
        _native.call_disabled(lambda: 1 / 0)
    assert cf(1) == ("compiled", 1)


# --- behaving as a function -------------------------------------------------------------------------
def documented(a: int, b: int = 2) -> int:
    """The doc."""
    return a + b


original_documented, documented = documented, compiled(documented, lambda a, b: a + b)


def test_a_compiled_function_has_the_attributes_of_the_function() -> None:
    cf, fn = documented, original_documented
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__", "__code__", "__globals__",
                 "__annotations__", "__closure__"):
        assert getattr(cf, name) == getattr(fn, name), name
    assert cf.__wrapped__ is fn and inspect.unwrap(cf) is fn and inspect.signature(cf) == inspect.signature(fn)
    assert callable(cf) and hash(cf) == hash(cf) and cf == cf and cf != fn
    cf.note, cf.__name__ = 5, "renamed"
    assert cf.__dict__ == {"note": 5, "__name__": "renamed"} and fn.__name__ == "documented" and cf.__name__ == "renamed"
    del cf.note, cf.__name__
    assert not hasattr(cf, "note") and cf.__name__ == "documented"
    with pytest.raises(AttributeError, match="nothing"):
        cf.nothing
    cf.__doc__ = "Another."
    assert cf.__doc__ == "Another." and fn.__doc__ == "The doc."
    del cf.__dict__["__doc__"]
    assert "documented" in repr(cf)
    assert pickle.loads(pickle.dumps(cf)) is cf and copy.deepcopy(cf) is cf
    assert weakref.ref(cf)() is cf


def test_a_compiled_function_binds_as_a_method() -> None:
    class C:
        def method(self, x, y=1):
            return "original", x, y
        method = compiled(method, lambda self, x, y: ("compiled", type(self).__name__, x, y))

        @classmethod
        def alternative(cls, x):
            return cls, x
        static = staticmethod(compiled(lambda x: x, lambda x: ("static", x)))
        prop = property(compiled(lambda self: 1, lambda self: "prop"))
    C.cm = classmethod(compiled(lambda cls, x: 1, lambda cls, x: (cls, x)))  # type: ignore[attr-defined]
    c = C()
    assert c.method(2) == C.method(c, 2) == ("compiled", "C", 2, 1)
    bound = c.method
    assert bound.__self__ is c and bound(x=3, y=4) == ("compiled", "C", 3, 4) and bound.__name__ == "method"
    assert [c.method(i) for i in range(100)][-1] == ("compiled", "C", 99, 1)
    assert (c.static(1), c.prop, C.cm(1)) == (("static", 1), "prop", (C, 1))
    assert type("D", (C,), {"m2": lambda self: super(type(self), self).method(5)})().m2() == ("compiled", "D", 5, 1)


def test_construction_is_checked() -> None:
    with pytest.raises(TypeError, match="expected a plain Python function"):
        CompiledFunction(len, no_target)
    with pytest.raises(TypeError, match="expected a callable"):
        CompiledFunction(no_target, None)
    with pytest.raises(TypeError, match="expected a Region or None"):
        CompiledFunction(no_target, no_target, 3)


# --- Dispatcher -------------------------------------------------------------------------------------
def test_dispatcher_chooses_by_flat_slots() -> None:
    d = Dispatcher(None, lambda *slots: ("fallback", slots), key=("code", 12))
    d.add_entry(GuardProgram([("int_eq", 0, 1), ("is", 1, _native.NULL)], 2), lambda a, b: ("entry", a, b))
    assert d(1, _native.NULL) == ("entry", 1, _native.NULL)
    assert d(2, _native.NULL) == ("fallback", (2, _native.NULL)) and d(1) == ("fallback", (1,)) and d() == ("fallback", ())
    assert d.key == ("code", 12) and (d.hits, d.misses) == (1, 3)
    d.miss = lambda self, slots: (lambda *s: ("missed", self is d, s))
    assert d(5) == ("missed", True, (5,))
    d.miss = lambda self, slots: None
    d.fallback = None
    with pytest.raises(RuntimeError, match="no entry matches its 1 slots"):
        d(5)
    with pytest.raises(TypeError, match="no keyword arguments"):
        d(a=1)
    d.fallback = lambda *slots: len(slots)
    assert d(*range(500)) == 500


# --- references and threads -------------------------------------------------------------------------
def test_calls_leave_no_references() -> None:
    def f(a, b=None, *rest, k=None, **kw):
        return a
    value = [1]
    hit = compiled(f, lambda a, b, k, rest, kw: a)
    miss = CompiledFunction(f, no_target)
    chosen = CompiledFunction(f, lambda self, slots: lambda a, b, k, rest, kw: a)
    dispatcher = Dispatcher(lambda self, slots: None, lambda *s: s[0])
    before = sys.getrefcount(value)
    for _ in range(500):
        for cf in (hit, miss, chosen):
            cf(value)
            cf(value, value, value, k=value, z=value)
            with pytest.raises(TypeError):
                cf(value, a=value)
        dispatcher(value)
    gc.collect()
    assert sys.getrefcount(value) == before


def test_objects_in_cycles_are_collected() -> None:
    def build() -> weakref.ref:
        def f(x):
            return cf, x
        cf = CompiledFunction(f, no_target, _native.Region())
        cf.own = cf
        cf.add_entry(GuardProgram([("const", cf, 2)], 2), lambda x: cf)
        d = Dispatcher(lambda self, slots: cf, cf, cf)
        d.add_entry(None, lambda: d)
        cf.d = d
        cf.region.miss = lambda *a: cf
        cf.region.dispatcher(f.__code__).add_entry(None, f)
        return weakref.ref(cf)
    gc.collect()
    assert [ref for ref in [build() for _ in range(5)] if gc.collect() >= 0 and ref() is not None] == []


def test_many_compiled_functions_leave_no_objects() -> None:
    def cycle() -> None:
        cf = compiled(lambda x: x, lambda x: x, [("type", 0, int), ("watch", ({},), (("const", 1, 2),))])
        cf(1)
    cycle()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        cycle()
    gc.collect()
    assert abs(len(gc.get_objects()) - before) < 20


def test_threads_share_one_compiled_function() -> None:
    cf = CompiledFunction(lambda x, y: ("original", x, y), no_target)
    stop = threading.Event()
    wrong: list[Any] = []

    def call() -> None:
        while not stop.is_set():
            wrong.extend(i for i in range(5) if cf(i, y=i)[1:] != (i, i))

    def change() -> None:
        while not stop.is_set():
            cf.add_entry(GuardProgram([("call_eq", lambda: time.sleep(0), None), ("int_eq", 0, 2)], 3), lambda x, y: ("entry", x, y))
            if len(cf.entries()) > 6:
                cf.clear_entries()
    threads = [threading.Thread(target=call) for _ in range(3)] + [threading.Thread(target=change)]
    for t in threads:
        t.start()
    deadline = time.monotonic() + 60
    while not (wrong or (cf.hits > 10 and cf.misses > 10)) and time.monotonic() < deadline:
        time.sleep(0.02)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong and cf.hits > 10 and cf.misses > 10
