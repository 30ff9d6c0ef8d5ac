"""backward and grad: which tensors receive gradients, the order of hooks, and the texts of errors."""
from __future__ import annotations

import gc
import warnings
import weakref

import pytest

import eager as torch
from eager.autograd.graph import (
    GradientEdge,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


# ---- grad and backward ----


def test_grad_returns_a_gradient_for_each_input_and_sets_no_grad_attribute():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = (x * w).sum()
    a, b, c = torch.autograd.grad(y, [x, w, x])
    assert a.tolist() == c.tolist() == [3.0, 4.0]
    assert b.tolist() == [1.0, 2.0]
    assert x.grad is None
    assert w.grad is None


def test_unused_inputs_raise_or_are_none_or_zeros():
    x, other = leaf(1.0), leaf(1.0, 2.0)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"):
        torch.autograd.grad(y, [x, other], retain_graph=True)
    assert torch.autograd.grad(y, [x, other], allow_unused=True, retain_graph=True)[1] is None
    assert torch.autograd.grad(y, [x, other], materialize_grads=True, retain_graph=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        torch.autograd.grad(y, x, allow_unused=False, materialize_grads=True)


def test_batched_gradients_equal_the_gradients_of_the_rows():
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    (rows,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0, 0], [0, 4.0, 0], [0, 0, 6.0]]
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension"):
        torch.autograd.grad(x * x, x, torch.ones(3), is_grads_batched=True)


@pytest.mark.parametrize(("run", "text"), [
    (lambda x: (x * 2).backward(), "grad can be implicitly created only for scalar outputs"),
    (lambda x: torch.autograd.backward([x.sum(), torch.ones(1)]), "element 1 of tensors does not require grad and does not have a grad_fn"),
    (lambda x: (x * 2).backward(torch.ones(2)), r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\) and output\[0\] "
                                                r"has a shape of torch.Size\(\[3\]\)"),
    (lambda x: x.sum().backward(inputs=[]), r"`inputs` argument to `backward\(\)` cannot be empty"),
    (lambda x: torch.autograd.grad(x.sum(), torch.ones(2)), "One of the differentiated Tensors does not require grad"),
    (lambda x: (x * 1j).sum().backward(), "grad can be implicitly created only for real scalar outputs but got torch.complex64"),
    (lambda x: (x * 2).backward(torch.ones(3) * 1j), "both grad_output and output are required to have the same dtype"),
])  # fmt: skip
def test_refused_arguments_of_backward_and_grad(run, text):
    with pytest.raises(RuntimeError, match=text):
        run(leaf(1.0, 2.0, 3.0))


def test_inputs_of_backward_may_be_intermediate():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).sum().backward(inputs=[y, w])
    assert w.grad.item() == 24.0
    assert y.grad.item() == 12.0
    assert x.grad is None


def test_gradient_edges_stand_for_tensors():
    x = leaf(2.0, 3.0)
    y = x * 2
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    z = (y * y).sum()
    assert torch.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [8.0, 12.0]
    del y
    assert torch.autograd.grad(edge, x, torch.ones(2))[0].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge for a Tensor that does not require gradients"):
        get_gradient_edge(torch.ones(1))


def test_backward_within_a_hook_and_a_callback_at_the_end():
    x, other = leaf(1.0), leaf(5.0)
    order = []

    def hook(g):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: order.append("end"))
        with torch.enable_grad():
            (other * other).backward()
        order.append("hook")

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert order == ["hook", "end"]
    assert other.grad.item() == 10.0
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        torch.autograd.Variable._execution_engine.queue_callback(print)


def test_a_long_chain_neither_recurses_nor_leaks():
    x = leaf(1.0)
    y = x
    for _ in range(20000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None


def test_create_graph_accumulates_out_of_place():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    first = x.grad
    (x**2).backward(create_graph=True)
    assert first.item() == 12.0
    assert x.grad.item() == 16.0
    (g,) = torch.autograd.grad(x.grad, x)
    assert g.item() == 14.0


def test_gradients_have_the_strides_of_their_leaves():
    w = torch.randn(3, 4, requires_grad=True)
    (torch.randn(5, 4) @ w.t()).sum().backward()
    assert w.grad.view(-1).shape == (12,)
    first = w.grad.clone()
    (w.t() * torch.ones(4, 3)).sum().backward()
    assert torch.allclose(w.grad, first + 1)
    turned = torch.randn(4, 3).t().requires_grad_()
    (turned * torch.randn(3, 4)).sum().backward()
    assert turned.grad.stride() == turned.stride() == (1, 3)
    gappy = torch.randn(3, 8)[:, ::2].requires_grad_()
    (gappy.t() * 2).sum().backward()
    assert gappy.grad.is_contiguous()
    expanded = torch.ones(3, requires_grad=True)
    expanded.sum().backward()
    assert expanded.grad.stride() == (1,)
    expanded.grad.add_(1)
    assert expanded.grad.tolist() == [2.0] * 3


# ---- hooks ----


def test_hooks_run_in_order_of_registration_and_retain_grad_last():
    x = leaf(1.0, 1.0)
    y = x * 1
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(("a", g.tolist())))
    y.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: seen.append(("b", g.tolist())))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs[0].tolist())))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi[0].tolist(), go[0].tolist())))
    y.sum().backward()
    assert seen == [("a", [1.0, 1.0]), ("b", [2.0, 2.0]), ("pre", [2.0, 2.0]), ("post", [2.0, 2.0], [2.0, 2.0])]
    assert y.grad.tolist() == [2.0, 2.0]


def test_node_hooks_replace_and_are_removed():
    x = leaf(1.0)
    y = x * 2
    with y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None)):
        y.backward(retain_graph=True)
    assert x.grad.item() == 20.0
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.backward(retain_graph=True)
    assert x.grad.item() == 26.0
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    with pytest.raises(RuntimeError, match=r"hook '<lambda>' has returned an incorrect number of values \(got 1, but expected 2\)"):
        y.backward()


@pytest.mark.parametrize(("hook", "error", "text"), [
    (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
    (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
    (lambda g: g.double(), RuntimeError, r"hook '<lambda>' has changed the type of value \(was torch.FloatTensor got torch.DoubleTensor\)"),
])  # fmt: skip
def test_the_result_of_a_hook_is_checked(hook, error, text):
    y = leaf(1.0, 2.0) * 2
    y.register_hook(hook)
    with pytest.raises(error, match=text):
        y.sum().backward()


def test_a_hook_sees_the_value_before_a_write_and_retain_grad_the_value_after_it():
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.retain_grad()
    y.mul_(5)
    y.backward()
    assert seen == [5.0]  # gradient of the value before the write
    assert y.grad.item() == 1.0  # gradient of the value after the write


def test_post_accumulate_hooks_belong_to_leaves():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    assert seen == [2.0]
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)


def test_multi_grad_hooks_run_once_per_backward():
    x, y, unused = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = register_multi_grad_hook([x, y, unused], lambda gs: seen.append([g if g is None else g.item() for g in gs]))
    (x * y).backward()
    (x * y * 2).backward()
    assert seen == [[2.0, 1.0, None], [4.0, 2.0, None]]
    handle.remove()
    (x * y).backward()
    assert len(seen) == 2
    first = []
    register_multi_grad_hook([x, y], lambda g: first.append(g.item()), mode="any")
    (x * y).backward()
    (x * y).backward()
    assert len(first) == 2
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register_multi_grad_hook([x], print, mode="some")


def test_the_graph_can_be_walked():
    x = leaf(1.0)
    y = (x * 2).exp().sum()
    assert y.grad_fn.name() == type(y.grad_fn).__name__ == "SumBackward0"
    exp = y.grad_fn.next_functions[0][0]
    assert exp.name() == "ExpBackward0"
    assert exp._saved_result.item() == pytest.approx(7.389056)
    mul = exp.next_functions[0][0]
    accumulate, number = mul.next_functions[0]
    assert (accumulate.name(), number) == ("torch::autograd::AccumulateGrad", 0)
    assert accumulate.variable is x
    assert mul.next_functions[1] == (None, 0)
    exp.metadata["note"] = 1
    assert y.grad_fn.next_functions[0][0].metadata == {"note": 1}
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        exp._saved_result  # noqa: B018


def test_reading_grad_of_an_intermediate_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_assigned_gradients_are_checked():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[2\]' to a tensor of size '\[3\]'"):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = torch.ones(3).double()
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        x.grad = 3


# ---- versions, views, writes ----


def test_the_text_of_a_version_mismatch_names_the_tensor():
    x, w = leaf(1.0), torch.ones(2, 3)
    y = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: \[torch.FloatTensor \[2, 3\]\] is at version 1; expected "
                                           r"version 0 instead. Hint: enable anomaly detection"):  # fmt: skip
        y.sum().backward()
    a = x.exp()
    z = a * a
    a.add_(1)
    with pytest.raises(RuntimeError, match=r"\[torch.FloatTensor \[1\]\], which is output 0 of Add, is at version 1"):
        z.backward()
    b = x.sin()
    out = b * 2
    increment_version(x)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        out.backward()


def test_writes_to_views_that_history_cannot_follow_are_refused():
    y = leaf(1.0, 2.0, 3.0, 4.0) * 1
    with torch.no_grad():
        view = y.view(2, 2)
        view.add_(0)  # allowed inside the no_grad block
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode enabled"):
        view.mul_(2)
    for parts, name in ((y.unbind(), "Unbind"), (y.split(2), "Split"), (y.chunk(2), "Split"), (y.split([1, 3]), "SplitWithSizes")):
        with pytest.raises(RuntimeError, match=f"Output 0 of {name} is a view and is being modified inplace. This view is the output of a "
                                               "function that returns multiple views"):  # fmt: skip
            parts[0].mul_(2)
    buffer = torch.zeros(4)
    for i, part in enumerate(buffer.unbind()):
        part.fill_(i)  # allowed: no tensor requires grad
    assert buffer.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_writes_along_chains_of_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    z = y.view(2, 2)
    row = z[1]
    row.mul_(10)
    y.narrow(0, 0, 1).exp_()
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == pytest.approx([2.7182817, 2.0, 30.0, 40.0])
    assert type(z.grad_fn).__name__ != "NoneType"


def test_detach_in_place_and_data():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place\. Use detach\(\) instead"):
        (x * 1).view(2).detach_()
    z = (x * x).sum()
    x.data.mul_(10)  # autograd cannot detect the write: `x.data` has a separate version counter
    z.backward()
    assert x.grad.tolist() == [20.0, 40.0]


# ---- saved tensors ----


def test_pack_and_unpack_hooks_receive_the_saved_tensors():
    x = leaf(1.0, 2.0)
    packed = []

    def pack(t):
        packed.append((t.shape, t.requires_grad))
        return t.detach().clone() * 0 + 5

    with saved_tensors_hooks(pack, lambda t: t + 1):
        y = x * x
    y.sum().backward()
    assert packed == [((2,), True)] * 2
    assert x.grad.tolist() == [12.0, 12.0]


def test_second_derivatives_flow_through_saved_tensor_hooks():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy):
        y = x**3
        z = x.exp()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 12.0
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == pytest.approx(7.389056)


def test_invalid_saved_tensor_hooks_are_refused():
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: 3, lambda v: v):
        y = x * x
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
        y.backward()
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), saved_tensors_hooks(print, print):
        pass
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        (x * x).backward()
    assert x.grad.item() == 2.0


def test_save_on_cpu_and_mutation_of_saved_tensors():
    x = leaf(3.0)
    with save_on_cpu():
        y = x * x * x
    y.backward()
    assert x.grad.item() == 27.0
    x.grad = None
    with allow_mutation_on_saved_tensors():
        a = x * 1
        y = a * a
        a.mul_(100)
        y.backward()
    assert x.grad.item() == 6.0


# ---- modes ----


def test_modes_as_contexts_decorators_and_on_generators():
    x = leaf(1.0)

    @torch.no_grad()
    def steps():
        try:
            got = yield (x * 1).requires_grad
            yield got, torch.is_grad_enabled()
        finally:
            yield torch.is_grad_enabled()

    running = steps()
    assert next(running) is False
    assert torch.is_grad_enabled()
    assert running.send("sent") == ("sent", False)
    assert running.throw(KeyError) is False
    assert torch.is_grad_enabled()

    @torch.no_grad
    def plain():
        return (x * 1).requires_grad

    @torch.set_grad_enabled(False)
    def switched():
        return torch.is_grad_enabled()

    assert not plain()
    assert not switched()
    assert torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        with torch.enable_grad():
            assert (x * 1).requires_grad
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)


def test_inference_tensors_are_not_recorded_by_autograd():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        t = torch.ones(2) * 2
        t.add_(1)
        assert t.is_inference()
        assert not x.view(2).is_inference()
        assert torch.autograd.is_inference_mode_enabled()
        with torch.inference_mode(False):
            assert (x * 1).requires_grad
    assert not (t + 1).is_inference()
    assert t.view(2, 1).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        t * x
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        t.add_(1)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        t.requires_grad_()
    assert (t.clone() * x).requires_grad


def test_anomaly_mode_names_the_forward_line():
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        y = (x.sqrt() * 0).sum()  # the line to be named
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0") as seen, \
                pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."):  # fmt: skip
            y.backward()
    assert any("the line to be named" in str(w.message) for w in seen)
    assert not torch.autograd.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.autograd.is_anomaly_enabled()
        (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all()


def test_anomaly_mode_names_what_induced_a_second_derivative():
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (g,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)  # induces
        with pytest.warns(UserWarning, match="Previous calculation was induced by PowBackward0") as seen, \
                pytest.raises(RuntimeError, match="nan values"):  # fmt: skip
            (g * 0).sum().backward()
    assert any("# induces" in str(w.message) for w in seen)


def test_gradients_of_no_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        torch.autograd.grad(torch.ones(2, requires_grad=True).sum(), [])
