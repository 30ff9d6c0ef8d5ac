"""Behaviour besides numbers: validation, lazy attributes, caches of transforms, registration, compiled code."""

from __future__ import annotations

import pickle
import warnings

import pytest

import eager as torch

D = torch.distributions


def test_validation_can_be_turned_off() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    d = D.Uniform(0.0, 1.0, validate_args=False)
    assert d.log_prob(torch.tensor(2.0)).item() == -float("inf")
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="set_default_validate_args"):
        D.Distribution.set_default_validate_args(2)


def test_numbers_and_tensors_broadcast() -> None:
    d = D.Normal(0, torch.ones(2, 1))
    assert d.batch_shape == (2, 1) and d.loc.dtype is torch.float32 and d.loc.shape == (2, 1)
    assert D.Normal(0, 1).sample().dtype is torch.float32
    assert D.Normal(torch.zeros(3, dtype=torch.float64), 1).sample().dtype is torch.float64
    assert D.Normal(torch.zeros(3), torch.ones(2, 1)).batch_shape == (2, 3)


def test_lazy_parameters_keep_their_gradient() -> None:
    p = torch.tensor([0.3, 0.6], requires_grad=True)
    d = D.Bernoulli(p)
    with torch.no_grad():
        d.logits
    assert "logits" in d.__dict__ and d.logits.requires_grad
    assert isinstance(D.Bernoulli.logits, object) and D.Categorical(torch.ones(3)).logits.shape == (3,)


def test_expand_shares_parameters_and_keeps_validation() -> None:
    d = D.Normal(torch.zeros(2), torch.ones(2), validate_args=False)
    e = d.expand((3, 2))
    assert e.loc.data_ptr() == d.loc.data_ptr() and e._validate_args is False and e.batch_shape == (3, 2)

    class Mine(D.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Mine().expand((2,))


def test_reinforce_and_reparametrised_training_both_find_the_mode() -> None:
    torch.manual_seed(0)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(150):
        d = D.Categorical(logits=logits)
        action = d.sample((32,))
        reward = (action == 1).float()
        loss = -(d.log_prob(action) * (reward - reward.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[1] > 0.9


def test_transforms_with_a_cache_invert_exactly() -> None:
    x = torch.tensor([20.0, -20.0])  # tanh is 1 here: only the cache knows where it came from
    t = D.TanhTransform(cache_size=1)
    assert torch.equal(t.inv(t(x)), x)
    assert not torch.isfinite(D.TanhTransform().inv(D.TanhTransform()(x))).all()
    assert t.inv.inv is t and D.ExpTransform() == D.ExpTransform() and D.ExpTransform() != D.TanhTransform()
    assert D.AffineTransform(0, 2) == D.AffineTransform(0, 2) and D.AffineTransform(0, 2) != D.AffineTransform(1, 2)
    assert pickle.loads(pickle.dumps(D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1, 2)])))(torch.zeros(1)).tolist() == [3.0]


def test_squashed_policies_have_finite_densities() -> None:
    torch.manual_seed(0)
    base = D.Normal(torch.zeros(4), 2 * torch.ones(4))
    d = D.TransformedDistribution(base, [D.TanhTransform(cache_size=1)])
    assert bool(torch.isfinite(d.log_prob(d.rsample((100,)))).all())


def test_a_divergence_can_be_registered() -> None:
    class P(D.Normal):
        pass

    class Q(D.Normal):
        pass

    assert torch.equal(D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)), torch.tensor(0.5))  # the formula of the nearest base classes

    @D.register_kl(P, Q)
    def _formula(p: P, q: Q) -> torch.Tensor:
        return torch.tensor(42.0)

    assert D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)).item() == 42.0
    assert D.kl_divergence(Q(0.0, 1.0), P(1.0, 1.0)).item() == 0.5
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        D.register_kl(int, Q)

    class Both(P, Q):
        pass

    D.register_kl(P, D.Normal)(lambda p, q: torch.tensor(1.0))
    D.register_kl(D.Normal, Q)(lambda p, q: torch.tensor(2.0))

    class R(Q):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert D.kl_divergence(P(0.0, 1.0), R(1.0, 1.0)).item() == 42.0


def test_constraints_describe_their_check() -> None:
    c = D.constraints
    checks = [
        (c.positive, [1.0, 0.0, -1.0], [True, False, False]), (c.nonnegative, [1.0, 0.0, -1.0], [True, True, False]),
        (c.real, [1.0, float("nan")], [True, False]), (c.boolean, [0.0, 1.0, 0.5], [True, True, False]),
        (c.nonnegative_integer, [0.0, 3.0, 0.5, -1.0], [True, True, False, False]),
        (c.unit_interval, [0.0, 1.0, 1.5], [True, True, False]),
        (c.integer_interval(1, 3), [0.0, 1.0, 2.5, 3.0], [False, True, False, True]),
        (c.half_open_interval(0, 1), [0.0, 1.0], [True, False]),
        (c.greater_than(2), [2.0, 3.0], [False, True]), (c.less_than(2), [2.0, 1.0], [False, True]),
    ]  # fmt: skip
    for constraint, values, expected in checks:
        assert constraint.check(torch.tensor(values)).tolist() == expected, constraint
    eye = torch.eye(2)
    assert c.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert c.lower_cholesky.check(eye).item() and not c.lower_cholesky.check(torch.ones(2, 2)).item()
    assert c.positive_definite.check(eye).item() and not c.positive_definite.check(-eye).item()
    assert c.positive_semidefinite.check(torch.zeros(2, 2)).item() and not c.positive_definite.check(torch.zeros(2, 2)).item()
    assert not c.symmetric.check(torch.tensor([[1.0, 2.0], [0.0, 1.0]])).item() and c.square.check(eye).item()
    assert c.corr_cholesky.check(eye).item() and not c.corr_cholesky.check(2 * eye).item()
    assert c.one_hot.check(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).tolist() == [True, False]
    assert c.cat([c.positive, c.real], -1).check(torch.tensor([-1.0, -1.0])).tolist() == [False, True]
    assert c.stack([c.positive, c.real], -1).check(torch.tensor([-1.0, -1.0])).tolist() == [False, True]
    assert c.is_dependent(D.Uniform.support) and not c.is_dependent(c.real)
    with pytest.raises(ValueError, match="dependent constraint"):
        c.dependent.check(eye)


def test_unconstrained_parameters_become_valid_ones() -> None:
    torch.manual_seed(0)
    for constraint, shape in ((D.constraints.positive, (3,)), (D.constraints.simplex, (3,)), (D.constraints.unit_interval, (3,)),
                              (D.constraints.lower_cholesky, (3, 3)), (D.constraints.positive_definite, (3, 3)),
                              (D.constraints.corr_cholesky, (3,)), (D.constraints.interval(-2.0, 5.0), (3,))):  # fmt: skip
        x = torch.randn(shape)
        y = D.transform_to(constraint)(x)
        assert bool(constraint.check(y).all()), constraint


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_densities_and_draws_in_compiled_code(backend: str) -> None:
    def loss(mean: torch.Tensor, log_scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = D.Normal(mean, log_scale.exp())
        z = q.rsample((2,))
        return q.log_prob(z).sum(), D.kl_divergence(q, D.Normal(torch.zeros(3), torch.ones(3))).sum(), z

    mean, log_scale = torch.tensor([0.1, 0.2, 0.3], requires_grad=True), torch.tensor([0.0, -1.0, 0.5], requires_grad=True)
    compiled = torch.compile(loss, backend=backend)
    for _ in range(2):
        torch.manual_seed(3)
        expected = loss(mean, log_scale)
        torch.manual_seed(3)
        got = compiled(mean, log_scale)
        torch.testing.assert_close(got, expected)
        wanted = torch.autograd.grad(sum(t.sum() for t in expected), (mean, log_scale))
        torch.testing.assert_close(torch.autograd.grad(sum(t.sum() for t in got), (mean, log_scale)), wanted)


def test_a_compiled_categorical_is_one_graph_for_all_sizes() -> None:
    net = torch.nn.Linear(4, 3)

    def losses(x, action):  # type: ignore[no-untyped-def]
        d = D.Categorical(logits=net(x), validate_args=False)
        return d.log_prob(action), d.entropy()

    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(losses, backend=counter)
    for n in (8, 12, 9):
        x, action = torch.randn(n, 4), torch.randint(0, 3, (n,))
        for got, want in zip(compiled(x, action), losses(x, action), strict=True):
            torch.testing.assert_close(got, want)
    assert counter.frame_count == 2  # the second graph serves every size


def test_the_inverse_of_a_transform_has_torchs_class() -> None:
    assert type(D.ExpTransform().inv) is D.transforms._InverseTransform
