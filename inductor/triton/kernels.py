"""Groups of loop definitions as Triton kernels: pointwise kernels and row kernels.

A *row kernel* runs one program per block of rows: all reductions of its group reduce the same trailing dims, and pointwise
members either span rows and columns or rows alone. With few enough columns a row stays in registers (persistent); otherwise
every reduction, and at the end the stores, is a loop over column blocks.

A program holds in registers only the elements of a member that it computes. A member that reads another member at other
elements (`flip(y)`) recomputes them (`_Settled`).

A kernel with index checks has a last pointer, `checks`: two int64 for each check of the program, zero before the launch. A
failing check writes 1 and the offending position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.definitions import producer_at, with_value
from inductor.ir.sizes import fixed
from inductor.ir.values import replace_loads
from inductor.triton.values import CHECKS, CHECKS_POINTER, SIGNATURE, TYPE, ValuePrinter, literal

PERSISTENT_LIMIT: Final = 8192  # columns that one program may hold at once
HEADER: Final = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n"
HELPERS: Final = """\
@triton.jit
def fj_floordiv(a, b):
    return a // b - tl.where((a % b != 0) & ((a < 0) != (b < 0)), 1, 0)


@triton.jit
def fj_floormod(a, b):
    r = a % b
    return r + tl.where((r != 0) & ((r < 0) != (b < 0)), b, 0)


@triton.jit
def fj_remainder(a, b):  # a - floor(a / b) * b would round the quotient first
    r = libdevice.fmod(a, b)
    return r + tl.where((r != 0) & ((r < 0) != (b < 0)), b, 0)


@triton.jit
def fj_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def fj_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def fj_mul(a, b):
    return a * b


"""


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """Source of one kernel and its launch parameters.

    pointers: buffers in argument order; signature: Triton types by argument; constants: block sizes;
    grid: number of programs along x. The launch passes the pointers, then xnumel (i32).
    """

    name: str
    source: str
    pointers: tuple[str, ...]
    outputs: tuple[str, ...]
    signature: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]
    xnumel: int
    num_warps: int

    @property
    def grid(self) -> int:
        block = dict(self.constants)["XBLOCK"]
        return -(-self.xnumel // block)


def print_kernel(name: str, members: Sequence[ir.Buffer], stored: Sequence[str], layouts: dict[str, ir.Layout],
                 xblock: int | None = None) -> TritonKernel:  # fmt: skip
    """One kernel for `members`, in an order that can run, writing the buffers named in `stored`.

    layouts: of every buffer that is read or written. Raises NotImplementedError naming a definition that has no
    Triton form (scans, scatters, externs and templates are not printed as Triton).
    """
    for m in members:
        if not isinstance(m.definition, ir.Pointwise | ir.Reduction):
            raise NotImplementedError(f"triton: no kernel form for {type(m.definition).__name__} ({m.name})")
    members = _Settled(name, members).members
    if any(isinstance(m.definition, ir.Reduction) for m in members):
        return _RowKernel(name, members, stored, layouts, xblock).build()
    return _PointwiseKernel(name, members, stored, layouts, xblock).build()


class _Settled:
    """Members whose loads of one another read the element that the program holds in a register.

    A load of another element of a pointwise member becomes the member's value at that element.
    Raises: NotImplementedError for a load of another element of a reduction, which another program may hold.
    """

    def __init__(self, kernel: str, members: Sequence[ir.Buffer]) -> None:
        self._kernel = kernel
        self._made: dict[str, ir.Buffer] = {}
        for m in members:
            assert m.definition is not None
            settle = partial(self._settle, held=_positions(m.definition))
            self._made[m.name] = replace(m, definition=with_value(m.definition, settle))
        self.members = tuple(self._made.values())

    def _settle(self, value: ir.Value, held: tuple[E.Expr, ...]) -> ir.Value:
        def rule(load: ir.Load) -> ir.Value | None:
            source = self._made.get(load.buffer)
            if source is None or _held_at(source.definition, held) == load.index:
                return None
            if not isinstance(source.definition, ir.Pointwise):
                raise NotImplementedError(f"triton: {load.buffer} is read at [{load.index}] in {self._kernel}, but "
                                          "another program computes it")  # fmt: skip
            return self._settle(producer_at(source.definition, load), held)

        return replace_loads(value, rule)


def _positions(d: ir.Definition | None) -> tuple[E.Expr, ...]:
    """The positions of the elements that a program holds while it computes an element of `d`, by number of axes."""
    assert isinstance(d, ir.Pointwise | ir.Reduction)
    axes = [(ir.axis(k, n), n) for k, n in enumerate(d.ranges)]
    if isinstance(d, ir.Reduction):
        axes += [(ir.reduced_axis(k, n), n) for k, n in enumerate(d.reduced)]
    return tuple(ir.linear_position([n for _, n in axes[:k]], [i for i, _ in axes[:k]]) for k in range(len(axes) + 1))


def _held_at(d: ir.Definition | None, held: tuple[E.Expr, ...]) -> E.Expr | None:
    """The position of the element of `d` that the program holds; None if `d` has more axes than the reader."""
    assert isinstance(d, ir.Pointwise | ir.Reduction)
    return held[len(d.ranges)] if len(d.ranges) < len(held) else None


class _Kernel:
    """The parts of both forms: arguments, loads from members and from memory, stores."""

    def __init__(self, name: str, members: Sequence[ir.Buffer], stored: Sequence[str], layouts: dict[str, ir.Layout],
                 xblock: int | None) -> None:  # fmt: skip
        self.name, self.members, self.stored, self.layouts, self.xblock = name, members, tuple(stored), layouts, xblock
        own = {m.name for m in members}
        read = dict.fromkeys(n for m in members for n in m.reads if n not in own)
        self.inputs = tuple(read)
        values = ir.walk([v for m in members if m.definition is not None for v in m.definition.operands])
        self.checks = any(isinstance(v, ir.Op) and v.name in CHECKS for v in values)
        self.values: dict[str, str] = {}  # members computed so far, by name

    def address(self, buffer: str) -> str:
        return f"{buffer}_ptr"

    def loader(self, mask: str) -> Callable[[ir.Load, str, str | None], str]:
        def load(v: ir.Load, index: str, extra: str | None) -> str:
            if v.buffer in self.values:
                return self.values[v.buffer]
            if v.buffer not in self.inputs:
                raise NotImplementedError(f"triton: {v.buffer} is read in {self.name} before it is computed")
            full = mask if extra is None else f"{mask} & {extra}"
            # an address must have the block's shape, even if the element does not depend on every axis
            return self.from_memory(f"tl.load({self.address(v.buffer)} + ({index}), {full}, other=0)", v.dtype)

        return load

    @staticmethod
    def from_memory(source: str, of: dtype) -> str:
        return f"({source} != 0)" if of is dtypes.bool_ else source

    def signature(self) -> tuple[tuple[str, str], ...]:
        names = (*self.inputs, *self.stored)
        checks = ((CHECKS_POINTER, "*i64"),) if self.checks else ()
        return (*((self.address(n), SIGNATURE[self.layouts[n].dtype]) for n in names), *checks, ("xnumel", "i32"))

    def finish(self, body: list[str], constants: dict[str, int], xnumel: int, warps: int) -> TritonKernel:
        parameters = [n for n, _ in self.signature()] + [f"{n}: tl.constexpr" for n in constants]
        text = HEADER + HELPERS + f"@triton.jit\ndef {self.name}({', '.join(parameters)}):\n"
        text += "".join(f"    # {m.name}: {', '.join(m.source.ops) or 'view'}\n" for m in self.members)
        text += "".join(f"    {line}\n" for line in body)
        pointers = (*self.inputs, *self.stored, *(("checks",) if self.checks else ()))
        return TritonKernel(self.name, text, pointers, self.stored, self.signature(),
                            tuple(constants.items()), xnumel, warps)  # fmt: skip


def _axes(lines: list[str], ranges: Sequence[int], position: str, symbol: str, out: str) -> dict[str, str]:
    """Split a linear position into one variable per axis; names by symbol (`i0`, ...)."""
    names, step = {}, 1
    outermost = next((k for k, n in enumerate(ranges) if n != 1), None)
    for k in range(len(ranges) - 1, -1, -1):
        n = ranges[k]
        if n != 1:
            text = position if step == 1 else f"{position} // {step}"
            text = text if k == outermost else f"({text}) % {n}"
            lines.append(f"{out}{k} = {text}")
            names[f"{symbol}{k}"] = f"{out}{k}"
        step *= n
    return names


class _PointwiseKernel(_Kernel):
    def build(self) -> TritonKernel:
        ranges = fixed(ir.pointwise_of(self.members[0]).ranges, self.name)
        if any(ir.pointwise_of(m).ranges != ranges for m in self.members):
            raise NotImplementedError(f"triton: members of {self.name} have different ranges")
        xnumel = math.prod(ranges)
        block = self.xblock or min(1024, max(64, 1 << max(xnumel - 1, 1).bit_length()))
        lines = ["x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)", "xmask = x < xnumel"]
        names = _axes(lines, ranges, "x", "i", "x")
        printer = ValuePrinter(lines, names, self.loader("xmask"), "xmask")
        for m in self.members:
            assert isinstance(m.definition, ir.Pointwise)
            value = printer.print(m.definition.value)
            self.values[m.name] = value
            if m.name in self.stored:
                lines.append(_store(self.address(m.name), "x", value, m.layout.dtype, "xmask"))
        return self.finish(lines, {"XBLOCK": block}, xnumel, 4)


def _store(pointer: str, index: str, value: str, of: dtype, mask: str) -> str:
    stored = "tl.int1" if of is dtypes.bool_ else TYPE[of]
    cast = f"tl.full([1], {value}, {stored})" if _plain_number(value) else f"{value}.to({stored})"
    return f"tl.store({pointer} + ({index}), tl.broadcast_to({cast}, ({index}).shape), {mask})"


def _plain_number(value: str) -> bool:
    return value.startswith("float(") or value.replace(".", "", 1).replace("-", "").replace("e", "").isdigit()


_IDENTITY: Final = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "any": 0.0, "all": 1.0}
_COMBINE: Final = {"sum": "{0} + {1}", "mean": "{0} + {1}", "prod": "{0} * {1}", "max": "fj_max({0}, {1})",
                   "min": "fj_min({0}, {1})", "any": "{0} | {1}", "all": "{0} & {1}"}  # fmt: skip


def _identity(kind: str, of: dtype) -> str:
    if of.is_integral and kind in ("max", "min"):
        if of is dtypes.bool_:
            return "0" if kind == "max" else "1"
        bits = of.itemsize * 8 - (1 if of.is_signed else 0)
        return str((1 << bits) - 1 if kind == "min" else -(1 << bits) if of.is_signed else 0)
    value = _IDENTITY[kind]
    return str(int(value)) if of.is_integral else literal(value, dtypes.float32)


def _reduce_call(kind: str, value: str, floating: bool, count: int) -> str:
    """The reduction of `value`, one block, along its columns; count: of the elements of a row in memory."""
    if kind == "sum":
        return f"tl.sum({value}, 1)[:, None]"
    if kind == "mean":
        return f"tl.sum({value}, 1)[:, None] / {count}"
    if kind in ("max", "min") and not floating:
        return f"tl.{kind}({value}, 1)[:, None]"
    if kind in ("any", "all"):
        return f"(tl.{'max' if kind == 'any' else 'min'}({value}.to(tl.int32), 1)[:, None] != 0)"
    combine = {"max": "fj_max", "min": "fj_min", "prod": "fj_mul"}[kind]
    return f"tl.reduce({value}, 1, {combine})[:, None]"


class _RowKernel(_Kernel):
    def build(self) -> TritonKernel:
        first = next(m.definition for m in self.members if isinstance(m.definition, ir.Reduction))
        self.rows, self.columns = fixed(first.ranges, self.name), fixed(first.reduced, self.name)
        xnumel, self.rnumel = math.prod(self.rows), math.prod(self.columns)
        persistent = self.rnumel <= PERSISTENT_LIMIT
        rblock = 1 << max(self.rnumel - 1, 0).bit_length() if persistent else 2048
        xblock = self.xblock or max(1, min(1024 // rblock, 1 << max(xnumel - 1, 0).bit_length()))
        lines = ["x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]", "xmask = x < xnumel"]
        self.row_names = _axes(lines, self.rows, "x", "i", "x")
        if persistent:
            self._persistent(lines)
        else:
            self._looped(lines)
        warps = 4 if rblock <= 2048 else 8
        return self.finish(lines, {"XBLOCK": xblock, "RBLOCK": rblock}, xnumel, warps)

    # ---- naming of axes: reductions call columns r0, r1, ...; pointwise members continue with i's ----

    def _column_names(self, lines: list[str], position: str) -> tuple[dict[str, str], dict[str, str]]:
        by_r = _axes(lines, self.columns, position, "r", "r")
        shift = len(self.rows)
        by_i = {f"i{shift + int(k[1:])}": v for k, v in by_r.items()}
        return {**self.row_names, **by_r}, {**self.row_names, **by_i}

    def _spans_columns(self, m: ir.Buffer) -> bool:
        d = m.definition
        if isinstance(d, ir.Reduction):
            if d.ranges != self.rows or d.reduced != self.columns:
                raise NotImplementedError(f"triton: {m.name} reduces other dims than the rest of {self.name}")
            return True
        assert isinstance(d, ir.Pointwise)
        if d.ranges == (*self.rows, *self.columns):
            return True
        if d.ranges == self.rows:
            return False
        raise NotImplementedError(f"triton: {m.name} has ranges {d.ranges}, the rows of {self.name} are {self.rows}")

    def _persistent(self, lines: list[str]) -> None:
        lines += ["r = tl.arange(0, RBLOCK)[None, :]", f"rmask = r < {self.rnumel}", "mask = xmask & rmask"]
        for_reduction, for_pointwise = self._column_names(lines, "r")
        full = self.loader("mask")
        printers = {
            "reduction": ValuePrinter(lines, for_reduction, full, "mask"),
            "pointwise": ValuePrinter(lines, for_pointwise, full, "mask"),
            "row": ValuePrinter(lines, self.row_names, self.loader("xmask"), "xmask"),
        }
        for m in self.members:
            d = m.definition
            if isinstance(d, ir.Reduction):
                self._spans_columns(m)
                value = printers["reduction"].print(d.value)
                name = f"{m.name}_v"
                lines.append(f"{name}_in = tl.where(mask, {value}, {_identity(d.kind, d.value.dtype)})")
                call = _reduce_call(d.kind, f"{name}_in", d.value.dtype.is_floating_point, self.rnumel)
                lines.append(f"{name} = {call}")
                self.values[m.name] = name
                self._store_row(lines, m, name)
            elif self._spans_columns(m):
                value = printers["pointwise"].print(ir.pointwise_of(m).value)
                self.values[m.name] = value
                self._store_full(lines, m, value)
            else:
                value = printers["row"].print(ir.pointwise_of(m).value)
                self.values[m.name] = value
                self._store_row(lines, m, value)

    def _store_row(self, lines: list[str], m: ir.Buffer, value: str) -> None:
        if m.name in self.stored:
            lines.append(_store(self.address(m.name), "x", value, m.layout.dtype, "xmask"))

    def _store_full(self, lines: list[str], m: ir.Buffer, value: str) -> None:
        if m.name in self.stored:
            lines.append(_store(self.address(m.name), f"x * {self.rnumel} + r", value, m.layout.dtype, "mask"))

    def _looped(self, lines: list[str]) -> None:
        """One loop over column blocks per reduction, and one for the stores of full-width members."""
        spanning: list[ir.Buffer] = []  # full-width members so far: recomputed in each loop that needs them
        for m in self.members:
            d = m.definition
            if isinstance(d, ir.Reduction):
                self._spans_columns(m)
                self._reduction_loop(lines, m, d, spanning)
            elif self._spans_columns(m):
                spanning.append(m)
            else:
                printer = ValuePrinter(lines, self.row_names, self.loader("xmask"), "xmask", f"{m.name}_t")
                self.values[m.name] = printer.print(ir.pointwise_of(m).value)
                self._store_row(lines, m, self.values[m.name])
        if any(m.name in self.stored for m in spanning):
            inner = self._open_loop(lines)
            self._recompute(inner, spanning, store=True)
            lines += [f"    {line}" for line in inner]

    def _open_loop(self, lines: list[str]) -> list[str]:
        lines.append(f"for r_start in range(0, {self.rnumel}, RBLOCK):")
        return ["r = r_start + tl.arange(0, RBLOCK)[None, :]", f"mask = xmask & (r < {self.rnumel})"]

    def _recompute(self, inner: list[str], spanning: Sequence[ir.Buffer], store: bool) -> None:
        _, for_pointwise = self._column_names(inner, "r")
        printer = ValuePrinter(inner, for_pointwise, self.loader("mask"), "mask")
        for m in spanning:
            assert isinstance(m.definition, ir.Pointwise)
            self.values[m.name] = printer.print(m.definition.value)
            if store:
                self._store_full(inner, m, self.values[m.name])

    def _reduction_loop(self, lines: list[str], m: ir.Buffer, d: ir.Reduction, spanning: Sequence[ir.Buffer]) -> None:
        identity = _identity(d.kind, d.value.dtype)
        acc_type = TYPE[d.value.dtype] if d.value.dtype is not dtypes.bool_ else "tl.int1"
        lines.append(f"{m.name}_acc = tl.full([XBLOCK, RBLOCK], {identity}, {acc_type})")
        inner = self._open_loop(lines)
        needed = set(d.reads)
        self._recompute(inner, [s for s in spanning if s.name in needed], store=False)
        for_reduction, _ = self._column_names(inner, "r")
        printer = ValuePrinter(inner, for_reduction, self.loader("mask"), "mask", "red")
        value = printer.print(d.value)
        step = _COMBINE[d.kind].format(f"{m.name}_acc", value)
        inner.append(f"{m.name}_acc = tl.where(mask, {step}, {m.name}_acc)")
        lines += [f"    {line}" for line in inner]
        lines.append(f"{m.name}_v = {_reduce_call(d.kind, f'{m.name}_acc', d.value.dtype.is_floating_point, self.rnumel)}")
        for s in spanning:
            self.values.pop(s.name, None)
        self.values[m.name] = f"{m.name}_v"
        self._store_row(lines, m, f"{m.name}_v")


