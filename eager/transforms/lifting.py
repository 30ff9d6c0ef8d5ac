"""The level of reverse mode: a separate tape over wrapped tensors.

`grad`, `vjp` and `jacrev` record on the wrappers of this level. Dependences on tensors from outside the transform are recorded
below, on the values. So a gradient computed inside is differentiable outside, with respect to the outside tensors only.
"""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.autograd.function import run
from eager.dispatch.calls import recorded, without
from eager.optable.table import Op
from eager.tape import engine
from eager.transforms.level import Level, Wrapped


class GradTensor(Wrapped):
    """A tensor of a reverse-mode transform."""

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"GradTrackingTensor(lvl={self._level.depth}, value=\n    {_indent(repr(self._value))}\n)"


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")


class Lifting(Level):
    """Records the ops on its inputs and on tensors computed from them."""

    wrapper = GradTensor

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._recording = True
        self._outer_grad_mode = _native.grad_enabled()

    def input(self, value: Any) -> Any:
        """`value` as a leaf that requires a gradient. Raises: RuntimeError for integers."""
        if value.dtype.is_integral:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        t = self.wrap(value)
        t._requires_grad = True
        return t

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if not self.owns_any(op, args):
            return self.pass_on(op, args)
        self.refuse_captured(op, args)
        grad_mode = _native.grad_enabled()
        below_mode = grad_mode and self._outer_grad_mode
        if self._recording and grad_mode and not op.vjp and not op.mutates and op.decompose is not None:
            with self:
                return op.decompose(*args)

        def below(op: Op, args: tuple[Any, ...]) -> Any:
            before = _native.set_grad_enabled(below_mode)
            try:
                result = op(*self.values(args))
            finally:
                _native.set_grad_enabled(before)
            return args[0] if op.mutates else self.wrap_results(result)

        return recorded(op, args, below) if self._recording else below(op, args)

    def custom_function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Call a custom function: its forward runs below, and this level's tape records its backward."""
        require_setup_context(cls)

        def forward(*inputs: Any) -> Any:
            with without(self):
                return self.wrap_results(cls.apply(*self.values(inputs)))

        return run(cls, args, forward)

    def gradients(self, outputs: list[Any], inputs: list[Any], cotangents: list[Any]) -> list[Any]:
        """Values of the gradients of `outputs` (wrapped, or constants) in `inputs`; zeros where none depends."""
        pairs = [(y, self.wrap_results(g)) for y, g in zip(outputs, cotangents, strict=True) if self.owns(y) and y._requires_grad]
        found: list[Any] = [None] * len(inputs)
        if pairs:
            self._recording = False
            try:
                with self:
                    found = list(engine.grad([y for y, _ in pairs], inputs, [g for _, g in pairs], retain_graph=True,
                                             create_graph=_native.grad_enabled() and self._outer_grad_mode, allow_unused=True))  # fmt: skip
            finally:
                self._recording = True
        return [x._value * 0 if g is None else self.value(g) for x, g in zip(inputs, found, strict=True)]


def require_setup_context(cls: Any) -> None:
    """Raise RuntimeError for a custom function without `setup_context`: its forward takes `ctx`."""
    if not cls.has_setup_context():
        raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it "
                           "must override the setup_context staticmethod. For more details, please see "
                           "https://pytorch.org/docs/main/notes/extending.func.html")  # fmt: skip
