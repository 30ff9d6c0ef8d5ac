"""GradScaler: scaling, skipped steps, growth and backoff, errors, state."""

from __future__ import annotations

import math
import pickle

import pytest

import eager as torch


def parameter(value: float = 1.0) -> torch.Tensor:
    return torch.nn.Parameter(torch.full((3,), value))


def scaler(**options: object) -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", **{"init_scale": 4.0, **options})


def test_a_step_is_the_step_without_scaling() -> None:
    p, q = parameter(), parameter()
    a, b = torch.optim.SGD([p], lr=0.5), torch.optim.SGD([q], lr=0.5)
    s = scaler()
    scaled = s.scale((p * p).sum())
    assert scaled.item() == 12.0
    scaled.backward()
    assert p.grad.tolist() == [8.0] * 3
    s.step(a)
    s.update()
    (q * q).sum().backward()
    b.step()
    assert torch.equal(p, q) and p.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_an_overflow_skips_the_step_and_lowers_the_scale(bad: float) -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=0.5)
    s = scaler(backoff_factor=0.25)
    s.scale(p.sum()).backward()
    p.grad[1] = bad
    assert s.step(optimizer) is None
    s.update()
    assert p.tolist() == [1.0] * 3 and s.get_scale() == 1.0


def test_an_overflow_in_one_optimizer_backs_off_for_all_but_skips_only_its_step() -> None:
    p, q = parameter(), parameter()
    a, b = torch.optim.SGD([p], lr=1.0), torch.optim.SGD([q], lr=1.0)
    s = scaler()
    s.scale(p.sum() + q.sum()).backward()
    q.grad[0] = math.inf
    s.step(a)
    s.step(b)
    s.update()
    assert p.tolist() == [0.0] * 3 and q.tolist() == [1.0] * 3 and s.get_scale() == 2.0


def test_the_scale_grows_after_an_interval_without_overflow() -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=0.0)
    s = scaler(growth_factor=3.0, growth_interval=2)
    seen = []
    for overflow in (False, False, False, True, False, False):
        optimizer.zero_grad()
        s.scale(p.sum()).backward()
        if overflow:
            p.grad[0] = math.nan
        s.step(optimizer)
        s.update()
        seen.append((s.get_scale(), s.state_dict()["_growth_tracker"]))
    assert seen == [(4.0, 1), (12.0, 0), (12.0, 1), (6.0, 0), (6.0, 1), (18.0, 0)]


def test_the_scale_does_not_grow_out_of_float32() -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=0.0)
    s = scaler(init_scale=2.0**127, growth_interval=1)
    (p.sum() * 0).backward()
    s.scale(torch.zeros(()))
    s.step(optimizer)
    s.update()
    assert s.get_scale() == 2.0**127


def test_gradients_can_be_clipped_between_unscale_and_step() -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=1.0)
    s = scaler()
    s.scale(10 * p.sum()).backward()
    s.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
    assert norm.item() == pytest.approx(math.sqrt(300)) and p.grad.norm().item() == pytest.approx(1.0, rel=1e-4)
    s.step(optimizer)
    s.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        s.update()


def test_calls_out_of_order_are_errors() -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=1.0)
    s = scaler()
    with pytest.raises(AssertionError, match=r"Attempted step but _scale is None"):
        s.step(optimizer)
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        s.scale(3.0)
    s.scale(p.sum()).backward()
    s.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        s.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        s.step(optimizer, closure=lambda: None)
    s.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        s.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        s.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning"):
        pickle.dumps(s)
    s.update()
    other = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        s.step(other)
    half = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
    half.grad = torch.ones(1, dtype=torch.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        s.unscale_(torch.optim.SGD([half], lr=1.0))
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError):
            scaler(**wrong)


def test_nested_outputs_keep_their_containers() -> None:
    s = scaler()
    one = torch.ones(())
    scaled = s.scale([one, (one, 2 * one)])
    assert type(scaled) is list and type(scaled[1]) is tuple
    assert [scaled[0].item(), scaled[1][0].item(), scaled[1][1].item()] == [4.0, 4.0, 8.0]


def test_a_disabled_scaler_passes_values_through() -> None:
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=1.0)
    s = scaler(enabled=False)
    loss = p.sum()
    assert s.scale(loss) is loss and s.get_scale() == 1.0 and s.state_dict() == {} and not s.is_enabled()
    loss.backward()
    p.grad[0] = math.inf
    s.step(optimizer)
    s.update()
    assert p.tolist() == [-math.inf, 0.0, 0.0]


def test_the_state_dict_round_trips() -> None:
    s = scaler(growth_interval=7)
    s.scale(torch.ones(()))
    s.update(new_scale=32.0)
    state = s.state_dict()
    assert state == {"scale": 32.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 7, "_growth_tracker": 0}
    fresh = scaler()
    fresh.load_state_dict({**state, "_growth_tracker": 5})
    assert fresh.scale(torch.ones(())).item() == 32.0 and fresh.state_dict() == {**state, "_growth_tracker": 5}
    assert pickle.loads(pickle.dumps(s)).state_dict() == state
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        fresh.load_state_dict({})


def test_cuda_without_a_gpu_warns_and_is_off() -> None:
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.warns(UserWarning, match="CUDA is not available.  Disabling"):
        assert not torch.amp.GradScaler().is_enabled()


def test_float16_training_converges_with_scaling() -> None:
    """Gradients of 1e-8 underflow to zero in float16. With scaling the parameters converge."""
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    target = x @ torch.tensor([1.0, -2.0, 3.0, 0.5])
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * 1e7)
    s = scaler(init_scale=2.0**16)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            y = model(x).squeeze(1)
        loss = torch.nn.functional.mse_loss(y.float(), target) * 1e-7
        s.scale(loss).backward()
        s.step(optimizer)
        s.update()
        losses.append(loss.item())
    assert losses[-1] < 1e-3 * losses[0]
