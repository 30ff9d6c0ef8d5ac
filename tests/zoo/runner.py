"""Runs a case of the zoo under torch or this project and returns every result by name.

A case runs two training steps and an evaluation with the trained weights. The results of a step are outputs, loss,
gradients of parameters and inputs, buffers, and parameters after the optimizer.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from tests.zoo.case import Case, Draw

FAMILIES = ("convnets", "dense_prediction", "vision_transformers", "language", "translation", "sequences", "generative",
            "sets_and_graphs", "decisions", "assorted")  # fmt: skip
STEPS = 2


def cases() -> dict[str, Case]:
    """Every case of the zoo by name."""
    found: dict[str, Case] = {}
    for family in FAMILIES:
        for name, case in importlib.import_module(f"tests.zoo.models.{family}").CASES.items():
            assert name not in found, name
            found[name] = case
    return found


def seed_of(name: str) -> int:
    return zlib.crc32(name.encode()) % 10007


def fill(model: torch.nn.Module, seed: int, frozen: tuple[str, ...] = ()) -> None:
    """Set weights from numpy: matrices scaled by their fan-in, vectors near their initial values, unit vectors for power iterations."""
    stream = np.random.RandomState(seed)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if tensor.dtype not in (torch.float32, torch.float64) or not _filled(model, name, tensor, frozen):
                continue
            noise = stream.standard_normal(tuple(tensor.shape))
            if name.endswith(("_u", "_v")) and tensor.ndim == 1:
                values = noise / np.linalg.norm(noise)
            elif tensor.ndim < 2:
                values = 0.1 * noise + (1.0 if name.endswith("weight") else 0.0)
            else:
                values = noise / math.sqrt(max(1, int(np.prod(tensor.shape[1:]))))
            tensor.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))


def _filled(model: torch.nn.Module, name: str, tensor: torch.Tensor, frozen: tuple[str, ...]) -> bool:
    """Whether `fill` sets the tensor: trained parameters, frozen random parameters, and the vectors of spectral norms.

    The other tensors keep their initial values.
    """
    if name in dict(model.named_parameters()):
        return bool(tensor.requires_grad) or any(part in name for part in frozen)
    return name.endswith(("weight_u", "weight_v", "._u", "._v"))


def tensors_in(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """(path, tensor) for every tensor within nested containers and dataclasses."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from tensors_in(item, f"{path}.{i}")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name), f"{path}.{field.name}")


def weighted(outputs: Any) -> torch.Tensor:
    """The default loss: the mean of each floating output times fixed weights of both signs, plus 0.1 times its mean square."""
    total = torch.zeros(())
    for _, t in tensors_in(outputs):
        if t.is_floating_point() and t.requires_grad:
            weights = torch.cos(torch.arange(t.numel(), dtype=torch.float32)).view(t.shape)
            total = total + (t * weights).mean() + 0.1 * t.pow(2).mean()
    return total


def run(name: str, case: Case, wrap: Callable[[torch.nn.Module], Any] = lambda model: model, *, device: str = "cpu",
        steps: int = STEPS, evaluates: bool = True) -> dict[str, np.ndarray]:  # fmt: skip
    """All results of a case by name. `wrap` may compile the model. device: of the model, its inputs, and tensors that it makes."""
    seed = seed_of(name)
    torch.manual_seed(seed)
    model = case.build()
    fill(model, seed, case.frozen)
    inputs = moved(case.inputs(Draw(seed)), device)
    model.to(device)
    called = wrap(model)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=case.lr, momentum=0.9, weight_decay=1e-3)
    found: dict[str, np.ndarray] = {}
    torch.manual_seed(seed)
    model.train()
    with torch.device(device):
        for step in range(steps):
            leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) if isinstance(t, torch.Tensor) else t for t in inputs]
            outputs = called(*leaves)
            loss = case.loss(model, outputs, tuple(leaves)) if case.loss is not None else weighted(outputs)
            optimizer.zero_grad()
            loss.backward()
            record(found, f"train{step}.out", outputs)
            record(found, f"train{step}.loss", loss)
            record(found, f"train{step}.input_grad", [t.grad for t in leaves if isinstance(t, torch.Tensor) and t.grad is not None])
            record(found, f"train{step}.grad", {n: p.grad for n, p in model.named_parameters() if p.grad is not None})
            optimizer.step()
            record(found, f"train{step}.buffer", dict(model.named_buffers()))
            record(found, f"train{step}.param", dict(model.named_parameters()))
        if evaluates:
            model.eval()
            with torch.no_grad() if not case.grad_in_eval else torch.enable_grad():
                record(found, "eval.out", called(*inputs))
    return found


def moved(value: Any, device: str) -> Any:
    """Inputs on a device: tensors, and tensors in lists and tuples."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return type(value)(moved(x, device) for x in value) if isinstance(value, list | tuple) else value


def record(found: dict[str, np.ndarray], prefix: str, value: Any) -> None:
    for path, tensor in tensors_in(value):
        found[prefix + path] = tensor.detach().cpu().clone().numpy()
