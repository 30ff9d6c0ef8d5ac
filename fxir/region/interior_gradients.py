"""Gradients at an intermediate of a compiled region: a result that other results of the region depend on.

Autograd sees a region as one node, and its results do not depend on one another. Without a request, such a result receives only
the gradient from outside the region. A hook on it, `retain_grad()`, or `autograd.grad` with respect to it requests the whole
gradient, which includes the paths through other results. The program then runs once more, op by op, with a history, and
autograd computes that gradient as in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from eager import _native, random
from eager._tensor.tensor import Tensor
from eager.base import thread_state
from eager.base.records import dataclass
from eager.optable.table import OPS
from eager.tape import engine
from eager.tape.inplace import note_base
from fxir.trace.output_aliasing import Computed, Derived, Output

_UNABLE: Final = (
    "a gradient was requested (by a hook, retain_grad() or autograd.grad) at a result of a compiled region that other results of it "
    "are made of, and the region cannot be run again: it writes to large inputs or to the histories of some, or is a gradient itself. "
    "Ask for it inside of the compiled function, or run that part in eager (compiler.disable)."
)
_MOST_KEPT: Final = 1 << 16  # elements of an input that the region writes to, which is copied at every call


@dataclass(frozen=True, slots=True)
class Rerun:
    """The rerun of a region for one backward.

    plain: the program, uncompiled; None if it cannot be run again. results: for each output that the backward is attached to,
    the program's result that it is, and whether it is the base of that result. requiring_grad: the arguments that get gradients.
    written: the arguments that the program writes to. kept: the written arguments that its results depend on; `call.before` has
    their former values. grad_mode, autocast: the modes in which the program begins.
    """

    plain: Callable[..., Any] | None
    results: tuple[tuple[int, bool] | None, ...]
    requiring_grad: tuple[int, ...]
    written: tuple[int, ...]
    kept: tuple[int, ...]
    grad_mode: bool
    autocast: int

    def __call__(self, call: Any, tangents: Sequence[Tensor | None], hooks: dict[int, Callable[[Tensor], Tensor]],
                 targets: Sequence[int], wanted: Sequence[bool]) -> tuple[list[Tensor | None], list[Tensor | None]]:  # fmt: skip
        """(the gradients of arguments, the gradients at `targets`). hooks: by output, a function that its gradient passes through."""
        if self.plain is None or any(t is None for t in call.before):
            raise RuntimeError(_UNABLE)
        create_graph = _native.set_grad_enabled(True)
        try:
            args = self._arguments(call, create_graph)
            made = self._run_again(call, args)
            present = [k for k, g in enumerate(tangents) if g is not None]
            if any(made[k] is None for k in (*present, *hooks, *targets)):
                raise RuntimeError(_UNABLE)
            for k, hook in hooks.items():
                made[k].register_hook(hook)
            sought = [args[a] for a, want in zip(self.requiring_grad, wanted, strict=True) if want] + [made[k] for k in targets]
            gradients = iter(engine.grad([made[k] for k in present], sought, [tangents[k] for k in present], retain_graph=True,
                                         create_graph=create_graph, allow_unused=True))  # fmt: skip
            return [next(gradients) if want else None for want in wanted], list(gradients)
        finally:
            _native.set_grad_enabled(create_graph)

    def _arguments(self, call: Any, create_graph: bool) -> list[Any]:
        """Stand-ins for the arguments of the call, without their history. An argument that is given twice has one stand-in."""
        made: dict[int, Any] = {}
        for i in self.written:
            t = call.args[i]
            if create_graph and t._requires_grad:
                raise RuntimeError(_UNABLE)
            was = call.before[self.kept.index(i)] if i in self.kept else t
            made[id(t)] = was.detach().clone().requires_grad_(t._requires_grad)
        for t in call.args:
            if id(t) not in made:
                made[id(t)] = OPS["alias"](t) if isinstance(t, Tensor) and t._requires_grad else t
        return [made[id(t)] for t in call.args]

    def _run_again(self, call: Any, args: list[Any]) -> list[Any]:
        """The outputs that the backward is attached to, with a history: the same computation as in the call, with the same
        random numbers.
        """
        assert self.plain is not None
        now, autocast = random.places(), thread_state.autocast_number()
        try:
            random.go_back(call.drawn)
            thread_state.switch_autocast(self.autocast)
            _native.set_grad_enabled(self.grad_mode)
            found = self.plain(*args)
        finally:
            _native.set_grad_enabled(True)
            thread_state.switch_autocast(autocast)
            random.go_back(now)
        return self._made(found if isinstance(found, tuple | list) else [found])

    def _made(self, found: Sequence[Any]) -> list[Any]:
        return [None if at is None else note_base(found[at[0]]) if at[1] else found[at[0]] for at in self.results]


def copy_of(t: Tensor) -> Tensor | None:
    """A copy of an input before the region writes to it; None if the input is too large to be copied at every call."""
    return t.detach().clone() if t.numel() <= _MOST_KEPT else None


def plan_rerun(plain: Callable[..., Any] | None, outputs: Sequence[Output], differentiable: Sequence[int], written: Sequence[Any],
           requiring_grad: Sequence[Any], kept: Sequence[int]) -> Rerun:  # fmt: skip
    """The rerun of a region that begins in the current modes. differentiable: graph outputs; the first of them are the new
    values of the inputs `written`. `written` and `requiring_grad` are arguments, or None for a graph input that is not an unchanged
    argument.
    """
    at: dict[int, tuple[int, bool]] = {}
    for i, out in enumerate(outputs):
        if isinstance(out, Computed):
            at[out.index] = i, False
    for i, out in enumerate(outputs):
        if isinstance(out, Derived) and out.custom is not None and out.custom.steps == len(out.steps):
            at.setdefault(out.custom.result.index, (i, False))
        elif isinstance(out, Derived) and isinstance(out.source, Computed):
            at.setdefault(out.source.index, (i, True))
    modes = _native.grad_enabled(), thread_state.autocast_number()
    if plain is None or None in (*requiring_grad, *written):
        return Rerun(None, (), (), (), (), *modes)
    results = tuple(at.get(k - len(written)) for k in differentiable)
    return Rerun(plain, results, tuple(requiring_grad), tuple(written), tuple(kept), *modes)
