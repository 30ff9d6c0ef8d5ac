"""Programs over torch's API that `tests/data/make_nn_reference.py` runs with torch and the tests run with eager.

A case is a function of the module (torch, or eager under that name) and of a source of inputs; it returns
tensors. Values and the gradients of a fixed projection with respect to all inputs and parameters are compared.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[Any, "Inputs"], Any]
CASES: dict[str, Case] = {}


class Inputs:
    """Makes tensors from a seeded stream, equal under both libraries, and records the leaves."""

    def __init__(self, torch: Any, seed: int) -> None:
        self.torch = torch
        self.rng = np.random.default_rng(seed)
        self.leaves: list[Any] = []

    def __call__(self, *shape: int, low: float = -1.0, high: float = 1.0, grad: bool = True) -> Any:
        t = self.torch.tensor(self.rng.uniform(low, high, shape).tolist(), dtype=self.torch.float64).reshape(shape)
        if grad:
            t.requires_grad_()
            self.leaves.append(t)
        return t

    def int(self, *shape: int, high: int, low: int = 0) -> Any:
        return self.torch.tensor(self.rng.integers(low, high, shape).tolist(), dtype=self.torch.int64).reshape(shape)

    def bool(self, *shape: int) -> Any:
        return self.torch.tensor(self.rng.integers(0, 2, shape).astype(bool).tolist()).reshape(shape)

    def module(self, module: Any) -> Any:
        """Fill a module's parameters and floating buffers from the stream."""
        module = module.to(self.torch.float64)
        with self.torch.no_grad():
            for p in module.parameters():
                p.copy_(self(*p.shape, low=-0.6, high=0.6, grad=False))
                self.leaves.append(p)
            for b in module.buffers():
                if b.is_floating_point():
                    b.copy_(self(*b.shape, low=0.5, high=1.5, grad=False))
        return module


def seed_of(name: str) -> int:
    return sum((i + 1) * ord(c) for i, c in enumerate(name))


def run(torch: Any, name: str) -> dict[str, list[Any]]:
    """Outputs and gradients of one case, as nested lists."""
    inputs = Inputs(torch, seed_of(name))
    out = CASES[name](torch, inputs)
    outputs = [t for t in (out if isinstance(out, (tuple, list)) else [out]) if t is not None]
    total: Any = None
    for i, y in enumerate(outputs):
        if y.requires_grad:
            weights = torch.tensor(np.random.default_rng(i).uniform(-1, 1, tuple(y.shape)).tolist(), dtype=torch.float64)
            term = (y * weights.reshape(tuple(y.shape))).sum()
            total = term if total is None else total + term
    grads: list[Any] = []
    if total is not None:
        grads = list(torch.autograd.grad(total, inputs.leaves, allow_unused=True))
    return {
        "outputs": [y.detach().to(torch.float64).tolist() for y in outputs],
        "grads": [None if g is None else g.detach().tolist() for g in grads],
    }


def add(name: str, case: Case) -> None:
    if name in CASES:
        raise ValueError(f"case {name} exists")
    CASES[name] = case


def _function(name: str, *args: Any, shape: tuple[int, ...] = (3, 4), tag: str = "", low: float = -3.0, high: float = 3.0,
              **kwargs: Any) -> None:  # fmt: skip
    add(f"F.{name}{tag}", lambda torch, r: getattr(torch.nn.functional, name)(r(*shape, low=low, high=high), *args, **kwargs))


for _name in ("relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "sigmoid", "tanh", "logsigmoid", "softplus",
              "softsign", "tanhshrink", "softshrink", "hardshrink", "hardtanh", "hardsigmoid", "hardswish", "leaky_relu"):  # fmt: skip
    _function(_name)
_function("gelu", approximate="tanh", tag="_tanh")
_function("elu", alpha=0.5, tag="_alpha")
_function("celu", alpha=0.7, tag="_alpha")
_function("softplus", beta=2.0, threshold=3.0, tag="_beta")
_function("threshold", 0.2, 7.0)
_function("hardtanh", -0.5, 2.0, tag="_bounds")
_function("softshrink", 1.0, tag="_lambd")
_function("rrelu", 0.1, 0.3)
_function("glu", dim=1)
_function("glu", dim=0, shape=(4, 3), tag="_0")
for _d in (0, 1, -1):
    _function("softmax", dim=_d, shape=(2, 3, 4), tag=f"_{_d}")
    _function("log_softmax", dim=_d, shape=(2, 3, 4), tag=f"_{_d}")
_function("softmin", dim=1)
_function("normalize")
_function("normalize", p=1.0, dim=0, tag="_p1")
_function("normalize", dim=-1, tag="_last", shape=(2, 3, 4))
_function("layer_norm", (4,))
_function("layer_norm", (3, 4), tag="_2", shape=(2, 3, 4))
_function("rms_norm", (4,))
_function("local_response_norm", 3, shape=(2, 5, 4))
_function("group_norm", 2, shape=(2, 4, 3, 2))
_function("instance_norm", shape=(2, 3, 5))
_function("pad", (1, 2), shape=(2, 3, 4))
_function("pad", (1, 2, 2, 1), mode="reflect", shape=(2, 3, 4, 5), tag="_reflect")
_function("pad", (1, 2), mode="replicate", shape=(2, 3, 4), tag="_replicate")
_function("pad", (1, 2), mode="circular", shape=(2, 3, 4), tag="_circular")
_function("avg_pool2d", 2, shape=(1, 2, 5, 6))
_function("avg_pool2d", 3, 2, 1, True, False, shape=(1, 2, 5, 6), tag="_options")
_function("max_pool2d", 2, shape=(1, 2, 5, 6))
_function("max_pool1d", 3, 2, 1, shape=(2, 2, 7))
_function("max_pool3d", 2, shape=(1, 2, 4, 4, 4))
_function("adaptive_avg_pool2d", (2, 3), shape=(1, 2, 5, 7))
_function("adaptive_avg_pool1d", 3, shape=(1, 2, 7))
_function("adaptive_max_pool2d", (2, 3), shape=(1, 2, 5, 7))
_function("lp_pool2d", 2.0, 2, shape=(1, 2, 4, 4), low=0.1)
_function("unfold", (2, 3), shape=(1, 2, 4, 5))
_function("fold", (4, 5), (2, 3), shape=(1, 12, 9))
_function("pixel_shuffle", 2, shape=(1, 8, 2, 3))
_function("pixel_unshuffle", 2, shape=(1, 2, 4, 6))
_function("channel_shuffle", 2, shape=(1, 4, 2, 2))
_function("interpolate", scale_factor=2, shape=(1, 2, 3, 4), tag="_nearest")
_function("interpolate", size=(5, 3), mode="bilinear", shape=(1, 2, 3, 4), tag="_bilinear")
_function("interpolate", size=(5, 7), mode="bilinear", align_corners=True, shape=(1, 2, 3, 4), tag="_corners")
_function("interpolate", size=(5, 7), mode="bicubic", shape=(1, 2, 4, 4), tag="_bicubic")
_function("interpolate", size=6, mode="linear", shape=(1, 2, 4), tag="_linear")
_function("interpolate", size=(2, 3), mode="area", shape=(1, 2, 4, 6), tag="_area")

# ---- several arguments ----

add("F.linear", lambda t, r: t.nn.functional.linear(r(2, 3, 4), r(5, 4), r(5)))
add("F.bilinear", lambda t, r: t.nn.functional.bilinear(r(3, 4), r(3, 2), r(5, 4, 2), r(5)))
add("F.prelu", lambda t, r: t.nn.functional.prelu(r(2, 3, 4), r(3)))
add("F.layer_norm_affine", lambda t, r: t.nn.functional.layer_norm(r(2, 3, 4), (4,), r(4), r(4), 1e-3))
add("F.rms_norm_weight", lambda t, r: t.nn.functional.rms_norm(r(2, 3, 4), (3, 4), r(3, 4), 1e-3))
add("F.group_norm_affine", lambda t, r: t.nn.functional.group_norm(r(2, 4, 3), 2, r(4), r(4)))
add("F.batch_norm_eval", lambda t, r: t.nn.functional.batch_norm(
    r(4, 3, 2), r(3, grad=False), r(3, low=0.5, high=1.5, grad=False), r(3), r(3)))  # fmt: skip
add("F.batch_norm_train", lambda t, r: t.nn.functional.batch_norm(r(4, 3, 2), None, None, r(3), r(3), training=True))
add("F.embedding", lambda t, r: t.nn.functional.embedding(r.int(2, 3, high=5), r(5, 4)))
add("F.embedding_padding", lambda t, r: t.nn.functional.embedding(r.int(2, 7, high=5), r(5, 4), padding_idx=2))
add("F.embedding_frequency", lambda t, r: t.nn.functional.embedding(r.int(2, 7, high=5), r(5, 4), scale_grad_by_freq=True))
for _mode in ("sum", "mean", "max"):
    add(f"F.embedding_bag_{_mode}", lambda t, r, mode=_mode: t.nn.functional.embedding_bag(
        r.int(8, high=5), r(5, 4), t.tensor([0, 3, 3, 6]), mode=mode))  # fmt: skip
    add(f"F.embedding_bag_2d_{_mode}", lambda t, r, mode=_mode: t.nn.functional.embedding_bag(
        r.int(3, 4, high=5), r(5, 4), mode=mode, padding_idx=1))  # fmt: skip
add("F.one_hot", lambda t, r: t.nn.functional.one_hot(r.int(2, 3, high=4), 5))
add("F.cosine_similarity", lambda t, r: t.nn.functional.cosine_similarity(r(3, 4), r(3, 4), dim=1))
add("F.pairwise_distance", lambda t, r: t.nn.functional.pairwise_distance(r(3, 4), r(3, 4)))
add("F.pdist", lambda t, r: t.nn.functional.pdist(r(4, 3)))
add("F.grid_sample", lambda t, r: t.nn.functional.grid_sample(r(1, 2, 4, 5), r(1, 3, 3, 2, low=-1.2, high=1.2), align_corners=False))
add("F.affine_grid", lambda t, r: t.nn.functional.affine_grid(r(2, 2, 3), [2, 3, 3, 4], align_corners=False))

_CONVOLUTIONS = {
    "conv1d": ((2, 4, 9), (6, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
    "conv2d": ((2, 4, 6, 7), (6, 2, 3, 2), {"stride": (1, 2), "padding": (1, 0), "dilation": (2, 1), "groups": 2}),
    "conv3d": ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), {"padding": 1}),
    "conv_transpose1d": ((2, 4, 5), (4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    "conv_transpose2d": ((1, 2, 3, 4), (2, 3, 3, 2), {"stride": 2, "dilation": 2}),
}
for _name, (_x, _w, _options) in _CONVOLUTIONS.items():
    def _convolution(t: Any, r: Inputs, name: str = _name, x: Any = _x, w: Any = _w, options: Any = _options) -> Any:
        channels = w[0] if "transpose" not in name else w[1] * options.get("groups", 1)
        return getattr(t.nn.functional, name)(r(*x), r(*w), r(channels), **options)

    add(f"F.{_name}", _convolution)
add("F.conv2d_same", lambda t, r: t.nn.functional.conv2d(r(1, 2, 5, 5), r(3, 2, 4, 3), padding="same"))


# ---- attention ----

def _attention(mask: str | None = None, **options: Any) -> Case:
    def case(t: Any, r: Inputs) -> Any:
        q, k, v = r(2, 2, 4, 3), r(2, 2, 5, 3), r(2, 2, 5, 6)
        m = None
        if mask == "bool":
            m = r.bool(4, 5)
            m[0] = True
        elif mask == "blind":
            m = r.bool(4, 5)
            m[1] = False
        elif mask == "float":
            m = r(2, 1, 4, 5)
        return t.nn.functional.scaled_dot_product_attention(q, k, v, m, **options)

    return case


add("sdpa", _attention())
add("sdpa_causal", _attention(is_causal=True))
add("sdpa_scale", _attention(scale=0.3))
add("sdpa_bool", _attention("bool"))
add("sdpa_blind", _attention("blind"))
add("sdpa_float", _attention("float"))
add("sdpa_gqa", lambda t, r: t.nn.functional.scaled_dot_product_attention(
    r(2, 4, 3, 2), r(2, 2, 5, 2), r(2, 2, 5, 2), enable_gqa=True))  # fmt: skip

# ---- losses ----

_REDUCTIONS = ("none", "mean", "sum")
for _r in _REDUCTIONS:
    for _name, _extra in (("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.5}), ("huber_loss", {"delta": 0.7}),
                          ("poisson_nll_loss", {"full": True}), ("kl_div", {})):  # fmt: skip
        add(f"{_name}_{_r}", lambda t, r, n=_name, x=_extra, red=_r: getattr(t.nn.functional, n)(
            r(3, 4), r(3, 4, low=0.1, high=2.0, grad=n != "poisson_nll_loss"), reduction=red, **x))  # fmt: skip
    add(f"bce_{_r}", lambda t, r, red=_r: t.nn.functional.binary_cross_entropy(
        r(3, 4, low=0.05, high=0.95), r(3, 4, low=0.0, grad=False), r(4, low=0.1, grad=False), reduction=red))  # fmt: skip
    add(f"bce_logits_{_r}", lambda t, r, red=_r: t.nn.functional.binary_cross_entropy_with_logits(
        r(3, 4, low=-5, high=5), r(3, 4, low=0.0), reduction=red, pos_weight=r(4, low=0.5, high=2.0, grad=False)))  # fmt: skip
    add(f"cross_entropy_{_r}", lambda t, r, red=_r: t.nn.functional.cross_entropy(r(6, 4), r.int(6, high=4), reduction=red))
    add(f"cross_entropy_weight_{_r}", lambda t, r, red=_r: t.nn.functional.cross_entropy(
        r(6, 4), r.int(6, high=4), r(4, low=0.1, grad=False), ignore_index=1, reduction=red))  # fmt: skip
    add(f"cross_entropy_smooth_{_r}", lambda t, r, red=_r: t.nn.functional.cross_entropy(
        r(6, 4), r.int(6, high=4), r(4, low=0.1, grad=False), ignore_index=1, reduction=red, label_smoothing=0.2))  # fmt: skip
    add(f"cross_entropy_probabilities_{_r}", lambda t, r, red=_r: t.nn.functional.cross_entropy(
        r(3, 4, 2), r(3, 4, 2, low=0.0), r(4, low=0.1, grad=False), reduction=red, label_smoothing=0.1))  # fmt: skip
    add(f"cross_entropy_spatial_{_r}", lambda t, r, red=_r: t.nn.functional.cross_entropy(
        r(2, 4, 3, 2), r.int(2, 3, 2, high=4), ignore_index=2, reduction=red))  # fmt: skip
    add(f"nll_{_r}", lambda t, r, red=_r: t.nn.functional.nll_loss(
        r(2, 4, 3), r.int(2, 3, high=4), r(4, low=0.1, grad=False), ignore_index=0, reduction=red))  # fmt: skip
    add(f"gaussian_nll_{_r}", lambda t, r, red=_r: t.nn.functional.gaussian_nll_loss(
        r(3, 4), r(3, 4), r(3, 4, low=0.2, high=2.0), full=True, reduction=red))  # fmt: skip
    add(f"hinge_embedding_{_r}", lambda t, r, red=_r: t.nn.functional.hinge_embedding_loss(
        r(3, 4), r.int(3, 4, high=2) * 2 - 1, 0.5, reduction=red))  # fmt: skip
    add(f"margin_ranking_{_r}", lambda t, r, red=_r: t.nn.functional.margin_ranking_loss(
        r(5), r(5), r.int(5, high=2) * 2 - 1, 0.3, reduction=red))  # fmt: skip
    add(f"soft_margin_{_r}", lambda t, r, red=_r: t.nn.functional.soft_margin_loss(
        r(3, 4), r.int(3, 4, high=2) * 2 - 1, reduction=red))  # fmt: skip
    add(f"multi_margin_{_r}", lambda t, r, red=_r: t.nn.functional.multi_margin_loss(
        r(3, 4), r.int(3, high=4), p=2, margin=0.8, weight=r(4, low=0.1, grad=False), reduction=red))  # fmt: skip
    add(f"multilabel_margin_{_r}", lambda t, r, red=_r: t.nn.functional.multilabel_margin_loss(
        r(2, 4), t.tensor([[3, 0, -1, 1], [2, -1, 0, 1]]), reduction=red))  # fmt: skip
    add(f"multilabel_soft_margin_{_r}", lambda t, r, red=_r: t.nn.functional.multilabel_soft_margin_loss(
        r(3, 4), r.int(3, 4, high=2).to(t.float64), reduction=red))  # fmt: skip
    add(f"cosine_embedding_{_r}", lambda t, r, red=_r: t.nn.functional.cosine_embedding_loss(
        r(5, 3), r(5, 3), r.int(5, high=2) * 2 - 1, 0.1, reduction=red))  # fmt: skip
    add(f"triplet_{_r}", lambda t, r, red=_r: t.nn.functional.triplet_margin_loss(
        r(5, 3), r(5, 3), r(5, 3), swap=True, reduction=red))  # fmt: skip
add("kl_div_batchmean", lambda t, r: t.nn.functional.kl_div(r(3, 4), r(3, 4), reduction="batchmean", log_target=True))
add("cross_entropy_single", lambda t, r: t.nn.functional.cross_entropy(r(4), t.tensor(2)))
add("cross_entropy_all_ignored", lambda t, r: t.nn.functional.cross_entropy(r(2, 4), t.tensor([1, 1]), ignore_index=1, reduction="sum"))

# ---- modules ----


def _module(tag: str, make: Callable[[Any], Any], *shapes: tuple[int, ...], train: bool = True) -> None:
    def case(t: Any, r: Inputs) -> Any:
        m = r.module(make(t.nn))
        m.train(train)
        out = m(*(r(*s) for s in shapes))
        flat: list[Any] = []
        for o in out if isinstance(out, tuple) else (out,):
            flat.extend(o if isinstance(o, tuple) else [o])
        return [*flat, *[b.to(t.float64) for b in m.buffers()]]

    add(f"nn.{tag}", case)


_module("BatchNorm1d", lambda nn: nn.BatchNorm1d(3), (5, 3))
_module("BatchNorm2d", lambda nn: nn.BatchNorm2d(3, momentum=None), (2, 3, 4, 2))
_module("BatchNorm3d_eval", lambda nn: nn.BatchNorm3d(3), (2, 3, 2, 2, 2), train=False)
_module("BatchNorm1d_untracked", lambda nn: nn.BatchNorm1d(3, track_running_stats=False), (5, 3, 2), train=False)
_module("InstanceNorm2d", lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 4, 2))
_module("InstanceNorm1d_eval", lambda nn: nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 4), train=False)
_module("GroupNorm", lambda nn: nn.GroupNorm(2, 4), (2, 4, 3))
_module("LayerNorm", lambda nn: nn.LayerNorm((3, 4), bias=False), (2, 3, 4))
_module("RMSNorm", lambda nn: nn.RMSNorm(4), (2, 3, 4))
_module("Conv2d_circular", lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 5, 5))
_module("Conv1d_unbatched", lambda nn: nn.Conv1d(2, 3, 3), (2, 5))
_module("ConvTranspose2d", lambda nn: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), (1, 2, 3, 3))
_module("Bilinear", lambda nn: nn.Bilinear(3, 4, 2), (5, 3), (5, 4))
_module("PReLU", lambda nn: nn.PReLU(3), (2, 3, 4))
for _kind in ("RNN", "GRU", "LSTM"):
    _module(_kind, lambda nn, k=_kind: getattr(nn, k)(3, 4, 2), (5, 2, 3))
    _module(f"{_kind}_bidirectional", lambda nn, k=_kind: getattr(nn, k)(3, 4, 2, batch_first=True, bidirectional=True), (2, 5, 3))
    _module(f"{_kind}_unbatched", lambda nn, k=_kind: getattr(nn, k)(3, 4, bias=False), (5, 3))
    _module(f"{_kind}Cell", lambda nn, k=_kind: getattr(nn, f"{k}Cell")(3, 4), (2, 3))
_module("RNN_relu", lambda nn: nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3))
_module("LSTM_projected", lambda nn: nn.LSTM(3, 4, 2, proj_size=2), (5, 2, 3))
_module("MultiheadAttention", lambda nn: nn.MultiheadAttention(6, 2), (4, 2, 6), (5, 2, 6), (5, 2, 6))
_module("MultiheadAttention_dims", lambda nn: nn.MultiheadAttention(6, 2, kdim=3, vdim=5, batch_first=True, add_bias_kv=True,
                                                                    add_zero_attn=True), (2, 4, 6), (2, 5, 3), (2, 5, 5))  # fmt: skip
_module("TransformerEncoderLayer", lambda nn: nn.TransformerEncoderLayer(6, 2, 8, 0.0, activation="gelu"), (4, 2, 6))
_module("TransformerEncoderLayer_first", lambda nn: nn.TransformerEncoderLayer(6, 2, 8, 0.0, norm_first=True, batch_first=True), (2, 4, 6))
_module("TransformerDecoderLayer", lambda nn: nn.TransformerDecoderLayer(6, 2, 8, 0.0), (4, 2, 6), (5, 2, 6))
_module("Transformer", lambda nn: nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True), (2, 3, 4), (2, 4, 4))


def _packed(t: Any, r: Inputs) -> Any:
    utils = t.nn.utils.rnn
    m = r.module(t.nn.LSTM(3, 4, 2, bidirectional=True))
    packed = utils.pack_padded_sequence(r(5, 3, 3), [3, 5, 2], enforce_sorted=False)
    y, (h, c) = m(packed)
    padded, lengths = utils.pad_packed_sequence(y)
    return [padded, lengths.to(t.float64), h, c]


add("packed_lstm", _packed)


def _masked_attention(t: Any, r: Inputs) -> Any:
    m = r.module(t.nn.MultiheadAttention(6, 2, batch_first=True))
    x = r(2, 4, 6)
    padding = t.tensor([[False, False, False, True], [False, False, True, True]])
    causal = t.triu(t.ones(4, 4, dtype=t.bool), 1)
    y, w = m(x, x, x, key_padding_mask=padding, attn_mask=causal, average_attn_weights=False)
    z, _ = m(x, x, x, attn_mask=r(4, 4, grad=False), need_weights=False)
    return [y, w, z]


add("masked_attention", _masked_attention)


def _encoder(t: Any, r: Inputs) -> Any:
    layer = t.nn.TransformerEncoderLayer(4, 2, 8, 0.0)
    m = r.module(t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(4)))
    mask = t.nn.Transformer.generate_square_subsequent_mask(5).to(t.float64)
    return m(r(5, 2, 4), mask=mask, is_causal=True)


add("encoder_causal", _encoder)


def _clip(t: Any, r: Inputs) -> Any:
    p = [r(3, 4), r(5)]
    for q in p:
        q.grad = r(*q.shape, grad=False) * 3
    norms = [t.nn.utils.clip_grad_norm_(p, 1.5)]
    after = [q.grad.clone() for q in p]
    norms.append(t.nn.utils.clip_grad_norm_(p, 0.7, norm_type=float("inf")))
    t.nn.utils.clip_grad_value_(p, 0.3)
    return [*norms, *after, *[q.grad for q in p], t.nn.utils.parameters_to_vector(p).detach()]


add("clip_grad", _clip)

# ---- sequences of different lengths, masks of every kind, resampling ----

for _mode in ("bilinear", "bicubic"):
    for _corners in (False, True):
        for _size in ((3, 4), (12, 5)):
            add(f"antialias_{_mode}_{_corners}_{_size[0]}", lambda t, r, m=_mode, c=_corners, s=_size: t.nn.functional.interpolate(
                r(1, 2, 8, 9), size=s, mode=m, align_corners=c, antialias=True))  # fmt: skip
add("antialias_lanczos", lambda t, r: t.nn.functional.interpolate(r(1, 2, 8, 9), size=(3, 5), mode="lanczos", antialias=True))
for _mode, _corners, _antialias in (("bilinear", False, False), ("bilinear", True, False), ("bilinear", False, True),
                                    ("bicubic", False, False), ("bicubic", True, True), ("lanczos", False, True)):  # fmt: skip
    for _size in ((3, 4), (12, 5)):
        _how = {"size": _size, "mode": _mode, "align_corners": _corners, "antialias": _antialias}
        add(f"bytes_{_mode}_{_corners}_{_antialias}_{_size[0]}",
            lambda t, r, how=_how: t.nn.functional.interpolate(r.int(2, 3, 8, 9, high=256).to(t.uint8), **how))  # fmt: skip
add("antialias_scale", lambda t, r: t.nn.functional.interpolate(r(1, 2, 8, 9), scale_factor=0.4, mode="bilinear", antialias=True))


def _packed_from_a_state(kind: str, bidirectional: bool, **settings: Any) -> Case:
    def case(t: Any, r: Inputs) -> Any:
        utils = t.nn.utils.rnn
        m = r.module(getattr(t.nn, kind)(3, 4, 2, bidirectional=bidirectional, batch_first=True, **settings))
        packed = utils.pack_padded_sequence(r(3, 5, 3), t.tensor([3, 5, 2]), batch_first=True, enforce_sorted=False)
        layers = 4 if bidirectional else 2
        h = r(layers, 3, settings.get("proj_size", 4))
        y, state = m(packed, (h, r(layers, 3, 4)) if kind == "LSTM" else h)
        padded, lengths = utils.pad_packed_sequence(y, batch_first=True, padding_value=-7.0, total_length=6)
        return [padded, lengths.to(t.float64), *(state if isinstance(state, tuple) else (state,))]

    return case


for _kind, _settings in (("LSTM", {}), ("LSTM", {"proj_size": 2}), ("GRU", {}), ("RNN", {"nonlinearity": "relu"})):
    for _both in (False, True):
        add(f"packed.{_kind}{'_projected' * ('proj_size' in _settings)}{'_both' * _both}",
            _packed_from_a_state(_kind, _both, **_settings))  # fmt: skip


def _heads(batch_first: bool, average: bool, need: bool, boolean: bool) -> Case:
    def case(t: Any, r: Inputs) -> Any:
        m = r.module(t.nn.MultiheadAttention(6, 3, batch_first=batch_first, add_bias_kv=True, add_zero_attn=True))
        q, k = (r(2, 4, 6), r(2, 5, 6)) if batch_first else (r(4, 2, 6), r(5, 2, 6))
        padding = t.tensor([[False, False, False, True, True], [False] * 5])
        mask = r(6, 4, 5, grad=False)
        if boolean:
            mask = mask > 0.8
        else:
            padding = t.where(padding, t.tensor(-1e9, dtype=t.float64), t.tensor(0.0, dtype=t.float64))
        y, w = m(q, k, k, key_padding_mask=padding, attn_mask=mask, need_weights=need, average_attn_weights=average)
        return [y] if w is None else [y, w]

    return case


for _i in range(16):
    _flags = [bool(_i & 1), bool(_i & 2), bool(_i & 4), bool(_i & 8)]
    add(f"heads_{_i}", _heads(*_flags))


def _masked_transformer(t: Any, r: Inputs) -> Any:
    m = r.module(t.nn.Transformer(6, 2, 1, 1, 8, 0.0, batch_first=True))
    padding = t.tensor([[False, False, True, True], [False] * 4])
    return m(r(2, 4, 6), r(2, 3, 6), src_mask=t.zeros(4, 4).bool(), tgt_mask=m.generate_square_subsequent_mask(3).to(t.float64),
             memory_key_padding_mask=padding, src_key_padding_mask=padding, tgt_is_causal=True)  # fmt: skip


add("masked_transformer", _masked_transformer)


def _padded_encoder(t: Any, r: Inputs) -> Any:
    """In evaluation without gradients torch runs its fused path, whose values at masked positions are unspecified."""
    m = r.module(t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2)).eval()
    x = r(2, 4, 6)
    padding = t.tensor([[False, False, True, True], [False] * 4])
    with t.no_grad():
        quick = m(x, src_key_padding_mask=padding)
    slow = m(x, src_key_padding_mask=padding)
    return [quick[0, :2], quick[1], slow]


add("padded_encoder", _padded_encoder)
add("bag_weighted", lambda t, r: t.nn.functional.embedding_bag(
    t.tensor([0, 1, 2, 2]), r(4, 3), t.tensor([0, 0, 3]), mode="sum", per_sample_weights=r(4)))  # fmt: skip
add("bag_last_offset", lambda t, r: t.nn.functional.embedding_bag(
    t.tensor([0, 1, 2, 2]), r(4, 3), t.tensor([0, 2, 4]), mode="max", include_last_offset=True))  # fmt: skip
for _mode, _pad, _corners in (("bicubic", "reflection", True), ("bilinear", "border", False), ("nearest", "border", False),
                              ("bilinear", "reflection", False), ("bicubic", "zeros", False)):  # fmt: skip
    add(f"grid_{_mode}_{_pad}", lambda t, r, m=_mode, p=_pad, c=_corners: t.nn.functional.grid_sample(
        r(1, 2, 4, 4), r(1, 3, 3, 2, low=-1.5, high=1.5), mode=m, padding_mode=p, align_corners=c))  # fmt: skip
add("grid_3d", lambda t, r: t.nn.functional.grid_sample(r(1, 1, 3, 4, 4), r(1, 2, 2, 2, 3, low=-1.5, high=1.5), padding_mode="border",
                                                       align_corners=False))  # fmt: skip
for _r in ("none", "mean", "sum"):
    for _zero in (False, True):
        add(f"ctc_{_r}_{_zero}", lambda t, r, red=_r, z=_zero: t.nn.functional.ctc_loss(
            r(4, 3, 5).log_softmax(2), t.tensor([[1, 2, 0], [3, 3, 4], [2, 0, 0]]), t.tensor([4, 4, 3]),
            t.tensor([2, 2, 1] if not z else [2, 3, 0]), reduction=red, zero_infinity=z))  # fmt: skip
add("ctc_joined", lambda t, r: t.nn.functional.ctc_loss(r(6, 3, 5), t.tensor([1, 2, 3, 3, 4]), (6, 5, 6), (2, 3, 0), reduction="sum"))
add("conv_gradients", lambda t, r: [t.nn.grad.conv2d_input((2, 3, 6, 5), r(4, 3, 2, 2, grad=False), r(2, 4, 5, 4, grad=False)),
                                    t.nn.grad.conv1d_weight(r(2, 3, 6, grad=False), (4, 3, 2), r(2, 4, 3, grad=False), stride=2)])
add("conv_tbc", lambda t, r: t.nn.functional.conv_tbc(r(5, 2, 3), r(2, 3, 4), r(4), 1))


def _fused(t: Any, r: Inputs) -> Any:
    conv, norm = r.module(t.nn.Conv2d(3, 4, 2)).eval(), r.module(t.nn.BatchNorm2d(4)).eval()
    across = r.module(t.nn.ConvTranspose2d(3, 4, 2, bias=False)).eval()
    linear, norm1 = r.module(t.nn.Linear(3, 4)).eval(), r.module(t.nn.BatchNorm1d(4)).eval()
    x = r(2, 3, 4, 4)
    u = t.nn.utils
    return [u.fuse_conv_bn_eval(conv, norm)(x), u.fuse_conv_bn_eval(across, norm, transpose=True)(x),
            u.fuse_linear_bn_eval(linear, norm1)(x[:, :, 0, 0])]  # fmt: skip


add("fused_norms", _fused)


def _orthogonal(shape: tuple[int, int], kind: str) -> Case:
    def case(t: Any, r: Inputs) -> Any:
        m = r.module(t.nn.Linear(shape[1], shape[0], bias=False))
        t.nn.utils.parametrizations.orthogonal(m, "weight", kind, use_trivialization=False)
        return [m.weight, m.parametrizations.weight.original]

    return case


for _kind in ("matrix_exp", "cayley", "householder"):
    for _shape in ((4, 4), (5, 3), (3, 5)):
        add(f"orthogonal_{_kind}_{_shape[0]}", _orthogonal(_shape, _kind))

# ---- optimizers: the parameters after ten steps on a fixed quadratic ----


def _optimize(make: Callable[[Any, list[Any]], Any], closure: bool = False, schedule: Any = None, steps: int = 10) -> Case:
    def case(t: Any, r: Inputs) -> Any:
        params = [r(3, 4), r(4)]
        targets = [r(3, 4, grad=False), r(4, grad=False)]
        r.leaves.clear()
        optimizer = make(t, params)
        scheduler = schedule(t, optimizer) if schedule else None
        rates = []

        def loss() -> Any:
            optimizer.zero_grad()
            total = sum(((p - g) ** 2 * (1 + i)).sum() + (p**4).sum() * 0.1 for i, (p, g) in enumerate(zip(params, targets, strict=True)))
            total.backward()
            return total

        for i in range(steps):
            if closure:
                optimizer.step(loss)
            else:
                loss()
                optimizer.step()
            if scheduler is not None:
                if type(scheduler).__name__ == "ReduceLROnPlateau":
                    scheduler.step([1.0, 0.5, 0.5, 0.6, 0.4, 0.4, 0.4, 0.4, 0.4, 0.39][i % 10])
                else:
                    scheduler.step()
                group = optimizer.param_groups[0]
                rates.append([group["lr"], group.get("momentum", 0.0) or 0.0])
        result = [p.detach() for p in params]
        return [*result, t.tensor(rates, dtype=t.float64)] if rates else result

    return case


_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.05}),
    "SGD_momentum": ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "SGD_nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "SGD_maximize": ("SGD", {"lr": 0.005, "maximize": True, "weight_decay": 0.1}),
    "Adam": ("Adam", {"lr": 0.1, "weight_decay": 0.05}),
    "Adam_amsgrad": ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.8, 0.9)}),
    "AdamW": ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
    "AdamW_maximize": ("AdamW", {"lr": 0.01, "maximize": True}),
    "RMSprop": ("RMSprop", {"lr": 0.05, "weight_decay": 0.01}),
    "RMSprop_centered": ("RMSprop", {"lr": 0.05, "momentum": 0.5, "centered": True}),
    "Adagrad": ("Adagrad", {"lr": 0.3, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    "Adadelta": ("Adadelta", {"lr": 0.9, "weight_decay": 0.01}),
    "Adamax": ("Adamax", {"lr": 0.1, "weight_decay": 0.01}),
    "NAdam": ("NAdam", {"lr": 0.1, "weight_decay": 0.01}),
    "NAdam_decoupled": ("NAdam", {"lr": 0.1, "weight_decay": 0.01, "decoupled_weight_decay": True}),
    "RAdam": ("RAdam", {"lr": 0.1, "weight_decay": 0.01}),
    "ASGD": ("ASGD", {"lr": 0.05, "t0": 3, "weight_decay": 0.01}),
    "Rprop": ("Rprop", {"lr": 0.05}),
}
for _name, (_kind, _settings) in _OPTIMIZERS.items():
    add(f"optim.{_name}", _optimize(lambda t, p, k=_kind, s=_settings: getattr(t.optim, k)(p, **s)))
add("optim.LBFGS", _optimize(lambda t, p: t.optim.LBFGS(p, lr=0.5, max_iter=4), closure=True, steps=3))
add("optim.LBFGS_wolfe", _optimize(lambda t, p: t.optim.LBFGS(p, max_iter=5, line_search_fn="strong_wolfe"), closure=True, steps=2))
add("optim.groups", _optimize(lambda t, p: t.optim.AdamW(
    [{"params": [p[0]], "lr": 0.2}, {"params": [p[1]], "weight_decay": 0.0}], lr=0.01)))  # fmt: skip

_SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5], 0.5),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda e: 1 / (1 + e)),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.8, 5),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 4, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=12),
    "OneCycleLR_three": lambda s, o: s.OneCycleLR(o, 0.1, epochs=4, steps_per_epoch=5, anneal_strategy="linear", three_phase=True),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 2, mode="triangular2"),
    "CyclicLR_exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 2, mode="exp_range", gamma=0.9),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 3), s.CosineAnnealingLR(o, 6)], [3]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
}
for _name, _make in _SCHEDULES.items():
    add(f"schedule.{_name}", _optimize(lambda t, p: t.optim.SGD(p, lr=0.02, momentum=0.5),
                                       schedule=lambda t, o, m=_make: m(t.optim.lr_scheduler, o), steps=12))  # fmt: skip
add("schedule.SWALR", _optimize(lambda t, p: t.optim.SGD(p, lr=0.02), schedule=lambda t, o: t.optim.swa_utils.SWALR(o, 0.05, 4)))


def _averaged(t: Any, r: Inputs) -> Any:
    m = r.module(t.nn.Linear(3, 2))
    r.leaves.clear()
    plain = t.optim.swa_utils.AveragedModel(m)
    moving = t.optim.swa_utils.AveragedModel(m, multi_avg_fn=t.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    for _ in range(3):
        with t.no_grad():
            for p in m.parameters():
                p.add_(r(*p.shape, grad=False))
        plain.update_parameters(m)
        moving.update_parameters(m)
    return [p.detach() for a in (plain, moving) for p in a.parameters()]


add("averaged_models", _averaged)
