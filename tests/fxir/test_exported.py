"""torch.export: the graph computes what the module does, for the calls it holds for, and refuses all others."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import eager as torch
from eager import nn
from fxir.export.dims import UserError

Dim = torch.export.Dim


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 2)
        self.out_again = self.out
        self.register_buffer("scale", torch.full((2,), 0.5))
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x, mask=None, *, factor=1.0):
        self.seen += 1
        y = torch.relu(self.norm(self.conv(x))).mean(-1)
        y = self.out_again(y) * self.scale * factor
        return {"y": y, "masked": y if mask is None else y * mask, "n": 3}


def make(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.0, 1.0, int(torch.tensor(shape).prod())).reshape(shape)


def test_an_exported_module_has_the_modules_results_and_writes() -> None:
    mod, args = Net(), (make(5, 3, 8), make(5, 1))
    program = torch.export.export(mod, args, {"factor": 2.0})
    theirs = {k: v.clone() for k, v in mod.state_dict().items()}
    ours = program.module()
    got = ours(*args, factor=2.0)
    state = {k: v.clone() for k, v in ours.state_dict().items()}
    mod.load_state_dict(theirs)
    want = mod(*args, factor=2.0)
    assert got["n"] == 3 and list(got) == list(want)
    assert torch.allclose(got["masked"], want["masked"]) and torch.allclose(got["y"], want["y"])
    assert list(state) == list(theirs) and all(torch.allclose(v, state[k]) for k, v in mod.state_dict().items())
    assert dict(ours.named_buffers())["seen"] == 2 == mod.seen, "the buffer that is not saved is shared too: once here, once in the module"
    signature = program.graph_signature
    assert set(signature.buffers_to_mutate.values()) == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked", "seen"}
    assert signature.parameters == tuple(n for n, _ in mod.named_parameters())
    assert signature.non_persistent_buffers == ("seen",)
    assert signature.user_inputs == ("x", "mask", 2.0) and signature.user_outputs[-1] == 3


def test_gradients_and_compiled_calls_go_through_an_exported_module() -> None:
    mod, x = Net().eval(), make(4, 3, 8)
    ours = torch.export.export(mod, (x,)).module()
    mod(x)["y"].square().sum().backward()
    want = {n: p.grad.clone() for n, p in mod.named_parameters()}
    mod.zero_grad()
    ours(x)["y"].square().sum().backward()
    assert all(torch.allclose(p.grad, want[n], atol=1e-6) for n, p in ours.named_parameters())
    compiled = torch.compile(ours, backend="aot_eager")
    assert torch.allclose(compiled(x)["y"], mod(x)["y"], atol=1e-6)


def test_open_sizes_hold_within_their_bounds() -> None:
    batch = Dim("batch", min=2, max=10)
    shapes = {"x": {0: batch, 2: Dim.AUTO}, "mask": {0: batch}}
    program = torch.export.export(Net().eval(), (make(3, 3, 8), make(3, 1)), dynamic_shapes=shapes)
    ours = program.module()
    for b, length in ((2, 8), (10, 5), (7, 31)):
        assert torch.allclose(ours(make(b, 3, length), make(b, 1))["y"], Net.forward(ours_of(program), make(b, 3, length))["y"], atol=1e-6)
    assert "VR[2, 10]" in str(program) and len(program.range_constraints) == 2
    for bad, text in (((make(11, 3, 8), make(11, 1)), r"x\.size\(\)\[0\] <= 10"), ((make(1, 3, 8), make(1, 1)), r"x\.size\(\)\[0\] >= 2"),
                      ((make(4, 3, 8), make(5, 1)), r"mask\.size\(\)\[0\] == 4"), ((make(4, 2, 8), make(4, 1)), r"x\.size\(\)\[1\] == 3"),
                      ((make(4, 3, 8).double(), make(4, 1)), "dtype")):  # fmt: skip
        with pytest.raises(AssertionError, match="Guard failed: .*" + text):
            ours(*bad)


def ours_of(program) -> Net:
    net = Net().eval()
    net.load_state_dict(program.state_dict)
    return net


class Rolls(nn.Module):
    def forward(self, x, y):
        return (x[: y.shape[0]] + y).reshape(-1, 2) if x.shape[0] > y.shape[0] else x.sum()


def test_decisions_about_open_sizes_are_checked_at_calls() -> None:
    ours = torch.export.export(Rolls(), (make(8), make(6)), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})).module()
    assert ours(make(9), make(4)).shape == (2, 2)
    for x, y in ((3, 4), (9, 5)):
        with pytest.raises(AssertionError, match="Guard failed"):
            ours(make(x), make(y))


class Fixed(nn.Module):
    def forward(self, x):
        return x + torch.ones(3, 2)


@pytest.mark.parametrize("size", [Dim("b"), Dim.DYNAMIC])
def test_a_size_that_the_program_needs_cannot_be_open(size) -> None:
    with pytest.raises(UserError, match=r"specialized it to be a constant \(3\)"):
        torch.export.export(Fixed(), (make(3, 2),), dynamic_shapes=({0: size},))
    with pytest.raises(AssertionError, match=r"size.*== 3"):
        torch.export.export(Fixed(), (make(3, 2),), dynamic_shapes=({0: Dim.AUTO},)).module()(make(4, 2))


class Branches(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Sets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x, items, flag=True):
        self.total = self.total + x
        items[0].mul_(2)
        return self.total * 1 if flag else x, items


def test_assigned_buffers_and_written_arguments_keep_their_new_values() -> None:
    mod = Sets()
    ours = torch.export.export(mod, (make(3), [make(3), None])).module()
    assert mod.total.tolist() == [0, 0, 0]
    item = torch.ones(3)
    total, (first, none) = ours(make(3), [item, None])
    assert total.tolist() == ours.total.tolist() == mod.total.tolist() == make(3).tolist()
    assert first.tolist() == item.tolist() == [2, 2, 2] and none is None
    with pytest.raises(AssertionError, match=r"flag|argument"):
        torch.export.export(mod, (make(3), [make(3), None], True)).module()(make(3), [make(3), None], False)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        ours(make(3), [item])


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(ValueError, match=r"instance of `torch.nn.Module`"):
        torch.export.export(lambda x: x, (make(3),))
    with pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        torch.export.export(Branches(), (make(3),))
    with pytest.raises(UserError, match="no argument 'z'"):
        torch.export.export(Fixed(), (make(3, 2),), dynamic_shapes={"z": {}})
    with pytest.raises(UserError, match="outside of Dim"):
        torch.export.export(Branches(), (make(3),), dynamic_shapes=({0: Dim("b", max=2)},))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram"):
        torch.export.export(Fixed(), (make(3, 2),))(make(3, 2))
    with pytest.raises(ValueError, match="inconsistent min"):
        Dim("b", min=3, max=2)
    with pytest.raises(NotImplementedError, match="computed from"):
        2 * Dim("b")


def test_a_shared_submodule_gets_its_own_tensors_back() -> None:
    mod = Net()
    weight = mod.out.weight
    given = {name: torch.zeros_like(p) for name, p in mod.named_parameters()}
    torch.func.functional_call(mod, given, (make(2, 3, 4),))
    assert mod.out.weight is weight is mod.out_again.weight


class _Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.calls, self.log, self.last = torch.nn.BatchNorm1d(3), 0, [], None

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.log.append(self.calls)
        self.last = x * 2
        self.new = 1
        return self.norm(x) + torch.rand(3)


@pytest.mark.parametrize("how", ["export", "strict", "_dynamo"])
def test_exporting_changes_no_state(how: str) -> None:
    net, x = _Counting(), torch.ones(4, 3)
    log, before, drawn = net.log, net.norm.running_mean.tolist(), torch.get_rng_state().tolist()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        if how == "_dynamo":
            torch._dynamo.export(net)(x)
        else:
            torch.export.export(net, (x,), strict=how == "strict")
    assert (net.calls, net.log, net.last) == (0, [], None) and net.log is log and not hasattr(net, "new")
    assert net.norm.running_mean.tolist() == before and net.norm.num_batches_tracked.item() == 0
    assert torch.get_rng_state().tolist() == drawn
    texts = [str(w.message) for w in shown if "assigned during export" in str(w.message)]
    assert len(texts) == (how == "export") and all("The tensor attribute self.last was assigned" in t for t in texts)


def test_exporting_a_function_writes_to_no_argument() -> None:
    x = torch.ones(3)
    gm, guards = torch._dynamo.export(lambda x: x.add_(1).sin())(x)
    assert x.tolist() == [1.0, 1.0, 1.0] and guards and gm(torch.zeros(3)).tolist() == torch.ones(3).sin().tolist()
