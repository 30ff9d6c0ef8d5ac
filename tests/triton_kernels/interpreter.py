"""Kernels over numpy arrays, in the interpreter of the emulated device."""
from __future__ import annotations

import numpy as np

from fxir.expr import rules as E
from inductor.ir.sizes import Size
from inductor.runtime.interpreter import run_kernel
from inductor.triton.kernel import Launches


def run(launches: Launches, memory: dict[str, np.ndarray], symbols: dict[E.Sym, int]) -> None:
    """Run kernels over memory, flat arrays by name, in place. symbols: values of sizes, by symbol."""
    for x in launches.scratch:
        memory[x.name] = np.zeros(_size(x.size, symbols), x.dtype.numpy)
    values = {s.name: n for s, n in symbols.items()}
    for k in launches.kernels:
        pointers = [(memory[n].ctypes.data, memory[n].dtype.name) for n in k.pointers]
        run_kernel(k.name, k.source, pointers, [values[n] for n in k.sizes], _size(k.grid, symbols))


def _size(n: Size, symbols: dict[E.Sym, int]) -> int:
    return n if isinstance(n, int) else E.evaluate(n, symbols)
