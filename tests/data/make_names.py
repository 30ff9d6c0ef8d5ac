"""Writes torch_names.json.gz: the public names of every public module of torch, and of the classes that users hold objects of.

Run with a Python that has torch 2.13: `python tests/data/make_names.py`. A module counts as public if no part of its name begins
with an underscore; parts of torch that only torch's own developers run (`LEFT_OUT`) are not listed.
"""
from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

LEFT_OUT = tuple(f"torch.{name}" for name in (
    "testing contrib lib bin include share csrc monitor numa utils.benchmark.examples utils.model_dump utils.bottleneck utils.hipify "
    "utils.data._ utils.jit utils.viz utils.benchmark. utils.tensorboard fx.experimental. fx.passes. onnx. ao. quantization. distributed. "
    "jit. nn.quantized nn.qat nn.intrinsic nn.quantizable sparse. mtia. xpu. masked. nested.").split())  # fmt: skip
BESIDES = (
    "distributed.fsdp distributed.tensor distributed.checkpoint distributed.rpc distributed.optim distributed.algorithms "
    "distributed.device_mesh distributed.nn distributed.elastic distributed.pipelining ao.quantization ao.nn.quantized ao.pruning ao.ns "
    "sparse.semi_structured fx.experimental.proxy_tensor fx.experimental.symbolic_shapes fx.passes.shape_prop onnx.symbolic_helper "
    "jit.annotations monitor numa utils.benchmark testing fx._pytree"
).split()
CLASSES = (
    "Tensor nn.Module optim.Optimizer Generator cuda.Stream cuda.Event fx.Graph fx.Node fx.GraphModule fx.Tracer fx.Interpreter "
    "distributions.Distribution nn.utils.rnn.PackedSequence dtype device Size UntypedStorage"
).split()


def modules() -> Iterator[str]:
    yield "torch"
    for found in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda _: None):
        is_private = any(part.startswith("_") for part in found.name.split(".")[1:])
        if not is_private and not found.name.startswith(LEFT_OUT):
            yield found.name
    yield from (f"torch.{name}" for name in BESIDES)


def is_public(module: str, name: str, value: Any, is_listed: bool) -> bool:
    """Whether `name` of a module is one of its public names; without `__all__`, whether it was defined there."""
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.") and name in value.__name__.split(".")
    if is_listed:
        return True
    home = getattr(value, "__module__", None)
    if isinstance(home, str) and not home.startswith("torch") and home != "builtins":
        return False
    if home and home.startswith("torch") and home != module and not home.startswith(f"{module}.") and module != "torch":
        return False
    if value is None or type(value).__module__ == "typing":
        return False
    return callable(value) or isinstance(value, torch.dtype | torch.layout | torch.memory_format | float | int | str)


def names_of(name: str) -> list[str]:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    found = (k for k in listed or dir(module) if not k.startswith("_"))
    return sorted({k for k in found if is_public(name, k, getattr(module, k, None), listed is not None)})


def main() -> None:
    warnings.simplefilter("ignore")
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(modules()):
        try:
            names[name] = names_of(name)
        except ImportError as error:  # an optional package is not installed
            print(name, error)
    for name in CLASSES:
        names[f"torch.{name}"] = [k for k in dir(eval(f"torch.{name}")) if not k.startswith("_")]
    with gzip.GzipFile(Path(__file__).with_name("torch_names.json.gz"), "wb", mtime=0) as f:
        f.write(json.dumps(names).encode())


if __name__ == "__main__":
    main()
