"""Kernels to machine code ahead of time, with no GPU: Triton's compiler on generated source, and its facts.

Triton is imported on first use only (it is an extra, and takes half a second).
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from eager.base import settings
from eager.base.locks import new_lock
from eager.base.records import dataclass
from inductor.runtime.triton_source import TritonUnavailable, jit_function, load_triton
from inductor.triton.kernel import DESCRIPTOR_BYTES, TritonKernel
from inductor.triton.values import SIGNATURE

__all__ = ["Cubin", "Resources", "TritonUnavailable", "compile_kernel", "instructions", "load_triton", "prepare", "resources"]

_KNOBS: Final = new_lock()  # of Triton's settings, which all threads share: a block that overlaps another would keep its folder
_REGISTERS: Final = 1 << 16  # of a multiprocessor
_MOST_REGISTERS: Final = 255  # of a thread


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
    """The resources of a thread of machine code. local_bytes: of the stack and of other local memory.

    spilled_bytes: the part of the local memory that the assembler uses for want of registers. The rest are arrays: sin, cos and tan of
    large arguments have one.
    """

    registers: int
    local_bytes: int
    spilled_bytes: int


def prepare() -> None:
    """Import the compiler and compute the key of its cache, which takes seconds: forked processes then share both."""
    load_triton()
    importlib.import_module("triton.compiler")
    cache = importlib.import_module("triton.runtime.cache")
    cache.triton_key()


def compile_kernel(kernel: TritonKernel, capability: int = 90) -> Cubin:
    """Machine code for sm_<capability>, which Triton keeps in the folder "triton" of the artifact folder.

    The assembler sometimes spills in order to run more programs at once. A kernel is then compiled again with all registers. Pointers
    are assumed to be 16-byte aligned, like all memory of the allocator: a caller copies an input that is not.
    Raises: TritonUnavailable; any error of Triton's compiler for a faulty kernel. Checks that the code's parameters are the
    pointers, the sizes and Triton's two hidden pointers, in this order.
    """
    load_triton()
    compiler = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    fn = jit_function(kernel.name, kernel.source)
    types = [SIGNATURE[t] for t in kernel.dtypes[: len(kernel.parameters) - len(kernel.sizes)]] + ["i64"] * len(kernel.sizes)
    signature = dict(zip(fn.arg_names, types, strict=True))
    aligned = {(k,): [["tt.divisibility", 16]] for k, t in enumerate(types) if t.startswith("*")}
    source = compiler.ASTSource(fn, signature, {}, aligned)
    options = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "enable_fp_fusion": True}
    made, scratch_bytes = _compiled(kernel.name, source, target, options)
    if scratch_bytes > kernel.descriptors * DESCRIPTOR_BYTES:
        raise RuntimeError(f"triton: a program of {kernel.name} needs {scratch_bytes} bytes for {kernel.descriptors} descriptors; "
                           f"expected {DESCRIPTOR_BYTES} bytes each")  # fmt: skip
    ptx = made.ptx
    parameters = re.findall(r"\.param \.(\w+)", ptx.split(".entry")[1].split(")")[0])
    expected = len(types) + 2
    if len(parameters) != expected:
        raise RuntimeError(f"triton: {kernel.name} has {len(parameters)} parameters in its PTX, expected {expected}")
    if _spills(made):
        registers = min(_REGISTERS // (32 * kernel.num_warps), _MOST_REGISTERS)
        made, _ = _compiled(kernel.name, source, target, {**options, "maxnreg": registers})
    return made


def _spills(cubin: Cubin) -> bool:
    """Whether the code spills; False if Triton was installed without the tools that report spills, or if they do not know the device."""
    try:
        return resources(cubin).spilled_bytes > 0
    except (OSError, subprocess.CalledProcessError):
        return False


def _compiled(name: str, source: Any, target: Any, options: Mapping[str, Any]) -> tuple[Cubin, int]:
    """The machine code, and the bytes of global memory that each of its programs needs."""
    triton = load_triton()
    with _KNOBS, triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(settings.current().cache.dir / "triton")
        made = triton.compile(source, target=target, options=options)
    cubin = Cubin(name, target.arch, made.asm["cubin"], made.asm["ptx"], int(made.metadata.shared), options["num_warps"])
    return cubin, int(made.metadata.global_scratch_size)


def _run(tool: str, *arguments: str, code: bytes) -> str:
    """The output of a CUDA tool that comes with Triton, for a file with `code`."""
    path = Path(str(load_triton().__file__)).parent / "backends" / "nvidia" / "bin" / tool
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        made = subprocess.run([path, *arguments, file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        return made.stdout


def instructions(cubin: Cubin) -> list[str]:
    """The instructions of the machine code, by their full names, such as `LDG.E.128`."""
    text = _run("cuobjdump", "-sass", code=cubin.code)
    return re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text, re.MULTILINE)


def resources(cubin: Cubin) -> Resources:
    """Registers and local memory, read from the machine code. If there is local memory, the assembler reports the spills among it."""
    text = _run("cuobjdump", "--dump-resource-usage", code=cubin.code)
    found = re.search(r"REG:(\d+) STACK:(\d+).*?LOCAL:(\d+)", text)
    if found is None:
        raise RuntimeError(f"triton: cannot read the resource usage of {cubin.name}: {text[-300:]}")
    registers, *local = map(int, found.groups())
    return Resources(registers, sum(local), _spilled_bytes(cubin) if any(local) else 0)


def _spilled_bytes(cubin: Cubin) -> int:
    (target,) = re.findall(r"^\.target (\w+)", cubin.ptx, re.MULTILINE)
    text = _run("ptxas", "-v", f"--gpu-name={target}", "--output-file", os.devnull, code=cubin.ptx.encode())
    return max(int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", text))
