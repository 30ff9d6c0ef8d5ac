"""`export`: runs a Module once on fakes of its parameters, buffers and inputs, and records the ops that it calls."""

from __future__ import annotations

import inspect
import re
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.spec import DataDependentError, TensorSpec, contiguous_strides
from eager.base.symint import SymInt
from eager.nn import Module
from eager.nn.utils.stateless import _reparametrize_module
from eager.utils import _pytree as pytree
from fxir.export.attributes import restored_attributes
from fxir.export.dims import Size, UserError, wanted
from fxir.export.program import Call, ExportedProgram, UserInput, ValueRange
from fxir.export.signature import (
    Argument,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from fxir.expr.rules import Int, Sym
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.graph_module import GraphModule
from fxir.symbols.shapes import ShapeEnv, plain
from fxir.trace.trace import OutputBuilder, TraceMode, fakes_like, run_traced, settle_symbols


def export(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None, strict: bool = False,
           preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts_over_guards: bool = False,
           ) -> ExportedProgram:  # fmt: skip
    """`mod` as one functional graph of ops, for calls like `mod(*args, **kwargs)`.

    dynamic_shapes: the open sizes (see `fxir.export.dims.wanted`); all other sizes, and all arguments that are not tensors, are
    checked at each call. strict: selects torch's other tracer, and gives the same graph here. Exporting changes no tensor and
    no attribute of `mod`; with strict=False it warns about attributes that the program sets to tensors.
    Raises: ValueError unless `mod` is a Module; UserError (a ValueError) if the program needs the value of an open size, or
    branches on data; NotImplementedError for preserve_module_call_signature; any error that the program raises.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if preserve_module_call_signature:
        raise NotImplementedError("export: preserve_module_call_signature is not supported: the graph keeps no hierarchy of modules")
    with restored_attributes(mod, warn=not strict):
        return _Export(mod, args, dict(kwargs or {}), dynamic_shapes).program()


class _Export:
    """One export."""

    def __init__(self, mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> None:
        self.mod, self.args, self.kwargs = mod, args, kwargs
        names, arguments = _parameters(mod, args, kwargs)
        self.sizes = wanted(dynamic_shapes, names, arguments)
        self.shapes = ShapeEnv()
        self.named: dict[str, SymInt] = {}
        self.open: dict[Sym, tuple[Size, str]] = {}
        ordered = {k: kwargs[k] for k in sorted(kwargs)}
        leaves, self.in_spec = pytree.tree_flatten((args, ordered))
        self.leaves = leaves
        self.leaf_names = _leaf_names(names, arguments)
        self.parameters = dict(mod.named_parameters())
        self.buffers = dict(mod.named_buffers())
        self.state = mod.state_dict(keep_vars=True)

    def program(self) -> ExportedProgram:
        held = {**self.parameters, **self.buffers}
        tensors = [t for t in self.leaves if isinstance(t, Tensor)]
        stand_ins = fakes_like([*held.values(), *tensors], [*(None for _ in held), *(self._spec(t) for t in tensors)])
        graph, results, out_spec, written = self._trace(list(held), stand_ins)
        self._check_open()
        signature = self._signature(graph, written, results)
        constants = {k: v for k, v in self.buffers.items() if k not in self.state}
        ranges = {s: ValueRange(max(size.lo, 0 if size.name else 2), size.hi) for s, (size, _) in self.open.items() if self._is_open(s)}
        relations = tuple(r for r in self.shapes.relations if r.symbols <= ranges.keys())  # a fixed size is checked separately
        call = Call(self.in_spec, out_spec, tuple(self._inputs()), tuple(None if isinstance(r, Tensor) else (r,) for r in results),
                    ranges, relations)  # fmt: skip
        gm = GraphModule(graph.root, graph, type(self.mod).__name__)
        return ExportedProgram(gm, signature, self.state, constants, call, (self.args, self.kwargs))

    # -- inputs ------------------------------------------------------------------------------------------------
    def _spec(self, t: Tensor) -> TensorSpec | None:
        asked = self.sizes.get(id(t))
        if not asked:
            return None
        shape = tuple(self._size(asked[d], n, t, d) if d in asked else n for d, n in enumerate(t.shape))
        if not t.is_contiguous():
            raise NotImplementedError("export: an input with an open size is not contiguous; call contiguous() on the example")
        return TensorSpec(shape, t.dtype, contiguous_strides(shape), t.device)

    def _size(self, size: Size, n: int, t: Tensor, d: int) -> Any:
        where = f"{self.leaf_names[id(t)]}.size()[{d}]"
        if n < 2:
            raise UserError(f"Constraints violated ({size.name or where})! {where} is {n} in the example: sizes 0 and 1 are always fixed; "
                            "give an example of at least 2")  # fmt: skip
        if size.name in self.named:
            known = self.named[size.name]
            if known.hint != n:
                raise UserError(f"Constraints violated ({size.name})! {where} is {n} in the example, the other size with that name is "
                                f"{known.hint}")  # fmt: skip
            return known
        made = self.shapes.create(n, where, max(size.lo, 2), size.hi)
        assert isinstance(made.expr, Sym)
        self.open[made.expr] = size, where
        if size.name:
            self.named[size.name] = made
        return made

    def _inputs(self) -> Any:
        for leaf in self.leaves:
            if not isinstance(leaf, Tensor):
                yield UserInput(self.leaf_names.get(id(leaf), "an argument"), constant=leaf)
                continue
            spec = self._shapes_of[id(leaf)]
            shape = tuple(e if isinstance(e := plain(n), int | Sym) else self.shapes.specialise(e) for n in spec)
            yield UserInput(self.leaf_names[id(leaf)], leaf.dtype, shape)

    # -- the trace ---------------------------------------------------------------------------------------------
    def _trace(self, held: list[str], stand_ins: list[Any]) -> tuple[Graph, list[Any], Any, list[int]]:
        graph = Graph()
        mode = TraceMode(graph, owns_constants=True)
        tensors = [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]
        self._shapes_of = {id(t): s.shape for t, s in zip(tensors, stand_ins[len(held) :], strict=True)}
        names = [_input_name(n, n in self.parameters) for n in held] + [_identifier(self.leaf_names[id(t)]) for t in tensors]
        self.nodes = [mode.add_input(s, n) for s, n in zip(stand_ins, names, strict=True)]
        box: list[Any] = []

        def run(*flat: Any) -> tuple[Any, ...]:
            given = iter(flat[len(held) :])
            leaves = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
            args, kwargs = pytree.tree_unflatten(leaves, self.in_spec)
            state = dict(zip(held, flat, strict=False))
            with _reparametrize_module(self.mod, state, tie_weights=True):
                result = self.mod(*args, **kwargs)
                for name, before in state.items():
                    _keep_assignment(self.mod, name, before)
            box[:] = pytree.tree_flatten(result)
            return ()

        try:
            run_traced(run, stand_ins, mode)
        except DataDependentError as error:
            raise UserError(f"Could not guard on data-dependent expression: {error}. Control flow must not depend on the values "
                            "of its tensors; write the choice as tensor code (torch.where)") from error  # fmt: skip
        results, out_spec = box
        built = OutputBuilder(graph)
        written = [i for i, t in enumerate(stand_ins) if mode.memory.writes(t)]
        for i in written:
            built.add(mode.value(stand_ins[i]))
        for t in results:
            if isinstance(t, Tensor):
                built.add(mode.value(t))
        graph.output(tuple(built.nodes))
        graph.signature = GraphSignature(tuple(written), len(built.nodes) - len(written))
        graph.eliminate_dead_code()
        settle_symbols(graph)
        return graph, results, out_spec, written

    def _is_open(self, s: Sym) -> bool:
        return not isinstance(self.shapes.simplify(s), Int)

    def _check_open(self) -> None:
        for s, (size, where) in self.open.items():
            if size.strict and not self._is_open(s):
                value = self.shapes.simplify(s)
                line = next((r.origin for r in self.shapes.relations if s in r.symbols), None)
                name, needed = size.name or where, f", needed at {line}" if line else ""
                raise UserError(f"Constraints violated ({name})! You marked {name} as dynamic but your code specialized it to be a "
                                f"constant ({value}){needed}. Replace it with Dim.AUTO or Dim.STATIC")  # fmt: skip

    # -- the signature -----------------------------------------------------------------------------------------
    def _signature(self, graph: Graph, written: list[int], results: list[Any]) -> ExportGraphSignature:
        nodes = iter(self.nodes)
        inputs = [InputSpec(InputKind.PARAMETER, TensorArgument(next(nodes).name), name) for name in self.parameters]
        inputs += [InputSpec(InputKind.BUFFER, TensorArgument(next(nodes).name), n, n in self.state) for n in self.buffers]
        for leaf in self.leaves:
            arg: Argument
            if isinstance(leaf, Tensor):
                arg = TensorArgument(next(nodes).name)
            else:
                arg = ConstantArgument(self.leaf_names.get(id(leaf), ""), leaf)
            inputs.append(InputSpec(InputKind.USER_INPUT, arg))
        names = iter([n.name for n in graph.outputs])
        held = [*self.parameters, *self.buffers]
        outputs: list[OutputSpec] = []
        for i in written:
            kind = OutputKind.USER_INPUT_MUTATION
            target = self.nodes[i].name
            if i < len(held):
                kind = OutputKind.PARAMETER_MUTATION if i < len(self.parameters) else OutputKind.BUFFER_MUTATION
                target = held[i]
            outputs.append(OutputSpec(kind, TensorArgument(next(names)), target))
        for r in results:
            argument = TensorArgument(next(names)) if isinstance(r, Tensor) else ConstantArgument("", r)
            outputs.append(OutputSpec(OutputKind.USER_OUTPUT, argument))
        return ExportGraphSignature(inputs, outputs)


def _parameters(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """The names of forward's parameters that the call fills, and their arguments, in the order of `dynamic_shapes`."""
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    names: list[str] = []
    values: list[Any] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            names += value
            values += value.values()
        else:
            names.append(name)
            values.append(value)
    return names, values


def _leaf_names(names: list[str], arguments: list[Any]) -> dict[int, str]:
    """The name of each leaf in guards, by identity: `x`, `batch['mask']`, `xs[0]`."""
    found: dict[int, str] = {}
    for name, argument in zip(names, arguments, strict=True):
        for path, leaf in pytree.tree_flatten_with_path(argument)[0]:
            found.setdefault(id(leaf), name + pytree.keystr(path))
    return found


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "x"


def _input_name(name: str, is_parameter: bool) -> str:
    return ("p_" if is_parameter else "b_") + _identifier(name)


def _keep_assignment(mod: Module, name: str, before: Any) -> None:
    """If the program replaced a parameter or buffer by another tensor, write its value into the original.

    Raises: UserError if it has another shape or dtype.
    """
    value: Any = mod
    for part in name.split("."):
        value = getattr(value, part)
    if value is before:
        return
    if not isinstance(value, Tensor) or value.dtype is not before.dtype or tuple(value.shape) != tuple(before.shape):
        raise UserError(f"export: the program sets {name} to a value with another shape or dtype; allowed: a tensor like the former value")
    before.copy_(value)
