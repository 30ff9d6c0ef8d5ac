"""How many threads the CPU work of this process uses, under torch's names."""
from __future__ import annotations

from eager.base import machine, settings

_interop: int | None = None


def get_num_threads() -> int:
    """The number of threads of CPU loops and products: as set, or the number of cores that this process may run on."""
    return machine.threads()


def set_num_threads(n: int) -> None:
    """Use `n` threads for loops and products from now on, eager and compiled.

    Numpy's linear algebra (`linalg`) uses the threads of numpy's BLAS.
    Raises: RuntimeError unless `n` is a positive int.
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    settings.assign(cpu_threads=n)
    machine.configure()


def get_num_interop_threads() -> int:
    """Threads that run independent ops side by side: one, for ops run in program order here, unless set."""
    return _interop or 1


def set_num_interop_threads(n: int) -> None:
    """Allow `n` threads for independent ops. A permission: ops run in program order here. Once a process, as in torch.

    Raises: RuntimeError for a number below 1, or on a second call.
    """
    global _interop
    if not isinstance(n, int) or n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _interop is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called")
    _interop = n
