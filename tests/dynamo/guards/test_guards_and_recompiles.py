"""Guards of a compiled variant: changed inputs are noticed, unchanged inputs need no new compilation."""

from __future__ import annotations

import enum

import pytest

import dynamo
import eager as torch
from dynamo.report.errors import RecompileLimitExceeded
from eager import nn
from eager.base import logs
from tests.dynamo.api.test_compile import Recorder, same, x23

SCALE = 2
TABLE = {"k": 3}


class Config:
    width = 4

    def __init__(self) -> None:
        self.scale = 2


CONFIG = Config()


def compiled_with(fn):
    backend = Recorder()
    return dynamo.compile(fn, backend=backend), backend


def check_change(fn, args, change, expect_new: bool = True) -> None:
    """fn gives eager's result before and after `change()`, and compiles again exactly if it must."""
    compiled, backend = compiled_with(fn)
    assert same(compiled(*args), fn(*args))
    compiled(*args)
    assert len(backend.graphs) == 1
    change()
    assert same(compiled(*args), fn(*args))
    assert (len(backend.graphs) > 1) == expect_new


def test_a_rebound_global(monkeypatch) -> None:
    check_change(lambda x: x * SCALE, (x23(),), lambda: monkeypatch.setitem(globals(), "SCALE", 5))


def test_a_global_container(monkeypatch) -> None:
    check_change(lambda x: x * TABLE["k"], (x23(),), lambda: monkeypatch.setitem(TABLE, "k", 9))


def test_an_attribute_of_a_global_object(monkeypatch) -> None:
    check_change(lambda x: x * CONFIG.scale, (x23(),), lambda: monkeypatch.setattr(CONFIG, "scale", 9))


def test_a_class_attribute(monkeypatch) -> None:
    check_change(lambda x: x * CONFIG.width, (x23(),), lambda: monkeypatch.setattr(Config, "width", 9))


def test_an_instance_attribute_that_begins_to_shadow_a_class_attribute(monkeypatch) -> None:
    check_change(lambda x: x * CONFIG.width, (x23(),), lambda: monkeypatch.setattr(CONFIG, "width", 9, raising=False))


def test_a_builtin_shadowed_by_a_global_that_is_deleted_again(monkeypatch) -> None:
    def f(x):
        return x * max(1, 2)

    compiled, _ = compiled_with(f)
    assert same(compiled(x23()), x23() * 2)
    monkeypatch.setitem(globals(), "max", min)
    assert same(compiled(x23()), x23())
    monkeypatch.delitem(globals(), "max")
    assert same(compiled(x23()), x23() * 2)


def test_an_unrelated_global_does_not_recompile(monkeypatch) -> None:
    check_change(lambda x: x * SCALE, (x23(),), lambda: monkeypatch.setitem(globals(), "OTHER", 1), expect_new=False)


def test_a_closure_variable() -> None:
    k = 2

    def f(x):
        return x * k

    def change() -> None:
        nonlocal k
        k = 3

    check_change(f, (x23(),), change)


def test_defaults_and_code_of_a_callee() -> None:
    def callee(x, n=2, *, m=1):
        return x * n + m

    def f(x):
        return callee(x)

    def set_defaults() -> None:
        callee.__defaults__ = (5,)

    def set_kwdefaults() -> None:
        callee.__kwdefaults__ = {"m": 7}

    def set_code() -> None:
        callee.__code__ = (lambda x, n=2, *, m=1: x - n - m).__code__

    for change in (set_defaults, set_kwdefaults, set_code):
        check_change(f, (x23(),), change)


def test_defaults_of_the_compiled_function() -> None:
    def f(x, n=2):
        return x * n

    def change() -> None:
        f.__defaults__ = (4,)

    check_change(f, (x23(),), change)


@pytest.mark.parametrize(
    "other",
    [
        lambda: x23().double(),
        lambda: x23()[:1],
        lambda: x23().T,
        lambda: x23().requires_grad_(),
        lambda: nn.Parameter(x23()),
    ],
)
def test_tensor_metadata(other) -> None:
    def f(x):
        return x * 2 + x.shape[0]

    compiled, backend = compiled_with(f)
    compiled(x23())
    assert same(compiled(other()).detach(), f(other()).detach())
    assert len(backend.graphs) == 2
    assert same(compiled(x23()), f(x23()))
    assert len(backend.graphs) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, True), (1, 1.0), (0.0, -0.0), (1, 2), ("a", "b"), (None, 1), ((1, 2), (1, 2, 3)), ([1], (1,)), ({"a": 1}, {"b": 1})],
)
def test_python_arguments_are_specialised(first, second) -> None:
    def f(x, v):
        return x + 1, v, type(v).__name__, str(v)

    compiled, _ = compiled_with(f)
    for v in (first, second, first):
        got, expected = compiled(x23(), v), f(x23(), v)
        assert same(got[0], expected[0])
        assert (str(got[1]), got[2], got[3]) == (str(expected[1]), expected[2], expected[3])


def test_nan_argument_does_not_compile_again() -> None:
    compiled, backend = compiled_with(lambda x, v: x + v)
    for _ in range(3):
        compiled(x23(), float("nan"))
    assert len(backend.graphs) == 1


def test_an_unread_argument_is_not_guarded() -> None:
    compiled, backend = compiled_with(lambda x, unused: (x + 1, unused))
    for value in (1, "a", [1], object()):
        assert compiled(x23(), value)[1] is value
    assert len(backend.graphs) == 1


def test_grad_mode() -> None:
    def f(x):
        return x * 2

    compiled, backend = compiled_with(f)
    x = x23().requires_grad_()
    assert compiled(x).requires_grad
    with torch.no_grad():
        assert not compiled(x).requires_grad
    assert len(backend.graphs) == 2


def test_aliasing_of_written_inputs() -> None:
    def f(a, b):
        a.add_(1)
        return b * 2

    compiled, _ = compiled_with(f)
    assert same(compiled(x23(), x23()), x23() * 2)
    one = x23()
    assert same(compiled(one, one), (x23() + 1) * 2)
    base = x23()
    assert same(compiled(base[0], base), f((other := x23())[0], other))


def test_aliasing_of_written_lists() -> None:
    def f(x, a, b):
        a.append(1)
        return x + len(b)

    compiled, _ = compiled_with(f)
    assert same(compiled(x23(), [], []), x23())
    one: list = []
    assert same(compiled(x23(), one, one), x23() + 1)


def test_identity_of_arguments() -> None:
    def f(x, a, b):
        return x + (1 if a is b else 2)

    compiled, _ = compiled_with(f)
    one = [1]
    assert same(compiled(x23(), one, [1]), x23() + 2)
    assert same(compiled(x23(), one, one), x23() + 1)
    assert same(compiled(x23(), one, [1]), x23() + 2)


def test_each_recompile_names_the_guard_the_values_and_the_line() -> None:
    def f(x, n):
        return x * n  # the line that needs n

    compiled, _ = compiled_with(f)
    compiled(x23(), 2)
    with logs.capture("recompiles") as records:
        compiled(x23(), 3)
    text = "\n".join(r.message for r in records)
    assert "n [int_eq]: expected 2, got 3" in text
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in text
    with logs.capture("recompiles") as records:
        compiled(x23()[:1], 3)
    assert "x [tensor]" in records[0].message
    assert "(1, 3)" in records[0].message


def test_the_recompile_limit_runs_eagerly_with_one_warning() -> None:
    backend = Recorder()
    compiled = dynamo.compile(lambda x, n: x * n, backend=backend, dynamic=False)
    with logs.capture() as records:
        for n in range(12):
            assert same(compiled(x23(), n), x23() * n)
    assert len(backend.graphs) == 8
    warnings = [r for r in records if "limit" in r.message]
    assert len(warnings) == 1
    assert "int_eq" in warnings[0].message
    assert same(compiled(x23(), 3), x23() * 3)  # compiled variants are still used
    strict = dynamo.compile(lambda x, n: x * n, backend="eager", fullgraph=True, dynamic=False)
    with pytest.raises(RecompileLimitExceeded):
        for n in range(12):
            strict(x23(), n)


def test_break_reports_are_printed_once_per_site() -> None:
    def f(x, n):
        y = x + n
        print(end="")
        return y * 2

    compiled, _ = compiled_with(f)
    with logs.capture("graph_breaks") as records:
        for n in range(3):
            compiled(x23(), n)
    assert len(records) == 1
    text = records[0].message
    line = f.__code__.co_firstlineno + 2
    assert text.startswith(f"Graph break in user code at {__file__}:{line}")
    for part in ('print(end="")', "Reason: ", "Hint: ", "Docs: "):
        assert part in text


def test_logs_show_graph_guards_and_generated_code() -> None:
    compiled, _ = compiled_with(lambda x: x * 2)
    with logs.capture("graph_code", "guards", "bytecode", "graph", "graph_sizes", "trace_source", "trace_bytecode") as records:
        compiled(x23())
    names = {r.name for r in records}
    assert names == {"graph_code", "guards", "bytecode", "graph", "graph_sizes", "trace_source", "trace_bytecode"}
    assert all(r.frame_id for r in records)


def test_the_default_dtype_of_new_tensors() -> None:
    def f(x):
        return x.double() + torch.ones(3).sum()

    def g():
        return torch.ones(3)

    compiled = dynamo.compile(g, backend="aot_eager")
    assert compiled().dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert compiled().dtype is torch.float32


def test_random_numbers_advance_as_in_eager() -> None:
    def f(x):
        a = torch.rand(3)
        torch.rand(2)
        return x + a, torch.nn.functional.dropout(x, 0.5, True)

    compiled = dynamo.compile(f, backend="eager")
    for _ in range(2):
        torch.manual_seed(3)
        expected, after = f(x23()), torch.rand(4)
        torch.manual_seed(3)
        got, then = compiled(x23()), torch.rand(4)
        assert same(got[0], expected[0])
        assert same(got[1], expected[1])
        assert same(then, after)


def test_explain_guards_names_each_guard_its_line_and_its_cost() -> None:
    def f(x, n):
        return x * n

    compiled = dynamo.compile(f, backend="eager")
    assert str(dynamo.explain_guards(compiled)) == "Nothing is compiled yet"
    compiled(torch.ones(2, 3), 4)
    told = dynamo.explain_guards(compiled, torch.ones(2, 3), 4)
    line = f"{__file__}:{f.__code__.co_firstlineno + 1}"
    assert any(g.what.startswith("n == 4") and line in g.what and g.when == "each call" for g in told.guards)
    assert all(g.cost_ns is not None and g.cost_ns < 50_000 for g in told.guards)
    assert len(told.variant_ns) == 1 and "[each call]  n == 4" in str(told)
    assert dynamo.explain_guards(compiled).variant_ns == (None,)
    with pytest.raises(TypeError, match="explain_guards: got a function; allowed: the result of compile"):
        dynamo.explain_guards(f)


class Mute:
    """A key without a repr."""

    def __repr__(self) -> str:
        raise AssertionError("the capture called __repr__ of an object of the user")


class Tone(enum.Enum):
    LOW = 1

    def __repr__(self) -> str:
        raise AssertionError("the capture called __repr__ of an object of the user")


@pytest.mark.parametrize("logged", [False, True])
def test_reports_of_guards_run_no_user_code_and_print_any_number(logged: bool) -> None:
    mute, huge = Mute(), 10**5000

    def f(x, table, n):
        made = {mute: x, Tone.LOW: n}
        dynamo.graph_break()
        return x * table[mute] * table[Tone.LOW] * table[huge], n + 1, n % 7, len(made)

    switches = ("guards", "recompiles_verbose", "graph_breaks", "trace_bytecode") if logged else ()
    logs.set_logs(**dict.fromkeys(switches, True))
    try:
        compiled = dynamo.compile(f, backend="eager")
        for value in (1, 2, 3, huge, huge + 1, -huge):
            args = torch.ones(2), {mute: value % 5, Tone.LOW: 2, huge: 3}, value
            found, expected = compiled(*args), f(*args)
            assert torch.equal(found[0], expected[0])
            assert found[1:] == expected[1:]
    finally:
        logs.set_logs()
