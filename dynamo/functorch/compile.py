"""`functorch.compile` and `torch._functorch.aot_autograd`: compilation by a forward and a backward compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dynamo.api.compile import compile  # noqa: A004 - torch's name
from dynamo.backends.common import Compiler, aot_autograd, min_cut, with_compilers
from eager._functorch import config
from eager.nn import Module
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "config", "debug_compile",
           "default_partition", "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion",
           "min_cut_rematerialization_partition", "nop", "print_compile", "ts_compile"]  # fmt: skip

default_partition = min_cut_rematerialization_partition = min_cut


def aot_function(fn: Callable[..., Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None, partition_fn: Any = min_cut,
                 decompositions: Any = None, num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
                 inference_compiler: Compiler | None = None, *, dynamic: bool = False, enable_log: bool = True) -> Any:  # fmt: skip
    """`fn` as a function whose forward and backward graphs these compilers compile, at the first call with inputs of a
    kind.

    fn: a graph break in it is an error. num_params_buffers, keep_inference_input_mutations, enable_log: torch's,
    without effect here.
    """
    backend = aot_autograd(fw_compiler=fw_compiler, bw_compiler=bw_compiler, inference_compiler=inference_compiler,
                           partition_fn=partition_fn, decompositions=decompositions)  # fmt: skip
    return compile(fn, backend=backend, fullgraph=True, dynamic=dynamic)


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Any:
    """`aot_function` of a Module. Raises: AssertionError for something else."""
    if not isinstance(mod, Module):
        raise AssertionError(f"aot_module: got a {type(mod).__name__}; allowed: a Module")
    return aot_function(mod, *args, **kwargs)


def aot_module_simplified(mod: Any, args: Sequence[Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None,
                          partition_fn: Any = min_cut, decompositions: Any = None, keep_inference_input_mutations: bool = False,
                          inference_compiler: Compiler | None = None, **kwargs: Any) -> Callable[..., Any]:  # fmt: skip
    """A captured graph compiled for example inputs, in the form that a backend returns.

    Raises: TypeError for a module that is not a GraphModule: `aot_module` compiles such modules.
    """
    if not isinstance(mod, GraphModule):
        raise TypeError(f"aot_module_simplified: got a {type(mod).__name__}; allowed: a GraphModule, as backends are given; "
                        "aot_module takes modules")  # fmt: skip
    others = {name: value for name, value in kwargs.items() if name != "ignore_shape_env"}
    return aot_compile(mod, args, with_compilers(fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions, others))


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of one list of its arguments, with the attribute that marks this form."""

    @functools.wraps(f)
    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """A compiler whose results take one list of arguments."""

    @functools.wraps(compiler)
    def boxed(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(compiler(gm, example_inputs))

    return boxed


@make_boxed_compiler
def nop(fx_g: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """A compiler that runs the graph unchanged."""
    return fx_g.forward


@make_boxed_compiler
def print_compile(fx_g: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """A compiler that prints the graph's source and runs the graph unchanged."""
    print(fx_g.code)
    return fx_g.forward


debug_compile = print_compile
compiled_function, compiled_module = aot_function, aot_module


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """`fn` compiled by the default backend, which recomputes cheap tensors in backward."""
    return compile(fn, **kwargs)


def ts_compile(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    raise NotImplementedError("functorch.compile.ts_compile: TorchScript is not part of this project; pass nop, or compile(fn)")
