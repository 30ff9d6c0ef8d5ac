"""jvp: a function and its derivative along tangents, in one forward run."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base.pytree.tree import tree_flatten, tree_unflatten
from eager.tape import hooks
from eager.transforms.forward import Forward
from eager.transforms.stack import next_depth, split_aux, unwrap

TensorBase = _native.TensorBase


def check_tangent(primal: Any, tangent: Any) -> None:
    """Raise RuntimeError, with torch's text, where `tangent` has another shape than `primal`."""
    if tuple(primal.shape) != tuple(tangent.shape):
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                           f"not supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
                           f"{list(tangent.shape)}.")  # fmt: skip


def _checked(tree: Any, what: str) -> tuple[list[Any], Any]:
    if not isinstance(tree, tuple):
        raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = tree_flatten(tree)
    if not leaves:
        raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to contain at least one Tensor.")
    for x in leaves:
        if not isinstance(x, TensorBase):
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {type(x)}")
    return leaves, spec


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(outputs, tangents of the outputs[, aux]) of `func(*primals)` along `tangents`.

    primals, tangents: tuples of one structure, of tensors of equal shapes. With `strict` an output that does not
    depend on the primals raises RuntimeError; otherwise its tangent is zero.
    """
    leaves, spec = _checked(primals, "primals")
    given, tangent_spec = _checked(tangents, "tangents")
    if spec != tangent_spec:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
                           "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           f"{spec} and tangents with structure {tangent_spec}")  # fmt: skip
    level = Forward(next_depth())
    for p, t in zip(leaves, given, strict=True):
        check_tangent(p, t)
    duals = tree_unflatten([level.dual(p, t) for p, t in zip(leaves, given, strict=True)], spec)
    with level:
        output = func(*duals)
    aux = None
    if has_aux:
        output, aux = split_aux(output, "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux "
                                        "is True")  # fmt: skip
        aux = unwrap(level, aux)
    ys, out_spec = tree_flatten(output)
    for y in ys:
        if not isinstance(y, TensorBase):
            raise RuntimeError("jvp(f, primals, tangents): expected f(*primals) to return only tensors, got unsupported type "
                               f"{type(y)}")  # fmt: skip
    found = [level.tangent(y) for y in ys]
    if strict and any(t is None for t in found):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                           "allowed with strict=True.")  # fmt: skip
    values = [level.value(y) for y in ys]
    found = [hooks.zeros(v) if t is None else t for v, t in zip(values, found, strict=True)]
    result = tree_unflatten(values, out_spec), tree_unflatten(found, out_spec)
    return (*result, aux) if has_aux else result


