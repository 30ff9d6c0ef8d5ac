"""`ExportedProgram`: the graph, the tensors it reads, and the calls for which it is valid; `module()` makes it callable."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.nn import Module, Parameter
from eager.utils import _pytree as pytree
from fxir.export.signature import ExportGraphSignature, InputKind, OutputKind, TensorArgument
from fxir.expr.printing import to_python
from fxir.expr.rules import Sym
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node
from fxir.symbols.shapes import MOST, Relation


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of a symbol's values, inclusive."""

    lower: int
    upper: int

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper >= MOST else self.upper}]"


@dataclass(frozen=True, slots=True)
class UserInput:
    """One leaf of the call. name: in guards. dtype, shape: of a tensor, with a Sym for an open size; constant: the value of
    another leaf, which must be equal at every call.
    """

    name: str
    dtype: dtype | None = None
    shape: tuple[int | Sym, ...] = ()
    constant: Any = None


@dataclass(frozen=True, slots=True)
class Call:
    """The form of the program's calls. in_spec: of ((args), {kwargs}); out_spec: of the result."""

    in_spec: Any
    out_spec: Any
    inputs: tuple[UserInput, ...]
    results: tuple[Any, ...]  # per leaf of the result: None for a tensor, else (value,)
    ranges: dict[Sym, ValueRange] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call, checked.

        Raises: ValueError for another structure; AssertionError for a leaf for which the program is not valid.
        """
        leaves, spec = pytree.tree_flatten((args, {k: kwargs[k] for k in sorted(kwargs)}))
        if spec != self.in_spec:
            raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{self.in_spec}\nbut actually got inputs "
                             f"with tree spec of: \n{spec}")  # fmt: skip
        values: dict[Sym, int] = {}
        for leaf, expected in zip(leaves, self.inputs, strict=True):
            self._check(leaf, expected, values)
        for s, bounds in self.ranges.items():
            if s in values and not bounds.lower <= values[s] <= bounds.upper:
                name = next(f"{i.name}.size()[{i.shape.index(s)}]" for i in self.inputs if s in i.shape)
                low = values[s] < bounds.lower
                raise AssertionError(f"Guard failed: {name} {'>=' if low else '<='} {bounds.lower if low else bounds.upper}")
        for relation in self.relations:
            if relation.symbols <= values.keys() and not relation.holds(values):  # the other symbols follow from equal sizes
                raise AssertionError(f"Guard failed: {relation} (needed at {relation.origin or 'an unknown line'})")
        return [leaf for leaf, i in zip(leaves, self.inputs, strict=True) if i.dtype is not None]

    def _check(self, leaf: Any, expected: UserInput, values: dict[Sym, int]) -> None:
        name = expected.name
        if expected.dtype is None:
            if type(leaf) is not type(expected.constant) or leaf != expected.constant:
                raise AssertionError(f"Guard failed: {name} == {expected.constant!r}")
            return
        if not isinstance(leaf, Tensor):
            raise AssertionError(f"Guard failed: {name} is a tensor")
        if leaf.dtype is not expected.dtype:
            raise AssertionError(f"Guard failed: {name}.dtype == {expected.dtype}")
        if leaf.ndim != len(expected.shape):
            raise AssertionError(f"Guard failed: {name}.dim() == {len(expected.shape)}")
        for d, (n, want) in enumerate(zip(leaf.shape, expected.shape, strict=True)):
            if isinstance(want, Sym):
                if values.setdefault(want, n) != n:
                    raise AssertionError(f"Guard failed: {name}.size()[{d}] == {values[want]}")
            elif n != want:
                raise AssertionError(f"Guard failed: {name}.size()[{d}] == {want}")


class ExportedModule(GraphModule):
    """A GraphModule that is called like the original, with its parameters and buffers under their names.

    The graph takes the tensors of a call, reads parameters and buffers as attributes, performs the program's writes, and
    returns the tensors of the result; `forward` checks and flattens a call, and rebuilds the structure of the result.
    """

    def __init__(self, program: ExportedProgram) -> None:
        root = Module()
        for name, value in program.state_dict.items():  # a shared parameter is stored under each of its names
            if isinstance(value, Parameter):
                _place(root, name).register_parameter(name.rpartition(".")[2], value)
            else:
                _place(root, name).register_buffer(name.rpartition(".")[2], value)
        for name, value in program.constants.items():
            _place(root, name).register_buffer(name.rpartition(".")[2], value, persistent=False)
        super().__init__(root, _unlifted(program))
        # including tensors that the graph does not read
        for registry in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[registry] = root.__dict__[registry]
        self.__dict__["_program"] = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        call: Call = self._program.call
        flat = self._compiled()(self, *call.flatten(args, kwargs))
        tensors = iter(flat if isinstance(flat, tuple | list) else [flat])
        leaves = [next(tensors) if constant is None else constant[0] for constant in call.results]
        return pytree.tree_unflatten(leaves, call.out_spec)

    __call__ = Module.__call__

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedModule:
        return ExportedModule(copy.deepcopy(self._program, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExportedModule, (self._program,)


def _unlifted(program: ExportedProgram) -> Graph:
    """The program's graph with reads of parameters and buffers instead of inputs, and writes instead of outputs."""
    old, signature = program.graph, program.graph_signature
    graph = Graph()
    graph.shapes = old.shapes
    env: dict[Node, Node] = {}
    tensors = (s for s in signature.input_specs if isinstance(s.arg, TensorArgument))
    inputs = dict(zip(old.placeholders, tensors, strict=True))
    written: dict[str, Node] = {}  # targets of the writes, by their name in the signature
    for node in sorted(old.placeholders, key=lambda n: inputs[n].kind is not InputKind.USER_INPUT):
        spec = inputs[node]
        if spec.kind is InputKind.USER_INPUT:
            env[node] = graph.placeholder(node.name, info=node.info)
            written[spec.arg.name] = env[node]
        else:
            env[node] = graph.get_attr(str(spec.target), info=node.info)
            written[str(spec.target)] = env[node]
    for node in old.nodes:
        if node.op == "get_attr":
            graph.root[str(node.target)] = old.root[str(node.target)]
        if node.op not in ("placeholder", "output"):
            env[node] = graph.copy_node(node, env.__getitem__)
    outputs = [env[x] if isinstance(x, Node) else x for x in old.outputs]
    results: list[Any] = []
    for out, value in zip((s for s in signature.output_specs if isinstance(s.arg, TensorArgument)), outputs, strict=True):
        if out.kind is OutputKind.USER_OUTPUT:
            results.append(value)
            continue
        place = written[str(out.target)]
        if out.kind is not OutputKind.USER_INPUT_MUTATION:
            place = graph.call_method("detach", (place,))
        graph.call_method("copy_", (place, value))
    graph.output(tuple(results))
    graph.settle_symbols()
    return graph


def _place(root: Module, name: str) -> Module:
    """The (perhaps new) submodule that holds a dotted name."""
    for part in name.split(".")[:-1]:
        if part not in root._modules:
            root.add_module(part, Module())
        child = root._modules[part]
        assert child is not None
        root = child
    return root


@dataclass(frozen=True, slots=True, eq=False)
class ExportedProgram:
    """The result of `export`.

    graph_module: takes parameters, buffers, then the call's tensors, and returns new values of the tensors that the program
    writes, then its results. state_dict: parameters and persistent buffers, shared with the exported module. constants: the
    other buffers. range_constraints: of the open sizes.
    """

    graph_module: GraphModule
    graph_signature: ExportGraphSignature
    state_dict: dict[str, Any]
    constants: dict[str, Any]
    call: Call
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]]

    @property
    def graph(self) -> Graph:
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[Sym, ValueRange]:
        return dict(self.call.ranges)

    @property
    def call_spec(self) -> Call:
        return self.call

    @property
    def in_spec(self) -> Any:
        return self.call.in_spec

    @property
    def out_spec(self) -> Any:
        return self.call.out_spec

    def parameters(self) -> Iterator[Parameter]:
        return (p for _, p in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)

    def buffers(self) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        temporary = set(self.graph_signature.non_persistent_buffers)
        return ((n, self.constants[n] if n in temporary else self.state_dict[n]) for n in self.graph_signature.buffers)

    def module(self, check_guards: bool = True) -> ExportedModule:
        """The program as a Module that is called like the original. Raises: NotImplementedError for check_guards=False."""
        if not check_guards:
            raise NotImplementedError("ExportedProgram.module: check_guards=False is not supported: other sizes could give wrong results")
        return ExportedModule(self)

    def run_decompositions(self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False) -> ExportedProgram:
        """The same program: export has already decomposed its composite ops.

        Raises: NotImplementedError for a decomposition table, whose ops are torch's.
        """
        if decomp_table:
            raise NotImplementedError("run_decompositions: decomp_table is not supported; without it composite ops are decomposed")
        return replace(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        return replace(self, state_dict=copy.deepcopy(self.state_dict, memo), constants=copy.deepcopy(self.constants, memo))

    def __str__(self) -> str:
        lines = ["ExportedProgram:", *("    " + line for line in self.graph_module.readable().splitlines())]
        lines += ["Graph signature:", *(f"    input {s}" for s in self.graph_signature.input_specs)]
        lines += [f"    output {s}" for s in self.graph_signature.output_specs]
        ranges = ", ".join(f"{to_python(s)}: {r!r}" for s, r in self.call.ranges.items())
        return "\n".join([*lines, f"Range constraints: {{{ranges}}}"])
