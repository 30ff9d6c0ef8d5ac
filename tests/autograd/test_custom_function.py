"""autograd.Function: both styles, what ctx offers, refusals, second order, and the function transforms."""
from __future__ import annotations

import numpy as np
import pytest

import eager as torch
from eager.autograd import Function
from eager.autograd.function import once_differentiable
from eager.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.note = "kept"
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 2


class Product(Function):
    """A function with a separate `setup_context` and every optional staticmethod."""

    @staticmethod
    def forward(x, y, scale=1.0):
        return x * y * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx = g * y * ctx.scale if ctx.needs_input_grad[0] else None
        return gx, g * x * ctx.scale if ctx.needs_input_grad[1] else None, None

    @staticmethod
    def jvp(ctx, tx, ty, _):
        x, y = ctx.saved_tensors
        return (tx * y + x * ty) * ctx.scale

    @staticmethod
    def vmap(info, in_dims, x, y, scale):
        dx, dy, _ = in_dims
        x = x if dx is None else x.movedim(dx, 0)
        y = y if dy is None else y.movedim(dy, 0)
        return Product.apply(x, y, scale), 0


class Sine(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


def test_saved_tensors_have_an_old_name():
    y = Square.apply(leaf(3.0))
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        assert y.grad_fn.saved_variables[0].item() == 3.0


def test_ctx_is_the_node_of_the_result():
    x = leaf(3.0)
    y = Square.apply(x)
    assert y.grad_fn.name() == type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.note == "kept"
    assert y.grad_fn.saved_tensors[0] is x
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 2.0
    Square.apply(x).backward()
    assert x.grad.item() == 6.0
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_setup_context_needs_input_grad_and_keywords():
    x, y = leaf(2.0), torch.tensor([5.0])
    out = Product.apply(x, y, scale=10.0)
    out.backward()
    assert x.grad.item() == 50.0
    assert out.grad_fn.needs_input_grad == (True, False, False)


def test_gradients_are_fitted_to_the_inputs():
    class Expanding(Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(4, 3)

        @staticmethod
        def backward(ctx, g):
            return g.double()

    x = leaf(1.0, 2.0, 3.0)
    Expanding.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    assert x.grad.dtype is torch.float32


def test_several_outputs_missing_gradients_and_constants():
    seen = []

    class Pair(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            a, b, c = x * 2, x * 3, x.argmax()
            d = x * 5
            ctx.mark_non_differentiable(d)
            return a, b, c, d, 7

        @staticmethod
        def backward(ctx, *gs):
            seen.append([None if g is None else g.tolist() for g in gs])
            return sum(g for g in gs[:2] if g is not None), None

    x = leaf(1.0, 2.0)
    a, _, c, d, seven = Pair.apply(x, True)
    assert seven == 7
    assert not c.requires_grad
    assert not d.requires_grad
    a.sum().backward()
    Pair.apply(x, False)[0].sum().backward()
    assert seen[0][:2] == [[1.0, 1.0], [0.0, 0.0]]
    assert seen[0][4] is None
    assert seen[1] == [[1.0, 1.0], None, None, None, None]
    assert x.grad.tolist() == [2.0, 2.0]


def test_inputs_written_in_place_and_passed_through():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    assert Double.apply(y) is y
    part = y[:2]
    assert Double.apply(part) is part
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Double.apply(x)
    z = x * 1
    passed = Same.apply(z)
    assert passed is not z
    assert passed._is_view()
    (g,) = torch.autograd.grad(passed.sum(), x)
    assert g.tolist() == [7.0] * 3


def _broken(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g):
    return type("Broken", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


@pytest.mark.parametrize(("cls", "args", "text"), [
    (_broken(backward=lambda ctx, g: (g, g)), (), r"function BrokenBackward returned an incorrect number of gradients \(expected 1, "
     r"got 2\)"),
    (_broken(lambda ctx, x, k: x * k, lambda ctx, g: (g, g)), (2,), "returned a gradient different than None at position 2, but the "
     "corresponding forward input was not a Variable"),
    (_broken(backward=lambda ctx, g: 3), (), r"expected Variable or None \(got int\)"),
    (_broken(backward=lambda ctx, g: g[:1]), (), r"returned an invalid gradient at index 0 - got \[1\] but expected shape compatible with "
     r"\[2\]"),
    (type("Broken", (Square,), {"vjp": staticmethod(lambda ctx, g: g)}), (), "Implementing both 'backward' and "
     "'vjp' for a custom Function"),
])  # fmt: skip
def test_a_wrong_backward_is_refused(cls, args, text):
    with pytest.raises(RuntimeError, match=text):
        cls.apply(leaf(1.0, 2.0), *args).sum().backward()


def test_a_wrong_forward_is_refused():
    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match=r"You must implement the forward function for custom autograd\.Function\."):
        type("Empty", (Function,), {}).apply(x)
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        _broken(lambda ctx, x: ctx.save_for_backward(3) or x * 2).apply(x)
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"):
        _broken(lambda ctx, x: ctx.mark_dirty(x) or x * 2).apply(x * 1)
    no_backward = type("NoBackward", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        no_backward.apply(x).backward()
    with pytest.warns(DeprecationWarning, match="should not be instantiated"), \
            pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):  # fmt: skip
        Square()(x)


def test_once_differentiable_refuses_the_second_time_only():
    class Once(Square):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 2

    x = leaf(3.0)
    (g,) = torch.autograd.grad(Once.apply(x), x, create_graph=True)
    assert g.item() == 6.0
    (g,) = torch.autograd.grad(Once.apply(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        torch.autograd.grad(Once.apply(x * x).mul(x), x, create_graph=True)[0].backward()


def test_transforms_of_custom_functions():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    f = lambda x, y: Product.apply(x, y, 2.0).sum()  # noqa: E731
    gx, gy = grad(f, argnums=(0, 1))(x, y)
    assert (gx.tolist(), gy.tolist()) == ([6.0, 10.0], [2.0, 4.0])
    value, tangent = jvp(lambda x, y: Product.apply(x, y, 2.0), (x, y), (torch.ones(2), torch.zeros(2)))
    assert (value.tolist(), tangent.tolist()) == ([6.0, 20.0], [6.0, 10.0])
    rows = torch.arange(6.0).reshape(3, 2)
    assert vmap(lambda r: Product.apply(r, y, 2.0))(rows).tolist() == (rows * y * 2).tolist()
    assert vmap(grad(lambda r: Product.apply(r, r, 1.0).sum()))(rows).tolist() == (2 * rows).tolist()
    expected = np.diag([4.0, 4.0])
    np.testing.assert_allclose(hessian(lambda x: Product.apply(x, x, 2.0).sum())(x).numpy(), expected)
    np.testing.assert_allclose(jacrev(grad(lambda x: Product.apply(x, x, 2.0).sum()))(x).numpy(), expected)
    np.testing.assert_allclose(jacfwd(lambda x: Product.apply(x, y, 1.0))(x).numpy(), np.diag(y.numpy()))


def test_forward_mode_of_either_style():
    class Old(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp()

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    x = leaf(0.0, 1.0)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
        y, t = torch.autograd.forward_ad.unpack_dual(Old.apply(dual))
        _, u = torch.autograd.forward_ad.unpack_dual(Product.apply(dual, dual, 3.0))
    np.testing.assert_allclose(t.detach().numpy(), np.exp([0.0, 1.0]), rtol=1e-6)
    assert u.tolist() == [0.0, 6.0]
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.0, 1.0]), rtol=1e-6)


def test_a_generated_vmap_rule_maps_forward_and_backward():
    rows = torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = vmap(Sine.apply)(rows)
    np.testing.assert_allclose(out.detach().numpy(), np.sin(rows.detach().numpy()), rtol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(rows.grad.numpy(), np.cos(rows.detach().numpy()), rtol=1e-6)
    per_row = vmap(grad(lambda r: Sine.apply(r).sum()))(rows.detach())
    np.testing.assert_allclose(per_row.numpy(), np.cos(rows.detach().numpy()), rtol=1e-6)
    _, pull = vjp(lambda w: vmap(lambda r: Sine.apply(w) * r)(rows.detach()).sum(0), torch.ones(2))
    np.testing.assert_allclose(pull(torch.ones(2))[0].numpy(), np.cos(1.0) * rows.detach().sum(0).numpy(), rtol=1e-6)


def test_transforms_refuse_what_a_function_does_not_offer():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        grad(lambda x: Square.apply(x).sum())(x)
    plain = type("Plain", (Sine,), {"generate_vmap_rule": False})
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have vmap support"):
        vmap(plain.apply)(x)
    with pytest.raises(NotImplementedError, match=r"You must implement the jvp function for custom autograd\.Function"):
        jvp(Sine.apply, (x,), (x,))
    both = type("Both", (Product,), {"generate_vmap_rule": True})
    with pytest.raises(RuntimeError, match="it has both generate_vmap_rule=True and an overridden vmap"):
        vmap(lambda x: both.apply(x, x, 1.0))(x)
