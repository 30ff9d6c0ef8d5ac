"""Checkpoints by a backward within backward: `use_reentrant=True`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.function import Function
from eager.autograd.grad_mode import enable_grad, no_grad
from eager.compiler import call_outside
from eager.tape.engine import backward
from eager.tape.state import per_thread
from eager.utils.checkpoint.surroundings import Surroundings, check_backward_validity, detach_variable


class CheckpointFunction(Function):
    """Runs a function without history; backward runs it again with history and then its backward.

    Gradients of tensors that the function closes over (parameters) are accumulated into their `.grad` on the way;
    therefore it does not support `autograd.grad`.
    """

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function without history and save its tensor arguments."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings.now(preserve_rng_state)
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        with no_grad():
            return call_outside(run_function, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Run the function again with history, then its backward.

        Raises: RuntimeError for `autograd.grad`, or no differentiable output.
        """
        if per_thread.collecting:
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                               "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                               ".backward() without passing the `inputs` argument.")  # fmt: skip
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.positions, ctx.saved_tensors, strict=True):
            inputs[i] = t
        detached = detach_variable(tuple(inputs))
        with enable_grad(), ctx.surroundings.restored():
            outputs = call_outside(ctx.run_function, *detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        differentiable = [(y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        if not differentiable:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([y for y, _ in differentiable], [g for _, g in differentiable])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached)
