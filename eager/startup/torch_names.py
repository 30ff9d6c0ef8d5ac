"""The table of modules that have another name here than in torch, and the translation in both directions.

Standard library only.
"""
from __future__ import annotations

# torch's name of a module -> its name here, if `eager` does not simply replace `torch`. Submodules follow their package.
RENAMED = {
    "torch": "eager",
    "torch._VF": "eager",
    "torch.torch": "eager",
    "torch.fx": "fxir",
    **{f"torch.fx.{name}": f"fxir.ir.{name}" for name in "_pytree graph graph_module immutable_collections interpreter node".split()},
    **{f"torch.fx.{name}": f"fxir.torchfx.{name}"
       for name in "experimental passes proxy subgraph_rewriter tracer transformer".split()},
    "torch._dynamo": "dynamo",
    "torch._inductor": "inductor",
    "torch.export": "fxir.export",
    "torch.export.graph_signature": "fxir.export.signature",
    "torch.export.exported_program": "fxir.export.program",
    "torch.export.dynamic_shapes": "fxir.export.dims",
    "torch.compiler.config": "dynamo.compiler_config",
    "torch._functorch.aot_autograd": "dynamo.functorch.compile",
    "torch._functorch.partitioners": "dynamo.functorch.compile",
    "torch.ops": "eager._ops.ops",
    "functorch": "dynamo.functorch",
    "torch.cpu.amp": "eager.amp.cpu",
    "torch._logging": "eager.base.logs",
    "torch.utils.hooks": "eager.base.hooks",
    "torch.return_types": "eager.base.return_types",
    "torch.cuda.amp": "eager.amp.cuda",
    "torch.autograd.forward_ad": "eager.transforms.forward_ad",
    "torch.distributed._composable.fsdp": "eager.distributed.fsdp",
    "torch.distributed._tensor": "eager.distributed.tensor",
    "torch.utils._progress": "eager.base.progress",
    "torch.utils.flop_counter": "eager._ops.flop_counter",
    "torch.autograd.functional": "eager.transforms.functional",
}


def real_name(fullname: str) -> str:
    """The name here of the module that torch calls `fullname`."""
    head, tail = fullname, ""
    while head not in RENAMED:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return RENAMED[head] + tail


_TORCH_NAMES = {"fxir.export": "torch.export", "fxir": "torch.fx", "dynamo.functorch": "functorch", "dynamo": "torch._dynamo",
                "inductor": "torch._inductor", "eager": "torch"}  # fmt: skip
# Modules of dynamo and inductor that programs import under torch's names.
_COMPILER_FACES = frozenset("dynamo dynamo.backends dynamo.backends.common dynamo.backends.registry dynamo.exc dynamo.functorch "
                            "dynamo.functorch.compile dynamo.testing dynamo.utils inductor".split())  # fmt: skip
# Parts of torch whose modules state the reason for a missing name.
_PARTS = frozenset(
    "_C _custom_ops _functorch _higher_order_ops _logging _ops _subclasses _tensor _tensor_str _utils accelerator amp ao autograd backends "
    "compiler cpu cuda distributed distributions export fft func functional futures fx hub jit library linalg multiprocessing nn onnx "
    "optim overrides profiler random return_types serialization signal sparse special storage testing types utils version xpu".split()
)


def torch_name(real: str) -> str | None:
    """torch's name for a module of this project, which may be missing; None if torch has no such part."""
    renamed = [theirs for theirs, ours in RENAMED.items() if ours == real]
    if len(renamed) == 1:
        return renamed[0]
    for ours, theirs in _TORCH_NAMES.items():
        if real == ours or real.startswith(f"{ours}."):
            name = theirs + real[len(ours) :]
            return name if theirs != "torch" or real == ours or name.split(".")[1] in _PARTS else None
    return None


def is_internal(real: str) -> bool:
    """Whether a module is a part of the compiler that no program imports under a name of torch."""
    return real.startswith(("dynamo", "inductor")) and real not in _COMPILER_FACES
