"""Kernels to machine code ahead of time, with no GPU: Triton's compiler on generated source, and its facts.

Triton is imported on first use only (it is an extra, and takes half a second).
"""

from __future__ import annotations

import importlib
import re
import subprocess
import tempfile
from pathlib import Path

from eager.base import settings
from eager.base.records import dataclass
from inductor.runtime.triton_source import TritonUnavailable, jit_function, load_triton
from inductor.triton.kernel import TritonKernel
from inductor.triton.values import SIGNATURE

__all__ = ["Cubin", "Resources", "TritonUnavailable", "compile_kernel", "instructions", "load_triton", "prepare", "resources"]


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of a kernel for one architecture, and the numbers that a launch needs."""

    name: str
    capability: int
    code: bytes
    ptx: str
    shared_bytes: int
    num_warps: int


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of machine code: registers a thread, and bytes of a thread's stack and of other local memory.

    The assembler spills registers to the stack. Some functions (sin, cos and tan of large arguments) have arrays there too.
    """

    registers: int
    stack_bytes: int
    local_bytes: int

    @property
    def spilled_bytes(self) -> int:
        """Bytes of a thread that are not in registers."""
        return self.stack_bytes + self.local_bytes


def prepare() -> None:
    """Import the compiler and compute the key of its cache, which takes seconds: forked processes then share both."""
    load_triton()
    importlib.import_module("triton.compiler")
    cache = importlib.import_module("triton.runtime.cache")
    cache.triton_key()


def compile_kernel(kernel: TritonKernel, capability: int = 90) -> Cubin:
    """Machine code for sm_<capability>, which Triton keeps in the folder "triton" of the artifact folder.

    Pointers are assumed to be 16-byte aligned, like all memory of the allocator: a caller copies an input that is not.
    Raises: TritonUnavailable; any error of Triton's compiler for a faulty kernel. Checks that the code's parameters are the
    pointers, the sizes and Triton's two hidden pointers, in this order.
    """
    triton = load_triton()
    compiler = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    fn = jit_function(kernel.name, kernel.source)
    types = [SIGNATURE[t] for t in kernel.dtypes] + ["i64"] * len(kernel.sizes)
    signature = dict(zip(fn.arg_names, types, strict=True))
    aligned = {(k,): [["tt.divisibility", 16]] for k, t in enumerate(types) if t.startswith("*")}
    source = compiler.ASTSource(fn, signature, {}, aligned)
    options = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "enable_fp_fusion": True}
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(settings.current().cache.dir / "triton")
        made = triton.compile(source, target=target, options=options)
    ptx = made.asm["ptx"]
    parameters = re.findall(r"\.param \.(\w+)", ptx.split(".entry")[1].split(")")[0])
    expected = len(types) + 2
    if len(parameters) != expected:
        raise RuntimeError(f"triton: {kernel.name} has {len(parameters)} parameters in its PTX, expected {expected}")
    return Cubin(kernel.name, capability, made.asm["cubin"], ptx, int(made.metadata.shared), kernel.num_warps)


def _dump(cubin: Cubin, tool: str, *options: str) -> str:
    """The output of a CUDA tool that comes with Triton, for machine code."""
    path = Path(str(load_triton().__file__)).parent / "backends" / "nvidia" / "bin" / tool
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.code)
        file.flush()
        return subprocess.run([path, *options, file.name], capture_output=True, text=True, check=True).stdout


def instructions(cubin: Cubin) -> list[str]:
    """The instructions of the machine code, by their full names, such as `LDG.E.128`."""
    text = _dump(cubin, "cuobjdump", "-sass")
    return re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text, re.MULTILINE)


def resources(cubin: Cubin) -> Resources:
    """Registers, stack and spills, read from the machine code by the CUDA tool that comes with Triton."""
    text = _dump(cubin, "cuobjdump", "--dump-resource-usage")
    found = re.search(r"REG:(\d+) STACK:(\d+).*?LOCAL:(\d+)", text)
    if found is None:
        raise RuntimeError(f"triton: cannot read the resource usage of {cubin.name}: {text[-300:]}")
    registers, stack, local = (int(n) for n in found.groups())
    return Resources(registers, stack, local)
