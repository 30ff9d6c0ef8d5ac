"""jacrev, jacfwd, hessian: whole Jacobians, by vmap over the rows or columns of an identity."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base.pytree.tree import tree_flatten, tree_map, tree_unflatten
from eager.optable.table import OPS
from eager.transforms.mapping import vmap
from eager.transforms.push import jvp
from eager.transforms.reverse import Argnums, vjp_with_argnums
from eager.transforms.stack import check_argnums, picked, replaced

TensorBase = _native.TensorBase


def _basis(tensors: list[Any]) -> list[Any]:
    """Unit vectors of the concatenation of `tensors`: one (n, *shape) per tensor, n their elements in all."""
    total = sum(t.numel() for t in tensors)
    found, at = [], 0
    for t in tensors:
        eye = OPS["eq"](OPS["arange"](0, total, 1, None, t.device).reshape((total, 1)),
                        OPS["arange"](at, at + t.numel(), 1, None, t.device))  # fmt: skip
        found.append(OPS["to_dtype"](eye, t.dtype).reshape((total, *t.shape)))
        at += t.numel()
    return found


def _split(rows: Any, tensors: list[Any]) -> list[Any]:
    """Consecutive parts of dim 0, one per tensor with as many rows as it has elements, in its shape."""
    found, at = [], 0
    for t in tensors:
        part = OPS["slice"](rows, 0, at, at + t.numel(), 1)
        found.append(part.reshape((*t.shape, *rows.shape[1:])))
        at += t.numel()
    return found


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func`, row by row in reverse (all rows at once, or `chunk_size` of them).

    For an output of shape s and an argument of shape t it is (*s, *t); outputs and arguments may be trees. With
    `has_aux`, `func` returns (output, aux) and the result is (jacobian, aux).
    """
    if isinstance(chunk_size, bool):
        raise TypeError("jacrev: `chunk_size` should be None or an int, got a bool")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapper(*args: Any) -> Any:
        nums = check_argnums(argnums, len(args))
        result = vjp_with_argnums(func, *args, argnums=nums, has_aux=has_aux)
        output, vjp_fn = result[:2]
        ys, spec = tree_flatten(output)
        for i, y in enumerate(ys):
            if y.dtype.is_complex:
                raise RuntimeError("jacrev: Expected all outputs to be real but received complex tensor at flattened input idx: "
                                   f"{i}")  # fmt: skip
        rows = vmap(lambda basis: vjp_fn(tree_unflatten(basis, spec)), chunk_size=chunk_size)(_basis(ys))
        columns, in_spec = tree_flatten(rows)
        by_input = [_split(c, ys) for c in columns]
        jacobians = [tree_unflatten([parts[i] for parts in by_input], in_spec) for i in range(len(ys))]
        found = tree_unflatten(jacobians, spec)
        return (found, result[2]) if has_aux else found

    return wrapper


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func`, column by column in forward mode; shapes as for `jacrev`."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any) -> Any:
        nums = check_argnums(argnums, len(args))
        primals = picked(args, nums)
        leaves, in_spec = tree_flatten(primals)
        for i, x in enumerate(leaves):
            if not isinstance(x, TensorBase):
                raise ValueError(f"jacfwd: Expected all inputs to be Tensors, got {type(x)} at flattened input idx: {i}")
            if x.dtype.is_complex:
                raise RuntimeError("jacfwd: Expected all inputs to be real but received complex tensor at flattened input idx: "
                                   f"{i}")  # fmt: skip

        def partial(*given: Any) -> Any:
            return func(*replaced(args, nums, given[0] if isinstance(nums, int) else given))

        def push(basis: list[Any]) -> Any:
            tangent = tree_unflatten(basis, in_spec)
            given = (primals,) if isinstance(nums, int) else primals
            result = jvp(partial, given, (tangent,) if isinstance(nums, int) else tangent, has_aux=has_aux)
            return (result[1], result[2]) if has_aux else (result[1], None)

        columns, aux = vmap(push, out_dims=(0, 0 if has_aux else None), randomness=randomness)(_basis(leaves))
        ys, spec = tree_flatten(columns)
        found = tree_unflatten([tree_unflatten([_last(c, x) for c, x in zip(_split(y, leaves), leaves, strict=True)], in_spec)
                                for y in ys], spec)  # fmt: skip
        return (found, tree_map(lambda t: OPS["select"](t, 0, 0), aux)) if has_aux else found

    return wrapper


def _last(column: Any, x: Any) -> Any:
    """(*x.shape, *rest) as (*rest, *x.shape)."""
    return OPS["permute"](column, (*range(x.ndim, column.ndim), *range(x.ndim)))


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the matrix of second derivatives of `func`: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


