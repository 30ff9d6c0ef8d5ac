"""torch.autograd.functional: Jacobians, Hessians and their products, of functions given with their arguments.

Every function takes `func(*inputs) -> Tensor or tuple of Tensors`, and gives single tensors for single ones. With
`create_graph` the results are differentiable; with `strict` an output that does not depend on an input raises
RuntimeError, otherwise its derivative is zero.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.autograd.grad_mode import enable_grad
from eager.optable.table import OPS
from eager.tape import hooks
from eager.tape.engine import grad
from eager.transforms.jacobians import jacfwd, jacrev

TensorBase = _native.TensorBase
Tensors = tuple[Any, ...]
Func = Callable[..., Any]
_FLAT = "The Tensor returned by the function given to {} should contain a single element"


def _as_tuple(x: Any, who: str, what: str | None = None) -> tuple[bool, Tensors]:
    """(was it a tuple, the tensors). Raises TypeError, with torch's texts, for anything else."""
    single = isinstance(x, TensorBase)
    parts = (x,) if single else x
    if isinstance(parts, (tuple, list)) and all(isinstance(t, TensorBase) for t in parts):
        return not single, tuple(parts)
    if what == "outputs of the user-provided function":
        raise TypeError(f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the given {what} has type "
                        f"{type(x)}.")  # fmt: skip
    raise TypeError(f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the given {what} has type {type(x)}.")


def _prepare(inputs: Tensors, create_graph: bool) -> Tensors:
    """Fresh tensors to differentiate with respect to: with history if the results must be differentiable in the inputs."""
    if create_graph:
        return tuple(OPS["view"](x, tuple(x.shape)) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _call(func: Func, inputs: Tensors, who: str) -> tuple[bool, Tensors]:
    return _as_tuple(func(*inputs), who, "outputs of the user-provided function")


def _check_depends(outputs: Tensors, strict: bool) -> None:
    for i, y in enumerate(outputs):
        if strict and not y.requires_grad:
            raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                               "a differentiable manner from the input when running in strict mode.")  # fmt: skip


def _gradients(outputs: Tensors, inputs: Tensors, cotangents: Sequence[Any], create_graph: bool) -> list[Any]:
    """Gradients; None for an input that the outputs do not depend on."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y.requires_grad and g is not None]
    if not pairs:
        return [None] * len(inputs)
    return list(grad([y for y, _ in pairs], inputs, [g for _, g in pairs], retain_graph=True, create_graph=create_graph,
                     allow_unused=True))  # fmt: skip


def _filled(found: Sequence[Any], refs: Tensors, strict: bool, create_graph: bool, stage: str) -> Tensors:
    """The gradients with zeros for None. Raises: RuntimeError for None if `strict`, naming the independent output and input."""
    result = []
    for i, (g, x) in enumerate(zip(found, refs, strict=True)):
        if g is None and strict:
            raise RuntimeError(_INDEPENDENT[stage].format(i=i))
        if strict and create_graph and stage in _CONSTANT and not g.requires_grad:
            raise RuntimeError(_CONSTANT[stage].format(i=i))
        result.append(hooks.zeros(x) if g is None else g)
    return tuple(result)


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
                  "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "hessian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input 0 is "
               "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
               "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
               "example).",
}  # fmt: skip
_CONSTANT = {
    "back": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
            "create_graph=True.",
}  # fmt: skip


def _check_vector(v: Tensors, like: Tensors, is_tuple: bool) -> None:
    if len(like) != len(v):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            prefix = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be torch.Size({list(b.shape)}) but got torch.Size({list(a.shape)}).")


def _vector(v: Any, like: Tensors, is_tuple: bool, who: str, missing: str) -> Tensors:
    """The checked vector of a product; None stands for 1 if the tensors have one element in all."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(missing)
        return (hooks.ones(like[0]),)
    given = _as_tuple(v, who, "v")[1]
    _check_vector(given, like, is_tuple)
    return given


def _finish(parts: Tensors, create_graph: bool, is_tuple: bool) -> Any:
    parts = parts if create_graph else tuple(t.detach() for t in parts)
    return parts if is_tuple else parts[0]


def vjp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(outputs, v^T J): the outputs of `func` and the product of `v`, shaped like them, with its Jacobian."""
    with enable_grad():
        many, given = _as_tuple(inputs, "vjp", "inputs")
        xs = _prepare(given, create_graph)
        many_out, ys = _call(func, xs, "vjp")
        _check_depends(ys, strict)
        vs = _vector(v, ys, many_out, "vjp", "The vector v can only be None if the user-provided function returns a single Tensor "
                                             "with a single element.")  # fmt: skip
        found = _filled(_gradients(ys, xs, vs, create_graph), xs, strict, create_graph, "back")
    return _finish(ys, create_graph, many_out), _finish(found, create_graph, many)


def jvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(outputs, J v): the outputs of `func` and the product of its Jacobian with `v`, shaped like the inputs.

    By two reverse passes; `eager.func.jvp` does it in one forward pass.
    """
    with enable_grad():
        many, given = _as_tuple(inputs, "jvp", "inputs")
        xs = _prepare(given, create_graph)
        vs = _vector(v, xs, many, "jvp", "The vector v can only be None if the input to the user-provided function is a single Tensor "
                                         "with a single element.")  # fmt: skip
        many_out, ys = _call(func, xs, "jvp")
        _check_depends(ys, strict)
        cotangents = tuple(hooks.ones(y).requires_grad_() for y in ys)  # any values: the pullback is linear in them
        pulled = _filled(_gradients(ys, xs, cotangents, True), xs, strict, False, "back")
        found = _filled(_gradients(pulled, cotangents, vs, create_graph), ys, strict, create_graph, "back_trick")
    return _finish(ys, create_graph, many_out), _finish(found, create_graph, many_out)


def jacobian(func: Func, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The Jacobian of `func`: (*output shape, *input shape); for tuples a tuple of tuples, by output, then by input.

    vectorize: all rows at once by vmap. strategy: "reverse-mode" or "forward-mode" (with `vectorize` only).
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
                             'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
                             '"reverse-mode".')  # fmt: skip
    many, given = _as_tuple(inputs, "jacobian", "inputs")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and `strategy=\"forward-mode\"` are not "
                                  "supported together (yet). Please either set `create_graph=False` or "
                                  "`strategy=\"reverse-mode\"`.")  # fmt: skip
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                                  "`vectorize=True`.")  # fmt: skip
    if vectorize:
        if strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                               "Please either set `strict=False` or `vectorize=False`.")  # fmt: skip
        return _vectorised(func, given, many, create_graph, strategy)
    with enable_grad():
        xs = _prepare(given, create_graph)
        many_out, ys = _call(func, xs, "jacobian")
        _check_depends(ys, strict)
        table = tuple(_rows(y, xs, create_graph, strict) for y in ys)
    table = tuple(_finish(row, create_graph, many) for row in table)
    return table if many_out else table[0]


def _rows(y: Any, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output in each input, row by row."""
    rows: list[list[Any]] = [[] for _ in xs]
    flat = y.reshape((-1,))
    for j in range(y.numel()):
        found = _gradients((OPS["select"](flat, 0, j),), xs, (hooks.ones(OPS["select"](flat, 0, j)),), create_graph)
        for row, g in zip(rows, _filled(found, xs, strict, create_graph, "back"), strict=True):
            row.append(g)
    return tuple((OPS["stack"](row, 0) if row else hooks.zeros(x).reshape((0,) * bool(x.numel()) + tuple(x.shape))).reshape(
        (*y.shape, *x.shape)) for row, x in zip(rows, xs, strict=True))  # fmt: skip


def _vectorised(func: Func, given: Tensors, many: bool, create_graph: bool, strategy: str) -> Any:
    outputs_are_many = [False]

    def checked(*xs: Any) -> Any:
        result = func(*xs)
        outputs_are_many[0], ys = _as_tuple(result, "jacobian", "outputs of the user-provided function")
        return ys

    transform = jacrev if strategy == "reverse-mode" else jacfwd
    xs = given if create_graph else tuple(x.detach() for x in given)
    table = transform(checked, argnums=tuple(range(len(given))))(*xs)
    table = tuple(_finish(tuple(row), create_graph, many) for row in table)
    return table if outputs_are_many[0] else table[0]


def hessian(func: Func, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """Second derivatives of `func`, which gives one element: (*input shape, *input shape), for tuples by rows."""
    many, given = _as_tuple(inputs, "hessian", "inputs")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*xs: Any) -> Any:
        y = func(*xs)
        many_out, ys = _as_tuple(y, "hessian", "outputs of the user-provided function")
        if many_out:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if ys[0].numel() != 1:
            raise RuntimeError(_FLAT.format("hessian"))
        return ys[0].reshape(())

    if outer_jacobian_strategy == "forward-mode":
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                                      "`vectorize=True`.")  # fmt: skip
        nums = tuple(range(len(given)))
        table = jacfwd(jacrev(single, argnums=nums), argnums=nums)(*given)
        rows = tuple(_finish(tuple(row), True, many) for row in table)
        return rows if many else rows[0]

    def slope(*xs: Any) -> Any:
        if vectorize:
            return tuple(jacrev(single, argnums=tuple(range(len(xs))))(*xs))
        row = jacobian(single, xs, create_graph=True)
        if strict and not any(g.requires_grad for g in row):
            raise RuntimeError(_INDEPENDENT["hessian"])
        return tuple(row)

    table = jacobian(slope, given, create_graph=create_graph, strict=strict, vectorize=vectorize)
    rows = tuple(tuple(row) if many else row[0] for row in table)
    return rows if many else rows[0]


def _slope(func: Func, xs: Tensors, strict: bool, who: str) -> tuple[Any, Tensors]:
    """(output, gradient) of a function with one element, the gradient differentiable."""
    many_out, ys = _call(func, xs, who)
    if many_out:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if ys[0].numel() != 1:
        raise RuntimeError(_FLAT.format(who))
    _check_depends(ys, strict)
    found = _gradients(ys, xs, (hooks.ones(ys[0]),), True)
    if strict and not any(g is not None and g.requires_grad for g in found):
        raise RuntimeError(_INDEPENDENT["hessian"])
    return ys[0], _filled(found, xs, strict, False, "back")


_MISSING_V = "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."


def vhp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(output, v^T H) of a function with one element, `v` shaped like the inputs."""
    with enable_grad():
        many, given = _as_tuple(inputs, "vhp", "inputs")
        xs = _prepare(given, create_graph)
        vs = _vector(v, xs, many, "vhp", _MISSING_V)
        y, slope = _slope(func, xs, strict, "vhp")
        found = _filled(_gradients(slope, xs, vs, create_graph), xs, strict, create_graph, "double_back")
    return _finish((y,), create_graph, False), _finish(found, create_graph, many)


def hvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(output, H v) of a function with one element, `v` shaped like the inputs.

    H is symmetric, but this differentiates along `v` where `vhp` pulls `v` back: it needs one pass more.
    """
    with enable_grad():
        many, given = _as_tuple(inputs, "hvp", "inputs")
        xs = _prepare(given, create_graph)
        vs = _vector(v, xs, many, "hvp", _MISSING_V)
        y, slope = _slope(func, xs, strict, "hvp")
        cotangents = tuple(hooks.ones(x).requires_grad_() for x in xs)
        pulled = _filled(_gradients(slope, xs, cotangents, True), xs, strict, False, "double_back")
        found = _filled(_gradients(pulled, cotangents, vs, create_graph), xs, strict, create_graph, "back_trick")
    return _finish((y,), create_graph, False), _finish(found, create_graph, many)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
