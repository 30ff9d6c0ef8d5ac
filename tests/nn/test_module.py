"""Module: registration, the tree, hooks, state dicts, the epoch, and torch's error texts."""
from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import eager
from eager import _native, nn
from eager.nn import functional as F


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.register_buffer("scale", eager.ones(2))
        self.register_buffer("scratch", eager.zeros(1), persistent=False)
        self.tied = self.first

    def forward(self, x: Any) -> Any:
        return self.rest(self.first(x)) * self.scale


def bumps(change: Any) -> bool:
    before = _native.epoch()
    change()
    return bool(_native.epoch() != before)


# ---- the tree ----


def test_names_are_listed_once_and_in_order() -> None:
    m = Net()
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "first.bias", "rest.1.weight"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)][-2:] == ["tied.weight", "tied.bias"]
    assert [n for n, _ in m.named_buffers()] == ["scale", "scratch"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [n for n, _ in m.named_children()] == ["first", "rest"]
    assert [n for n, _ in m.named_parameters(prefix="a", recurse=False)] == []


def test_lookup_by_dotted_name() -> None:
    m = Net()
    assert m.get_submodule("rest.1") is m.rest[1]
    assert m.get_submodule("") is m
    assert m.get_parameter("rest.1.weight") is m.rest[1].weight
    assert m.get_buffer("scale") is m.scale
    with pytest.raises(AttributeError, match=r"Sequential has no attribute `7`"):
        m.get_submodule("rest.7")
    with pytest.raises(AttributeError, match=r"`scale` is not an nn.Parameter"):
        m.get_parameter("scale")
    m.set_submodule("rest.1", nn.Identity())
    assert isinstance(m.rest[1], nn.Identity)


def test_missing_attribute_names_the_class() -> None:
    with pytest.raises(AttributeError, match=r"'Net' object has no attribute 'nothing'"):
        Net().nothing


def test_apply_visits_children_first() -> None:
    seen: list[str] = []
    Net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_train_and_eval_reach_the_whole_tree() -> None:
    m = Net().eval()
    assert not any(x.training for x in m.modules())
    assert all(x.training for x in m.train().modules())
    with pytest.raises(ValueError, match=r"training mode is expected to be boolean"):
        m.train(1)  # type: ignore[arg-type]


# ---- assignment ----


def test_assignment_moves_names_between_registries() -> None:
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(eager.ones(2))
    assert "x" in m._parameters and "x" not in m.__dict__
    del m.x
    m.x = nn.Linear(1, 1)
    assert "x" in m._modules and "x" not in m._parameters
    del m.x
    assert not hasattr(m, "x")
    m.y = nn.Buffer(eager.zeros(1), persistent=False)
    assert "y" in m._buffers and "y" in m._non_persistent_buffers_set
    m.y = eager.ones(1)
    assert float(m._buffers["y"]) == 1.0
    m.p = nn.Parameter(eager.ones(1))
    m.p = None
    assert m._parameters["p"] is None


ERRORS = [
    (lambda m: setattr(m, "p", eager.ones(1)), TypeError,
     r"cannot assign 'torch.FloatTensor' as parameter 'p' \(torch.nn.Parameter or None expected\)"),
    (lambda m: setattr(m, "child", 3), TypeError, r"cannot assign 'int' as child module 'child' \(torch.nn.Module or None expected\)"),
    (lambda m: setattr(m, "buf", "no"), TypeError,
     r"cannot assign 'str' as buffer 'buf' \(torch.nn.Buffer, torch.Tensor or None expected\)"),
    (lambda m: m.register_buffer("p", None), KeyError, "attribute 'p' already exists"),
    (lambda m: m.register_buffer("a.b", None), KeyError, r'buffer name can\\?\'t contain "."'),
    (lambda m: m.register_buffer("", None), KeyError, r'buffer name can\\?\'t be empty string ""'),
    (lambda m: m.register_buffer("z", 3), TypeError, r"cannot assign 'int' object to buffer 'z' \(torch Tensor or None required\)"),
    (lambda m: m.register_parameter("z", eager.ones(1)), TypeError,
     r"cannot assign 'torch.FloatTensor' object to parameter 'z' \(torch.nn.Parameter or None required\)"),
    (lambda m: m.add_module("z", 3), TypeError, "int is not a Module subclass"),
    (lambda m: m(1), NotImplementedError, r'Module \[Module\] is missing the required "forward" function'),
    (lambda m: m.to(eager.int64), TypeError, "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "error", "text"), ERRORS)
def test_errors_have_torchs_class_and_text(action: Any, error: type[Exception], text: str) -> None:
    m = nn.Module()
    m.p = nn.Parameter(eager.ones(1))
    m.child = nn.Module()
    m.register_buffer("buf", eager.ones(1))
    with pytest.raises(error, match=text):
        action(m)


def test_assigning_before_init_is_refused() -> None:
    class Early(nn.Module):
        def __init__(self, value: Any) -> None:
            self.x = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early(nn.Parameter(eager.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Early(nn.Identity())


def test_parameter_needs_a_leaf_and_a_floating_dtype() -> None:
    m = nn.Module()
    p = nn.Parameter(eager.ones(2))
    with pytest.raises(RuntimeError, match=r"Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(eager.tensor([1]))
    assert isinstance(p, eager.Tensor) and p.requires_grad and p.is_leaf
    with pytest.raises(TypeError):
        m.register_parameter("y", p * 2)  # type: ignore[arg-type]


# ---- the epoch ----


def test_structure_and_attributes_bump_the_epoch() -> None:
    m = Net()
    assert bumps(lambda: setattr(m, "new", nn.Identity()))
    assert bumps(lambda: setattr(m, "flag", 1))
    assert not bumps(lambda: setattr(m, "flag", 1))
    assert bumps(lambda: setattr(m, "flag", 2))
    assert bumps(lambda: setattr(m, "flag", 2.0))
    assert bumps(lambda: delattr(m, "flag"))
    assert bumps(lambda: m.eval())
    assert not bumps(lambda: m.eval())
    assert bumps(lambda: m._parameters.update(direct=nn.Parameter(eager.ones(1))))
    assert bumps(lambda: m._modules.pop("new"))
    handle: list[Any] = []
    assert bumps(lambda: handle.append(m.register_forward_hook(lambda *a: None)))
    assert bumps(lambda: handle[0].remove())
    assert bumps(lambda: m.first.weight.requires_grad_(False))
    assert bumps(lambda: setattr(m.first.weight, "data", eager.zeros(4, 3)))
    assert bumps(lambda: m.double())


def test_calls_and_training_do_not_bump_the_epoch() -> None:
    m = Net()
    optimizer = eager.optim.AdamW(m.parameters())
    x = eager.randn(5, 3)
    m(x).sum().backward()
    optimizer.step()

    def step() -> None:
        optimizer.zero_grad()
        m(x).sum().backward()
        optimizer.step()

    assert not bumps(step)


# ---- conversions ----


def test_conversion_keeps_parameter_identity_and_gradients() -> None:
    m = Net()
    m(eager.ones(1, 3)).sum().backward()
    p = m.first.weight
    m.double()
    assert m.first.weight is p and p.dtype is eager.float64 and p.grad.dtype is eager.float64
    assert m.scale.dtype is eager.float64
    assert m.half().first.bias.dtype is eager.float16 and m.to("cpu", eager.bfloat16).scale.dtype is eager.bfloat16
    m.register_buffer("count", eager.tensor([1]))
    assert m.float().count.dtype is eager.int64
    m.zero_grad(set_to_none=False)
    assert float(p.grad.abs().sum()) == 0.0
    m.zero_grad()
    assert p.grad is None


def test_deepcopy_and_pickle_are_independent_copies() -> None:
    m = Net()
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert twin.tied is twin.first and twin.first is not m.first
        assert isinstance(twin.first.weight, nn.Parameter) and twin.first.weight._is_param
        assert (twin.first.weight == m.first.weight).all()
        with eager.no_grad():
            twin.first.weight.add_(1)
        assert not (twin.first.weight == m.first.weight).any()
        assert twin(eager.ones(1, 3)).shape == (1, 2)


def test_meta_device_holds_no_data() -> None:
    m = nn.Linear(3, 4, device="meta")
    assert m.weight.device.type == "meta" and m(eager.empty(2, 3, device="meta")).shape == (2, 4)
    m.to_empty(device="cpu")
    m.load_state_dict(nn.Linear(3, 4).state_dict())
    assert m(eager.ones(1, 3)).device.type == "cpu"


# ---- printing ----


def test_printed_form() -> None:
    m = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()), nn.ModuleList([nn.GELU(), nn.GELU()]))
    assert repr(m) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        "  (2): ModuleList(\n"
        "    (0-1): 2 x GELU(approximate='none')\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Dropout(0.2)) == "Dropout(p=0.2, inplace=False)"
    assert repr(nn.Conv2d(1, 2, 3, padding=1)) == "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    assert repr(nn.ModuleDict({"a": nn.Tanh()})) == "ModuleDict(\n  (a): Tanh()\n)"
    text = repr(nn.ParameterList([nn.Parameter(eager.ones(2, 3)), 5]))
    assert text == ("ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Object of type: int\n)")


# ---- hooks ----


def test_forward_hooks_see_and_replace() -> None:
    m = nn.Linear(2, 2)
    seen: list[str] = []
    handles = [
        m.register_forward_pre_hook(lambda mod, args: (seen.append("pre"), (args[0] * 0,))[1]),
        m.register_forward_hook(lambda mod, args, out: (seen.append("post"), out + 1)[1]),
        m.register_forward_pre_hook(lambda mod, args, kwargs: seen.append("kw"), with_kwargs=True, prepend=True),
    ]
    out = m(eager.ones(1, 2))
    assert seen == ["kw", "pre", "post"]
    assert eager.allclose(out, m.bias + 1)
    for h in handles:
        h.remove()
    assert not (m._forward_hooks or m._forward_pre_hooks or m._forward_pre_hooks_with_kwargs)
    with m.register_forward_hook(lambda *a: seen.append("once")):
        m(eager.ones(1, 2))
    m(eager.ones(1, 2))
    assert seen[3:] == ["once"]


def test_always_called_hook_runs_although_forward_raises() -> None:
    class Bad(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("inside")

    seen: list[Any] = []
    m = Bad()
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match=r"inside"):
        m(1)
    assert seen == [None]


def test_backward_hooks_see_and_replace_gradients() -> None:
    m = nn.Linear(2, 1, bias=False)
    seen: dict[str, Any] = {}

    def pre(mod: Any, grad_output: Any) -> Any:
        seen["pre"] = grad_output[0].tolist()
        return (grad_output[0] * 2,)

    def post(mod: Any, grad_input: Any, grad_output: Any) -> Any:
        seen["output"] = grad_output[0].tolist()
        return (grad_input[0] * 10,)

    m.register_full_backward_pre_hook(pre)
    m.register_full_backward_hook(post)
    x = eager.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    assert seen == {"pre": [[1.0]], "output": [[2.0]]}
    assert eager.allclose(x.grad, m.weight.detach() * 20)
    assert eager.allclose(m.weight.grad, eager.full((1, 2), 2.0))


def test_global_hooks_see_every_module() -> None:
    seen: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, o: seen.append(type(m).__name__))
    Net()(eager.ones(1, 3))
    handle.remove()
    Net()(eager.ones(1, 3))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


# ---- state dicts ----


def test_state_dict_round_trip_shares_and_copies() -> None:
    m, other = Net(), Net()
    state = m.state_dict()
    assert list(state) == ["scale", "first.weight", "first.bias", "rest.1.weight", "tied.weight", "tied.bias"]
    assert isinstance(state, OrderedDict) and state._metadata["first"] == {"version": 1}
    assert not state["first.weight"].requires_grad
    assert state["first.weight"].data_ptr() == m.first.weight.data_ptr()
    assert m.state_dict(keep_vars=True)["first.weight"] is m.first.weight
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert (other.rest[1].weight == m.rest[1].weight).all()
    assert other.rest[1].weight.data_ptr() != m.rest[1].weight.data_ptr()


def test_load_errors_list_everything() -> None:
    m = Net()
    state = dict(m.state_dict())
    state["extra"] = state.pop("scale")
    state["first.bias"] = eager.zeros(7)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([7]) from checkpoint, the shape in current model "
        "is torch.Size([4])."
    )
    del state["first.bias"]
    keys = m.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["scale", "first.bias"] and keys.unexpected_keys == ["extra"]
    with pytest.raises(TypeError, match=r"Expected state_dict to be dict-like, got <class 'list'>."):
        m.load_state_dict([])  # type: ignore[arg-type]


def test_load_with_assign_takes_the_tensors() -> None:
    m = Net()
    state = {k: v.clone().double() for k, v in Net().state_dict().items()}
    m.load_state_dict(state, assign=True)
    assert m.first.weight.dtype is eager.float64 and isinstance(m.first.weight, nn.Parameter)
    assert m.rest[1].weight.data_ptr() == state["rest.1.weight"].data_ptr()
    assert m.scale is state["scale"]


def test_state_hooks_and_extra_state() -> None:
    class Extra(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value = 1

        def get_extra_state(self) -> Any:
            return {"value": self.value}

        def set_extra_state(self, state: Any) -> None:
            self.value = state["value"]

    a, b = nn.Sequential(Extra()), nn.Sequential(Extra())
    a[0].value = 5
    seen: list[str] = []
    a.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append("pre"))
    a._register_state_dict_hook(lambda m, sd, prefix, meta: seen.append("post"))
    b.register_load_state_dict_post_hook(lambda m, keys: seen.append("loaded"))
    b.register_load_state_dict_pre_hook(lambda m, *args: seen.append("loading"))
    state = a.state_dict()
    assert list(state) == ["0._extra_state"]
    b.load_state_dict(state)
    assert b[0].value == 5 and seen == ["pre", "post", "loading", "loaded"]


# ---- containers ----


def test_sequential_behaves_as_a_list() -> None:
    m = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU()))
    assert m.a is m[0] and len(m) == 2 and m[-1] is m.b
    m.append(nn.Linear(3, 1))
    assert list(m._modules) == ["a", "b", "2"] and isinstance(m[1:], nn.Sequential) and len(m[1:]) == 2
    del m[0]
    assert len(m) == 2
    m.insert(0, nn.Tanh())
    assert isinstance(m[0], nn.Tanh) and len(m + nn.Sequential(nn.ReLU())) == 4
    with pytest.raises(IndexError, match=r"index 9 is out of range"):
        m[9]


def test_module_list_and_dict() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    layers += [nn.ReLU()]
    assert len(layers) == 3 and next(n for n, _ in layers.named_parameters()) == "0.weight"
    layers.insert(0, nn.Tanh())
    assert isinstance(layers[0], nn.Tanh) and isinstance(layers.pop(-1), nn.ReLU) and len(layers[1:]) == 2
    with pytest.raises(TypeError, match=r"ModuleList.extend should be called with an iterable, but got Linear"):
        layers.extend(nn.Linear(1, 1))  # type: ignore[arg-type]
    d = nn.ModuleDict({"x": nn.ReLU()})
    d["y"] = nn.Linear(1, 1)
    assert list(d) == ["x", "y"] and "y" in d and isinstance(d.pop("x"), nn.ReLU) and len(d) == 1
    params = nn.ParameterDict({"w": nn.Parameter(eager.ones(2)), "raw": eager.zeros(2), "n": 3})
    assert [n for n, _ in params.named_parameters()] == ["w", "raw"] and params["n"] == 3
    params.update({"v": eager.ones(1)})
    assert list(params.keys()) == ["w", "raw", "n", "v"] and len(list(params.parameters())) == 3


# ---- layers that draw ----


def test_dropout_scales_and_is_off_in_evaluation() -> None:
    eager.manual_seed(0)
    m, x = nn.Dropout(0.25), eager.ones(4000, requires_grad=True)
    y = m(x)
    values = set(y.unique().tolist())
    assert len(values) == 2 and min(values) == 0 and abs(max(values) - 4 / 3) < 1e-6
    assert abs(float((y == 0).float().mean()) - 0.25) < 0.03
    (g,) = eager.autograd.grad(y.sum(), x)
    assert eager.equal(g, y.detach())
    assert m.eval()(x) is x
    channels = nn.Dropout2d(0.5)(eager.ones(4, 8, 3, 3)).reshape(32, 9)
    assert eager.equal(channels.amax(1), channels.amin(1))
    with pytest.raises(ValueError, match=r"dropout probability has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_same_seed_same_initialisation_and_bounds() -> None:
    eager.manual_seed(7)
    a = nn.Linear(16, 8)
    eager.manual_seed(7)
    b = nn.Linear(16, 8)
    assert eager.equal(a.weight, b.weight) and float(a.weight.abs().max()) <= 0.25
    w = eager.empty(200, 300)
    assert abs(float(nn.init.kaiming_normal_(w).std()) - (2 / 300) ** 0.5) < 2e-3
    assert abs(float(nn.init.xavier_uniform_(w).std()) - (2 / 500) ** 0.5) < 2e-3
    t = nn.init.trunc_normal_(w, std=0.02, a=-0.03, b=0.03)
    assert float(t.abs().max()) <= 0.03 and 0.01 < float(t.std()) < 0.02
    q = nn.init.orthogonal_(eager.empty(5, 8), gain=2.0)
    assert eager.allclose(q @ q.t(), eager.eye(5) * 4, atol=1e-5)
    assert float(nn.init.eye_(eager.empty(3, 4)).sum()) == 3.0
    assert float(nn.init.dirac_(eager.empty(4, 4, 3)).sum()) == 4.0
    assert int((nn.init.sparse_(eager.empty(10, 4), 0.5) == 0).sum()) == 20
    with pytest.raises(ValueError, match=r"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"):
        nn.init.xavier_normal_(eager.empty(3))


def test_lazy_modules_take_their_shape_from_the_first_input() -> None:
    m = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5))
    assert repr(m[3].weight) == "<UninitializedParameter>"
    assert m(eager.randn(2, 3, 5, 5)).shape == (2, 5)
    assert type(m[0]) is nn.Conv2d and type(m[1]) is nn.BatchNorm2d and type(m[3]) is nn.Linear
    assert m[0].weight.shape == (4, 3, 3, 3) and isinstance(m[3].weight, nn.Parameter)


FUNCTION_ERRORS = [
    (lambda: F.linear(eager.ones(2, 3), eager.ones(4, 5)), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"),
    (lambda: F.layer_norm(eager.ones(2, 3), (4,)), RuntimeError, r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\]"),
    (lambda: F.cross_entropy(eager.ones(2, 3), eager.tensor([0, 3])), IndexError, r"Target 3 is out of bounds\."),
    (lambda: F.cross_entropy(eager.ones(2, 3), eager.tensor([0])), ValueError,
     r"Expected input batch_size \(2\) to match target batch_size \(1\)\."),
    (lambda: F.embedding(eager.tensor([5]), eager.ones(5, 2)), IndexError, "index out of range in self"),
    (lambda: F.softmax(eager.ones(2, 3), 2), IndexError,
     r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
    (lambda: F.softmax(eager.ones(2, 3).long(), 1), NotImplementedError, r"not implemented for 'Long'"),
    (lambda: F.gelu(eager.ones(1), approximate="x"), RuntimeError, "approximate argument must be either none or tanh."),
    (lambda: F.mse_loss(eager.ones(1), eager.ones(1), reduction="x"), ValueError, "x is not a valid value for reduction"),
    (lambda: F.binary_cross_entropy(eager.ones(2), eager.ones(3)), ValueError, "Using a target size"),
    (lambda: F.binary_cross_entropy(eager.ones(2) * 2, eager.ones(2)), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda: F.batch_norm(eager.ones(1, 3), None, None, training=True), ValueError, "Expected more than 1 value per channel when training"),
    (lambda: F.glu(eager.ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    (lambda: F.one_hot(eager.tensor([5]), 3), RuntimeError, "Class values must be smaller than num_classes."),
    (lambda: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "num_channels .3. must be divisible by num_groups .2."),
    (lambda: nn.BatchNorm2d(3)(eager.ones(2, 3)), ValueError, r"expected 4D input \(got 2D input\)"),
    (lambda: nn.LSTM(3, 4)(eager.ones(5, 2, 7)), RuntimeError, r"input.size\(-1\) must be equal to input_size. Expected 3, got 7"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "error", "text"), FUNCTION_ERRORS)
def test_function_errors(action: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        action()


def test_data_parallel_is_transparent_without_a_gpu() -> None:
    inner = nn.Linear(2, 3)
    m = nn.DataParallel(inner, device_ids=[])
    x = eager.randn(4, 2)
    assert eager.equal(m(x), inner(x)) and list(m.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(NotImplementedError, match=r"DataParallel: 2 devices were given; allowed: at most one"):
        nn.DataParallel(inner, device_ids=[0, 1])


def test_weight_and_spectral_norm_split_and_join() -> None:
    utils = nn.utils
    m, x = nn.Linear(3, 4), eager.randn(2, 3)
    before = m(x)
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        utils.weight_norm(m)
    assert sorted(n for n, _ in m.named_parameters()) == ["bias", "weight_g", "weight_v"] and eager.allclose(m(x), before, atol=1e-6)
    utils.remove_weight_norm(m)
    assert isinstance(m.weight, nn.Parameter) and eager.allclose(m(x), before, atol=1e-6)
    utils.parametrizations.weight_norm(m)
    assert eager.allclose(m(x), before, atol=1e-6) and utils.parametrize.is_parametrized(m, "weight")
    m(x).sum().backward()
    assert m.parametrizations.weight.original1.grad is not None
    utils.parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and eager.allclose(m(x), before, atol=1e-6)
    eager.manual_seed(0)
    for normalise in (utils.spectral_norm, utils.parametrizations.spectral_norm):
        s = normalise(nn.Linear(6, 5))
        for _ in range(300):
            s(eager.randn(1, 6))
        largest = float(np.linalg.svd(s.weight.detach().numpy(), compute_uv=False)[0])
        assert abs(largest - 1.0) < 1e-3


def test_functional_call_uses_the_given_tensors_and_puts_the_own_back() -> None:
    m, x = nn.Linear(3, 2), eager.randn(4, 3)
    own = m.weight
    given = eager.zeros(2, 3, requires_grad=True)
    y = nn.utils.stateless.functional_call(m, {"weight": given}, (x,))
    y.sum().backward()
    assert m.weight is own and eager.allclose(y, m.bias.expand(4, 2)) and given.grad is not None and own.grad is None
