"""`torch._dynamo.backends.common`: backends made from compilers of a forward and a backward graph.

Owns how a compiler of torch's form, `(graph_module, example_inputs) -> callable`, is called with a functional graph of
this project, and how its result is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from eager import _native
from eager.base.spec import fake
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import CompileGraph, aot_compile
from fxir.symbols.shapes import lifted

Compiler: TypeAlias = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]

__all__ = ["Compiler", "aot_autograd", "device_from_inputs", "dtype_from_inputs", "min_cut", "with_compilers"]


def min_cut(*args: Any, **kwargs: Any) -> Any:
    """The partition of joint graphs in this project, as a value of `partition_fn`. It cannot be called."""
    raise NotImplementedError("min_cut_rematerialization_partition: joint graphs are cut inside the compiler; pass it as partition_fn")


def aot_autograd(*, fw_compiler: Compiler, bw_compiler: Compiler | None = None, inference_compiler: Compiler | None = None,
                 partition_fn: Any = min_cut, decompositions: Any = None, **kwargs: Any) -> Callable[..., Any]:  # fmt: skip
    """A backend for `compile(backend=...)` that gives functional graphs of ops to these compilers.

    bw_compiler, inference_compiler: fw_compiler unless given. partition_fn: `default_partition` or
    `min_cut_rematerialization_partition`, which are the same here. The compilers get a graph of tensors only, with fakes
    as example inputs; they return a callable that takes one tensor per placeholder, or one list of them if it has an
    attribute `_boxed_call`, and returns a tuple.
    Raises: NotImplementedError for another partition_fn, for decompositions and for torch's other options.
    """
    compile_graph = with_compilers(fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions, kwargs)

    def backend(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return aot_compile(gm, example_inputs, compile_graph)

    return backend


def with_compilers(fw: Compiler, bw: Compiler | None, inference: Compiler | None, partition_fn: Any, decompositions: Any,
                   others: dict[str, Any]) -> CompileGraph:  # fmt: skip
    """The function that compiles a functional graph with the compiler of its kind."""
    if partition_fn not in (None, min_cut):
        raise NotImplementedError("aot_autograd: partition_fn is not supported: joint graphs are cut by a minimum cut; "
                                  "allowed: default_partition, min_cut_rematerialization_partition")  # fmt: skip
    if decompositions:
        raise NotImplementedError("aot_autograd: decompositions are not supported: composite ops are always taken apart")
    if unknown := [name for name, value in others.items() if value]:
        raise NotImplementedError(f"aot_autograd: {', '.join(unknown)}: not supported")
    compilers = {GraphKind.FORWARD: fw, GraphKind.BACKWARD: bw or fw, GraphKind.INFERENCE: inference or fw}

    def compile_graph(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
        module = GraphModule(graph.root, graph, f"{kind.value}_graph")
        return _runner(compilers[kind](module, _examples(graph)))

    return compile_graph


def _examples(graph: Graph) -> list[Any]:
    """A fake for each placeholder that is a tensor, with symbols for its open sizes; the symbol itself for a number."""
    numbers = {source.input: s for s, source in graph.symbols.items() if source.is_number}
    made: list[Any] = []
    for i, node in enumerate(graph.placeholders):
        if i in numbers and graph.shapes is not None:
            made.append(graph.shapes.argument(numbers[i]))
        else:
            made.append(fake(lifted(node.info.spec, graph.shapes)))
    return made


def _runner(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler's result as a function of tensors; it runs without recording gradients."""
    is_boxed = getattr(fn, "_boxed_call", False)

    def run(*args: Any) -> tuple[Any, ...]:
        before = _native.set_grad_enabled(False)
        try:
            results = fn(list(args)) if is_boxed else fn(*args)
        finally:
            _native.set_grad_enabled(before)
        if not isinstance(results, tuple | list):
            raise TypeError(f"aot_autograd: the compiled graph returned a {type(results).__name__}; needed: a tuple of the graph's outputs")
        return tuple(results)

    return run


def device_from_inputs(example_inputs: Sequence[Any]) -> Any:
    """The device of the first input that has one. Raises: StopIteration if none has."""
    return next(x.device for x in example_inputs if hasattr(x, "device"))


def dtype_from_inputs(example_inputs: Sequence[Any]) -> Any:
    """The dtype of the first input that has one. Raises: StopIteration if none has."""
    return next(x.dtype for x in example_inputs if hasattr(x, "dtype"))
