"""Layers in many configurations: their constructors and their inputs.

`tests/data/make_layer_reference.py` runs them with torch, the tests with eager. The tests compare outputs and
gradients in training and evaluation, in float64 and bfloat16, buffers afterwards, the printed form, and the
state dict's keys, shapes and dtypes.
"""
from __future__ import annotations

from typing import Any

import numpy as np

# name -> (expression over `nn` and `torch`, inputs). Inputs: a shape of floats; ("int", high, shape); ("bool", shape);
# ("sign", shape); ("unit", shape) for numbers in (0, 1); ("is", expression) for anything else.
LAYERS: dict[str, tuple[str, tuple[Any, ...]]] = {}
RANDOM = ("Dropout", "RReLU", "Fractional")  # random in training: compared in evaluation only
INTEGER = ("Embedding",)


def add(expression: str, *inputs: Any, name: str | None = None) -> None:
    key = name or expression.replace("nn.", "")
    if key in LAYERS:
        raise ValueError(f"layer {key} exists")
    LAYERS[key] = (expression, inputs)


for _n, _size in ((1, (7,)), (2, (5, 6)), (3, (4, 3, 4))):
    _x, _c = (2 if _n < 3 else 1, 4, *_size), f"nn.Conv{_n}d"
    add(f"{_c}(4, 6, 3)", _x)
    add(f"{_c}(4, 6, 2, stride=2, padding=1, dilation=1, groups=2, bias=False)", _x)
    add(f"{_c}(4, 4, 3, padding='same', groups=4)", _x)
    add(f"{_c}(4, 2, 2, padding='same', dilation=2)", _x)
    add(f"{_c}(4, 2, 3, padding='valid')", _x[1:])
    for _mode in ("reflect", "replicate", "circular"):
        add(f"{_c}(4, 2, 3, padding=1, padding_mode='{_mode}', stride=2)", _x)
    add(f"{_c}(4, 2, 4, padding='same', padding_mode='circular')", _x)
    _t = f"nn.ConvTranspose{_n}d"
    add(f"{_t}(4, 6, 3)", _x)
    add(f"{_t}(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", _x)
    add(f"{_t}(4, 2, 2, dilation=2, bias=False)", _x[1:])
    add(f"nn.MaxPool{_n}d(2)", _x)
    add(f"nn.MaxPool{_n}d(3, 2, 1, ceil_mode=True, return_indices=True)", _x)
    add(f"nn.MaxPool{_n}d(2, 1, dilation=2)", _x[1:])
    add(f"nn.AvgPool{_n}d(2)", _x)
    add(f"nn.AvgPool{_n}d(3, 2, 1, True, False)", _x)
    add(f"nn.AdaptiveAvgPool{_n}d(3)", _x)
    add(f"nn.AdaptiveMaxPool{_n}d(3, return_indices=True)", _x)
    add(f"nn.LPPool{_n}d(2, 2)", ("unit", _x))
    add(f"nn.BatchNorm{_n}d(4)", _x)
    add(f"nn.BatchNorm{_n}d(4, affine=False, momentum=None)", _x)
    add(f"nn.BatchNorm{_n}d(4, bias=False, eps=1e-2, momentum=0.3)", _x)
    add(f"nn.BatchNorm{_n}d(4, track_running_stats=False)", _x)
    add(f"nn.InstanceNorm{_n}d(4)", _x)
    add(f"nn.InstanceNorm{_n}d(4, affine=True, track_running_stats=True)", _x)
    add(f"nn.InstanceNorm{_n}d(4, affine=True, bias=False)", _x[1:])
    for _pad in ("Reflection", "Replication", "Circular", "Zero"):
        add(f"nn.{_pad}Pad{_n}d(1)", _x)
        add(f"nn.{_pad}Pad{_n}d({tuple(range(2 * _n))[:2] * _n})", _x)
    add(f"nn.ConstantPad{_n}d(2, 0.5)", _x)
    add(f"nn.MaxUnpool{_n}d(2)", (2, 4, *(2,) * _n),
        ("is", f"torch.arange(2 ** {_n}).reshape(1, 1, *(2,) * {_n}).expand(2, 4, *(2,) * {_n})"))  # fmt: skip
    add(f"nn.LazyConv{_n}d(3, 2)", _x)
    add(f"nn.LazyConvTranspose{_n}d(3, 2, bias=False)", _x)
    add(f"nn.LazyBatchNorm{_n}d()", _x)
    add(f"nn.LazyInstanceNorm{_n}d(affine=True)", _x)
add("nn.AdaptiveAvgPool2d((None, 2))", (2, 3, 5, 6))
add("nn.AvgPool2d(2, divisor_override=3)", (1, 2, 4, 4))
add("nn.ReflectionPad2d((1, 2, 0, 1))", (1, 2, 3, 4))
add("nn.BatchNorm1d(3)", (5, 3), name="BatchNorm1d of rows")
add("nn.SyncBatchNorm(3)", (5, 3, 2))
add("nn.GroupNorm(2, 4)", (3, 4, 5))
add("nn.GroupNorm(4, 4, affine=False)", (3, 4))
add("nn.GroupNorm(1, 4, bias=False)", (2, 4, 2, 2))
add("nn.LayerNorm(4)", (2, 3, 4))
add("nn.LayerNorm((3, 4), elementwise_affine=False)", (2, 3, 4))
add("nn.LayerNorm((3, 4), bias=False, eps=1e-2)", (2, 3, 4))
add("nn.RMSNorm(4)", (2, 3, 4))
add("nn.RMSNorm((3, 4), eps=1e-2, elementwise_affine=False)", (2, 3, 4))
add("nn.LocalResponseNorm(2)", (2, 5, 3))
add("nn.LocalResponseNorm(3, 0.1, 0.5, 2.0)", (2, 5, 3, 2))
add("nn.CrossMapLRN2d(3, 0.1)", (2, 5, 3, 2))
for _e in ("ReLU()", "ReLU6()", "ELU(0.5)", "CELU(0.7)", "SELU()", "GELU()", "GELU('tanh')", "SiLU()", "Mish()", "Sigmoid()", "Tanh()",
           "LogSigmoid()", "Softplus(2, 3)", "Softsign()", "Tanhshrink()", "Softshrink(0.3)", "Hardshrink(0.3)", "Hardtanh(-0.5, 0.7)",
           "Hardsigmoid()", "Hardswish()", "LeakyReLU(0.2)", "Threshold(0.1, 20)", "PReLU()", "PReLU(3, 0.1)", "RReLU(0.1, 0.4)",
           "Softmax(1)", "Softmin(-1)", "LogSoftmax(0)", "Dropout(0.3)", "AlphaDropout(0.2)", "FeatureAlphaDropout()", "Identity(3, a=1)",
           "Flatten(1, -1)", "Unflatten(1, (3, 1))", "Dropout1d(0.4)"):  # fmt: skip
    add(f"nn.{_e}", (2, 3, 4))
for _e in ("GLU(1)", "Softmax2d()", "Dropout2d()", "ChannelShuffle(2)", "PixelUnshuffle(2)", "PixelShuffle(2)", "Flatten(0, 2)"):
    add(f"nn.{_e}", (2, 4, 4, 2))
add("nn.Dropout3d()", (1, 2, 2, 2, 2))
add("nn.Unfold((2, 3), dilation=1, padding=1, stride=2)", (2, 3, 5, 6))
add("nn.Fold((5, 6), (2, 3), dilation=1, padding=1, stride=(2, 2))", (2, 12, 9))
add("nn.FractionalMaxPool2d(2, output_size=(3, 2), _random_samples=torch.full((2, 3, 2), 0.4))", (2, 3, 7, 6))
add("nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.full((1, 2, 3), 0.7))", (1, 2, 5, 6, 4))
for _e, _x in (("scale_factor=2", (1, 2, 3)), ("size=5, mode='linear'", (1, 2, 3)), ("scale_factor=(2, 1.5)", (1, 2, 4, 4)),
               ("size=(5, 3), mode='bilinear'", (1, 2, 4, 4)), ("scale_factor=1.7, mode='bilinear', align_corners=True", (1, 2, 4, 4)),
               ("size=(3, 7), mode='bicubic'", (1, 2, 4, 4)), ("scale_factor=2, mode='bicubic', align_corners=True", (1, 2, 3, 4)),
               ("size=(3, 2, 5), mode='trilinear'", (1, 2, 2, 4, 3)),
               ("scale_factor=1.5, mode='trilinear', align_corners=True", (1, 1, 2, 4, 3)),
               ("scale_factor=1.3, mode='nearest-exact'", (1, 2, 5, 4)), ("size=(2, 3), mode='area'", (1, 2, 5, 4)),
               ("scale_factor=1.6, mode='bilinear', recompute_scale_factor=True", (1, 2, 4, 4))):  # fmt: skip
    add(f"nn.Upsample({_e})", _x)
add("nn.UpsamplingNearest2d(scale_factor=2)", (1, 2, 3, 2))
add("nn.UpsamplingBilinear2d((5, 4))", (1, 2, 3, 2))
add("nn.Linear(4, 3)", (2, 5, 4))
add("nn.Linear(4, 3, bias=False)", (4,))
add("nn.LazyLinear(3)", (2, 4))
add("nn.Bilinear(3, 4, 2)", (2, 5, 3), (2, 5, 4))
add("nn.Bilinear(3, 4, 2, bias=False)", (5, 3), (5, 4))
add("nn.CosineSimilarity(1, 1e-3)", (2, 3, 4), (2, 3, 4))
add("nn.PairwiseDistance(1.5, 1e-3, True)", (3, 4), (3, 4))
add("nn.Embedding(6, 3, padding_idx=-2)", ("int", 6, (2, 4)))
add("nn.Embedding(6, 3, max_norm=0.5)", ("int", 6, (2, 4)))
add("nn.Embedding(6, 3, scale_grad_by_freq=True)", ("int", 6, (2, 4)))
for _mode in ("sum", "mean", "max"):
    add(f"nn.EmbeddingBag(6, 3, mode='{_mode}')", ("int", 6, (3, 4)))
    add(f"nn.EmbeddingBag(6, 3, mode='{_mode}', padding_idx=2)", ("int", 6, (7,)), ("is", "torch.tensor([0, 2, 2, 5])"))
    add(f"nn.EmbeddingBag(6, 3, mode='{_mode}', include_last_offset=True)", ("int", 6, (7,)), ("is", "torch.tensor([0, 2, 5, 7])"))
add("nn.EmbeddingBag(6, 3, mode='sum')", ("int", 6, (2, 4)), ("is", "None"), (2, 4), name="EmbeddingBag weighted")
for _k in ("RNN", "GRU", "LSTM"):
    add(f"nn.{_k}(3, 4, 2, dropout=0.0, bidirectional=True)", (5, 2, 3))
    add(f"nn.{_k}(3, 4, batch_first=True, bias=False)", (2, 5, 3))
    _h = ("is", "(torch.full((2, 2, 4), 0.3), torch.full((2, 2, 4), -0.2))" if _k == "LSTM" else "torch.full((2, 2, 4), 0.3)")
    add(f"nn.{_k}(3, 4, 2)", (5, 2, 3), _h)
    add(f"nn.{_k}(3, 4, bidirectional=True)", (5, 3), name=f"{_k} of one sequence")
    add(f"nn.{_k}Cell(3, 4)", (2, 3))
    add(f"nn.{_k}Cell(3, 4, bias=False)", (3,))
add("nn.RNN(3, 4, nonlinearity='relu')", (5, 2, 3))
add("nn.RNNCell(3, 4, nonlinearity='relu')", (2, 3))
add("nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True, batch_first=True)", (2, 5, 3))
_MASK, _HIDDEN = ("is", "torch.triu(torch.ones(4, 4), 1).bool()"), ("is", "torch.tensor([[False] * 3 + [True], [False] * 4])")
for _e in ("nn.MultiheadAttention(6, 2)", "nn.MultiheadAttention(6, 3, bias=False, add_zero_attn=True)",
           "nn.MultiheadAttention(6, 2, add_bias_kv=True)"):  # fmt: skip
    add(_e, (4, 2, 6), (4, 2, 6), (4, 2, 6), _HIDDEN, ("is", "True"), _MASK)
add("nn.MultiheadAttention(6, 2, batch_first=True)", (2, 4, 6), (2, 4, 6), (2, 4, 6), _HIDDEN, ("is", "True"), _MASK, ("is", "False"))
add("nn.MultiheadAttention(6, 2, kdim=3, vdim=5, batch_first=True)", (2, 4, 6), (2, 5, 3), (2, 5, 5))
add("nn.MultiheadAttention(6, 2)", (4, 6), (5, 6), (5, 6), name="MultiheadAttention of one sequence")
_SQUARE = ("is", "nn.Transformer.generate_square_subsequent_mask(4)")
for _e in ("", ", batch_first=True, norm_first=True", ", activation='gelu', bias=False, layer_norm_eps=1e-3"):
    _x = (2, 4, 6) if "batch_first" in _e else (4, 2, 6)
    add(f"nn.TransformerEncoderLayer(6, 2, 8, 0.0{_e})", _x, _SQUARE)
    add(f"nn.TransformerDecoderLayer(6, 2, 8, 0.0{_e})", _x, _x, _SQUARE)
add("nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True)", (2, 4, 6), ("is", "None"), _HIDDEN, name="TransformerEncoderLayer hidden")
add("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6))", (4, 2, 6), _SQUARE)
add("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6))", (4, 2, 6), (5, 2, 6), _SQUARE)
add("nn.Transformer(6, 2, 1, 2, 8, 0.0)", (4, 2, 6), (3, 2, 6), ("is", "None"), ("is", "nn.Transformer.generate_square_subsequent_mask(3)"))
add("nn.AdaptiveLogSoftmaxWithLoss(6, 20, [4, 10], 2.0, True)", (5, 6), ("is", "torch.tensor([1, 4, 12, 19, 3])"))
for _r in ("none", "mean", "sum"):
    for _e, _in in (("L1Loss", ((3, 4), (3, 4))), ("MSELoss", ((3, 4), (3, 4))), ("SmoothL1Loss", ((3, 4), (3, 4))),
                    ("HuberLoss", ((3, 4), (3, 4))), ("BCELoss", (("unit", (3, 4)), ("unit", (3, 4)))),
                    ("BCEWithLogitsLoss", ((3, 4), ("unit", (3, 4)))), ("KLDivLoss", ((3, 4), ("unit", (3, 4)))),
                    ("PoissonNLLLoss", ((3, 4), ("unit", (3, 4)))), ("GaussianNLLLoss", ((3, 4), (3, 4), ("unit", (3, 1)))),
                    ("HingeEmbeddingLoss", ((3, 4), ("sign", (3, 4)))), ("SoftMarginLoss", ((3, 4), ("sign", (3, 4)))),
                    ("MarginRankingLoss", ((4,), (4,), ("sign", (4,)))), ("CosineEmbeddingLoss", ((4, 3), (4, 3), ("sign", (4,)))),
                    ("TripletMarginLoss", ((4, 3), (4, 3), (4, 3))), ("TripletMarginWithDistanceLoss", ((4, 3), (4, 3), (4, 3))),
                    ("MultiMarginLoss", ((4, 3), ("int", 3, (4,)))), ("MultiLabelSoftMarginLoss", ((4, 3), ("unit", (4, 3)))),
                    ("MultiLabelMarginLoss", ((2, 4), ("is", "torch.tensor([[3, 0, -1, 1], [2, -1, 0, 1]])"))),
                    ("NLLLoss", ((4, 3, 2), ("int", 3, (4, 2)))), ("CrossEntropyLoss", ((4, 3, 2), ("int", 3, (4, 2)))),
                    ("CTCLoss", ((6, 2, 4), ("is", "torch.tensor([[1, 2, 3], [2, 2, 1]])"), ("is", "torch.tensor([6, 5])"),
                                 ("is", "torch.tensor([3, 2])")))):  # fmt: skip
        add(f"nn.{_e}(reduction='{_r}')", *_in)
add("nn.CrossEntropyLoss(torch.tensor([0.5, 1.0, 2.0]), ignore_index=1, label_smoothing=0.2)", (6, 3), ("int", 3, (6,)))
add("nn.CrossEntropyLoss(label_smoothing=0.1)", (4, 3), ("is", "torch.full((4, 3), 1 / 3)"))
add("nn.CrossEntropyLoss()", (3,), ("is", "torch.tensor(2)"), name="CrossEntropyLoss of one")
add("nn.NLLLoss(torch.tensor([0.5, 1.0, 2.0]), ignore_index=0)", (6, 3), ("int", 3, (6,)))
add("nn.BCEWithLogitsLoss(torch.tensor([0.5, 2.0]), pos_weight=torch.tensor([3.0, 0.3]))", (4, 2), ("unit", (4, 2)))
add("nn.BCELoss(torch.tensor([0.5, 2.0]))", ("unit", (4, 2)), ("unit", (4, 2)))
add("nn.KLDivLoss(reduction='batchmean', log_target=True)", (4, 3), (4, 3))
add("nn.SmoothL1Loss(beta=0.3)", (3, 4), (3, 4))
add("nn.HuberLoss(delta=0.3)", (3, 4), (3, 4))
add("nn.PoissonNLLLoss(False, True)", ("unit", (3, 4)), ("is", "torch.tensor([[0.5, 1.5, 2.5, 3.5]] * 3)"))
add("nn.GaussianNLLLoss(full=True, eps=0.3)", (3, 4), (3, 4), ("unit", (3, 4)))
add("nn.MultiMarginLoss(2, 0.7, torch.tensor([0.5, 1.0, 2.0]))", (4, 3), ("int", 3, (4,)))
add("nn.MultiLabelSoftMarginLoss(torch.tensor([0.5, 1.0, 2.0]))", (4, 3), ("unit", (4, 3)))
add("nn.TripletMarginLoss(0.5, 1, swap=True)", (4, 3), (4, 3), (4, 3))
add("nn.CosineEmbeddingLoss(0.3)", (3,), (3,), ("is", "torch.tensor(-1)"))
add("nn.CTCLoss(blank=3, zero_infinity=True)", (3, 2, 4), ("is", "torch.tensor([1, 2, 2, 2, 0])"), ("is", "(3, 3)"), ("is", "(2, 3)"))
add("nn.LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)", (5, 4), ("int", 3, (5,)))
add("nn.LinearCrossEntropyLoss(4, 3, out_features=(2,))", (5, 4), ("int", 3, (5, 2)))
add("nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Sequential(nn.Linear(3, 2, bias=False)))", (2, 4))
for _e in ("nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU()])", "nn.ModuleDict({'a': nn.Linear(1, 2), 'b': nn.ReLU()})",
           "nn.ParameterList([torch.ones(2), torch.ones(2, 3)])", "nn.ParameterDict({'a': torch.ones(2), 'b': 3})",
           "nn.Sequential()", "nn.ModuleList()", "nn.Sequential(nn.ParameterList([torch.ones(2)]))"):  # fmt: skip
    add(_e)


def _floats(torch: Any, rng: Any, shape: tuple[int, ...], low: float, high: float, dtype: Any) -> Any:
    return torch.tensor(rng.uniform(low, high, shape).tolist(), dtype=dtype).reshape(shape)


def _input(torch: Any, rng: Any, spec: Any, dtype: Any) -> Any:
    if not isinstance(spec[0], str) if spec else True:
        return _floats(torch, rng, spec, -1.0, 1.0, dtype).requires_grad_()
    kind = spec[0]
    if kind == "unit":
        return _floats(torch, rng, spec[1], 0.05, 0.95, dtype)
    if kind == "int":
        return torch.tensor(rng.integers(0, spec[1], spec[2]).tolist())
    if kind == "sign":
        return torch.tensor((rng.integers(0, 2, spec[1]) * 2 - 1).tolist()).to(dtype)
    value = eval(spec[1], {"torch": torch, "nn": torch.nn})
    return _cast(torch, value, dtype)


def _cast(torch: Any, value: Any, dtype: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_cast(torch, v, dtype) for v in value)
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def build(torch: Any, name: str, dtype: Any) -> tuple[Any, list[Any]]:
    """The layer with fixed weights, and its inputs."""
    expression, specs = LAYERS[name]
    rng = np.random.default_rng(sum((i + 1) * ord(c) for i, c in enumerate(name)))
    module = eval(expression, {"torch": torch, "nn": torch.nn}).to(dtype)
    inputs = [_input(torch, rng, spec, dtype) for spec in specs]
    if "Lazy" in name:
        with torch.no_grad():
            module(*inputs)
            if hasattr(module, "reset_running_stats"):
                module.reset_running_stats()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(_floats(torch, rng, tuple(p.shape), -0.6, 0.6, dtype))
    return module, inputs


def _flat(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _flat(torch, v)]
    return [value] if isinstance(value, torch.Tensor) else []


def numbers(t: Any) -> list[float]:
    return [float(v) for v in t.detach().double().flatten().tolist()]


def run(torch: Any, name: str) -> dict[str, Any]:
    """All compared values of one layer."""
    result: dict[str, Any] = {}
    for mode in ("train", "eval"):
        module, inputs = build(torch, name, torch.float64)
        if mode == "train":
            result["text"] = repr(module)
            result["state"] = {k: [list(v.shape), str(v.dtype)] for k, v in module.state_dict().items()}
            result["attributes"] = sorted(k for k in vars(module) if "hook" not in k and not k.startswith("_"))
        if not inputs or (mode == "train" and any(r in name for r in RANDOM)):
            continue
        module.train(mode == "train")
        outputs = _flat(torch, module(*inputs))
        loss: Any = 0
        for i, y in enumerate(outputs):
            if y.requires_grad:
                weights = torch.tensor(np.random.default_rng(i).uniform(-1, 1, tuple(y.shape)).tolist(), dtype=torch.float64)
                loss = loss + (y * weights.reshape(tuple(y.shape))).sum()
        leaves = [t for t in [*_flat(torch, inputs), *module.parameters()] if t.requires_grad]
        grads = torch.autograd.grad(loss, leaves, allow_unused=True) if isinstance(loss, torch.Tensor) and leaves else []
        result[mode] = {
            "outputs": [[list(y.shape), str(y.dtype), numbers(y)] for y in outputs],
            "grads": [None if g is None else numbers(g) for g in grads],
            "buffers": [numbers(b) for b in module.buffers()],
        }
    return result


def run_low(torch: Any, name: str) -> list[Any] | None:
    """Outputs in bfloat16, in evaluation. None if torch lacks the kernel."""
    module, inputs = build(torch, name, torch.bfloat16)
    module.eval()
    try:
        with torch.no_grad():
            return [[str(y.dtype), numbers(y)] for y in _flat(torch, module(*inputs))] if inputs else None
    except (RuntimeError, NotImplementedError):
        return None
