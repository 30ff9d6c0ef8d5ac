"""One accepted call for each public function, method, layer, optimizer and schedule, and the keywords that it leaves unset.

The calls come from tables that other tests keep: `tests.data.calls` (functions and methods), `tests.nn.layer_cases`
(layers), more_calls.py, object_calls.py and this file. `run` makes a call with further keywords, in eager or in torch.
"""
from __future__ import annotations

import ast
import inspect
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Any, Final

from tests.data.calls import calls, names
from tests.keywords.more_calls import MORE_CALLS
from tests.keywords.object_calls import OBJECT_CALLS
from tests.nn import layer_cases

Library = Any  # the module `eager` or `torch`
_USE: Final = " >> "  # between a call and the use of its result


@dataclass(frozen=True, slots=True)
class Call:
    """An expression that makes a call, the public name of the callable, and the source of the expression."""

    name: str
    text: str
    kind: str  # "function", "layer", "optimizer", "schedule" or "object"
    differentiable: bool = False


def run(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """The result of `call` with the keywords `more`, beside the tensors and the object that the call may have changed."""
    T.manual_seed(0)
    return _RUN[call.kind](T, call, more)


def keywords(T: Library, call: Call) -> tuple[str, ...]:
    """The parameters that the call could set by name and does not set."""
    target = _target(T, call)
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return ("out", "dtype")  # a native function: C code checks its keywords
    node = _parse(call.text)
    assert node is not None
    args, kwargs = _arguments(node, _scope(T, call))
    used = len(args) + call.name.startswith("Tensor.")
    left = [p for k, p in enumerate(parameters) if k >= used or p.kind is p.KEYWORD_ONLY]
    named = [p.name for p in left if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return tuple(n for n in named if n not in kwargs and not n.startswith("_"))


def _parse(text: str) -> ast.Call | None:
    """The outermost call of an expression, without its use; None if the expression has another form."""
    node = ast.parse(text.partition(_USE)[0], mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if any(k.arg is None for k in node.keywords):
        return None
    return node


def _scope(T: Library, call: Call) -> dict[str, Any]:
    """New objects for the names in the expression of the call."""
    if call.kind == "function":
        return names(T)
    if call.kind == "object":
        return _object_scope(T)
    p = T.nn.Parameter(T.ones(3, 4))
    return {"nn": T.nn, "torch": T, "optim": T.optim, "p": p, "sgd": T.optim.SGD([p], lr=0.1, momentum=0.9)}


def _target(T: Library, call: Call) -> Callable[..., Any]:
    owner, _, attribute = call.name.rpartition(".")
    scope = {"T": T, "F": T.nn.functional, "Tensor": T.Tensor, "nn": T.nn, "optim": T.optim, "D": T.distributions}
    return getattr(eval(owner, scope), attribute)  # type: ignore[no-any-return]


def _arguments(node: ast.Call, scope: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for a in node.args:
        if isinstance(a, ast.Starred):
            args.extend(eval(ast.unparse(a.value), scope))
        else:
            args.append(eval(ast.unparse(a), scope))
    return args, {str(k.arg): eval(ast.unparse(k.value), scope) for k in node.keywords}


# -- functions and methods ----------------------------------------------------------------------------------------

def _run_function(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """The result, the operands afterwards, and the operands' gradients if the call has a derivative."""
    node = _parse(call.text)
    assert node is not None and isinstance(node.func, ast.Attribute)
    scope = names(T)
    owner = eval(ast.unparse(node.func.value), scope)
    args, kwargs = _arguments(node, scope)
    leaves = _require_gradients((owner, *args, *kwargs.values())) if call.differentiable else []
    result = getattr(owner, node.func.attr)(*args, **kwargs, **more)
    return result, scope["made"], _gradients(T, result, leaves)


def _require_gradients(values: tuple[Any, ...]) -> list[Any]:
    leaves = [v for v in values if hasattr(v, "is_floating_point") and v.is_floating_point() and v.is_leaf]
    return [leaf.requires_grad_() for leaf in leaves]


def _gradients(T: Library, result: Any, leaves: list[Any]) -> list[Any]:
    results = result if isinstance(result, (tuple, list)) else [result]
    roots = [r for r in results if isinstance(r, T.Tensor) and r.requires_grad and not r.dtype.is_complex]
    if not leaves or not roots:
        return []
    sum((r * r).sum() for r in roots).backward()  # type: ignore[attr-defined]
    return [leaf.grad for leaf in leaves]


def _public_name(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Attribute)
    owner = ast.unparse(node.func.value)
    module = owner in ("T", "F") or (owner.startswith("T.") and owner.replace(".", "").isidentifier())
    return f"{owner if module else 'Tensor'}.{node.func.attr}"


def functions(T: Library) -> Iterator[Call]:
    """The first accepted call of each function and method, in this order: the calls written for keywords, the table of
    calls, and methods and in-place methods that take the arguments of a function of their name."""
    found: dict[str, Call] = {}
    for text in chain(MORE_CALLS, chain.from_iterable(calls().values())):
        _add(T, found, text)
    for text in [form for call in list(found.values()) for form in _as_methods(T, call)]:
        _add(T, found, text)
    yield from found.values()


def _add(T: Library, found: dict[str, Call], text: str) -> None:
    node = _parse(text)
    if node is not None and _public_name(node) not in found:
        call = _accepted(T, _public_name(node), text)
        if call is not None:
            found[call.name] = call


def _as_methods(T: Library, call: Call) -> Iterator[str]:
    """The call as the method of its first operand, and as the in-place method."""
    node = _parse(call.text)
    assert node is not None and isinstance(node.func, ast.Attribute)
    name, args = node.func.attr, node.args
    if call.name.startswith("Tensor."):
        receiver = ast.unparse(node.func.value)
    elif args and not isinstance(args[0], ast.Starred):
        receiver, args = ast.unparse(args[0]), args[1:]
    else:
        return
    rest = ", ".join([*map(ast.unparse, args), *(f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords)])
    for form in (name, f"{name}_"):
        if hasattr(T.Tensor, form):
            yield f"({receiver}).{form}({rest})"


def _accepted(T: Library, name: str, text: str) -> Call | None:
    """The call, with gradients if they can be taken; None if it raises, makes a class or gives nothing."""
    for differentiable in (True, False):
        call = Call(name, text, "function", differentiable)
        try:
            if not inspect.isclass(_target(T, call)) and run(T, call, {})[0] is not None:
                return call
        except Exception:
            continue
    return None


# -- layers, optimizers and schedules ----------------------------------------------------------------------------------------

def _run_layer(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """The layer's result; then its text, the names of its state and its parameters."""
    node = _parse(call.text)
    assert node is not None
    args, kwargs = _arguments(node, _scope(T, call))
    module = _target(T, call)(*args, **kwargs, **more)
    name = next(n for n, (expression, _) in layer_cases.LAYERS.items() if expression == call.text)
    _, inputs = layer_cases.build(T, name, T.float64)
    module.double()
    text, state = repr(module), sorted(module.state_dict())
    return (module(*inputs) if inputs else None), [text, state, list(module.parameters())]


def _run_optimizer(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """A parameter after two steps on a quadratic, and the settings of its group."""
    node, scope = _parse(call.text), _scope(T, call)
    assert node is not None
    args, kwargs = _arguments(node, scope)
    optimizer, p = _target(T, call)(*args, **kwargs, **more), scope["p"]

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return p, optimizer.state_dict()["param_groups"]


def _run_schedule(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """Learning rates and momenta over eight steps, and the numbers that the schedule keeps."""
    node, scope = _parse(call.text), _scope(T, call)
    assert node is not None
    args, kwargs = _arguments(node, scope)
    schedule, sgd = _target(T, call)(*args, **kwargs, **more), scope["sgd"]
    rates = []
    for _ in range(8):
        sgd.step()
        schedule.step(*([1.0] if "Plateau" in call.name else []))
        rates.append((float(sgd.param_groups[0]["lr"]), sgd.param_groups[0]["momentum"]))
    return rates, {k: v for k, v in schedule.state_dict().items() if isinstance(v, (int, float, str))}


_SCHEDULES: Final = """
ChainedScheduler([optim.lr_scheduler.StepLR(sgd, 2)]) | ConstantLR(sgd) | CosineAnnealingLR(sgd, 6) | CosineAnnealingWarmRestarts(sgd, 3)
CyclicLR(sgd, .01, .1, 3) | ExponentialLR(sgd, .9) | LambdaLR(sgd, lambda e: .9 ** e) | LinearLR(sgd) | MultiStepLR(sgd, [2, 4])
MultiplicativeLR(sgd, lambda e: .9) | OneCycleLR(sgd, .3, 20) | PolynomialLR(sgd) | ReduceLROnPlateau(sgd, patience=1) | StepLR(sgd, 2)
SequentialLR(sgd, [optim.lr_scheduler.StepLR(sgd, 2), optim.lr_scheduler.StepLR(sgd, 3)], [3])
"""


def _object_scope(T: Library) -> dict[str, Any]:
    """The names of `object_calls`: a small network, its parameters with gradients, a batch, and functions of tensors and files."""
    import_module(f"{T.__name__}.nn.utils.prune")  # `import torch` does not import it
    net, norm, table = T.nn.Linear(4, 3), T.nn.BatchNorm1d(2), T.nn.Embedding(5, 3, sparse=True)
    x, buffer = T.ones(2, 4), io.BytesIO()
    net(x).sum().backward()

    def under(context: Any, body: Callable[[], Any]) -> Any:
        with context:
            return body()

    def saved(value: Any) -> io.BytesIO:
        T.save(value, file := io.BytesIO())
        return again(file)

    def again(file: io.BytesIO) -> io.BytesIO:
        file.seek(0)
        return file

    return names(T) | {
        "nn": T.nn, "D": T.distributions, "net": net, "ps": list(net.parameters()), "x": x, "norm": norm, "table": table,
        "sgd": T.optim.SGD(net.parameters(), lr=0.1), "leaf": T.ones(3, dtype=T.float64).requires_grad_(), "buffer": buffer,
        "cube": lambda x: (x**3).sum(), "under": under, "saved": saved, "again": again,
        "f8": lambda values: T.tensor(values, dtype=T.float64), "i8": T.tensor}  # fmt: skip


def _run_object(T: Library, call: Call, more: dict[str, Any]) -> Any:
    """The value of the expression that uses the result."""
    node, scope = _parse(call.text), _scope(T, call)
    assert node is not None
    args, kwargs = _arguments(node, scope)
    scope["it"] = _target(T, call)(*args, **kwargs, **more)
    return eval(call.text.partition(_USE)[2], scope)


def objects(T: Library) -> Iterator[Call]:
    """The first case of each layer, optimizer, learning rate schedule and callable of `object_calls`."""
    texts = [("layer", expression) for expression, _ in layer_cases.LAYERS.values()]
    base = T.optim.Optimizer
    texts += [("optimizer", f"optim.{name}([p])") for name, kind in sorted(vars(T.optim).items())
              if inspect.isclass(kind) and issubclass(kind, base) and kind is not base]  # fmt: skip
    texts += [("schedule", f"optim.lr_scheduler.{part.strip()}") for line in _SCHEDULES.strip().splitlines() for part in line.split(" | ")]
    texts += [("object", text) for text in OBJECT_CALLS]
    seen: set[str] = set()
    for kind, text in texts:
        node = _parse(text)
        if node is None or ast.unparse(node.func) in seen:
            continue
        call = Call(ast.unparse(node.func), text, kind)
        try:
            run(T, call, {})
        except Exception:
            continue
        seen.add(call.name)
        yield call


_RUN: Final[dict[str, Callable[[Library, Call, dict[str, Any]], Any]]] = {
    "function": _run_function, "layer": _run_layer, "optimizer": _run_optimizer, "schedule": _run_schedule,
    "object": _run_object}  # fmt: skip
