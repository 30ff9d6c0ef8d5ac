"""The frame hook: installed only while it is needed, and without effect on frames that it does not replace."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import shutil
import subprocess
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo import _native
from dynamo._native import Entry, GuardProgram, Region


@pytest.fixture(autouse=True)
def hook_is_left_uninstalled() -> Iterator[None]:
    assert not _native.hook_installed()
    yield
    assert not _native.hook_installed() and _native.active_regions() == 0 and _native.thread_mode() == _native.OFF


def run(region: Region | None, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return _native.call_in_region(region, fn, *args, **kwargs)


def replacing(make: Callable[[types.FunctionType], Any], *names: str) -> Region:
    """A region that replaces frames of functions with these names by the result of make(func)."""
    def miss(code: types.CodeType, func: types.FunctionType, slots: tuple) -> Any:
        return make(func) if code.co_name in names else None
    return Region(miss)


def seeing(seen: list[str]) -> Region:
    return Region(lambda code, func, slots: seen.append(code.co_name))


# --- installation -----------------------------------------------------------------------------------
def test_installed_only_inside_regions() -> None:
    inside: list[Any] = []

    def look() -> None:
        inside.append((_native.hook_installed(), _native.thread_mode(), _native.active_regions()))
    look()
    run(None, look)
    token = _native.enter_region()
    look()
    inner = _native.enter_region(Region(), _native.RUN_ONLY)
    look()
    _native.call_outside(look)
    _native.leave_region(inner)
    look()
    _native.leave_region(token)
    look()
    assert inside == [(False, 0, 0), (True, 1, 1), (True, 1, 1), (True, 2, 2), (True, 0, 2), (True, 1, 1), (False, 0, 0)]


def test_uninstalled_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError):
        run(None, lambda: 1 / 0)
    assert not _native.hook_installed()


def test_tokens_are_checked() -> None:
    for bad in (None, (), (1, 2, 3), ("x", None), (0, 3)):
        with pytest.raises(TypeError):
            _native.leave_region(bad)
    with pytest.raises(RuntimeError, match="no region is active"):
        _native.leave_region((0, None))
    with pytest.raises(ValueError, match="OFF, ON or RUN_ONLY"):
        _native.enter_region(None, 7)
    with pytest.raises(TypeError, match="Region or None"):
        _native.call_in_region(3, print)


def test_a_region_is_of_its_thread() -> None:
    seen: list[str] = []
    state: list[tuple[int, bool]] = []
    started, done = threading.Event(), threading.Event()

    def elsewhere() -> None:
        started.wait(60)
        def not_seen() -> int: return 1
        not_seen()
        state.append((_native.thread_mode(), _native.hook_installed()))
        done.set()
    thread = threading.Thread(target=elsewhere)
    thread.start()

    def inside() -> None:
        started.set()
        done.wait(60)
    run(seeing(seen), inside)
    thread.join()
    assert state == [(_native.OFF, True)]
    assert "inside" in seen and "not_seen" not in seen and "elsewhere" not in seen


def test_threads_enter_and_leave_at_random() -> None:
    def work(k: int, out: list) -> None:
        def f(a: int, b: int = 3) -> int: return a * b
        region = replacing(lambda func: lambda a, b: a * b + 1, "f")
        out.append(sum(run(region, f, i) for i in range(500)))
    out: list[int] = []
    threads = [threading.Thread(target=work, args=(k, out)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == [sum(3 * i + 1 for i in range(500))] * 4


# --- miss and replacement ---------------------------------------------------------------------------
def test_miss_sees_code_function_and_slots() -> None:
    seen: list[Any] = []

    def f(a, b=2, *rest, k=3, **kw):
        return a, b, rest, k, kw

    def miss(code: types.CodeType, func: types.FunctionType, slots: tuple) -> None:
        seen.append((code, func, slots, _native.thread_mode()))
    region = Region(miss)
    assert run(region, f, 1, 5, 6, z=7) == (1, 5, (6,), 3, {"z": 7})
    assert seen == [(f.__code__, f, (1, 5, 3, (6,), {"z": 7}), _native.OFF)]


def test_replacements_get_the_frames_slots() -> None:
    def f(a, b=2, *rest, k=3, **kw):
        raise AssertionError("the frame ran")

    def caller() -> list:
        return [f(1), f(1, 5, 6, k=8, z=7)]
    region = replacing(lambda func: lambda a, b, k, rest, kw: ("replaced", a, b, k, rest, kw), "f")
    assert run(region, caller) == [("replaced", 1, 2, 3, (), {}), ("replaced", 1, 5, 8, (6,), {"z": 7})]
    with pytest.raises(AssertionError):
        f(1)


def test_default_region_and_miss_callback() -> None:
    def f(a): return a
    _native.set_miss_callback(lambda code, func, slots: (lambda a: ("default", a)) if func is f else None)
    try:
        assert run(None, f, 1) == ("default", 1)
        _native.mark_skip(f.__code__)
        assert _native.is_skipped(f.__code__) and run(None, f, 1) == 1
        _native.clear_code(f.__code__)
        assert not _native.is_skipped(f.__code__) and run(None, f, 1) == ("default", 1)
    finally:
        _native.set_miss_callback(None)
    assert run(None, f, 1) == 1
    with pytest.raises(TypeError):
        _native.set_miss_callback(3)


def test_entries_by_code_and_skip_marks() -> None:
    seen: list[str] = []

    def f(a): return "original", a
    def g(a): return f(a)
    region = seeing(seen)
    entry = region.dispatcher(f.__code__).add_entry(GuardProgram([("int_eq", 0, 1), ("is", 1, f)], 2), lambda a: ("compiled", a))
    region.dispatcher(f.__code__).add_entry(GuardProgram([("int_eq", 0, 2)], 2), lambda a, fn: (fn, a), pass_function=True)
    assert run(region, g, 1) == ("compiled", 1) and run(region, g, 2) == (f, 2) and run(region, g, 3) == ("original", 3)
    assert seen == ["g", "g", "g", "f"] and entry.hits == 1
    region.skip(g.__code__)
    seen.clear()
    assert run(region, g, 3) == ("original", 3) and seen == ["f"] and region.skipped(g.__code__) and len(region) == 2
    region.skip(f.__code__)
    assert region.get(f.__code__) is None and run(region, g, 1) == ("original", 1)
    region.clear(f.__code__)
    assert not region.skipped(f.__code__) and region.skipped(g.__code__)
    region.clear()
    assert len(region) == 0 and bool(region)
    twin = types.FunctionType(f.__code__.replace(), {})
    assert twin.__code__ == f.__code__
    region.skip(twin.__code__)
    assert not region.skipped(f.__code__)


def test_run_only_uses_entries_and_never_captures() -> None:
    seen: list[str] = []
    def f(a): return a
    region = seeing(seen)
    region.dispatcher(f.__code__).add_entry(GuardProgram([("int_eq", 0, 1)], 2), lambda a: "compiled")
    token = _native.enter_region(region, _native.RUN_ONLY)
    try:
        assert f(1) == "compiled" and f(2) == 2
    finally:
        _native.leave_region(token)
    assert seen == []


def test_miss_may_return_an_entry_or_none() -> None:
    def f(a): return "original", a
    original = ("original", 1)
    for outcome, want in [(Entry(None, lambda a, fn: fn, pass_function=True), f), (Entry(None, None), original), (None, original)]:
        assert run(Region(lambda *a, outcome=outcome: outcome), f, 1) == want
    with pytest.raises(TypeError, match="miss returned a int"):
        run(Region(lambda *a: 3), f, 1)
    assert run(Region(), f, 1) == ("original", 1)


def test_targets_run_with_the_hook_off_unless_they_request_it() -> None:
    seen: list[str] = []
    def callee(): return _native.thread_mode()
    def f(): return None
    def target(): return callee(), _native.call_in_region(region, callee)
    region = Region(lambda code, func, slots: seen.append(code.co_name) or (target if func is f else None))
    assert run(region, f) == (_native.OFF, _native.ON)
    assert seen == ["f", "callee"]


def test_call_plain_looks_at_callees_only() -> None:
    seen: list[str] = []
    def leaf(): return 1
    def f(n): return leaf() + (f(n - 1) if n else 0)
    assert _native.call_plain(seeing(seen), f, 1) == 2
    assert seen == ["leaf", "f", "leaf"]
    with pytest.raises(TypeError):
        _native.call_plain(None, len, [])


def test_compiled_functions_run_their_original_in_their_region() -> None:
    seen: list[str] = []
    def leaf(a): return a
    def f(a): return leaf(a)
    cf = _native.CompiledFunction(f, lambda self, slots: None, seeing(seen))
    assert cf(3) == 3 and seen == ["leaf"] and not _native.hook_installed()
    quiet = _native.CompiledFunction(f, lambda self, slots: None)
    outer: list[str] = []
    assert run(seeing(outer), lambda: quiet(1)) == 1 and "leaf" not in outer
    cf.region = None
    seen.clear()
    assert cf(3) == 3 and seen == []


def test_disabled_and_eager_switch_the_hook_off() -> None:
    seen: list[str] = []
    def f(): return 1
    run(seeing(seen), lambda: _native.call_disabled(f))
    assert "f" not in seen
    _native.set_stance(_native.STANCE_EAGER)
    try:
        run(seeing(seen), f)
    finally:
        _native.set_stance(_native.STANCE_DEFAULT)
    assert "f" not in seen
    _native.set_stance(_native.STANCE_RUN_ONLY)
    try:
        run(seeing(seen), f)
    finally:
        _native.set_stance(_native.STANCE_DEFAULT)
    assert "f" not in seen


# --- what the hook leaves alone ---------------------------------------------------------------------
def test_generators_coroutines_and_class_bodies_are_left_alone() -> None:
    seen: list[str] = []
    def gen(n):
        got = yield n
        yield got
    async def coro(x):
        await asyncio.sleep(0)
        return x + 1
    async def agen():
        for i in range(3):
            yield i
    async def main():
        return await asyncio.gather(*[coro(i) for i in range(3)]), [x async for x in agen()]

    def body():
        g = gen(1)
        first = next(g), g.send(2)
        with contextlib.suppress(ValueError):
            h = gen(3)
            next(h)
            h.throw(ValueError)
        class K:
            attribute = tuple(i * 2 for i in range(3))
        namespace: dict = {}
        exec("x = 1\nclass Q:\n  y = 2", namespace)
        return first, asyncio.run(main()), K.attribute, namespace["Q"].y, eval("1 + 1")
    assert run(seeing(seen), body) == ((1, 2), ([1, 2, 3], [0, 1, 2]), (0, 2, 4), 2, 2)
    assert not {"gen", "coro", "agen", "main", "K", "Q", "<module>"} & set(seen) and "body" in seen


def test_traced_and_profiled_frames_are_left_alone() -> None:
    def f(a):
        b = a
        return b, a

    def trace(fn: Callable) -> tuple[list, list]:
        seen: list[str] = []
        events: list[Any] = []

        def tracer(frame: types.FrameType, event: str, arg: Any) -> Any:
            if frame.f_code is f.__code__:
                events.append((event, frame.f_lineno - f.__code__.co_firstlineno))
            return tracer
        old = sys.gettrace(), sys.getprofile()
        def go() -> Any:
            fn(tracer)
            try:
                return f(1)
            finally:
                sys.settrace(old[0])
                sys.setprofile(old[1])
        region = Region(lambda code, func, slots: seen.append(code.co_name) or ((lambda a: "replaced") if func is f else None))
        assert run(region, go) == (1, 1)
        return seen, events
    for install in (sys.settrace, lambda t: sys.setprofile(t)):
        seen, events = trace(install)
        assert "f" not in seen and ("call", 0) in events and [e for e, _ in events][-1] == "return"


def test_the_miss_callback_is_neither_monitored_nor_traced() -> None:
    events: list[str] = []
    def f(): return 1
    def looked_at(): return 2
    def miss(code, func, slots):
        if func is f:
            sys.settrace(lambda frame, event, arg: events.append(frame.f_code.co_name))
            try:
                looked_at()
            finally:
                sys.settrace(None)
    assert run(Region(miss), f) == 1
    assert events == []
    miss(f.__code__, f, ())
    assert events == ["looked_at"]


def test_monitoring_events_are_the_same() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("sys.monitoring is from 3.12 on")
    monitoring, events = sys.monitoring, []
    def f(a):
        b = a
        return b, a
    def g(): return f(1)
    monitoring.use_tool_id(3, "test")
    E = monitoring.events
    monitoring.register_callback(3, E.PY_START, lambda code, offset: events.append(code.co_name))
    monitoring.register_callback(3, E.LINE, lambda code, line: events.append((code.co_name, line)))
    monitoring.register_callback(3, E.PY_RETURN, lambda code, offset, value: events.append((code.co_name, value)))
    monitoring.set_events(3, E.PY_START | E.LINE | E.PY_RETURN)
    try:
        g()
        plain = [e for e in events if e in ("f", "g") or e[0] in ("f", "g")]
        events.clear()
        run(Region(), g)
        hooked = [e for e in events if e in ("f", "g") or e[0] in ("f", "g")]
        events.clear()
        assert run(replacing(lambda func: lambda a: "replaced", "f"), g) == "replaced"
        replaced = [e for e in events if e == "<framejit>" or e[0] == "<framejit>" or e == "<module>"]
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
    assert plain and plain == hooked and replaced == []


# --- exceptions -------------------------------------------------------------------------------------
def test_errors_of_miss_and_target_reach_the_caller() -> None:
    def f(a): return a
    def caller(a):
        try:
            return f(a)
        except KeyError as error:
            return "caught", error.args, [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    def bad(*args): raise KeyError("from miss")
    def bad_target(a): raise KeyError("from target")
    kept = [1]
    before = sys.getrefcount(kept)
    for _ in range(50):
        assert run(Region(lambda code, func, slots: bad() if func is f else None), caller, kept)[:2] == ("caught", ("from miss",))
        got = run(replacing(lambda func: bad_target, "f"), caller, kept)
        assert got == ("caught", ("from target",), ["caller", "bad_target"])
    assert sys.getrefcount(kept) == before


def test_the_handled_exception_is_seen_through_the_hook() -> None:
    def f(): return sys.exc_info()[1]
    def caller():
        try:
            raise ValueError(1)
        except ValueError as error:
            return f() is error
    assert run(Region(lambda *a: None), caller)
    assert run(replacing(lambda func: lambda: sys.exc_info()[1], "f"), caller)


def test_a_wrong_number_of_arguments_raises_pythons_error() -> None:
    def f(a): return a
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        run(replacing(lambda func: lambda a: 1, "f"), lambda: f())  # type: ignore[call-arg]


def test_recursion_under_the_hook() -> None:
    def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
    assert run(Region(), depth, 200) == 200
    region = Region()
    region.dispatcher(depth.__code__).add_entry(None, lambda n: 0 if n == 0 else 1 + _native.call_in_region(region, depth, n - 1))
    assert run(region, depth, 100) == 100
    with pytest.raises(RecursionError):
        run(Region(), depth, 10**5)
    assert run(region, depth, 5) == 5


# --- references -------------------------------------------------------------------------------------
def test_replaced_frames_leave_no_references() -> None:
    def f(a, *rest, k=None, **kw):
        def inner(): return a, rest
        return inner
    marker = [1]
    region = replacing(lambda func: lambda a, k, rest, kw: a, "f")
    region_entry = Region()
    region_entry.dispatcher(f.__code__).add_entry(GuardProgram([("type", 0, list)], 5), lambda a, k, rest, kw: a)
    def counts() -> tuple[int, int, int]: return sys.getrefcount(marker), sys.getrefcount(f), sys.getrefcount(f.__code__)
    before = counts()
    for _ in range(300):
        assert run(region, f, marker, marker, k=marker, z=marker) is marker
        assert run(region_entry, f, marker, marker, k=marker, z=marker) is marker
        assert run(Region(), f, marker)()[0] is marker
    gc.collect()
    after = counts()
    assert after == before
    ref = weakref.ref(region_entry)
    del region, region_entry
    gc.collect()
    assert ref() is None


def test_recursion_under_the_hook_ends_with_the_stack_and_not_before() -> None:
    def depth(n: int) -> int:
        try:
            return depth(n + 1)
        except RecursionError:
            return n

    region, found = Region(lambda code, func, slots: None), []
    before, size = sys.getrecursionlimit(), threading.stack_size(2 << 20)
    sys.setrecursionlimit(1_000_000)
    try:
        thread = threading.Thread(target=lambda: found.append(run(region, depth, 0)))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(before)
        threading.stack_size(size)
    assert 1_500 < found[0] < 100_000
    assert run(region, depth, 0) > before - 200


def test_large_and_deep_frames() -> None:
    source = "def big(a, b=1, *, c=3, **kw):\n" + "".join(f"    v{i} = a + {i}\n" for i in range(300))
    source += "    def q(): return a, kw, v299\n    return q()\n"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    big = namespace["big"]
    region = replacing(lambda func: lambda a, b, c, kw: ("replaced", a, b, c, kw), "big")
    def recurse(n: int) -> Any: return recurse(n - 1) if n else big(n, z=n)
    for n in range(0, 120, 7):
        assert run(region, recurse, n) == ("replaced", 0, 1, 3, {"z": 0})
        assert run(Region(), recurse, n) == (0, {"z": 0}, 299)


def test_a_miss_callback_may_change_the_region() -> None:
    def f(a): return "original", a
    def miss(code, func, slots):
        region.clear()
        gc.collect()
        return lambda a: ("late", a)
    region = Region(miss)
    region.dispatcher(f.__code__)
    assert run(region, f, 1) == ("late", 1)


def test_the_hook_under_much_ordinary_code() -> None:
    """Ordinary library code (regular expressions, json, decimal, dataclasses); the hook sees each of its frames."""
    import dataclasses
    import decimal
    import json
    import re
    import textwrap
    count = [0]
    def miss(code, func, slots):
        count[0] += 1
    def work():
        @dataclasses.dataclass(order=True)
        class D:
            a: int
            b: list = dataclasses.field(default_factory=list)
        text = json.dumps({"k": [1, 2.5, None, "ü"], "d": dataclasses.asdict(D(1, [2]))}, indent=1, sort_keys=True)
        re.purge()
        return (json.loads(text), re.sub(r"(\w+)-(?P<x>\d+)", lambda m: m["x"] + m[1], "ab-12 cd-34"), textwrap.fill("word " * 40, 30),
                str(decimal.Decimal("1.10") ** 3), sorted([D(2), D(1)])[0].a)
    want = work()
    assert run(Region(miss), work) == want and count[0] > 100


# --- other hooks ------------------------------------------------------------------------------------
OTHER_HOOK = """
typedef void *(*Eval)(void *, void *, int);
long count;
Eval next;
void *counting(void *ts, void *frame, int throwflag) { count++; return next(ts, frame, throwflag); }
"""


class OtherHook:
    """A frame evaluation function of another extension, which counts frames and chains."""

    def __init__(self, folder: Any) -> None:
        source, library = folder / "other.c", folder / "other.so"
        source.write_text(OTHER_HOOK)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        self.library = ctypes.CDLL(str(library))
        api = ctypes.pythonapi
        self.get, self.set = api._PyInterpreterState_GetEvalFrameFunc, api._PyInterpreterState_SetEvalFrameFunc
        self.get.restype, self.get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self.set.restype, self.set.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
        api.PyInterpreterState_Get.restype = ctypes.c_void_p
        self.interpreter = api.PyInterpreterState_Get()
        self.address = ctypes.cast(self.library.counting, ctypes.c_void_p).value

    def install(self) -> None:
        self.previous = self.get(self.interpreter)
        ctypes.c_void_p.in_dll(self.library, "next").value = self.previous
        self.set(self.interpreter, self.address)

    def remove(self) -> None:
        self.set(self.interpreter, self.previous)

    @property
    def is_installed(self) -> bool:
        return self.get(self.interpreter) == self.address

    @property
    def count(self) -> int:
        return ctypes.c_long.in_dll(self.library, "count").value


@pytest.fixture(scope="module")
def other_hook(tmp_path_factory: pytest.TempPathFactory) -> OtherHook:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    return OtherHook(tmp_path_factory.mktemp("hook"))


def test_a_previous_hook_is_chained_to_and_restored(other_hook: OtherHook) -> None:
    def f(): return "original"
    seen: list[str] = []
    other_hook.install()
    try:
        before = other_hook.count
        assert run(replacing(lambda func: lambda: "replaced", "f"), lambda: f()) == "replaced"
        assert run(seeing(seen), lambda: f()) == "original" and "f" in seen
        assert other_hook.count > before and other_hook.is_installed and not _native.hook_installed()
    finally:
        other_hook.remove()


def test_a_later_hook_stays_installed_without_a_cycle(other_hook: OtherHook) -> None:
    def f(): return "original"
    region = replacing(lambda func: lambda: "replaced", "f")
    token = _native.enter_region(region)
    other_hook.install()
    _native.leave_region(token)
    assert other_hook.is_installed and f() == "original"
    assert run(region, lambda: f()) == "replaced"
    assert run(region, lambda: run(region, lambda: f())) == "replaced"
    assert other_hook.is_installed and f() == "original"
    other_hook.remove()         # restores the function that it found: ours, though no region is active
    assert _native.hook_installed() and f() == "original"
    assert run(region, lambda: f()) == "replaced"
    assert not _native.hook_installed()
