"""Code compiled for inputs over one memory was run, after a passed guard, on inputs that lie apart, and back."""

from __future__ import annotations

import eager as torch


def write(x, y):
    x.mul_(2)
    return y + 1


def overlapping():
    base = torch.arange(10.0)
    return base[:6], base[4:]


def apart():
    return torch.ones(6), torch.arange(6.0)


def test_each_constellation_of_inputs_is_right():
    for order in ((overlapping, apart, overlapping), (apart, overlapping, apart)):
        torch.compiler.reset()
        compiled = torch.compile(write, fullgraph=True)
        for make in order:
            ours, theirs = make(), make()
            assert compiled(*ours).tolist() == write(*theirs).tolist()
            assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]


def test_an_input_with_a_history_keeps_it_through_a_write():
    def scale(h):
        h.mul_(3)
        return h.sum()

    grads = []
    for f in (scale, torch.compile(scale, fullgraph=True)):
        w = torch.ones(3).requires_grad_()
        h = w * 1
        (f(h) + h.sum()).backward()
        grads.append(w.grad.tolist())
    assert grads[0] == grads[1] == [6, 6, 6]
