"""Branches, loops, comprehensions, text and numbers."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105 - odd code is the point

from __future__ import annotations

import eager as torch
from tests.dynamo.support import Table

PROGRAMS = Table()


def x23() -> torch.Tensor:
    return torch.arange(6).reshape(2, 3).float() - 2


@PROGRAMS.program(lambda: (x23(), 2), lambda: (x23() * 2, 2), lambda: (x23(), 3))
def straight(log, x, n):
    y = x * n + 1
    z = torch.relu(y) - x
    return y, z.sum(), (x, n)


@PROGRAMS.program(lambda: (x23(), x23() + 1))
def swap(log, a, b):
    a, b = b, a
    a, (b, c) = b, (a, b)
    return a - b, c


@PROGRAMS.program(lambda: (x23(),), lambda: (-x23(),))
def tensor_condition(log, x):
    if x.sum() > 0:
        log.append("positive")
        return x * 2
    log.append("negative")
    return x - 1


@PROGRAMS.program(lambda: (x23(),), lambda: (x23() + 10,))
def tensor_while(log, x):
    n = 0
    while x.sum() < 50:
        x = x * 1.5 + 1
        n += 1
        log.append(n)
    else:
        log.append("else")
    return x, n


@PROGRAMS.program(lambda: (x23(), 4), lambda: (x23(), 0))
def loop_variable(log, x, n):
    i = None
    for i in range(n):
        x = x + i
    else:
        log.append("done")
    return x, i


@PROGRAMS.program(lambda: (x23(), [1, 2, 3, 4]), lambda: (x23(), [4, 4]))
def break_continue(log, x, items):
    for v in items:
        if v == 2:
            continue
        if v == 4:
            break
        x = x * v
        log.append(v)
    else:
        log.append("else")
    return x


@PROGRAMS.program(lambda: (x23(), 5))
def walrus(log, x, n):
    while (m := n - len(log)) > 0 and (k := m * 2):
        log.append(k)
        x = x + k
    return x, [y for v in range(3) if (y := v * 2)], y


@PROGRAMS.program(lambda: (x23(), 2), lambda: (x23(), 20))
def chained_comparison(log, x, n):
    def note(v):
        log.append(v)
        return v

    return x if note(1) < note(n) < note(10) else -x


@PROGRAMS.program(lambda: (x23(), 0, "a"), lambda: (x23(), 3, ""))
def operands(log, x, a, b):
    return a and b, a or b, not a, x * (a or 2), None or x


@PROGRAMS.program(lambda: (x23(),))
def deleted(log, x):
    y = x + 1
    del y
    try:
        return y
    except UnboundLocalError as error:
        log.append(str(error))
    return x


@PROGRAMS.program(lambda: (x23(), 3), lambda: (x23(), 4))
def comprehensions(log, x, n):
    x2 = [x + k for k in range(n) if k % 2]
    d = {k: x * k for k in range(n)}
    s = {k // 2 for k in range(n)}
    g = sum(k for k in range(n))
    nested = [[i * j + n for j in range(i)] for i in range(n)]
    return x2, d, sorted(s), g, nested, x


@PROGRAMS.program(lambda: (x23(), 3))
def comprehension_closures(log, x, n):
    fns = [lambda: k for k in range(n)]
    bound = [lambda k=k: k for k in range(n)]
    return [f() for f in fns], [f() for f in bound], x


@PROGRAMS.program(lambda: (x23(), "ab", 3.14159))
def text(log, x, s, v):
    n = 3
    return (
        f"{s!r:>6}|{v:.{n}f}|{n:03d}|{s}{'{'}", "%s-%d" % (s, n), f"{s}:{n}", s.upper() + s * 2,
        ",".join(str(i) for i in range(n)), x.shape, f"{tuple(x.shape)}", str(x.dtype),
    )  # fmt: skip


@PROGRAMS.program(lambda: (x23(),))
def numbers(log, x):
    big = 1 << 70
    return big + 1, True == 1, -0.0, float("nan"), 7 // 2, -7 % 3, divmod(7, 2), 2**10, x * 2**3, round(2.567, 1), 1e308 * 10  # noqa: E712


@PROGRAMS.program(lambda: (x23(), (1, [2, (3, 4)])))
def star_unpacking(log, x, t):
    a, (b, *c) = t[0], [1, 2, 3]
    (d, [e, (f, *g)]) = t
    *h, i = range(4)
    return a, b, c, d, e, f, g, h, i, [*c, *g, 0], (*h, *c), {"a": 1, "b": x}


@PROGRAMS.program(lambda: (x23(), {"k": 5, "m": [1, 2, 3]}, 1), lambda: (x23(), {"z": 1}, 0), lambda: (x23(), [1, 2], 2))
def matching(log, x, subject, n):
    match (n, subject):
        case (0, _):
            return "zero"
        case (int(v), {"k": y, "m": [p, *q]}) if v < 100:
            return v, y, p, q, x
        case (1 | 2 as w, [first, *_]):
            return w, first
        case _:
            return None


@PROGRAMS.program(lambda: (x23(),))
def printing_between(log, x):
    y = x + 1
    log.append("before")
    print("break", end="")
    log.append("after")
    return y * 2


@PROGRAMS.program(lambda: (x23(), 3), lambda: (x23(), 5))
def print_in_loop(log, x, n):
    total = x
    for i in range(n):
        total = total + i
        print(end="")
        log.append(i)
    return total


@PROGRAMS.program(lambda: (x23(),))
def break_in_expression(log, x):
    def noisy(v):
        print(end="")
        log.append("noisy")
        return v

    return [x + 1, noisy(x * 2) + noisy(x), {"k": noisy(3)}]


@PROGRAMS.program(lambda: (x23(),))
def item_value(log, x):
    v = x.sum().item()
    return x * v, v, x.tolist()


@PROGRAMS.program(lambda: (x23(), 2), lambda: (x23(), 3))
def attributes_of_shape(log, x, n):
    b, c = x.shape
    return x.view(c, b) if n == 2 else x.reshape(-1), x.size(0) * c, x.ndim, x.dtype, len(x), x.numel()


@PROGRAMS.program(lambda: (x23(),))
def tensor_iteration(log, x):
    rows = [row * i for i, row in enumerate(x)]
    a, b = x
    return rows, a + b, [r for r in reversed(rows)]


@PROGRAMS.program(lambda: (x23(),))
def inplace(log, x):
    y = x + 1
    y += 2
    y.mul_(3)
    y[0] = 0
    y[:, 1] = x[:, 1]
    return y


@PROGRAMS.program(lambda: (x23(),))
def inplace_on_input(log, x):
    x.add_(1)
    log.append("added")
    y = x * 2
    x[0, 0] = 7
    return y, x


@PROGRAMS.program(lambda: (x23(), None), lambda: (x23(), 1))
def optional(log, x, n=None):
    if n is None:
        return x
    return x + n


@PROGRAMS.program(lambda: (x23(),))
def asserts(log, x):
    assert x.shape[0] == 2, "rows"
    try:
        assert x.ndim == 3, f"ndim is {x.ndim}"
    except AssertionError as error:
        return x, str(error)


# --- a loop that a graph break cut: the remaining iterations, over every kind of iterator -----------------------------


@PROGRAMS.program(lambda: (x23(), [1, 2, 3, 4, 5]), lambda: (x23(), [1, 2]), lambda: (x23(), []))
def list_loop_cut_once(log, x, items):
    for v in items:
        if v == 1:
            print(end="")
        x = x * v + 1
        log.append(v)
    return x


@PROGRAMS.program(lambda: (x23(), 12))
def range_loop_cut_each_time(log, x, n):
    for i in range(n):
        x = x * 0.5 + i
        print(end="")
        log.append(i)
    return x


@PROGRAMS.program(lambda: (x23(), [1, 2, 3], {"a": 1, "b": 2, "c": 3, "d": 4}))
def zip_and_enumerate_cut(log, x, items, table):
    for i, (v, (k, w)) in enumerate(zip(items, table.items()), 2):
        if i == 2:
            print(end="")
        x = x * v + w
        log.append((i, k))
    return x


@PROGRAMS.program(lambda: (x23(), [1, 2, 3, 4, 5]))
def list_that_changes_in_a_cut_loop(log, x, items):
    for v in items:
        if v == 1:
            print(end="")
        if v < 4:
            items.append(v + 10)
        if v == 3:
            items.pop(0)
        x = x + v
        log.append(v)
    return x


@PROGRAMS.program(lambda: (x23(), [1, 2, 3, 4, 5]))
def enumerated_list_that_grows_in_a_cut_loop(log, x, items):
    for i, v in enumerate(items):
        if i in (0, 6):
            print(end="")
        if v < 3:
            items.append(v + 10)
        x = x + v * i
        log.append(v)
    return x


def _with_a_hole():
    table = {"z": 0, "b": 1, "c": 2, "d": 3}
    del table["z"]
    return table


@PROGRAMS.program(lambda: (x23(), _with_a_hole()))
def dict_values_set_in_a_cut_loop(log, x, table):
    for k in table:
        if k == "b":
            print(end="")
        table[k] = table[k] * 2
        x = x + table[k]
        log.append(k)
    return x, table


@PROGRAMS.program(lambda: (x23(), {"a": 1, "b": 2, "c": 3}))
def dict_whose_keys_change_in_a_cut_loop(log, x, table):
    try:
        for k in table:
            if k == "a":
                print(end="")
            x = x + 1
            if k == "b":
                del table["a"]
                table["a"] = 5
            log.append(k)
    except RuntimeError as e:
        log.append(str(e))
    return x, list(table)


@PROGRAMS.program(lambda: (x23(), [1, 2, 3]))
def iterator_in_a_variable_across_a_break(log, x, items):
    it = iter(items)
    next(it)
    print(end="")
    a = next(it)
    for v in it:
        x = x + v
    items.append(9)
    return x, a, list(it), next(it, None)


@PROGRAMS.program(lambda: (x23(), list(range(1, 11))))
def pairs_of_one_iterator_across_breaks(log, x, items):
    it = iter(items)
    next(it)
    print(end="")
    for a, b in zip(it, it):
        if a == 2:
            print(end="")
        log.append((a, b))
        x = x + a * b
        if a == 6:
            break
    return x, list(it)


@PROGRAMS.program(lambda: (x23(), iter([1, 2, 3]), iter("ab")), lambda: (x23(), iter([1]), iter("")))
def iterators_as_arguments(log, x, numbers, letters):
    for n, c in zip(numbers, letters):
        x = x + n
        log.append(c)
    return x, list(numbers), list(letters)
