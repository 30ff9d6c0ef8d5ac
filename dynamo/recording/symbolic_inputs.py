"""Symbols for sizes of inputs and for int and float arguments, and the guards that decisions about symbols need.

`dynamo.policy.dynamic_sizes` decides which sizes and numbers become symbols, `fxir.symbols.shapes` keeps the relations between
symbols, `dynamo.guards.shape_guards` writes the guards.
"""

from __future__ import annotations

from typing import Any, Final

from dynamo._native import ANY, AT_LEAST_2
from dynamo.guards.program import meta_word
from dynamo.guards.shape_guards import base_of, bounds_of, check_of, check_of_floats, equal_terms
from dynamo.guards.sources import GeometrySource, Source
from dynamo.policy.dynamic_sizes import LOG, Dim, Dynamic
from dynamo.report.errors import ConstraintViolationError
from dynamo.values.protocols import Machine
from dynamo.values.symbolic import SymFloatValue, SymIntValue
from dynamo.world.wrap import is_module_state
from eager import Tensor
from eager.base.spec import TensorSpec, contiguous_strides
from eager.base.symint import SymInt
from fxir.base.origin import Origin
from fxir.expr.rules import Int, Sym
from fxir.symbols.shapes import MOST, NeedsStatic, Relation, ShapeEnv

_BEFORE: Final = "before the capture"


class StaticAgain(Exception):
    """Internal: capture again, with some symbols as plain numbers; the memory of the site records them."""


class SymbolicInputs:
    """Owns the symbols of the inputs (`shapes`) and the memory of sizes that varied between calls (`dynamic`).

    strict: symbols that the user marked as dynamic, with their sources. number_inputs: symbols that are inputs of the
    graph.
    """

    def __init__(self, cap: Machine, dynamic: Dynamic) -> None:
        self.cap = cap
        self.dynamic = dynamic
        self.shapes = ShapeEnv(lambda: cap.origin)
        self.strict: dict[Sym, Source] = {}
        self.number_inputs: list[Sym] = []
        self._alike: dict[tuple[int, ...], SymInt] = {}
        self._static_before = len(dynamic.static)

    # -- inputs ------------------------------------------------------------------------------------------------
    def spec(self, real: Tensor, source: Source) -> TensorSpec | None:
        """The spec of an input, with symbols for its dynamic sizes; None for a static input.

        Parameters are static. Tensors of modules are static unless they are marked.
        """
        if real._is_param:
            return None
        name = source.name
        self.dynamic.see(name, real)
        dims = self.dynamic.dims(name, real)
        if dims is None or (source.is_constant_rooted and not any(d.strict or "mark" in d.why for d in dims)):
            return self._with_free_strides(real, source, tuple(real.shape))
        shape = tuple(self._size(d, source, i, n) for i, (d, n) in enumerate(zip(dims, real.shape, strict=True)))
        return self._with_free_strides(real, source, shape)

    def _size(self, d: Dim, source: Source, dim: int, size: int) -> Any:
        if not d.symbolic:
            return size
        term = GeometrySource(source, "size", dim)
        if d.alike in self._alike:
            shared = self._alike[d.alike]
            bases, check = equal_terms(term, self.shapes.symbols[shared.expr].source, size)
            self.cap.world.guards.add("shape", bases, check, origin=self.cap.origin)
            return shared
        made = self.shapes.create(size, term, d.lo, d.hi)
        if d.alike:
            self._alike[d.alike] = made
        if d.strict:
            self.strict[made.expr] = term
        self._log(made, term, d.why)
        return made

    def _log(self, made: SymInt, term: Source, why: str) -> None:
        if LOG.enabled:
            LOG.log(f"{made!r} = {made.hint} for {term.name} in {_range(made.expr)}: {why} ({self.cap.origin or _BEFORE})")

    def _with_free_strides(self, real: Tensor, source: Source, shape: tuple[Any, ...]) -> TensorSpec | None:
        """Express strides as products of sizes if possible; any other stride that varied is a symbol."""
        strides: list[Any] = list(real.stride())
        law: dict[int, Any] = {}
        # From the innermost dim outwards: a stride is 1, or the extent of an inner dim.
        for d in sorted(range(len(shape)), key=lambda d: (strides[d], -d)):
            have = strides[d]
            if have > 1 and have not in law and shape[d] != 1 and self._stride_is_free(real, source, d):
                term = GeometrySource(source, "stride", d)
                strides[d] = self.shapes.create(have, term)
                self._log(strides[d], term, "it changed")
            else:
                strides[d] = law.get(have, have)
            law[have * real.shape[d]] = strides[d] * shape[d]
        if SymInt not in map(type, shape) and SymInt not in map(type, strides):
            return None
        return TensorSpec(shape, real.dtype, tuple(strides), real.device)

    def _stride_is_free(self, real: Tensor, source: Source, d: int) -> bool:
        return not source.is_constant_rooted and self.dynamic.stride_varied(source.name, real.ndim, d)

    def guard(self, real: Tensor, source: Source, spec: TensorSpec, mask: int) -> None:
        """Guard a symbolic input, with a relation for every stride that follows from sizes."""
        sizes = tuple(AT_LEAST_2 if isinstance(n, SymInt) else n for n in spec.shape)
        contiguous = _expressions(contiguous_strides(spec.shape)) == _expressions(spec.strides)
        strides = None if contiguous else tuple(ANY if isinstance(s, SymInt) else s for s in spec.strides)
        self.cap.world.guard("tensor", source, type(real), meta_word(real), mask, sizes, strides)
        if contiguous:
            return
        for d, s in enumerate(spec.strides):
            if isinstance(s, SymInt) and not (isinstance(s.expr, Sym) and self._is_stride(s.expr, source, d)):
                self._guard_stride(GeometrySource(source, "stride", d), s)

    def _is_stride(self, s: Sym, source: Source, d: int) -> bool:
        return bool(self.shapes.symbols[s].source == GeometrySource(source, "stride", d))

    def _guard_stride(self, term: Source, value: SymInt) -> None:
        """Guard that the stride is a product of sizes: a symbol for the stride, which equals the product."""
        own = self.shapes.create(value.hint, term, 0)
        self.shapes.decide("==", own.expr, value.expr)

    def wrap_int(self, real: int, source: Source) -> SymIntValue | None:
        """An int from outside as a symbol, with a guard that it is an int; None for a constant.

        Ints of modules are constants.
        """
        if is_module_state(source):
            return None
        if not self.dynamic.int_is_symbolic(source.name, real):
            return None
        known = next((s for s, k in self.shapes.symbols.items() if k.source == source), None)
        if known is not None:
            return SymIntValue(SymInt(known, real, self.shapes), source)
        self.cap.world.guard("int_range", source, -MOST, MOST)
        made = self.shapes.create(real, source, -MOST)
        self._log(made, source, "it changed" if self.dynamic.mode is None else "dynamic=True")
        return SymIntValue(made, source)

    def wrap_float(self, real: float, source: Source) -> SymFloatValue | None:
        """As `wrap_symbolic_int`, for a float."""
        if is_module_state(source) or not self.dynamic.float_is_symbolic(source.name, real):
            return None
        known = next((s for s, k in self.shapes.symbols.items() if k.source == source), None)
        if known is not None:
            return SymFloatValue(self.shapes.floats.symbol(known, real), source)
        self.cap.world.guard("type", source, float)
        made = self.shapes.create_float(real, source)
        if LOG.enabled:
            LOG.log(f"{made!r} = {real} for {source.name}: it changed ({self.cap.origin or _BEFORE})")
        return SymFloatValue(made, source)

    # -- the end -----------------------------------------------------------------------------------------------
    def make_static(self, refusal: NeedsStatic) -> None:
        """Record a symbol that a stage cannot compile.

        Raises: StaticAgain; the refusal, if a new attempt would not help.
        """
        for s in refusal.symbols:
            known = self.shapes.symbols.get(s)
            if known is None:
                continue
            term = known.source
            dim = -1 if not isinstance(term, GeometrySource) else term.dim if term.kind == "size" else -2 - term.dim
            self.dynamic.static[base_of(term).name, dim] = refusal.why
            LOG.log(f"{term.name} = {known.hint} is static again: {refusal.why}")
        if len(self.dynamic.static) == self._static_before:  # a record by another thread helps too
            raise refusal
        raise StaticAgain

    def add_guards(self) -> None:
        """Guards for every decision about symbols. No decision is possible afterwards."""
        env = self.shapes
        env.closed = True
        env.origin = _nowhere  # graphs keep the environment, which must not keep the capture alive
        for s, term in self.strict.items():
            e = env.simplify(s)
            if isinstance(e, Int):
                line = next((r.origin for r in env.relations if s in r.symbols), None)
                raise ConstraintViolationError(
                    f"Constraints violated ({term.name})! You marked {term.name} as dynamic but your code specialized it to be a "
                    f"constant ({e.value}), needed at {line or 'an unknown line'}. Either remove mark_dynamic or use "
                    "maybe_mark_dynamic."
                )
        for s, known in env.symbols.items():
            if s in env.unbacked.symbols:
                continue
            for r in bounds_of(s, known.source):
                self._guard_relation(r, known.origin)
        for r in env.relations:
            self._guard_relation(r, r.origin)
        for f in env.floats.relations:
            bases, check = check_of_floats(f, env)
            self.cap.world.guards.add("shape", bases, check, origin=f.origin)
        for s, origin in env.floats.fixed.items():
            self.cap.world.guards.add("float_eq", env.symbols[s].source, env.hints[s], origin=origin)

    def _guard_relation(self, r: Relation, origin: Origin | None) -> None:
        bases, check = check_of(r, self.shapes)
        self.cap.world.guards.add("shape", bases, check, origin=origin)


def _nowhere() -> None:
    return None


def _expressions(values: Any) -> list[Any]:
    return [v.expr if isinstance(v, SymInt) else v for v in values]


def _range(s: Sym) -> str:
    low, high = ("-inf" if s.lo <= -MOST else s.lo), ("inf" if s.hi >= MOST else s.hi)
    return f"[{low}, {high}]"
