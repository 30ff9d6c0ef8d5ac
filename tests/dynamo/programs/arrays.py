"""numpy's arrays in captured programs: from tensors, as arguments, from outside; views, writes, scalars, errors,
breaks.
"""

from __future__ import annotations

import numpy as np

import eager as torch
from tests.dynamo.support import Table

PROGRAMS = Table()
OUTSIDE = np.arange(6.0, dtype=np.float32).reshape(2, 3)


class Holder:
    def __init__(self) -> None:
        self.scale = np.array([1.0, 2.0, 3.0], dtype=np.float32)
        self.seen = []


def _x(*shape, dtype=torch.float32):
    shape = shape or (2, 3)
    return torch.arange(float(np.prod(shape))).reshape(shape).to(dtype)


def _a(*shape, dtype=np.float32):
    shape = shape or (2, 3)
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@PROGRAMS.program(lambda: (_x(),), lambda: (_x(3, 3),), lambda: (_x(dtype=torch.int64),))
def there_and_back(log, x):
    a = np.sin(x.numpy()) * 2 + x.numpy().mean(axis=0)
    log.append((type(a), a.dtype, a.shape))
    return torch.from_numpy(a) + 1


@PROGRAMS.program(lambda: (_x(),), lambda: (_x(4),))
def one_memory(log, x):
    a = x.numpy()
    a[0] = 7
    y = x + 1
    x.mul_(2)
    log.append(a.sum())
    t = torch.from_numpy(a)
    t.add_(1)
    b = x.numpy()
    log.append((a is b, b[0].copy(), x.sum()))
    return x, y, a, t, a.T


@PROGRAMS.program(lambda: (_a(), _a() + 1), lambda: (_a(2, 3, dtype=np.int32), _a()), lambda: (_a(4), _a(4)), lambda: (_a(5), _a(5)))
def arrays_in_arrays_out(log, a, b):
    c = np.maximum(a, 1) / (b + 1)
    log.append((a.ndim, len(a), c.dtype == np.float64, c.dtype, isinstance(c, np.ndarray)))
    return c, a + b, a[0], (a * 2).T, a.sum(), a.max(axis=0)


@PROGRAMS.program(lambda: (_a(), _a()), lambda: (_a().T, _a(3, 2)), lambda: (_a(dtype=np.int64), _a(dtype=np.int64)))
def arguments_are_written(log, a, b):
    a += 1
    b[0] = a[0]
    a[a > 3] = 0
    np.add(a, b, out=b)
    a.fill(2)
    b[:, 1] *= 3
    return a, b


def _same():
    a = _a(4)
    return a, a


def _overlapping():
    a = _a(6)
    return a[:4], a[2:]


def _tensor_and_array():
    a = _a(4)
    return torch.from_numpy(a), a


def _tensor_and_its_array():
    x = _x(4)
    return x, x.numpy()


@PROGRAMS.program(_same, lambda: (_a(4), _a(4)), _overlapping, _tensor_and_array, _tensor_and_its_array)
def arguments_that_share_memory(log, a, b):
    a[1] = 9
    log.append(b.sum())
    a += 2
    return b * 2, a


@PROGRAMS.program(_overlapping, lambda: (_a(4), _a(4)), _same)
def the_other_is_looked_at_later(log, a, b):
    a *= 3
    c = a + 1
    return c, b - 1


@PROGRAMS.program(lambda: (_x(),), lambda: (_x(dtype=torch.int32),), lambda: (_x(dtype=torch.bool),), lambda: (_x(dtype=torch.uint8),))
def scalars(log, x):
    a = x.numpy()
    s, m, k = a.sum(), a.mean(), a.argmax()
    log.append([type(v) for v in (s, m, k, a[0, 1], s + 1, m * 2, s / 2, a.any(), np.sqrt(s))])
    log.append((isinstance(m, float), isinstance(k, np.integer), s.dtype, s.shape, s.ndim, m + s, -m))
    return s, m, k, a[0, 1], np.float32(m), a - m, a * np.float64(2), a * 2


@PROGRAMS.program(lambda: (_x(),), lambda: (_x(2, 2),))
def numbers_from_arrays(log, x):
    a = x.numpy()
    y = x * a.mean()
    if a.sum() > 5:
        log.append("large")
    total = 0.0
    for row in a:
        total += float(row.max())
    log.append((total, a.tolist(), a.max().item(), int(a[0, 1])))
    return y, torch.tensor(a.sum()), torch.tensor(a), torch.as_tensor(a), torch.as_tensor(a, dtype=torch.float64)


@PROGRAMS.program(lambda: (_a(),), lambda: (_a(3, 2),))
def errors(log, a):
    for bad in (lambda: a + np.ones(5), lambda: a[7], lambda: a.reshape(4), lambda: bool(a), lambda: a.sum(axis=5), lambda: len(a.sum()),
                lambda: np.concatenate([a, a[0]]), lambda: a.nonsense, lambda: torch.from_numpy(a.sum()), lambda: hash(a),
                lambda: iter(a.sum()), lambda: np.broadcast_to(a, (2, *a.shape)).fill(0)):  # fmt: skip
        try:
            bad()
        except Exception as error:
            log.append((type(error).__name__, str(error)))
    return a + 1


@PROGRAMS.program(lambda: (_a(), 2), lambda: (_a(), 3))
def across_a_break(log, a, n):
    b = a * n
    s = b.sum()
    ro = np.broadcast_to(a[0], (2, a.shape[1]))
    log.append(sorted(set(map(str, range(n)))))
    print(end="")
    b += s
    log.append((s, type(s), ro.flags.writeable, b.shape))
    view = b[1:]
    print(end="")
    view[0] = -1
    return b, s, ro, view


@PROGRAMS.factory(lambda: (_x(),), lambda: (_x(),))
def from_outside():
    inside = np.ones(3, dtype=np.float32)
    holder = Holder()

    def program(log, x):
        a = x.numpy() * inside + OUTSIDE * holder.scale
        inside[0] += 1
        holder.scale[1] *= 2
        holder.seen.append(a.sum())
        holder.last = a
        log.append((inside, holder.scale, holder.seen))
        return torch.from_numpy(a), holder.last is a, np.shares_memory(a, holder.last)

    return program


@PROGRAMS.program(lambda: (_x().requires_grad_(),), lambda: (_x(4).requires_grad_(),))
def gradients(log, x):
    try:
        x.numpy()
    except RuntimeError as error:
        log.append(str(error))
    y = x * x
    scale = y.detach().numpy().max()
    with torch.no_grad():
        kept = torch.from_numpy(x.numpy() + 1)
    return (y * torch.tensor(scale) * kept).sum() + torch.from_numpy(np.tanh(x.detach().numpy())).sum()


def _read_only():
    a = _a(4)
    a.flags.writeable = False
    return (a,)


@PROGRAMS.program(lambda: (_a(4),), _read_only, lambda: (_a(4)[::-1],), lambda: (_a(8)[::2],), lambda: (_a(4).astype(">f4"),),
                  lambda: (np.array([1, 2, None, 3], dtype=object),), lambda: (np.array(["a", "b"]),), lambda: (_a(4, dtype=np.float16),),
                  lambda: (np.float32(3),), lambda: (np.array(2.0),))  # fmt: skip
def arrays_of_all_kinds(log, a):
    log.append((type(a), a.dtype, a.shape))
    try:
        return a + a, a[:0] if a.ndim else a
    except (TypeError, ValueError, IndexError) as error:
        return str(error)


@PROGRAMS.program(lambda: (_x(4),), lambda: (_x(5),), lambda: (_x(6),))
def made_of_constants(log, x):
    n = x.shape[0]
    steps = np.arange(n) * 2
    grid = np.linspace(0, 1, n, dtype=np.float32)
    table = np.zeros((n, 2), dtype=np.float32)
    table[:, 1] = grid
    table[0] = [5, 6]
    log.append((steps, np.eye(2), np.array([[1, 2], [3, 4]]), np.full((2,), 0.5), np.ones(n, dtype=bool)))
    return x + torch.from_numpy(grid), torch.from_numpy(table), torch.tensor(steps), np.array([1.5, n])


@PROGRAMS.program(lambda: (_x(3, 4), _x(3, 4)), lambda: (_x(2, 2), _x(2, 2)))
def a_metric(log, prediction, target):
    p, t = prediction.detach().cpu().numpy(), np.asarray(target)
    error = np.abs(p - t[:, ::1]).mean(axis=-1)
    best = np.argmin(error + np.arange(len(error)))
    normed = (p - p.mean(0)) / (p.std(0) + 1e-6)
    joined = np.concatenate([normed, t[:1] * 0.5], axis=0)
    log.append((error, best, type(best)))
    return torch.as_tensor(joined).float(), np.where(joined > 0, joined, 0).sum(), np.clip(joined, -1, 1).astype(np.float64)


@PROGRAMS.program(lambda: (_a(3, 3), 1), lambda: (_a(3, 3), 2))
def identity_and_views(log, a, n):
    log.append((np.asarray(a) is a, a.astype(np.float32, copy=False) is a, a[...] is a, np.ascontiguousarray(a) is a, a.T.T is a))
    diagonal, row, flat = np.diagonal(a), a[n], a.ravel()
    copy = a.copy()
    row[0] = 50
    log.append((diagonal.flags.writeable, flat, copy))
    a.T[0] = -n
    return diagonal, row, flat, copy, {"a": a, "again": a}, a.reshape(-1)


@PROGRAMS.program(lambda: (_a(4), [_a(4)]), lambda: (_a(4), [_a(4), _a(4)]))
def in_containers(log, a, others):
    others.append(a * 2)
    best = max(others, key=lambda b: b.shape)
    total = sum(others)
    table = {k: v + k for k, v in enumerate(others)}
    log.append((len(others), table, [b.ndim for b in others]))
    return total, best, [np.stack(others), np.array([b.sum() for b in others])]
