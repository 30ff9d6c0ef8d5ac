"""torch.fx.experimental.proxy_tensor: graphs of functions that run on fakes, and the query for the current recording mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.spec import TensorSpec, contiguous_strides
from eager.dispatch.calls import active_modes
from eager.utils import _pytree as pytree
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import map_nodes
from fxir.symbols.shapes import ShapeEnv
from fxir.trace.trace import TraceMode, fakes_like, run_traced, settle_symbols

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> TraceMode | None:
    """The innermost mode that records ops into a graph, or None if no mode records."""
    return next((mode for mode in reversed(active_modes()) if isinstance(mode, TraceMode)), None)


def make_fx(f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real") -> Callable[..., GraphModule]:
    """A function that runs `f` on fakes of its arguments and returns the graph of the ops that were called.

    The arguments are tensors and plain values, which become constants of the graph; composite ops are decomposed.
    tracing_mode: "symbolic" leaves sizes of 2 and more open; "real" and "fake" fix them. Unlike in torch, "real" runs on fakes
    too: a program that reads data raises DataDependentError.
    Raises: ValueError for another mode; NotImplementedError for a decomposition table, for arguments within containers, and for
    a function that writes to its arguments.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ValueError(f"make_fx: tracing_mode={tracing_mode!r}; allowed: 'real', 'fake', 'symbolic'")
    if decomposition_table:
        raise NotImplementedError("make_fx: decomposition_table is not supported; composite ops are decomposed without it")

    def traced(*args: Any) -> GraphModule:
        if any(pytree.tree_leaves(a) != [a] for a in args if not isinstance(a, Tensor)):
            raise NotImplementedError("make_fx: arguments within containers are not supported; allowed: tensors and plain values")
        return _traced(f, args, tracing_mode == "symbolic")

    return traced


def _traced(f: Callable[..., Any], args: tuple[Any, ...], symbolic: bool) -> GraphModule:
    tensors = [a for a in args if isinstance(a, Tensor)]
    shapes = ShapeEnv()
    given = iter(fakes_like(tensors, [_open(t, shapes) for t in tensors] if symbolic else None))
    stand_ins = [next(given) if isinstance(a, Tensor) else a for a in args]
    graph = Graph()
    mode = TraceMode(graph, owns_constants=True)
    for i, a in enumerate(stand_ins):
        if isinstance(a, Tensor):
            mode.add_input(a, f"arg{i}")
        else:
            graph.placeholder(f"arg{i}")
    result = run_traced(f, stand_ins, mode)
    if any(isinstance(a, Tensor) and mode.memory.writes(a) for a in stand_ins):
        raise NotImplementedError("make_fx: the function writes to its arguments; give it copies and return them (func.functionalize)")
    leaves, spec = pytree.tree_flatten(result)
    held = [mode.value(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    graph.output(map_nodes(pytree.tree_unflatten(held, spec), lambda n: n))
    graph.eliminate_dead_code()
    settle_symbols(graph)
    return GraphModule(graph.root, graph, getattr(f, "__name__", type(f).__name__))


def _open(t: Tensor, shapes: ShapeEnv) -> TensorSpec | None:
    """The spec of a contiguous tensor with symbols for its sizes; None for any other tensor."""
    if not t.is_contiguous() or all(n < 2 for n in t.shape):
        return None
    shape: Any = tuple(shapes.create(n, None) if n > 1 else n for n in t.shape)
    return TensorSpec(shape, t.dtype, contiguous_strides(shape), t.device)
