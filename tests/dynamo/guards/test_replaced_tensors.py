"""Tensors that a program replaces at each call, in all kinds of places: the results are eager's, with few variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.utils import counters
from eager import nn

STATE = torch.zeros(3)
STATES = [torch.zeros(3)]
NAMED = {"a": torch.zeros(3)}
Step = Callable[[Any, Any, Any], Any]


class Box:
    """A plain object that holds a tensor."""

    def __init__(self) -> None:
        self.h = torch.zeros(3)


BOX = Box()


class Net(nn.Module):
    """A module with a tensor in every kind of place."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("buf", torch.zeros(3))
        self.register_buffer("other", None)
        self.w = nn.Parameter(torch.ones(3))
        self.plain = torch.zeros(3)
        self.items, self.named, self.box = [torch.zeros(3)], {"a": torch.zeros(3)}, Box()

    def forward(self, x: Any) -> Any:
        return self.step(self, x, x.detach().mean(0))


STEPS: dict[str, tuple[Step, int]] = {}


def step(variants: int = 2) -> Callable[[Step], Step]:
    """Register a program with its limit of variants over six calls.

    With two variants, the first holds the first tensor, and the second reads the tensor from its place.
    """

    def note(fn: Step) -> Step:
        STEPS[fn.__name__] = fn, variants
        return fn

    return note


@step()
def plain_attribute(m, x, s):
    m.plain = m.plain * 0.5 + s
    return x + m.plain


@step()
def buffer(m, x, s):
    m.buf = m.buf * 0.5 + s
    return x + m.buf + m._buffers["buf"]


@step()
def buffer_by_registry(m, x, s):
    m._buffers["buf"] = m.buf * 0.5 + s
    return x + m.buf


@step()
def buffer_by_setattr_and_then_in_place(m, x, s):
    setattr(m, "buf", m.buf * 0.5)  # noqa: B010
    m.buf.add_(s)
    return x + m.buf


@step(1)
def buffer_to_none_and_back(m, x, s):
    m.buf = None
    assert m.buf is None
    m.buf = s
    return x + m.buf


@step(3)
def buffer_from_none(m, x, s):
    m.other = s if m.other is None else m.other + s
    return x + m.other


@step()
def buffer_in_place_then_replaced(m, x, s):
    m.buf.mul_(0.5)
    m.buf = m.buf + s
    return x + m.buf


@step()
def two_places_one_tensor(m, x, s):
    m.buf = m.plain = m.buf + m.plain + s
    return x * (2.0 if m.buf is m.plain else 3.0)


@step(3)
def places_that_part(m, x, s):
    same = m.buf is m.plain
    m.buf = m.buf + s
    m.plain = m.buf * 2 if same else m.buf
    m.buf.mul_(0.5)
    return x + m.plain * (5.0 if same else 1.0)


@step()
def swapped(m, x, s):
    m.buf, m.plain = m.plain, m.buf
    m.buf.add_(s)
    return x + m.plain


@step()
def list_item(m, x, s):
    m.items[0] = m.items[0] * 0.5 + s
    return x + m.items[0]


@step()
def dict_item(m, x, s):
    m.named["a"] = m.named["a"] * 0.5 + s
    return x + m.named["a"]


@step()
def attribute_of_an_object(m, x, s):
    m.box.h = m.box.h * 0.5 + s
    return x + m.box.h


@step()
def unrolled(m, x, s):
    for t in range(3):
        m.plain = torch.tanh(m.plain + s * t)
    return x + m.plain


@step()
def replaced_with_a_view_of_itself(m, x, s):
    m.buf = (m.buf + s).flip(0)[:]
    return x + m.buf


@step(4)
def growing(m, x, s):
    m.plain = torch.cat([m.plain, s])
    return x + m.plain.sum()


@step()
def global_variable(m, x, s):
    global STATE
    STATE = STATE * 0.5 + s
    return x + STATE


@step()
def global_list(m, x, s):
    STATES[0] = STATES[0] * 0.5 + s
    return x + STATES[0]


@step()
def global_dict(m, x, s):
    NAMED["a"] = NAMED["a"] * 0.5 + s
    return x + NAMED["a"]


@step()
def global_object(m, x, s):
    BOX.h = BOX.h * 0.5 + s
    return x + BOX.h


@step()
def recurrent_weight(m, x, s):
    m.plain = torch.tanh(m.plain.detach() * m.w + s)
    return x + m.plain


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


def _six_calls(program: Step, compiled: bool) -> list[Any]:
    global STATE
    STATE, STATES[0], NAMED["a"], BOX.h = (torch.zeros(3) for _ in range(4))
    net = Net(program)
    call = dynamo.compile(net, backend="aot_eager") if compiled else net
    found = []
    for i in range(6):
        x = torch.arange(6.0).reshape(2, 3).add(i).requires_grad_()
        y = call(x)
        y.sum().backward()
        found += [y.detach(), x.grad]
    return [*found, net.buf, net.other, net.plain.detach(), net.w.grad, STATE, STATES[0], NAMED["a"], BOX.h]


@pytest.mark.parametrize("name", STEPS)
def test_a_replaced_tensor_is_read_in_place(name: str) -> None:
    program, variants = STEPS[name]
    wanted = _six_calls(program, False)
    found = _six_calls(program, True)
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            torch.testing.assert_close(a, b)
    assert counters["stats"]["unique_graphs"] <= variants, dict(counters["stats"])
    assert not counters["graph_break"]


def _reads(kind: str) -> Step:
    return {
        "attribute": lambda m, x, s: x + m.plain,
        "buffer": lambda m, x, s: x + m.buf,
        "parameter": lambda m, x, s: x + m.w,
        "item": lambda m, x, s: x + m.items[0],
    }[kind]


@pytest.mark.parametrize("kind", ["attribute", "buffer", "parameter", "item"])
def test_tensors_that_the_caller_replaces(kind: str) -> None:
    net = Net(_reads(kind))
    call = dynamo.compile(net, backend="aot_eager")
    x = torch.ones(2, 3)
    for i in range(6):
        new = torch.full((3,), float(i))
        if kind == "item":
            net.items[0] = new
        else:
            setattr(net, {"attribute": "plain", "buffer": "buf", "parameter": "w"}[kind], nn.Parameter(new) if kind == "parameter" else new)
        torch.testing.assert_close(call(x), x + i)
    assert counters["stats"]["unique_graphs"] == 2


def test_each_instance_keeps_its_own_weights() -> None:
    """Different tensors in different instances are not a replacement: each instance has a separate guard."""
    nets = [Net(_reads("parameter")) for _ in range(3)]
    step_of = dynamo.compile(lambda m, x: m(x), backend="aot_eager")
    for _ in range(2):
        for i, net in enumerate(nets):
            with torch.no_grad():
                net.w.fill_(float(i))
            torch.testing.assert_close(step_of(net, torch.ones(2, 3)), torch.ones(2, 3) + i)
    assert counters["stats"]["unique_graphs"] == 3


def test_gradients_that_each_step_replaces() -> None:
    net = Net(lambda m, x, s: x if m.w.grad is None else x + m.w.grad)
    call = dynamo.compile(net, backend="aot_eager")
    for i in range(6):
        net.w.grad = torch.full((3,), float(i))
        torch.testing.assert_close(call(torch.ones(2, 3)), torch.ones(2, 3) + i)
    assert counters["stats"]["unique_graphs"] == 1  # a gradient is fetched from the first compilation on


def test_only_tensors_are_accepted_as_buffers() -> None:
    def put(m: Net, x: Any, s: Any) -> Any:
        m.buf = "text"
        return x

    net = Net(put)
    for call in (net, dynamo.compile(net, backend="aot_eager")):
        with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'buf'"):
            call(torch.ones(2, 3))
