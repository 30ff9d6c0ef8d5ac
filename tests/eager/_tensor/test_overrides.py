"""`__torch_function__`: subclasses, classes outside Tensor, modes, and the calls that they receive. Outcomes are torch 2.13's."""
from __future__ import annotations

import dis
import subprocess
import sys
from typing import Any, ClassVar

import pytest

import eager as torch
from eager import overrides
from eager._tensor import torch_function
from eager.base import settings
from eager.nn import functional as F  # noqa: N812
from eager.utils._python_dispatch import TorchDispatchMode


class Plain(torch.Tensor):
    """A subclass with Tensor's `__torch_function__`."""


class Logged(torch.Tensor):
    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Duck:
    """Not a subclass of Tensor: value times the identity matrix of size n."""

    handled: ClassVar[dict[Any, Any]] = {}

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in cls.handled or not all(issubclass(t, (torch.Tensor, Duck)) for t in types):
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


Duck.handled = {torch.mean: lambda x: x.value / x.n, torch.add: lambda a, b: "added",
                torch.Tensor.add: lambda a, b: "added by a method", F.relu: lambda x: Duck(x.n, max(x.value, 0))}


def calls_of(fn: Any) -> tuple[list[str], Any]:
    Logged.calls = []
    result = fn()
    return Logged.calls, result


X = torch.ones(3).as_subclass(Logged)
P = torch.ones(3)
# expression, the functions that torch names, type of the result
SEEN = [
    ("X + P", ["add"], Logged), ("P + X", ["add"], Logged), ("1 + X", ["add"], Logged), ("1 - X", ["__rsub__"], Logged),
    ("P - X", ["sub"], Logged), ("2 * X", ["mul"], Logged), ("X / P", ["div"], Logged),
    ("X ** 2", ["pow"], Logged), ("-X", ["neg"], Logged),
    ("2 ** X", ["__rpow__"], Logged), ("X < P", ["lt"], Logged), ("P @ X", ["matmul"], Logged), ("X[0]", ["__getitem__"], Logged),
    ("abs(X)", ["abs"], Logged), ("P // X", ["__floordiv__"], Logged), ("X % 2", ["remainder"], Logged), ("2 % X", ["__rmod__"], Logged),
    ("X.shape", ["__get__"], torch.Size), ("X.T", ["__get__"], Logged), ("X.data", ["__get__"], Logged),
    ("X.dtype", ["__get__"], torch.dtype),
    ("X.size()", ["size"], torch.Size), ("X.dim()", ["dim"], int), ("X.stride()", ["stride"], tuple), ("len(X)", ["__len__"], int),
    ("repr(X)", ["__repr__"], str), ("X.tolist()", ["tolist"], list), ("X.sum()", ["sum"], Logged),
    ("torch.sum(X, dim=0)", ["sum"], Logged),
    ("F.relu(X)", ["relu"], Logged), ("torch.cat([X, P])", ["cat"], Logged), ("torch.stack((P, X))", ["stack"], Logged),
    ("X.to(torch.float64)", ["to"], Logged), ("X.double()", ["double"], Logged), ("X.view(3, 1)", ["view"], Logged),
    ("torch.zeros_like(X)", ["zeros_like"], Logged), ("X.new_zeros(2)", ["new_zeros"], Logged), ("X.clone()", ["clone"], Logged),
    ("float(X.sum())", ["sum", "__float__"], float), ("torch.where(X > 0, X, P)", ["gt", "where"], Logged),
    ("torch.einsum('i,i->', X, P)", ["einsum"], Logged), ("torch.tensor(X)", [], torch.Tensor), ("torch.is_tensor(X)", [], bool),
    ("F.softmax(X, -1)", ["softmax"], Logged), ("torch.nn.Linear(3, 2)(X)", ["linear"], Logged), ("torch.equal(X, P)", ["equal"], bool),
    ("F.interpolate(X[None, None], scale_factor=2)", ["__getitem__", "interpolate"], Logged), ("torch.linalg.norm(X)", ["norm"], Logged),
    ("P.clone().copy_(X)", ["copy_"], torch.Tensor), ("X.clone().add_(1)", ["clone", "add_"], Logged),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names", "kind"), SEEN, ids=[s[0] for s in SEEN])
def test_a_subclass_sees_the_functions_that_torch_names(text: str, names: list[str], kind: type) -> None:
    seen, result = calls_of(lambda: eval(text, globals()))  # noqa: S307 - our own table
    assert seen == names
    assert isinstance(result, kind)


def test_results_of_several_tensors_are_converted_each() -> None:
    x = torch.tensor([[3.0, 1.0], [2.0, 4.0]]).as_subclass(Plain)
    found = x.max(0)
    assert type(found).__name__ == "max" and isinstance(found.values, Plain) and isinstance(found.indices, Plain)
    assert all(isinstance(part, Plain) for part in x.split(1)) and all(isinstance(row, Plain) for row in x)


def test_gradients_flow_through_subclasses() -> None:
    w = torch.ones(3, requires_grad=True)
    y = (w.as_subclass(Plain) * 2).sum()
    assert isinstance(y, Plain) and y.grad_fn is not None
    y.backward()
    assert torch.equal(w.grad, torch.full((3,), 2.0)) and type(w.grad) is torch.Tensor


def test_torch_function_receives_only_the_outermost_call() -> None:
    x = torch.randn(4, 5, requires_grad=True).as_subclass(Logged)
    seen, loss = calls_of(lambda: F.cross_entropy(x, torch.tensor([1, 0, 2, 3])))
    assert seen == ["cross_entropy"]
    seen, _ = calls_of(lambda: loss.backward())
    assert seen == ["backward"]


def test_a_parameter_of_a_subclass_stays_one_and_a_parameter_takes_no_part() -> None:
    assert isinstance(torch.nn.Parameter(torch.ones(2).as_subclass(Plain)), Plain)

    class Weight(torch.nn.Parameter):
        pass

    assert type(Weight(torch.ones(2)) * 2) is torch.Tensor


def test_the_most_derived_class_is_called_first() -> None:
    class Near(Logged):
        pass

    assert isinstance(torch.ones(3).as_subclass(Logged) + torch.ones(3).as_subclass(Near), Near)


def test_unrelated_subclasses_refuse_each_other() -> None:
    class Other(torch.Tensor):
        pass

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.add'; all .* returned NotImplemented"):
        torch.add(torch.ones(1).as_subclass(Plain), torch.ones(1).as_subclass(Other))


def test_a_class_that_is_not_a_tensor_is_called() -> None:
    d = Duck(4, 2.0)
    assert torch.mean(d) == 0.5
    assert torch.add(torch.ones(2), d) == "added"
    assert torch.ones(2) + d == "added by a method"
    assert F.relu(Duck(1, -3.0)).value == 0
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.sum'"):
        torch.sum(d)


def test_disabled_blocks_compute_with_tensors() -> None:
    x = torch.ones(2).as_subclass(Logged)
    for block in (overrides.DisableTorchFunctionSubclass, overrides.DisableTorchFunction):
        with block():
            seen, y = calls_of(lambda: x * 2 + x.shape[0])
        assert seen == [] and type(y) is torch.Tensor
    assert not overrides.has_torch_function((torch.ones(1), torch.nn.Parameter(torch.ones(1)), 3))
    assert overrides.has_torch_function_unary(x) and overrides.has_torch_function_variadic(1, x)


def test_a_function_of_a_user_can_dispatch() -> None:
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def together(a: Any, b: Any = None) -> str:
        return "computed"

    assert together(P) == "computed"
    Duck.handled[together] = lambda a, b=None: "asked"
    assert together(P, b=Duck(1, 1.0)) == "asked"
    assert overrides.handle_torch_function(together, (Duck(1, 1.0),), P) == "asked"


class Seeing(overrides.TorchFunctionMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_functions_of_plain_tensors_and_creation() -> None:
    with Seeing() as outer, Seeing() as inner:
        y = torch.nn.Linear(3, 2, bias=False)(torch.ones(1, 3)) * 2
    assert inner.names[-3:] == ["ones", "linear", "mul"] and outer.names == inner.names
    assert type(y) is torch.Tensor
    inner.names.clear()
    torch.zeros(2) + 1
    assert inner.names == []


def test_a_mode_may_change_results_and_is_disabled_inside_its_handler() -> None:
    class Doubled(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.ones else result

    with Doubled():
        assert torch.ones(1).item() == 2


def test_modes_see_compiled_functions_uncompiled_and_leave_nothing_behind() -> None:
    compiled = torch.compile(lambda x: F.relu(x) * 3)
    x = torch.tensor([-1.0, 2.0])
    with Seeing() as mode:
        inside = compiled(x)
    assert mode.names == ["relu", "mul"]
    assert torch.equal(compiled(x), inside)
    assert isinstance(compiled(x.as_subclass(Plain)), Plain)


def test_a_dispatch_mode_sees_ops_forward_and_backward() -> None:
    class Ops(TorchDispatchMode):
        def __init__(self) -> None:
            self.names: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    w = torch.ones(2, 3, requires_grad=True)
    with Ops() as mode:
        F.linear(torch.ones(4, 3), w).sum().backward()
    assert mode.names.count("linear") == 1 and "mm" in mode.names
    assert torch.equal(w.grad, torch.full((2, 3), 4.0))


def test_torch_dispatch_of_a_subclass_is_refused_by_name() -> None:
    class Dispatching(torch.Tensor):
        __torch_dispatch__ = classmethod(lambda cls, *a, **k: None)

    with pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        torch.ones(1).as_subclass(Dispatching)


def test_names_of_functions() -> None:
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(torch.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert overrides.resolve_name(F.gelu) == "torch.nn.functional.gelu"
    listed = overrides.get_overridable_functions()
    assert torch.add in listed[torch] and F.gelu in listed[F]
    assert overrides.is_tensor_method_or_property(torch.Tensor.add) and not overrides.is_tensor_method_or_property(F.gelu)


def test_functions_dispatch_only_after_a_class_overrides() -> None:
    program = """
import eager as torch, inspect
add, body = torch.add, torch.add.__code__
assert "overrides" not in vars(torch)
class Param(torch.nn.Parameter): pass
assert add.__code__ is body
class Sub(torch.Tensor): pass
assert torch.add is add and add.__code__ is not body
assert list(inspect.signature(torch.add).parameters) == ["input", "other", "alpha", "out"]
assert isinstance(add(torch.ones(1).as_subclass(Sub), 1), Sub)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_frames_of_functions_that_dispatch_can_be_inspected() -> None:
    # They have the free variables of the body that they replaced. A debugger, or pytest at a failing test, reads them all:
    # without their cells that was a crash of the interpreter.
    with settings.scope(debug_full_traceback=True), pytest.raises(RuntimeError) as caught:
        torch.ones(2, 3) @ torch.ones(2, 3)
    frames = [entry.frame for entry in caught.traceback]
    asking = [f.raw for f in frames if f.code.name == "asks_first"]
    assert asking and all(f.f_code.co_freevars for f in asking)
    for frame in asking:
        assert set(frame.f_code.co_freevars) <= set(frame.f_locals)


def test_dispatching_code_copies_its_free_variables() -> None:
    bodies = [fn if hasattr(fn, "__code__") else getattr(fn, "__wrapped__", None) for _, _, fn in torch_function.public_functions()]
    closures = [b for b in bodies if hasattr(b, "__code__") and b.__code__.co_freevars]
    assert len(closures) > 100
    for body in closures:
        assert next(dis.get_instructions(body)).opname == "COPY_FREE_VARS", body
