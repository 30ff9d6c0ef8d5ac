"""grad, grad_and_value, vjp, linearize: transforms that record a function on a separate level."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.autograd.grad_mode import enable_grad
from eager.autograd.graph import disable_saved_tensors_hooks
from eager.base.pytree.text import treespec_pprint
from eager.base.pytree.tree import tree_flatten, tree_map, tree_unflatten
from eager.tape import hooks
from eager.transforms.lifting import Lifting
from eager.transforms.stack import check_argnums, next_depth, picked, replaced, split_aux, unwrap, wrap_all

TensorBase = _native.TensorBase
Argnums = int | tuple[int, ...]
_NO_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
             "case.")  # fmt: skip


def _inputs(level: Lifting, tree: Any) -> Any:
    """A tree of tensors as leaves of the level. Raises: ValueError for an item that is not a tensor."""

    def leaf(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        return level.input(x)

    return tree_map(leaf, tree)


def _record(level: Lifting, func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums,
            kwargs: dict[str, Any]) -> tuple[Any, Any]:  # fmt: skip
    """(result, differentiated inputs) of a call on the level, both wrapped."""
    others = wrap_all(level, replaced(args, argnums, picked([None] * len(args), argnums)))
    inputs = _inputs(level, picked(args, argnums))
    with disable_saved_tensors_hooks(_NO_HOOKS), level, enable_grad():
        return func(*replaced(others, argnums, inputs), **wrap_all(level, kwargs)), inputs


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradient, value) of `func`, which returns a scalar tensor.

    argnums: the arguments to differentiate in (trees of floating tensors). With `has_aux`, `func` returns
    (value, aux) and the result is (gradient, (value, aux)). Raises RuntimeError for other results, as torch does.
    """

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nums = check_argnums(argnums, len(args))
        level = Lifting(next_depth())
        output, inputs = _record(level, func, args, nums, kwargs)
        aux = None
        if has_aux:
            output, aux = split_aux(output, "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if "
                                            "has_aux is True")  # fmt: skip
        if not isinstance(output, TensorBase):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output.ndim != 0:
            raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                               f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?")  # fmt: skip
        leaves, spec = tree_flatten(inputs)
        value = level.value(output)
        found = level.gradients([output], leaves, [hooks.ones(value)])
        gradient = tree_unflatten(found, spec)
        return (gradient, (value, unwrap(level, aux))) if has_aux else (gradient, value)

    return wrapper


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which returns a scalar tensor; see `grad_and_value`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _checked_outputs(output: Any, who: str) -> tuple[list[Any], Any]:
    leaves, spec = tree_flatten(output)
    for y in leaves:
        if not isinstance(y, TensorBase):
            raise RuntimeError(f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(y)}")
    return leaves, spec


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(outputs, vjp_fn[, aux]): `func(*primals)`, and the map from cotangents of its outputs to cotangents of the primals.

    vjp_fn takes cotangents in the structure of the outputs and returns a tuple with one tree for each primal. It may be called
    repeatedly, also under `vmap`. Raises: RuntimeError for results or cotangents of the wrong structure.
    """
    return vjp_with_argnums(func, *primals, argnums=tuple(range(len(primals))), has_aux=has_aux)


def vjp_with_argnums(func: Callable[..., Any], *primals: Any, argnums: Argnums, has_aux: bool = False) -> Any:
    """`vjp` in some of the arguments: vjp_fn gives one tree for an int, else a tuple."""
    level = Lifting(next_depth())
    if not primals:
        func(*primals)
        raise RuntimeError("vjp(f, *primals): Expected primals to contain at least one Tensor.")
    output, inputs = _record(level, func, primals, argnums, {})
    aux = None
    if has_aux:
        output, aux = split_aux(output, "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True")
    outputs, spec = _checked_outputs(output, "vjp(f, *primals)")
    leaves, input_spec = tree_flatten(inputs)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                               f"function. cotangents: {treespec_pprint(given_spec)}, primal output: {treespec_pprint(spec)}")  # fmt: skip
        for i, (g, y) in enumerate(zip(given, outputs, strict=True)):
            if tuple(g.shape) != tuple(y.shape):
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of torch.Size({list(g.shape)}) and output[{i}] "
                                   f"has a shape of torch.Size({list(y.shape)}).")  # fmt: skip
        return tree_unflatten(level.gradients(outputs, leaves, given), input_spec)

    values = tree_unflatten([level.value(y) for y in outputs], spec)
    return (values, vjp_fn, unwrap(level, aux)) if has_aux else (values, vjp_fn)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(outputs, jvp_fn): `func(*primals)`, and its derivative there as a linear function of tangents.

    `func` runs once: the derivative is the reverse pass, recorded as a function of its cotangents, in reverse.
    """
    outputs, vjp_fn = vjp(func, *primals)
    leaves, spec = tree_flatten(outputs)
    tape = Lifting(next_depth())
    with tape, enable_grad():
        cotangents = [tape.input(hooks.ones(y)) for y in leaves]  # any: the pulled gradients are linear in them
        pulled, primal_spec = tree_flatten(vjp_fn(tree_unflatten(cotangents, spec)))
    shapes = [tuple(p.shape) for p in tree_flatten(primals)[0]]

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != primal_spec:
            raise RuntimeError(f"Expected the tangents {given_spec} to have the same argument structure as the primals {primal_spec}")
        for i, (t, shape) in enumerate(zip(given, shapes, strict=True)):
            if tuple(t.shape) != shape:
                raise RuntimeError(f"tangent:{i} with shape torch.Size({list(t.shape)}) in flattened pytree doesn't match the shape "
                                   f"torch.Size({list(shape)}) of the corresponding primal.")  # fmt: skip
        return tree_unflatten(tape.gradients(pulled, cotangents, given), spec)

    return outputs, jvp_fn
