"""torch.func: values, composition in any order, state outside of the transform, and texts of errors."""
from __future__ import annotations

import threading
import warnings
from collections import namedtuple

import numpy as np
import pytest

import eager as torch
from eager.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)

X = [1.0, 2.0, 3.0]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual.detach().numpy(), np.asarray(expected), rtol=1e-5, atol=1e-6)


# ---- values ----


def test_grad_of_several_arguments_and_trees():
    x, y = torch.tensor(X), torch.tensor([4.0, 5.0, 6.0])
    gx, gy = grad(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(x, y)
    assert_close(gx, [16, 25, 36])
    assert_close(gy, [8, 20, 36])
    found = grad(lambda d: (d["a"] ** 2 * d["b"][0]).sum())({"a": x, "b": (y,)})
    assert_close(found["a"], [8, 20, 36])
    assert_close(found["b"][0], [1, 4, 9])
    assert_close(grad(lambda x, y: (x * y).sum(), argnums=-1)(x, y), X)


def test_grad_and_value_with_aux():
    g, (v, aux) = grad_and_value(lambda x: ((x**2).sum(), {"twice": x * 2}), has_aux=True)(torch.tensor(X))
    assert_close(g, [2, 4, 6])
    assert v.item() == 14.0
    assert_close(aux["twice"], [2, 4, 6])
    assert not g.requires_grad
    assert not v.requires_grad
    assert not aux["twice"].requires_grad


def test_vjp_function_may_be_called_again_and_mapped():
    x = torch.tensor(X)
    y, pull = vjp(lambda x: (x * x, x.sum()), x)
    assert_close(y[0], [1, 4, 9])
    (g,) = pull((torch.ones(3), torch.tensor(10.0)))
    assert_close(g, [12, 14, 16])
    (g,) = pull((torch.zeros(3), torch.tensor(1.0)))
    assert_close(g, [1, 1, 1])
    (rows,) = vmap(pull)((torch.eye(3), torch.zeros(3)))
    assert_close(rows, np.diag([2, 4, 6]))


def test_jvp_of_functions_with_views_and_writes():
    def f(x):
        y = x.clone()
        y[1:].mul_(x[:2])
        y[0] = y[2] * 3
        return y

    x, t = torch.tensor(X), torch.tensor([1.0, 10.0, 100.0])
    value, tangent = jvp(f, (x,), (t,))
    assert_close(value, [18, 2, 6])
    assert_close(tangent, [3 * (10 * 3 + 100 * 2), 1 * 2 + 10 * 1, 10 * 3 + 100 * 2])


def test_linearize_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin() * x

    y, push = linearize(f, torch.tensor(X))
    assert_close(y, np.sin(X) * X)
    for t in ([1.0, 0, 0], [0.5, 2, -1]):
        assert_close(push(torch.tensor(t)), (np.cos(X) * X + np.sin(X)) * t)
    assert len(calls) == 1


def test_jacobians_of_trees_have_output_then_input_dims():
    x, y = torch.randn(2, 3), torch.randn(3)

    def f(x, y):
        return {"p": x * y, "q": x.sum(1)}

    for jacobian in (jacrev, jacfwd):
        found = jacobian(f, argnums=(0, 1))(x, y)
        assert found["p"][0].shape == (2, 3, 2, 3)
        assert found["p"][1].shape == (2, 3, 3)
        assert found["q"][1].shape == (2, 3)
        expected = np.zeros((2, 3, 2, 3))
        for i in range(2):
            for j in range(3):
                expected[i, j, i, j] = y[j].item()
        assert_close(found["p"][0], expected)
        assert_close(found["q"][1], np.zeros((2, 3)))


def test_jacrev_in_chunks_agrees_with_the_whole():
    f = lambda x: (x.sin() * x.sum())  # noqa: E731
    x = torch.randn(5)
    assert_close(jacrev(f, chunk_size=2)(x), jacrev(f)(x).numpy())
    assert_close(jacfwd(f)(x), jacrev(f)(x).numpy())


# ---- composition ----


def cubic(x):
    return (x**3).sum() + x.prod()


def test_every_order_of_jacobians_gives_the_hessian():
    x = torch.tensor([1.0, 2.0, -1.5])
    a, b, c = x.tolist()
    expected = np.array([[6 * a, c, b], [c, 6 * b, a], [b, a, 6 * c]])
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd, grad):
            assert_close(outer(inner(cubic))(x), expected)
    assert_close(hessian(cubic)(x), expected)
    assert_close(vmap(hessian(cubic))(torch.stack([x, x]))[1], expected)


def test_third_derivatives():
    f = lambda x: x**4  # noqa: E731
    x = torch.tensor(2.0)
    assert grad(grad(grad(f)))(x).item() == 48.0
    assert jacfwd(grad(jacfwd(f)))(x).item() == 48.0
    assert jacfwd(jacfwd(jacfwd(f)))(x).item() == 48.0


def test_nested_transforms_do_not_confuse_their_variables():
    # d/dx (x * d/dy (x + y)) = 1, not 2
    assert grad(lambda x: x * grad(lambda y: x + y)(torch.tensor(1.0)))(torch.tensor(1.0)).item() == 1.0

    def inner(x):
        return jvp(lambda y: x + y, (torch.tensor(1.0),), (torch.tensor(1.0),))[1]

    assert jvp(lambda x: x * inner(x), (torch.tensor(1.0),), (torch.tensor(1.0),))[1].item() == 1.0


def test_jvp_of_grad_is_the_hessian_vector_product():
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0])
    f = lambda x: (x[0] ** 2 * x[1] ** 3)  # noqa: E731
    assert_close(jvp(grad(f), (x,), (v,))[1], [2 * 8 * 3 + 2 * 12 * -1, 2 * 12 * 3 + 6 * 2 * -1])
    assert_close(grad(lambda x: jvp(f, (x,), (v,))[1])(x), [2 * 8 * 3 + 2 * 12 * -1, 2 * 12 * 3 + 6 * 2 * -1])


def test_per_sample_gradients_agree_with_a_loop():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                              torch.nn.LayerNorm(16), torch.nn.Linear(16, 3))  # fmt: skip
    params = {k: v.detach() for k, v in net.named_parameters()}
    images, labels = torch.randn(5, 2, 6, 6), torch.tensor([0, 1, 2, 1, 0])

    def loss(params, image, label):
        out = functional_call(net, params, (image.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, label.unsqueeze(0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # every op on the way has a batching rule
        each = vmap(grad(loss), in_dims=(None, 0, 0))(params, images, labels)
    for i in range(5):
        for p in net.parameters():
            p.grad = None
        torch.nn.functional.cross_entropy(net(images[i : i + 1]), labels[i : i + 1]).backward()
        for name, p in net.named_parameters():
            np.testing.assert_allclose(each[name][i].numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_an_ensemble_of_stacked_modules():
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    assert all(p.requires_grad for p in params.values())
    x = torch.randn(5, 3)
    out = vmap(lambda p, b, x: functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
    assert_close(out, np.stack([net(x).detach().numpy() for net in nets]))
    out.sum().backward()
    nets[1](x).sum().backward()
    assert_close(params["0.weight"].grad[1], nets[1][0].weight.grad.numpy())


def test_vmap_of_vmap_and_grad_of_vmap():
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    outer = vmap(vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))
    assert_close(outer(x, y), x.numpy() @ y.numpy().T)
    assert_close(grad(lambda x: vmap(lambda r: (r * r).sum())(x).sum())(x), 2 * x.numpy())
    assert_close(vmap(lambda x: vmap(lambda a: a * x.sum())(x))(x), x.numpy() * x.numpy().sum(1, keepdims=True))


def test_gradients_flow_to_captured_tensors():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.tensor([1.0, 5.0])
    g = grad(lambda x: (x**2 * w).sum())(x)  # 2 x w
    assert g.requires_grad
    (dw,) = torch.autograd.grad(g.sum(), w)
    assert_close(dw, 2 * x.numpy())
    out = vmap(lambda row: (row * w).sum())(torch.stack([x, x]))
    (dw,) = torch.autograd.grad(out.sum(), w)
    assert_close(dw, 2 * x.numpy())
    _, t = jvp(lambda x: x * w, (x,), (torch.ones(2),))
    (dw,) = torch.autograd.grad(t.sum(), w)
    assert_close(dw, [1, 1])
    assert w.grad is None


def test_an_input_with_history_is_differentiated_outside_too():
    x = torch.tensor(3.0, requires_grad=True)
    y = grad(lambda t: t**3)(x * 2)  # 3 (2x)^2 = 12 x^2
    (g,) = torch.autograd.grad(y, x)
    assert g.item() == 72.0


def test_no_grad_stops_a_transform_only_inside_of_it():
    def f(x):
        with torch.no_grad():
            c = x * x
        return (x - c).sum()

    assert_close(grad(f)(torch.ones(2)), [1, 1])
    with torch.no_grad():
        g = grad(lambda x: (x * x).sum())(torch.ones(2, requires_grad=True))
    assert_close(g, [2, 2])
    assert not g.requires_grad


def test_grad_and_jvp_allow_branches_on_values():
    def f(x):
        return (x * 2).sum() if x.sum().item() > 0 and bool(x[0] > 0) else (x * 5).sum()

    assert_close(grad(f)(torch.tensor([1.0, 2.0])), [2, 2])
    assert_close(grad(f)(torch.tensor([-1.0, 2.0])), [5, 5])
    assert jvp(f, (torch.tensor([1.0]),), (torch.tensor([1.0]),))[1].item() == 2.0


# ---- vmap ----


def test_dims_of_inputs_and_outputs():
    x, y = torch.randn(3, 5), torch.randn(3)
    assert_close(vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(x, y), x.numpy() * y.numpy()[:, None])
    Pair = namedtuple("Pair", "a b")
    out = vmap(lambda p: Pair(p.a + p.b, p.a), in_dims=(Pair(0, None),), out_dims=Pair(0, 1))(Pair(x, torch.ones(5)))
    assert out.a.shape == (3, 5)
    assert out.b.shape == (5, 3)
    assert vmap(lambda a: (a, None), out_dims=(0, None))(x)[1] is None
    assert_close(vmap(lambda a: torch.ones(2))(x), np.ones((3, 2)))
    assert vmap(lambda a: a.sum())(torch.ones(0, 2)).shape == (0,)


@pytest.mark.parametrize("chunk", [1, 2, 5, 7])
def test_chunks_give_the_same(chunk):
    x = torch.randn(5, 3)
    assert_close(vmap(lambda a: a * a.sum(), chunk_size=chunk, out_dims=1)(x), (x * x.sum(1, keepdim=True)).numpy().T)


def test_random_numbers_are_the_same_or_differ_or_are_refused():
    x = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(lambda a: a + torch.rand(3))(x)
    same = vmap(lambda a: a + torch.rand(3), randomness="same")(x)
    assert all(row.tolist() == same[0].tolist() for row in same)
    torch.manual_seed(3)
    different = vmap(lambda a: a + torch.randn(3), randomness="different")(x)
    assert len(set(different.reshape(-1).tolist())) == 12
    torch.manual_seed(3)
    after = torch.rand(1)
    assert after.item() not in different.reshape(-1).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # row by row
        counts = vmap(lambda rate: torch.poisson(rate), randomness="different")(torch.full((20, 6), 8.0))
    assert len({tuple(row.tolist()) for row in counts}) > 10
    dropped = vmap(lambda a: torch.nn.functional.dropout(a + 1), randomness="different")(torch.zeros(50, 8))
    assert len({tuple(row.tolist()) for row in dropped}) > 10


def test_zero_dim_rows_promote_as_zero_dim_tensors():
    i = torch.arange(3)
    assert vmap(lambda a: a + torch.ones(2))(i).dtype is torch.float32
    d = torch.ones(3, dtype=torch.float64)
    assert vmap(lambda a: torch.ones(2) * a)(d).dtype is torch.float32
    assert vmap(lambda a: a * torch.tensor(1.0))(d).dtype is torch.float64
    assert vmap(lambda a: torch.ones(2, dtype=torch.int64) * a)(torch.ones(3)).dtype is torch.float32


@pytest.mark.parametrize(("fn", "error", "text"), [
    (lambda x: x.item(), RuntimeError, "vmap: It looks like you're calling .item() on a Tensor"),
    (lambda x: x if x > 0 else -x, RuntimeError, "attempting to use a Tensor in some data-dependent control flow"),
    (lambda x: x.nonzero(), RuntimeError, "output dynamic shape. Attempted to vmap over aten::nonzero"),
    (lambda x: x.numpy(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda x: torch.zeros(()).add_(x), RuntimeError, "vmap: inplace arithmetic(self, *extra_args) is not possible"),
    (lambda x: 3, ValueError, "must only return Tensors, got type <class 'int'>"),
])  # fmt: skip
def test_forbidden_actions_of_a_mapped_function(fn, error, text):
    with pytest.raises(error) as e:
        vmap(fn)(torch.ones(3))
    assert text in str(e.value)


@pytest.mark.parametrize(("call", "text"), [
    (lambda: vmap(abs, in_dims=2)(torch.ones(3)), "vmap(abs, in_dims=2, ...)(<inputs>): Got in_dim=2 for some input, but that input "
     "is a Tensor of dimensionality 1 so expected in_dim to satisfy -1 <= in_dim < 1."),
    (lambda: vmap(max)(torch.ones(3), torch.ones(4)), "Expected all tensors to have the same size in the mapped dimension, got sizes "
     "[3, 4]"),
    (lambda: vmap(abs)(3), "Got in_dim=0 for an input but the input is of type <class 'int'>. We cannot vmap over non-Tensor"),
    (lambda: vmap(abs)(), "vmap(abs)(<inputs>): got no inputs."),
    (lambda: vmap(abs, in_dims=(0, 0))(torch.ones(3)), "in_dims is not compatible with the structure of `inputs`"),
    (lambda: vmap(abs, out_dims=(0, 0))(torch.ones(3)), "out_dims is not compatible with the structure of `outputs`"),
    (lambda: vmap(abs, in_dims=None)(torch.ones(3)), "expected `in_dims` to be int or a (potentially nested) tuple"),
    (lambda: vmap(abs, chunk_size=0)(torch.ones(3)), "chunk_size should be None or greater than 0. (got 0)"),
    (lambda: vmap(lambda x: (x, x), out_dims=(0, None))(torch.ones(3)), "can not return a BatchedTensor when out_dim is None"),
])  # fmt: skip
def test_dims_that_do_not_fit_are_refused(call, text):
    with pytest.raises(ValueError) as e:  # noqa: PT011
        call()
    assert text in str(e.value)


def test_a_row_accepts_a_mapped_index_and_like_functions_make_mapped_tensors():
    v, i = torch.arange(15.0).reshape(3, 5), torch.tensor([0, 3, 1])
    assert vmap(lambda t, i: t[i])(v, i).tolist() == [0.0, 8.0, 11.0]

    def write(t, i):
        t = t.clone()
        t[i] = -1
        return t

    expected = v.clone()
    expected[torch.arange(3), i] = -1
    assert vmap(write)(v, i).tolist() == expected.tolist()

    def fill(make):
        def f(x):
            out = make(x)
            out[0] = x[1]
            out += x
            return out

        return vmap(f)(v)

    first = v.clone()
    first[:, 0] += v[:, 1]
    for make in (torch.zeros_like, lambda x: x.new_zeros(5), lambda x: x.new_full((5,), 0.0)):
        assert fill(make).tolist() == first.tolist()
    pulled = grad(lambda v: vmap(lambda x: torch.zeros_like(x).copy_(x * 2).sum())(v).sum())(v)
    assert pulled.tolist() == [[2.0] * 5] * 3


def test_writes_into_rows_reach_the_caller_as_a_loop_would():
    x = torch.zeros(3, 4)
    vmap(lambda row, i: row[1:3].add_(i))(x, torch.arange(3.0))
    assert_close(x, np.array([[0, i, i, 0] for i in range(3)]))


def test_repr_shows_the_transform_level_and_the_value():
    shown = []
    vmap(lambda x: shown.append(repr(x)) or x)(torch.ones(2))
    grad(lambda x: shown.append(repr(x)) or x.sum())(torch.ones(2))
    assert shown[0] == "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 1.])\n)"
    assert shown[1] == "GradTrackingTensor(lvl=1, value=\n    tensor([1., 1.])\n)"


# ---- refusals of the other transforms ----


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: grad(lambda x: x)(torch.ones(3)), RuntimeError, "Expected f(*args) to return a scalar Tensor, got tensor with 1 dims"),
    (lambda: grad(lambda x: 3)(torch.ones(3)), RuntimeError, "Expected f(*args) to return a Tensor, got <class 'int'>"),
    (lambda: grad(torch.sum, argnums=1)(torch.ones(3)), RuntimeError, "Got argnum=1, but only 1 positional inputs"),
    (lambda: grad(torch.sum, argnums=())(torch.ones(3)), RuntimeError, "argnums must be non-empty"),
    (lambda: grad(torch.sum)(3), ValueError, "Thing passed to transform API must be Tensor, got <class 'int'>"),
    (lambda: grad(torch.sum)(torch.ones(3, dtype=torch.int64)), RuntimeError, "only Tensors of floating point dtype can require"),
    (lambda: grad(lambda x: x.requires_grad_().sum())(torch.ones(3)), RuntimeError, "You are attempting to call Tensor.requires_grad_()"),
    (lambda: grad(lambda x: x.mul_(2).sum())(torch.ones(3)), RuntimeError, "a leaf Variable that requires grad is being used in an"),
    (lambda: vjp(lambda x: 3, torch.ones(3)), RuntimeError, "to return only tensors, got unsupported type <class 'int'>"),
    (lambda: vjp(lambda x: (x, x), torch.ones(3))[1](torch.ones(3)), RuntimeError, "cotangents: *, primal output: (*, *)"),
    (lambda: vjp(lambda x: x, torch.ones(3))[1](torch.ones(2)), RuntimeError, "Mismatch in shape: grad_output[0] has a shape of"),
    (lambda: jvp(lambda x: x, torch.ones(3), torch.ones(3)), RuntimeError, "Expected primals to be a tuple"),
    (lambda: jvp(lambda x: x, (torch.ones(3),), (torch.ones(2),)), RuntimeError,
     "has a different size than that of the original Tensor"),
    (lambda: jacrev(lambda x: x * 1j)(torch.ones(2)), RuntimeError, "jacrev: Expected all outputs to be real"),
    (lambda: jacrev(abs, chunk_size=0), ValueError, "jacrev: `chunk_size` should be greater than 0."),
    (lambda: stack_module_state([]), RuntimeError, "stack_module_state: Expected at least one model, got 0."),
    (lambda: stack_module_state([torch.nn.ReLU(), torch.nn.Tanh()]), RuntimeError, "Expected all models to be of the same class."),
    (lambda: functionalize(abs), NotImplementedError, "functionalize"),
])  # fmt: skip
def test_refused_arguments_of_transforms(call, error, text):
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)


def test_a_captured_tensor_may_not_be_written_but_a_fresh_one_may():
    captured = torch.zeros(3)

    def bad(x):
        captured.add_(x)
        return x.sum()

    for run in (lambda: grad(bad)(torch.ones(3)), lambda: jvp(bad, (torch.ones(3),), (torch.ones(3),))):
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            run()
    assert captured.tolist() == [0.0] * 3

    def good(x):
        out = torch.zeros(3)
        out[0] = x[1] * 2
        return out.sum()

    assert_close(grad(good)(torch.ones(3)), [0, 2, 0])
    assert jvp(good, (torch.ones(3),), (torch.ones(3),))[1].item() == 2.0


def test_hooks_on_saved_tensors_are_refused_by_reverse_mode_only():
    x = torch.ones(2)
    with torch.autograd.graph.save_on_cpu():
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            grad(lambda x: (x * x).sum())(x)
        assert vmap(lambda x: x * x)(x).tolist() == [1.0, 1.0]

    def inside(x):
        with torch.autograd.graph.save_on_cpu():
            return (x * x).sum()

    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        grad(inside)(x)


def test_models_with_hooks_weight_norm_and_autocast():
    net = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    params = {k: v.detach() for k, v in net.named_parameters()}
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append(tuple(go[0].shape)))

    def loss(params):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            return functional_call(net, params, (x,)).pow(2).sum()

    found = grad(loss)(params)
    assert seen == [(2, 3)]
    net(x).pow(2).sum().backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(found[name].numpy(), p.grad.numpy(), rtol=1e-4, err_msg=name)


def test_batch_norm_without_buffers_is_mapped():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(net)(torch.randn(3, 4, 1, 5, 5))
    assert replace_all_batch_norm_modules_(net) is net
    x = torch.randn(3, 4, 1, 5, 5)
    np.testing.assert_allclose(vmap(net)(x)[1].detach().numpy(), net(x[1]).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_threads_have_separate_levels():
    results = []

    def work(k):
        for _ in range(20):
            rows = torch.full((3, 2), float(k))
            results.append(vmap(grad(lambda r: (r**2).sum()))(rows).tolist() == (rows * 2).tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 80
    assert all(results)


def test_a_transform_that_raises_leaves_nothing_behind():
    def fails(x):
        raise ValueError("inside")

    x = torch.ones(2)
    for run in (lambda: grad(fails)(x), lambda: vmap(fails)(x), lambda: jvp(fails, (x,), (x,)), lambda: jacrev(fails)(x)):
        with pytest.raises(ValueError, match="inside"):
            run()
    assert type(x + 1) is torch.Tensor
    assert torch.is_grad_enabled()
    assert grad(lambda x: x.sum())(x).tolist() == [1.0, 1.0]


# ---- under capture ----


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_transforms_inside_and_around_compiled_functions(backend):
    x = torch.tensor(X)

    @torch.compile(backend=backend)
    def inside(x):
        y = x * 2
        return grad(lambda t: (t**3).sum())(y) + vmap(lambda r: r * r.sum())(torch.stack([x, x]))[0]

    for _ in range(2):
        assert_close(inside(x), 3 * (2 * x.numpy()) ** 2 + x.numpy() * 6)
    f = torch.compile(lambda t: t.sin() * t.sum(), backend=backend)
    plain = f(x)  # compiled for plain tensors first
    assert_close(vmap(f)(torch.stack([x, x * 2]))[0], plain.numpy())
    assert_close(grad(lambda t: f(t).sum())(x), np.cos(X) * 6 + np.sin(X).sum())
    assert_close(jvp(f, (x,), (torch.ones(3),))[1], np.cos(X) * 6 + np.sin(X) * 3)

    @torch.compile(backend=backend)
    def takes_gradient(x):
        (g,) = torch.autograd.grad((x * x).sum(), x)
        return g * 2

    assert_close(takes_gradient(x.clone().requires_grad_()), [4, 8, 12])
