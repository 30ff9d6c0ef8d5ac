"""`einsum`: sums of products by an equation.

Every operand is brought to the dims of the result, followed by the summed dims, in one order. Operands are contracted
from left to right, each pair by one batched matrix product: dims of both, of the left alone, summed, of the right alone. The
layout of the result follows from this order and is torch's, since programs call `view` on it.
"""
from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from eager.optable.precision import LOWER
from eager.optable.table import OPS
from eager.public.record import public

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def _from_lists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """`einsum(x, [0, 1], y, [1, 2], [0, 2])` as an equation."""

    def label(axes: Any) -> str:
        return "".join("..." if a is Ellipsis else _LETTERS[a] for a in axes)

    pairs, last = (args[:-1], args[-1]) if len(args) % 2 else (args, None)
    equation = ",".join(label(axes) for axes in pairs[1::2])
    return equation + ("" if last is None else "->" + label(last)), list(pairs[::2])


def _parse(equation: str, operands: list[Any]) -> tuple[list[list[str]], list[str]]:
    """Labels of each operand's dims and of the result's. Dims under an ellipsis are labelled by digits from the right."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum(): {'fewer' if len(terms) > len(operands) else 'more'} operands were provided than specified in "
                           f"the equation: {len(operands)} for {equation!r}")  # fmt: skip
    labels, widest = [], 0
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        head, dots, tail = term.partition("...")
        for c in head + tail:
            if c not in _LETTERS:
                raise RuntimeError(f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in "
                                   "[a-zA-Z]")  # fmt: skip
        width = x.ndim - len(head) - len(tail)
        if width < 0 or (width and not dots):
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(head) + len(tail)}) does not match the number "
                               f"of dimensions ({x.ndim}) for operand {i}" + ("" if dots else " and no ellipsis was given"))  # fmt: skip
        widest = max(widest, width)
        labels.append([*head, *(str(k) for k in range(width - 1, -1, -1)), *tail])
    spread = [str(k) for k in range(widest - 1, -1, -1)]
    if arrow:
        head, dots, tail = output.partition("...")
        result = [*head, *(spread if dots else []), *tail]
    else:
        every = [c for term in labels for c in term if c in _LETTERS]
        result = spread + sorted(c for c in set(every) if every.count(c) == 1)
    for c in result:
        if result.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
        if all(c not in term for term in labels):
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
    return labels, result


def _to_dims(x: Any, labels: list[str], dims: list[str]) -> Any:
    """`x` with a dim for each of `dims`: a repeated label is a diagonal, a missing label a dim of size 1."""
    labels = list(labels)
    for c in sorted(set(labels)):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(f"einsum(): subscript {c} is repeated for operand but the sizes don't match, {x.shape[second]} != "
                                   f"{x.shape[first]}")  # fmt: skip
            x = OPS["diagonal"](x, 0, first, second)
            labels = [v for i, v in enumerate(labels) if i not in (first, second)] + [c]
    missing = [c for c in dims if c not in labels]
    if missing:
        x = x.reshape((*x.shape, *(1,) * len(missing)))
    labels += missing
    order = tuple(labels.index(c) for c in dims)
    return x if order == tuple(range(len(dims))) else OPS["permute"](x, order)


def _check_sizes(spread: list[Any], dims: list[str]) -> None:
    """Raises: RuntimeError where operands over the same dims do not broadcast."""
    covered = [c for c in dims if c not in _LETTERS]
    for c, *sizes in zip(dims, *(x.shape for x in spread), strict=True):
        known = [(i, n) for i, n in enumerate(sizes) if n != 1]
        for i, n in known[1:]:
            if n == known[0][1]:
                continue
            before = known[0][1]
            if c in covered:
                raise RuntimeError(f"einsum(): dimension {covered.index(c)} covered by ellipsis in operand {i} has size {n} which does not "
                                   f"broadcast with previously seen ellipsis with size {before} for the respective dimension")  # fmt: skip
            raise RuntimeError(f"einsum(): subscript {c} has size {n} for operand {i} which does not broadcast with previously seen size "
                               f"{before}")  # fmt: skip


def _product(left: Any, right: Any, summed: Sequence[int]) -> Any:
    """The product of two tensors of the same dims, of sizes that are equal or 1, summed over some, which keep size 1."""
    if not summed:
        return left * right
    wide_left, wide_right = ([n != 1 for n in t.shape] for t in (left, right))
    others = [d for d in range(left.ndim) if d not in summed]
    both = [d for d in others if wide_left[d] and wide_right[d]]
    mine = [d for d in others if wide_left[d] and not wide_right[d]]
    theirs = [d for d in others if not wide_left[d]]
    if mine and theirs and theirs[-1] < mine[0]:  # the product then has the order of the result
        left, right, mine, theirs = right, left, theirs, mine
    rows, columns, inner = ([left.shape[d] for d in mine], [right.shape[d] for d in theirs], [left.shape[d] for d in summed])
    batch = [left.shape[d] for d in both]
    n = math.prod(batch), math.prod(rows), math.prod(inner), math.prod(columns)
    a = OPS["permute"](left, (*both, *mine, *summed, *theirs))
    b = OPS["permute"](right, (*both, *summed, *theirs, *mine))
    if both:
        z = OPS["bmm"](a.reshape(n[:3]), b.reshape(n[0], *n[2:]))
    else:
        z = OPS["mm"](a.reshape(n[1:3]), b.reshape(n[2:]))
    order = [*both, *mine, *summed, *theirs]
    return OPS["permute"](z.reshape((*batch, *rows, *(1,) * len(summed), *columns)), tuple(order.index(d) for d in range(len(order))))


@public(autocast=LOWER, parsed=False, interception="operands")
def einsum(*args: Any) -> Any:
    """Sum of products by an equation: `einsum("ij,jk->ik", x, y)`; "..." broadcasts the dims it stands for.

    Operands are contracted from left to right. Raises RuntimeError where equation and operands do not fit.
    """
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its "
                         "subscripts list")  # fmt: skip
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    else:
        equation, operands = _from_lists(args)
    if not operands:
        raise RuntimeError("einsum(): at least one operand is required")
    labels, result = _parse(equation, operands)
    dims = result + sorted({c for term in labels for c in term} - set(result))
    spread = [_to_dims(x, mine, dims) for x, mine in zip(operands, labels, strict=True)]
    if len(operands) == 1:
        return OPS["sum"](spread[0], tuple(range(len(result), len(dims))), False, None) if len(dims) > len(result) else spread[0]
    _check_sizes(spread, dims)
    # The number of later operands that need a summed dim: the last of them sums it away.
    needed = {d: sum(x.shape[d] != 1 for x in spread) for d in range(len(result), len(dims))}
    x = spread[0]
    for y in spread[1:]:
        shared = [d for d in needed if x.shape[d] != 1 and y.shape[d] != 1]
        mine = [d for d in needed if needed[d] == 1 and x.shape[d] != 1 and d not in shared]
        theirs = [d for d in needed if needed[d] == 1 and y.shape[d] != 1 and d not in shared]
        for d in (*shared, *mine, *theirs):
            needed[d] -= 1
        x = OPS["sum"](x, tuple(mine), True, None) if mine else x
        y = OPS["sum"](y, tuple(theirs), True, None) if theirs else y
        summed = [d for d in shared if needed[d] == 1]
        needed.update(dict.fromkeys(summed, 0))
        x = _product(x, y, summed)
    return x.reshape(x.shape[: len(result)]) if len(dims) > len(result) else x


FUNCTIONS: dict[str, Any] = {"einsum": einsum}
METHODS: dict[str, Any] = {}
