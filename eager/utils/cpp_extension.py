"""torch.utils.cpp_extension: an importable stub. Extensions link against libtorch, which does not exist here.

Models import this module to try their own kernels and fall back without them. The import works; building raises.
"""
from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["CUDA_HOME", "IS_HIP_EXTENSION", "ROCM_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "load",
           "load_inline"]  # fmt: skip

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
IS_HIP_EXTENSION = False


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(f"{what}: extensions for libtorch cannot be built or loaded here: there is no libtorch")


def load(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: would compile and load the extension `name`."""
    _refuse(f"cpp_extension.load({name!r})")


def load_inline(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: would compile and load the extension `name` from source text."""
    _refuse(f"cpp_extension.load_inline({name!r})")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The directories of libtorch's headers: none."""
    return []


def CppExtension(name: str, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802 - torch's name
    """Raises NotImplementedError: would describe an extension in C++ to setuptools."""
    _refuse(f"CppExtension({name!r})")


def CUDAExtension(name: str, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802 - torch's name
    """Raises NotImplementedError: would describe an extension in CUDA to setuptools."""
    _refuse(f"CUDAExtension({name!r})")


class BuildExtension:
    """setuptools' command that would build an extension. Its constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The class itself; options have no effect on a command that does not run."""
        return cls
