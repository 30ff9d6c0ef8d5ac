"""Custom autograd Functions inside compiled functions."""

from __future__ import annotations

from typing import Any, ClassVar

import eager as torch
from eager.autograd import Function
from eager.autograd.function import once_differentiable
from tests.dynamo.recording.autograd.support import Compile, Programs, error, grads, leaf, same_memory

PROGRAMS = Programs()


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x  # wrong on purpose: the test sees whether this code runs


class Scaled(Function):
    """Attributes on ctx, arguments that are not tensors, needs_input_grad."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, scale: float, name: str = "s") -> Any:
        ctx.scale, ctx.name = scale, name
        ctx.save_for_backward(x, w)
        return x * w * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        gx = g * w * ctx.scale if ctx.needs_input_grad[0] else None
        gw = g * x * ctx.scale if ctx.needs_input_grad[1] else None
        return gx, gw, None, None


class SetUp(Function):
    @staticmethod
    def forward(x: Any, n: int) -> Any:
        return x**n

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, n = inputs
        ctx.save_for_backward(x)
        ctx.n = n

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1) * 2, None


class Straight(Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.round()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Several(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        values, where = x.max(-1)
        ctx.mark_non_differentiable(where)
        ctx.save_for_backward(x, where)
        ctx.set_materialize_grads(False)
        return values, where, x.exp()

    @staticmethod
    def backward(ctx: Any, g: Any, unused: Any, ge: Any) -> Any:
        x, where = ctx.saved_tensors
        found = torch.zeros_like(x)
        if g is not None:
            found = found + torch.nn.functional.one_hot(where, x.shape[-1]).to(x.dtype) * g.unsqueeze(-1)
        if ge is not None:
            found = found + ge * x.exp()
        return found


class Once(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.cos()


class SavesItsOutput(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y * 2


class InPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 5


class Returned(Function):
    """Returns its input unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -ctx.factor * g, None


class Counting(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.sum(0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape)


class NoneGrad(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2, None


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Prints(Function):
    seen: ClassVar[list[str]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Prints.seen.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Prints.seen.append("backward")
        return g * 3


def _both(compile: Compile, fn: Any, *args: Any) -> Any:
    """Results, gradients of floating inputs, and second calls."""
    f = compile(fn)
    seen = []
    for _ in range(2):
        out = f(*args)
        outs = out if isinstance(out, tuple) else (out,)
        wanted = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        total = sum((o * 1.5).sum() for o in outs if o.requires_grad)
        seen.append((outs, torch.autograd.grad(total, wanted, allow_unused=True)))
    return seen


@PROGRAMS.add(whole=True, native=True)
def saved_tensors(compile: Compile) -> Any:
    return _both(compile, lambda x: Square.apply(x) + 1, leaf(3))


@PROGRAMS.add(whole=True)
def attributes_and_needs_input_grad(compile: Compile) -> Any:
    seen = [_both(compile, lambda x, w: Scaled.apply(x, w, 0.5), leaf(3), leaf(3))]
    seen.append(_both(compile, lambda x, w: Scaled.apply(x, w, 0.5, "n"), leaf(3), leaf(3).detach()))
    return seen


@PROGRAMS.add(whole=True)
def set_up_context(compile: Compile) -> Any:
    return _both(compile, lambda x: SetUp.apply(x, 3).sin(), leaf(3))


@PROGRAMS.add(whole=True)
def straight_through(compile: Compile) -> Any:
    return _both(compile, lambda x: Straight.apply(x * 3) * x, leaf(5))


@PROGRAMS.add(whole=True, native=True)
def several_outputs_some_without_gradients(compile: Compile) -> Any:
    f = compile(lambda x: Several.apply(x))
    seen = []
    for use in ((0,), (2,), (0, 2)):
        x = leaf(3, 4)
        out = f(x)
        sum(out[i].sum() for i in use).backward()
        seen.append((out, x.grad, [o.requires_grad for o in out]))
    return seen


@PROGRAMS.add(whole=True, native=True)
def once_differentiable_function(compile: Compile) -> Any:
    f = compile(lambda x: Once.apply(x) * x)
    x = leaf(3)
    return f(x), grads(f(x), x)


@PROGRAMS.add(whole=True)
def saves_its_output(compile: Compile) -> Any:
    return _both(compile, lambda x: SavesItsOutput.apply(x) * 2, leaf(3))


@PROGRAMS.add()
def writes_its_input(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        h = x * 1
        y = InPlace.apply(h)
        return y + 1

    return _both(compile, f, leaf(3))


@PROGRAMS.add(whole=True)
def gradient_reversal(compile: Compile) -> Any:
    return _both(compile, lambda x: Returned.apply(x, 0.5) * 2, leaf(3))


@PROGRAMS.add(whole=True)
def expands_its_gradient(compile: Compile) -> Any:
    return _both(compile, lambda x: Counting.apply(x), leaf(3, 2))


@PROGRAMS.add(whole=True)
def gives_no_gradient_to_an_input(compile: Compile) -> Any:
    return _both(compile, lambda x, y: NoneGrad.apply(x, y), leaf(3), leaf(3))


@PROGRAMS.add()
def returns_too_few_gradients(compile: Compile) -> Any:
    f = compile(lambda x, y: Wrong.apply(x, y).sum())
    x, y = leaf(3), leaf(3)
    return error(lambda: f(x, y).backward())


@PROGRAMS.add()
def effects_in_forward_and_backward(compile: Compile) -> Any:
    f = compile(lambda x: Prints.apply(x) + 1)
    Prints.seen.clear()
    x = leaf(3)
    out = f(x)
    first = list(Prints.seen)
    out.sum().backward()
    f(x).sum().backward()
    return out, x.grad, first, list(Prints.seen)


@PROGRAMS.add(whole=True)
def without_gradients(compile: Compile) -> Any:
    f = compile(lambda x: Square.apply(x) + 1)
    with torch.no_grad():
        a = f(leaf(3))
    return a, f(leaf(3).detach()), f(leaf(3))


@PROGRAMS.add(whole=True)
def recorded_inside_a_no_grad_block(compile: Compile) -> Any:
    def f(x: Any) -> Any:
        with torch.no_grad():
            y = Square.apply(x)
        return y * x

    return _both(compile, f, leaf(3))


@PROGRAMS.add(whole=True)
def forward_runs_without_recording(compile: Compile) -> Any:
    class Asks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * (2 if torch.is_grad_enabled() else 3)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (2 if torch.is_grad_enabled() else 3)

    return _both(compile, lambda x: Asks.apply(x), leaf(3))


@PROGRAMS.add(whole=True)
def nested_functions(compile: Compile) -> Any:
    class Outer(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return Square.apply(x) + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                del y
            return g * Straight.apply(x)

    return _both(compile, lambda x: Outer.apply(x) * 2, leaf(3))


@PROGRAMS.add(whole=True)
def in_a_module_with_parameters(compile: Compile) -> Any:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(leaf(3, 3).detach())

        def forward(self, x: Any) -> Any:
            return Scaled.apply(x, self.weight, 2.0).sum(-1)

    layer = Layer()
    run = compile(layer)
    x = leaf(3, 3)
    seen = []
    for _ in range(2):
        run(x).sum().backward()
        seen.append((x.grad.clone(), layer.weight.grad.clone()))
    return seen


@PROGRAMS.add(whole=True, native=True)
def second_order(compile: Compile) -> Any:
    f = compile(lambda x: (Square.apply(x) * x).sum())
    x = leaf(3)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@PROGRAMS.add()
def second_order_of_a_once_differentiable_function(compile: Compile) -> Any:
    f = compile(lambda x: Once.apply(x).sum())
    x = leaf(3)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return g, error(lambda: torch.autograd.grad(g.sum(), x))


@PROGRAMS.add()
def input_returned_unchanged(compile: Compile) -> Any:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    f = compile(lambda x: Same.apply(x))
    x = leaf(3)
    y = f(x)
    return y, y is x, same_memory(x, y), grads(y, x)


@PROGRAMS.add()
def chosen_by_a_tensor(compile: Compile) -> Any:
    class Branches(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 if float(x.sum()) > 0 else g * 3

    return _both(compile, lambda x: Branches.apply(x) + 1, leaf(3)) + _both(
        compile, lambda x: Branches.apply(x) + 1, leaf(3, start=-9.0)
    )


@PROGRAMS.add()
def called_with_numpy_in_backward(compile: Compile) -> Any:
    class Host(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.from_numpy(x.detach().numpy() * 2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.from_numpy(g.numpy() * 2)

    return _both(compile, lambda x: Host.apply(x.sin()).cos(), leaf(3))


@PROGRAMS.add(whole=True)
def apply_taken_as_a_function(compile: Compile) -> Any:
    square = Square.apply
    return _both(compile, lambda x: square(square(x)), leaf(3))


@PROGRAMS.add(whole=True)
def gradient_of_another_dtype_and_shape(compile: Compile) -> Any:
    class Broad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, b: Any) -> Any:
            return x + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.float(), g

    x, b = leaf(3, 2), leaf(2)
    return _both(compile, lambda x, b: Broad.apply(x, b), x, b)
