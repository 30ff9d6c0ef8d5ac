"""gradcheck, autograd.functional, forward_ad, Variable and the profiler."""
from __future__ import annotations

import json

import numpy as np
import pytest

import eager as torch
from eager import profiler
from eager.autograd import Function, forward_ad, functional, gradcheck, gradgradcheck
from eager.autograd.profiler import profile, record_function
from eager.transforms.finite_differences import GradcheckError

DOUBLE = torch.float64


def real(*values):
    return torch.tensor(values, dtype=DOUBLE, requires_grad=True)


def wrong(forward, backward):
    def run(ctx, x):
        ctx.save_for_backward(x)
        return forward(x)

    return type("Wrong", (Function,), {"forward": staticmethod(run), "backward": staticmethod(
        lambda ctx, g: backward(g, ctx.saved_tensors[0]))}).apply  # fmt: skip


# ---- gradcheck ----


@pytest.mark.parametrize("fast", [False, True])
def test_right_gradients_pass(fast):
    z = torch.tensor([1 + 2j, 2 - 1j], dtype=torch.complex128, requires_grad=True)
    x = real(1.0, 2.0)
    for fn, inputs in ((lambda x: x**3, (x,)), (lambda z: z * z.conj(), (z,)), (lambda z: z.exp(), (z,)), (lambda z: z.abs(), (z,)),
                       (lambda x, z: (x * z, x.sin()), (x, z))):  # fmt: skip
        assert gradcheck(fn, inputs, fast_mode=fast, check_forward_ad=True, check_batched_grad=True, check_grad_dtypes=True)
        assert gradgradcheck(fn, inputs, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_gradients_fail_with_both_jacobians(fast):
    f = wrong(lambda x: x * x, lambda g, x: g * 3)
    with pytest.raises(GradcheckError) as e:
        gradcheck(f, real(1.0, 2.0), fast_mode=fast)
    text = str(e.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:")
    assert "tensor([[3., 0.],\n        [0., 3.]], dtype=torch.float64)" in text
    assert ("in fast mode" in text) == fast
    assert gradcheck(f, real(1.0, 2.0), fast_mode=fast, raise_exception=False) is False
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only, Jacobian mismatch"):
        gradcheck(wrong(lambda z: z * z, lambda g, z: g * 2 * z), z, fast_mode=fast)


def test_other_ways_to_fail():
    x = real(1.0, 2.0)
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(torch.sin, x.detach())
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: (x * x).detach(), x)
    calls = iter(range(100))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(wrong(lambda x: x * 1, lambda g, x: g + next(calls) * 1e-9), x)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, x[None].expand(2, 2))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point or complex"):
        gradcheck(torch.sin, torch.ones(2, requires_grad=True), raise_exception=False)
    second = wrong(lambda x: x**3, lambda g, x: g * (3 * x * x).detach())
    assert gradcheck(second, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(second, x)


# ---- functional ----


def test_products_and_matrices_agree_with_closed_forms():
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for found in (functional.jacobian(torch.exp, x), functional.jacobian(torch.exp, x, vectorize=True),
                  functional.jacobian(torch.exp, x, vectorize=True, strategy="forward-mode")):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), np.diag(np.exp([1, 2])), rtol=1e-6)
        assert not found.requires_grad
    f = lambda x: (x**3).sum()  # noqa: E731
    for found in (functional.hessian(f, x), functional.hessian(f, x, vectorize=True),
                  functional.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode")):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), np.diag([6, 12]))
    assert functional.vjp(lambda x: x * x, x, v)[1].tolist() == [6.0, 16.0]
    assert functional.jvp(lambda x: x * x, x, v)[1].tolist() == [6.0, 16.0]
    assert functional.hvp(f, x, v)[1].tolist() == functional.vhp(f, x, v)[1].tolist() == [18.0, 48.0]
    (a, b), (c, d) = functional.jacobian(lambda x, y: (x * y, x), (x, v))
    assert (a.tolist(), b.tolist(), c.tolist(), d.tolist()) == (
        [[3.0, 0], [0, 4.0]], [[1.0, 0], [0, 2.0]], [[1.0, 0], [0, 1.0]], [[0.0, 0], [0, 0]])  # fmt: skip
    ((_, h12), (h21, h22)) = functional.hessian(lambda x, y: (x * x * y).sum(), (x, v))
    assert h12.tolist() == h21.tolist() == [[2.0, 0], [0, 4.0]]
    assert h22.tolist() == [[0.0, 0], [0, 0]]


def test_results_are_differentiable_on_request():
    x = torch.tensor([2.0], requires_grad=True)
    j = functional.jacobian(lambda x: x**3, x, create_graph=True)
    assert torch.autograd.grad(j.sum(), x)[0].item() == 12.0
    assert functional.jvp(torch.sin, x, torch.ones(1), create_graph=True)[1].requires_grad


@pytest.mark.parametrize(("run", "error", "text"), [
    (lambda x: functional.jacobian(lambda x: 3, x), TypeError, "The outputs of the user-provided function given to jacobian "
     "must be either"),
    (lambda x: functional.jacobian(torch.exp, 3), TypeError, "The inputs given to jacobian must be either a Tensor or a tuple of Tensors"),
    (lambda x: functional.jacobian(lambda x: torch.ones(2), x, strict=True), RuntimeError, "Output 0 of the user-provided function does "
     "not require gradients"),
    (lambda x: functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True), RuntimeError, "The jacobian of the user-provided "
     "function is independent of input 0"),
    (lambda x: functional.hessian(lambda x: x, x), RuntimeError, "The Tensor returned by the function given to hessian should contain a"),
    (lambda x: functional.vjp(lambda x: x, x), RuntimeError, "The vector v can only be None if the user-provided function returns a"),
    (lambda x: functional.vjp(lambda x: x, x, torch.ones(3)), RuntimeError, r"v has invalid size: should be torch.Size\(\[2\]\) but got"),
    (lambda x: functional.hvp(lambda x: x.sum(), x, x, strict=True), RuntimeError, "found that the jacobian of the user-provided function "
     "with respect to input 0 is independent of the input"),
    (lambda x: functional.jacobian(torch.exp, x, strategy="sideways"), AssertionError, "Expected strategy to be either"),
    (lambda x: functional.jacobian(torch.exp, x, strategy="forward-mode"), NotImplementedError, "implemented for `vectorize=True`"),
    (lambda x: functional.jacobian(torch.exp, x, vectorize=True, strict=True), RuntimeError, "`strict=True` and `vectorized=True` are not"),
])  # fmt: skip
def test_refusals_of_functional(run, error, text):
    with pytest.raises(error, match=text):
        run(torch.tensor([1.0, 2.0]))


# ---- forward_ad ----


def test_dual_tensors_carry_tangents_through_a_module():
    lin = torch.nn.Linear(3, 2)
    x, t = torch.randn(4, 3), torch.randn(4, 3)
    with forward_ad.dual_level():
        y = torch.tanh(lin(forward_ad.make_dual(x, t)))
        primal, tangent = forward_ad.unpack_dual(y)
        assert forward_ad.unpack_dual(torch.ones(2)).tangent is None
    expected = (1 - np.tanh(lin(x).detach().numpy()) ** 2) * (t.numpy() @ lin.weight.detach().numpy().T)
    np.testing.assert_allclose(tangent.detach().numpy(), expected, rtol=1e-4, atol=1e-6)
    tangent.sum().backward()  # forward over reverse: the tangent depends on the weights
    assert lin.weight.grad.abs().sum().item() > 0
    assert type(primal) is torch.Tensor


def test_refusals_of_forward_ad():
    ones = torch.ones(3)
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level\\(\\) first"):
        forward_ad.make_dual(ones, ones)
    with forward_ad.dual_level():
        assert "tangent=tensor([1., 1., 1.])" in repr(forward_ad.make_dual(ones, ones))
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"), forward_ad.dual_level():
            pass
        with pytest.raises(RuntimeError, match="has a different size than that of the original Tensor"):
            forward_ad.make_dual(ones, torch.ones(2))
        with pytest.raises(ValueError, match=r"Expected primal to be floating point or complex, but got: torch\.int64"):
            forward_ad.make_dual(torch.ones(3, dtype=torch.int64), ones)
    with pytest.raises(RuntimeError, match="Trying to exit a forward AD level but no level exists"):
        forward_ad.exit_dual_level()


# ---- Variable, profiler ----


def test_variable_is_a_tensor():
    variable = torch.autograd.Variable
    t = torch.ones(2)
    assert variable(t) is t
    x = variable(t, requires_grad=True)
    assert x.requires_grad
    assert not t.requires_grad
    assert isinstance(t, variable)
    assert not isinstance(3, variable)


def test_the_profile_accounts_for_every_op(tmp_path):
    x = torch.randn(8, 8, requires_grad=True)
    with profile(record_shapes=True) as p:
        with record_function("forward"):
            y = torch.softmax(x @ x, -1).sum()
        y.backward()
    by_name = {e.key: e for e in p.key_averages()}
    assert by_name["forward"].count == 1
    assert by_name["aten::mm"].count == 3
    inside = [e for e in p.function_events if e.depth == 1]
    assert {e.name for e in inside} >= {"aten::mm", "aten::softmax", "aten::sum"}
    forward = next(e for e in p.function_events if e.name == "forward")
    assert forward.self_cpu_time_total == pytest.approx(forward.cpu_time_total - sum(e.cpu_time_total for e in inside), abs=1e-3)
    assert any(e.in_backward for e in p.function_events if e.name == "aten::mm")
    assert any(e.input_shapes == [[8, 8], [8, 8]] for e in p.key_averages(group_by_input_shape=True))
    table = p.key_averages().table(sort_by="count", row_limit=1)
    assert "aten::" in table
    assert table.count("aten::") == 1
    assert "Self CPU time total" in table
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == len(p.function_events)
    with pytest.raises(NotImplementedError, match="profile_memory"):
        profile(profile_memory=True)
    with record_function("nothing runs"):
        pass


def test_a_schedule_of_steps_gives_a_trace_per_cycle(tmp_path):
    x, traces = torch.randn(4, 4), []

    def ready(p):
        traces.append({e.name for e in p.events() if e.name.startswith("ProfilerStep")})
        profiler.tensorboard_trace_handler(str(tmp_path), "worker")(p)

    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(i).name for i in range(6)] == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    with profiler.profile(schedule=plan, on_trace_ready=ready) as p:
        for _ in range(12):
            x @ x
            p.step()
    assert traces == [{"ProfilerStep#3", "ProfilerStep#4"}, {"ProfilerStep#7", "ProfilerStep#8"}]
    assert len(list(tmp_path.glob("worker.*.pt.trace.json"))) == 2
    assert {e.key: e.count for e in p.key_averages()}["aten::mm"] == 2
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p:
        x @ x
    assert "aten::mm" in p.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    with pytest.raises(NotImplementedError, match="with_stack"):
        profiler.profile(with_stack=True)
    with pytest.raises(AssertionError, match="no step has been recorded yet"):
        profiler.profile().events()
