"""Write nn_api.json: the public names and signatures of torch.nn, torch.optim and torch.serialization.

    python tests/data/make_nn_api.py        # in an environment with torch (made with 2.13.0, CPU)
"""
from __future__ import annotations

import importlib
import inspect
import json
import re
import types
import warnings
from pathlib import Path
from typing import Any

import torch

MODULES = (
    "nn", "nn.functional", "nn.init", "nn.grad", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations",
    "nn.utils.prune", "nn.utils.stateless", "nn.utils.fusion", "nn.utils.clip_grad", "nn.utils.convert_parameters",
    "nn.utils.memory_format", "nn.utils.init", "nn.utils.weight_norm", "nn.utils.spectral_norm", "nn.parameter", "nn.attention",
    "nn.common_types", "nn.modules", "nn.modules.activation", "nn.modules.adaptive", "nn.modules.batchnorm",
    "nn.modules.channelshuffle", "nn.modules.container", "nn.modules.conv", "nn.modules.distance", "nn.modules.dropout",
    "nn.modules.flatten", "nn.modules.fold", "nn.modules.instancenorm", "nn.modules.lazy", "nn.modules.linear", "nn.modules.loss",
    "nn.modules.module", "nn.modules.normalization", "nn.modules.padding", "nn.modules.pixelshuffle", "nn.modules.pooling",
    "nn.modules.rnn", "nn.modules.sparse", "nn.modules.transformer", "nn.modules.upsampling", "nn.modules.utils", "optim",
    "optim.adadelta", "optim.adagrad", "optim.adam", "optim.adamax", "optim.adamw", "optim.asgd", "optim.lbfgs", "optim.lr_scheduler",
    "optim.nadam", "optim.optimizer", "optim.radam", "optim.rmsprop", "optim.rprop", "optim.sgd", "optim.sparse_adam",
    "optim.swa_utils", "serialization",
)  # fmt: skip
PACKAGES = ("nn", "nn.functional", "nn.init", "nn.utils", "nn.modules", "optim", "serialization")
# Names that a module merely imports for its own use.
PLUMBING = {"Tensor", "TYPE_CHECKING", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "T",
            "has_torch_function_variadic", "boolean_dispatch", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3"}  # fmt: skip
Signature = list[list[Any]]


def default_of(p: inspect.Parameter) -> Any:
    if p.default is inspect.Parameter.empty:
        return None
    plain = isinstance(p.default, (int, float, str, bool, type(None), tuple, list))
    return repr(p.default) if plain else f"<{type(p.default).__name__}>"


def signature_of(fn: Any) -> Signature | None:
    try:
        found = inspect.signature(fn)
    except (ValueError, TypeError):
        return documented(fn)
    return [[p.name, p.kind.name, default_of(p)] for p in found.parameters.values()]


def documented(fn: Any) -> Signature | None:
    """Of a builtin: the signature that its documentation begins with."""
    match = re.match(r"\s*\w+\(([^\n]*)\) *->", fn.__doc__ or "")
    if match is None:
        return None
    result: Signature = []
    kind = "POSITIONAL_OR_KEYWORD"
    for part in re.split(r",\s*(?![^(]*\))", match.group(1)):
        if part.strip() == "*":
            kind = "KEYWORD_ONLY"
            continue
        name, _, value = part.strip().partition("=")
        result.append([name.split(":")[0].strip(), kind, "documented" if value else None])
    return result


def described(obj: Any) -> dict[str, Any]:
    if not inspect.isclass(obj):
        return {"kind": "function", "signature": signature_of(obj)}
    methods = {}
    for name in dir(obj):
        value = inspect.getattr_static(obj, name)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if name.startswith("_") or not isinstance(value, types.FunctionType):
            continue
        inherited = issubclass(obj, torch.nn.Module) and obj is not torch.nn.Module and hasattr(torch.nn.Module, name)
        if not inherited or name == "forward":
            methods[name] = signature_of(value)
    tensor = issubclass(obj, torch.Tensor)
    return {"kind": "class", "signature": None if tensor else signature_of(obj.__init__), "methods": {} if tensor else methods}


def main() -> None:
    warnings.simplefilter("ignore")
    result: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for module_name in MODULES:
        module = importlib.import_module(f"torch.{module_name}")
        names = {}
        for name in sorted(dir(module)):
            obj = getattr(module, name)
            home = getattr(obj, "__module__", None) or "torch"
            # a file's own names; a package's are all that it offers
            own = home == f"torch.{module_name}" or (module_name in PACKAGES and home.startswith("torch"))
            if name.startswith("_") or name in PLUMBING or isinstance(obj, types.ModuleType) or not callable(obj) or not own:
                continue
            names[name] = {"kind": "known"} if id(obj) in seen else described(obj)
            seen.add(id(obj))
        result[module_name] = names
    lines = ",\n".join(
        f"{json.dumps(m)}: {{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(d, separators=(',', ':'))}" for n, d in names.items()) + "\n}"
        for m, names in result.items())  # fmt: skip
    (Path(__file__).parent / "nn_api.json").write_text("{\n" + lines + "\n}\n")
    print(f"{sum(map(len, result.values()))} names with torch {torch.__version__}")


if __name__ == "__main__":
    main()
