"""Autograd: values of gradients, history of in-place writes and views, hooks, custom functions."""
import gc
import weakref

import numpy as np
import pytest

import eager as torch
from eager.autograd import Function


def test_gradients_of_a_chain_are_exact():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ((x * 2 + 1) ** 2).sum().backward()
    assert x.grad.tolist() == [12.0, 20.0, 28.0]


def test_broadcast_gradients_have_the_shape_of_their_input():
    x, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    (x * b).sum().backward()
    assert x.grad.shape == (3, 4) and b.grad.tolist() == [3.0] * 4


def test_gradients_accumulate_and_do_not_share_memory():
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    g = torch.ones(3)
    y.backward(g, retain_graph=True)
    y.backward(g)
    g.fill_(7)
    assert x.grad.tolist() == [2.0] * 3


class _Copies(Exception):
    pass


def copies_none(self, *args, **kwargs):
    raise _Copies(tuple(self.shape))


def of_biased_product(x, w, b, k):
    return (x @ w + b).sum()


def of_channels_last(x, w, b, k):
    return torch.nn.functional.conv2d(x.view(2, 3, 4, 2), k).sum()


def of_numpys_result(x, w, b, k):
    return (w.cumsum(0).flip(0).sort()[0] * b).sum()


LOSSES = (of_biased_product, of_channels_last, of_numpys_result)


@pytest.mark.parametrize(("loss", "compiled"), [*((loss, False) for loss in LOSSES), (of_biased_product, True)])
def test_a_first_gradient_that_only_the_engine_holds_is_not_copied(loss, compiled, monkeypatch):
    x, w, b = torch.randn(6, 8), torch.randn(8, 8), torch.randn(8)
    k = torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last)
    leaves = [t.requires_grad_() for t in (w, b, k)]
    value = (torch.compile(loss) if compiled else loss)(x, *leaves)
    monkeypatch.setattr(torch.Tensor, "clone", copies_none)
    value.backward()
    assert all(t.grad.stride() == t.stride() for t in leaves if t.grad is not None)


def test_a_first_gradient_that_something_else_holds_is_copied():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    seen = []
    y = (a + b) * 2
    y.register_hook(seen.append)
    y.sum().backward()
    for g in (a.grad, b.grad):
        g.fill_(7)
    assert a.grad.data_ptr() != b.grad.data_ptr() and seen[0].tolist() == [1.0] * 3
    memory = np.ones(3, np.float32)
    (c := torch.zeros(3, requires_grad=True)).backward(torch.from_numpy(memory))
    c.grad.fill_(7)
    assert memory.tolist() == [1.0] * 3


def test_second_backward_without_retain_graph_raises():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_create_graph_gives_second_derivatives():
    x = torch.tensor([2.0], requires_grad=True)
    (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert g.item() == 12.0 and h.item() == 12.0


def test_saved_tensor_written_in_place_is_detected():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_inplace_on_a_leaf_that_requires_grad_raises():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x.view(3).add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0] * 3 and x.is_leaf


def test_inplace_keeps_the_gradient_of_the_old_value():
    x, w = torch.tensor([3.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    y = x * 1
    y.mul_(w)  # needs the value of y before the write
    y.backward()
    assert x.grad.item() == 5.0 and w.grad.item() == 3.0


def test_write_through_a_view_reaches_the_base():
    p = torch.ones(2, requires_grad=True)
    base = torch.zeros(4)
    part = base.narrow(0, 1, 2)
    part.copy_(p)
    part.mul_(3)
    assert base.grad_fn is not None and base.tolist() == [0.0, 3.0, 3.0, 0.0]
    base.sum().backward()
    assert p.grad.tolist() == [3.0, 3.0]


def test_write_to_the_base_reaches_its_views():
    p = torch.tensor([2.0, 3.0], requires_grad=True)
    base = p * 1
    view = base.view(2, 1)
    base.mul_(base.detach() * 10)
    view.sum().backward()
    assert p.grad.tolist() == [20.0, 30.0]


def test_gradient_outside_a_written_view_passes_unchanged():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    y.narrow(0, 0, 2).zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0, 2.0]


def test_no_grad_and_enable_grad_nest():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad

    @torch.no_grad()
    def f():
        return x * 2

    assert not f().requires_grad


def test_tensor_hooks_replace_gradients():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    handle = x.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [21.0, 21.0]
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_retain_grad_keeps_the_gradient_of_a_non_leaf():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0] and x.grad.tolist() == [6.0, 6.0]


def test_post_accumulate_hook_runs_after_the_gradient_is_there():
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]]


class _Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.scale, None


def test_custom_function_runs_its_backward():
    x = torch.tensor([2.0], requires_grad=True)
    y = _Cube.apply(x, 2.0)
    y.backward()
    assert y.item() == 16.0 and x.grad.item() == 24.0


def test_grad_of_unused_input_raises_unless_allowed():
    x, z = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(x * 2, [x, z], retain_graph=True)
    gx, gz = torch.autograd.grad(x * 2, [x, z], allow_unused=True)
    assert gx.item() == 2.0 and gz is None


def test_grad_of_an_intermediate():
    x = torch.tensor([3.0], requires_grad=True)
    y = x * 2
    z = y * y
    gy, gx = torch.autograd.grad(z, [y, x])
    assert gy.item() == 12.0 and gx.item() == 24.0 and x.grad is None


def test_graph_is_freed_with_its_tensors():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # keeps its own output
    ref = weakref.ref(y.grad_fn)
    del y
    assert ref() is None, "the node was kept alive by a reference cycle"
    gc.collect()


def test_detach_shares_memory_and_version():
    x = torch.ones(2, requires_grad=True)
    d = x.detach()
    d.mul_(3)
    assert x.tolist() == [3.0, 3.0] and x._version == 1 and not d.requires_grad
    x.data.mul_(2)
    assert x.tolist() == [6.0, 6.0] and x._version == 1


def test_integer_tensors_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()


def test_backward_of_non_scalar_needs_a_gradient():
    with pytest.raises(RuntimeError, match="scalar outputs"):
        torch.ones(2, requires_grad=True).mul(2).backward()
