"""Gradients of gradients: the backward of a compiled region as a program that is itself compiled and differentiable.

The backward graph of a region cannot be differentiated, for it starts from values kept by the forward. So, at the first
backward under `create_graph=True`, the region is traced again and its gradients become a program of its inputs and its
tangents, the forward computed again inside. That program goes the way of any other, so that a third order works too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eager.ops.table import empty
from eager.spec import TensorSpec
from eager.tensor import Tensor
from fxir.absent import without
from fxir.emit import spec
from fxir.examples import fakes_like
from fxir.graph import Graph
from fxir.graph_module import GraphModule
from fxir.joint import Joint
from fxir.node import Node
from fxir.partition import ancestors

UNABLE: Final = (
    "a compiled region was differentiated twice (create_graph=True), and its gradient depends on the former value of an input "
    "that it writes to; allowed: inputs that it does not write to. Clone that input first, or run that part in eager "
    "(compiler.disable)."
)


@dataclass(frozen=True, slots=True)
class Traced:
    """A region traced for certain inputs. inputs: of the joint graph, positions in the arguments, or tensors held."""

    joint: Joint
    inputs: tuple[int | Tensor, ...]


@dataclass(frozen=True, slots=True)
class _Program:
    """gm takes the primals of these positions, all tangents (of these specs) and the random states of these positions.

    results: per gradient its position, or None.
    """

    gm: GraphModule
    primals: tuple[int, ...]
    tangents: tuple[TensorSpec, ...]
    states: tuple[int, ...]
    results: tuple[int | None, ...]


@dataclass(slots=True)
class SecondOrder:
    """The differentiable backward of one region. trace: the region for fakes like its arguments; compile: of programs."""

    trace: Callable[[list[Any]], Traced]
    compile: Callable[[GraphModule, list[Tensor]], Callable[..., Any]]
    _traced: dict[Any, tuple[Traced, dict[Any, tuple[_Program, dict[Any, Any]]]]] = field(default_factory=dict)

    def __call__(self, args: Sequence[Any], tangents: Sequence[Tensor | None], states: Sequence[Tensor | None]) -> list[Any]:
        """One gradient, with a history, or None per input that wants one.

        args: of the call. tangents: None for outputs without one. states: of the generator, per draw of the forward.
        Raises: NotImplementedError for a region that overwrites what its gradient depends on.
        """
        key = tuple(map(_looks, args))
        if key not in self._traced:
            self._traced[key] = self.trace(fakes_like(args)), {}
        traced, programs = self._traced[key]
        absent = tuple(i for i, t in enumerate(tangents) if t is None)
        if absent not in programs:
            programs[absent] = _gradients(traced.joint, absent), {}
        program, compiled = programs[absent]
        primals = [args[i] if isinstance(i := traced.inputs[k], int) else i for k in program.primals]
        given = [empty(s) if t is None else t for t, s in zip(tangents, program.tangents, strict=True)]
        values: list[Any] = [*primals, *given, *(states[i] for i in program.states)]
        looks = tuple(map(_looks, values))
        if looks not in compiled:
            compiled[looks] = self.compile(program.gm, fakes_like(values))
        found = compiled[looks](*values) if program.gm.graph.outputs else ()
        return [None if k is None else found[k] for k in program.results]


def _looks(t: Any) -> Any:
    """What a compilation may depend on, beside the place in memory, which it checks itself."""
    if not isinstance(t, Tensor):
        return t
    return tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf


def _gradients(joint: Joint, absent: tuple[int, ...]) -> _Program:
    wanted = ancestors([g for g in joint.grads if g is not None])
    if any(joint.primals[i] in wanted for i in joint.mutated_inputs):
        raise NotImplementedError(UNABLE)
    graph = Graph(dict(joint.graph.root))
    env: dict[Node, Node] = {}
    primals = tuple(i for i, n in enumerate(joint.primals) if n in wanted)
    states = tuple(i for i, n in enumerate(joint.forward_effects) if n in wanted)
    for n in (*(joint.primals[i] for i in primals), *joint.tangents, *(joint.forward_effects[i] for i in states)):
        env[n] = graph.placeholder(n.name, info=n.info)
    for n in joint.graph.nodes:
        if n in wanted and n not in env:
            env[n] = graph.copy_node(n, env.__getitem__)
    present = [g for g in joint.grads if g is not None]
    graph.output(tuple(env[g] for g in present))
    first = len(primals)
    positions: list[int | None] = list(range(len(present)))
    if absent:
        graph, positions = without(graph, [first + i for i in absent], range(first, first + len(joint.tangents)))
    at = iter(positions)
    results = tuple(None if g is None else next(at) for g in joint.grads)
    tangents = tuple(spec(n) for n in joint.tangents)
    return _Program(GraphModule(graph.root, graph, "GradientGraph"), primals, tangents, states, results)

