"""Modules under compile: modes, buffers, parametrizations, functional calls, copies, pickles, state dicts."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import eager as torch
from eager import nn
from eager.func import functional_call
from eager.nn.utils import parametrizations, parametrize
from tests.dynamo.recording.autograd.support import Compile, Programs, leaf

PROGRAMS = Programs()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.calls.add_(1)
        return self.last(torch.relu(self.norm(self.first(x))))


def net() -> Net:
    torch.manual_seed(0)
    return Net()


def data(k: float = 1.0) -> Any:
    return torch.arange(12.0).reshape(4, 3) * 0.1 * k


def state(m: Any) -> Any:
    return {k.replace("_orig_mod.", ""): v.clone() for k, v in m.state_dict().items()}


@PROGRAMS.add(whole=True, native=True)
def batch_norm_statistics(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    seen = []
    for k in range(3):
        y = run(data(k + 1))
        m.zero_grad()
        y.pow(2).sum().backward()
        seen.append((y, state(m), [p.grad.clone() for p in m.parameters()]))
    return seen


@PROGRAMS.add(whole=True)
def train_and_eval(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    seen = []
    for mode in (True, False, True, False):
        run.train(mode)
        seen.append((run(data()), m.training, m.norm.training))
    m.train()
    seen.append((run(data()), run.training))
    run.eval()
    return seen, run(data()), m.training, state(m)


@PROGRAMS.add(whole=True)
def freezing_and_swapping_parameters(compile: Compile) -> Any:
    m = net().double()  # in float32, gradients that are zero behind a batch norm differ by their rounding
    run = compile(m)
    seen = []

    def step() -> None:
        m.zero_grad()
        run(data().double()).sum().backward()
        seen.append([None if p.grad is None else p.grad.clone() for p in m.parameters()])

    step()
    for p in m.first.parameters():
        p.requires_grad_(False)
    step()
    m.last.weight = nn.Parameter(m.last.weight.detach() * 2)
    step()
    m.first.requires_grad_(True)
    step()
    m.last = nn.Linear(4, 3).double()
    with torch.no_grad():
        for p in m.last.parameters():
            p.fill_(0.5)
    step()
    return seen


@PROGRAMS.add(whole=True)
def all_parameters_frozen(compile: Compile) -> Any:
    m = net().eval()
    run = compile(m)
    m.requires_grad_(False)
    x = data().requires_grad_()
    y = run(x)
    y.sum().backward()
    return y, x.grad, run(data()).requires_grad


@PROGRAMS.add(whole=True)
def grad_mode_toggles(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    seen = [run(data())]
    with torch.no_grad():
        seen.append(run(data()))
    with torch.inference_mode():
        seen.append(run(data()).clone().requires_grad)
    seen.append(run(data()))
    return seen, state(m)


@PROGRAMS.add(whole=True)
def weight_norm(compile: Compile) -> Any:
    m = parametrizations.weight_norm(net().first)
    run = compile(m)
    y = run(data())
    y.sum().backward()
    return y, [p.grad for p in m.parameters()], list(m.state_dict())


@PROGRAMS.add()
def old_weight_norm(compile: Compile) -> Any:
    m = nn.utils.weight_norm(net().first)
    run = compile(m)
    seen = []
    for _ in range(2):
        m.zero_grad()
        y = run(data())
        y.sum().backward()
        seen.append((y, [p.grad.clone() for p in m.parameters()]))
    return seen


@PROGRAMS.add()
def spectral_norm(compile: Compile) -> Any:
    m = parametrizations.spectral_norm(net().first)
    run = compile(m)
    y = run(data())
    y.sum().backward()
    m.eval()
    return y, run(data()), [p.grad for p in m.parameters()]


@PROGRAMS.add(whole=True)
def own_parametrization(compile: Compile) -> Any:
    class Symmetric(nn.Module):
        def forward(self, w: Any) -> Any:
            return w.triu() + w.triu(1).t()

    m = nn.Linear(3, 3)
    with torch.no_grad():
        m.weight.copy_(torch.arange(9.0).reshape(3, 3))
        m.bias.fill_(1)
    parametrize.register_parametrization(m, "weight", Symmetric())
    run = compile(m)
    y = run(data())
    y.sum().backward()
    return y, [p.grad for p in m.parameters()]


@PROGRAMS.add()
def cached_parametrization(compile: Compile) -> Any:
    m = parametrizations.weight_norm(net().first)
    run = compile(m)
    with parametrize.cached():
        return run(data()) + run(data())


@PROGRAMS.add(whole=True)
def functional_call_inside(compile: Compile) -> Any:
    m = net().eval()
    params = {k: (v * 2).detach().requires_grad_() for k, v in m.named_parameters()}

    f = compile(lambda p, x: functional_call(m, p, (x,)))
    y = f(params, data())
    y.sum().backward()
    return y, {k: p.grad for k, p in params.items()}, [p.grad for p in m.parameters()]


@PROGRAMS.add(whole=True)
def functional_call_of_a_compiled_module(compile: Compile) -> Any:
    m = net().eval()
    run = compile(m)
    params = {k: (v * 2).detach().requires_grad_() for k, v in run.named_parameters()}
    y = functional_call(run, params, (data(),))
    y.sum().backward()
    return y, [p.grad for p in params.values()]


@PROGRAMS.add(whole=True)
def copies(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    before = run(data())
    twin = copy.deepcopy(run)
    with torch.no_grad():
        twin.last.bias.add_(1)
    twin(data()).sum().backward()
    return before, run(data()), twin(data()), [p.grad for p in m.parameters()], [p.grad for p in twin.parameters()], state(m)


@PROGRAMS.add(whole=True)
def copies_of_functions(compile: Compile) -> Any:
    f = compile(torch_relu)
    return copy.deepcopy(f)(leaf(3)), copy.copy(f)(leaf(3))


def torch_relu(x: Any) -> Any:
    return torch.relu(x - 0.5)


@PROGRAMS.add(whole=True)
def pickles(compile: Compile) -> Any:
    run = compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    with torch.no_grad():
        for p in run.parameters():
            p.fill_(0.25)
    y = run(data())
    again = pickle.loads(pickle.dumps(run))
    buffer = io.BytesIO()
    torch.save(run, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    return y, again(data()), loaded(data())


@PROGRAMS.add(whole=True)
def state_dicts(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    run(data())
    saved = run.state_dict()
    other = compile(net())
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    other.load_state_dict(saved)
    return state(run), other(data()), len(list(run.named_parameters())), sum(p.numel() for p in run.parameters())


@PROGRAMS.add(whole=True)
def compiled_in_place(compile: Compile) -> Any:
    m = net()
    if compile(leaf) is not leaf:
        m.compile(backend="aot_eager")
    y = m(data())
    y.sum().backward()
    return y, [p.grad for p in m.parameters()], list(m.state_dict()), type(m).__name__, state(copy.deepcopy(m))


@PROGRAMS.add(whole=True)
def compiled_submodule(compile: Compile) -> Any:
    m = net()
    m.first = compile(m.first)
    y = m(data())
    y.sum().backward()
    return y, [p.grad for p in m.parameters()]


@PROGRAMS.add(whole=True)
def attributes_of_a_compiled_module(compile: Compile) -> Any:
    m = net()
    run = compile(m)
    run.scale = 3
    del run.scale
    run.flag = True
    return m.flag, hasattr(m, "scale"), isinstance(run, nn.Module), len(list(run.children())) > 0, run.first is m.first


@PROGRAMS.add(whole=True)
def moved_to_another_dtype(compile: Compile) -> Any:
    m = net().eval()
    run = compile(m)
    seen = [run(data())]
    run.double()
    seen.append(run(data().double()))
    run.float()
    return [*seen, run(data())]


@PROGRAMS.add()
def lazily_made_parameters(compile: Compile) -> Any:
    m = nn.LazyLinear(2)
    run = compile(m)
    torch.manual_seed(0)
    return run(data()), run(data()), tuple(m.weight.shape)


@PROGRAMS.add()
def buffers_swapped_and_written(compile: Compile) -> Any:
    class Average(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.count = 0

        def forward(self, x: Any) -> Any:
            self.mean = self.mean * 0.9 + x.mean(0) * 0.1
            self.mean.add_(1)
            self.count += 1
            return x - self.mean

    m = Average()
    run = compile(m, dynamic=False)
    return [run(data(k)) for k in (1, 2, 3)], m.mean, m.count


@PROGRAMS.add(whole=True)
def recurrent_state_with_detach(compile: Compile) -> Any:
    torch.manual_seed(0)
    cell = nn.GRUCell(3, 4)
    run = compile(cell)
    h = torch.zeros(4, 4)
    seen = []
    for k in range(3):
        h = run(data(k), h.detach())
        h.sum().backward()
        seen.append((h, cell.weight_ih.grad.clone()))
    return seen


class Scaled(nn.Module):
    """An activation as libraries make them in a call: `ACTIVATIONS[name]()(x)`."""

    scale = 2.0

    def forward(self, x: Any) -> Any:
        return nn.functional.silu(x) * self.scale if self.training else x


class Remembering(nn.Module):
    def forward(self, x: Any) -> Any:
        again = hasattr(self, "called")
        self.called = True
        return x * 3 if again else x


@PROGRAMS.add(whole=True)
def modules_without_an_init_made_in_the_call(compile: Compile) -> Any:
    kinds = {"scaled": Scaled, "relu": nn.ReLU}
    f = compile(lambda x: kinds["scaled"]()(x) + kinds["relu"]()(x) + Scaled().eval()(x))
    x = leaf(3)
    seen = [f(x)]
    Scaled.scale = 3.0
    try:
        seen.append(f(x))
    finally:
        Scaled.scale = 2.0
    return seen, torch.autograd.grad(seen[1].sum(), x)


@PROGRAMS.add()
def modules_made_in_the_call_that_remember_or_leave_it(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        made = Remembering()
        return made(x) + made(x), made

    g = compile(f)
    seen = [g(leaf(3)) for _ in range(3)]
    return [y for y, _ in seen], [type(m).__name__ for _, m in seen], len({id(m) for _, m in seen}), seen[0][1].called


@PROGRAMS.add()
def a_class_that_is_given_an_init(compile: Compile) -> Any:
    class Late(nn.Module):
        scale = 1.0

        def forward(self, x: Any) -> Any:
            return x * self.scale

    def init(self: Any) -> None:
        nn.Module.__init__(self)
        self.scale = 5.0

    f = compile(lambda x: Late()(x))
    x = leaf(3)
    seen = [f(x)]
    Late.__init__ = init  # type: ignore[method-assign]
    return *seen, f(x)


@PROGRAMS.add(whole=True, native=True)
def memory_formats_and_layouts_as_arguments(compile: Compile) -> Any:
    f = compile(lambda x, order: (x.contiguous(memory_format=order) * 2, torch.zeros_like(x, memory_format=torch.preserve_format),
                                  x.clone(memory_format=torch.legacy_contiguous_format), x.to(memory_format=torch.channels_last) + 1,
                                  torch.ones_like(x, layout=torch.strided), order is torch.channels_last))  # fmt: skip
    x = leaf(2, 3, 2, 2)
    seen = [f(x, order) for order in (torch.channels_last, torch.contiguous_format, torch.channels_last)]
    return seen, [[t.stride() for t in y[:5]] for y in seen], [torch.autograd.grad(y[0].sum(), x)[0].contiguous() for y in seen]
