"""Re-entry: a frame continued from any of its instructions ends as the uninterrupted call does."""
# The subjects are written for the instructions they compile to, not for style.
# ruff: noqa: PIE800, PIE804, C416, RUF015, UP032, F821
from __future__ import annotations

import contextlib
import dis
import gc
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo import _native
from dynamo._native import NULL, resume, resume_points, snapshot

LOG: list[Any] = []


class Abort(BaseException):
    """Ends a run at the instruction of a snapshot."""


class Context:
    def __init__(self, name: str, suppress: bool = False) -> None:
        self.name, self.suppress = name, suppress

    def __enter__(self) -> Context:
        LOG.append(("enter", self.name))
        return self

    def __exit__(self, *error: Any) -> bool:
        LOG.append(("exit", self.name, error[0] and error[0].__name__))
        return self.suppress and error[0] is not Abort


# --- subjects: each is run to its end, and again from every instruction --------------------------------
def s_arithmetic(a, b):
    c = a * b
    d = c - a if c > b else b - c
    c += d << 1
    return a, b, c, -d, ~c, f"{a}-{b!r:>4}", [a, *range(b)], {"k": c, **{"z": d}}, (*[1], a)[::-1], not a


def s_loops(n, m):
    total = 0
    for i in range(n):
        for j in [10, 20, 30]:
            if j == 20 and i == 1:
                continue
            if j == 30 and i == 2:
                break
            total += i * j
        else:
            total += 1000
    while m:
        m -= 1
        total += m
    else:
        total *= 2
    return total, [LOG.append(k) for k in range(2)]


def s_comprehensions(n, k):
    x = "outer"
    table = {key: value for key, value in zip("ab", range(n), strict=False)}
    nested = [[i * j + k for i in range(j)] for j in range(n)]
    return x, table, nested, {y for y in range(n)}, sum(z + k for z in range(n)), [lambda: (q, k) for q in range(2)][0]()


def s_with(a, b):
    with Context("A") as x, Context("B", True) as y:
        z = a + b
        if b:
            raise ValueError(z)
        LOG.append("unreached")
    with Context("C"):
        for i in range(3):
            with Context(f"D{i}"):
                if i == 1:
                    return z, x.name, y.name
    return None


def s_try(a, b):
    for value in (a, b, 0, "x", None):
        try:
            try:
                LOG.append(10 // value)
            except ZeroDivisionError as error:
                LOG.append(str(error))
                continue
            except TypeError:
                try:
                    raise
                except TypeError as again:
                    LOG.append(type(again).__name__)
            else:
                LOG.append("else")
            finally:
                LOG.append("inner finally")
        finally:
            LOG.append("outer finally")
    return sys.exc_info()


def s_exception_context(a, b):
    try:
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise KeyError(a) from error
    except KeyError as key:
        cause, context, handled = key.__cause__, key.__context__, sys.exc_info()[1]
        result = type(cause).__name__, context is cause, handled is key, key.args
    try:
        return result
    finally:
        LOG.append("finally")


def s_closures(a, b):
    t = a

    def increase(q=b, *, w=a):
        nonlocal t
        t += q
        return t + w
    u = increase() + increase(1, w=2)
    a += 100
    return u, t, (lambda: u + a)(), increase.__closure__[0].cell_contents


def s_match(a, b):
    results = []
    for subject in ((a, {"k": b, "m": [1, 2, 3]}), (0, None), "text", Context("x"), [1, 2]):
        match subject:
            case (0, _):
                results.append("zero")
            case (int(x), {"k": y, "m": [p, *q], **rest}) if x < 100:
                results.append((x, y, p, q, rest))
            case Context(name="x") as c:
                results.append(c.name)
            case [1, 2] | "text":
                results.append("either")
            case _:
                results.append(None)
    return results


def s_walrus_and_unpacking(a, b):
    out = []
    while (n := a - len(out)) > 0 and (m := n * b):
        out.append((n, m))
    a, b = b, a
    x = y = [a]
    (p, *q), r = [1, 2, 3], 4
    x[0], d = 7, {}
    d["k"] = d.setdefault("j", b)
    del d["j"]
    return out, a, b, x is y, y, p, q, r, d, out[1:], 1 < a < 9, a in (1, 2), a is not b


def s_calls(a, b, *c, d=4, **e):
    f = dict(a=a, **e)
    g = max(a, b, *c, key=lambda v: -v)
    h = "{} {k}".format(a, k=sorted([3, 1, 2], key=lambda z: -z, reverse=True))
    LOG.append(h.upper().replace("K", "J"))
    return f, g, d, c, e, int("7", base=8), (lambda *x, **y: (x, y))(*[a, b], 3, **{"q": 1}, r=2)


def s_assert_and_unbound(a, b):
    try:
        assert a == 99, f"message {b}"
    except AssertionError as error:
        text = str(error)
    del a
    try:
        a
    except UnboundLocalError as error:
        text += type(error).__name__
    global GLOBAL
    GLOBAL = b
    from os import path
    return text, GLOBAL, path.__name__[-4:]


def s_groups(a, b):
    try:
        with Context("X"):
            with contextlib.suppress(KeyError):
                {}[a]
            raise ExceptionGroup("g", [OSError(b), ValueError(a)])
    except* OSError as group:
        LOG.append(type(group).__name__)
    except* ValueError as group:
        LOG.append(len(group.exceptions))
    return "done"


def s_classes(a, b):
    class K:
        z = a

        def m(self, q):
            return self.z + q

        @property
        def p(self):
            return self.m(b) * 2

    class L(K):
        def m(self, q):
            return super().m(q) + 1
    k = L()
    k.z += 5
    return k.p, L.__mro__[1].__name__, k.__dict__


def s_many_names(a, b):
    v0 = v1 = v2 = v3 = v4 = v5 = v6 = v7 = v8 = v9 = a
    total = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9
    for i in range(2):
        if i:
            total += BIG_TABLE[i + 299]
    return total + b


BIG_TABLE = list(range(400))
exec("def s_far_jumps(a, b):\n    for i in range(2):\n        if i:\n"
     + "".join(f"            a = a + {1000 + k}\n" for k in range(300)) + "    return a, b\n")

SUBJECTS: list[types.FunctionType] = [f for name, f in sorted(globals().items()) if name.startswith("s_")]
UNTESTED = {"RETURN_GENERATOR", "MAKE_CELL", "COPY_FREE_VARS", "RESUME", "CACHE"}    # the interpreter's own prologue
IN_FLIGHT = {"PUSH_EXC_INFO", "RERAISE"}        # the exception in flight is not on the stack in a snapshot


def stack_depths(code: types.CodeType) -> dict[int, int]:
    """The value stack's height before each reachable instruction, by its effects and the exception table."""
    instructions = list(dis.get_instructions(code))
    position = {i.offset: k for k, i in enumerate(instructions)}
    depths: dict[int, int] = {}
    todo = [(0, 0)] + [(e.target, e.depth + 1 + bool(e.lasti)) for e in dis._parse_exception_table(code)]
    while todo:
        offset, depth = todo.pop()
        while offset not in depths:
            i = instructions[position[offset]]
            depths[offset] = depth
            jumps = i.opcode in dis.hasjrel or i.opcode in dis.hasjabs
            if jumps:
                todo.append((i.argval, depth + dis.stack_effect(i.opcode, i.arg, jump=True)))
            if i.opname in ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
                            "JUMP_BACKWARD_NO_INTERRUPT"):
                break
            depth += dis.stack_effect(i.opcode, i.arg, jump=False) if jumps else dis.stack_effect(i.opcode, i.arg)
            if position[offset] + 1 == len(instructions):
                break
            offset = instructions[position[offset] + 1].offset
    return depths


class Stop:
    """Calls `photograph(frame, offset)` before the k-th instruction of fn, by the means of each Python version."""

    def __init__(self, fn: types.FunctionType, k: int, photograph: Callable[[types.FrameType, int], None]) -> None:
        self.code, self.k, self.n, self.photograph = fn.__code__, k, 0, photograph

    def reached(self, frame: types.FrameType, offset: int) -> None:
        self.n += 1
        if self.n - 1 == self.k:
            self.photograph(frame, offset)

    def trace(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is not self.code:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.reached(frame, frame.f_lasti)
        return self.trace

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        if sys.version_info < (3, 12):
            old = sys.gettrace()
            sys.settrace(self.trace)
            try:
                yield
            finally:
                sys.settrace(old)
            return
        monitoring = sys.monitoring
        event = monitoring.events.INSTRUCTION
        monitoring.use_tool_id(4, "stop")
        monitoring.register_callback(4, event, lambda code, offset: self.reached(sys._getframe(1), offset) if code is self.code else None)
        monitoring.set_local_events(4, self.code, event)
        try:
            yield
        finally:
            monitoring.set_local_events(4, self.code, 0)
            monitoring.free_tool_id(4)


def photograph(fn: types.FunctionType, args: tuple, k: int, depths: dict[int, int]) -> tuple | None:
    """(opname, snapshot, log length) before the k-th executed instruction; None if there are fewer."""
    taken: list[tuple] = []
    units = fn.__code__.co_code

    def take(frame: types.FrameType, offset: int) -> None:
        opname = dis.opname[units[offset]]
        if opname in UNTESTED | IN_FLIGHT:
            taken.append((opname, None, 0))
            return
        offset, locals_, stack, handled = snapshot(frame, depths[offset])
        if fn is s_groups:      # `except*` collects the exceptions of its clauses in a list: the Abort below is appended too
            stack = tuple(list(item) if type(item) is list and item is not LOG else item for item in stack)
        taken.append((opname, (offset, locals_, stack, handled), len(LOG)))
        if sys.version_info < (3, 12):
            sys.settrace(None)
            frame.f_trace = None
        raise Abort
    LOG.clear()
    stop = Stop(fn, k, take)
    def apart() -> Iterator[None]:
        # A frame aborted between instructions may leave sys.exc_info() set: a generator has a separate one.
        with stop.installed():
            fn(*args)
        yield
    try:
        next(apart())
    except BaseException:       # an Abort, which `except*` may have put into a group
        if not taken:
            raise
    return taken[0] if taken else None


@pytest.mark.parametrize("fn", SUBJECTS, ids=[f.__name__ for f in SUBJECTS])
def test_reentry_before_every_instruction(fn: types.FunctionType) -> None:
    args, depths, points = (3, 2), stack_depths(fn.__code__), set(resume_points(fn.__code__))
    LOG.clear()
    want, want_log = fn(*args), list(LOG)
    tested, refused, k = 0, 0, 0
    limit = 10**6 if len(fn.__code__.co_code) < 3000 else 400
    while (picture := photograph(fn, args, k, depths)) is not None and k < limit:
        k += 1
        opname, shot, log_length = picture
        if shot is None:
            continue
        offset, locals_, stack, handled = shot
        if offset not in points:
            refused += 1
            with pytest.raises(ValueError, match="where an instruction"):
                resume(fn, offset, locals_, stack, None, handled)
            continue
        del LOG[log_length:]
        got = resume(fn, offset, locals_, stack, None, handled)
        assert repr(got) == repr(want), (opname, offset)
        assert want_log == LOG, (opname, offset)
        tested += 1
    assert tested > 20 and refused < tested / 4
    assert sys.exc_info() == (None, None, None)


def test_points_exclude_prefixed_instructions_and_caches() -> None:
    for fn in SUBJECTS:
        starts, prefix = [], False
        for i in dis.get_instructions(fn):
            if not prefix:
                starts.append(i.offset)
            prefix = i.opname in ("EXTENDED_ARG", "KW_NAMES") or (prefix and i.opname == "PRECALL")
        assert resume_points(fn.__code__) == tuple(starts)
    assert any(i.opname == "EXTENDED_ARG" for i in dis.get_instructions(globals()["s_far_jumps"]))


# --- throwing ---------------------------------------------------------------------------------------
def raiser(*args: Any) -> Any:
    return args


def call_offset(fn: types.FunctionType, line: int) -> int:
    """Of the first call on that line, counted from the first line of the function."""
    first = fn.__code__.co_firstlineno
    return next(i.offset for i in dis.get_instructions(fn) if i.opname.startswith("CALL") and i.positions
                and i.positions.lineno == first + line and i.opname != "CALL_INTRINSIC_1")


def catcher(a, b):
    with Context("T"):
        try:
            x = raiser(a)
        except ValueError as error:
            return "caught", error.args, b
        finally:
            LOG.append("finally")
    return x


def test_the_handlers_of_the_frame_catch_an_exception() -> None:
    def stack() -> tuple:
        manager = Context("T")
        manager.__enter__()
        return (manager.__exit__,) if sys.version_info < (3, 14) else (Context.__exit__, manager)
    rest = (NULL,) * (catcher.__code__.co_nlocals - 2)
    LOG.clear()
    assert resume(catcher, call_offset(catcher, 3), (1, 2, *rest), stack(), ValueError(7)) == ("caught", (7,), 2)
    assert LOG == [("enter", "T"), "finally", ("exit", "T", None)]
    LOG.clear()
    with pytest.raises(KeyError, match="8"):
        resume(catcher, call_offset(catcher, 3), (1, 2, *rest), stack(), KeyError(8))
    assert LOG == [("enter", "T"), "finally", ("exit", "T", "KeyError")]


def outer(a):
    total = a
    total += raiser(a,
                    total)
    return total


def outer_unpacked(a):
    total = a
    raiser(*a)
    return total


@pytest.mark.parametrize("fn, line", [(outer, 2), (outer_unpacked, 2)])
def test_the_traceback_gets_the_line_of_the_frame(fn: Any, line: int) -> None:
    def inner() -> None:
        try:
            {}["missing"]
        except KeyError:
            raise ValueError("from inner")  # noqa: B904
    try:
        inner()
    except ValueError as error:
        thrown = error
    context = thrown.__context__
    with pytest.raises(ValueError) as caught:
        resume(fn, call_offset(fn, line), (1, 1), (), thrown)
    assert caught.value is thrown and thrown.__context__ is context and isinstance(context, KeyError)
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(thrown.__traceback__)]
    assert [name for name, _ in frames][-3:] == [fn.__name__, "test_the_traceback_gets_the_line_of_the_frame", "inner"]
    assert dict(frames)[fn.__name__] == fn.__code__.co_firstlineno + line


def deleter(a, b):
    try:
        b = a
        del a[0]
        return b
    except KeyError:
        return "caught"


def test_a_thrown_exception_shows_the_line_of_the_instruction() -> None:
    # From 3.13 the interpreter reads the line one unit after the unit whose handler it takes.
    offset = next(i.offset for i in dis.get_instructions(deleter) if i.opname == "DELETE_SUBSCR")
    with pytest.raises(IndexError) as caught:
        resume(deleter, offset, ([], []), ([], 0), IndexError())
    assert caught.traceback[-1].lineno == deleter.__code__.co_firstlineno + 3 - 1
    assert resume(deleter, offset, ([], []), ([], 0), KeyError()) == "caught"


def handler(a):
    try:
        raiser(a)
    except ValueError:
        x = raiser(1)
        return x, sys.exc_info()[1]


def test_the_handled_exception_is_restored_on_entry_and_exit() -> None:
    error, ours = ValueError("handled"), KeyError("ours")
    offset = next(i.offset for i in dis.get_instructions(handler) if i.opname == "STORE_FAST" and i.argval == "x")
    try:
        raise ours
    except KeyError:
        # Inside the handler, the stack holds the exception that exc_info returns to, then the value to store.
        assert resume(handler, offset, (5, NULL), (None, (1,)), None, error) == ((1,), error)
        assert sys.exc_info()[1] is ours
    assert resume(handler, offset, (5, NULL), (None, (1,)), None, None)[1] is None


# --- signatures, cells, checks ----------------------------------------------------------------------
def test_any_signature_and_more_than_64_arguments() -> None:
    def f(a, b=1, /, c=2, *rest, k, m=3, **kw):
        return a, b, c, rest, k, m, kw
    start = resume_points(f.__code__)[0]
    names = _native.localsplus_names(f.__code__)
    assert names == ("a", "b", "c", "k", "m", "rest", "kw")
    assert resume(f, start, (1, 2, 3, 4, 5, (6,), {"z": 7}), ()) == (1, 2, 3, (6,), 4, 5, {"z": 7})
    namespace: dict[str, Any] = {}
    many = [f"a{i}" for i in range(150)]
    exec(f"def g({', '.join(many)}, *, {', '.join('k' + n for n in many)}): return a149 + ka149", namespace)
    assert resume(namespace["g"], resume_points(namespace["g"].__code__)[0], tuple(range(300)), ()) == 149 + 299


def test_cells_keep_their_identity() -> None:
    def make(k):
        def f(a):
            def g():
                nonlocal k
                k += a
                return k
            return g() + k
        return f
    f = make(10)
    code = f.__code__
    kinds = _native.localsplus_kinds(code)
    assert _native.localsplus_names(code) == ("a", "g", "k") and [bool(kinds[i] & 0x80) for i in range(3)] == [False, False, True]
    load_g = next(i.offset for i in dis.get_instructions(code) if i.opname == "RESUME") + 2
    k = _native.make_cell(100)
    assert resume(f, load_g, (_native.make_cell(5), NULL, k), ()) == 210
    assert k.cell_contents == 105 and f(1) == 22
    with pytest.raises(TypeError, match=r"slot 2 \(k\) .* takes a cell"):
        resume(f, load_g, (_native.make_cell(5), NULL, 7), ())
    with pytest.raises(ValueError, match="empty"):
        _native.make_cell().cell_contents
    with pytest.raises(ValueError):
        _native.make_cell(NULL).cell_contents


def test_a_list_of_values_is_emptied_so_that_they_die_in_the_frame() -> None:
    class Thing: ...

    def f(thing: Any) -> bool:
        seen = weakref.ref(thing)
        del thing
        return seen() is None

    values = [Thing(), NULL]
    assert resume(f, resume_points(f.__code__)[0], values, []) and not values
    kept = (Thing(), NULL)
    assert not resume(f, resume_points(f.__code__)[0], kept, ())


def test_arguments_are_checked() -> None:
    def f(a):
        return a
    def generator():
        yield
    async def coroutine(): ...
    good = resume_points(f.__code__)[0]
    for bad in (-2, 1, good + 1000, 2**40, None):
        with pytest.raises(ValueError, match="where an instruction"):
            resume(f, bad, (1,), ())
    with pytest.raises(ValueError, match="locals has 2 values"):
        resume(f, good, (1, 2), ())
    with pytest.raises(ValueError, match="stack has 99 values"):
        resume(f, good, (1,), (0,) * 99)
    with pytest.raises(TypeError, match="expected a tuple or a list"):
        resume(f, good, {1}, ())
    with pytest.raises(TypeError, match="Python function"):
        resume(len, 0, (), ())
    with pytest.raises(TypeError, match="exc must be"):
        resume(f, good, (1,), (), 3)
    with pytest.raises(TypeError, match="arguments; expected"):
        resume(f)
    for fn in (generator, coroutine):
        with pytest.raises(NotImplementedError, match="generator or coroutine"):
            resume(fn, 0, (), ())
    assert not _native.hook_installed()


def test_null_is_a_singleton() -> None:
    import copy
    import pickle
    assert repr(NULL) == "NULL" and copy.deepcopy(NULL) is NULL and pickle.loads(pickle.dumps(NULL)) is NULL
    with pytest.raises(TypeError):
        type(NULL)()


# --- with the hook ----------------------------------------------------------------------------------
def leaf(x):
    return x + 1


def calls_leaf(a):
    b = leaf(a)
    return leaf(b)


def test_callees_of_a_reentered_frame_follow_the_threads_mode() -> None:
    seen: list[str] = []
    region = _native.Region(lambda code, func, slots: seen.append(code.co_name))
    start = resume_points(calls_leaf.__code__)[0]
    assert resume(calls_leaf, start, (1, NULL), ()) == 3 and seen == []
    assert _native.call_in_region(region, resume, calls_leaf, start, (1, NULL), ()) == 3
    assert seen == ["leaf", "leaf"] and not _native.hook_installed()


def test_nested_breaks_end_inner_frames_first() -> None:
    def inner(x):
        y = raiser(x)
        return y * 2

    def outer_frame(x):
        z = inner(x)
        return z + 1
    store_y = next(i.offset for i in dis.get_instructions(inner) if i.opname == "STORE_FAST")
    store_z = next(i.offset for i in dis.get_instructions(outer_frame) if i.opname == "STORE_FAST")
    result = resume(inner, store_y, (1, NULL), (20,))
    cells = tuple(c for c in outer_frame.__closure__ or ())
    assert resume(outer_frame, store_z, (1, NULL, *cells), (result,)) == 41


def test_recursion_and_threads() -> None:
    start = resume_points(countdown.__code__)[0]
    assert countdown(100) == 100 == resume(countdown, start, (100,), ())
    out: list[int] = []

    def work() -> None:
        out.extend(resume(countdown, start, (n,), ()) for n in range(60))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(out) == sorted(list(range(60)) * 4)


def countdown(n):
    return 0 if n == 0 else 1 + resume(countdown, resume_points(countdown.__code__)[0], (n - 1,), ())


def test_reentry_leaves_no_references() -> None:
    marker = [1]

    def f(a, *rest, **kw):
        b = [a, rest]
        return len(b), marker
    offset = next(i.offset for i in dis.get_instructions(f) if i.opname == "STORE_FAST" and i.argval == "b")
    cells = f.__closure__ or ()
    locals_ = (marker, (marker,), {"k": marker}, NULL, *cells)
    error = ValueError()
    def counts() -> tuple: return sys.getrefcount(marker), sys.getrefcount(f), sys.getrefcount(f.__code__), sys.getrefcount(error)
    resume(f, offset, locals_, ([marker],))
    before = counts()
    for _ in range(300):
        assert resume(f, offset, locals_, ([marker],))[0] == 1
        with pytest.raises(ValueError):
            resume(f, offset, locals_, ([marker],), error)
        error.__traceback__ = None
    gc.collect()
    after = counts()
    assert after == before
