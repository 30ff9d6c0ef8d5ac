"""A functional graph to a loop program, node by node: by the kind of op, by a rule, else as an extern call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from eager.base import dtypes
from eager.base.spec import TensorSpec, spec_of
from eager.optable.registry import Kind
from eager.optable.table import Op
from fxir.expr import rules as E
from fxir.ir.fingerprint import canonical_symbols, guarded_relations, renamed
from fxir.ir.graph import Graph, specs_of
from fxir.ir.node import Node, map_nodes
from fxir.symbols.shapes import NeedsStatic
from inductor.ir import definitions as ir
from inductor.ir.sizes import nominal, product
from inductor.lowering import attention, convolutions, indexing, pooling, recurrences  # noqa: F401 - they register their rules
from inductor.lowering.builder import Builder, Facts, Point, ViewRule, layout_of, wide
from inductor.lowering.expansion import Expansion, expand
from inductor.lowering.protocol import LOOP, Scalar, as_value, number
from inductor.lowering.rules import RULES

_REDUCE: Final = {"sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min", "any": "any", "all": "all"}


def _outside_loops(d: dtypes.dtype) -> bool:
    """Whether no loops are written over elements of `d`, so that its ops are calls of their kernels."""
    return d.is_complex or d.is_float8


def in_own_symbols(graph: Graph, refusal: NeedsStatic) -> NeedsStatic:
    """A refusal by a stage of the compiler, about the graph's symbols instead of their canonical names."""
    known = {name: s for s, name in canonical_symbols(graph).items()}
    symbols = [known[s] for s in refusal.symbols if s in known]
    return NeedsStatic(symbols or known.values(), refusal.why)


def _rounded(op: Op, a: Any, of: dtypes.dtype) -> Any:
    """A number as an operand of arithmetic on `of`, a dtype of 16 bits."""
    return ir.cast(number(a, of), wide(of)) if op.rounds_numbers(of) else number(a, wide(of))


def lower(graph: Graph, has_recurrences: bool = True, has_tiles: bool = False, adds_floats: bool = True,
          has_float8: bool = False) -> ir.Program:  # fmt: skip
    """The loop program of a functional graph: placeholders and constants given, one or more buffers per op.

    has_recurrences: whether the target's kernels can run steps that need the whole state of the step before; else they are extern calls.
    has_tiles: whether contractions multiply tiles, whose elements are converted while they are read.
    adds_floats: whether loops may add floats at positions that data gives; else such ops are extern calls.
    has_float8: whether contractions multiply tiles of 8-bit floats.
    """
    return _Lowering(graph, has_recurrences, has_tiles, adds_floats, has_float8).program()


class _Results(dict[Node, Any]):
    """The tensors of the nodes that have been lowered."""

    def __missing__(self, x: Node) -> NoReturn:
        raise NeedsStatic((), f"{x.name} is a number, but it is used as a tensor")


class _Lowering:
    def __init__(self, graph: Graph, has_recurrences: bool, has_tiles: bool, adds_floats: bool, has_float8: bool) -> None:
        self.graph = graph
        self.names = canonical_symbols(graph)
        self.numbers = {node: i for i, node in enumerate(graph.in_order())}
        self.b = Builder(Facts(map(self.renamed, guarded_relations(graph))), has_recurrences, has_tiles, adds_floats,
                         has_float8)  # fmt: skip
        self.env = _Results()
        self.expansions: dict[str, Expansion | None] = {}

    def renamed(self, x: Any) -> Any:
        """`x` with the graph's symbols as the program's."""
        return renamed(x, self.names) if self.names else x

    def program(self) -> ir.Program:
        inputs: list[str] = []
        constants: list[tuple[str, str]] = []
        for node in self.graph.in_order():
            if node.op == "placeholder":
                name = f"in{len(inputs)}"
                if node.info.spec is not None:
                    self.env[node] = self.b.given(name, self.renamed(node.info.spec))
                inputs.append(name)
            elif node.op == "get_attr":
                name = f"const{len(constants)}"
                assert isinstance(node.target, str)
                self.env[node] = self.b.given(name, spec_of(self.graph.root[node.target]))
                constants.append((name, node.target))
            elif node.op == "call_function":
                self._call(node)
            elif node.op != "output":
                raise ValueError(f"lower: a functional graph has a {node.op} node ({node.name})")
        outputs = tuple(self.env[x] if isinstance(x, Node) else self.renamed(x) for x in self.graph.outputs)
        writes = self._writes(inputs, outputs)
        symbols = tuple((name, self.graph.symbols[s]) for s, name in self.names.items())
        return ir.Program(self.b.buffers, tuple(inputs), tuple(constants), outputs[len(writes) :], writes,
                          checks=tuple(self.b.checks), symbols=symbols)  # fmt: skip

    def _writes(self, inputs: Sequence[str], outputs: Sequence[Any]) -> tuple[ir.Write, ...]:
        """The new values of mutated inputs, which come first in `outputs`; empty if the caller must write all of them."""
        signature = self.graph.signature
        if signature is None or not signature.may_write:
            return ()
        targets = [inputs[i] for i in signature.mutated_inputs]
        writes: list[ir.Write] = []
        for name, value in zip(targets, outputs, strict=False):
            of = self.b.buffers[name].layout.dtype
            if not isinstance(value, ir.Ref) or _outside_loops(of) or value.dtype is not of:
                return ()
            if value.buffer in targets:  # its elements may be overwritten before they are read
                value = self.b.copy(value, ir.row_major(value.shape, of))
            writes.append(ir.Write(name, value))
        return tuple(writes)

    def _call(self, node: Node) -> None:
        origin = node.info.origin
        op = node.target
        if op is operator.getitem:
            self.env[node] = self.env[node.args[0]][node.args[1]]
            return
        if not isinstance(op, Op):
            raise ValueError(f"lower: {node.name} calls {op!r}, which is not an op of the table")
        self.b.source = ir.Source((op.name,), (self.numbers[node],))
        self.b.facts.what = f"{op.name} ({origin.file}:{origin.line})" if origin else op.name
        args = self.renamed(map_nodes(tuple(node.args), self.env.__getitem__))
        self.b.used = frozenset([u.args[1] for u in node.users if u.target is operator.getitem])
        found = expand(op, tuple(node.args), self.expansions) if op.rules.expandable is not None else None
        self.env[node] = self._lower(op, self.renamed(node.info.spec), args) if found is None else self._expand(node, found, args)

    def _expand(self, node: Node, found: Expansion, args: tuple[Any, ...]) -> tuple[ir.Ref, ...]:
        """The results of a call that lowers as the calls of its expansion, in the layouts that its specs state."""
        self.env.update(zip(found.graph.placeholders, ir.refs_of(args), strict=True))
        for part in found.graph.in_order():
            if part.op == "call_function":
                self.numbers[part] = self.numbers[node]
                self._call(part)
        results = [(self.env[r], layout_of(s)) for r, s in zip(found.results, specs_of(node), strict=True)]
        return tuple([r if r.layout == layout else self.b.copy(r, layout) for r, layout in results])

    def _lower(self, op: Op, spec: Any, args: tuple[Any, ...]) -> Any:
        specs = [s for s in ((spec,) if isinstance(spec, TensorSpec) else spec or ()) if isinstance(s, TensorSpec)]
        reads_float8 = self.b.has_float8 and op.name == "float8_mm"
        if any(_outside_loops(s.dtype) for s in specs) or (not reads_float8 and any(_outside_loops(r.dtype) for r in ir.refs_of(args))):
            return self._extern(op, spec, args)
        found: Any = None
        if op.name in RULES:
            found = RULES[op.name](self.b, spec, *args)
        elif not isinstance(spec, TensorSpec):
            return self._extern(op, spec, args)
        elif op.kind is Kind.POINTWISE and op.scalar is not None:
            found = self._pointwise(op, spec, args)
        elif op.kind is Kind.REDUCTION and op.reduce is not None:
            found = self._reduction(op, spec, args)
        elif op.kind is Kind.VIEW and isinstance(args[0], ir.Ref) and args[0].dtype is spec.dtype:
            return self._view(op, args)
        return self._extern(op, spec, args) if found is None else found

    # ---- by kind ----

    def _pointwise(self, op: Op, spec: TensorSpec, args: tuple[Any, ...]) -> ir.Ref:
        layout = layout_of(spec)
        given_dtype = spec.dtype  # of the arithmetic too, unless the op has its own rule for the dtype of its result
        if op.meta is not None or op.promotion in ("bool", "real"):
            like = tuple(ViewRule(a, self.b.facts) if isinstance(a, ir.Ref) else 1 if isinstance(a, E.Expr) else a for a in args)
            given_dtype = op.compute_dtype(*like)
        compute = wide(given_dtype)
        as_given = op._tensor_at if op.promotion == "raw" else op._tensor_at[: op.promotion == "select"]
        scalar = op.scalar
        assert scalar is not None

        def at(p: Point) -> ir.Value:
            values: list[Any] = []
            for i, a in enumerate(args):
                if isinstance(a, ir.Ref):
                    v = self.b.broadcast(a, p, spec.shape)
                    if compute is not given_dtype and i not in as_given and op.rounds_operand(i, len(a.shape)):
                        v = ir.cast(v, given_dtype)
                    values.append(Scalar(v if v.dtype is compute or i in as_given else ir.cast(v, compute)))
                elif op.takes_as_given(a, given_dtype):
                    values.append(a if compute is given_dtype else _rounded(op, a, given_dtype).value)
                elif i in op._tensor_at and a is not None and (op.promotion not in ("raw", "select") or i not in as_given):
                    values.append(Scalar(number(a, compute) if compute is given_dtype else _rounded(op, a, given_dtype)))
                else:
                    values.append(self.b.facts.lift(a))
            if op.fallible and compute.is_integral:
                values[-1] = self._divisor(values[-1])
            result = scalar(LOOP, *values)
            return as_value(result, spec.dtype)

        return self.b.pointwise(layout, at)

    def _divisor(self, divisor: Scalar) -> Scalar:
        """A divisor of an integer division; 0 raises. The only scalar rules that can raise are integer divisions."""
        v = divisor.value
        if isinstance(v, ir.Const) and v.value != 0:
            return divisor
        is_zero = ir.cast(ir.make_op("eq", (v, ir.const(0, v.dtype)), dtypes.bool_), dtypes.int64)
        check = self.b.check("RuntimeError", "ZeroDivisionError", 0)
        zero = ir.make_op("check_index", (is_zero, ir.const(1, dtypes.int64), ir.const(check, dtypes.int64)), dtypes.int64)
        return divisor + Scalar(ir.cast(zero, v.dtype))

    def _reduction(self, op: Op, spec: TensorSpec, args: tuple[Any, ...]) -> ir.Ref | None:
        x, keepdim = args[0], args[2]
        dims = tuple(self.b.dim(d, len(x.shape)) for d in args[1])
        if op.reduce in ("argmax", "argmin"):
            return self._arg(op.reduce, spec, x, dims, keepdim)
        kind = _REDUCE[op.reduce or ""]
        if spec.dtype is dtypes.bool_:  # a bool is 0 or 1 in memory
            kind = {"sum": "any", "prod": "all"}.get(kind, kind)
        accumulate = wide(spec.dtype)
        if kind in ("any", "all"):
            accumulate = dtypes.bool_

        def value(v: ir.Value) -> ir.Value:
            return ir.cast(v, accumulate)

        return self._reduce(layout_of(spec), x, dims, keepdim, kind, lambda p: value(self.b.load(x, p)))

    def _reduce(self, layout: ir.Layout, x: ir.Ref, dims: tuple[int, ...], keepdim: bool, kind: str,
                value_at: Callable[[Point], ir.Value]) -> ir.Ref:  # fmt: skip
        strides = x.layout.strides
        order = sorted(dims, key=lambda d: -nominal(strides[d]))  # the closest elements innermost

        def at(kept: Point, inner: Point) -> ir.Value:
            return value_at(_spread(kept, inner, len(x.shape), order, keepdim))

        return self.b.reduction(layout, [x.shape[d] for d in order], kind, at)

    def _arg(self, name: str, spec: TensorSpec, x: ir.Ref, dims: tuple[int, ...], keepdim: bool) -> ir.Ref | None:
        """The first position of the extreme: the least index at which the extreme (or the first nan) occurs."""
        if x.dtype is dtypes.bool_ or 0 in x.shape or not dims:
            return None
        d = wide(x.dtype)
        shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape))
        extreme = self._reduce(ir.row_major(shape, d), x, dims, True, "max" if name == "argmax" else "min",
                               lambda p: ir.cast(self.b.load(x, p), d))  # fmt: skip
        none = ir.index(product(x.shape[i] for i in dims))  # a position past every other

        def at(p: Point) -> ir.Value:
            v, m = ir.cast(self.b.load(x, p), d), self.b.broadcast(extreme, p, x.shape)
            hit = ir.make_op("eq", (v, m), dtypes.bool_)
            if d.is_floating_point:
                hit = ir.make_op("logical_or", (hit, ir.make_op("isnan", (v,), dtypes.bool_)), dtypes.bool_)
            here = ir.linear_position([x.shape[i] for i in dims], [p[i] for i in dims])
            return ir.make_op("where", (hit, ir.index(here), none), dtypes.int64)

        return self._reduce(layout_of(spec), x, dims, keepdim, "min", at)

    def _view(self, op: Op, args: tuple[Any, ...]) -> ir.Ref:
        x = args[0]
        assert op.view is not None
        facts = self.b.facts
        sizes, strides, offset, *d = facts.lower(op.view(ViewRule(x, facts), *facts.lift(args[1:])))
        return ir.Ref(x.buffer, ir.Layout(tuple(sizes), tuple(strides), d[0] if d else x.dtype), offset)

    def _extern(self, op: Op, spec: Any, args: tuple[Any, ...]) -> Any:
        specs: list[Any] = [spec] if isinstance(spec, TensorSpec) else list(spec or ())
        results = self.b.extern(op.name, args, specs)
        return results[0] if isinstance(spec, TensorSpec) else tuple(results)


def _spread(kept: Point, inner: Point, ndim: int, order: list[int], keepdim: bool) -> list[Any]:
    """The point of the input: kept indices unchanged, reduced indices between them."""
    point: list[Any] = [None] * ndim
    for d, i in zip(order, inner, strict=True):
        point[d] = i
    rest = iter(kept)
    for d in range(ndim):
        if point[d] is None:
            point[d] = next(rest)
        elif keepdim:
            next(rest)
    return point


__all__ = ["in_own_symbols", "lower"]
