"""Gradients of gradients: the backward of a compiled region as a program that is itself compiled and differentiable.

The backward graph of a region cannot be differentiated, since it starts from values that the forward saved. So the first
backward under `create_graph=True` traces the region again, and its gradients become a program of its inputs and its tangents,
which recomputes the forward. That program is compiled like any other, so that a third order works too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from eager._tensor.tensor import Tensor
from eager.base.records import dataclass
from fxir.trace.trace import fakes_like

UNABLE: Final = (
    "a compiled region was differentiated twice (create_graph=True), and its gradient depends on the former value of an input "
    "that it writes to; allowed: inputs that it does not write to. Clone that input first, or run that part in eager "
    "(compiler.disable)."
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The inputs of a program of gradients: `arguments` of the region, then tangents of all outputs that are not in `absent` (a
    bit mask), then the random states of these `draws` of the forward.
    """

    arguments: int
    absent: int
    draws: tuple[int, ...]


CompileGradients: TypeAlias = Callable[[Shape, list[Any]], Callable[..., Any]]


@dataclass(slots=True)
class SecondOrder:
    """The differentiable backward of one region. compile: compiles the program of gradients for fakes like its inputs."""

    compile: CompileGradients
    _compiled: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def __call__(self, args: Sequence[Any], tangents: Sequence[Tensor | None], states: Sequence[Tensor | None]) -> Any:
        """One gradient per input that requires one: a tensor with a history, or None.

        args: arguments of the call. tangents: None for outputs without a tangent. states: of the generator, per draw of the
        forward.
        Raises: NotImplementedError for a region that overwrites a value that its gradient depends on.
        """
        absent = sum(1 << i for i, t in enumerate(tangents) if t is None)
        draws = tuple(k for k, s in enumerate(states) if s is not None)
        shape = Shape(len(args), absent, draws)
        values = [*args, *(t for t in tangents if t is not None), *(s for s in states if s is not None)]
        key = shape, tuple(map(_metadata, values))
        if key not in self._compiled:
            self._compiled[key] = self.compile(shape, fakes_like(values))
        return self._compiled[key](*values)


def _metadata(t: Any) -> Any:
    """The properties of an argument that a compilation may depend on. It checks the placement in memory itself."""
    if not isinstance(t, Tensor):
        return t
    return tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf
