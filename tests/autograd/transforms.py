"""Samples of the op table as functions of their differentiable tensors, for the generated tests of this folder."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import eager
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS, Op

# These ops read one triangle of the matrix: the tests differentiate them as functions of symmetric matrices.
SYMMETRIC = {"cholesky", "cholesky_status", "eigh"}


def tensors(a: Any) -> list[Any]:
    """All tensors of an argument tree, in order."""
    if isinstance(a, eager.Tensor):
        return [a]
    return [t for x in a for t in tensors(x)] if isinstance(a, (list, tuple)) else []


def with_tensors(a: Any, new: Iterator[Any]) -> Any:
    """An argument tree with its tensors replaced, in order."""
    if isinstance(a, eager.Tensor):
        return next(new)
    return type(a)(with_tensors(x, new) for x in a) if isinstance(a, (list, tuple)) else a


def is_differentiable(op: Op) -> bool:
    no = op.mutates or op.nondifferentiable or op.underived or op.kind in (Kind.CREATION, Kind.RANDOM, Kind.EFFECT)
    return not no and bool(op.vjp or op.decompose) and op.samples is not None


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def as_function(name: str, args: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]] | None:
    """The sample as a function of the double tensors among `args`, and these tensors.

    None if the sample contains no double tensor, repeats one, contains a tensor that overlaps itself, or has results of
    a precision too low for finite differences.
    """
    op = OPS[name]
    given = tensors(args)
    leaves = [t for t in given if t.dtype in (eager.float64, eager.complex128)]
    overlapping = any(st == 0 and n > 1 for t in leaves for st, n in zip(t.stride(), t.shape, strict=True))
    if not leaves or len({id(t) for t in leaves}) < len(leaves) or overlapping:
        return None

    def fn(*xs: Any) -> tuple[Any, ...]:
        new = iter([(x + x.mT) / 2 for x in xs] if name in SYMMETRIC else xs)
        all_new = iter([next(new) if any(t is x for x in leaves) else t for t in given])
        ys = flat(op(*with_tensors(args, all_new)))
        return tuple(y for i, y in enumerate(ys) if y.dtype.category >= 2 and i not in op.nondifferentiable_outputs)

    with eager.no_grad():
        if any(y.dtype not in (eager.float64, eager.complex128) for y in fn(*leaves)):
            return None
    return fn, [t.requires_grad_() for t in leaves]


def double_samples(name: str) -> Iterator[tuple[Callable[..., Any], list[Any]]]:
    """Every sample of an op in double precision, as a function."""
    for args in samples_of(name, eager.float64):
        found = as_function(name, args)
        if found is not None:
            yield found
