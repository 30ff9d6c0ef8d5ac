"""Products whose operands are matrices with descriptors: the device copies a block of such a matrix by its position.

A descriptor holds the address, the sizes and the pitch of a matrix. An element outside of the matrix is copied as 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from inductor.ir import definitions as ir
from inductor.ir.sizes import product
from inductor.loops.contractions import contraction
from inductor.loops.matrices import matrix_of
from inductor.loops.refusal import Refused
from inductor.loops.tree import Block, Contract, Role, replace_statement

ALIGNED_BYTES: Final = 16  # of the address and of the pitch. Source: CUDA driver API, cuTensorMapEncodeTiled.
HALF_BYTES: Final = 2  # of an element: the unit multiplies other dtypes only from blocks in one of both orders


def described(body: Block, name: str) -> Block:
    """The contraction `name`, with descriptors of its operands. Raises: Refused."""
    s = contraction(body, name)
    if s not in body:
        raise Refused(f"other loops run around the product {name}")
    if product(n for _, n in s.axes.batch) != 1:
        raise Refused(f"{name} is a batch of products")
    sizes = [product(n for _, n in role) for role in (s.axes.rows, s.axes.columns, s.axes.depth)]
    whole = tuple(n for n in sizes if isinstance(n, int))
    if len(whole) < len(sizes):
        raise Refused(f"the sizes of {name} are {', '.join(map(str, sizes))}, which are not all constant")
    rows, columns, depth = whole
    _check(s, s.a, (s.axes.rows, s.axes.depth), (rows, depth))
    _check(s, s.b, (s.axes.depth, s.axes.columns), (depth, columns))
    return replace_statement(body, s, (replace(s, described=whole),))


def _check(s: Contract, v: ir.Value, roles: tuple[Role, Role], sizes: tuple[int, int]) -> None:
    """Raises: Refused if an operand is not a matrix that a descriptor can describe."""
    while isinstance(v, ir.Op) and v.name == "cast":
        v = v.args[0]
    m = matrix_of(v, v.dtype, (), *roles)
    if m is None:
        raise Refused(f"{v} of {s.name} is not a matrix in memory")
    itemsize = v.dtype.itemsize
    pitch, along = (m.row, sizes[1]) if m.column == 1 else (m.column, sizes[0])
    if 1 not in (m.row, m.column) or not isinstance(pitch, int) or pitch < along or not isinstance(m.start, int):
        raise Refused(f"the rows of {v} do not lie side by side, at a known distance")
    if itemsize != HALF_BYTES or pitch * itemsize % ALIGNED_BYTES or m.start * itemsize % ALIGNED_BYTES:
        raise Refused(f"{v} has elements of {itemsize} bytes and rows {pitch * itemsize} bytes apart; "
                      f"allowed: {HALF_BYTES} bytes, multiples of {ALIGNED_BYTES} bytes")  # fmt: skip
