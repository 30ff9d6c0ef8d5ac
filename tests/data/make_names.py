"""Writes torch_names.json.gz: the public names of every public module of torch, of the classes that users hold objects of, and
all names of the private modules that programs import (`PRIVATE`).

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
PRIVATE = (
    "_C._autograd _C._dynamo.eval_frame _C._functorch _C._profiler _compile _custom_ops _decomp _dispatch.python "
    "_dynamo.backends.debugging _dynamo.callback _dynamo.comptime _dynamo.convert_frame _dynamo.decorators _dynamo.eval_frame "
    "_dynamo.exc _dynamo.output_graph _dynamo.profiler _dynamo.source _dynamo.testing _dynamo.utils _dynamo.variables _export "
    "_functorch._activation_offloading _functorch.aot_autograd _functorch.apis _functorch.eager_transforms _functorch.functional_call "
    "_functorch.partitioners _functorch.vmap _guards _higher_order_ops _higher_order_ops.flex_attention "
    "_higher_order_ops.invoke_subgraph _higher_order_ops.utils _higher_order_ops.wrap _inductor.codecache _inductor.compile_fx "
    "_inductor.cudagraph_trees _inductor.output_code _inductor.utils _jit_internal _lazy _lazy.metrics _library _library.custom_ops "
    "_library.opaque_object _linalg_utils _logging _lowrank _meta_registrations _numpy _ops _prims _prims_common _refs _subclasses "
    "_subclasses.fake_tensor _subclasses.meta_utils _tensor _tensor_str _utils _utils_internal _vendor.packaging.version "
    "_weights_only_unpickler cuda._graph_annotations distributed._functional_collectives distributed._symmetric_memory "
    "distributed._tensor distributed.algorithms._checkpoint.checkpoint_wrapper distributed.fsdp._fully_shard fx._graph_pickler "
    "fx._lazy_graph_module fx._symbolic_trace fx._utils nn._reduction nn.utils._named_member_accessor nn.utils._per_sample_grad "
    "optim._functional optim._multi_tensor testing._internal.common_device_type testing._internal.common_dtype "
    "testing._internal.common_utils utils._content_store utils._cxx_pytree utils._debug_mode utils._device utils._foreach_utils "
    "utils._mode_utils utils._ordered_set utils._python_dispatch utils._pytree utils._stats utils._sympy.functions utils._sympy.numbers "
    "utils._sympy.value_ranges utils._traceback utils._triton utils._zip utils.data._utils.collate utils.data._utils.fetch "
    "utils.data._utils.pin_memory utils.data._utils.worker"
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


def private_names_of(name: str) -> list[str]:
    """Names that a private module defines or lists, with or without an underscore."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", ())
    return sorted(k for k, v in vars(module).items() if not k.startswith("__") and (k in listed or getattr(v, "__module__", None) == name))


def main() -> None:
    warnings.simplefilter("ignore")
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(modules()):
        try:
            names[name] = names_of(name)
        except ImportError as error:  # an optional package is not installed
            print(name, error)
    for name in (f"torch.{name}" for name in PRIVATE):
        try:
            names[name] = private_names_of(name)
        except ImportError as error:
            print(name, error)
    for name in CLASSES:
        names[f"torch.{name}"] = [k for k in dir(eval(f"torch.{name}")) if not k.startswith("_")]
    with gzip.GzipFile(Path(__file__).with_name("torch_names.json.gz"), "wb", mtime=0) as f:
        f.write(json.dumps(names).encode())


if __name__ == "__main__":
    main()
