"""Values that a plan keeps between calls: weights in panels, and the results of steps that depend on weights alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from inductor.artifact import format as A
from inductor.cpp.gemm_problem import pack_function
from inductor.ir import definitions as ir

__all__ = ["Pack", "entries", "function_of"]


class Pack(NamedTuple):
    """A value of weights alone: a weight in panels, or the results of a step.

    sources: the weights. weight: the buffer that is put into panels by `pack` of `namespace`; "" for the results of `step`.
    """

    sources: frozenset[str]
    nbytes: int
    step: int
    weight: str = ""
    namespace: str = ""


def entries(program: ir.Program, weights: Collection[str], plan: A.ArtifactPlan) -> tuple[int, ...]:
    """The plan's buffers of inputs and constants."""
    inputs, constants = list(program.inputs), [n for n, _ in program.constants]
    return tuple(sorted(plan.input_buffer(inputs.index(n)) if n in inputs else plan.constant_buffer(constants.index(n)) for n in weights))


def function_of(p: Pack, name: str, target: int, source: str, statements: Iterable[str]) -> str:
    """The function `name` of a pack with entry `target`. source: the pointer to its weight; statements: of its step."""
    if p.weight:
        return pack_function(name, p.namespace, source, target)
    body = "".join(f"  {s}\n" for s in statements)
    return f'extern "C" __attribute__((visibility("default"))) void {name}(char** bufs, const Runtime* rt) {{\n{body}}}\n'
