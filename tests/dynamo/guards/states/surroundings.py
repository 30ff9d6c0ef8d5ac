"""Switches of the process, tensors from outside, random state."""

from __future__ import annotations

from typing import Any

import eager as torch
from tests.dynamo.guards.states.table import State, namespace, setter, state


# --- surroundings ---
@state
def default_dtype() -> State:
    put = torch.set_default_dtype
    return State(
        lambda x: torch.ones(2) + 1,
        (lambda: put(torch.float64), lambda: put(torch.float32)),
        lambda: put(torch.float32),
    )


@state
def default_dtype_in_a_literal() -> State:
    put = torch.set_default_dtype
    return State(
        lambda x: torch.tensor(1.5) * torch.arange(2),
        (lambda: put(torch.float64), lambda: put(torch.float32)),
        lambda: put(torch.float32),
    )


@state
def default_device() -> State:
    put = torch.set_default_device
    return State(lambda x: torch.ones(2).device.type, (lambda: put("meta"), lambda: put("cpu")), lambda: put("cpu"))


@state
def grad_mode() -> State:
    w = torch.ones(2, requires_grad=True)
    put = torch.set_grad_enabled
    return State(
        lambda x: (x * w, (x * w).requires_grad, torch.is_grad_enabled()),
        (lambda: put(False), lambda: put(True)),
        lambda: put(True),
    )


@state
def autocast_state() -> State:
    blocks: list[Any] = []

    def enter(dtype: Any) -> None:
        blocks.append(torch.autocast("cpu", dtype))
        blocks[-1].__enter__()

    def leave() -> None:
        while blocks:
            blocks.pop().__exit__(None, None, None)

    w = torch.ones(2, 2)
    return State(lambda x: (x @ w).dtype, (lambda: enter(torch.bfloat16), leave, lambda: enter(torch.float16)), leave)


@state
def deterministic_flag() -> State:
    put = torch.use_deterministic_algorithms
    return State(
        lambda x: x + torch.are_deterministic_algorithms_enabled(),
        (lambda: put(True), lambda: put(False)),
        lambda: put(False),
    )


@state
def float32_precision() -> State:
    put = torch.set_float32_matmul_precision
    return State(
        lambda x: x + len(torch.get_float32_matmul_precision()),
        (lambda: put("high"), lambda: put("highest")),
        lambda: put("highest"),
    )


@state
def number_of_threads() -> State:
    old = torch.get_num_threads()
    return State(
        lambda x: x * torch.get_num_threads(),
        (lambda: torch.set_num_threads(1), lambda: torch.set_num_threads(2)),
        lambda: torch.set_num_threads(old),
    )


@state
def backend_flags() -> State:
    flags = torch.backends.cudnn
    old = flags.benchmark
    return State(
        lambda x: x + int(torch.backends.cudnn.benchmark),
        (setter(flags, "benchmark", True), setter(flags, "benchmark", False)),
        setter(flags, "benchmark", old),
    )


# --- tensors ---
@state
def tensor_in_a_global() -> State:
    g = namespace("w = torch.ones(2)\ndef f(x): return x * w")
    return State(
        g["f"],
        (
            lambda: g["w"].add_(1),
            lambda: g.update(w=torch.ones(2, 2)),
            lambda: g.update(w=torch.ones(2, dtype=torch.float64)),
            lambda: g.update(w=torch.ones(1)),
            lambda: g.update(w=torch.ones(2, requires_grad=True)),
            lambda: g.update(w=torch.ones(4)[::2] * 3),
        ),
    )


@state
def tensor_changed_in_place() -> State:
    w = torch.ones(2)
    return State(
        lambda x: x * w + w.dim() + w.size(0) + w.stride(0),
        (
            lambda: w.resize_(1),
            lambda: w.unsqueeze_(0),
            lambda: w.squeeze_(),
            lambda: setattr(w, "data", torch.ones(2) * 3),
            lambda: w.resize_(2).fill_(2),
            lambda: setattr(w, "data", torch.ones(2, dtype=torch.float64)),
        ),
    )


@state
def attribute_of_a_tensor() -> State:
    w = torch.ones(2)
    w.k = 2
    return State(lambda x: x * w.k, (setter(w, "k", 3), setter(w, "k", torch.ones(2))))


@state
def gradient_of_a_tensor() -> State:
    w = torch.ones(2, requires_grad=True)
    return State(
        lambda x: x if w.grad is None else x * w.grad,
        (lambda: (w * 3).sum().backward(), lambda: setattr(w, "grad", None), lambda: (w * 5).sum().backward()),
    )


@state
def tensor_requires_grad() -> State:
    w = torch.ones(2)
    return State(
        lambda x: (x * w, w.requires_grad, w.is_leaf), (lambda: w.requires_grad_(True), lambda: w.requires_grad_(False))
    )


@state
def tensor_subclass_method() -> State:
    class T(torch.Tensor):
        def twice(self) -> Any:
            return self * 2

    w = torch.ones(2).as_subclass(T)
    old = T.twice
    return State(lambda x: x + w.twice(), (setter(T, "twice", lambda self: self * 9), setter(T, "twice", old)))


@state
def numpy_array() -> State:
    import numpy as np

    a = np.ones(2, np.float32)
    return State(lambda x: x + torch.from_numpy(a), (lambda: a.__setitem__(0, 5), lambda: a.fill(3)))


@state
def numpy_scalar() -> State:
    import numpy as np

    box = [np.float32(2)]
    return State(
        lambda x: x * float(box[0]),
        (lambda: box.__setitem__(0, np.float32(3)), lambda: box.__setitem__(0, np.float64(3))),
    )


@state
def random_seed() -> State:
    return State(lambda x: x + torch.rand(2), (lambda: torch.manual_seed(1), lambda: torch.manual_seed(2)))


@state
def python_random() -> State:
    import random

    return State(lambda x: x + random.random(), (lambda: random.seed(1), lambda: random.seed(2)))
