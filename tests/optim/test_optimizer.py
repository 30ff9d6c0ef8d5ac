"""Behaviour of optimizers besides their update rules: groups, hooks, state, errors, copies, and compiled steps."""
from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

KINDS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor")
DIFFERENTIABLE = tuple(k for k in KINDS if k not in ("Adafactor",))


def _model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def _train(model: Any, optimizer: Any, steps: int, step: Callable[[], Any] | None = None) -> None:
    x = torch.linspace(-1, 1, 24).reshape(6, 4)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        (step or optimizer.step)()


def _assert_close(a: Any, b: Any) -> None:
    assert a.dtype is b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-6), (a, b)


def _equal(a: Any, b: Any) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_state_survives_a_round_trip(kind: str) -> None:
    """After a round trip through a state dict, a file, a deep copy or a pickle, training continues with equal results."""
    model = _model()
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.02)
    _train(model, optimizer, 3)
    twins = []
    for way in ("state_dict", "file", "deepcopy", "pickle"):
        if way in ("state_dict", "file"):
            other = _model(1)
            other.load_state_dict(model.state_dict())
            made = getattr(torch.optim, kind)(other.parameters(), lr=0.5)
            state = optimizer.state_dict()
            if way == "file":
                file = io.BytesIO()
                torch.save(state, file)
                file.seek(0)
                state = torch.load(file)
            made.load_state_dict(state)
        else:
            other, made = copy.deepcopy((model, optimizer)) if way == "deepcopy" else pickle.loads(pickle.dumps((model, optimizer)))
        twins.append((other, made))
    _train(model, optimizer, 3)
    for other, made in twins:
        _train(other, made, 3)
        assert _equal(model, other)


@pytest.mark.parametrize("kind", DIFFERENTIABLE)
def test_differentiable_steps_carry_gradients(kind: str) -> None:
    """The derivative of the loss after two steps with respect to the starting point agrees with finite differences."""

    def after(start: Any) -> Any:
        p = start.clone()
        p.grad = None
        optimizer = getattr(torch.optim, kind)([p], lr=0.1, differentiable=True)
        for k in (1.0, 2.0):
            p.grad = torch.sin(start * k) + start * 0.5
            optimizer.step()
        return (p * torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)).sum()

    start = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(after(start), start)
    for i in range(3):
        h = torch.zeros(3, dtype=torch.float64)
        h[i] = 1e-5
        with torch.no_grad():
            slope = (after(start + h) - after(start - h)) / 2e-5
        assert float(got[i]) == pytest.approx(float(slope), rel=1e-4, abs=1e-6)


def test_options_of_the_implementation_agree() -> None:
    results = []
    for options in ({}, {"fused": True}, {"fused": False}, {"foreach": True}, {"foreach": False}):
        model = _model()
        _train(model, torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.1, **options), 5)
        results.append(model)
    for other in results[1:]:
        for p, q in zip(results[0].parameters(), other.parameters(), strict=True):
            _assert_close(p, q)


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda o, p: o.SGD(p, lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    (lambda o, p: o.SGD(p, nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
    (lambda o, p: o.SGD(p, lr=torch.tensor([0.1, 0.2])), ValueError, "Tensor lr must be 1-element"),
    (lambda o, p: o.Adam(p, betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
    (lambda o, p: o.Adam(p, eps=-1), ValueError, "Invalid epsilon value: -1"),
    (lambda o, p: o.Adam(p, lr=torch.tensor(0.1), foreach=True), ValueError, "lr as a Tensor is not supported"),
    (lambda o, p: o.Adam(p, fused=True, foreach=True), RuntimeError, "`fused` and `foreach` cannot be `True` together"),
    (lambda o, p: o.SGD(p, fused=True, differentiable=True), RuntimeError, "`fused` does not support `differentiable`"),
    (lambda o, p: o.RMSprop(p, alpha=-0.1), ValueError, "Invalid alpha value: -0.1"),
    (lambda o, p: o.Adadelta(p, rho=1.5), ValueError, "Invalid rho value: 1.5"),
    (lambda o, p: o.Rprop(p, etas=(1.5, 1.2)), ValueError, "Invalid eta values: 1.5, 1.2"),
    (lambda o, p: o.Adafactor(p, d=0.5), ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
    (lambda o, p: o.Muon(p), ValueError, "Muon only supports 2D parameters"),
    (lambda o, p: o.LBFGS(p, line_search_fn="other"), RuntimeError, "only 'strong_wolfe' is supported"),
    (lambda o, p: o.SGD([]), ValueError, "optimizer got an empty parameter list"),
    (lambda o, p: o.SGD(p[0]), TypeError, "params argument given to the optimizer should be an iterable"),
    (lambda o, p: o.SGD([1]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    (lambda o, p: o.SGD([p[0] * 2]), ValueError, "can't optimize a non-leaf Tensor"),
    (lambda o, p: o.SGD([{"params": p}, {"params": p[:1]}]), ValueError, "some parameters appear in more than one parameter group"),
    (lambda o, p: o.SGD([{"params": set(p)}]), TypeError, "optimizer parameters need to be organized in ordered collections"),
    (lambda o, p: o.SGD([("a", p[0]), p[1]]), ValueError, "all optimizer params should be with/without names"),
])  # fmt: skip
def test_wrong_settings_raise(make: Any, error: type[Exception], text: str) -> None:
    params = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))]
    with pytest.raises(error) as caught:
        make(torch.optim, params)
    assert text in str(caught.value)


def test_loading_other_groups_raises() -> None:
    a = torch.optim.SGD(_model().parameters(), lr=0.1)
    b = torch.optim.SGD([{"params": [p]} for p in _model().parameters()], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        a.load_state_dict(b.state_dict())
    c = torch.optim.SGD([next(iter(_model().parameters()))], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        a.load_state_dict(c.state_dict())


def test_states_of_earlier_versions_load() -> None:
    """Groups that lack newer settings get the defaults; step counts that are numbers become tensors."""
    model = _model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    _train(model, optimizer, 2)
    old = optimizer.state_dict()
    for group in old["param_groups"]:
        for name in ("foreach", "fused", "capturable", "differentiable", "maximize"):
            del group[name]
    old["state"] = {k: {**v, "step": int(v["step"])} for k, v in old["state"].items()}
    fresh = torch.optim.Adam(model.parameters(), lr=0.5)
    fresh.load_state_dict(old)
    assert fresh.param_groups[0]["maximize"] is False and fresh.param_groups[0]["lr"] == 0.01
    assert all(isinstance(s["step"], torch.Tensor) and float(s["step"]) == 2 for s in fresh.state.values())
    _train(model, fresh, 1)


def test_loaded_state_takes_the_parameters_dtype() -> None:
    model = _model()
    optimizer = torch.optim.Adam(model.parameters())
    _train(model, optimizer, 1)
    double = _model().double()
    other = torch.optim.Adam(double.parameters())
    other.load_state_dict(optimizer.state_dict())
    state = other.state[next(iter(double.parameters()))]
    assert state["exp_avg"].dtype is torch.float64 and state["step"].dtype is torch.float32


def test_hooks_run_in_their_places() -> None:
    model, seen = _model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda o, a, k: seen.append("pre")),
        optimizer.register_step_post_hook(lambda o, a, k: seen.append("post")),
        torch.optim.optimizer.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("global pre")),
        torch.optim.optimizer.register_optimizer_step_post_hook(lambda o, a, k: seen.append("global post")),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state pre")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: {k: v for k, v in s.items() if k != "more"}),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    _train(model, optimizer, 1)
    assert seen == ["global pre", "pre", "post", "global post"]
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert seen[4:] == ["state pre", "loaded"]
    for handle in handles:
        handle.remove()
    seen.clear()
    _train(model, optimizer, 1)
    assert seen == [] and "more" not in optimizer.state_dict()


def test_zero_grad_drops_or_fills() -> None:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    before = copy.deepcopy(model)
    optimizer.step()
    assert _equal(before, model)


def test_subclasses_of_users_work() -> None:
    class Signed(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.add_(p.grad.sign(), alpha=-group["lr"])
                        self.state[p]["count"] = self.state[p].get("count", 0) + 1

    model, called = _model(), []
    optimizer = Signed(model.parameters(), 0.1)
    optimizer.register_step_post_hook(lambda o, a, k: called.append(1))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    before = [p.detach().clone() for p in model.parameters()]
    _train(model, optimizer, 1)
    schedule.step()
    assert called == [1] and optimizer.param_groups[0]["lr"] == 0.05 and optimizer.state_dict()["state"][0]["count"] == 1
    for p, q in zip(model.parameters(), before, strict=True):
        assert float((p - q).abs().max()) == pytest.approx(0.1, rel=1e-5)


def test_schedules_warn_as_torch_does() -> None:
    optimizer = torch.optim.SGD(_model().parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
    with pytest.raises(KeyError, match="initial_lr"):
        torch.optim.lr_scheduler.StepLR(torch.optim.SGD(_model().parameters(), lr=0.1), 2, last_epoch=3)
    one = torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD(_model().parameters(), lr=0.1, momentum=0.9), 1.0, total_steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.step()
        one.step()
        with pytest.raises(ValueError, match=r"Tried to step 3 times. The specified number of total steps is 2"):
            one.step()


def test_schedules_resume_from_their_state() -> None:
    def make() -> tuple[Any, Any]:
        o = torch.optim.SGD(_model().parameters(), lr=0.1, momentum=0.9)
        s = torch.optim.lr_scheduler
        return o, s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 3), s.CosineAnnealingLR(o, 5)], [3])

    optimizer, schedule = make()
    rates = []
    for i in range(8):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
        if i == 3:
            kept = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
    optimizer, schedule = make()
    optimizer.load_state_dict(kept[0])
    schedule.load_state_dict(kept[1])
    for expected in rates[4:]:
        optimizer.step()
        schedule.step()
        assert schedule.get_last_lr()[0] == pytest.approx(expected)


def test_plateau_covers_groups_added_later() -> None:
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    optimizer = torch.optim.SGD(params[:1], lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    listed = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0])
    optimizer.add_param_group({"params": params[1:], "lr": 0.2})
    for loss in (1.0, 2.0):
        schedule.step(loss)
    assert [g["lr"] for g in optimizer.param_groups] == pytest.approx([0.01, 0.02])
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="number of param groups in the `optimizer`"):
        listed.step(2.0)


def test_averaged_model_and_batch_statistics() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    mean = torch.optim.swa_utils.AveragedModel(model)
    snapshots = []
    for i in range(3):
        with torch.no_grad():
            model[0].weight.fill_(float(i))
        mean.update_parameters(model)
        snapshots.append(float(i))
    assert float(mean.module[0].weight[0, 0].detach()) == pytest.approx(sum(snapshots) / 3)
    assert int(mean.n_averaged) == 3 and "module.0.weight" in mean.state_dict()
    batches = [torch.arange(12.0).reshape(4, 3) + i for i in range(3)]
    torch.optim.swa_utils.update_bn(batches, mean)
    seen = torch.cat([mean.module[0](b) for b in batches])
    _assert_close(mean.module[1].running_mean, seen.mean(0).detach())
    assert int(mean.module[1].num_batches_tracked) == 3 and mean.module[1].momentum == 0.1


@pytest.mark.parametrize(("make", "text"), [
    (lambda s, o: s.OneCycleLR(o, 1.0), "You must define either total_steps OR"),
    (lambda s, o: s.OneCycleLR(o, [1.0, 2.0], 5), "max_lr must have the same length as optimizer.param_groups. max_lr has 2 values"),
    (lambda s, o: s.LambdaLR(o, [abs, abs]), "Expected 1 lr_lambdas, but got 2"),
    (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), "Factor should be < 1.0."),
    (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), "Expected positive integer T_0, but got 0"),
    (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), "one more than the number of milestone points"),
    (lambda s, o: s.SequentialLR(o, [], []), "SequentialLR expects at least one scheduler, but got no scheduler."),
    (lambda s, o: s.ChainedScheduler([]), "ChainedScheduler expects at least one scheduler to be chained"),
    (lambda s, o: torch.optim.swa_utils.SWALR(o, 0.1, anneal_strategy="x"), "anneal_strategy must be one of 'cos' or 'linear'"),
])  # fmt: skip
def test_wrong_schedules_raise(make: Any, text: str) -> None:
    optimizer = torch.optim.SGD(_model().parameters(), lr=0.1, momentum=0.9)
    with pytest.raises(ValueError) as caught:
        make(torch.optim.lr_scheduler, optimizer)
    assert text in str(caught.value)


def test_reading_rates_outside_a_step_warns() -> None:
    schedule = torch.optim.lr_scheduler.ExponentialLR(torch.optim.SGD(_model().parameters(), lr=0.1), 0.5)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        assert schedule.get_lr() == [0.05]
    assert schedule.get_last_lr() == [0.1]
