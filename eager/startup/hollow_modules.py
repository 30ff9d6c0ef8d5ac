"""Modules of torch that programs import and that do no work here: one table of their names, and the loader that makes them.

A function or class of the table raises NotImplementedError, with the reason of `absent_names`, when it is called. An answer
is a function that returns a constant: portable code calls these functions before it uses the others.
"""
from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from typing import Any, Final

from eager.startup import absent_names, first_use


class Hollow:  # not a NamedTuple or dataclass, which would take a millisecond of `import eager`
    """A module of the table. functions, classes: names, separated by spaces. answers: function name -> the constant that it returns."""

    __slots__ = ("summary", "functions", "classes", "answers")

    def __init__(self, summary: str, functions: str = "", classes: str = "", answers: Mapping[str, Any] | None = None) -> None:
        self.summary, self.functions, self.classes, self.answers = summary, functions, classes, answers or {}


MODULES: Final[dict[str, Hollow]] = {
    "eager.distributed._composable": Hollow("The former package of `torch.distributed.fsdp.fully_shard`."),
    "eager.distributed.device_mesh": Hollow("Grids of devices of several processes.", "init_device_mesh", "DeviceMesh"),
    "eager.distributed.nn": Hollow(
        "Collective operations that gradients pass through.",
        "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter"),
    "eager.distributed.rpc": Hollow(
        "Calls of functions in other processes.", "get_worker_info init_rpc remote rpc_async rpc_sync shutdown",
        "RRef TensorPipeRpcBackendOptions", {"is_available": False}),
    "eager.distributed.tensor.experimental": Hollow("Experimental parts of tensors spread over processes.", "implicit_replication"),
    "eager.onnx.symbolic_opset9": Hollow("The ONNX operators of opset 9."),
    "eager.onnx.symbolic_opset11": Hollow("The ONNX operators of opset 11."),
    "eager.xpu": Hollow(
        "GPUs of Intel.", answers={"device_count": 0, "empty_cache": None, "is_available": False, "manual_seed": None,
                                   "manual_seed_all": None}),
    "eager.backends.mkl": Hollow("MKL: numpy and framejit have the kernels of the CPU.", answers={"is_available": False}),
    "eager.backends.mps": Hollow(
        "GPUs of Apple.", answers={"is_available": False, "is_built": False, "is_macos13_or_newer": False, "is_macos_or_newer": False}),
    "eager.backends.openmp": Hollow("OpenMP: numpy and framejit have the kernels of the CPU.", answers={"is_available": False}),
}  # fmt: skip


def spec_of(name: str) -> ModuleSpec | None:
    """The spec of a module of the table; None for any other name."""
    if name not in MODULES:
        return None
    loader: Any = _Loader()
    return ModuleSpec(name, loader, origin=__file__, is_package=name == "eager.distributed._composable")


class _Loader:
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        _fill(module, MODULES[module.__name__])
        if absent_names.OwnLoader.loaded is not None:
            absent_names.OwnLoader.loaded(module)


def _fill(module: types.ModuleType, row: Hollow) -> None:
    torch_name = module.__name__.replace("eager", "torch", 1)
    functions: dict[str, Callable[..., Any]] = {name: _refusing(f"{torch_name}.{name}") for name in row.functions.split()}
    functions |= {name: _answering(value) for name, value in row.answers.items()}
    for name, fn in functions.items():
        fn.__name__ = fn.__qualname__ = name
        fn.__module__ = module.__name__
    classes = {name: _refusing_class(name, module.__name__, f"{torch_name}.{name}") for name in row.classes.split()}
    module.__doc__ = row.summary
    vars(module).update(functions, **classes, __all__=sorted([*functions, *classes]))
    vars(module)["__getattr__"] = absent_names.attribute_finder(module, torch_name, None)


def _refusing(full_name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        absent_names.missing(full_name)

    call.__doc__ = "Not available. Raises: NotImplementedError."
    return call


def _answering(value: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return value

    call.__doc__ = f"Returns {value}."
    return call


def _refusing_class(name: str, module: str, full_name: str) -> type:
    doc = "Not available: has no instances. Raises: NotImplementedError when it is called."
    return type(name, (), {"__init__": _refusing(full_name), "__module__": module, "__doc__": doc})


for _name in MODULES:
    first_use.register(_name.rpartition(".")[0], {_name.rpartition(".")[2]: _name})
