"""Runs a CUDA plan on the CPU: its kernels in Triton's interpreter, its calls by the eager kernels."""
from __future__ import annotations

from typing import Any

import numpy as np

import eager as torch
from eager.base import dtypes
from eager.optable.table import OPS
from fxir.expr import rules as E
from inductor.driver.cuda import Call, Copy, CudaPlan, Launch
from inductor.ir import definitions as ir
from inductor.triton.kernel import CHECKS_POINTER, Launches
from tests.triton_kernels import interpreter


class CheckFailed(IndexError):
    """An index check of the plan failed."""


def run(plan: CudaPlan, inputs: list[torch.Tensor]) -> list[Any]:
    """The outputs of the plan for CPU tensors."""
    sizes = {s: _size_of(source, inputs) for s, source in plan.symbols}
    memory = {}
    for name, where in plan.memory.items():
        if where.kind == "input":
            memory[name] = _flat(inputs[int(where.at)])
        elif where.kind == "constant":
            raise NotImplementedError("run_plan: lifted constants")
        else:
            count = _int(where.nbytes, sizes) // where.dtype.itemsize
            memory[name] = np.full(max(count, 1), 77, where.dtype.numpy)
    memory[CHECKS_POINTER] = np.zeros(2 * len(plan.checks) or 2, np.int64)
    for step in plan.steps:
        match step:
            case Launch():
                kernel = plan.kernels[step.kernel]
                named = dict(zip(kernel.pointers, step.arguments, strict=True))
                interpreter.run(Launches((kernel,)), {n: memory[m] for n, m in named.items()}, sizes)
            case Copy():
                memory[step.target][...] = memory[step.source]
            case Call():
                _call(step, memory, sizes)
    for k in range(len(plan.checks)):
        if memory[CHECKS_POINTER][2 * k]:
            raise CheckFailed(f"check {k} failed at {memory[CHECKS_POINTER][2 * k + 1]}")
    return [_output(r, memory, sizes) for r in plan.outputs]


def _size_of(source: Any, inputs: list[torch.Tensor]) -> int:
    t = inputs[source.input]
    return int(t.shape[source.dim] if source.kind == "size" else t.stride()[source.dim])


def _int(n: E.IntLike, sizes: dict[E.Sym, int]) -> int:
    return n if isinstance(n, int) else E.evaluate(n, sizes)


def _flat(t: torch.Tensor) -> np.ndarray:
    """The memory of a tensor from its first element."""
    a = t.detach()._array
    span = 0 if 0 in a.shape else 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    flat = np.zeros(max(span, 1), a.dtype)
    if span:
        np.ndarray(a.shape, a.dtype, flat, strides=[s * a.itemsize for s in t.stride()])[...] = a  # type: ignore[call-overload]
    return flat


def _output(r: Any, memory: dict[str, np.ndarray], sizes: dict[E.Sym, int]) -> Any:
    if isinstance(r, E.Expr):
        return E.evaluate(r, sizes)
    return _view(r, memory, sizes).copy() if isinstance(r, ir.Ref) else r


def _view(r: ir.Ref, memory: dict[str, np.ndarray], sizes: dict[E.Sym, int]) -> np.ndarray:
    flat = memory[r.buffer].view(r.layout.dtype.numpy)[_int(r.offset, sizes) :]
    shape, strides = ([_int(n, sizes) for n in ns] for ns in (r.layout.shape, r.layout.strides))
    return np.ndarray(shape, flat.dtype, flat, strides=[s * flat.itemsize for s in strides])  # type: ignore[call-overload]


def _call(step: Call, memory: dict[str, np.ndarray], sizes: dict[E.Sym, int]) -> None:
    def argument(a: Any) -> Any:
        if isinstance(a, ir.Ref):
            return torch.from_numpy(_view(a, memory, sizes).copy())
        if isinstance(a, tuple | list):
            return tuple(map(argument, a))
        if isinstance(a, torch.device):
            return torch.device("cpu")
        return _int(a, sizes) if isinstance(a, E.Expr) else a

    results = OPS[step.op](*map(argument, step.args))
    results = results if isinstance(results, tuple | list) else (results,)
    for name, t in zip(step.results, results, strict=True):
        if name is not None:
            flat = _flat(t.contiguous())
            memory[name][: flat.size] = flat


__all__ = ["CheckFailed", "dtypes", "run"]
