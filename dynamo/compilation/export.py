"""`torch._dynamo.export`: a function as one graph with the guards of its capture; torch's interface from before torch.export."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dynamo.compilation.module import OptimizedModule, compiled_with
from dynamo.compilation.region import CompiledRegion
from dynamo.guards.program import Guard
from eager._tensor.tensor import Tensor
from eager.nn import Module
from fxir.base.options import CompileOptions
from fxir.export.build import export as _export
from fxir.export.dims import Dim
from fxir.export.program import ExportedModule
from fxir.ir.graph_module import GraphModule

__all__ = ["ExportResult", "export"]


class ExportResult(NamedTuple):
    """The result of `export`. graph_module: a Module with a `graph`, called like the function. guards: the guards of the capture."""

    graph_module: ExportedModule
    guards: list[Guard]


def _as_module(fn: Callable[..., Any]) -> Module:
    """A function as a Module. Its submodules are the modules in the closure of the function."""
    module = Module()
    module.__dict__["forward"] = fn
    cells = [cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()]
    for i, part in enumerate(part for part in (getattr(fn, "__self__", None), *cells) if isinstance(part, Module)):
        module.add_module(f"part_{i}", part)
    return module


class _Captured(BaseException):
    """Ends the call where the captured graph would run. No handler of the program catches a BaseException of this class."""


def _stopping(gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Callable[..., Any]:
    """A backend whose compiled code ends the call."""

    def run(*values: Any) -> Any:
        raise _Captured

    return run


def _guards(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Guard]:
    """The guards of the capture of a call. The graph does not run, so the call changes no tensor and draws no random number."""
    region = CompiledRegion(_stopping, "export", CompileOptions(fullgraph=True))
    with contextlib.suppress(_Captured):
        compiled_with(fn, region)(*args, **kwargs)
    return list(region.statistics.guards)


def export(f: Callable[..., Any], *extra_args: Any, aten_graph: bool = False, pre_dispatch: bool = False, decomposition_table: Any = None,
           tracing_mode: str = "symbolic", dynamic_shapes: Any = None, specialize_float: bool = True,
           assume_static_by_default: bool = False, same_signature: bool = True, disable_constraint_solver: bool = False,
           prefer_deferred_runtime_asserts_over_guards: bool = False, **extra_kwargs: Any) -> Any:  # fmt: skip
    """A function of example arguments that returns an `ExportResult`: `graph_module, guards = export(f)(*args)`.

    The graph consists of ops for either value of aten_graph. tracing_mode: "symbolic" leaves sizes open where the program
    does not need them (dynamic_shapes states them one by one), "real" and "fake" fix them. The other options have no effect
    on the graph. `export(f, *args)` is an older form. Exporting changes no tensor and no attribute of a Module.
    Raises: AssertionError for a decomposition_table or pre_dispatch without aten_graph; NotImplementedError for the first,
    for same_signature=False, and for another tracing_mode; what compile(fullgraph=True) raises where the graph would break.
    """
    for name, value in (("decomposition_table", decomposition_table), ("pre_dispatch", pre_dispatch)):
        if value and not aten_graph:
            raise AssertionError(f"{name} can only be used when aten_graph=True")
    if decomposition_table:
        raise NotImplementedError("torch._dynamo.export: decomposition_table is not supported; composite ops are taken apart without it")
    if tracing_mode not in ("real", "fake", "symbolic") or not same_signature:
        raise NotImplementedError(f"torch._dynamo.export: tracing_mode={tracing_mode!r}, same_signature={same_signature}; "
                                  "allowed: 'real', 'fake' or 'symbolic', and True")  # fmt: skip
    is_open = tracing_mode == "symbolic" and not assume_static_by_default

    def exported(*args: Any, **kwargs: Any) -> ExportResult:
        inner: Any = f._orig_mod if isinstance(f, OptimizedModule) else getattr(f, "__wrapped__", f)
        guards = _guards(inner, args, kwargs)
        module = inner if isinstance(inner, Module) else _as_module(inner)
        shapes = dynamic_shapes
        if shapes is None and is_open and not kwargs and all(isinstance(a, Tensor) for a in args):
            shapes = tuple(dict.fromkeys(range(a.dim()), Dim.AUTO) for a in args)  # type: ignore[attr-defined]
        return ExportResult(_export(module, args, kwargs, dynamic_shapes=shapes, strict=True).module(), guards)

    if not extra_args and not extra_kwargs:
        return exported
    warnings.warn("export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs) instead.  If you don't migrate, we may "
                  "break your export call in the future if your user defined kwargs conflict with future kwargs added to export(f).",
                  FutureWarning, stacklevel=2)  # fmt: skip
    return exported(*extra_args, **extra_kwargs)
