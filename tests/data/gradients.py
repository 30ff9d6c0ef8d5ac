"""Backward of the calls of calls.py, run under torch (make_reference.py) and under eager (test_call_gradients.py).

`gradients`: which results require grad, and the gradients of all tensors of a call. `changed`: the operands and results
that backward needs unchanged, so that a write to them after the call makes backward fail.
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from tests.data.calls import calls, names

_HALF = re.compile(r"'(bf|f2)'")  # rounding errors are too large for a comparison
_TENSOR = re.compile(r"(t|special|spd)\(")
_FUNCTION = re.compile(r"[\w.]+(?=\()|[-+*/%@&|^<>=]+")


def differentiable_calls() -> Iterator[tuple[str, str]]:
    """(family, call) for every call that may have a gradient."""
    for family, texts in calls().items():
        for text in texts:
            if _TENSOR.search(text) and not _HALF.search(text):
                yield family, text


def one_each() -> list[str]:
    """One call of float32 or float64 for each function and number of operands."""
    chosen: dict[Any, str] = {}
    for _, text in differentiable_calls():
        if "'f4'" in text or "'f8'" in text or "spd(" in text:
            chosen.setdefault((tuple(_FUNCTION.findall(text)[:6]), len(_TENSOR.findall(text))), text)
    return list(chosen.values())


def _scope(T: Any) -> tuple[dict[str, Any], list[Any], list[Any]]:  # noqa: N803 - stands for a module
    """(names, leaves, made): `made` lists the tensors that the names create; floating ones are results of the leaves."""
    scope, leaves, made = names(T), [], []

    def watched(make: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            x = make(*args, **kwargs)
            if x.is_floating_point() or x.is_complex():
                leaves.append(x.clone().requires_grad_())
                x = leaves[-1] * 1
            made.append(x)
            return x

        return call

    scope |= {name: watched(scope[name]) for name in ("t", "spd", "special", "at")}
    return scope, leaves, made


def _tensors(T: Any, result: Any) -> list[Any]:  # noqa: N803
    if isinstance(result, T.Tensor):
        return [result]
    return [t for part in result for t in _tensors(T, part)] if isinstance(result, (tuple, list)) else []


def _real(T: Any, x: Any) -> Any:  # noqa: N803
    x = x if x.layout == T.strided else x.to_dense()
    return T.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _loss(T: Any, results: list[Any]) -> Any:  # noqa: N803
    total: Any = 0
    for k, result in enumerate(results):
        if result.requires_grad:
            y = _real(T, result)
            weights = [math.sin(3 * k + 0.7 * i) + 1.3 for i in range(y.numel())]
            total = total + (y * T.tensor(weights, dtype=y.dtype).reshape(y.shape)).sum()
    return total


def _numbers(T: Any, grad: Any) -> Any:  # noqa: N803
    if grad is None or grad.device.type != "cpu":
        return None
    g = _real(T, grad)
    return [str(grad.dtype)[6:], list(grad.shape), [float(f"{v:.7g}") for v in g.double().reshape(-1).tolist()]]


def gradients(T: Any, text: str) -> Any:  # noqa: N803
    """[requires_grad of each result, [dtype, shape, values] of each gradient or None if it is absent].

    None if the call or its backward fails, or if the call has no tensor operand or tensor result.
    """
    scope, leaves, _ = _scope(T)
    try:
        T.manual_seed(0)
        results = _tensors(T, eval(text, scope))  # noqa: S307 - our own table
        wanted = [bool(r.requires_grad) for r in results]
        if any(wanted):
            _loss(T, results).backward()
        return [wanted, [_numbers(T, leaf.grad) for leaf in leaves]] if results and leaves else None
    except Exception:  # noqa: BLE001 - errors are compared elsewhere
        return None


def changed(T: Any, text: str) -> str | None:  # noqa: N803
    """For each operand and then each result: "1" if backward fails after a write to it, else "0". None as for `gradients`."""
    scope, _, made = _scope(T)
    try:
        T.manual_seed(0)
        results = _tensors(T, eval(text, scope))  # noqa: S307
    except Exception:  # noqa: BLE001
        return None
    if not any(r.requires_grad for r in results):
        return None
    return "".join(_fails(T, text, k) for k in range(len(made) + len(results)))


def _fails(T: Any, text: str, k: int) -> str:  # noqa: N803
    scope, _, made = _scope(T)
    T.manual_seed(0)
    results = _tensors(T, eval(text, scope))  # noqa: S307
    T.autograd.graph.increment_version((made + results)[k])
    try:
        _loss(T, results).backward()
    except RuntimeError as error:
        return "1" if "modified by an inplace operation" in str(error) else "E"
    return "0"
