"""Objects for files, and their descriptions as plain data.

tests/data/make_torch_files.py saves the objects with torch, and the tests save them with eager.
"""
from __future__ import annotations

import collections
import math
from typing import Any


def values(torch: Any, legacy: bool = False) -> dict[str, Any]:
    """Tensors of every kind, and the plain objects of checkpoints. legacy: only objects that the old format can hold."""
    base = torch.arange(12.0)
    marked = torch.ones(3)
    marked.note = "kept"
    parameter = torch.nn.Parameter(torch.arange(3.0))
    parameter.tag = [1, 2]
    result = {
        "float32": base, "view": base.view(3, 4).t()[1:], "bool": torch.tensor([True, False]), "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5), "marked": marked, "parameter": parameter, "expanded": torch.ones(1, 3).expand(4, 3),
        "leaf": torch.ones(2, requires_grad=True), "meta": torch.empty(2, 3, device="meta"), "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16, "device": torch.device("cpu"), "complex64": torch.tensor([1 + 2j, 3]),
        "complex128": torch.tensor([1 + 2j], dtype=torch.complex128), "conjugate": torch.tensor([1 + 2j]).conj(),
        "plain": collections.OrderedDict(a=1, b=[None, True, 1.5, "x\u00e9", b"\x00\xff", 2**70, -3, (1,), {1, 2}, complex(1, 2)]),
        "counter": collections.Counter("aab"), "bytes": bytearray(b"ab"),
    }  # fmt: skip
    names = ["float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8"]
    for name in names if legacy else [*names, "uint16", "uint32", "uint64"]:
        result[name] = torch.arange(4).to(getattr(torch, name))
    return result


def describe(torch: Any, value: Any) -> Any:
    """Description of a loaded object as plain data: every property that a round trip keeps."""
    if isinstance(value, torch.Tensor):
        data = None
        if value.device.type != "meta":
            wide = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
            data = [str(v) for v in wide.flatten().tolist()]
        kept = {k: describe(torch, v) for k, v in vars(value).items()}
        return [str(value.dtype), list(value.shape), list(value.stride()), value.requires_grad, isinstance(value, torch.nn.Parameter),
                str(value.device), kept, data]  # fmt: skip
    if isinstance(value, dict):
        return [type(value).__name__, [[str(k), describe(torch, v)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [describe(torch, v) for v in value]]
    if isinstance(value, set):
        return sorted(value)
    return [type(value).__name__.replace("eager", "torch"), str(value)]


def models(torch: Any) -> dict[str, tuple[Any, Any]]:
    """Whole modules and inputs for them."""
    nn = torch.nn
    cnn = collections.OrderedDict(conv=nn.Conv2d(2, 3, 3, padding="same", padding_mode="reflect"), norm=nn.BatchNorm2d(3), act=nn.GELU(),
                                  pool=nn.AdaptiveAvgPool2d(2), flat=nn.Flatten(), out=nn.Linear(12, 4))  # fmt: skip
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, activation="gelu")
    return {
        "cnn": (nn.Sequential(cnn), (2, 2, 6, 6)), "transformer": (nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (2, 3, 4)),
        "lstm": (nn.LSTM(2, 3, 2, bidirectional=True), (3, 2, 2)),
        "mixed": (nn.Sequential(nn.PReLU(), nn.LayerNorm(4), nn.Dropout(0.3), nn.RMSNorm(4), nn.Softmax(-1)), (3, 4)),
    }  # fmt: skip


def outputs(torch: Any, model: Any, shape: tuple[int, ...]) -> list[float]:
    model.eval()
    with torch.no_grad():
        y = model(torch.linspace(-1, 1, math.prod(shape)).reshape(shape))
    return [float(v) for v in (y[0] if isinstance(y, tuple) else y).flatten().tolist()]


def training(torch: Any, kind: str) -> tuple[Any, Any, Any]:
    """A model, its optimizer and a schedule after one step."""
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.linspace(-0.5, 0.5, p.numel()).reshape(p.shape))
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    advance(torch, model, optimizer, schedule)
    return model, optimizer, schedule


def advance(torch: Any, model: Any, optimizer: Any, schedule: Any) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()
    schedule.step()


def after(torch: Any, parts: tuple[Any, Any, Any]) -> list[float]:
    """Parameters and learning rate after two more steps."""
    model, optimizer, schedule = parts
    for _ in range(2):
        advance(torch, model, optimizer, schedule)
    return [float(v) for p in model.parameters() for v in p.flatten().tolist()] + [float(optimizer.param_groups[0]["lr"])]


KINDS = ("SGD", "AdamW", "RMSprop", "Adagrad")
